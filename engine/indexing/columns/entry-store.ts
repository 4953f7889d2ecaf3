/**
 * The entries of one index: the document of each, which are live, and their values in columns. A document whose values
 * have changed gets new entries at the end; a removed entry is only marked dead. When many are dead, the live ones are
 * copied to a new store in slices while reads and writes go on.
 *
 * Results without an order are in the order of places. The place of an entry is its number, unless it replaced the one
 * entry of its document: then it has the place of that one, as with RavenDB 7.2.7, but not in an index for Lucene. A copy of
 * the store is made in the order of places: in it the numbers are the places again.
 *
 * Knows nothing of paths or collections: a caller adds values to the columns, then calls `endEntry`. A "document" may
 * be any numbered object, such as a group.
 *
 * Invariants:
 * - Entries of one document are adjacent; `firstOf(document)` is the first of them, while it has any.
 * - The place of an entry never changes, no two live ones have the same, and it is never above its number.
 * - Where the place of a live entry is not its number, the entry with this number is dead, and was of the same document.
 * - Every column has as many entries as the store.
 * - `liveCount` is the number of bits in `live`.
 */
import { assert } from "../../base/assert.ts";
import type { PartReader, PartWriter } from "../saved/saved-parts.ts";
import { TextColumn } from "../text/text-column.ts";
import { EntrySet } from "./entry-set.ts";
import { FieldColumn } from "./field-column.ts";
import { grownUint32 } from "./packed.ts";
import { type ColumnKind, restoreStride, type StoreColumn } from "./store-column.ts";

function columnOf(kind: ColumnKind): FieldColumn {
  return kind === "text" ? new TextColumn() : new FieldColumn();
}

/** A store is compacted when it has more dead entries than live ones, and more than this. */
const deadCountMin = 1024;
/** Number of places copied between two checks of the clock; the first check is after the first place. */
const copyStride = 256;

/** Document numbers in a snapshot, by entry; undefined for dead entries. */
export interface SavedDocuments {
  readonly documents: Uint32Array;
  /** One bit for each entry. */
  readonly live: Uint32Array;
}

export class EntryStore {
  readonly columns: FieldColumn[];
  /** Data stored for each entry besides its fields. */
  readonly extras: readonly StoreColumn[];
  /** Entry numbers are below this. */
  entryCount = 0;
  liveCount = 0;
  /** By entry. */
  documents: Uint32Array = new Uint32Array(16);
  /** One bit for each entry. */
  live: Uint32Array = new Uint32Array(1);
  /** By entry; null: the place of each is its number. */
  places: Uint32Array | null = null;
  /** Whether the entry of a document that has changed keeps its place. */
  keepsPlaces = true;
  /** Whether some document has, or had, more than one entry. */
  hasSeveral = false;
  /** By document: its first entry plus one; 0 if the document has no entry. */
  #firsts: Uint32Array = new Uint32Array(16);
  #compaction: Compaction | null = null;

  /** `columns`: the types of its columns, or the number of value columns. */
  constructor(columns: number | readonly ColumnKind[], extras: readonly StoreColumn[] = []) {
    const kinds =
      typeof columns === "number" ? new Array<ColumnKind>(columns).fill("values") : columns;
    this.columns = kinds.map(columnOf);
    this.extras = extras;
  }

  /** The kinds of its columns. */
  get kinds(): ColumnKind[] {
    return this.columns.map(({ isPacked }) => (isPacked ? "text" : "values"));
  }

  isLive(entry: number): boolean {
    return ((this.live[entry >>> 5] as number) & (1 << (entry & 31))) !== 0;
  }

  /** Adds a column that is empty for the existing entries. Only between entries. @returns its position */
  addColumn(kind: ColumnKind = "values"): number {
    const column = columnOf(kind);
    while (column.entryCount < this.entryCount) column.endEntry();
    this.columns.push(column);
    // A compaction in progress lacks the column: it restarts.
    this.#compaction = null;
    return this.columns.length - 1;
  }

