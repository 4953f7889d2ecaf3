import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { type BodyLimits, collectBody } from "../../../server/http/body.ts";
import { BodyRoom } from "../../../server/http/body-room.ts";

const limits: BodyLimits = {
  bodyBytesMax: 12 * 1024 * 1024,
  jsonBytesMax: 1024,
  idleMs: 10_000,
  bytesPerSecondMin: 1,
  rateGraceMs: 60_000,
  stallMs: 60_000,
  compressReplies: false,
};

/** Chunk lengths of bodies: small, on both sides of a growing buffer's sizes, and beyond what is copied rarely. */
const bodies: readonly (readonly number[])[] = [
  [],
  [0],
  [1],
  [1, 1],
  [65_535, 1, 1],
  [65_536, 65_536, 3],
  [300_000, 5, 300_000],
  new Array<number>(90).fill(65_000),
];

describe("collectBody", () => {
  test.each(bodies)(
    "returns the bytes of chunks of %d, … bytes, whatever length was declared",
    async (...lengths) => {
      const chunks = lengths.map((length) => randomBytes(length));
      const whole = Buffer.concat(chunks);
      const declared = [
        undefined,
        String(whole.length),
        String(whole.length >> 1),
        String(2 * whole.length),
      ];
      for (const length of declared) {
        const source = () => Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
        const room = new BodyRoom();
        const body = await collectBody(source, undefined, length, limits, room);
        room.release();
        expect(body.equals(whole), `declared ${length}`).toBe(true);
      }
    },
  );

  test("refuses a body over the limit, declared or not", async () => {
    const chunks = new Array<Buffer>(13).fill(Buffer.alloc(1024 * 1024));
    for (const length of [undefined, String(13 * 1024 * 1024), "5"]) {
      const room = new BodyRoom();
      const source = () => Readable.from(chunks);
      const collecting = collectBody(source, undefined, length, limits, room);
      await expect(collecting).rejects.toMatchObject({ status: 413 });
      room.release();
    }
  });
});
