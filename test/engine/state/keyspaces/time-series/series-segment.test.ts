import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  Segment,
  type SeriesEntry,
  segmentCodec,
} from "../../../../../engine/state/keyspaces/time-series/series-segment.ts";

const time = fc.oneof(
  fc.integer({ min: 0, max: 40 }),
  fc.integer({ min: 1_577_836_800_000, max: 1_577_840_400_000 }),
  fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
);
const value = fc.oneof(
  fc.integer({ min: -5, max: 5 }),
  fc.double({ noNaN: true }),
  fc.constantFrom(0, -0, 0.1, 1e300, 5e-324, Number.MAX_SAFE_INTEGER, Infinity, -Infinity),
);
const entry: fc.Arbitrary<SeriesEntry> = fc.record({
  time,
  values: fc.array(value, { minLength: 1, maxLength: 32 }),
  tag: fc.option(fc.oneof(fc.constantFrom("", "watches/1", "ä€😀"), fc.string()), { nil: null }),
});
const entries = fc
  .uniqueArray(entry, { selector: (one) => one.time, minLength: 1, maxLength: 60 })
  .map((list) => list.sort((one, other) => one.time - other.time));

describe("a segment", () => {
  it("restores packed entries bit for bit", () => {
    fc.assert(
      fc.property(entries, (list) => {
        const { bytes } = Segment.of(list);
        const padded = Buffer.concat([Buffer.alloc(3, 7), bytes, Buffer.alloc(5, 9)]);
        const segment = segmentCodec.decode(padded, 3, 3 + bytes.length);
        expect(segment.toEntries()).toEqual(list);
        expect(segment.count).toBe(list.length);
        expect(segment.first).toBe(list[0]?.time);
        expect(segment.last).toBe(list.at(-1)?.time);
        expect(segment.width).toBe(Math.max(...list.map(({ values }) => values.length)));
      }),
    );
  });

  it("counts the entries before a time", () => {
    fc.assert(
      fc.property(entries, time, (list, bound) => {
        const expected = list.filter((one) => one.time < bound).length;
        expect(Segment.of(list).unpack().countBefore(bound)).toBe(expected);
      }),
    );
  });

  it("takes 3 bytes for an entry at a regular interval whose value changes a little", () => {
    const list = Array.from({ length: 500 }, (_, i) => ({
      time: 1_577_836_800_000 + i * 60_000,
      values: [60 + (i % 30)],
      tag: null,
    }));
    expect(Segment.of(list).bytes.length).toBeLessThan(500 * 4);
  });
});