  /** Returns all live entries. */
  all(): EntrySet {
    return EntrySet.ofWords(this.live.slice(0, (this.entryCount + 31) >>> 5));
  }

  /** Returns the place of an entry, which orders entries that have no other order. */
  placeOf(entry: number): number {
    return this.places === null ? entry : (this.places[entry] as number);
  }

  /**
   * Returns the live entry at a place, the first entry of its document if that has several; -1 if no entry is live
   * there.
   */
  entryAt(place: number): number {
    if (this.isLive(place)) return this.placeOf(place) === place ? place : -1;
    const entry = this.firstOf(this.documents[place] as number);
    return entry > place && this.placeOf(entry) === place ? entry : -1;
  }

  /** Returns the first entry of a document, or -1. */
  firstOf(document: number): number {
    return (this.#firsts[document] ?? 0) - 1;
  }

  /** Ends the entry whose values were added to the columns. @returns its number. */
  endEntry(document: number): number {
    const entry = this.entryCount++;
    if (entry >= this.documents.length) this.documents = grownUint32(this.documents, entry + 1);
    if (entry >>> 5 >= this.live.length) this.live = grownUint32(this.live, (entry >>> 5) + 1);
    this.documents[entry] = document;
    this.live[entry >>> 5] = (this.live[entry >>> 5] as number) | (1 << (entry & 31));
    this.liveCount++;
    if (document >= this.#firsts.length) this.#firsts = grownUint32(this.#firsts, document + 1);
    if (this.#firsts[document] === 0) this.#firsts[document] = entry + 1;
    else this.hasSeveral = true;
    for (const column of this.columns) column.endEntry();
    for (const extra of this.extras) extra.endEntry();
    if (this.places !== null) this.#setPlace(entry, entry);
    return entry;
  }

  #setPlace(entry: number, place: number): void {
    if (this.places === null) {
      this.places = new Uint32Array(this.documents.length);
      for (let at = 0; at < entry; at++) this.places[at] = at;
    }
    if (entry >= this.places.length) this.places = grownUint32(this.places, entry + 1);
    this.places[entry] = place;
  }

  /**
   * As `remove` and `endEntry`, for a document that has exactly one entry from now on. If the document had one entry,
   * its place is retained; if that entry had the same values, it remains unchanged, which costs a fraction.
   * @returns the number of its entry
   */
  replaceEntry(document: number): number {
    const first = this.firstOf(document);
    if (first < 0 || this.endOf(first) > first + 1) {
      this.remove(document);
      return this.endEntry(document);
    }
    if (this.#repeats(first)) {
      this.dropPending();
      return first;
    }
    if (!this.keepsPlaces) {
      this.remove(document);
      return this.endEntry(document);
    }
    const place = this.placeOf(first);
    this.#removeEntries(document, first, first + 1);
    const entry = this.endEntry(document);
    this.#setPlace(entry, place);
    this.#compaction?.replaced(first, entry);
    return entry;
  }

  /** Discards the values that were added since the last entry, for a document that could not be indexed completely. */
  dropPending(): void {
    for (const column of this.columns) column.dropPending();
    for (const extra of this.extras) extra.dropPending();
  }

  /** Returns whether the values that were added since the last entry equal those of `entry`. */
  #repeats(entry: number): boolean {
    for (const column of this.columns) if (!column.repeats(entry)) return false;
    for (const extra of this.extras) if (!extra.repeats(entry)) return false;
    return true;
  }

  /** Returns the end (exclusive) of the run of entries from `first` on that belong to the same document. */
  endOf(first: number): number {
    const document = this.documents[first];
    let entry = first + 1;
    while (entry < this.entryCount && this.documents[entry] === document && this.isLive(entry)) {
      entry++;
    }
    return entry;
  }

  /** Removes all entries of a document. @returns how many there were. */
  remove(document: number): number {
    const first = this.firstOf(document);
    if (first < 0) return 0;
    const end = this.endOf(first);
    this.#removeEntries(document, first, end);
    for (let entry = first; entry < end; entry++) this.#compaction?.removed(entry);
    return end - first;
  }

  #removeEntries(document: number, first: number, end: number): void {
    for (let entry = first; entry < end; entry++) {
      this.live[entry >>> 5] = (this.live[entry >>> 5] as number) & ~(1 << (entry & 31));
      for (const column of this.columns) column.removed(entry);
    }
    this.#firsts[document] = 0;
    this.liveCount -= end - first;
  }

