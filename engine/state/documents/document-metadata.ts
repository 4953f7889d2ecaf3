/**
 * The stored members of a document's `@metadata`: selection and order.
 *
 * Members that the server generates on reading (`managedKeys`) are dropped from client input; the server adds its own
 * `@attachments`, `@counters` and `@timeseries`. The rest is kept verbatim, sorted by the bytes of its keys, as RavenDB
 * 7.2.7 stores it.
 *
 * Independent of records and of the meaning of members, except `@collection`.
 */
import { assert } from "../../base/assert.ts";
import {
  byteBackslash,
  byteComma,
  byteQuote,
  bytesEqual,
  copyBytes,
} from "../../base/json/bytes.ts";
import { quoteString, simpleEscape } from "../../base/json/escape.ts";
import { decodeString, skipString, skipValue } from "../../base/json/field-access.ts";
import { metadataSpanSlots } from "./document-parser.ts";
import type { ParsedDocument, ParseResults } from "./parsed-document.ts";

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
const emptyCollection = "@empty";

/** A member that the server adds to stored metadata. */
export interface ServerMember {
  readonly key: string;
  /** Minified text of its value; null removes the member. */
  readonly valueText: Buffer | null;
}

/** Returns a JSON array of minified values as a `valueText`. Null if `texts` is empty. */
export function listText(texts: readonly string[]): Buffer | null {
  return texts.length === 0 ? null : Buffer.from(`[${texts.join(",")}]`);
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

/** The text that a writer composed last. */
class WriterMemory {
  text: Buffer = Buffer.allocUnsafeSlow(1024);
  /** Incremented when `text` is overwritten. */
  version = 0;
}

/** Stored metadata that was composed: a value that is good until its writer composes another. */
export class ComposedMetadata {
  readonly length: number;
  /** The collection in the members; `@empty` when `@collection` is absent or not a string. */
  readonly collection: string;
  readonly #memory: WriterMemory;
  readonly #version: number;
  /** The collection member that `isOnly` last found to be the whole metadata. */
  #only: Buffer | null = null;

  constructor(memory: WriterMemory, length: number, collection: string) {
    this.#memory = memory;
    this.#version = memory.version;
    this.length = length;
    this.collection = collection;
  }

  /** The members without braces: `length` bytes from 0. @throws InvariantError when the writer has composed others */
  get text(): Buffer {
    assert(this.#memory.version === this.#version, "metadata is used before other is composed");
    return this.#memory.text;
  }

  /** Returns whether this is the only member, so that none need be stored. */
  isOnly(collectionMember: Buffer): boolean {
    if (collectionMember === this.#only) return true;
    const { text, length } = this;
    const isOnly =
      length === collectionMember.length && bytesEqual(text, 0, collectionMember, 0, length);
    if (isOnly) this.#only = collectionMember;
    return isOnly;
  }
}

/** Composes stored metadata, always in the same memory. */
export class MetadataWriter {
  readonly #memory = new WriterMemory();
  /**
   * The composed metadata in memory, if it is exactly one member, sent by a client; then also the version of its text.
   */
  #sent: ComposedMetadata | null = null;
  #source: ParseResults | null = null;
  #version = 0;

  /**
   * Composes the stored members from those of a client.
   * @param serverMembers replace members of the same key, managed or not.
   */
  fromParsed(parsed: ParsedDocument, serverMembers: readonly ServerMember[]): ComposedMetadata {
    const { found } = parsed;
    const { metadata: text, metadataSpans: spans, metadataCount } = found;
    const isOne = metadataCount === 1 && serverMembers.length === 0;
    const sent = this.#sent;
    if (isOne && sent !== null && found === this.#source) {
      // Usually it is the same `@collection` as in the previous document: then the result is already there.
      if (found.metadataVersion === this.#version) return sent;
      this.#version = found.metadataVersion;
      const from = spans[0] as number;
      const length = (spans[3] as number) - from;
      if (length === sent.length && bytesEqual(text, from, sent.text, 0, length)) return sent;
    }
    const members: Member[] = [];
    for (let at = 0; at < metadataCount * metadataSpanSlots; at += metadataSpanSlots) {
      const keyFrom = spans[at] as number;
      const keyTo = spans[at + 1] as number;
      if (isManaged(text, keyFrom, keyTo)) continue;
      members.push({ text, keyFrom, keyTo, valueTo: spans[at + 3] as number });
    }
    const composed = this.#write(members, serverMembers);
    // The parser of a large document parses no other, and has the memory of that one.
    const isRemembered = parsed.placed === null;
    this.#sent = isRemembered && isOne && members.length === 1 ? composed : null;
    this.#source = isRemembered ? found : null;
    this.#version = found.metadataVersion;
    return composed;
  }

  /** Drops the references to the last composed metadata and its parser. */
  forget(): void {
    this.#sent = null;
    this.#source = null;
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
  ): ComposedMetadata {
    const members: Member[] = [];
    const end = start + length;
    for (let keyFrom = start; keyFrom < end; ) {
      const keyTo = skipString(text, keyFrom);
      // The last value may be followed by any byte, but a number ends where the members end.
      const valueTo = Math.min(skipValue(text, keyTo + 1), end);
      members.push({ text, keyFrom, keyTo, valueTo });
      keyFrom = valueTo + 1;
    }
    return this.#write(members, serverMembers);
  }

  #write(members: Member[], serverMembers: readonly ServerMember[]): ComposedMetadata {
    const memory = this.#memory;
    memory.version++;
    this.#sent = null;
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
    if (memory.text.length < needed) memory.text = Buffer.allocUnsafeSlow(2 * needed);
    const target = memory.text;
    let collection = emptyCollection;
    let at = 0;
    for (const { text, keyFrom, keyTo, valueTo } of kept) {
      assert(text !== target, "metadata is not written over its own source");
      if (at > 0) target[at++] = byteComma;
      copyBytes(target, at, text, keyFrom, valueTo);
      at += valueTo - keyFrom;
      if (text[keyTo + 1] === byteQuote && isKey(text, keyFrom, keyTo, collectionText)) {
        collection = decodeString(text, keyTo + 1, valueTo);
      }
    }
    return new ComposedMetadata(memory, at, collection);
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

/** Returns the byte at `at` in a stored string, or the character that the escape there represents. */
function characterAt(text: Buffer, at: number): number {
  if (text[at] !== byteBackslash) return text[at] as number;
  if (text[at + 1] !== 0x75) return simpleEscape(text[at + 1] as number);
  return Number.parseInt(text.latin1Slice(at + 2, at + 6), 16);
}

function characterLength(text: Buffer, at: number): number {
  if (text[at] !== byteBackslash) return 1;
  return text[at + 1] === 0x75 ? 6 : 2;
}
