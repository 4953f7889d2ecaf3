/**
 * Indexing slices are grouped into batches: a batch lasts from the first pending change until the
 * index has caught up.
 */
import { expect, test } from "vitest";
import { IndexBatches, type IndexStep } from "../../../engine/indexing/index-batches.ts";

const store = {};

/**
 * A slice of `ms` milliseconds starting at `startMs`, in which documents up to number `maps` were
 * mapped.
 */
function step(startMs: number, ms: number, maps: number, isStale: boolean): IndexStep {
  const counts = (mapAttempts: number) => ({
    mapAttempts,
    mapErrors: Math.floor(mapAttempts / 10),
    reduceAttempts: 2 * mapAttempts,
    reduceMs: mapAttempts / 10,
    entries: mapAttempts,
    livingEntries: mapAttempts,
    store,
  });
  return {
    startedAtMicros: startMs * 1000,
    endedAtMicros: (startMs + ms) * 1000,
    workMs: ms,
    before: counts(maps - 10),
    after: counts(maps),
    isStale,
  };
}

test("a batch contains all work until the index has caught up", () => {
  const batches = new IndexBatches(0);
  batches.add(step(100, 4, 10, true));
  expect(batches.list).toMatchObject([{ isComplete: false, inputs: 10 }]);
  batches.add(step(110, 4, 20, false));
  batches.add(step(500, 2, 30, false));
  expect(batches.list).toMatchObject([
    {
      startedAtMicros: 100_000,
      endedAtMicros: 114_000,
      isComplete: true,
      hasCaughtUp: true,
      workMs: 8,
      reduceMs: 2,
      inputs: 20,
      failures: 2,
      reduced: 40,
      outputs: 20,
    },
    { startedAtMicros: 500_000, inputs: 10 },
  ]);
  const [first, second] = batches.list;
  expect(second?.id).toBeGreaterThan(first?.id ?? 0);
  expect(second?.version).toBeGreaterThan(first?.version ?? 0);
});

test("an index that never catches up starts another batch after five seconds", () => {
  const batches = new IndexBatches(0);
  for (const at of [0, 2_000, 5_000]) batches.add(step(at, 4, 10, true));
  batches.add(step(5_010, 4, 10, true));
  expect(batches.list).toMatchObject([
    { isComplete: true, hasCaughtUp: false, inputs: 30 },
    { isComplete: false, inputs: 10 },
  ]);
});

test("retains 25 batches, and does not count a compaction of the entries as output", () => {
  const batches = new IndexBatches(0);
  for (let at = 0; at < 40; at++) batches.add(step(at * 10, 1, 10, false));
  expect(batches.list).toHaveLength(25);
  const compacted = step(1_000, 1, 30, false);
  const after = { ...compacted.after, store: {}, entries: 25 };
  batches.add({ ...compacted, after });
  expect(batches.list.at(-1)).toMatchObject({ outputs: 5 });
});
