import { describe, expect, test } from "vitest";
import { contentChunkBytesMax, framePayloadBytesMax } from "../../../../engine/base/limits.ts";
import {
  contentChunks,
  decodeFrame,
  encodeFrame,
  epochPayload,
  frameOverheadBytes,
  frameTypes,
  genesisPayload,
  readContent,
  readEpoch,
  readGenesis,
  zeroHash,
} from "../../../../engine/storage/replication/frame.ts";

const place = {
  generation: 3,
  epoch: 2 ** 33 + 1,
  sequence: 2 ** 40 + 7,
  previous: "ab".repeat(32),
};

describe("a frame", () => {
  test("is decoded unchanged, from chunks of any size", () => {
    const pieces = [Buffer.from("one"), Buffer.alloc(0), Buffer.from("two")];
    const { bytes, ...made } = encodeFrame(frameTypes.part, place, pieces);
    const decoded = decodeFrame(bytes);
    expect(decoded).toEqual(made);
    expect(decoded).toMatchObject({ ...place, type: frameTypes.part });
    expect(`${decoded?.payload}`).toBe("onetwo");
    expect(bytes).toHaveLength(frameOverheadBytes + 6);
  });

  test("has the same bytes each time, whatever was in memory before", () => {
    const one = encodeFrame(frameTypes.commit, place, [Buffer.from("same")]);
    Buffer.allocUnsafe(one.bytes.length).fill(255);
    const other = encodeFrame(frameTypes.commit, place, [Buffer.from("sa"), Buffer.from("me")]);
    expect(other.bytes).toEqual(one.bytes);
  });

  test("has a fixed format", () => {
    const { bytes } = encodeFrame(
      frameTypes.commit,
      { generation: 1, epoch: 2, sequence: 3, previous: zeroHash },
      [Buffer.from("payload!")],
    );
    expect(bytes.toString("hex", 0, 32)).toBe(
      "4a44524601040000010000000800000002000000000000000300000000000000",
    );
    expect(bytes.toString("hex", 64)).toMatchInlineSnapshot(
      `"00000000000000007061796c6f6164219578dcafc3083cfeeb286cf7583e619cb83553f628d34effbc745d0875641092"`,
    );
  });

  test("is rejected with any bit flipped, and truncated anywhere", () => {
    const { bytes } = encodeFrame(frameTypes.commit, place, [Buffer.from("a payload")]);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(decodeFrame(flipped)).toBeNull();
    }
    for (let end = 0; end < bytes.length; end++) {
      expect(decodeFrame(bytes.subarray(0, end))).toBeNull();
    }
    expect(decodeFrame(Buffer.concat([bytes, Buffer.alloc(1)]))).toBeNull();
  });

  test("has a maximum size", () => {
    const most = encodeFrame(frameTypes.commit, place, [Buffer.alloc(framePayloadBytesMax)]);
    expect(decodeFrame(most.bytes)?.payload).toHaveLength(framePayloadBytesMax);
    const more = [Buffer.alloc(framePayloadBytesMax + 1)];
    expect(() => encodeFrame(frameTypes.commit, place, more)).toThrow("payload has a limit");
  });
});

describe("payloads", () => {
  test("of the first frame name the log that it continues", () => {
    const mark = { generation: 2, sequence: 2 ** 35, epoch: 9, hash: zeroHash };
    expect(readGenesis(genesisPayload("a database", mark))).toEqual({
      databaseId: "a database",
      generation: 2,
      sequence: 2 ** 35,
    });
    const none = { databaseId: "new", generation: 0, sequence: 0 };
    expect(readGenesis(genesisPayload("new", null))).toEqual(none);
    expect(readGenesis(Buffer.alloc(11))).toBeNull();
  });

  test("of an epoch name the new leader", () => {
    const payload = epochPayload("A", "börn");
    expect(readEpoch(payload)).toEqual({ tag: "A", incarnation: "börn" });
    for (let end = 0; end < payload.length; end++) {
      expect(readEpoch(payload.subarray(0, end))).toBeNull();
    }
    expect(() => epochPayload("A".repeat(256), "")).toThrow("short");
  });

  test("of a content chunk name the content", () => {
    const chunk = { sha256: "cd".repeat(32), offset: 5, total: 2 ** 36, bytes: Buffer.from("x") };
    expect(readContent(Buffer.concat(contentChunks(chunk)))).toEqual(chunk);
    expect(readContent(Buffer.alloc(47))).toBeNull();
    const large = { ...chunk, bytes: Buffer.alloc(contentChunkBytesMax + 1) };
    expect(() => contentChunks(large)).toThrow("has a limit");
  });
});
