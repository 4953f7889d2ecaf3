/** Bulk inserts: documents, counters and attachments as one stream, committed as it arrives. */

import { BulkInsert, type BulkInsertOptions } from "../batches/bulk-insert.ts";
import type { StartedOperation } from "../state/store/operations.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export class BulkInserts {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Starts an operation that reads commands from `chunks` until the closing bracket of their array, which need not be
   * the end of the stream. If a command fails, it ends with the cause and the counts so far; transactions committed
   * earlier remain.
   * @throws EngineError invalid-operation while an operation with that id runs
   */
  start(
    operationId: number,
    chunks: AsyncIterable<Buffer>,
    options: BulkInsertOptions,
    startedBy?: string,
  ): StartedOperation {
    const insert = new BulkInsert(this.#database, options);
    return this.#database.operations.startWithId(
      operationId,
      "BulkInsert",
      "Bulk Insert",
      (progress, signal) => insert.run(chunks, progress, signal),
      { startedBy },
    );
  }
}