  get deadCount(): number {
    return this.entryCount - this.liveCount;
  }

  get needsCompaction(): boolean {
    const { deadCount } = this;
    return this.#compaction !== null || (deadCount > deadCountMin && deadCount > this.liveCount);
  }

  /**
   * Copies live entries to a new store until `isTimeUp`.
   * @returns the new store when complete, which then replaces this one.
   */
  compact(isTimeUp: () => boolean): EntryStore | null {
    this.#compaction ??= new Compaction(this);
    const result = this.#compaction.run(isTimeUp);
    if (result !== null) this.#compaction = null;
    return result;
  }

  /**
   * Saves the current entries, live and dead. Cost: a copy of a bit for each entry.
   * @returns its references to documents
   */
  save(parts: PartWriter): SavedDocuments {
    const documents = this.documents.subarray(0, this.entryCount);
    const live = this.live.slice(0, (this.entryCount + 31) >>> 5);
    parts.set("entryCount", this.entryCount);
    parts.set("columns", this.kinds);
    parts.add("documents", documents);
    parts.add("live", live);
    if (this.places !== null) parts.add("places", this.places.subarray(0, this.entryCount));
    for (const [i, column] of this.columns.entries()) column.save(parts.under(`column-${i}`));
    for (const [i, extra] of this.extras.entries()) extra.save(parts.under(`extra-${i}`));
    return { documents, live };
  }

  /**
   * Restores the output of `save`, in steps, into an empty store.
   * @param documentOf maps a document number of the snapshot to the current one; called for live entries
   */
  *restore(parts: PartReader, documentOf: (number: number) => number): Generator<void> {
    const entryCount = parts.get<number>("entryCount");
    this.columns.splice(
      0,
      Number.POSITIVE_INFINITY,
      ...parts.get<ColumnKind[]>("columns").map(columnOf),
    );
    for (const [i, column] of this.columns.entries()) {
      yield* column.restore(parts.under(`column-${i}`));
    }
    for (const [i, extra] of this.extras.entries()) {
      yield* extra.restore(parts.under(`extra-${i}`));
    }
    this.documents = parts.uint32("documents");
    this.live = parts.uint32("live");
    this.places = parts.has("places") ? parts.uint32("places") : null;
    for (let from = 0; from < entryCount; from += restoreStride) {
      yield;
      this.#restoreEntries(from, Math.min(from + restoreStride, entryCount), documentOf);
    }
    const packed = this.columns.filter((column) => column.isPacked);
    let visited = 0;
    for (let entry = 0; entry < entryCount && packed.length > 0; entry++) {
      if (++visited % copyStride === 0) yield;
      if (this.isLive(entry)) continue;
      for (const column of packed) column.removed(entry);
    }
  }

