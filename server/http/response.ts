/**
 * The common parts of replies: the standard headers, the error body, and the choice and application of compression. The
 * exchanges send the result.
 *
 * Invariants:
 * - No stack trace and no message of an unknown error leaves the server.
 */
import { randomUUID } from "node:crypto";
import * as zlib from "node:zlib";
import { EngineError } from "../../engine/base/errors.ts";
import { errorStatus } from "./error-status.ts";
import { RequestError, tooDeep } from "./request-error.ts";

/** The announced version of the interface. Clients compare it as text with "4.2" and "5.2". */
export const interfaceVersion = "7.2.7.72051";
export const jsonContentType = "application/json; charset=utf-8";

/** A `content-type` that omits the header. An empty value would be sent. */
export const noContentType = "none";

/** Headers of one connection (RFC 9110, 7.6.1), which are not forwarded. */
export const hopByHopHeaders = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** Names in lower case. */
export type ReplyHeaders = Readonly<Record<string, string | number | readonly string[]>>;

interface ErrorReply {
  readonly status: number;
  readonly headers: ReplyHeaders | undefined;
  /** JSON text. */
  readonly body: string;
}

/**
 * Returns the reply for an exception. An unknown error is logged in full through `logUnknown`, and the reply contains its
 * reference in the log. `hint` is the value of the member of that name: a remedy.
 */
export function errorReply(
  thrown: unknown,
  url: string,
  logUnknown: (reference: string, error: unknown) => void,
  hint?: string,
): ErrorReply {
  const error = tooDeep(thrown) ?? thrown;
  if (error instanceof EngineError) {
    const { status, type } = errorStatus[error.code];
    const details = status === 409 ? { ...noVectors, ...wireDetails(error) } : wireDetails(error);
    const body = errorBody(url, type, error.message, { ...details, ...withHint(hint) });
    return { status, headers: retryHeaders(error), body };
  }
  if (error instanceof RequestError) {
    const body =
      error.status === 403
        ? refusalBody(error.type, error.message)
        : errorBody(url, error.type, error.message, withHint(hint));
    return { status: error.status, headers: error.headers, body };
  }
  const reference = randomUUID();
  logUnknown(reference, error);
  const message = `An unexpected error, see ${reference} in the server's log.`;
  return { status: 500, headers: undefined, body: errorBody(url, "System.Exception", message) };
}

function withHint(hint: string | undefined): Record<string, unknown> {
  return hint === undefined ? {} : { hint };
}

/** Returns `Retry-After`, if the error has a delay. */
function retryHeaders({ details }: EngineError): ReplyHeaders | undefined {
  const seconds = details?.["retryAfterSeconds"];
  return typeof seconds === "number" ? { "retry-after": String(seconds) } : undefined;
}

/** The fields of every 409 reply, null where unknown. */
const noVectors = { Id: null, ExpectedChangeVector: null, ActualChangeVector: null };

/** The details sent to the client: names in PascalCase; others are for callers in the process. */
function wireDetails(error: EngineError): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(error.details ?? {}).filter(([name]) => /^[A-Z]/.test(name)),
  );
}

/** JSON text of an error reply; clients show `Error`, which begins with type and message. */
export function errorBody(
  url: string,
  type: string,
  message: string,
  details?: Readonly<Record<string, unknown>>,
): string {
  return JSON.stringify({
    Url: url,
    Type: type,
    Message: message,
    Error: `${type}: ${message}`,
    ...details,
  });
}

/** A refusal does not repeat the address: existing and missing resources must look the same. */
function refusalBody(type: string, message: string): string {
  return JSON.stringify({ Type: type, Message: message, Error: `${type}: ${message}` });
}

/** Size below which compression does not pay, in bytes: about one and a half network packets. */
export const compressibleBytesMin = 2048;
/** Size above which compression runs on another thread, in bytes. */
const inlineCompressBytesMax = 32 * 1024;

