/** The start and speed of compaction, depending on live and dead bytes. */
import { describe, expect, test } from "vitest";
import { type CompactionPace, paceOf } from "../../../../engine/storage/log/compaction-pace.ts";

const mebi = 1024 * 1024;

interface Parts {
  readonly live?: number;
  readonly dead?: number;
  readonly empty?: number;
  /** Log capacity without records, snapshots. */
  readonly other?: number;
  readonly isHeld?: boolean;
}

/** In MiB, for a log with 100 live MiB, which counts as at least 4. */
function pace({ live = 100, dead = 0, empty = 0, other = 10, isHeld = false }: Parts) {
  const space = {
    liveBytes: live * mebi,
    deadBytes: dead * mebi,
    emptyBytes: empty * mebi,
    totalBytes: (live + dead + other) * mebi,
  };
  return paceOf(space, 4 * mebi, isHeld);
}

describe("the pace of compaction", () => {
  test("is slow while the dead share is below a limit", () => {
    expect(pace({ dead: 39 })).toMatchObject({ delayMs: 1000, speedUp: 1, brake: 0 });
    expect(pace({ dead: 39 }).worthShare).toBe(0.5);
  });

  test("rises continuously with the dead bytes", () => {
    const rows: CompactionPace[] = [];
    for (let dead = 30; dead <= 140; dead += 0.25) rows.push(pace({ dead }));
    for (let at = 1; at < rows.length; at++) {
      const [before, after] = [rows[at - 1] as CompactionPace, rows[at] as CompactionPace];
      for (const field of ["speedUp", "timeShare", "brake"] as const) {
        expect(after[field]).toBeGreaterThanOrEqual(before[field]);
        expect(after[field] - before[field]).toBeLessThan(0.25);
      }
    }
    expect(rows.at(0)).toMatchObject({ delayMs: 1000, speedUp: 1, timeShare: 0, brake: 0 });
    expect(rows.at(-1)).toMatchObject({ delayMs: 0, speedUp: 8, timeShare: 0.5, brake: 8 });
  });

  test("slows writers down more, the further compaction lags", () => {
    expect(pace({ dead: 50 })).toMatchObject({ timeShare: 0.25, brake: 0 });
    expect(pace({ dead: 60 })).toMatchObject({ timeShare: 0.5, brake: 1 });
    expect(pace({ dead: 80 })).toMatchObject({ timeShare: 0.5, brake: 3 });
  });

  test("starts earlier, up to a limit, when snapshots and other files are large", () => {
    expect(pace({ dead: 30, other: 20 }).delayMs).toBe(1000);
    expect(pace({ dead: 30, other: 60 }).delayMs).toBe(0);
    expect(pace({ dead: 19, other: 500 })).toMatchObject({ delayMs: 1000, brake: 0 });
  });

  test("immediately deletes segments that need no copying, and only those", () => {
    const held = pace({ dead: 20, empty: 13, isHeld: true });
    expect(held).toMatchObject({ delayMs: 0, worthShare: Number.POSITIVE_INFINITY });
    expect(pace({ dead: 20, empty: 12, isHeld: true }).delayMs).toBe(null);
    expect(pace({ dead: 20, empty: 13 }).urgentShare).toBe(Number.POSITIVE_INFINITY);
  });

  test("waits while a hold is active, unless very much is dead", () => {
    expect(pace({ dead: 39, other: 60, isHeld: true }).delayMs).toBe(null);
    expect(pace({ dead: 41, other: 60, isHeld: true }).delayMs).toBe(0);
  });

  test("does not hurry for small amounts in a small log", () => {
    expect(pace({ live: 0.1, dead: 1.5, other: 0.5 })).toMatchObject({ delayMs: 1000, brake: 0 });
    expect(pace({ live: 0, dead: 0, other: 0 })).toMatchObject({ speedUp: 1, brake: 0 });
  });
});
