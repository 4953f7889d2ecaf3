/**
 * Decodes the header blocks of a connection (HPACK, RFC 7541). Blocks are decoded in the order in which they came, all
 * of them, whatever becomes of their streams: the table that both sides keep follows from them. A block far over the
 * limit ends the connection instead.
 */
import { ConnectionError, errorCodes } from "./frames.ts";
import { fieldBytes, type HeaderField, headerField, staticFields } from "./header-field.ts";
import { decodeHuffman } from "./huffman.ts";

/** Bytes of the table that a peer may make us keep: the default of HTTP/2. */
export const tableBytesMax = 4096;
/** Entries before the first one in use at which the list is shortened. */
const staleMax = 128;
/** Numbers that are larger than anything that is taken here. */
const numberMax = 2 ** 24;

/**
 * Maximum size of a header block and of the list that it stands for, as a multiple of what a request may have. A larger
 * one ends its connection, since decoding it for the table takes time; a smaller one over the limit is refused.
 */
export const blockShare = 4;

export interface HeaderLimits {
  /** Bytes of all fields of a request, as RFC 7541 counts them. */
  readonly headerBytesMax: number;
  readonly headerCountMax: number;
}

export class HeaderDecoder {
  readonly #limits: HeaderLimits;
  /** The oldest first; those before `#first` are given up. */
  #table: HeaderField[] = [];
  #first = 0;
  #tableBytes = 0;
  #tableBytesMax = tableBytesMax;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  constructor(limits: HeaderLimits) {
    this.#limits = limits;
  }

  /**
   * The fields of a block; undefined: they are over a limit.
   * @throws ConnectionError COMPRESSION_ERROR; ENHANCE_YOUR_CALM far over the limit (`blockShare`)
   */
  decode(bytes: Buffer, start: number, end: number): HeaderField[] | undefined {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    const { headerBytesMax, headerCountMax } = this.#limits;
    const fields: HeaderField[] = [];
    let length = 0;
    let isFirst = true;
    while (this.#at < end) {
      const byte = bytes[this.#at] as number;
      if (byte >= 0x20 && byte < 0x40) {
        if (!isFirst) throw broken();
        this.#resize(this.#number(0x1f));
        continue;
      }
      isFirst = false;
      const field = byte >= 0x80 ? this.#known(this.#number(0x7f)) : this.#literal(byte);
      length += fieldBytes(field);
      if (length > blockShare * headerBytesMax) throw tooManyHeaders();
      if (length <= headerBytesMax && fields.length <= headerCountMax) fields.push(field);
    }
    this.#bytes = none;
    return length <= headerBytesMax && fields.length <= headerCountMax ? fields : undefined;
  }

  #literal(byte: number): HeaderField {
    const isKept = byte >= 0x40;
    const index = this.#number(isKept ? 0x3f : 0x0f);
    const name = index === 0 ? this.#string() : this.#known(index).name;
    const field = headerField(name, this.#string());
    if (isKept) this.#keep(field);
    return field;
  }

  #known(index: number): HeaderField {
    const field =
      index <= staticFields.length
        ? staticFields[index - 1]
        : this.#table[this.#table.length - (index - staticFields.length)];
    const isGivenUp = index > staticFields.length + this.#table.length - this.#first;
    if (field === undefined || isGivenUp) throw broken();
    return field;
  }

  #keep(field: HeaderField): void {
    this.#table.push(field);
    this.#tableBytes += fieldBytes(field);
    this.#shrink();
  }

  #resize(bytesMax: number): void {
    if (bytesMax > tableBytesMax) throw broken();
    this.#tableBytesMax = bytesMax;
    this.#shrink();
  }

  #shrink(): void {
    while (this.#tableBytes > this.#tableBytesMax) {
      this.#tableBytes -= fieldBytes(this.#table[this.#first++] as HeaderField); // the table is not empty
    }
    if (this.#first < staleMax) return;
    this.#table = this.#table.slice(this.#first);
    this.#first = 0;
  }

  /** A number whose first bits are those of `mask` in the next byte (RFC 7541, 5.1). */
  #number(mask: number): number {
    let number = this.#byte() & mask;
    if (number < mask) return number;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#byte();
      number += (byte & 0x7f) * factor;
      if (number > numberMax || factor > numberMax) throw broken();
      if (byte < 0x80) return number;
    }
  }

  #string(): string {
    if (this.#at >= this.#end) throw broken();
    const isHuffman = (this.#bytes[this.#at] as number) >= 0x80;
    const length = this.#number(0x7f);
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#end) throw broken();
    if (!isHuffman) return this.#bytes.latin1Slice(start, this.#at);
    const text = decodeHuffman(this.#bytes, start, this.#at);
    if (text === undefined) throw broken();
    return text;
  }

  #byte(): number {
    if (this.#at >= this.#end) throw broken();
    return this.#bytes[this.#at++] as number;
  }
}

const none = Buffer.alloc(0);

export function tooManyHeaders(): ConnectionError {
  return new ConnectionError(errorCodes.enhanceYourCalm, "headers over the limit");
}

function broken(): ConnectionError {
  return new ConnectionError(errorCodes.compression, "a header block that cannot be decoded");
}
