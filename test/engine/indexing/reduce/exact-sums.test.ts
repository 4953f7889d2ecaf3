/** Exact sums: after numbers are subtracted, the sum is that of the remaining numbers. */
import { expect, test } from "vitest";
import { ExactSums } from "../../../../engine/indexing/reduce/exact-sums.ts";
import { SeededRandom } from "../../../support/random.ts";

/** A double as a multiple of 2^-1074. */
function scaled(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const fraction = bits & 0xf_ffff_ffff_ffffn;
  const size = exponent === 0n ? fraction : (fraction | (1n << 52n)) << (exponent - 1n);
  return bits >> 63n === 1n ? -size : size;
}

/** Whether no other double is nearer to the total. */
function isNearest(value: number, total: bigint): boolean {
  const distance = (one: number) => {
    const difference = scaled(one) - total;
    return difference < 0n ? -difference : difference;
  };
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value === 0 ? Number.MIN_VALUE : value);
  const bits = view.getBigUint64(0);
  return [bits - 1n, bits + 1n].every((other) => {
    view.setBigUint64(0, other);
    return distance(value) <= distance(view.getFloat64(0));
  });
}

test("are the nearest doubles to the exact sums while numbers are added and removed", () => {
  const random = new SeededRandom(5);
  for (const spread of [1, 100, 1e6]) {
    const sums = new ExactSums();
    sums.clear(3);
    const left: number[] = [];
    let total = 0n;
    for (let step = 0; step < 3_000; step++) {
      const isRemoved = left.length > 0 && random.chance(step < 1_500 ? 0.3 : 0.6);
      const [gone] = isRemoved ? left.splice(random.below(left.length), 1) : [];
      const value = gone ?? (random.next() - 0.4) * spread;
      if (gone === undefined) left.push(value);
      total += isRemoved ? -scaled(value) : scaled(value);
      expect(sums.add(3, isRemoved ? -value : value)).toBe(true);
      expect(isNearest(sums.valueOf(3), total), `step ${step}`).toBe(true);
    }
    for (const value of left) sums.add(3, -value);
    expect(sums.valueOf(3)).toBe(0);
  }
});

test("report lost bits and infinite results", () => {
  const sums = new ExactSums();
  sums.clear(0);
  expect(sums.add(0, 1e300)).toBe(true);
  expect(sums.add(0, 1)).toBe(true);
  expect(sums.add(0, 1e-300)).toBe(false);
  sums.clear(0);
  expect(sums.add(0, Number.POSITIVE_INFINITY)).toBe(false);
  expect(sums.valueOf(0)).toBe(Number.POSITIVE_INFINITY);
  sums.clear(0);
  expect(sums.add(0, 0.5)).toBe(true);
  expect(sums.valueOf(0)).toBe(0.5);
});
