/**
 * Decodes the text of a dump sent by a client: uncompressed, gzip, or zstd, detected by its first bytes.
 *
 * Invariants:
 * - A small body cannot decompress without bound: see `dumpUnfoldFactorMax`.
 */
import { EngineError } from "../../engine/base/errors.ts";
import { dumpUnfoldedBytesFree, dumpUnfoldFactorMax } from "../../engine/base/limits.ts";
import { unfoldStream } from "../http/body.ts";
import { RequestError } from "../http/request-error.ts";

const magicBytes = 4;

/**
 * @param mustEnd whether a compressed dump without its end counts as damaged, even if its text is complete
 * @throws (while iterating) EngineError json-invalid, too-large, and errors of `source`
 */
export async function* dumpText(
  source: AsyncIterable<Buffer>,
  mustEnd = false,
): AsyncGenerator<Buffer> {
  const iterator = source[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  while (head.length < magicBytes) {
    const next = await iterator.next();
    if (next.done) break;
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
  }
  const received = { bytes: 0 };
  const whole = counted(head, iterator, received);
  const encoding = encodingOf(head);
  if (encoding === undefined) {
    yield* whole;
    return;
  }
  let unfolded = 0;
  try {
    for await (const chunk of unfoldStream(whole, encoding, Number.POSITIVE_INFINITY, mustEnd)) {
      unfolded += chunk.length;
      if (unfolded > dumpUnfoldedBytesFree + received.bytes * dumpUnfoldFactorMax) {
        throw new EngineError(
          "too-large",
          `The dump decompresses from ${received.bytes} bytes to more than ${unfolded}, which exceeds the limit for dumps.`,
        );
      }
      yield chunk;
    }
  } catch (error) {
    if (!(error instanceof RequestError) || error.status !== 400) throw error;
    throw new EngineError(
      "json-invalid",
      `The dump is damaged: its ${encoding} data cannot be decompressed after ${unfolded} bytes.`,
      { cause: error },
    );
  }
}

function encodingOf(head: Buffer): "gzip" | "zstd" | undefined {
  if (head[0] === 0x1f && head[1] === 0x8b) return "gzip";
  const isZstd = head.length >= magicBytes && head.readUInt32LE(0) === 0xfd2fb528;
  return isZstd ? "zstd" : undefined;
}

async function* counted(
  head: Buffer,
  rest: AsyncIterator<Buffer>,
  received: { bytes: number },
): AsyncGenerator<Buffer> {
  received.bytes += head.length;
  if (head.length > 0) yield head;
  for (;;) {
    const next = await rest.next();
    if (next.done) return;
    received.bytes += next.value.length;
    yield next.value;
  }
}
