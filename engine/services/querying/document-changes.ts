/** The change that an operation by query applies to each document: a patch script or a deletion. */

import { type BytePatch, compileBytePatch } from "../../patching/byte-patch.ts";
import { ScriptPatch, type WatchedPatch } from "../../patching/script-patch.ts";
import type { AnalyzedQuery } from "../../queries/analysis/analyzed-query.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { deleteDocument, storedIdOf } from "../../writes/documents.ts";

export interface DocumentChange {
  readonly isDeletion: boolean;
  /**
   * Changes many documents in one call, up to the first that requires `apply`; null if the change always requires
   * `apply`.
   */
  readonly bytes: BytePatch | null;
  /** Whether the last `apply` took so long that the clock must be checked. */
  readonly isLong: boolean;
  /** Whether the last `apply` changed the document. */
  readonly hasChanged: boolean;
  /** @returns a row of the details, or null when none were requested */
  apply(transaction: Transaction, document: number, hasDetails: boolean): object | null;
}

const detailType = "Raven.Client.Documents.Operations.BulkOperationResult";

/** `keepsUndo`: a revision of each document is stored before the change; byte patches do not support this. */
export function changeOf(
  query: AnalyzedQuery,
  liftsLimits: boolean,
  keepsUndo: boolean,
): DocumentChange {
  if (query.kind === "delete") return new Deletion();
  const patch = new ScriptPatch(query, liftsLimits);
  const isSimple = query.load.length === 0 && !keepsUndo;
  return new PatchChange(
    patch,
    isSimple ? compileBytePatch(patch.script, patch.parametersText) : null,
  );
}

class Deletion implements DocumentChange {
  readonly isDeletion = true;
  readonly bytes = null;
  readonly isLong = false;
  hasChanged = false;

  apply(transaction: Transaction, document: number, hasDetails: boolean): object | null {
    this.hasChanged = transaction.exists(document);
    if (!this.hasChanged) return null;
    const id = storedIdOf(transaction, document);
    deleteDocument(transaction, id);
    if (!hasDetails) return null;
    const Etag = transaction.etagOf(document);
    return { $type: `${detailType}+DeleteDetails, Raven.Client`, Id: id, Etag };
  }
}

export class PatchChange implements DocumentChange {
  readonly isDeletion = false;
  readonly bytes: BytePatch | null;
  hasChanged = false;
  readonly #patch: ScriptPatch;

  constructor(patch: ScriptPatch, bytes: BytePatch | null) {
    this.#patch = patch;
    this.bytes = bytes;
  }

  get isLong(): boolean {
    return this.#patch.isLong;
  }

  apply(transaction: Transaction, document: number, hasDetails: boolean): object | null {
    this.hasChanged = false;
    if (!hasDetails) {
      if (!transaction.exists(document)) return null;
      this.hasChanged = this.#patch.apply(transaction, document);
      return null;
    }
    const $type = `${detailType}+PatchDetails, Raven.Client`;
    if (!transaction.exists(document)) {
      const Id = transaction.state.documents.lowerIdOf(document);
      return { $type, Id, ChangeVector: null, Status: "DocumentDoesNotExist" };
    }
    const Id = storedIdOf(transaction, document);
    const outcome = this.bytes?.apply(transaction, document) ?? "unsure";
    this.hasChanged =
      outcome === "unsure" ? this.#patch.apply(transaction, document) : outcome === "patched";
    if (!this.hasChanged) return { $type, Id, ChangeVector: null, Status: "NotModified" };
    const ChangeVector = transaction.changeVectorAt(transaction.etagOf(document));
    return { $type, Id, ChangeVector, Status: "Patched" };
  }

  /** As `apply`, and returns the document's text before and after the change; null if the document does not exist. */
  watch(transaction: Transaction, document: number): WatchedPatch | null {
    this.hasChanged = false;
    if (!transaction.exists(document)) return null;
    const watched = this.#patch.applyWatched(transaction, document);
    this.hasChanged = watched.isPatched;
    return watched;
  }
}
