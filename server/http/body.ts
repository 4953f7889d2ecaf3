/**
 * Decodes and collects request bodies, within limits of size, time and the total memory of bodies. Works on any
 * readable stream.
 *
 * Invariants:
 * - The size limit applies to the decoded bytes too, so a small body cannot decompress into a large one.
 * - A body that receives nothing for `idleMs` fails. A body that is collected must also arrive at `bytesPerSecondMin`.
 */

import type { Readable, Transform } from "node:stream";
import * as zlib from "node:zlib";
import { pressedStallMs } from "../../engine/base/limits.ts";
import { countDropped, countPassing } from "../../engine/base/memory/gc-hints.ts";
import { grownBuffer, largeBuffer } from "../../engine/base/memory/large-buffer.ts";
import { pauseIfDue } from "../../engine/base/scheduling/time-slices.ts";
import { BodyRoom, memoryOfBody } from "./body-room.ts";
import type { Waiter } from "./reply-room.ts";
import {
  bodyBroken,
  bodyTooLarge,
  bodyTooSlow,
  encodingUnknown,
  RequestError,
} from "./request-error.ts";

export interface BodyLimits {
  /** Maximum size of a collected body, decoded, in bytes. */
  readonly bodyBytesMax: number;
  /** As `bodyBytesMax`, for a body of instructions, which is parsed without a pause. */
  readonly jsonBytesMax: number;
  /** Time without new bytes after which a body fails, in milliseconds. */
  readonly idleMs: number;
  /** A collected body slower than this after `rateGraceMs` fails. */
  readonly bytesPerSecondMin: number;
  readonly rateGraceMs: number;
  /** Time for which a client may leave a streamed reply unread, in milliseconds. */
  readonly stallMs: number;
  readonly compressReplies: boolean;
}

/** Fails a body that stalls or is too slow overall; sooner when others wait for the memory it holds. */
class Pace {
  private readonly limits: BodyLimits;
  private readonly room: BodyRoom;
  private readonly startedMs = performance.now();
  private readonly timer: NodeJS.Timeout;
  private pressTimer: NodeJS.Timeout | undefined;
  private readonly onLate: (detail: string) => void;
  private bytesInAll = 0;
  private bytesSeen = 0;
  /** Time spent waiting for memory, which does not count against the client, in milliseconds. */
  private ownMs = 0;

  constructor(limits: BodyLimits, room: BodyRoom, onLate: (detail: string) => void) {
    this.limits = limits;
    this.room = room;
    this.onLate = onLate;
    this.timer = setTimeout(() => this.onIdle(), limits.idleMs);
  }

  /** Records progress. @returns false when the body is too slow overall */
  note(bytesInAll: number): boolean {
    this.timer.refresh();
    this.bytesInAll = bytesInAll;
    if (this.room.bytes > watchedBytes) {
      this.pressTimer ??= setInterval(() => this.look(), pressedStallMs);
    }
    const elapsedMs = performance.now() - this.startedMs - this.ownMs;
    if (elapsedMs < this.limits.rateGraceMs) return true;
    return (bytesInAll * 1000) / elapsedMs >= this.limits.bytesPerSecondMin;
  }

  /** Stops the clocks while the body waits for memory. @returns a function that restarts them */
  suspend(): () => void {
    const startedMs = performance.now();
    clearTimeout(this.timer);
    clearInterval(this.pressTimer);
    this.pressTimer = undefined;
    return () => {
      this.ownMs += performance.now() - startedMs;
      this.timer.refresh();
    };
  }

  stop(): void {
    clearTimeout(this.timer);
    clearInterval(this.pressTimer);
  }

  private onIdle(): void {
    this.onLate(`stood still for ${this.limits.idleMs / 1000} seconds`);
  }

  private look(): void {
    const came = this.bytesInAll - this.bytesSeen;
    this.bytesSeen = this.bytesInAll;
    if (came < watchedBytes && this.room.isPressed) {
      this.onLate(
        `came with ${came} bytes in ${pressedStallMs / 1000} seconds while others wait for the memory that it takes ` +
          "(setting Http.MaxHeldBodiesInMb)",
      );
    }
  }
}

