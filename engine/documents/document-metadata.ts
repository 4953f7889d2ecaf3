/**
 * The stored members of a document's `@metadata`: which of them are kept, and in what order.
 *
 * Members that the server generates on reading (`managedKeys`) are dropped from client input; the server adds its own
 * `@attachments`, `@counters` and `@timeseries`. The rest is kept verbatim, sorted by the bytes of its keys, as RavenDB
 * 7.2.7 stores it.
 *
 * Knows nothing of records and of what the members mean, except `@collection`.
 */
import { assert } from "../base/assert.ts";
import { byteBackslash, byteComma, byteQuote, bytesEqual, copyBytes } from "../json/bytes.ts";
import { quoteString, simpleEscape } from "../json/escape.ts";
import { decodeString, skipString, skipValue } from "../json/field-access.ts";
import { type DocumentParser, metadataSpanSlots } from "./document-parser.ts";

/** Keys of `@metadata` that a client cannot set. */
export const managedKeys: readonly string[] = [
  "@attachments",
  "@change-vector",
  "@counters",
  "@etag",
  "@flags",
  "@id",
  "@index-score",
  "@last-modified",
  "@timeseries",
];

/** Name of the collection of documents that name none. */
export const emptyCollection = "@empty";

/** A member that the server adds to stored metadata. */
export interface ServerMember {
  readonly key: string;
  /** Minified text of its value; null removes the member. */
  readonly valueText: Buffer | null;
}

const managedTexts = managedKeys.map((key) => quoteString(key));
const collectionText = quoteString("@collection");

/** A member in some text: its key with quotes, a colon, its value. */
interface Member {
  readonly text: Buffer;
  readonly keyFrom: number;
  readonly keyTo: number;
  readonly valueTo: number;
}

/** Composes stored metadata. Its result is in fields that the next call overwrites. */
export class MetadataWriter {
  /** The members without braces. */
  text: Buffer = Buffer.allocUnsafeSlow(1024);
  length = 0;
  /** The collection in the members; `@empty` when `@collection` is absent or not a string. */
  collection: string = emptyCollection;
  /** Is `text` exactly one member, sent by a client? Then also the parser and the version of its text. */
  #isOneSent = false;
  #parser: DocumentParser | null = null;
  #version = 0;
  /** The collection member that `isOnly` last found to be the whole metadata. */
  #only: Buffer | null = null;

