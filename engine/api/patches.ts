/** Patches of one document, by a script or by JSON Patch. */
import type { OpenDatabase } from "../database/open-database.ts";
import type { TextNode } from "../json/text-tree.ts";
import { type JsonPatchResult, patchByJson } from "../writes/json-patch.ts";
import {
  type PatchResult,
  type PatchScript,
  type PatchStatus,
  patchDocument,
  type PatchRequest as ScriptPatchRequest,
} from "../writes/patch.ts";

export type { JsonPatchResult, PatchResult, PatchScript, PatchStatus };
export type PatchRequest = Omit<ScriptPatchRequest, "limits">;

export class Patches {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Patches a document by a script. `isTest`: nothing is written.
   * @throws EngineError concurrency, script-failed, script-syntax, and what writing the result throws
   */
  run(request: PatchRequest, isTest = false): Promise<PatchResult> {
    return this.#database.write((transaction) => {
      const patched = patchDocument(transaction, request);
      if (isTest) transaction.discard();
      return patched;
    });
  }

  /**
   * Applies the operations of a JSON Patch, an array of `{"op","path","from"?,"value"?}`; all of them or none.
   * @param expected the document's change vector; undefined for no check
   * @throws EngineError concurrency, invalid-argument for a malformed operation, invalid-operation for one that cannot
   * be applied
   */
  runJson(
    id: string,
    operations: TextNode | undefined,
    expected?: string,
  ): Promise<JsonPatchResult> {
    return this.#database.write((transaction) =>
      patchByJson(transaction, id, operations, expected),
    );
  }
}