/** Bytes held above which a body must receive this many per `pressedStallMs` while others wait for memory. */
const watchedBytes = 64 * 1024;

/**
 * Collects and decodes a whole body. `room` holds its memory until the caller releases it.
 * @throws RequestError 400, 408, 413, 415, 503
 */
export async function collectBody(
  source: () => Readable,
  encoding: string | undefined,
  contentLength: string | undefined,
  limits: BodyLimits,
  room = new BodyRoom(),
  waiter?: Waiter,
): Promise<Buffer> {
  const declared = Number(contentLength ?? Number.NaN);
  if (declared > limits.bodyBytesMax) throw bodyTooLarge(limits.bodyBytesMax);
  const kind = encodingOf(encoding);
  // Memory is reserved before anything is read.
  if (declared > 0) await room.grow(memoryOfBody(declared), true, waiter);
  const raw = await new BodyCollector(source(), declared, limits, room, waiter).whole();
  if (kind === "identity") return raw;
  const unfolded = await unfold(raw, kind, limits, room, waiter);
  countDropped(raw.length);
  return unfolded;
}

/** Bytes from which a body of known length is collected in a buffer of its final size. */
const inPlaceBytesMin = 256 * 1024;

/** Collects without decoding. */
class BodyCollector {
  readonly #source: Readable;
  readonly #limits: BodyLimits;
  readonly #room: BodyRoom;
  readonly #waiter: Waiter | undefined;
  /** The received bytes, with space for more; the first chunk itself until the second arrives. */
  #collected: Buffer;
  #length = 0;
  /** Declared length of the body, in bytes; NaN if unknown. */
  readonly #declared: number;
  #isDone = false;
  #pace: Pace | undefined;
  #reject: (error: Error) => void = () => undefined;
  readonly #onData = (chunk: Buffer) => this.#take(chunk);

  constructor(
    source: Readable,
    declared: number,
    limits: BodyLimits,
    room: BodyRoom,
    waiter: Waiter | undefined,
  ) {
    this.#source = source;
    this.#limits = limits;
    this.#room = room;
    this.#waiter = waiter;
    this.#declared = declared;
    // The system allocates pages when they are written: a declared length alone uses no memory.
    this.#collected = declared >= inPlaceBytesMin ? largeBuffer(declared) : noBytes;
  }

  /**
   * The source's listeners live as long as the exchange, and with them the collector and the promise of `#toEnd`:
   * neither retains the body.
   */
  async whole(): Promise<Buffer> {
    await this.#toEnd();
    const whole = this.#collected;
    this.#collected = noBytes;
    return whole.subarray(0, this.#length);
  }

  #toEnd(): Promise<void> {
    const source = this.#source;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      this.#pace = new Pace(this.#limits, this.#room, (detail) => this.#fail(bodyTooSlow(detail)));
      source.on("data", this.#onData);
      source.on("end", () => {
        this.#isDone = true;
        this.#pace?.stop();
        resolve();
      });
      // A stream that closes without an end was cut off by the client. (Node's `finished` detects this at 3 times the
      // cost.)
      const onCut = (error?: unknown) => {
        const cut = () => new Error("the client ended the request within its body");
        if (!this.#isDone) this.#fail(error instanceof RequestError ? error : cut());
      };
      source.on("error", onCut);
      source.on("close", onCut);
      if (source.destroyed) onCut();
    });
  }

  #take(chunk: Buffer): void {
    const at = this.#length;
    this.#length += chunk.length;
    if (this.#length > this.#limits.bodyBytesMax) {
      this.#fail(bodyTooLarge(this.#limits.bodyBytesMax));
      return;
    }
    this.#add(chunk, at);
    if (this.#pace?.note(this.#length) === false) {
      this.#fail(bodyTooSlow(`comes slower than ${this.#limits.bytesPerSecondMin} bytes a second`));
      return;
    }
    const waiting = this.#room.grow(memoryOfBody(this.#length), false, this.#waiter);
    if (waiting === undefined) return;
    this.#source.pause();
    const goOn = this.#pace?.suspend();
    waiting.then(
      () => {
        goOn?.();
        if (!this.#isDone) this.#source.resume();
      },
      (error: Error) => this.#fail(error),
    );
  }

