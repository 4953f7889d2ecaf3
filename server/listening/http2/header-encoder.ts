/**
 * Encodes the header blocks of a connection (HPACK, RFC 7541). What replies repeat is sent once and named by its number
 * from then on; strings are not compressed.
 */
import { validateHeaderValue } from "node:http";
import { tableBytesMax } from "./header-decoder.ts";
import { staticFields } from "./header-field.ts";

/** Fields whose values differ from reply to reply: to keep them in the table would push out what repeats. */
const changingNames: ReadonlySet<string> = new Set([
  "content-length",
  "content-range",
  "etag",
  "last-modified",
  "location",
  "request-time",
]);
/** Entries larger than this share of the table are not kept. */
const entryShare = 8;

const statusIndexes: ReadonlyMap<number, number> = new Map(
  [200, 204, 206, 304, 400, 404, 500].map((status, at) => [status, 8 + at]),
);
/** The first index of each name that both sides know from the start. */
const nameIndexes = firstIndexes();

function firstIndexes(): ReadonlyMap<string, number> {
  const indexes = new Map<string, number>();
  for (const [at, { name }] of staticFields.entries()) {
    if (!indexes.has(name)) indexes.set(name, at + 1);
  }
  return indexes;
}

interface Entry {
  readonly value: string;
  /** How many were kept before it. */
  readonly number: number;
}

export class HeaderEncoder {
  /** The newest entry of each name. */
  readonly #newest = new Map<string, Entry>();
  /** Bytes of the entries in use, the oldest first. */
  #sizes: number[] = [];
  #bytes = 0;
  #bytesMax = tableBytesMax;
  /** How many were ever kept. */
  #kept = 0;
  /** The smallest table that the peer asked for since the last block; undefined: it asked for none. */
  #smallest: number | undefined = undefined;

  /** The peer keeps a table of this size. */
  resize(bytesMax: number): void {
    const size = Math.min(bytesMax, tableBytesMax);
    if (size === this.#bytesMax && this.#smallest === undefined) return;
    this.#smallest = Math.min(size, this.#smallest ?? size);
    this.#bytesMax = size;
    this.#shrink(this.#smallest);
  }

  /** Bytes that a block of these fields takes at most. */
  bytesMax(fields: readonly string[]): number {
    let bytes = 32;
    for (const text of fields) bytes += text.length + 6;
    return bytes;
  }

  /**
   * Writes a block. `fields`: names and values in turn. @returns the position behind it
   * @throws TypeError for a value that no header can have, before anything is written
   */
  encode(status: number, fields: readonly string[], out: Buffer, start: number): number {
    for (let position = 0; position < fields.length; position += 2) {
      this.#check(fields[position] as string, fields[position + 1] as string);
    }
    let at = this.#sizeUpdates(out, start);
    const statusIndex = statusIndexes.get(status);
    if (statusIndex !== undefined) out[at++] = 0x80 | statusIndex;
    else {
      out[at++] = 0x08;
      at = writeString(out, at, String(status));
    }
    for (let position = 0; position < fields.length; position += 2) {
      at = this.#field(out, at, fields[position] as string, fields[position + 1] as string);
    }
    return at;
  }

  #check(name: string, value: string): void {
    if (this.#newest.get(name)?.value !== value) validateHeaderValue(name, value);
  }

  #field(out: Buffer, start: number, name: string, value: string): number {
    const entry = this.#newest.get(name);
    const age = entry === undefined ? Number.POSITIVE_INFINITY : this.#kept - entry.number;
    if (age <= this.#sizes.length && entry?.value === value) {
      return writeNumber(out, start, 0x80, 0x7f, staticFields.length + age);
    }
    const size = name.length + value.length + 32;
    const isKept = !changingNames.has(name) && size * entryShare <= this.#bytesMax;
    const index = nameIndexes.get(name) ?? 0;
    let at = isKept
      ? writeNumber(out, start, 0x40, 0x3f, index)
      : writeNumber(out, start, 0x00, 0x0f, index);
    if (index === 0) at = writeString(out, at, name);
    at = writeString(out, at, value);
    if (isKept) this.#keep(name, value, size);
    return at;
  }

  #keep(name: string, value: string, size: number): void {
    this.#newest.set(name, { value, number: this.#kept++ });
    this.#sizes.push(size);
    this.#bytes += size;
    this.#shrink(this.#bytesMax);
  }

  #shrink(bytesMax: number): void {
    while (this.#bytes > bytesMax) this.#bytes -= this.#sizes.shift() ?? 0;
  }

  #sizeUpdates(out: Buffer, start: number): number {
    const smallest = this.#smallest;
    if (smallest === undefined) return start;
    this.#smallest = undefined;
    const at = writeNumber(out, start, 0x20, 0x1f, smallest);
    return smallest === this.#bytesMax ? at : writeNumber(out, at, 0x20, 0x1f, this.#bytesMax);
  }
}

/** Writes a number behind the bits of `kind` (RFC 7541, 5.1). @returns the position behind it */
function writeNumber(
  out: Buffer,
  start: number,
  kind: number,
  mask: number,
  value: number,
): number {
  if (value < mask) {
    out[start] = kind | value;
    return start + 1;
  }
  out[start] = kind | mask;
  let at = start + 1;
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) out[at++] = (rest & 0x7f) | 0x80;
  out[at++] = rest;
  return at;
}

function writeString(out: Buffer, start: number, text: string): number {
  const at = writeNumber(out, start, 0x00, 0x7f, text.length);
  return at + out.latin1Write(text, at);
}
