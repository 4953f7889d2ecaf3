/**
 * The revisions bin and its cleaner: when a document was deleted long enough ago, its revisions are removed too. Active
 * while it is configured.
 *
 * Invariants:
 * - Only revisions of deleted documents are removed; all revisions of a document are removed in one transaction, which
 *   checks again.
 */
import type { Clock } from "../../base/environment.ts";
import {
  documentsPerTask,
  revisionBinIntervalSeconds,
  revisionBinMinutes,
} from "../../base/limits.ts";
import { documentFlags } from "../../state/documents/document-record.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { dropAll } from "../../writes/revisions.ts";
import { ConfiguredTask } from "./configured-task.ts";

const { DeleteRevision } = documentFlags;
const microsPerMinute = 60_000_000;

interface Configuration {
  readonly minutesToKeep: number;
  readonly intervalSeconds: number;
}

export class RevisionBin {
  readonly #database: Store;
  readonly #clock: Clock;
  readonly #task: ConfiguredTask;
  #isClosed = false;

  constructor(database: Store, clock: Clock, failed: (error: unknown) => void) {
    this.#database = database;
    this.#clock = clock;
    this.#task = new ConfiguredTask(
      clock,
      () => this.run(),
      () => this.#secondsBetween(),
      failed,
    );
  }

  /** The database's record may have changed: reschedules the next run, if one is configured. */
  configure(): void {
    this.#task.configure();
  }

  /**
   * Removes the revisions that are due. @returns the number of documents affected. Cost: O(documents with revisions).
   */
  async run(): Promise<number> {
    const configuration = this.#configuration();
    if (configuration === null || this.#database.isFollowing) return 0;
    const { documents, keyspaces } = this.#database.state;
    const { revisions } = keyspaces;
    const newest = this.#clock.nowMicros() - configuration.minutesToKeep * microsPerMinute;
    const due = revisions
      .deletedDocuments(DeleteRevision)
      .filter((row) => revisions.lastModifiedOf(row) <= newest)
      .map((row) => revisions.documentOf(row));
    let done = 0;
    const hold = documents.hold();
    try {
      for (let at = 0; at < due.length && !this.#isClosed; at += documentsPerTask) {
        const some = due.slice(at, at + documentsPerTask);
        done += await this.#database.write((transaction) => emptyOf(transaction, some, newest));
      }
    } finally {
      hold.release();
    }
    return done;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#task.close();
  }

  #secondsBetween(): number | null {
    return this.#configuration()?.intervalSeconds ?? null;
  }

  #configuration(): Configuration | null {
    const kept = this.#database.settings["RevisionsBin"];
    if (typeof kept !== "object" || kept === null) return null;
    const { Disabled, MinimumEntriesAgeToKeepInMin, CleanerFrequencyInSec } = kept as Readonly<
      Record<string, unknown>
    >;
    if (Disabled === true) return null;
    return {
      minutesToKeep: numberOr(MinimumEntriesAgeToKeepInMin, revisionBinMinutes),
      intervalSeconds: numberOr(CleanerFrequencyInSec, revisionBinIntervalSeconds),
    };
  }
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === "number" ? value : fallback;
}

function emptyOf(transaction: Transaction, documents: readonly number[], newest: number): number {
  let done = 0;
  for (const document of documents) {
    const last = [...transaction.revisionsOf(document)].at(-1);
    if (last === undefined || transaction.exists(document)) continue;
    if ((last.flags & DeleteRevision) === 0 || last.lastModified > newest) continue;
    dropAll(transaction, document);
    done++;
  }
  return done;
}
