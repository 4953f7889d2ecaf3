/** The bytes on disk: a changed expectation is a format change and needs a new version. */
import { describe, expect, test } from "vitest";
import { decodeManifest, encodeManifest } from "../../../../engine/storage/log/manifest.ts";
import {
  decodeFrameHeader,
  encodeFrameHeader,
  type FrameHeader,
  findMagic,
  isZero,
} from "../../../../engine/storage/segments/frame.ts";
import {
  decodeSegmentHeader,
  encodeSegmentHeader,
  segmentFileName,
  segmentNumberOf,
} from "../../../../engine/storage/segments/segment.ts";

const databaseId = Buffer.from("000102030405060708090a0b0c0d0e0f", "hex");

const frame: FrameHeader = {
  payloadLength: 0x60,
  payloadCrc: 0x11223344,
  number: 2 ** 40 + 7,
  firstNumber: 2 ** 40 + 7,
  durableNumber: 2 ** 40 + 6,
  previousCrc: 0x55667788,
  flags: 1,
  transactionCount: 3,
  wallClockMicros: 1_700_000_000_000_000,
};

describe("a frame's header", () => {
  test("is unchanged", () => {
    const bytes = Buffer.alloc(64);
    encodeFrameHeader(bytes, 0, 0x01020304, frame);
    expect(bytes.toString("hex").match(/.{32}/g)).toMatchInlineSnapshot(`
      [
        "46524d316a624fb06000000044332211",
        "07000000000100000600000000010000",
        "887766550100010000401e18240a0600",
        "03000000000000000700000000010000",
      ]
    `);
  });

  test("is read back, but not with another salt or without space for the payload", () => {
    const bytes = Buffer.alloc(200);
    encodeFrameHeader(bytes, 16, 77, frame);
    expect(decodeFrameHeader(bytes, 16, 200, 77)).toEqual(frame);
    expect(decodeFrameHeader(bytes, 16, 200, 78)).toBeNull();
    expect(decodeFrameHeader(bytes, 16, 16 + 64 + 0x60, 77)).toEqual(frame);
    expect(decodeFrameHeader(bytes, 16, 16 + 64 + 0x60 - 1, 77)).toBeNull();
    expect(decodeFrameHeader(bytes, 8, 200, 77)).toBeNull();
    expect(decodeFrameHeader(bytes, 160, 200, 77)).toBeNull();
    expect(findMagic(bytes, 0, 200)).toBe(16);
    expect(findMagic(bytes, 24, 200)).toBe(-1);
    expect(findMagic(bytes, 0, 16)).toBe(-1);
  });

  test("is searched only at multiples of 8", () => {
    const bytes = Buffer.from("...FRM1FRM1.....FRM1....");
    expect(findMagic(bytes, 0, bytes.length)).toBe(16);
  });
});

describe("a segment's header", () => {
  const header = {
    databaseId,
    number: 9,
    salt: 0xfedcba98,
    kind: "compacted",
    size: 2 ** 33,
  } as const;

  test("is unchanged", () => {
    const bytes = Buffer.alloc(64, 0xff);
    encodeSegmentHeader(bytes, header);
    expect(bytes.toString("hex").match(/.{32}/g)).toMatchInlineSnapshot(`
      [
        "4a41434b4441573189b2fa5402000000",
        "000102030405060708090a0b0c0d0e0f",
        "090000000000000098badcfe01000000",
        "00000000020000000000000000000000",
      ]
    `);
    expect(decodeSegmentHeader(bytes)).toEqual(header);
  });

  test("is rejected after any bit was flipped", () => {
    const bytes = Buffer.alloc(64);
    encodeSegmentHeader(bytes, header);
    for (let bit = 0; bit < 64 * 8; bit++) {
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      expect(decodeSegmentHeader(bytes)).toBeNull();
      bytes[bit >> 3]! ^= 1 << (bit & 7);
    }
    expect(decodeSegmentHeader(bytes.subarray(0, 63))).toBeNull();
  });

  test("belongs to the file whose name is its number", () => {
    expect(segmentFileName(12)).toBe("00000000000000000012.seg");
    expect(segmentNumberOf("00000000000000000012.seg")).toBe(12);
    expect(segmentNumberOf("00000000000000000012.seg.tmp")).toBeNull();
    expect(segmentNumberOf("12.seg")).toBeNull();
  });
});

test("a manifest is two lines of text and is read back unchanged", () => {
  const manifest = {
    databaseId,
    nextSegmentNumber: 4,
    nextSnapshotNumber: 2,
    segments: [
      {
        number: 3,
        kind: "log",
        firstNumber: 0,
        size: 1024,
        lastNumber: 0,
        lastCrc: 0,
        cleanThrough: 0,
        deadBytesAtBirth: 0,
      },
    ],
    snapshots: [{ number: 1, throughNumber: 17 }],
  } as const;
  const bytes = encodeManifest(manifest);
  expect(bytes.toString()).toMatchInlineSnapshot(`
    "{"format":"jackdaw-log","version":1,"databaseId":"000102030405060708090a0b0c0d0e0f","nextSegmentNumber":4,"nextSnapshotNumber":2,"segments":[{"number":3,"kind":"log","firstNumber":0,"size":1024,"lastNumber":0,"lastCrc":0,"cleanThrough":0,"deadBytesAtBirth":0}],"snapshots":[{"number":1,"throughNumber":17}]}
    crc32 e37ed63c
    "
  `);
  expect(decodeManifest(bytes)).toEqual(manifest);
  expect(decodeManifest(bytes.subarray(0, -1))).toBeNull();
  expect(decodeManifest(Buffer.concat([bytes, Buffer.from("\n")]))).toBeNull();
});

test("detects a nonzero byte at every position", () => {
  const bytes = Buffer.alloc(200_000);
  expect(isZero(bytes, 0, bytes.length)).toBe(true);
  for (const at of [0, 65_535, 65_536, 131_071, 199_999]) {
    bytes[at] = 1;
    expect(isZero(bytes, 0, bytes.length)).toBe(false);
    expect(isZero(bytes, at, at + 1)).toBe(false);
    expect(isZero(bytes, at + 1, bytes.length)).toBe(true);
    expect(isZero(bytes, 0, at)).toBe(true);
    bytes[at] = 0;
  }
});