export type ReplyEncoding = "gzip" | "br" | "deflate" | "zstd";

/** Node has zstd from 22.15 on. */
interface ZstdParts {
  readonly zstdCompressSync?: (input: Uint8Array) => Buffer;
  readonly zstdCompress?: (
    input: Uint8Array,
    done: (error: Error | null, result: Buffer) => void,
  ) => void;
  readonly createZstdCompress?: () => zlib.Gzip;
}
const zstd = zlib as unknown as ZstdParts;
const preference: readonly ReplyEncoding[] =
  zstd.zstdCompressSync === undefined
    ? ["gzip", "br", "deflate"]
    : ["zstd", "gzip", "br", "deflate"];

/**
 * Returns whether the client requests one encoding, instead of listing the encodings that it supports. Such clients of
 * RavenDB expect it for replies of any size.
 */
export function namesOneEncoding(header: string | undefined): boolean {
  return header !== undefined && !header.includes(",") && !header.includes("*");
}

/** Returns the reply encoding for an Accept-Encoding header, or undefined. */
export function chooseEncoding(header: string | undefined): ReplyEncoding | undefined {
  if (header === undefined) return undefined;
  let best: ReplyEncoding | undefined;
  let bestWeight = 0;
  const weights = new Map<string, number>();
  for (const part of header.split(",")) {
    const [name = "", ...parameters] = part.split(";");
    const quality = parameters.find((parameter) => parameter.trim().startsWith("q="));
    const weight = quality === undefined ? 1 : Number(quality.trim().slice(2));
    weights.set(name.trim().toLowerCase(), Number.isNaN(weight) ? 0 : weight);
  }
  const others = weights.get("*") ?? 0;
  for (const encoding of preference) {
    const weight = weights.get(encoding) ?? others;
    if (weight > bestWeight) {
      best = encoding;
      bestWeight = weight;
    }
  }
  return best;
}

const brotliOptions: zlib.BrotliOptions = {
  params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 },
};
const deflateOptions: zlib.ZlibOptions = { level: 4 };

/** Compresses `body`: a small body synchronously, others on another thread. */
export function compress(body: Uint8Array, encoding: ReplyEncoding): Buffer | Promise<Buffer> {
  if (body.length <= inlineCompressBytesMax) {
    switch (encoding) {
      case "gzip":
        return zlib.gzipSync(body, deflateOptions);
      case "br":
        return zlib.brotliCompressSync(body, brotliOptions);
      case "deflate":
        return zlib.deflateSync(body, deflateOptions);
      case "zstd":
        return zstd.zstdCompressSync?.(body) ?? Buffer.from(body);
    }
  }
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, result: Buffer) => (error ? reject(error) : resolve(result));
    if (encoding === "gzip") zlib.gzip(body, deflateOptions, done);
    else if (encoding === "br") zlib.brotliCompress(body, brotliOptions, done);
    else if (encoding === "deflate") zlib.deflate(body, deflateOptions, done);
    else zstd.zstdCompress?.(body, done);
  });
}

let openCompressors = 0;

/** Open compression streams. */
export function compressorCount(): number {
  return openCompressors;
}

/** Returns a compression stream, for streamed replies. */
export function compressor(
  encoding: ReplyEncoding,
): zlib.Gzip | zlib.BrotliCompress | zlib.Deflate {
  const made = makeCompressor(encoding);
  openCompressors++;
  made.once("close", () => openCompressors--);
  return made;
}

function makeCompressor(encoding: ReplyEncoding): zlib.Gzip | zlib.BrotliCompress | zlib.Deflate {
  if (encoding === "br") return zlib.createBrotliCompress(brotliOptions);
  if (encoding === "deflate") return zlib.createDeflate(deflateOptions);
  if (encoding === "zstd" && zstd.createZstdCompress !== undefined) {
    return zstd.createZstdCompress();
  }
  return zlib.createGzip(deflateOptions);
}
