/** Patches of one document, by a script or by JSON Patch. */

import type { TextNode } from "../base/json/text-tree.ts";
import { knownPatchBytesMax } from "../base/limits.ts";
import { RecentCache } from "../base/memory/recent-cache.ts";
import { type JsonPatchResult, patchByJson } from "../patching/json-patch.ts";
import {
  type PatchResult,
  type PatchScript,
  patchDocument,
  type PatchRequest as ScriptPatchRequest,
} from "../patching/patch.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type { PatchResult, PatchScript };

/** The runs of one script since the database was opened. */
interface PatchRuns {
  readonly createdMicros: number;
  readonly ranMicros: number;
  readonly runs: number;
}

type PatchRequest = Omit<ScriptPatchRequest, "limits">;

export class Patches {
  readonly #database: OpenDatabase;
  readonly #known = new RecentCache<PatchRuns>(knownPatchBytesMax);

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /**
   * Patches a document by a script. `isTest`: nothing is written.
   * @throws EngineError concurrency, script-failed, script-syntax, and the errors of writing the result
   */
  run(request: PatchRequest, isTest = false): Promise<PatchResult> {
    this.#count(request.patch.script);
    return this.#database.write((transaction) => {
      const patched = patchDocument(transaction, request);
      if (isTest) transaction.discard();
      return patched;
    });
  }

  /** Scripts that patched single documents lately. */
  known(): PatchRuns[] {
    return Array.from(this.#known.entries(), ([, runs]) => runs);
  }

  #count(script: string): void {
    const ranMicros = this.#database.state.nowMicros();
    const { createdMicros, runs } = this.#known.get(script) ?? {
      createdMicros: ranMicros,
      runs: 0,
    };
    this.#known.set(script, { createdMicros, ranMicros, runs: runs + 1 }, 0);
  }

  /**
   * Applies the operations of a JSON Patch, an array of `{"op","path","from"?,"value"?}`; all of them or none.
   * @param expected the document's change vector; undefined for no check
   * @throws EngineError concurrency, invalid-argument for a malformed operation, invalid-operation for an operation
   * that cannot be applied
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