  /**
   * Adds a chunk to one buffer rather than to a list: freed chunks of a large body leave gaps that the C library cannot
   * return to the system.
   */
  #add(chunk: Buffer, at: number): void {
    const length = at + chunk.length;
    if (length > this.#collected.length) {
      if (at === 0) {
        this.#collected = chunk;
        return;
      }
      const larger =
        this.#declared >= length
          ? largeBuffer(this.#declared)
          : grownBuffer(length, this.#limits.bodyBytesMax);
      this.#collected.copy(larger, 0, 0, at);
      countDropped(at);
      this.#collected = larger;
    }
    chunk.copy(this.#collected, at);
    countPassing(chunk.length);
  }

  #fail(error: Error): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#pace?.stop();
    this.#source.off("data", this.#onData);
    this.#source.pause();
    this.#collected = noBytes;
    countDropped(this.#length);
    this.#reject(error);
  }
}

const noBytes = Buffer.alloc(0);

type Encoding = "identity" | "gzip" | "br" | "deflate" | "zstd";

function encodingOf(header: string | undefined): Encoding {
  const name = header?.trim().toLowerCase() ?? "";
  switch (name) {
    case "":
    case "identity":
      return "identity";
    case "x-gzip":
      return "gzip";
    case "gzip":
    case "br":
    case "deflate":
    case "zstd":
      return name;
    default:
      throw encodingUnknown(name);
  }
}

/** Decoded bytes that are retained while the decoded size is unknown. */
const keptUnfoldedBytes = 2 * 1024 * 1024;

/**
 * Decodes a whole body on another thread (zstd: on this one, in slices). A body larger than `keptUnfoldedBytes` is
 * decoded twice: the first pass only counts, so that a body that is refused does not fill memory; the second runs when
 * memory is available.
 */
async function unfold(
  raw: Buffer,
  encoding: Exclude<Encoding, "identity">,
  limits: BodyLimits,
  room: BodyRoom,
  waiter: Waiter | undefined,
): Promise<Buffer> {
  let chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of unfoldStream(oneChunk(raw), encoding, limits.bodyBytesMax)) {
    length += chunk.length;
    if (length > limits.bodyBytesMax) throw bodyTooLarge(limits.bodyBytesMax);
    waiter?.signal.throwIfAborted();
    if (length <= keptUnfoldedBytes) {
      await room.grow(raw.length + length, false, waiter);
      chunks.push(chunk);
    } else chunks = [];
    await pauseIfDue();
  }
  if (length <= keptUnfoldedBytes) return Buffer.concat(chunks, length);
  await room.grow(raw.length + memoryOfBody(length), true, waiter);
  const whole = largeBuffer(length);
  let at = 0;
  for await (const chunk of unfoldStream(oneChunk(raw), encoding, limits.bodyBytesMax)) {
    waiter?.signal.throwIfAborted();
    at += chunk.copy(whole, at);
    await pauseIfDue();
  }
  return whole;
}

async function* oneChunk(chunk: Buffer): AsyncGenerator<Buffer> {
  yield chunk;
}

/** Decodes a body in chunks; output is available as soon as the client's flushes allow. */
export function decodeBody(
  source: Readable,
  encoding: string | undefined,
  limits: BodyLimits,
): AsyncIterable<Buffer> {
  const kind = encodingOf(encoding);
  const paced = withIdleLimit(source, limits);
  return kind === "identity" ? paced : unfoldStream(paced, kind, Number.POSITIVE_INFINITY);
}

/** Fails when nothing arrives within `idleMs` while a reader waits. */
async function* withIdleLimit(source: Readable, limits: BodyLimits): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]();
  let isDone = false;
  try {
    for (;;) {
      const next = await orIdle(iterator.next(), limits.idleMs);
      if (next.done) {
        isDone = true;
        return;
      }
      yield next.value as Buffer;
      countPassing((next.value as Buffer).length);
    }
  } finally {
    if (!isDone) source.pause();
  }
}

