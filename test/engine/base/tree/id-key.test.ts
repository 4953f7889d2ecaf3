import fc from "fast-check";
import { expect, test } from "vitest";
import { lowerCased } from "../../../../engine/base/case-folding.ts";
import { nameBytesMax } from "../../../../engine/base/limits.ts";
import { IdKey } from "../../../../engine/base/tree/id-key.ts";

const seed = 42;

function keyOf(id: string): { bytes: string; hash: number } | undefined {
  const key = new IdKey(seed);
  if (!key.set(id)) return undefined;
  return { bytes: key.bytes.toString("utf8", 0, key.length), hash: key.hash };
}

function keyOfBytes(id: string): ReturnType<typeof keyOf> {
  const key = new IdKey(seed);
  const bytes = Buffer.from(`<${id}>`);
  if (!key.setBytes(bytes, 1, bytes.length - 1)) return undefined;
  return { bytes: key.bytes.toString("utf8", 0, key.length), hash: key.hash };
}

test("folds text and its bytes equally to lower case", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 20 }), (id) => {
      expect(keyOf(id)?.bytes).toBe(lowerCased(id));
      expect(keyOfBytes(id)).toEqual(keyOf(id));
      expect(keyOf(lowerCased(id))).toEqual(keyOf(id));
    }),
  );
});

test("treats ids that differ only in case as equal", () => {
  for (const [left, right] of [
    ["Users/1-A", "users/1-a"],
    ["ÅSA", "åsa"],
    ["\u212a", "k"],
    ["ΟΔΟΣ", "οδοσ"],
  ]) {
    expect(keyOf(left!)).toEqual(keyOf(right!));
  }
  expect(keyOf("users/1")).not.toEqual(keyOf("users/2"));
  expect(keyOf("İ")).not.toEqual(keyOf("i\u0307"));
});

test("returns another hash with another seed", () => {
  const other = new IdKey(seed + 1);
  other.set("users/1");
  expect(other.hash).not.toBe(keyOf("users/1")?.hash);
});

test("rejects ids over the limit in bytes, counted after lower-casing", () => {
  expect(keyOf("A".repeat(nameBytesMax))?.bytes.length).toBe(nameBytesMax);
  expect(keyOf("A".repeat(nameBytesMax + 1))).toBeUndefined();
  expect(keyOfBytes("A".repeat(nameBytesMax + 1))).toBeUndefined();
  expect(keyOf("é".repeat(nameBytesMax / 2))).toBeDefined();
  expect(keyOf("é".repeat(nameBytesMax / 2 + 1))).toBeUndefined();
  expect(keyOf("\u212a".repeat(nameBytesMax))?.bytes).toBe("k".repeat(nameBytesMax));
});

test("rejects a lone surrogate, which has no UTF-8 form", () => {
  expect(keyOf("users/\ud83d")).toBeUndefined();
  expect(keyOf("\ude00")).toBeUndefined();
  expect(keyOf("users/\ud83d\ude00")).toBeDefined();
});
