/** Exports and imports of whole databases as dumps, in the format of RavenDB. */
import type { OpenDatabase } from "../database/open-database.ts";
import type { DumpItemType, DumpOptions } from "../smuggler/dump-options.ts";
import { exportDump } from "../smuggler/export.ts";
import { type ImportSettings, importDump } from "../smuggler/import.ts";
import { SmugglerResult } from "../smuggler/smuggler-result.ts";
import type { OperationFigures, StartedOperation } from "../store/operations.ts";

export type { DumpItemType, DumpOptions, ImportSettings };

export class Smuggler {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** The text of a dump of the database as it is now. @throws EngineError script-failed, record-damaged */
  export(options: DumpOptions): AsyncGenerator<Buffer> {
    return exportDump(this.#database, options, this.#newResult());
  }

  /**
   * Starts an operation that exports the database as it is now; its result has the counts.
   * @param send receives the text of the dump, and resolves when it has taken all of it
   * @throws EngineError invalid-operation while an operation with that id runs
   */
  startExport(
    operationId: number,
    options: DumpOptions,
    send: (dump: AsyncGenerator<Buffer>) => Promise<void>,
  ): StartedOperation {
    const database = this.#database;
    const result = this.#newResult();
    return database.operations.startWithId(
      operationId,
      "DatabaseExport",
      `Export database: ${database.name}`,
      async (progress, signal) => {
        await send(exportDump(database, options, result, progress, signal));
        return result.toJson(true);
      },
    );
  }

  /**
   * Starts an operation that imports the text of a dump; its result has the counts.
   * @throws EngineError invalid-operation while an operation with that id runs
   */
  startImport(
    operationId: number,
    dump: AsyncIterable<Buffer>,
    options: DumpOptions,
    settings: ImportSettings,
  ): StartedOperation {
    const database = this.#database;
    const result = this.#newResult();
    return database.operations.startWithId(
      operationId,
      "DatabaseImport",
      `Import to: ${database.name}`,
      async (progress, signal) => {
        await importDump(database, dump, options, settings, result, progress, signal);
        return result.toJson(true);
      },
    );
  }

  /**
   * Imports the text of a dump. @returns the counts, once all of it is durable
   * @throws EngineError json-…, invalid-operation for a truncated dump, script-failed, disk-full, and others from storing
   */
  async import(
    dump: AsyncIterable<Buffer>,
    options: DumpOptions,
    settings: ImportSettings,
  ): Promise<OperationFigures> {
    const result = this.#newResult();
    await importDump(this.#database, dump, options, settings, result);
    return result.toJson(true);
  }

  #newResult(): SmugglerResult {
    return new SmugglerResult(() => this.#database.state.nowMicros());
  }
}
