/**
 * The parts of an index in its snapshot: arrays by name, and small values as JSON. Knows nothing of files.
 *
 * Invariants:
 * - Arrays passed to a writer must not change until they are written: callers copy arrays that may change.
 */

/** An intact snapshot that cannot be used: of another version, or of other contents. */
export class UnusableSnapshot extends Error {
  override readonly name = "UnusableSnapshot";
}

/** Named bytes, in chunks. */
interface SavedPart {
  readonly name: string;
  readonly parts: readonly Uint8Array[];
}

export class PartWriter {
  readonly sections: SavedPart[];
  readonly values: Record<string, unknown>;
  readonly #prefix: string;

  constructor(
    prefix = "",
    sections: SavedPart[] = [],
    values: Record<string, unknown> = Object.create(null),
  ) {
    this.#prefix = prefix;
    this.sections = sections;
    this.values = values;
  }

  /** Returns a writer for a nested part. */
  under(name: string): PartWriter {
    return new PartWriter(`${this.#prefix}${name}/`, this.sections, this.values);
  }

  /** The bytes of a typed array, by reference: later changes are written too. */
  add(name: string, ...arrays: readonly ArrayBufferView[]): void {
    const parts = arrays.map(
      ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
    );
    this.sections.push({ name: this.#prefix + name, parts });
  }

  /** A small JSON value. */
  set(name: string, value: unknown): void {
    this.values[this.#prefix + name] = value;
  }
}

export class PartReader {
  readonly #sections: ReadonlyMap<string, Buffer>;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #prefix: string;

  /** Each section starts at a multiple of 8 in memory, and is owned by the reader. */
  constructor(
    sections: ReadonlyMap<string, Buffer>,
    values: Readonly<Record<string, unknown>>,
    prefix = "",
  ) {
    this.#sections = sections;
    this.#values = values;
    this.#prefix = prefix;
  }

  under(name: string): PartReader {
    return new PartReader(this.#sections, this.#values, `${this.#prefix}${name}/`);
  }

  /** Returns whether there is a part of bytes. */
  has(name: string): boolean {
    return this.#sections.has(this.#prefix + name);
  }

  /** @throws UnusableSnapshot when the part is missing */
  bytes(name: string): Buffer {
    const found = this.#sections.get(this.#prefix + name);
    if (found === undefined) throw this.#lacks(name);
    return found;
  }

  /** As `bytes`. */
  uint32(name: string): Uint32Array {
    const bytes = this.bytes(name);
    return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 2);
  }

  /** As `bytes`. */
  float64(name: string): Float64Array {
    const bytes = this.bytes(name);
    return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >>> 3);
  }

  /** Returns a value written by `set`; the caller knows its type. @throws UnusableSnapshot when it is missing */
  get<Value>(name: string): Value {
    const value = this.#values[this.#prefix + name];
    if (value === undefined) throw this.#lacks(name);
    return value as Value;
  }

  #lacks(name: string): UnusableSnapshot {
    return new UnusableSnapshot(`it lacks '${this.#prefix}${name}'`);
  }
}

/** Texts as bytes, each with a length prefix; 2^32 - 1 for null. */
export function savedTexts(texts: Iterable<string | null>): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let chunk = Buffer.allocUnsafe(textChunkBytes);
  let used = 0;
  for (const text of texts) {
    const length = text === null ? 0 : Buffer.byteLength(text);
    if (used + 4 + length > chunk.length) {
      parts.push(chunk.subarray(0, used));
      chunk = Buffer.allocUnsafe(Math.max(textChunkBytes, 4 + length));
      used = 0;
    }
    chunk.writeUInt32LE(text === null ? nullLength : length, used);
    if (text !== null) chunk.write(text, used + 4);
    used += 4 + length;
  }
  parts.push(chunk.subarray(0, used));
  return parts;
}

/** Yields the texts of `savedTexts`, one by one. */
export function* restoredTexts(bytes: Buffer): Generator<string | null> {
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    at += 4;
    if (length === nullLength) yield null;
    else {
      yield bytes.toString("utf8", at, at + length);
      at += length;
    }
  }
}

const textChunkBytes = 256 * 1024;
const nullLength = 0xffff_ffff;
