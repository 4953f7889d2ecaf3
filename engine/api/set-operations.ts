/** Patching and deleting the documents that a query finds, as operations in the background. */
import type { OpenDatabase } from "../database/open-database.ts";
import {
  type SetOperationOptions,
  startDeleteByQuery,
  startPatchByQuery,
  tryPatchByQuery,
} from "../querying/operations-by-query.ts";
import type { StartedOperation } from "../store/operations.ts";
import type { WatchedPatch } from "../writes/script-patch.ts";

export type { SetOperationOptions, WatchedPatch };

export class SetOperations {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Starts patching. Errors in the text are thrown at once; the operation reports missing parameters.
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
   * What a patch would make of one document; null when no document has this id. Nothing is written.
   * @param parametersText JSON text of the object of query parameters @throws EngineError as `patch`, script-failed
   */
  tryPatch(query: string, parametersText: string | null, id: string): Promise<WatchedPatch | null> {
    return tryPatchByQuery(this.#database, query, parametersText, id);
  }
}
