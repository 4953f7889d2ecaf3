/** Walks the candidates of a query that are lists: of documents, or of the entries of reduced objects. */
import type { IndexReader } from "../../indexing/index-reader.ts";
import type { PlacedCursor } from "./row-entry.ts";
import type { GroupOutputs, RowCursor, RowSource, StoredRow } from "./row-source.ts";

const noBytes = Buffer.alloc(0);

/** Documents by number, in the order of a list. Documents that were deleted in the meantime are left out. */
export class ListCursor implements RowCursor, PlacedCursor {
  readonly row: StoredRow = { docNum: 0, etag: 0, bytes: noBytes, start: 0, block: null };
  pending: Promise<void> | null = null;
  readonly #docNums: Uint32Array;
  readonly #source: RowSource;
  #at = 0;

  constructor(docNums: Uint32Array, source: RowSource) {
    this.#docNums = docNums;
    this.#source = source;
  }

  /** Position of the current row in the list. */
  get position(): number {
    return this.#at - 1;
  }

  next(): boolean {
    this.pending = null;
    while (this.#at < this.#docNums.length) {
      if (this.#source.readListed(this.#docNums, this.#at, this.row)) {
        this.#at++;
        return true;
      }
      this.pending = this.#source.pending();
      if (this.pending !== null) return false;
      this.#at++;
    }
    return false;
  }
}

/** Reduced objects as rows of bare text. Objects that were removed in the meantime are left out. */
export class GroupCursor implements RowCursor, PlacedCursor {
  readonly row: StoredRow = { docNum: -1, etag: 0, bytes: noBytes, start: -1, block: null };
  readonly pending = null;
  readonly #entries: Uint32Array;
  readonly #outputs: GroupOutputs;
  readonly #reader: IndexReader;
  #at = 0;

  constructor(entries: Uint32Array, outputs: GroupOutputs, reader: IndexReader) {
    this.#entries = entries;
    this.#outputs = outputs;
    this.#reader = reader;
  }

  /** Position of the current row in the list. */
  get position(): number {
    return this.#at - 1;
  }

  next(): boolean {
    while (this.#at < this.#entries.length) {
      const entry = this.#reader.currentOf(this.#entries[this.#at++] as number);
      if (entry < 0) continue;
      this.row.bytes = Buffer.from(this.#outputs.textOf(entry));
      return true;
    }
    return false;
  }
}