  /** Hot: runs once for each document. */
  #restoreEntries(from: number, to: number, documentOf: (number: number) => number): void {
    const { documents, live, places } = this;
    let firsts = this.#firsts;
    let liveCount = 0;
    for (let entry = from; entry < to; entry++) {
      if (((live[entry >>> 5] as number) & (1 << (entry & 31))) === 0) continue;
      const document = documentOf(documents[entry] as number);
      documents[entry] = document;
      // The dead entry at its place leads to it.
      if (places !== null) documents[places[entry] as number] = document;
      liveCount++;
      if (document >= firsts.length) firsts = grownUint32(firsts, document + 1);
      if (firsts[document] === 0) firsts[document] = entry + 1;
      else this.hasSeveral = true;
    }
    this.#firsts = firsts;
    this.liveCount += liveCount;
    this.entryCount = to;
  }

  checkInvariants(): void {
    let count = 0;
    for (let entry = 0; entry < this.entryCount; entry++) {
      if (!this.isLive(entry)) continue;
      count++;
      const first = this.firstOf(this.documents[entry] as number);
      assert(first >= 0 && first <= entry, "a living entry is found from its document");
      for (let other = first; other < entry; other++) {
        assert(
          this.documents[other] === this.documents[entry],
          "entries of a document stand together",
        );
      }
    }
    this.#checkPlaces();
    assert(count === this.liveCount, "the count of living entries is the number of bits");
    for (const column of [...this.columns, ...this.extras]) {
      assert(column.entryCount === this.entryCount, "columns have as many entries as the store");
      column.checkInvariants();
    }
  }

  #checkPlaces(): void {
    if (this.places === null) return;
    for (let entry = 0; entry < this.entryCount; entry++) {
      const place = this.placeOf(entry);
      assert(place <= entry, "a place is never above the number");
      if (!this.isLive(entry)) continue;
      const isFirst = this.firstOf(this.documents[entry] as number) === entry;
      assert(!isFirst || this.entryAt(place) === entry, "an entry is found at its place");
      assert(isFirst || place === entry, "an entry of several has the place of its number");
    }
  }
}

/**
 * A compaction in progress, in the order of places. The cursor also reaches entries that are appended during the
 * compaction; entries that are removed or replaced before the cursor are removed or replaced in the copy too.
 */
class Compaction {
  readonly #source: EntryStore;
  readonly #target: EntryStore;
  readonly #copiers: readonly ((entry: number) => void)[];
  /** By old entry: the new one plus one. */
  #copies: Uint32Array = new Uint32Array(16);
  /** The next place. */
  #next = 0;

  constructor(source: EntryStore) {
    this.#source = source;
    const extras = source.extras.map((extra) => extra.empty());
    const target = new EntryStore(source.kinds, extras);
    this.#target = target;
    target.keepsPlaces = source.keepsPlaces;
    this.#copiers = [
      ...source.columns.map((column, i) => column.copierTo(target.columns[i] as FieldColumn)),
      ...source.extras.map((extra, i) => extra.copierTo(extras[i] as StoreColumn)),
    ];
  }

  run(isTimeUp: () => boolean): EntryStore | null {
    for (let visited = 0; this.#next < this.#source.entryCount; visited++) {
      if (visited % copyStride === 1 && isTimeUp()) return null;
      this.#copyNext();
    }
    return this.#target;
  }

  /** Called when an entry of the source was removed. */
  removed(entry: number): void {
    if ((this.#copies[entry] ?? 0) === 0) return;
    this.#target.remove(this.#source.documents[entry] as number);
    this.#copies[entry] = 0;
  }

  /** Called when the one entry of a document was replaced by another. */
  replaced(before: number, entry: number): void {
    if ((this.#copies[before] ?? 0) === 0) return;
    this.#copies[before] = 0;
    for (const copy of this.#copiers) copy(entry);
    this.#copied(entry, this.#target.replaceEntry(this.#source.documents[entry] as number));
  }

  /** Copies the next place: all entries of its document, which must be adjacent. */
  #copyNext(): void {
    const place = this.#next++;
    const source = this.#source;
    const first = source.entryAt(place);
    if (first < 0) return;
    const end = source.hasSeveral ? source.endOf(first) : first + 1;
    for (let entry = first; entry < end; entry++) {
      for (const copy of this.#copiers) copy(entry);
      this.#copied(entry, this.#target.endEntry(source.documents[entry] as number));
    }
    if (first === place) this.#next = end;
  }

  #copied(entry: number, made: number): void {
    this.#copies = grownUint32(this.#copies, entry + 1);
    this.#copies[entry] = made + 1;
  }
}
