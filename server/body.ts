/**
 * Decoding a request's body and collecting it, within limits of size and time. Works on any readable stream.
 *
 * Invariants:
 * - The limit of size holds for the decoded bytes too, so a small body cannot unfold into a large one.
 * - A body that stands still for `idleMs` fails. Collected whole, it must also keep to `bytesPerSecondMin`.
 */
import type { Readable, Transform } from "node:stream";
import * as zlib from "node:zlib";
import {
  bodyBroken,
  bodyTooLarge,
  bodyTooSlow,
  encodingUnknown,
  RequestError,
} from "./request-error.ts";

export interface BodyLimits {
  /** Bytes of a body that is collected whole, decoded. */
  readonly bodyBytesMax: number;
  /** Milliseconds that a body may stand still. */
  readonly idleMs: number;
  /** A collected body slower than this after `rateGraceMs` fails. */
  readonly bytesPerSecondMin: number;
  readonly rateGraceMs: number;
  /** Milliseconds that a client may leave a streamed reply unread. */
  readonly stallMs: number;
  readonly compressReplies: boolean;
}

/** Ends waiting when nothing came for too long, or too little. */
class Pace {
  private readonly limits: BodyLimits;
  private readonly startedMs = performance.now();
  private readonly timer: NodeJS.Timeout;

  constructor(limits: BodyLimits, onIdle: () => void) {
    this.limits = limits;
    this.timer = setTimeout(onIdle, limits.idleMs);
  }

  /** Something came. @returns false when it is too slow on the whole. */
  note(bytesInAll: number): boolean {
    this.timer.refresh();
    const elapsedMs = performance.now() - this.startedMs;
    if (elapsedMs < this.limits.rateGraceMs) return true;
    return (bytesInAll * 1000) / elapsedMs >= this.limits.bytesPerSecondMin;
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

/**
 * The whole decoded body.
 * @throws RequestError 400, 408, 413, 415
 */
export async function collectBody(
  source: Readable,
  encoding: string | undefined,
  contentLength: string | undefined,
  limits: BodyLimits,
): Promise<Buffer> {
  if (Number(contentLength ?? 0) > limits.bodyBytesMax) throw bodyTooLarge(limits.bodyBytesMax);
  const kind = encodingOf(encoding);
  const raw = await collect(source, limits);
  return kind === "identity" ? raw : unfold(raw, kind, limits);
}

/** Collects without decoding. */
function collect(source: Readable, limits: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isDone = false;
    const fail = (error: Error) => {
      isDone = true;
      pace.stop();
      source.off("data", onData);
      source.pause();
      reject(error);
    };
    const pace = new Pace(limits, () =>
      fail(bodyTooSlow(`stood still for ${limits.idleMs / 1000} seconds`)),
    );
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > limits.bodyBytesMax) {
        fail(bodyTooLarge(limits.bodyBytesMax));
        return;
      }
      chunks.push(chunk);
      if (!pace.note(length)) {
        fail(bodyTooSlow(`comes slower than ${limits.bytesPerSecondMin} bytes a second`));
      }
    };
    source.on("data", onData);
    source.on("end", () => {
      isDone = true;
      pace.stop();
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
    });
    // A stream that closes without an end was cut off by the client. (Node's `finished` says the same at 3 times the cost.)
    const onCut = () => {
      if (!isDone) fail(new Error("the client ended the request within its body"));
    };
    source.on("error", onCut);
    source.on("close", onCut);
    if (source.destroyed) onCut();
  });
}

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

/** Decodes a whole body on another thread (zstd: on this one). */
async function unfold(
  raw: Buffer,
  encoding: Exclude<Encoding, "identity">,
  limits: BodyLimits,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of unfoldStream(oneChunk(raw), encoding, limits.bodyBytesMax)) {
    length += chunk.length;
    if (length > limits.bodyBytesMax) throw bodyTooLarge(limits.bodyBytesMax);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

async function* oneChunk(chunk: Buffer): AsyncGenerator<Buffer> {
  yield chunk;
}

/** The decoded body piece by piece; pieces come out as soon as the client's flushes allow. */
export function decodeBody(
  source: Readable,
  encoding: string | undefined,
  limits: BodyLimits,
): AsyncIterable<Buffer> {
  const kind = encodingOf(encoding);
  const paced = withIdleLimit(source, limits);
  return kind === "identity" ? paced : unfoldStream(paced, kind, Number.POSITIVE_INFINITY);
}

/** Fails when nothing comes for `idleMs` while somebody waits for it. */
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
 * What compressed bytes unfold to. `bytesMax` is kept by zstd alone; the others' pieces are small, so that their reader can
 * stop in time. @throws RequestError 400, 413
 */
export async function* unfoldStream(
  source: AsyncIterable<Buffer>,
  encoding: Exclude<Encoding, "identity">,
  bytesMax: number,
): AsyncGenerator<Buffer> {
  if (encoding === "zstd") {
    yield* unfoldZstd(source, bytesMax);
    return;
  }
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return;
  const decoder = makeDecoder(encoding, first.value);
  void feed(decoder, first.value, iterator); // reports through the decoder
  try {
    for await (const chunk of decoder) yield chunk as Buffer;
  } catch (error) {
    throw isZlibError(error) ? bodyBroken(encoding, error) : error;
  } finally {
    decoder.destroy();
    // Not awaited: it may be waiting for a piece that never comes.
    iterator.return?.().catch(() => undefined);
  }
}

function makeDecoder(encoding: "gzip" | "br" | "deflate", first: Buffer): Transform {
  if (encoding === "gzip") {
    // Clients of bulk insert flush without ever ending the compressed stream, so an end in its middle is an end.
    return zlib.createGunzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH });
  }
  if (encoding === "br") return zlib.createBrotliDecompress();
  // "deflate" should be zlib's format; some clients send it raw. Zlib's first byte is x8.
  const isWrapped = ((first[0] ?? 0) & 0x0f) === 8;
  return isWrapped ? zlib.createInflate() : zlib.createInflateRaw();
}

/** Writes the rest of the source into the decoder, no faster than it takes it. */
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

/** Bytes given to the zstd decoder at once: what they unfold to (64 MB at worst) is in memory before anybody can stop. */
const zstdStepBytes = 2048;

/** Node 20 has no zstd; the decoder is loaded when the first such body comes. */
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
      push(chunk.subarray(start, start + zstdStepBytes), false);
      yield* ready.splice(0);
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