  /**
   * Composes the stored members from those of a client.
   * @param parser holds the document just parsed.
   * @param serverMembers replace members of the same key, managed or not.
   */
  fromParser(parser: DocumentParser, serverMembers: readonly ServerMember[]): void {
    const text = parser.metadata;
    const spans = parser.metadataSpans;
    const isOne = parser.metadataCount === 1 && serverMembers.length === 0;
    if (isOne && this.#isOneSent && parser === this.#parser) {
      // Usually it is the same `@collection` as in the previous document: then the result is already there.
      if (parser.metadataVersion === this.#version) return;
      this.#version = parser.metadataVersion;
      const from = spans[0] as number;
      const length = (spans[3] as number) - from;
      if (length === this.length && bytesEqual(text, from, this.text, 0, length)) return;
    }
    const members: Member[] = [];
    for (let at = 0; at < parser.metadataCount * metadataSpanSlots; at += metadataSpanSlots) {
      const keyFrom = spans[at] as number;
      const keyTo = spans[at + 1] as number;
      if (isManaged(text, keyFrom, keyTo)) continue;
      members.push({ text, keyFrom, keyTo, valueTo: spans[at + 3] as number });
    }
    this.#write(members, serverMembers);
    this.#isOneSent = isOne && members.length === 1;
    this.#parser = parser;
    this.#version = parser.metadataVersion;
  }

  /** Keeps no reference to `parser`, which holds a whole document. */
  forget(parser: DocumentParser): void {
    if (this.#parser === parser) this.#parser = null;
  }

  /**
   * Composes the stored members from previously stored ones: for rewriting a document when its attachments, counters or
   * time series have changed.
   * @param text,start,length the members' text; with length 0 pass the collection's own member.
   */
  fromStored(
    text: Buffer,
    start: number,
    length: number,
    serverMembers: readonly ServerMember[],
  ): void {
    const members: Member[] = [];
    const end = start + length;
    for (let keyFrom = start; keyFrom < end; ) {
      const keyTo = skipString(text, keyFrom);
      // The last value may be followed by any byte, but a number ends where the members end.
      const valueTo = Math.min(skipValue(text, keyTo + 1), end);
      members.push({ text, keyFrom, keyTo, valueTo });
      keyFrom = valueTo + 1;
    }
    this.#write(members, serverMembers);
  }

  /** Are the members just this one, so that none need be stored? */
  isOnly(collectionMember: Buffer): boolean {
    if (collectionMember === this.#only) return true;
    const isOnly =
      this.length === collectionMember.length &&
      bytesEqual(this.text, 0, collectionMember, 0, this.length);
    if (isOnly) this.#only = collectionMember;
    return isOnly;
  }

  #write(members: Member[], serverMembers: readonly ServerMember[]): void {
    this.#isOneSent = false;
    this.#only = null;
    let kept = members;
    for (const { key, valueText } of serverMembers) {
      const name = quoteString(key);
      kept = kept.filter((member) => !isKey(member.text, member.keyFrom, member.keyTo, name));
      if (valueText === null) continue;
      const text = Buffer.concat([name, Buffer.from(":"), valueText]);
      kept.push({ text, keyFrom: 0, keyTo: name.length, valueTo: text.length });
    }
    if (kept.length > 1) kept.sort(compareKeys);
    let needed = 0;
    for (const member of kept) needed += member.valueTo - member.keyFrom + 1;
    if (this.text.length < needed) this.text = Buffer.allocUnsafeSlow(2 * needed);
    this.collection = emptyCollection;
    let at = 0;
    for (const { text, keyFrom, keyTo, valueTo } of kept) {
      assert(text !== this.text, "metadata is not written over its own source");
      if (at > 0) this.text[at++] = byteComma;
      copyBytes(this.text, at, text, keyFrom, valueTo);
      at += valueTo - keyFrom;
      if (text[keyTo + 1] === byteQuote && isKey(text, keyFrom, keyTo, collectionText)) {
        this.collection = decodeString(text, keyTo + 1, valueTo);
      }
    }
    this.length = at;
  }
}

function isKey(text: Uint8Array, from: number, to: number, name: Uint8Array): boolean {
  return to - from === name.length && bytesEqual(text, from, name, 0, name.length);
}

function isManaged(text: Uint8Array, from: number, to: number): boolean {
  if (text[from + 1] !== 0x40) return false;
  for (const name of managedTexts) if (isKey(text, from, to, name)) return true;
  return false;
}

/** Orders two keys by the bytes that they represent, not by their escapes. */
function compareKeys(a: Member, b: Member): number {
  let i = a.keyFrom + 1;
  let j = b.keyFrom + 1;
  while (i < a.keyTo - 1 && j < b.keyTo - 1) {
    const difference = characterAt(a.text, i) - characterAt(b.text, j);
    if (difference !== 0) return difference;
    i += characterLength(a.text, i);
    j += characterLength(b.text, j);
  }
  return a.keyTo - 1 - i - (b.keyTo - 1 - j);
}

/** The byte at `at` in a stored string, or the one that the escape there represents. */
function characterAt(text: Buffer, at: number): number {
  if (text[at] !== byteBackslash) return text[at] as number;
  if (text[at + 1] !== 0x75) return simpleEscape(text[at + 1] as number);
  return Number.parseInt(text.latin1Slice(at + 2, at + 6), 16);
}

function characterLength(text: Buffer, at: number): number {
  if (text[at] !== byteBackslash) return 1;
  return text[at + 1] === 0x75 ? 6 : 2;
}
