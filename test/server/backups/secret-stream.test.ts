/** Encrypted streams: compatibility with libsodium, and detection of damage. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { decrypted, encrypted } from "../../../server/backups/secret-stream.ts";

const key = Buffer.alloc(32, 7);

async function all(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of bytes) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const sealed = (text: Buffer, pieceBytes = 10_000) =>
  all(encrypted(key, inPieces(text, pieceBytes)));
const opened = (bytes: Buffer, pieceBytes = 10_000, given = key) =>
  all(decrypted(given, inPieces(bytes, pieceBytes), "the-file"));

test.each([0, 1, 7, 8, 15, 16, 100, 4095, 4096, 4097, 4104, 8192, 20_003, 300_000])(
  "decrypts a text of %i bytes",
  async (length) => {
    const text = randomBytes(length);
    const bytes = await sealed(text, 1 + (length % 5000));
    const chunks = Math.max(1, Math.ceil(length / 4096));
    expect(bytes).toHaveLength(24 + length + 17 * chunks);
    expect((await opened(bytes, 4099)).equals(text)).toBe(true);
    expect((await opened(bytes, 13)).equals(text)).toBe(true);
  },
);

test("never encrypts the same text to the same bytes", async () => {
  const text = Buffer.alloc(64);
  expect((await sealed(text)).equals(await sealed(text))).toBe(false);
});

/** Written by libsodium: the bytes 0, 1, 2 … with this key. */
const bySodium = {
  5: "1f41690e619dc9b4d19ddc08407aa03629648a022b7d179364088edc3f61baee905e616c9104cc86e90e71975380",
  16: "a224c864f44ae078db2927a4f69b62be983eb1f19a591f5c498e0426c18949646b1648de1cf2e2647167decf5fbd7e8d562ed5d89c1d1e44b6",
  21: "6af5745b56a5e449e6201f0946fa1f950a1a00e25456acfaf71388f881604d8481637432c0a41c9f46142843ac0f63cd1ce2cc21eb613598daae49a01dc8",
};

test.each(Object.entries(bySodium))(
  "decrypts libsodium's output of %s bytes",
  async (length, hex) => {
    const text = Buffer.from(Array.from({ length: Number(length) }, (_, i) => i));
    expect((await opened(Buffer.from(hex, "hex"))).equals(text)).toBe(true);
  },
);

test("distinguishes a wrong key from damage after the header", async () => {
  const bytes = await sealed(randomBytes(10_000));
  await expect(opened(bytes, 5000, Buffer.alloc(32, 8))).rejects.toMatchObject({
    code: "backup-damaged",
    message: expect.stringMatching(/the-file .*the key is wrong/),
  });
});

test("detects each flipped bit", async () => {
  const bytes = await sealed(randomBytes(9000));
  const ends = [0, 23, 24, 25, 4000, 24 + 4112, 24 + 4113, 24 + 2 * 4113, bytes.length - 1];
  for (const at of ends) {
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] as number) ^ 0x10;
    await expect(opened(flipped), `byte ${at}`).rejects.toMatchObject({ code: "backup-damaged" });
  }
});

test("detects truncated, swapped, duplicated, missing and appended chunks", async () => {
  const bytes = await sealed(randomBytes(4096 * 3 + 10));
  const chunk = (i: number) => bytes.subarray(24 + i * 4113, 24 + (i + 1) * 4113);
  const head = bytes.subarray(0, 24);
  const last = bytes.subarray(24 + 3 * 4113);
  const join = (...parts: Buffer[]) => Buffer.concat([head, ...parts]);
  await expect(opened(join(chunk(0), chunk(1)))).rejects.toThrow("truncated");
  await expect(opened(bytes.subarray(0, bytes.length - 3))).rejects.toThrow("at byte 12363");
  await expect(opened(join(chunk(1), chunk(0), chunk(2), last))).rejects.toThrow(
    "the key is wrong",
  );
  await expect(opened(join(chunk(0), chunk(2), chunk(1), last))).rejects.toThrow("at byte 4137");
  await expect(opened(join(chunk(0), chunk(0), chunk(2), last))).rejects.toThrow("at byte 4137");
  await expect(opened(join(chunk(0), chunk(2), last))).rejects.toThrow("at byte 4137");
  await expect(opened(Buffer.concat([bytes, Buffer.alloc(5)]))).rejects.toThrow("at byte");
  await expect(opened(bytes.subarray(0, 24))).rejects.toThrow("truncated");
  await expect(opened(bytes.subarray(0, 20))).rejects.toThrow("shorter than a header");
  const other = await sealed(randomBytes(4096 * 3 + 10));
  const foreign = other.subarray(24 + 4113, 24 + 2 * 4113);
  await expect(opened(join(chunk(0), foreign, chunk(2), last))).rejects.toThrow("reordered");
});
