import fc from "fast-check";
import { expect, test } from "vitest";
import { StagedMap } from "../../../../engine/base/tree/staged-map.ts";

type Operation =
  | { kind: "stage"; key: string; value: number | undefined }
  | { kind: "commit"; count: number }
  | { kind: "discard"; count: number }
  | { kind: "view" };

const key = fc.string({ unit: fc.constantFrom("a", "b", "é", "\uff01", "😀"), maxLength: 3 });
const count = fc.integer({ min: 0, max: 5 });
const operation = fc.oneof<fc.WeightedArbitrary<Operation>[]>(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("stage"),
      key,
      value: fc.option(fc.nat(), { nil: undefined }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("commit"), count }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("discard"), count }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("view") }) },
);

type Change = [string, number | undefined];

function apply(
  entries: ReadonlyMap<string, number>,
  changes: readonly Change[],
): Map<string, number> {
  const result = new Map(entries);
  for (const [key, value] of changes) {
    if (value === undefined) result.delete(key);
    else result.set(key, value);
  }
  return result;
}

function sorted(entries: ReadonlyMap<string, number>, prefix = ""): [string, number][] {
  return [...entries]
    .filter(([key]) => key.startsWith(prefix))
    .sort(([left], [right]) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
}

test("shows readers the committed values and the writer the newest ones", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 120, size: "max" }), (operations) => {
      const map = new StagedMap<number>(4);
      let committed = new Map<string, number>();
      let staged: Change[] = [];
      const views: { view: ReturnType<typeof map.view>; entries: [string, number][] }[] = [];
      for (const next of operations) {
        if (next.kind === "stage") {
          map.stage(next.key, next.value);
          staged.push([next.key, next.value]);
        } else if (next.kind === "view") {
          views.push({ view: map.view(), entries: sorted(committed) });
        } else {
          const count = Math.min(next.count, staged.length);
          if (next.kind === "discard") {
            map.discardStaged(count);
            staged = staged.slice(0, staged.length - count);
          } else {
            const reported: [string, number | undefined, number | undefined][] = [];
            map.commitStaged(count, (key, value, previous) =>
              reported.push([key, value, previous]),
            );
            const expected: typeof reported = [];
            for (const change of staged.slice(0, count)) {
              expected.push([change[0], change[1], committed.get(change[0])]);
              committed = apply(committed, [change]);
            }
            expect(reported).toEqual(expected);
            staged = staged.slice(count);
          }
        }
        map.checkInvariants();
        expect(map.stagedCount).toBe(staged.length);
        expect(map.size).toBe(committed.size);
      }
      const newest = apply(committed, staged);
      for (const key of ["", ...committed.keys(), ...newest.keys()]) {
        expect(map.get(key)).toBe(committed.get(key));
        expect(map.newest(key)).toBe(newest.get(key));
        expect([...map.entries(key)]).toEqual(sorted(committed, key));
        expect([...map.newestEntries(key)]).toEqual(sorted(newest, key));
      }
      for (const { view, entries } of views) expect([...view.entries()]).toEqual(entries);
    }),
    { numRuns: 200 },
  );
});

test("replays a change beneath staged ones", () => {
  const map = new StagedMap<number>();
  expect(map.apply("a", 1)).toBeUndefined();
  expect(map.apply("a", 2)).toBe(1);
  expect(map.apply("a", undefined)).toBe(2);
  expect(map.get("a")).toBeUndefined();
});

test("refuses to commit or discard more than is staged", () => {
  const map = new StagedMap<number>();
  map.stage("a", 1);
  expect(() => map.commitStaged(2)).toThrow("only what is staged");
  expect(() => map.discardStaged(2)).toThrow("only what is staged");
});

test("iterates over a range of committed entries", () => {
  const map = new StagedMap<number>();
  for (const key of ["a", "b", "c"]) map.apply(key, key.charCodeAt(0));
  const cursor = map.cursor({ lower: "b", descending: true });
  const seen: string[] = [];
  while (cursor.next()) seen.push(cursor.key);
  expect(seen).toEqual(["c", "b"]);
});
