/**
 * Removes the stored undo data of operations after some days, or earlier if many operations have undo data: the newest
 * are retained.
 *
 * Invariants:
 * - Only revisions that an operation stored or created are removed, and only in collections without a rule for
 *   revisions: otherwise the rule applies.
 * - The ranges of an operation are forgotten after its revisions: after a crash in between, the next run removes the
 *   rest.
 */
import type { Clock } from "../../base/environment.ts";
import { documentsPerTask, undoDaysMax, undoOperationsMax } from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import type { RevisionFacts } from "../../state/keyspaces/revision-table.ts";
import type { Operations } from "../../state/store/operations.ts";
import type { Store } from "../../state/store/store.ts";
import { dropRanges, operationsWithRanges, WrittenEtags } from "../../state/store/undo-ranges.ts";
import { dropRevision } from "../../writes/revisions.ts";
import { ConfiguredTask } from "./configured-task.ts";

const rowsPerTick = 4096;
const secondsBetween = 3600;
const microsPerDay = 86_400_000_000;

export class UndoRetention {
  readonly #store: Store & { readonly operations: Operations };
  readonly #clock: Clock;
  readonly #task: ConfiguredTask;
  #isClosed = false;
  #running: Promise<number> | null = null;

  constructor(
    store: Store & { readonly operations: Operations },
    clock: Clock,
    failed: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#task = new ConfiguredTask(
      clock,
      () => this.run(),
      () => (operationsWithRanges(store.state).length > 0 ? secondsBetween : null),
      failed,
    );
    store.operations.listen(({ facts, state }) => {
      if (facts?.["canUndo"] === true && state.status !== "running") this.configure();
    });
  }

  /** Schedules the next run, if an operation has undo data. */
  configure(): void {
    this.#task.configure();
  }

  /** Removes the data that is due; runs do not overlap. @returns the number of operations. */
  run(): Promise<number> {
    this.#running ??= this.#forgetDue().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #forgetDue(): Promise<number> {
    if (this.#store.isFollowing) return 0;
    const known = operationsWithRanges(this.#store.state);
    const newest = this.#clock.nowMicros() - undoDaysMax * microsPerDay;
    const due = known.filter((id, at) => {
      const info = this.#store.operations.get(id);
      if (info?.state.status === "running") return false;
      const isSurplus = at < known.length - undoOperationsMax;
      return isSurplus || info === undefined || (info.endedAt ?? 0) < newest;
    });
    for (const id of due) if (!this.#isClosed) await this.#forget(id);
    return due.length;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#task.close();
  }

  async #forget(operation: number): Promise<void> {
    const { operations, state } = this.#store;
    const facts = operations.get(operation)?.facts;
    // First, so that the operation cannot be undone while its revisions are partially removed.
    if (facts?.["canUndo"] === true) await operations.setFacts(operation, {});
    const written = new WrittenEtags(state, operation);
    const { revisions, revisionRules } = state.keyspaces;
    const hold = state.documents.hold();
    try {
      const end = revisions.rowsEnd;
      for (let row = 0; row < end && !this.#isClosed; ) {
        const stop = Math.min(end, row + rowsPerTick);
        const some: RevisionFacts[] = [];
        for (; row < stop && some.length < documentsPerTask; row++) {
          if (!revisions.isSeen(row) || !written.has(revisions.etagOf(row))) continue;
          if (revisionRules.of(revisions.collectionOf(row)) === null)
            some.push(revisions.factsOf(row));
        }
        if (some.length > 0) await this.#drop(some);
        else await nextSlice();
      }
    } finally {
      hold.release();
    }
    if (!this.#isClosed)
      await this.#store.write((transaction) => dropRanges(transaction, operation));
  }

  async #drop(some: readonly RevisionFacts[]): Promise<void> {
    await this.#store.write(
      (transaction) => {
        for (const facts of some) {
          const isThere = [...transaction.revisionsOf(facts.document)].some(
            ({ etag }) => etag === facts.etag,
          );
          if (isThere) dropRevision(transaction, facts);
        }
      },
      { isDeletion: true },
    );
  }
}
