/**
 * The parts of a multipart body (RFC 2046), streamed one after another. The content is opaque; clients name parts
 * arbitrarily, so parts are identified by order. Of a part's headers only `Content-Encoding` is read.
 *
 *   body := preamble delimiter part (delimiter part)* delimiter "--" epilogue
 *   delimiter := CRLF "--" boundary      part := header-line* CRLF content
 *
 * Invariants:
 * - At most `headerBytesMax` plus two chunks are held at a time.
 */
import { EngineError } from "../../engine/base/errors.ts";
import { unfoldStream } from "./body.ts";

const headerBytesMax = 16 * 1024;
const epilogueBytesMax = 64 * 1024;
const lineEnd = Buffer.from("\r\n");
const blankLine = Buffer.from("\r\n\r\n");

/** The boundary of a multipart Content-Type; undefined for other types. @throws EngineError bad-request */
export function multipartBoundary(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !/^\s*multipart\//i.test(contentType)) return undefined;
  const match = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined || boundary.length > 70) {
    throw new EngineError(
      "bad-request",
      "A multipart body needs a boundary of 1 to 70 characters.",
    );
  }
  return boundary;
}

/**
 * The contents of the parts, in order. Each must be read, or abandoned, before the next is requested.
 * @param isUnfolding decompresses parts that declare gzip or zstd, to any size; like RavenDB 7.2.7, no other encodings
 * @throws (while iterating) EngineError json-truncated when the body ends too early, bad-request; RequestError 400
 */
export async function* multipartContents(
  source: AsyncIterable<Buffer>,
  boundary: string,
  isUnfolding = false,
): AsyncGenerator<AsyncGenerator<Buffer>> {
  const reader = new PartReader(source, boundary);
  await drain(reader.content()); // the preamble
  while (await reader.nextPart()) {
    const { encoding } = reader;
    const content = reader.content();
    yield !isUnfolding || encoding === undefined
      ? content
      : unfoldStream(content, encoding, Number.POSITIVE_INFINITY);
    await content.return(undefined); // a decoder reads ahead
    await drain(reader.content()); // what was left unread
  }
  await reader.readEpilogue();
}

/**
 * The file uploaded by a form: the content of its only part. A body that is not a form is returned unchanged, because
 * clients label JSON with any type. @throws EngineError bad-request for another number of parts, and as
 * `multipartContents`
 */
export async function uploadedFile(contentType: string | undefined, body: Buffer): Promise<Buffer> {
  const boundary = multipartBoundary(contentType);
  if (boundary === undefined || !body.includes(`--${boundary}`)) return body;
  const files: Buffer[] = [];
  for await (const content of multipartContents(once(body), boundary)) {
    const pieces: Buffer[] = [];
    for await (const piece of content) pieces.push(piece);
    files.push(Buffer.concat(pieces));
  }
  const [file] = files;
  if (file !== undefined && files.length === 1) return file;
  throw new EngineError(
    "bad-request",
    `A form that uploads one file has one part; this one has ${files.length}.`,
  );
}

async function* once(body: Buffer): AsyncGenerator<Buffer> {
  yield body;
}

function encodingOf(headers: string): "gzip" | "zstd" | undefined {
  const name = /^content-encoding:[ \t]*(gzip|zstd)[ \t]*$/im.exec(headers)?.[1]?.toLowerCase();
  return name === "gzip" || name === "zstd" ? name : undefined;
}

async function drain(content: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of content);
}

class PartReader {
  readonly #iterator: AsyncIterator<Buffer>;
  readonly #delimiter: Buffer;
  /** Received but not yet yielded. Starts with a line end, since the first delimiter may begin the body. */
  #held: Buffer = lineEnd;
  #isAtDelimiter = false;
  /** The content encoding of the current part. */
  encoding: "gzip" | "zstd" | undefined;

  constructor(source: AsyncIterable<Buffer>, boundary: string) {
    this.#iterator = source[Symbol.asyncIterator]();
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** The content up to the next delimiter, which is consumed. Iterating again yields nothing. */
  async *content(): AsyncGenerator<Buffer> {
    while (!this.#isAtDelimiter) {
      const at = this.#held.indexOf(this.#delimiter);
      if (at >= 0) {
        const last = this.#held.subarray(0, at);
        this.#held = this.#held.subarray(at + this.#delimiter.length);
        this.#isAtDelimiter = true;
        if (last.length > 0) yield last;
        return;
      }
      // The end of the input may be the start of a delimiter.
      const free = this.#held.length - this.#delimiter.length + 1;
      if (free > 0) {
        const part = this.#held.subarray(0, free);
        this.#held = this.#held.subarray(free);
        yield part;
      }
      await this.#more();
    }
  }

  /** Skips the delimiter line and reads the part's headers. @returns false at the end of the body */
  async nextPart(): Promise<boolean> {
    while (this.#held.length < 2) await this.#more();
    if (this.#held[0] === 0x2d && this.#held[1] === 0x2d) return false;
    const lineAt = await this.#find(lineEnd);
    // The line's own end may also end an empty header block.
    this.#held = this.#held.subarray(lineAt);
    const headersAt = await this.#find(blankLine);
    this.encoding = encodingOf(this.#held.toString("latin1", 0, headersAt));
    this.#held = this.#held.subarray(headersAt + blankLine.length);
    this.#isAtDelimiter = false;
    return true;
  }

  /** The epilogue is ignored, but must be read so that the connection can be reused. */
  async readEpilogue(): Promise<void> {
    for (let left = epilogueBytesMax; left > 0; ) {
      const next = await this.#iterator.next();
      if (next.done) return;
      left -= next.value.length;
    }
  }

  async #find(text: Buffer): Promise<number> {
    for (;;) {
      const at = this.#held.indexOf(text);
      if (at >= 0) return at;
      if (this.#held.length > headerBytesMax) {
        throw new EngineError("bad-request", "The headers of a part of the body are too long.");
      }
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    const next = await this.#iterator.next();
    if (next.done) {
      throw new EngineError("json-truncated", "The multipart body ends before its last boundary.");
    }
    this.#held = this.#held.length === 0 ? next.value : Buffer.concat([this.#held, next.value]);
  }
}
