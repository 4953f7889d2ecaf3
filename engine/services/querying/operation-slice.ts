/**
 * One transaction of an operation by query: documents of a batch, starting at a given position, until the time slice
 * ends. It may be run again from its beginning; earlier results are then discarded.
 *
 * Invariants:
 * - A trial leaves nothing: neither records nor etags. A document on which the script fails is the last of its slice,
 *   so that the next document does not see the script's partial changes.
 */
import { EngineError } from "../../base/errors.ts";
import { finish } from "../../base/scheduling/work-budget.ts";
import type { PatchRange } from "../../patching/byte-patch.ts";
import type { Store } from "../../state/store/store.ts";
import { RecordNotResident, type Transaction } from "../../state/store/transaction.ts";
import { rewriteTouched, storedIdOf } from "../../writes/documents.ts";
import { type DocumentChange, PatchChange } from "./document-changes.ts";

/** Documents between two checks of the clock, for byte patches and for scripts. */
const byteStride = 64;
const scriptStride = 4;
/** UTF-16 units of a document that a dry run shows, before and after. */
const sampleLengthMax = 64 * 1024;

/** The documents a slice starts with, and its time limit. */
interface SlicePart {
  readonly batch: Uint32Array;
  readonly at: number;
  readonly etagMax: number;
  readonly ms: number;
  readonly hasDetails: boolean;
  /** Nothing is stored; how many of the changed documents are still to be shown. Null: it is no trial. */
  readonly samplesLeft: number | null;
}

/** A document before and after the change. Texts are null where they are long. */
export interface DryRunSample {
  readonly Id: string;
  readonly Before: string | null;
  readonly After: string | null;
}

export interface DryRunMistake {
  readonly Id: string;
  readonly Message: string;
}

export class Slice {
  readonly #store: Store;
  readonly #change: DocumentChange;
  readonly #part: SlicePart;
  details: object[] = [];
  samples: DryRunSample[] = [];
  mistake: DryRunMistake | null = null;
  /** The first document not processed. */
  end: number;
  /** Documents that existed and were processed. */
  count = 0;
  /** Number of documents that the change modified. */
  changed = 0;
  isDone = false;

  constructor(store: Store, change: DocumentChange, part: SlicePart) {
    this.#store = store;
    this.#change = change;
    this.#part = part;
    this.end = part.at;
  }

  /** Changes documents in a transaction. `finish` is called at its end with the etag before its first change. */
  run(transaction: Transaction, finish: ((etag: number) => void) | null): void {
    const { clock, state } = this.#store;
    const { batch, at, etagMax, ms, hasDetails, samplesLeft } = this.#part;
    const isWatched = hasDetails || (samplesLeft ?? 0) > 0;
    const bytes = isWatched ? null : this.#change.bytes;
    const stride = bytes === null ? scriptStride : byteStride;
    const stopMs = clock.monotonicMs() + ms;
    const etag = state.lastEtag;
    this.details = [];
    this.samples = [];
    this.mistake = null;
    this.changed = 0;
    const range = { batch, at, end: 0, etagMax, count: 0 };
    if (bytes !== null) bytes.previousMax = 0;
    let patched = 0;
    while (range.at < batch.length && this.mistake === null) {
      if (range.at > at && clock.monotonicMs() >= stopMs) break;
      range.end = Math.min(batch.length, range.at + stride);
      while (range.at < range.end && this.mistake === null) {
        if (bytes !== null) {
          const before = transaction.documents.count;
          bytes.run(transaction, range);
          patched += transaction.documents.count - before;
        }
        if (range.at < range.end) this.#next(transaction, range);
        if (this.#change.isLong) break;
      }
    }
    this.changed += patched;
    this.count = range.count;
    this.end = range.at;
    if (bytes !== null && patched > 0) {
      const { names: fields, previousMax } = bytes;
      transaction.fieldChange = { fields, from: etag + 1, previousMax, count: patched };
    }
    if (samplesLeft !== null) this.#forget(transaction, etag);
    else finish?.(etag);
    this.isDone = true;
  }

  /** Changes the next document, regardless of the time that this takes. */
  #next(transaction: Transaction, range: PatchRange): void {
    const document = range.batch[range.at++] as number; // below its end
    if (transaction.etagOf(document) > range.etagMax) return;
    range.count++;
    if (this.#part.samplesLeft === null) this.#apply(transaction, document);
    else this.#try(transaction, document);
  }

  #apply(transaction: Transaction, document: number): void {
    const row = this.#change.apply(transaction, document, this.#part.hasDetails);
    if (row !== null) this.details.push(row);
    if (this.#change.hasChanged) this.changed++;
  }

  /** As `#apply`, in a trial. */
  #try(transaction: Transaction, document: number): void {
    try {
      const isShown = this.samples.length < (this.#part.samplesLeft ?? 0);
      if (isShown && this.#change instanceof PatchChange) {
        this.#show(transaction, document, this.#change);
      } else this.#apply(transaction, document);
    } catch (error) {
      if (error instanceof RecordNotResident || !(error instanceof EngineError)) throw error;
      this.mistake = { Id: storedIdOf(transaction, document), Message: error.message };
    }
  }

  #show(transaction: Transaction, document: number, change: PatchChange): void {
    const watched = change.watch(transaction, document);
    if (watched === null || !change.hasChanged) return;
    this.changed++;
    const { original, modified } = watched;
    const isLong = Math.max(original.length, modified.length) > sampleLengthMax;
    this.samples.push({
      Id: storedIdOf(transaction, document),
      Before: isLong ? null : original,
      After: isLong ? null : modified,
    });
  }

  #forget(transaction: Transaction, etag: number): void {
    finish(rewriteTouched(transaction));
    transaction.discard();
    transaction.state.lastEtag = etag;
  }
}