function orIdle<T>(promise: Promise<T>, idleMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(bodyTooSlow(`stood still for ${idleMs / 1000} seconds`)),
      idleMs,
    );
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/**
 * Decodes a compressed stream. Only zstd enforces `bytesMax`; the other decoders yield small chunks, so their reader
 * can stop in time. `mustEnd`: a stream without its end is an error, also of gzip. @throws RequestError 400, 413
 */
export async function* unfoldStream(
  source: AsyncIterable<Buffer>,
  encoding: Exclude<Encoding, "identity">,
  bytesMax: number,
  mustEnd = false,
): AsyncGenerator<Buffer> {
  if (encoding === "zstd") {
    yield* unfoldZstd(source, bytesMax);
    return;
  }
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return;
  const decoder = makeDecoder(encoding, first.value, mustEnd);
  void feed(decoder, first.value, iterator); // errors surface through the decoder
  try {
    for await (const chunk of decoder) {
      yield chunk as Buffer;
      countPassing((chunk as Buffer).length);
    }
  } catch (error) {
    throw isZlibError(error) ? bodyBroken(encoding, error) : error;
  } finally {
    decoder.destroy();
    // Not awaited: the source may be waiting for a chunk that never comes.
    iterator.return?.().catch(() => undefined);
  }
}

function makeDecoder(
  encoding: "gzip" | "br" | "deflate",
  first: Buffer,
  mustEnd: boolean,
): Transform {
  if (encoding === "gzip") {
    if (mustEnd) return zlib.createGunzip();
    // Bulk-insert clients flush without ever ending the compressed stream, so truncated input counts as complete.
    return zlib.createGunzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH });
  }
  if (encoding === "br") return zlib.createBrotliDecompress();
  // "deflate" should be zlib's format; some clients send it raw. The first byte of zlib's format is x8.
  const isWrapped = ((first[0] ?? 0) & 0x0f) === 8;
  return isWrapped ? zlib.createInflate() : zlib.createInflateRaw();
}

/** Writes the rest of the source into the decoder, under its back-pressure. */
async function feed(decoder: Transform, first: Buffer, rest: AsyncIterator<Buffer>): Promise<void> {
  try {
    let chunk: Buffer = first;
    for (;;) {
      if (!decoder.write(chunk)) await drained(decoder);
      if (decoder.destroyed) return;
      const next = await rest.next();
      if (next.done) break;
      chunk = next.value;
    }
    decoder.end();
  } catch (error) {
    decoder.destroy(error as Error);
  }
}

function drained(stream: Transform): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}

/** Bytes per zstd decoding step: their output (8 MB at worst) is in memory before it can be limited. */
const zstdStepBytes = 256;

/** Decodes zstd with a library, which is loaded for the first such body: Node 20 has no zstd. */
async function* unfoldZstd(
  source: AsyncIterable<Buffer>,
  bytesMax: number,
): AsyncGenerator<Buffer> {
  const { Decompress } = await import("fzstd");
  const ready: Buffer[] = [];
  let length = 0;
  const decoder = new Decompress((chunk) => {
    length += chunk.length;
    if (length > bytesMax) throw bodyTooLarge(bytesMax);
    if (chunk.length > 0) ready.push(Buffer.from(chunk));
  });
  const push = (chunk: Uint8Array, isLast: boolean) => {
    try {
      decoder.push(chunk, isLast);
    } catch (error) {
      throw error instanceof RequestError ? error : bodyBroken("zstd", error);
    }
  };
  for await (const chunk of source) {
    for (let start = 0; start < chunk.length; start += zstdStepBytes) {
      await pauseIfDue();
      push(chunk.subarray(start, start + zstdStepBytes), false);
      for (const decoded of ready.splice(0)) {
        yield decoded;
        countPassing(2 * decoded.length); // the decoder has a copy
      }
    }
  }
  push(new Uint8Array(0), true);
  yield* ready.splice(0);
}

function isZlibError(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return (
    typeof code === "string" &&
    (code.startsWith("Z_") || code.startsWith("ERR_BROTLI") || code.startsWith("ERR__ERROR_"))
  );
}
