import fc from "fast-check";
import { expect, test } from "vitest";
import {
  numberBytesMax,
  writeDouble,
  writeWhole,
} from "../../../../engine/base/json/number-bytes.ts";
import { doubleText, numberText } from "../../../../engine/scripting/values/value-text.ts";

const target = Buffer.alloc(numberBytesMax + 1);

test("writes whole numbers as JavaScript does", () => {
  const edges = [0, -0, 9, 10, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), Number.MAX_SAFE_INTEGER];
  const check = (value: number) => {
    const end = writeWhole(target, 1, value);
    expect(target.latin1Slice(1, end)).toBe(numberText(value));
  };
  for (const value of [...edges, ...edges.map((edge) => -edge)]) check(value);
  fc.assert(fc.property(fc.maxSafeInteger(), check));
});

test("writes doubles as JavaScript does, or reports that it cannot", () => {
  const check = (value: number) => {
    const end = writeDouble(target, 1, value);
    if (end >= 0) expect(target.latin1Slice(1, end)).toBe(doubleText(value));
    return end >= 0;
  };
  const written = [0, -0, 0.5, -0.5, 1, -3, 0.1, 0.0001, 1234.5678, 99.99, 999_999_999_999_999];
  for (const value of written) expect([value, check(value)]).toEqual([value, true]);
  const left = [1e15, -1e15, 1e300, 1 / 3, 0.1 + 0.2, 5e-324, 0.00001, Number.NaN, 1 / 0];
  for (const value of left) expect([value, check(value)]).toEqual([value, false]);
  fc.assert(fc.property(fc.double(), (value) => void check(value)));
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.nat(12), (whole, decimals) => {
      check(whole / 10 ** decimals);
    }),
  );
});
