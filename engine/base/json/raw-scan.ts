/**
 * Finds the spans of values in JSON text without checking them, so that each can be parsed once, where it is used.
 * Independent of the meaning of values.
 *
 * Invariants:
 * - No scan goes beyond the given end, whatever the text is.
 * - For valid JSON the spans are exact; for other text they are inside it, and parsing the span finds the error.
 */
import { isUtf8 } from "node:buffer";
import { EngineError } from "../errors.ts";
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
} from "./bytes.ts";
import type { ValueEnds } from "./object-scan.ts";

// Aliases: V8 folds a module's own constants into the code, but loads imported ones from their cells each time.
const arrayClose = byteArrayClose;
const arrayOpen = byteArrayOpen;
const backslash = byteBackslash;
const colonByte = byteColon;
const comma = byteComma;
const objectClose = byteObjectClose;
const objectOpen = byteObjectOpen;
const quote = byteQuote;

const noBytes = Buffer.alloc(0);

/** Returns the type of a value, by its first byte, in the terms of RavenDB's parser. */
export function tokenName(bytes: Uint8Array, at: number): string {
  const byte = bytes[at] as number;
  if (byte === quote) return "String";
  if (byte === objectOpen) return "StartObject";
  if (byte === arrayOpen) return "StartArray";
  if (byte === objectClose) return "EndObject";
  if (byte === arrayClose) return "EndArray";
  if (byte === 0x74) return "True";
  if (byte === 0x66) return "False";
  if (byte === 0x6e) return "Null";
  return byte === 0x2d || (byte >= 0x30 && byte <= 0x39) ? "Integer" : "";
}

/** Returns the position after the value that begins at `at` (no space), or -1 when `end` truncates it. Hot. */
export function rawValueEnd(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at] as number;
  if (first === quote) return rawStringEnd(bytes, at, end);
  let i = at + 1;
  if (first === objectOpen || first === arrayOpen) {
    let depth = 1;
    while (i < end) {
      const byte = bytes[i++] as number;
      if (byte === quote) {
        // Inlined from `rawStringEnd`: a call for each string takes as long as the scan.
        for (;;) {
          if (i >= end) return -1;
          const inner = bytes[i++] as number;
          if (inner === quote) break;
          if (inner === backslash) i++;
        }
      } else if (byte === objectOpen || byte === arrayOpen) depth++;
      else if (byte === objectClose || byte === arrayClose) {
        depth--;
        if (depth === 0) return i;
      }
    }
    return -1;
  }
  while (i < end) {
    const byte = bytes[i] as number;
    if (byte === comma || byte === objectClose || byte === arrayClose || byte <= 0x20) {
      return i;
    }
    i++;
  }
  return -1;
}

function rawStringEnd(bytes: Uint8Array, at: number, end: number): number {
  let i = at + 1;
  while (i < end) {
    const byte = bytes[i] as number;
    if (byte === quote) return i + 1;
    i += byte === backslash ? 2 : 1;
  }
  return -1;
}

/**
 * The members of an object, one after another: each in the fields of the scan, so that nothing is allocated for it.
 * A scan is used again by `begin`. Hot.
 */
export class MemberScan {
  /** Of the member found last: the text of its key, and the span of its value. */
  key = "";
  from = 0;
  to = 0;
  /** When there are no more members: the position after the object, or -1 when the text ends before it. */
  endAt = -1;
  #bytes: Buffer = noBytes;
  #at = 0;
  #end = 0;
  #ends: ValueEnds | undefined;
  #isFirst = true;

  /**
   * Begins with the object at `at`; the text ends at `end`.
   * @param ends known ends of values, which are not scanned again.
   */
  begin(bytes: Buffer, at: number, end: number, ends?: ValueEnds): this {
    this.#bytes = bytes;
    this.#at = at + 1;
    this.#end = end;
    this.#ends = ends;
    this.#isFirst = true;
    this.endAt = -1;
    return this;
  }

