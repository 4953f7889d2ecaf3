/**
 * A log whose frames are carried: each frame is sealed and marked, and is written here only after
 * it was carried.
 */
import { expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { framesInFlightMax } from "../../../../engine/base/limits.ts";
import { nodeEnvironment } from "../../../../engine/base/platform/node-environment.ts";
import {
  carriedFrameBytes,
  largeFrameBytes,
  smallFramesMax,
} from "../../../../engine/storage/log/carried-frames.ts";
import { Health } from "../../../../engine/storage/log/health.ts";
import type { LogListener } from "../../../../engine/storage/log/log.ts";
import { type LogCarrier, markBytes } from "../../../../engine/storage/log/log-carrier.ts";
import { LogWriter } from "../../../../engine/storage/log/log-writer.ts";
import { SpaceGuard } from "../../../../engine/storage/log/space-guard.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { SegmentStore } from "../../../../engine/storage/segments/segment-store.ts";

/** Settles the carried frames one at a time, on the test's request. */
class HeldCarrier implements LogCarrier {
  isSending = true;
  readonly sealedBytes: Buffer[] = [];
  readonly durableMarks: Buffer[] = [];
  readonly #waiting: { resolve(mark: Buffer): void; reject(error: Error): void }[] = [];
  #outcomes: (Error | null)[] = [];

  durable(mark: Buffer): void {
    this.durableMarks.push(mark);
  }

  carry(payload: Buffer): Promise<Buffer> {
    this.sealedBytes.push(Buffer.from(payload));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#settle();
    });
  }

  settle(error: Error | null = null): void {
    this.#outcomes.push(error);
    this.#settle();
  }

  /** Settles all frames in flight, the last one first, before the log can handle the first. */
  settleAtOnce(): void {
    for (const one of this.#waiting.splice(0).reverse()) one.resolve(Buffer.alloc(markBytes, 0xee));
  }

  #settle(): void {
    while (this.#outcomes.length > 0 && this.#waiting.length > 0) {
      const outcome = this.#outcomes.shift() ?? null;
      const one = this.#waiting.shift();
      if (outcome === null) one?.resolve(Buffer.alloc(markBytes, 0xee));
      else one?.reject(outcome);
    }
  }
}

function carriedWriter(segmentBytes = 64 * 1024) {
  const { clock, files, random } = nodeEnvironment();
  const health = new Health();
  const cache = new SegmentCache(1 << 20);
  const store = new SegmentStore(null, Buffer.alloc(16), cache, health, { clock, random });
  const reported: string[] = [];
  const listener: LogListener = {
    durable: (count) => reported.push(`durable ${count}`),
    lost: (count) => reported.push(`lost after ${count}`),
    marked: ({ record, position }) =>
      reported.push(`marked ${record.length} at ${position % 2 ** 32}`),
    stopped: (error) => reported.push(`stopped ${(error as EngineError).code}`),
  };
  const space = new SpaceGuard(null, files, clock, 0);
  const carrier = new HeldCarrier();
  const sizes = { segmentBytesMin: segmentBytes, segmentBytesMax: segmentBytes };
  const writer = new LogWriter(
    { store, space, clock, listener, carrier, ...sizes, slowDown: () => null },
    { active: null, wasClosed: false, lastNumber: 0, lastCrc: 0, plannedSize: segmentBytes },
  );
  const append = (length: number, byte = 1) =>
    writer.append(Buffer.alloc(length, byte), length, false, false, null);
  return { writer, store, carrier, reported, append };
}

const soon = () => new Promise<void>((resolve) => setTimeout(resolve, 20));

test("a frame and its mark are durable once it was carried", async () => {
  const { writer, store, carrier, reported, append } = carriedWriter();
  append(64, 1);
  const second = append(64, 2);
  await soon();
  expect(carrier.sealedBytes).toEqual([Buffer.concat([Buffer.alloc(64, 1), Buffer.alloc(64, 2)])]);
  expect(reported).toEqual([]);
  expect(writer.durableCount).toBe(0);
  carrier.settle();
  await writer.flush();
  const at = (second % 2 ** 32) + 64;
  expect(reported).toEqual(["durable 2", `marked ${markBytes} at ${at}`]);
  expect(carrier.durableMarks).toHaveLength(1);
  expect(store.peek(second + 64, markBytes)).toEqual(Buffer.alloc(markBytes, 0xee));
});

test("records appended in the meantime form the next frame", async () => {
  const { writer, carrier, reported, append } = carriedWriter();
  append(64, 1);
  await soon();
  append(64, 2);
  append(64, 3);
  carrier.settle();
  await soon();
  expect(carrier.sealedBytes.map(({ length }) => length)).toEqual([64, 128]);
  expect(reported.filter((line) => line.startsWith("durable"))).toEqual(["durable 1"]);
  carrier.settle();
  await writer.flush();
  expect(reported.filter((line) => line.startsWith("durable")).at(-1)).toBe("durable 3");
});

