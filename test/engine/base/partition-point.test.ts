import fc from "fast-check";
import { expect, test } from "vitest";
import { partitionPoint } from "../../../engine/base/partition-point.ts";

test("finds the same index as a linear search", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), fc.nat(20), fc.nat(5), (numbers, bound, skipped) => {
      const list = numbers.sort((one, other) => one - other);
      const from = Math.min(skipped, list.length);
      const isBefore = (index: number) => (list[index] as number) < bound;
      let expected = from;
      while (expected < list.length && isBefore(expected)) expected++;
      expect(partitionPoint(from, list.length, isBefore)).toBe(expected);
    }),
  );
});
