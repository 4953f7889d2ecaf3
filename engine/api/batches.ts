/** Batches: many commands that become durable and visible together, or not at all. */

import { executeBatch, storeContents, takesContent } from "../batches/batch.ts";
import { type Batch, parseBatch } from "../batches/batch-parser.ts";
import { type ClusterBatchResult, executeClusterBatch } from "../batches/cluster-batch.ts";
import type { Lease } from "../storage/log/blob-store.ts";
import type { OpenDatabase } from "./database/open-database.ts";

interface BatchOptions {
  /** More commands are refused. */
  readonly commandsMax?: number;
  /** Contents of its attachments, in the order of the commands; read once the commands are parsed. */
  readonly contents?: AsyncIterator<AsyncIterable<Buffer>>;
}

/** A parsed batch, and the stored contents of its attachments. Run it once. */
export class PreparedBatch {
  readonly #database: OpenDatabase;
  readonly #batch: Batch;
  readonly #contents: readonly Lease[];

  constructor(database: OpenDatabase, batch: Batch, contents: readonly Lease[]) {
    this.#database = database;
    this.#batch = batch;
    this.#contents = contents;
  }

  get isClusterWide(): boolean {
    return isClusterWide(this.#batch);
  }

  /**
   * Executes the commands in order. @returns JSON texts of the rows, joined by commas
   * @throws EngineError the error of the first failing command
   */
  async run(): Promise<Buffer> {
    try {
      return await executeBatch(this.#database, this.#batch, this.#contents);
    } finally {
      for (const lease of this.#contents) lease.release();
    }
  }

  /**
   * Executes a cluster-wide batch. `hasGuards`: documents get atomic guards, and existing ones are checked. A request
   * that is repeated, by its `requestId`, is not executed again.
   * @throws EngineError cluster-concurrency with all violations, raft-apply, out-of-range, and the errors of storing
   */
  runClusterWide(hasGuards: boolean, requestId?: string): Promise<ClusterBatchResult> {
    return executeClusterBatch(this.#database, this.#batch.commands, hasGuards, requestId);
  }
}

export class Batches {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Parses the body of a batch, `{"Commands":[…],"TransactionMode"?:…}`, and stores the contents of its attachments.
   * `bytes` must not change until the batch has run.
   * @throws EngineError json-…, invalid-operation, too-large, disk-full
   */
  prepare(bytes: Buffer, options: BatchOptions = {}): Promise<PreparedBatch> {
    // Not awaited here: this function would keep the text beside its commands.
    const parsed = parseBatch(bytes, options.commandsMax);
    return parsed.then((batch) => this.#withContents(batch, options));
  }

  async #withContents(batch: Batch, { contents }: BatchOptions): Promise<PreparedBatch> {
    if (contents === undefined) return new PreparedBatch(this.#database, batch, []);
    const count = batch.commands.filter(takesContent).length;
    const stored = await storeContents(this.#database.blobs, count, contents);
    if (!isClusterWide(batch)) return new PreparedBatch(this.#database, batch, stored);
    for (const lease of stored) lease.release();
    return new PreparedBatch(this.#database, batch, []);
  }
}

function isClusterWide({ transactionMode }: Batch): boolean {
  return transactionMode === "ClusterWide";
}
