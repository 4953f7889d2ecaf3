/**
 * Frames of a replicated log: encoding a frame from the bytes of a group commit, and verifying a received frame,
 * including its SHA-256 and CRC-32. Compared with the SHA-256 of the same bytes alone, which is the limit.
 */
import { hash } from "node:crypto";
import {
  decodeFrame,
  encodeFrame,
  frameTypes,
  zeroHash,
} from "../engine/storage/replication/frame.ts";
import { type BenchSize, costOf, interleavedCosts, ratio, seeded } from "./harness.ts";

export async function run(size: BenchSize): Promise<string[]> {
  const total = (size === "smoke" ? 2 : 512) * 1024 * 1024;
  const lines: string[] = [];
  for (const bytes of [1024, 64 * 1024, 1024 * 1024]) {
    const line = await benchOf(bytes, Math.ceil(total / bytes), size === "smoke" ? 1 : 5);
    lines.push(line);
    console.log(line);
  }
  return lines;
}

async function benchOf(bytes: number, count: number, rounds: number): Promise<string> {
  const random = seeded(bytes);
  const payload = Buffer.from(Uint32Array.from({ length: bytes / 4 }, random).buffer);
  const place = { generation: 1, epoch: 1, sequence: 2, previous: zeroHash };
  const frame = encodeFrame(frameTypes.commit, place, [payload]).bytes;
  const repeat = (work: () => unknown) => () =>
    costOf(() => {
      for (let at = 0; at < count; at++) work();
    });
  const costs = await interleavedCosts(rounds, {
    hash: repeat(() => hash("sha256", payload, "hex")),
    encode: repeat(() => encodeFrame(frameTypes.commit, place, [payload])),
    decode: repeat(() => decodeFrame(frame)),
  });
  const time = (name: string) => costs[name]?.processorMs ?? Number.NaN;
  const rate = (name: string) => ((bytes * count) / 1e3 / time(name)).toFixed(0);
  return (
    `frames of ${bytes / 1024} KiB: encoded ${rate("encode")} MB/s (${ratio(time("encode"), time("hash"))} the time of SHA-256 alone), ` +
    `checked ${rate("decode")} MB/s (${ratio(time("decode"), time("hash"))})`
  );
}
