/** Patching and deleting the documents that a query finds, as operations in the background. */

import type { WatchedPatch } from "../patching/script-patch.ts";
import { startUndo } from "../services/background/undo-operation.ts";
import {
  type DryRunOptions,
  resumeByQuery,
  type SetOperationOptions,
  startDeleteByQuery,
  startDryRun,
  startPatchByQuery,
  tryPatchByQuery,
} from "../services/querying/operations-by-query.ts";
import type { StartedOperation } from "../state/store/operations.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type { SetOperationOptions };

export class SetOperations {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Starts patching. Errors in the text are thrown immediately; missing parameters are reported by the operation.
   * @throws EngineError query-syntax, query-invalid, not-supported, script-syntax, invalid-operation
   */
  patch(query: string, options: SetOperationOptions): Promise<StartedOperation> {
    return startPatchByQuery(this.#database, query, options);
  }

  /** Starts deleting. @throws EngineError as `patch` */
  delete(query: string, options: SetOperationOptions): Promise<StartedOperation> {
    return startDeleteByQuery(this.#database, query, options);
  }

  /**
   * Returns the result of a patch of one document; null if the document does not exist. Nothing is written.
   * @param parametersText JSON text of the object of query parameters @throws EngineError as `patch`, script-failed
   */
  tryPatch(query: string, parametersText: string | null, id: string): Promise<WatchedPatch | null> {
    return tryPatchByQuery(this.#database, query, parametersText, id);
  }

  /** Starts running a patch over all results of a query, without storing anything. @throws EngineError as `patch` */
  dryRun(query: string, options: DryRunOptions): Promise<StartedOperation> {
    return startDryRun(this.#database, query, options);
  }

  /**
   * Lets an operation go on that is paused, or that the end of the server has interrupted.
   * @throws EngineError operation-missing, invalid-operation, as `patch`
   */
  async resume(id: number): Promise<void> {
    const { operations } = this.#database;
    if (operations.get(id)?.state.status === "running") operations.resume(id);
    else await resumeByQuery(this.#database, id);
  }

  /** Starts undoing an operation. @throws EngineError operation-missing, invalid-operation */
  undo(id: number, startedBy: string | undefined): Promise<StartedOperation> {
    return startUndo(this.#database, id, startedBy);
  }
}