test("splits many records into several frames in flight", async () => {
  const { writer, carrier, append } = carriedWriter(64 * 1024 * 1024);
  const piece = 128 * 1024;
  for (let n = 0; n < 80; n++) append(piece, n);
  await soon();
  expect(carrier.sealedBytes.length).toBeGreaterThanOrEqual(2);
  for (const { length } of carrier.sealedBytes)
    expect(length).toBeLessThanOrEqual(carriedFrameBytes);
  for (let n = 0; n < 80; n++) carrier.settle();
  await writer.flush();
  const all = Buffer.concat(carrier.sealedBytes);
  expect(all.length).toBe(80 * piece);
  for (let n = 0; n < 80; n++) expect(all[n * piece]).toBe(n);
});

test("carries full segments in order, with space for each mark", async () => {
  const { writer, store, carrier, append } = carriedWriter(2048);
  for (let n = 0; n < 40; n++) append(512, n);
  const settling = setInterval(() => carrier.settle(), 1);
  await writer.flush();
  clearInterval(settling);
  expect(store.order.length).toBeGreaterThan(5);
  const all = Buffer.concat(carrier.sealedBytes);
  expect(Array.from({ length: 40 }, (_, n) => all[n * 512])).toEqual(
    Array.from({ length: 40 }, (_, n) => n),
  );
});

test("a failed carry stops the log, reports the lost records and rethrows the error", async () => {
  const { writer, carrier, reported, append } = carriedWriter();
  append(64, 1);
  await soon();
  append(64, 2);
  carrier.settle(new EngineError("outcome-unknown", "this node stopped leading"));
  await expect(writer.flush()).rejects.toMatchObject({ code: "outcome-unknown" });
  expect(reported.slice(-2)).toEqual(["lost after 0", "stopped outcome-unknown"]);
  expect(() => append(64)).toThrow("this node stopped leading");
});

test("closing carries pending frames first, and does not seal frames without records", async () => {
  const { writer, carrier, reported, append } = carriedWriter();
  append(64, 1);
  const closed = writer.close();
  await soon();
  carrier.settle();
  await closed;
  expect(reported).toContain("durable 1");
  expect(carrier.sealedBytes).toHaveLength(1);
});

test("limits small frames in flight, and allows more large ones", async () => {
  const { writer, carrier, append } = carriedWriter(16 * 1024 * 1024);
  for (let n = 0; n < smallFramesMax + 3; n++) {
    append(64, n);
    await soon();
  }
  expect(carrier.sealedBytes).toHaveLength(smallFramesMax);
  for (let n = 0; n < framesInFlightMax + 3; n++) {
    append(largeFrameBytes, n);
    await soon();
  }
  expect(carrier.sealedBytes).toHaveLength(framesInFlightMax);
  const settling = setInterval(() => carrier.settle(), 1);
  await writer.flush();
  clearInterval(settling);
});

test("frames carried out of order become durable together", async () => {
  const { writer, carrier, reported, append } = carriedWriter();
  append(64, 1);
  await soon();
  append(64, 2);
  await soon();
  expect(carrier.sealedBytes).toHaveLength(2);
  carrier.settleAtOnce();
  await writer.flush();
  expect(reported.filter((line) => line.startsWith("durable"))).toEqual(["durable 2"]);
  expect(reported.filter((line) => line.startsWith("marked"))).toHaveLength(2);
  expect(carrier.durableMarks).toHaveLength(2);
});

test("seals a frame of received groups only when the device is idle", async () => {
  const { writer, carrier, append } = carriedWriter(16 * 1024 * 1024);
  carrier.isSending = false;
  append(64, 1);
  await soon();
  for (let n = 0; n < 3 * 16; n++) append(carriedFrameBytes / 16, 2);
  await soon();
  expect(carrier.sealedBytes).toHaveLength(1);
  carrier.settle();
  carrier.settle();
  await writer.flush();
  expect(carrier.sealedBytes.map(({ length }) => length)).toEqual([64, 3 * carriedFrameBytes]);
});

test("carries a large transaction once it is copied completely, followed by later records", async () => {
  const { writer, carrier, append } = carriedWriter(64 * 1024 * 1024);
  const length = 24 * 1024 * 1024;
  const large = Buffer.alloc(length, 7);
  writer.append(large, length, false, true, { length: length - 8, crc: 0 });
  append(64, 8);
  const settling = setInterval(() => carrier.settle(), 1);
  await writer.flush();
  clearInterval(settling);
  expect(carrier.sealedBytes.map((bytes) => bytes.length)).toEqual([length, 64]);
  expect(carrier.sealedBytes[0]?.equals(large)).toBe(true);
});
