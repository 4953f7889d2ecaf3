import { describe, expect, test } from "vitest";
import { SegmentChanges } from "../../../../engine/state/keyspaces/segment-changes.ts";
import { Segment } from "../../../../engine/state/keyspaces/time-series/series-segment.ts";
import { makeTimeSeriesSegments } from "../../../../engine/state/keyspaces/time-series/time-series.ts";

const listMax = 8;

function opened() {
  const segments = makeTimeSeriesSegments(() => undefined);
  const changes = new SegmentChanges(segments, listMax);
  let etag = 0;
  const set = (key: string, isThere = true) => {
    const value = Segment.of([{ time: 0, values: [1], tag: null }]);
    segments.stage(key, isThere ? { value, etag: ++etag, position: 0, length: 8 } : undefined);
    segments.commitStaged(1);
  };
  return { changes, set };
}

function listed(keys: Iterable<string> | null): string[] | null {
  return keys === null ? null : [...keys];
}

describe("changes of segments", () => {
  test("are recorded from the first follower on, both writes and deletions", () => {
    const { changes, set } = opened();
    set("a");
    const seen = changes.follow();
    expect(seen).toBe(0);
    expect(listed(changes.since(seen))).toEqual([]);
    set("b");
    set("a", false);
    expect(listed(changes.since(seen))).toEqual(["b", "a"]);
    expect(listed(changes.since(1))).toEqual(["a"]);
    expect(changes.count).toBe(2);
    expect(changes.follow()).toBe(2);
  });

  test("are dropped when there are too many, and lagging followers are notified", () => {
    const { changes, set } = opened();
    changes.follow();
    for (let i = 0; i < 1_000; i++) set(`key${i}`);
    expect(changes.since(0)).toBeNull();
    expect(listed(changes.since(998))).toEqual(["key998", "key999"]);
    const known = listed(changes.since(1_000 - listMax / 2)) ?? [];
    expect(known.length).toBe(listMax / 2);
    expect(known.at(-1)).toBe("key999");
  });
});
