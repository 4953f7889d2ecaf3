/**
 * The results of parsing one text, as a value that can be passed on. The results are in the parser's memory, which its
 * next parse overwrites, so the value carries their version: one small object for each text.
 *
 * Invariants:
 * - Using a value after its parser has begun with another text throws an InvariantError, and never returns data of that
 *   text.
 */
import { assert } from "../../base/assert.ts";
import { byteObjectClose, copyBytes } from "../../base/json/bytes.ts";

/** The results of one parse. Belongs to the parser: copy the needed data. */
export interface ParseResults {
  /**
   * The stored text: `bodyLength` bytes of `source` from `sourceStart`, except that the last byte of a document's text
   * is a brace, whatever the buffer contains there. It is the input itself if nothing before its `@metadata`, which is
   * usually last, needed a change.
   */
  readonly source: Buffer;
  readonly sourceStart: number;
  readonly bodyLength: number;
  /** Whether every byte of the body is below 0x80. */
  readonly isAscii: boolean;
  /** 0 = none: an empty document, too many fields, or no room in the shape table. */
  readonly shapeId: number;
  /** Number of offsets: the shape's field count, or 0 without a shape. */
  readonly fieldCount: number;
  /** Offset of each top-level value from the start of the body, in the order of the shape. */
  readonly fieldOffsets: Uint32Array;
  /** The minified text of the `@metadata` object; its length is 0 if the document has no metadata. */
  readonly metadata: Buffer;
  readonly metadataLength: number;
  /**
   * The members of `@metadata`, `metadataSpanSlots` numbers each: start and end (exclusive) of the key with its quotes,
   * start and end of the value, as positions in `metadata`.
   */
  readonly metadataSpans: Int32Array;
  readonly metadataCount: number;
  /** Incremented when `metadata` changes; metadata equal to that of the previous document does not change it. */
  readonly metadataVersion: number;
  /** Position after the value in the input. */
  readonly endAt: number;
}

/** The results as their parser writes them. */
export class ParserMemory implements ParseResults {
  /** Incremented when a parse begins, and when its output is moved. */
  version = 0;
  source: Buffer;
  sourceStart = 0;
  bodyLength = 0;
  isAscii = true;
  shapeId = 0;
  fieldCount = 0;
  fieldOffsets: Uint32Array;
  metadata: Buffer;
  metadataLength = 0;
  metadataSpans = new Int32Array(64);
  metadataCount = 0;
  metadataVersion = 0;
  endAt = 0;
  /** The buffer for stored text that differs from the input: at least as long as that. */
  own: Buffer;

  constructor(bytes: number, fieldCountMax: number) {
    this.own = Buffer.allocUnsafeSlow(bytes);
    this.source = this.own;
    this.metadata = Buffer.allocUnsafeSlow(bytes);
    this.fieldOffsets = new Uint32Array(fieldCountMax);
  }

  /** Returns the stored text, moved to memory of the parser if it is still in the input. */
  body(): Buffer {
    if (this.source !== this.own) {
      const last = this.bodyLength - 1;
      copyBytes(this.own, 0, this.source, this.sourceStart, this.sourceStart + last);
      this.own[last] = byteObjectClose;
      this.source = this.own;
      this.sourceStart = 0;
    }
    return this.own.subarray(0, this.bodyLength);
  }
}

/** Where the body of a large document is that was parsed before its transaction: see writes/prepared-document.ts. */
export interface PlacedBody {
  readonly bytes: Buffer;
  /** The body is in `bytes` from here on. */
  readonly bodyStart: number;
  /** CRC-32 of the body. */
  readonly bodyCrc: number;
}

/** A JSON value that was parsed. */
export class ParsedValue {
  readonly #memory: ParserMemory;
  readonly #version: number;

  constructor(memory: ParserMemory) {
    this.#memory = memory;
    this.#version = memory.version;
  }

  /** Its minified text; valid until the parser parses again. @throws InvariantError when it already has */
  get body(): Buffer {
    assert(this.#memory.version === this.#version, staleText);
    return this.#memory.body();
  }

  /** Position after the value in the input. @throws InvariantError when the parser has parsed something else */
  get endAt(): number {
    assert(this.#memory.version === this.#version, staleText);
    return this.#memory.endAt;
  }
}

/** A document that was parsed. */
export class ParsedDocument {
  /** Null: its body is where the parser left it. */
  readonly placed: PlacedBody | null;
  readonly #memory: ParserMemory;
  readonly #version: number;

  constructor(memory: ParserMemory, placed: PlacedBody | null = null) {
    this.#memory = memory;
    this.#version = memory.version;
    this.placed = placed;
  }

  /** Returns the results of the parser. @throws InvariantError if the parser has parsed another text since */
  get found(): ParseResults {
    assert(this.#memory.version === this.#version, staleText);
    return this.#memory;
  }

  /**
   * The stored text: the body without `@metadata`, minified; valid until the parser parses again. @throws
   * InvariantError when it already has
   */
  get body(): Buffer {
    assert(this.#memory.version === this.#version, staleText);
    return this.#memory.body();
  }
}

const staleText = "parse results are used before their parser parses another text";
