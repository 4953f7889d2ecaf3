import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { IndexErrors } from "../../../engine/indexing/index-errors.ts";
import type { SegmentHost } from "../../../engine/indexing/index-host.ts";
import type { IndexProgram, MapResult } from "../../../engine/indexing/index-program.ts";
import { PartReader, PartWriter } from "../../../engine/indexing/saved/saved-parts.ts";
import { SeriesMapStage } from "../../../engine/indexing/series-map-stage.ts";
import { ArrayDatabase } from "../queries/execution/execute-array-host.ts";

const open: ArrayDatabase[] = [];
afterEach(() => {
  for (const database of open.splice(0)) database.indexes.close();
});

/** Segments by key, each with an etag, and a change list that retains only the last three. */
class FewSegments implements SegmentHost {
  readonly etags = new Map<string, number>();
  committedEtag = 0;
  changeCount = 0;
  readonly #changes: string[] = [];

  follow(): number {
    return this.changeCount;
  }

  change(key: string, isThere: boolean): void {
    this.committedEtag++;
    if (isThere) this.etags.set(key, this.committedEtag);
    else this.etags.delete(key);
    this.changeCount++;
    this.#changes.push(key);
  }

  changedSince(seen: number): Iterable<string> | null {
    return this.changeCount - seen > 3 ? null : this.#changes.slice(seen);
  }

  *after(key: string): Generator<{ key: string; etag: number }> {
    for (const [one, etag] of [...this.etags].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (one > key) yield { key: one, etag };
    }
  }

  etagOf(key: string): number {
    return this.etags.get(key) ?? 0;
  }

  nameOf(key: string): string {
    return key;
  }
}

const nothing = new Set<string>();

function stageOver(segments: FewSegments) {
  const database = new ArrayDatabase();
  open.push(database);
  const mapped = new Map<number, string>();
  let maps = 0;
  const program: IndexProgram = {
    source: "TimeSeries",
    collections: ["Users"],
    referencedCollections: [],
    fieldNames: null,
    isReduce: false,
    wantsSegment: (key) => !key.startsWith("x"),
    mapSegment(key): MapResult {
      maps++;
      const text = `${key} ${segments.etagOf(key)}`;
      return {
        entries: [{ fields: [], boosts: null, text }],
        values: [],
        references: nothing,
        compareExchangeKeys: nothing,
        failure: null,
      };
    },
    map: () => {
      throw new Error("documents are not mapped");
    },
    reduce: () => null,
    fieldsOf: () => [],
  };
  const target = {
    set: (number: number, result: MapResult) => {
      mapped.set(number, result.entries[0]?.text ?? "");
      return null;
    },
    remove: (number: number) => {
      mapped.delete(number);
    },
  };
  const stage = new SeriesMapStage(program, target, new IndexErrors(), database, segments);
  return { stage, mapped, mapCount: () => maps };
}

/** Runs in slices of the given number of clock checks. */
function settle(stage: SeriesMapStage, checks: number): void {
  for (let slices = 0; stage.isStale; slices++) {
    expect(slices).toBeLessThan(10_000);
    let left = checks;
    void stage.catchUp(() => --left < 0);
  }
}

function expectedOf({ etags }: FewSegments): string[] {
  const wanted = [...etags].filter(([key]) => !key.startsWith("x"));
  return wanted.map(([key, etag]) => `${key} ${etag}`).sort();
}

describe("the maps of segments", () => {
  test("map each changed segment and no other", () => {
    const segments = new FewSegments();
    for (const key of ["a", "b", "xa"]) segments.change(key, true);
    const { stage, mapped, mapCount } = stageOver(segments);
    expect(stage.isStale).toBe(true);
    settle(stage, 100);
    expect([...mapped.values()].sort()).toEqual(expectedOf(segments));
    expect(mapCount()).toBe(2);
    segments.change("a", true);
    segments.change("b", false);
    segments.change("xb", true);
    settle(stage, 100);
    expect([...mapped.values()]).toEqual(expectedOf(segments));
    expect(mapCount()).toBe(3);
    expect(stage.items.seen).toBe(6);
  });

  test("equal those of all segments at the end, with any changes dropped and at any save point", () => {
    const key = fc.constantFrom("a", "b", "c", "d", "e", "xa");
    const step = fc.oneof(
      fc.record({ key, isThere: fc.boolean() }),
      fc.constantFrom("slice", "slice", "save"),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat({ max: 4 }), (steps, checks) => {
        const segments = new FewSegments();
        let current = stageOver(segments);
        for (const one of steps) {
          if (one === "slice") {
            let left = checks;
            void current.stage.catchUp(() => --left < 0);
          } else if (one === "save") {
            const writer = new PartWriter();
            current.stage.save(writer);
            const sections = new Map(
              writer.sections.map(({ name, parts }) => [name, aligned(parts)]),
            );
            const { mapped } = current;
            current = stageOver(segments);
            for (const [number, text] of mapped) current.mapped.set(number, text);
            const reader = new PartReader(sections, JSON.parse(JSON.stringify(writer.values)));
            for (const _ of current.stage.restore(reader));
          } else segments.change(one.key, one.isThere);
        }
        settle(current.stage, checks + 1);
        expect([...current.mapped.values()].sort()).toEqual(expectedOf(segments));
      }),
      { numRuns: 500 },
    );
  });
});

function aligned(parts: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(parts);
  const own = Buffer.from(new ArrayBuffer(bytes.length));
  bytes.copy(own);
  return own;
}
