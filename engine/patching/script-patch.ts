/** The `update` of a patch by query, run on one document after another. Values are handled as in single patches. */

import { assert } from "../base/assert.ts";
import { scriptWorkPerMs } from "../base/limits.ts";
import type { AnalyzedQuery, LoadStep } from "../queries/analysis/analyzed-query.ts";
import type { ParameterValue } from "../queries/analysis/query-parameters.ts";
import { idsAtPath } from "../queries/execution/execute-load.ts";
import {
  defaultLimits,
  liftedLimits,
  ScriptArray,
  type ScriptLimits,
  type Value,
} from "../scripting/language/script-values.ts";
import { type CompiledScript, ScriptParameters } from "../scripting/script.ts";
import { scriptCache } from "../scripting/script-cache.ts";
import { scriptDocumentOf } from "../scripting/values/record-document.ts";
import type { ScriptDocument } from "../scripting/values/script-document.ts";
import { bodyStartOf } from "../state/documents/document-record.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { putParsed, putPrinted } from "../writes/documents.ts";
import { deletedMeanwhile, isToStore, shownText } from "./patch.ts";
import { type ScriptActions, TransactionScriptHost } from "./transaction-script-host.ts";

/** Units of work from which on a run may delay others: a tenth of a millisecond. */
const longWork = scriptWorkPerMs / 10;

/** The effects of a patch, with texts as replies show them. */
export interface WatchedPatch {
  readonly isPatched: boolean;
  readonly original: string;
  readonly modified: string;
  readonly actions: ScriptActions;
}

export class ScriptPatch {
  readonly script: CompiledScript;
  /** JSON text of the parameters object. */
  readonly parametersText: string;
  readonly #query: AnalyzedQuery;
  readonly #limits: ScriptLimits;
  readonly #parameters: ScriptParameters;
  /** Whether the last run was long enough that the clock should be read. */
  isLong = false;

  /** @throws EngineError script-syntax */
  constructor(query: AnalyzedQuery, liftsLimits: boolean) {
    const { update, source, load, functions } = query;
    assert(update !== null, "a patch has an update");
    this.#query = query;
    this.#limits = liftsLimits ? liftedLimits : defaultLimits;
    this.parametersText = query.parameters?.text ?? allNull(update.text);
    this.#parameters = new ScriptParameters(this.parametersText);
    this.script = scriptCache.get(update.text.slice(1, -1), {
      kind: "patch",
      parameters: source.alias === null ? [] : [source.alias, ...load.map(({ alias }) => alias)],
      functions: functions.map(
        ({ name, parameters, body }) => `function ${name}(${parameters}) ${body.text}`,
      ),
    });
  }

  /**
   * Runs the script on an existing document, and stores the result.
   * @returns false if the document is unchanged. @throws EngineError script-failed, and the errors of writing
   */
  apply(transaction: Transaction, document: number): boolean {
    const host = new TransactionScriptHost(transaction);
    return this.#apply(transaction, document, this.#read(transaction, document), host);
  }

  /** As `apply`, but returns the effects of the script. @throws as `apply` */
  applyWatched(transaction: Transaction, document: number): WatchedPatch {
    const target = this.#read(transaction, document);
    const original = shownText(target);
    const host = new TransactionScriptHost(transaction);
    const isPatched = this.#apply(transaction, document, target, host);
    return { isPatched, original, modified: shownText(target), actions: host.actions };
  }

  #read(transaction: Transaction, document: number): ScriptDocument {
    const { bytes, start } = transaction.recordOf(document);
    return scriptDocumentOf(transaction.state, bytes, start, this.script.hint);
  }

  #apply(
    transaction: Transaction,
    document: number,
    target: ScriptDocument,
    host: TransactionScriptHost,
  ): boolean {
    const etag = transaction.etagOf(document);
    const args: Value[] = [target.root];
    if (this.#query.load.length > 0) args.push(...this.#loaded(transaction, host, document));
    const input = { host, document: target, parameters: this.#parameters, limits: this.#limits };
    const { run } = this.script.run(
      this.script.options.parameters?.length === 0 ? input : { ...input, args },
    );
    host.storeAppends();
    const isStored = storeChanged(transaction, document, target, etag);
    // The new text was printed on the account of the run.
    this.isLong = run.spentWork > longWork;
    return isStored;
  }

  /** Returns the documents of `load`, in the order of its aliases. */
  #loaded(transaction: Transaction, host: TransactionScriptHost, document: number): Value[] {
    const ids = new Map<string, readonly string[]>();
    return this.#query.load.map((step) => {
      const wanted = this.#idsOf(transaction, step, document, ids);
      ids.set(step.alias, wanted);
      const values = wanted.map((id) => host.load(id)?.root ?? null);
      if (!step.isArray) return values[0] ?? null;
      return new ScriptArray(values.filter((value) => value !== null));
    });
  }

  #idsOf(
    transaction: Transaction,
    { source }: LoadStep,
    document: number,
    loaded: ReadonlyMap<string, readonly string[]>,
  ): string[] {
    if (source.kind === "constant") return textsOf(source.value);
    const isOwn = source.root === null || source.root === this.#query.source.alias;
    const roots = isOwn
      ? [document]
      : (loaded.get(source.root ?? "") ?? []).map((id) => transaction.find(id));
    return roots.flatMap((root) => {
      if (root < 0) return [];
      const { bytes, start } = transaction.recordOf(root);
      return idsAtPath(bytes, bodyStartOf(bytes, start), source.path);
    });
  }
}

/** Stores the result of a run for its document. @returns as `apply` */
function storeChanged(
  transaction: Transaction,
  document: number,
  target: ScriptDocument,
  etag: number,
): boolean {
  const { state } = transaction;
  if (!transaction.exists(document)) {
    if (target.changed()) throw deletedMeanwhile(target, target.id ?? "");
    return false;
  }
  if (!isToStore(transaction, document, target, etag)) return false;
  target.requireMetadataObject();
  const { revisionRules } = transaction.keyspaces;
  const isVersioned = revisionRules.of(transaction.collectionOf(document)) !== null;
  if (isVersioned || target.metadataChanged() || transaction.etagOf(document) !== etag) {
    const id = target.id ?? state.documents.lowerIdOf(document);
    putParsed(transaction, id, state.parseText(shownText(target)));
  } else {
    const body = target.printedBody();
    assert(body !== null, "a body that changed was written");
    putPrinted(transaction, document, body);
  }
  return true;
}

/**
 * If the request has no parameters, the parameters named in a script are null; RavenDB 7.2.7 uses undefined only if
 * some are missing.
 */
function allNull(script: string): string {
  const names = [...script.matchAll(/\$([A-Za-z_]\w*)/g)].map(([, name]) => [name, null]);
  return JSON.stringify(Object.fromEntries(names));
}

function textsOf(value: ParameterValue): string[] {
  if (value.type === "string") return [value.value];
  return value.type === "array" ? value.items.flatMap(textsOf) : [];
}
