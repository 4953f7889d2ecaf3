/**
 * Undoes a patch or a deletion by query: restores each document that is unchanged since the operation, from the
 * revision that the operation stored. Documents that were changed since then are skipped and listed.
 *
 * Invariants:
 * - A document is restored only if its etag was assigned by the operation, so that a second run changes nothing, and no
 *   later change is lost.
 * - Documents that the operation created have no earlier revision: they remain, and are listed.
 */
import { EngineError } from "../../base/errors.ts";
import { documentsPerTask } from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { DocumentBits } from "../../indexing/columns/document-bits.ts";
import { documentFlags, metadataTextOf } from "../../state/documents/document-record.ts";
import { allCollections } from "../../state/keyspaces/document-table.ts";
import type { RevisionFacts } from "../../state/keyspaces/revision-table.ts";
import { OperationControl, Pace } from "../../state/store/operation-control.ts";
import type {
  OperationFigures,
  Operations,
  StartedOperation,
} from "../../state/store/operations.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { WrittenEtags } from "../../state/store/undo-ranges.ts";
import { setCounter } from "../../writes/counters.ts";
import { putStored } from "../../writes/documents.ts";
import { copyOfRevision } from "../../writes/revisions.ts";
import { restoreAttachments } from "./revision-tasks.ts";

const { DeleteRevision, ForceCreated, FromOldDocumentRevision, HasCounters, Reverted } =
  documentFlags;

/** Maximum number of skipped documents whose ids are listed. */
const listedMax = 1000;
/** Number of revision rows examined in one tick of the event loop. */
const rowsPerTick = 4096;

type UndoneStore = Store & { readonly operations: Operations };

/**
 * Starts undoing an operation that has ended.
 * @throws EngineError operation-missing, invalid-operation when nothing is kept for it, or it runs
 */
export async function startUndo(
  database: UndoneStore,
  operation: number,
  startedBy: string | undefined,
): Promise<StartedOperation> {
  const { operations } = database;
  const info = operations.get(operation);
  if (info === undefined) {
    throw new EngineError("operation-missing", `Operation ${operation} was not registered`);
  }
  if (info.state.status === "running") {
    throw new EngineError(
      "invalid-operation",
      `Operation ${operation} is running: stop it first, then undo what it has done until then.`,
    );
  }
  if (info.facts?.["canUndo"] !== true) {
    const undoneBy = info.facts?.["undoneBy"];
    throw new EngineError(
      "invalid-operation",
      undoneBy === undefined
        ? `Operation ${operation} cannot be undone: no earlier versions of its documents were stored. Patches and deletions that are started with undo=true store them for some days.`
        : `Operation ${operation} was undone already, by operation ${undoneBy}.`,
    );
  }
  const id = await operations.nextId();
  const control = new OperationControl(null);
  const started = await operations.start(
    "UndoOperation",
    `operation ${operation}: ${info.description}`,
    async (progress, signal) => {
      const hold = database.state.documents.hold();
      try {
        const total = Number(info.reached?.["Changed"] ?? 0);
        const pace = new Pace(control, database.clock, signal);
        return await new Undo(database, operation, total, pace, signal, progress).run();
      } finally {
        hold.release();
      }
    },
    { id, startedBy, control, facts: { undoes: operation } },
  );
  const ended = started.ended.then(async (end) => {
    // An operation that was forgotten in the meantime has no facts.
    const facts = end.error === undefined ? operations.get(operation)?.facts : undefined;
    // When that cannot be written it may be undone again, which finds nothing to do.
    if (facts !== undefined)
      await operations.setFacts(operation, { undoneBy: id }).catch(() => undefined);
    return end;
  });
  return { id, ended };
}

class Undo {
  readonly #store: UndoneStore;
  readonly #written: WrittenEtags;
  readonly #total: number;
  readonly #pace: Pace;
  readonly #signal: AbortSignal;
  readonly #progress: (figures: OperationFigures) => void;
  /** Documents that were put back or counted. */
  readonly #seen = new DocumentBits();
  readonly #listed: string[] = [];
  #restored = 0;
  #changedSince = 0;
  #withoutBefore = 0;

  constructor(
    store: UndoneStore,
    operation: number,
    total: number,
    pace: Pace,
    signal: AbortSignal,
    progress: (figures: OperationFigures) => void,
  ) {
    this.#store = store;
    this.#written = new WrittenEtags(store.state, operation);
    this.#total = total;
    this.#pace = pace;
    this.#signal = signal;
    this.#progress = progress;
  }

  async run(): Promise<OperationFigures> {
    this.#reportProgress();
    await this.#putBackChanged();
    await this.#putBackDeleted();
    return {
      Total: this.#restored,
      Message: `Put back ${this.#restored.toLocaleString("en-US")} documents.`,
      Restored: this.#restored,
      ChangedSince: this.#changedSince,
      WithoutRevision: this.#withoutBefore,
      LeftAlone: this.#listed,
    };
  }

