/**
 * Reads the text of a dump incrementally, in chunks of any size: one object, whose members are read one after another,
 * each value as a whole or item by item. Raw bytes may follow an item.
 *
 *   dump := { key : value (, key : value)* }      value of a section := [ item (, item)* ]      item := value bytes?
 *
 * A comma before a closing bracket is ignored: RavenDB 7.2.7 writes some, and accepts them. Independent of the meaning
 * of sections.
 *
 * Invariants:
 * - Returned bytes do not change.
 * - A value is at most `dumpItemBytesMax` long; at most that, and one chunk of the source, is buffered.
 */

import { EngineError } from "../../base/errors.ts";
import {
  byteArrayClose,
  byteArrayOpen,
  byteBackslash,
  byteColon,
  byteComma,
  byteObjectClose,
  byteObjectOpen,
  byteQuote,
  skipSpace,
} from "../../base/json/bytes.ts";
import { parsedText, tokenName } from "../../base/json/raw-scan.ts";
import { dumpItemBytesMax } from "../../base/limits.ts";
import { BufferedChunks } from "../../base/memory/buffered-chunks.ts";
import { grownBuffer } from "../../base/memory/large-buffer.ts";
import { pauseIfDue } from "../../base/scheduling/time-slices.ts";

const noBytes = Buffer.alloc(0);

