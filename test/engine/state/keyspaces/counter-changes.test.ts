import { describe, expect, it } from "vitest";
import { CounterChanges } from "../../../../engine/state/keyspaces/counter-changes.ts";

const since = (changes: CounterChanges, etag: number) =>
  [...changes.since(etag)].map(({ id, etag: at }) => `${id}:${at}`);

describe("changes of counters", () => {
  it("are returned from an etag on, each id with its newest change", () => {
    const changes = new CounterChanges();
    changes.follow(10);
    expect(changes.newest).toBe(10);
    changes.note("a", 11);
    changes.note("b", 12);
    changes.note("a", 13);
    expect(since(changes, 10)).toEqual(["b:12", "a:13"]);
    expect(since(changes, 12)).toEqual(["a:13"]);
    expect(since(changes, 13)).toEqual([]);
  });

  it("ascend even if etags do not", () => {
    const changes = new CounterChanges();
    changes.follow(0);
    changes.note("a", 5);
    changes.note("b", 4);
    expect(since(changes, 4)).toEqual(["a:5", "b:5"]);
  });

  it("keep the newest change of each id through thousands of changes, and none that was dropped", () => {
    const changes = new CounterChanges();
    changes.follow(0);
    for (let etag = 1; etag <= 10_000; etag++) changes.note(`u/${etag % 7}`, etag);
    changes.forget("u/0");
    expect(since(changes, 0)).toEqual(
      [9_994, 9_995, 9_996, 9_997, 9_998, 9_999, 10_000]
        .filter((etag) => etag % 7 !== 0)
        .map((etag) => `u/${etag % 7}:${etag}`),
    );
  });
});