  /** Returns the documents that are as the operation left them. */
  async #putBackChanged(): Promise<void> {
    const { documents } = this.#store.state;
    const batch = new Uint32Array(documentsPerTask);
    for (const [first, last] of this.#written.ranges()) {
      const cursor = documents.byEtag(allCollections, first);
      for (let isIn = true; isIn; ) {
        await this.#nextSlice();
        const count = cursor.fill(batch, this.#pace.batchOf(documentsPerTask));
        let end = 0;
        while (end < count && documents.etagOf(batch[end] as number) <= last) end++;
        isIn = end > 0 && end === count;
        if (end > 0) await this.#putBack([...batch.subarray(0, end)]);
      }
    }
  }

  /** Restores the documents that the operation deleted. Counts documents that were changed since then. */
  async #putBackDeleted(): Promise<void> {
    const { keyspaces, documents } = this.#store.state;
    const { revisions } = keyspaces;
    const end = revisions.rowsEnd;
    for (let row = 0; row < end; ) {
      await this.#nextSlice();
      const stop = Math.min(end, row + rowsPerTick);
      const deleted: number[] = [];
      for (; row < stop && deleted.length < this.#pace.batchOf(documentsPerTask); row++) {
        if (!revisions.isSeen(row) || !this.#written.has(revisions.etagOf(row))) continue;
        const document = revisions.documentOf(row);
        if (this.#seen.has(document)) continue;
        this.#seen.add(document);
        const newest = revisions.newestOf(document);
        const isGone = documents.etagOf(document) === 0;
        if (!isGone) this.#leave(document);
        else if (this.#written.has(revisions.etagOf(newest))) deleted.push(document);
        else this.#leave(document);
      }
      if (deleted.length > 0) await this.#putBack(deleted);
      else await nextSlice();
    }
  }

  /** Skips a document that was changed or deleted since then, unless an earlier run restored it. */
  #leave(document: number): void {
    const { documents } = this.#store.state;
    if ((documents.flagsOf(document) & Reverted) !== 0) return;
    this.#changedSince++;
    this.#list(document);
  }

  #list(document: number): void {
    if (this.#listed.length < listedMax)
      this.#listed.push(this.#store.state.documents.lowerIdOf(document));
  }

  async #putBack(some: readonly number[]): Promise<void> {
    const outcomes = await this.#store.write((transaction) =>
      some.map((document) => putBackOne(transaction, document, this.#written)),
    );
    some.forEach((document, n) => {
      this.#seen.add(document);
      if (outcomes[n] === "restored") this.#restored++;
      else if (outcomes[n] === "changed") this.#leave(document);
      else {
        this.#withoutBefore++;
        this.#list(document);
      }
    });
    this.#reportProgress();
  }

  async #nextSlice(): Promise<void> {
    await this.#pace.next(this.#restored);
    if (!this.#signal.aborted) return;
    throw new EngineError("operation-cancelled", "The operation was stopped.");
  }

  #reportProgress(): void {
    const Processed = this.#restored + this.#changedSince + this.#withoutBefore;
    this.#progress({
      Processed,
      Total: Math.max(this.#total, Processed),
      Changed: this.#restored,
      Unchanged: Processed - this.#restored,
    });
  }
}

function putBackOne(
  transaction: Transaction,
  document: number,
  written: WrittenEtags,
): "restored" | "changed" | "no revision" {
  const exists = transaction.exists(document);
  const all = [...transaction.revisionsOf(document)];
  const newest = all.at(-1);
  const etag = exists ? transaction.etagOf(document) : (newest?.etag ?? 0);
  if (!written.has(etag)) return "changed";
  const before = stateBefore(all, written);
  if (before === undefined) return "no revision";
  const record = copyOfRevision(transaction, before);
  restoreAttachments(transaction, record, before);
  const { id } = putStored(transaction, document, record, Reverted);
  if (!exists && (before.flags & HasCounters) !== 0) restoreCounters(transaction, id, record);
  return "restored";
}

/**
 * Returns the state before the operation: the revision that it stored, or otherwise the newest revision older than the
 * operation. `all`: the revisions of a document, in etag order.
 */
function stateBefore(
  all: readonly RevisionFacts[],
  written: WrittenEtags,
): RevisionFacts | undefined {
  const own = all.find(
    ({ etag, flags }) =>
      written.has(etag) && (flags & (ForceCreated | FromOldDocumentRevision)) !== 0,
  );
  const found = own ?? all.findLast(({ etag }) => etag < written.first);
  return found === undefined || (found.flags & DeleteRevision) !== 0 ? undefined : found;
}

/** Restores the counters of a deleted document from its revision. */
function restoreCounters(transaction: Transaction, id: string, record: Buffer): void {
  const text = metadataTextOf(record, 0);
  const key = '"@counters-snapshot":{';
  const at = text.indexOf(key);
  if (at < 0) return;
  // Not by JSON.parse: a counter has 64 bits.
  const pair = /("(?:[^"\\]|\\.)*"):(-?\d+)[,}]/y;
  pair.lastIndex = at + key.length;
  for (let found = pair.exec(text); found !== null; found = pair.exec(text)) {
    const [all, name = "", value = ""] = found;
    setCounter(transaction, id, JSON.parse(name) as string, BigInt(value));
    if (all.endsWith("}")) break;
  }
}
