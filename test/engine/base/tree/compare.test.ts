import fc from "fast-check";
import { expect, test } from "vitest";
import {
  compareIds,
  compareNumbers,
  compareStrings,
  KeyOrder,
} from "../../../../engine/base/tree/compare.ts";

const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom("a", "B", "\ue000", "\uffff", "😀", "é"),
    fc.string({ unit: "binary" }),
  ),
});

test("orders strings by their UTF-8 bytes", () => {
  fc.assert(
    fc.property(text, text, (left, right) => {
      const bytes = Buffer.compare(Buffer.from(left), Buffer.from(right));
      expect(Math.sign(compareStrings(left, right))).toBe(bytes);
    }),
  );
});

test("orders the keys of a tree by their UTF-8 bytes, and other keys among them", () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1 }), text, (keys, other) => {
      const order = new KeyOrder();
      for (const key of keys) {
        order.add(key);
        for (const added of [...keys.slice(0, keys.indexOf(key) + 1), other]) {
          const expected = Buffer.compare(Buffer.from(added), Buffer.from(key));
          expect(Math.sign(order.compare(added, key))).toBe(expected);
          expect(Math.sign(order.compare(key, added))).toBe(-expected + 0);
        }
      }
    }),
  );
});

test("puts an emoji after the last character of the basic plane, unlike <", () => {
  expect("\uffff" < "😀").toBe(false);
  expect(compareStrings("\uffff", "😀")).toBeLessThan(0);
});

test("orders ids ignoring case", () => {
  expect(compareIds("Users/B", "users/a")).toBeGreaterThan(0);
  expect(compareIds("USERS/ÅSA", "users/åsa")).toBe(0);
});

test("orders numbers", () => {
  expect([3, -1, Number.POSITIVE_INFINITY, 0].sort(compareNumbers)).toEqual([
    -1,
    0,
    3,
    Number.POSITIVE_INFINITY,
  ]);
  expect(compareNumbers(2, 2)).toBe(0);
});