  /** @returns false when there are no more, or the text ends before the next one does. @throws EngineError json-invalid */
  next(): boolean {
    const bytes = this.#bytes;
    const end = this.#end;
    let at = skipSpace(bytes, this.#at, end);
    if (at >= end) return false;
    if (bytes[at] === objectClose) {
      this.endAt = at + 1;
      return false;
    }
    if (!this.#isFirst) {
      if (bytes[at] !== comma) throw misplaced(bytes, at);
      at = skipSpace(bytes, at + 1, end);
    }
    this.#isFirst = false;
    if (!this.nextKey(bytes, at, end)) return false;
    const { from } = this;
    const to = this.#ends?.get(from) ?? rawValueEnd(bytes, from, end);
    if (to < 0) return false;
    this.to = to;
    this.#at = to;
    return true;
  }

  /**
   * Sets `key` to the one at `at`, and `from` to the start of its value.
   * @returns false when the text ends before that. @throws EngineError json-invalid
   */
  nextKey(bytes: Buffer, at: number, end: number): boolean {
    if (at >= end) return false;
    if (bytes[at] !== quote) throw misplaced(bytes, at);
    const to = rawStringEnd(bytes, at, end);
    if (to < 0) return false;
    const colon = skipSpace(bytes, to, end);
    if (colon >= end) return false;
    if (bytes[colon] !== colonByte) throw misplaced(bytes, colon);
    this.from = skipSpace(bytes, colon + 1, end);
    if (this.from >= end) return false;
    this.key = rawString(bytes, at, to);
    return true;
  }

  /** Keeps no reference to the text. */
  letGo(): void {
    this.#bytes = noBytes;
    this.#ends = undefined;
  }
}

/**
 * Calls `member` with each member of the object that begins at `at`: the text of its key and the span of its value.
 * @param ends known ends of values, which are not scanned again.
 * @throws EngineError json-truncated, json-invalid
 */
export function eachRawMember(
  bytes: Buffer,
  at: number,
  end: number,
  member: (key: string, from: number, to: number) => void,
  ends?: ValueEnds,
): void {
  const scan = new MemberScan().begin(bytes, at, end, ends);
  while (scan.next()) member(scan.key, scan.from, scan.to);
  if (scan.endAt < 0) throw truncated();
}

/** Strings that are common in commands, by length: if they are found in the bytes, no new string is created. */
const frequentStrings: readonly (readonly string[])[] = (() => {
  const texts = ["Id", "Type", "Document", "ChangeVector", "ForceRevisionCreationStrategy"];
  const byLength: string[][] = [];
  for (const text of [...texts, "PUT", "PATCH", "DELETE", "None"]) {
    while (byLength.length <= text.length) byLength.push([]);
    byLength[text.length]?.push(text);
  }
  return byLength;
})();

function frequentString(bytes: Buffer, from: number, to: number): string | null {
  const candidates = frequentStrings[to - from];
  if (candidates === undefined) return null;
  for (const text of candidates) {
    let at = 0;
    while (at < text.length && text.charCodeAt(at) === bytes[from + at]) at++;
    if (at === text.length) return text;
  }
  return null;
}

/** Returns the text of the string `[from, to)`, whose span includes the quotes. @throws EngineError json-invalid */
export function rawString(bytes: Buffer, from: number, to: number): string {
  const frequent = frequentString(bytes, from + 1, to - 1);
  if (frequent !== null) return frequent;
  for (let i = from + 1; i < to - 1; i++) {
    const byte = bytes[i] as number;
    if (byte < 0x20 || byte >= 0x7f || byte === backslash) {
      return parsedText(bytes, from, to) as string;
    }
  }
  return bytes.latin1Slice(from + 1, to - 1);
}

/**
 * Returns the value `[from, to)` as a JavaScript value; numbers are the nearest doubles. @throws EngineError
 * json-invalid
 */
export function parsedText(bytes: Buffer, from: number, to: number): unknown {
  if (isNullText(bytes, from, to)) return null;
  if (!isUtf8(bytes.subarray(from, to))) throw new EngineError("json-invalid", "Not UTF-8");
  try {
    return JSON.parse(bytes.utf8Slice(from, to)) as unknown;
  } catch (error) {
    throw new EngineError("json-invalid", `Not JSON: ${(error as Error).message}`);
  }
}

/** Returns whether the value is `null`. */
export function isNullText(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from !== 4 || bytes[from] !== 0x6e || bytes[from + 1] !== 0x75) return false;
  return bytes[from + 2] === 0x6c && bytes[from + 3] === 0x6c;
}

export function truncated(): EngineError {
  return new EngineError("json-truncated", "Attempted to read past the end of the stream.");
}

export function misplaced(bytes: Uint8Array, at: number): EngineError {
  const character = String.fromCharCode(bytes[at] as number);
  return new EngineError("json-invalid", `Cannot have a '${character}' in position ${at}`);
}

/** Returns the error for a wrong value at `at`, where `token` is required. */
export function unexpected(token: string, bytes: Uint8Array, at: number): EngineError {
  const found = tokenName(bytes, at);
  if (found === "") return misplaced(bytes, at);
  return new EngineError("invalid-operation", `Expected ${token} , but got ${found}`);
}
