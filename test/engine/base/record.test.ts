import { expect, test } from "vitest";
import { checkOf, sealRecord, verifyRecord } from "../../../engine/base/record.ts";
import { putRecord } from "../../support/tiny-owner.ts";

test.each([1, 77, 990, 1000, 3000])(
  "the checksum of a record with %i bytes of value detects every flipped bit",
  (size) => {
    const { bytes, length } = putRecord("key", "v".repeat(size), 7);
    expect(verifyRecord(bytes, 0, length)).toBe(true);
    for (let bit = 0; bit < length * 8; bit++) {
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      expect(verifyRecord(bytes, 0, length)).toBe(false);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
    }
    expect(verifyRecord(bytes, 0, length)).toBe(true);
  },
);

test("the checksum does not depend on the offset of the record", () => {
  for (const size of [5, 2000]) {
    const { bytes, length } = putRecord("key", "v".repeat(size), 7);
    for (const at of [0, 3, 8, 17]) {
      const elsewhere = Buffer.alloc(length + 64);
      bytes.copy(elsewhere, at);
      expect(checkOf(elsewhere, at, length)).toBe(bytes.readUInt32LE(4));
    }
  }
});

test("the checksum of a short record matches the format on disk", () => {
  const bytes = Buffer.alloc(32);
  bytes.writeUInt32LE(32, 0);
  bytes.write("words and places", 8, "latin1");
  sealRecord(bytes, 0);
  expect(bytes.readUInt32LE(4)).toBe(referenceCheck(bytes.subarray(8)));
});

test("rejects a record longer than its buffer", () => {
  const { bytes, length } = putRecord("key", "value", 7);
  expect(verifyRecord(bytes.subarray(0, length - 8), 0, length)).toBe(false);
  expect(verifyRecord(bytes, 0, length - 8)).toBe(false);
  expect(verifyRecord(bytes, 8, length - 8)).toBe(false);
});

/** The same algorithm with big integers, slow but simple. */
function referenceCheck(bytes: Buffer): number {
  const mask = 0xffffffffn;
  let sum = 0n;
  for (let at = 0; at < bytes.length; at += 4) {
    const place = (BigInt(at / 4 + 1) * 0x9e3779b9n) & mask;
    let mixed = BigInt(bytes.readUInt32LE(at)) ^ place;
    mixed = ((mixed ^ (mixed >> 16n)) * 0x85ebca6bn) & mask;
    mixed = ((mixed ^ (mixed >> 13n)) * 0xc2b2ae35n) & mask;
    sum = (sum + (mixed ^ (mixed >> 16n))) & mask;
  }
  return Number(sum);
}