export class DumpReader {
  readonly #source: AsyncIterator<Buffer>;
  readonly #pieces: BufferedChunks;
  /** Received but unused bytes: `#bytes[#at, #end)`. */
  #bytes: Buffer = noBytes;
  #at = 0;
  #end = 0;
  #isFirst = true;
  /** Offset of `#bytes[0]` in the whole text. */
  #before = 0;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
    this.#pieces = new BufferedChunks(this.#source);
  }

  /** Position of the reader in the dump, in bytes. */
  get position(): number {
    return this.#before + this.#at;
  }

  /** Enters the dump's object. @throws EngineError json-invalid, invalid-operation */
  async open(): Promise<void> {
    const first = await this.#token();
    if (first === undefined) throw new EngineError("invalid-operation", "Empty stream");
    if (first !== byteObjectOpen) {
      throw tokenName(this.#bytes, this.#at) === ""
        ? this.#misplaced()
        : this.#unexpected("start object");
    }
    this.#at++;
    this.#isFirst = true;
  }

  /** Returns the key of the next section, whose value must be read; undefined after the last. */
  async nextSection(): Promise<string | undefined> {
    if (!(await this.#nextMember(byteObjectClose, "the dump's sections"))) return undefined;
    if (this.#bytes[this.#at] !== byteQuote) throw this.#misplaced();
    const key = await this.#value();
    if ((await this.#require("the dump's sections")) !== byteColon) throw this.#misplaced();
    this.#at++;
    await this.#require(`the section ${key.toString()}`);
    return parsedText(key, 0, key.length) as string;
  }

  /** Returns the value of a section, as a whole. */
  async value(): Promise<Buffer> {
    return await this.#value();
  }

  /** Returns the value of a section that must be an object, as a whole. @throws EngineError invalid-operation */
  async objectValue(): Promise<Buffer> {
    if (this.#bytes[this.#at] !== byteObjectOpen) throw this.#unexpected("start object");
    return await this.#value();
  }

  /** Enters the array of a section. @throws EngineError invalid-operation */
  async openArray(): Promise<void> {
    if (this.#bytes[this.#at] !== byteArrayOpen) throw this.#unexpected("start array");
    this.#at++;
    this.#isFirst = true;
  }

  /**
   * Returns the next item of an array; undefined after the last. `section`: for the error message at an early end of
   * the text.
   */
  async nextItem(section: string): Promise<Buffer | undefined> {
    if (!(await this.#nextMember(byteArrayClose, section))) return undefined;
    return await this.#value(section);
  }

  /** Yields the raw bytes that follow the last item. They must all be read. @throws EngineError json-truncated */
  async *content(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0; ) {
      if (this.#at === this.#end && !(await this.#more())) {
        throw new EngineError(
          "json-truncated",
          `The dump ends ${left} bytes before the end of a content of ${length} bytes.`,
        );
      }
      const part = this.#bytes.subarray(this.#at, Math.min(this.#at + left, this.#end));
      this.#at += part.length;
      left -= part.length;
      yield part;
    }
  }

  /** Reads the rest of the source, which is ignored, up to a bound, so that the source can end normally. */
  async drain(bytesMax: number): Promise<void> {
    for (let left = bytesMax; left > 0; ) {
      const next = await this.#source.next();
      if (next.done) return;
      left -= next.value.length;
    }
  }

  /** Releases the source. */
  close(): void {
    this.#pieces.release();
    // Not awaited: it may be waiting for a chunk that never arrives.
    this.#source.return?.().catch(() => undefined);
  }

  /** Skips the comma before the next member. @returns false after the closing bracket */
  async #nextMember(close: number, what: string): Promise<boolean> {
    let byte = await this.#token();
    if (byte === undefined) throw this.#ended(what, this.#isFirst || close === byteObjectClose);
    if (!this.#isFirst) {
      if (byte !== byteComma && byte !== close) throw this.#misplaced();
      if (byte === byteComma) {
        this.#at++;
        byte = await this.#require(what);
      }
    }
    this.#isFirst = byte === close ? false : this.#isFirst;
    if (byte === close) {
      this.#at++;
      return false;
    }
    this.#isFirst = false;
    return true;
  }

  /** Returns the whole value that begins here. */
  async #value(what = "a value"): Promise<Buffer> {
    const first = this.#bytes[this.#at] as number; // the caller has checked that it is there
    let depth = 0;
    let isInString = false;
    let offset = 0;
    const isScalar = first !== byteQuote && first !== byteObjectOpen && first !== byteArrayOpen;
    for (;;) {
      const bytes = this.#bytes;
      const end = this.#end;
      let i = this.#at + offset;
      for (; i < end; i++) {
        const byte = bytes[i] as number;
        if (isInString) {
          if (byte === byteBackslash) i++;
          else if (byte === byteQuote) isInString = false;
          else continue;
        } else if (byte === byteQuote) isInString = true;
        else if (byte === byteObjectOpen || byte === byteArrayOpen) depth++;
        else if (isScalar) {
          if (isScalarEnd(byte)) return this.#take(i);
          continue;
        } else if (byte === byteObjectClose || byte === byteArrayClose) depth--;
        else continue;
        if (depth === 0 && !isInString) return this.#take(i + 1);
      }
      offset = i - this.#at;
      if (offset > dumpItemBytesMax) {
        throw new EngineError(
          "too-large",
          `An item of a dump has at most ${dumpItemBytesMax} bytes; ${what} has more.`,
        );
      }
      if (!(await this.#more())) throw this.#ended(what);
    }
  }

  #take(to: number): Buffer {
    const taken = this.#bytes.subarray(this.#at, to);
    this.#at = to;
    return taken;
  }

  /** Returns the next byte that is not a space; undefined at the end. */
  async #token(): Promise<number | undefined> {
    for (;;) {
      this.#at = skipSpace(this.#bytes, this.#at, this.#end);
      if (this.#at < this.#end) return this.#bytes[this.#at];
      if (!(await this.#more())) return undefined;
    }
  }

  async #require(what: string): Promise<number> {
    const byte = await this.#token();
    if (byte === undefined) throw this.#ended(what);
    return byte;
  }

  /** @returns false at the end of the source */
  async #more(): Promise<boolean> {
    const next = await this.#pieces.next(this.#end - this.#at);
    // A dump that was already received arrives without a wait.
    await pauseIfDue();
    if (next.done) return false;
    const chunk = next.value;
    const held = this.#end - this.#at;
    if (held === 0) {
      this.#before += this.#at;
      this.#bytes = chunk;
      this.#at = 0;
      this.#end = chunk.length;
      return true;
    }
    // Returned values are in the old buffer: only the space after its end is free.
    if (this.#end + chunk.length > this.#bytes.length) {
      const larger = grownBuffer(held + chunk.length, dumpItemBytesMax);
      this.#bytes.copy(larger, 0, this.#at, this.#end);
      this.#before += this.#at;
      this.#bytes = larger;
      this.#at = 0;
      this.#end = held;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
    return true;
  }

  #misplaced(): EngineError {
    const character = String.fromCharCode(this.#bytes[this.#at] as number); // there is one
    return new EngineError(
      "json-invalid",
      `Cannot have a '${character}' in this position at byte ${this.position + 1} of the dump.`,
    );
  }

  #unexpected(wanted: string): EngineError {
    const found = tokenName(this.#bytes, this.#at);
    return new EngineError(
      "invalid-operation",
      `Invalid JSON. Expected ${wanted}, got ${found === "" ? "nothing" : found} at byte ${this.position + 1} of the dump.`,
    );
  }

  /** `isInside`: the dump ends inside a value, rather than after an item. RavenDB 7.2.7 distinguishes these. */
  #ended(what: string, isInside = true): EngineError {
    return new EngineError(
      isInside ? "json-truncated" : "invalid-operation",
      `Invalid JSON. Unexpected end of json while reading ${what}: the dump ends after ${this.#before + this.#end} bytes.`,
    );
  }
}

function isScalarEnd(byte: number): boolean {
  return byte === byteComma || byte === byteObjectClose || byte === byteArrayClose || byte <= 0x20;
}

/**
 * Parses a value of a dump. Integers of 16 digits and more become strings, as doubles cannot represent them; a comma
 * before a closing bracket is ignored. @throws EngineError json-invalid
 */
export function dumpValue(bytes: Buffer): unknown {
  let text = "";
  let copied = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number; // i < length
    if (byte === byteQuote) {
      for (i++; i < bytes.length && bytes[i] !== byteQuote; i++) {
        if (bytes[i] === byteBackslash) i++;
      }
    } else if (byte === byteComma) {
      const next = bytes[skipSpace(bytes, i + 1, bytes.length)];
      if (next !== byteObjectClose && next !== byteArrayClose) continue;
      text += bytes.utf8Slice(copied, i);
      copied = i + 1;
    } else if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      let to = i + 1;
      while (to < bytes.length && !isScalarEnd(bytes[to] as number)) to++;
      const token = bytes.latin1Slice(i, to);
      if (/^-?\d{16,}$/.test(token)) {
        text += `${bytes.utf8Slice(copied, i)}"${token}"`;
        copied = to;
      }
      i = to - 1;
    }
  }
  const whole = Buffer.from(text + bytes.utf8Slice(copied, bytes.length));
  return parsedText(whole, 0, whole.length);
}
