/** Segments of time series in dumps: in both directions, from RavenDB 7.2.7, and damaged. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import {
  decodeSeriesBlob,
  encodeSeriesBlob,
  seriesBlobBytesMax,
} from "../../../../engine/services/smuggler/series-blob.ts";
import type { SeriesEntry } from "../../../../engine/state/keyspaces/time-series/series-segment.ts";
import { projectRoot } from "../../../support/project-root.ts";

const baseline = Date.UTC(2020, 0, 1);
const dumps = `${projectRoot}test/cases/dumps/`;

const entries: fc.Arbitrary<SeriesEntry[]> = fc
  .array(
    fc.record({
      step: fc.oneof(fc.constantFrom(1, 1000, 60_000), fc.integer({ min: 1, max: 5_000_000 })),
      values: fc.array(
        fc.oneof(
          fc.integer({ min: -9, max: 99 }),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
        ),
        { minLength: 1, maxLength: 4 },
      ),
      tag: fc.constantFrom(null, null, "a", "watches/1", "é".repeat(100)),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((steps) => {
    let time = baseline;
    return steps.map(({ step, values, tag }) => {
      time += step;
      return { time, values, tag };
    });
  });

function decodeAll(list: readonly SeriesEntry[]): SeriesEntry[] {
  const decoded: SeriesEntry[] = [];
  for (let from = 0; from < list.length; ) {
    const { bytes, count } = encodeSeriesBlob(list, from);
    if (count > 1) expect(bytes.length).toBeLessThanOrEqual(seriesBlobBytesMax);
    decoded.push(...decodeSeriesBlob(bytes, (list[from] as SeriesEntry).time));
    from += count;
  }
  return decoded;
}

describe("segments of time series in dumps", () => {
  test("decode to the original entries", () => {
    fc.assert(
      fc.property(entries, (list) => {
        expect(decodeAll(list)).toEqual(list);
      }),
      { numRuns: 200 },
    );
  });

  test("are as many as needed, none larger than RavenDB's", () => {
    const list = Array.from({ length: 5000 }, (_, i) => ({
      time: baseline + i * 977 + (i % 7),
      values: [Math.sin(i) * 1e6, i],
      tag: i % 3 === 0 ? `tag${i % 200}` : null,
    }));
    expect(decodeAll(list)).toEqual(list);
  });

  test("hold times that are years apart", () => {
    const list = [-1e12, 0, 1, 1e12].map((time) => ({ time, values: [1], tag: null }));
    expect(decodeAll(list)).toEqual(list);
  });

  test("from RavenDB 7.2.7 are read: tags, missing values, a deleted entry", () => {
    const created = Buffer.from(
      "wNQBAGDqAAADAAcAAAIBAAAAAAAAAE5AAAAAAACAT0AAAAAAAIBPQAAAAAAAAE5AAAAAAAAAZ0ADAAAADwYAAAAAAAAAABJAAAAAAAAAEkAAAAAAAAASQAAAAAAAABJAAAAAAAAAEkABAAAAAAAAAAN3LzEABQHTAQAAAAAAAAAAAADQE4AAAAAAAD//gAAAAAAADAPgADqX6FUAAAAAAD//gAAAAAAACJ9UAAAAAADQBIAAAAAAADAA",
      "base64",
    );
    expect(decodeSeriesBlob(created, baseline)).toEqual([
      { time: baseline, values: [60], tag: "w/1" },
      { time: baseline + 60_000, values: [61], tag: null },
      { time: baseline + 120_000, values: [63, 4.5], tag: "w/1" },
    ]);
    const withDeleted = Buffer.from(
      "AFwmBQBcJgUCAAEA/wEBAAAAAAAAAPA/AAAAAAAA8D8AAAAAAADwPwAAAAAAAPA/AAAAAAAA8D8BAAAAAAAAAADLAAAAAAAAAAAAAADP/AAAAAAAAB+FJlv/z/wAAAAAAAAA",
      "base64",
    );
    expect(decodeSeriesBlob(withDeleted, baseline)).toEqual([
      { time: baseline, values: [1], tag: null },
    ]);
  });

  test("from RavenDB 7.2.7 that are full, and partly compressed, are read", () => {
    const text = readFileSync(`${dumps}compressed-segment.txt`, "latin1");
    const decoded = decodeSeriesBlob(Buffer.from(text, "base64"), baseline);
    expect(decoded.length).toBeGreaterThan(100);
    expect(decoded).toEqual(
      decoded.map((_, i) => ({
        time: baseline + i * 60_000,
        values: [((i * 7919) % 1000) / 8],
        tag: i % 5 === 0 ? `t${i % 3}` : null,
      })),
    );
  });

  test("give an error or other entries if damaged, and do nothing worse", () => {
    const list = Array.from({ length: 40 }, (_, i) => ({
      time: baseline + i * 1000,
      values: [i, i / 3],
      tag: i % 2 === 0 ? "a" : "b",
    }));
    const { bytes } = encodeSeriesBlob(list, 0);
    for (let at = 0; at < bytes.length; at++) {
      for (const bit of [1, 16, 128]) {
        const damaged = Buffer.from(bytes);
        damaged[at] = (damaged[at] as number) ^ bit;
        expectReadable(damaged);
      }
      expectReadable(bytes.subarray(0, at));
    }
  });
});

function expectReadable(bytes: Buffer): void {
  try {
    expect(decodeSeriesBlob(bytes, baseline).length).toBeLessThanOrEqual(0xffff);
  } catch (error) {
    expect(error).toBeInstanceOf(EngineError);
  }
}
