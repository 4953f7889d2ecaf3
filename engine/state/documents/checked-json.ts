/**
 * Checks JSON text that is not stored as a document, as strictly as document-parser.ts does: bodies of requests,
 * messages, values.
 */
import { largeBuffer } from "../../base/memory/large-buffer.ts";
import { runInSlices } from "../../base/scheduling/time-slices.ts";
import { DocumentParser } from "./document-parser.ts";

const parser = new DocumentParser(null);

/** Checks that `bytes` are one object. @throws EngineError json-truncated when empty, json-invalid, json-not-object, … */
export function checkJson(bytes: Buffer): void {
  parser.parse(bytes, 0, bytes.length);
}

/**
 * Returns the minified text of an object, without its `@metadata`: numbers keep their spelling. It is the caller's own.
 * @throws EngineError as `checkJson`
 */
export function checkedJson(bytes: Buffer): Buffer {
  return Buffer.from(parser.parse(bytes, 0, bytes.length).body);
}

/** As `checkedJson`, with `@metadata` as an ordinary key. */
export function checkedJsonWithMetadata(bytes: Buffer): Buffer {
  checkJson(bytes);
  return Buffer.from(parser.parseValue(bytes, 0, bytes.length).body);
}

/** Bytes from which a text is better checked in slices. */
const slicedBytesMin = 64 * 1024;

/**
 * As `checkedJson`, for callers that read the text immediately: a short text is overwritten when the next one is
 * checked. A long one is checked in slices, and must not change until the promise has resolved.
 */
export function readMinified(bytes: Buffer): Buffer | Promise<Buffer> {
  if (bytes.length >= slicedBytesMin) return checkedJsonInSlices(bytes);
  return parser.parse(bytes, 0, bytes.length).body;
}

/** As `checkedJson`, in slices. `bytes` must not change until it has resolved. */
export async function checkedJsonInSlices(bytes: Buffer): Promise<Buffer> {
  const own = new DocumentParser(null);
  const target = largeBuffer(bytes.length);
  return (await runInSlices(own.parseInSlices(bytes, 0, bytes.length, target))).body;
}
