/**
 * Patching one document by a script, in a transaction. Statuses and their conditions equal those of RavenDB 7.2.7;
 * values of the script are handled by scripting/, and the result is parsed like any document.
 */

import { EngineError } from "../base/errors.ts";
import { batchScriptMsMax, scriptWorkPerMs } from "../base/limits.ts";
import {
  defaultLimits,
  getOwn,
  isObject,
  type ScriptLimits,
} from "../scripting/language/script-values.ts";
import { type RunInput, ScriptParameters } from "../scripting/script.ts";
import { scriptCache } from "../scripting/script-cache.ts";
import { scriptDocumentOf } from "../scripting/values/record-document.ts";
import { ScriptDocument } from "../scripting/values/script-document.ts";
import type { Transaction } from "../state/store/transaction.ts";
import {
  currentChangeVector,
  putParsed,
  rewriteNow,
  type StoredDocument,
} from "../writes/documents.ts";
import {
  type ScriptActions,
  TransactionScriptHost,
  withMetadata,
} from "./transaction-script-host.ts";

/** A script and the JSON text of its arguments object. */
export interface PatchScript {
  readonly script: string;
  readonly values: string;
}

export interface PatchRequest {
  readonly id: string;
  readonly patch: PatchScript;
  readonly ifMissing?: PatchScript | undefined;
  /** JSON text of the document to create if it does not exist. */
  readonly createIfMissing?: string | undefined;
  readonly expectedChangeVector?: string | undefined;
  /** A mismatched change vector is no error: the status is Skipped. */
  readonly skipsMismatch?: boolean | undefined;
  readonly limits?: ScriptLimits;
}

type PatchStatus = "DocumentDoesNotExist" | "Created" | "Patched" | "Skipped" | "NotModified";

export interface PatchResult {
  readonly status: PatchStatus;
  /** JSON texts as returned in replies; null if the document does not exist. */
  readonly modified: string | null;
  readonly original: string | null;
  /** Change vector of the write; null when nothing was written. */
  readonly changeVector: string | null;
  /** Microseconds since 1970; 0 when nothing was written. */
  readonly lastModified: number;
  readonly collection: string | null;
  readonly actions: ScriptActions | null;
}

const unwritten = { changeVector: null, lastModified: 0, collection: null } as const;

/** @throws EngineError concurrency, script-failed, script-syntax, and the errors of writing the result */
export function patchDocument(transaction: Transaction, request: PatchRequest): PatchResult {
  checkPatchedId(request.id);
  // Syntax errors of both scripts are reported before other checks, as on RavenDB 7.2.7.
  for (const patch of [request.patch, request.ifMissing]) {
    if (patch !== undefined && patch.script.trim() !== "") compiled(patch);
  }
  const document = transaction.find(request.id);
  if (!isExpected(transaction, document, request.expectedChangeVector)) {
    if (request.skipsMismatch === true) {
      return { status: "Skipped", modified: null, original: null, actions: null, ...unwritten };
    }
    throw notCurrent(transaction, document, request);
  }
  if (document < 0) return createDocument(transaction, request);
  const { bytes, start } = transaction.recordOf(document);
  const target = scriptDocumentOf(transaction.state, bytes, start);
  const original = shownText(target);
  const host = new TransactionScriptHost(transaction);
  const wasTouched = transaction.isTouched(document);
  const etag = transaction.etagOf(document);
  run(transaction, request.patch, { host, document: target }, request.limits);
  host.storeAppends();
  const { actions } = host;
  const modified = shownText(target);
  const exists = transaction.exists(document);
  if (!exists && target.changed()) throw deletedMeanwhile(target, request.id);
  if (!exists || !isToStore(transaction, document, target, etag)) {
    // The script deleted it, or left it unchanged.
    if (!wasTouched && transaction.isTouched(document)) {
      // Its lists of counters or time series changed, and so the document.
      const written = writtenOf(transaction, rewriteNow(transaction, document));
      return { status: "Patched", modified, original, actions, ...written };
    }
    return { status: "NotModified", modified, original, actions, ...unwritten };
  }
  const id = target.id ?? request.id;
  return { status: "Patched", modified, original, actions, ...store(transaction, id, target) };
}

/**
 * Returns whether the document differs from the stored one. `etag`: that before the script. If the script itself has
 * put the document, the target of the patch overwrites that, as on RavenDB 7.2.7.
 */
export function isToStore(
  transaction: Transaction,
  document: number,
  target: ScriptDocument,
  etag: number,
): boolean {
  if (transaction.etagOf(document) === etag) return target.changed();
  const { bytes, start } = transaction.recordOf(document);
  return shownText(scriptDocumentOf(transaction.state, bytes, start)) !== shownText(target);
}

function createDocument(transaction: Transaction, request: PatchRequest): PatchResult {
  const host = new TransactionScriptHost(transaction);
  let target: ScriptDocument;
  if (request.ifMissing !== undefined) {
    target = ScriptDocument.fromText("{}", null, null);
    run(transaction, request.ifMissing, { host, document: target }, request.limits);
    host.storeAppends();
  } else if (request.createIfMissing !== undefined) {
    target = ScriptDocument.fromText(request.createIfMissing, null, null);
  } else {
    const missing = { status: "DocumentDoesNotExist", modified: null, original: null } as const;
    return { ...missing, actions: host.actions, ...unwritten };
  }
  const written = store(transaction, request.id, target);
  const modified = shownText(target);
  return { status: "Created", modified, original: null, actions: host.actions, ...written };
}

function store(transaction: Transaction, id: string, target: ScriptDocument): Written {
  const { parser } = transaction.state;
  target.requireMetadataObject();
  const bytes = Buffer.from(withMetadata(target.bodyText(), target.metadataText()));
  const parsed = parser.parse(bytes, 0, bytes.length);
  return writtenOf(transaction, putParsed(transaction, id, parsed));
}

type Written = Pick<PatchResult, "changeVector" | "lastModified" | "collection">;

function writtenOf(transaction: Transaction, stored: StoredDocument): Written {
  const { changeVector, lastModified, document } = stored;
  const { collections } = transaction.keyspaces;
  return {
    changeVector,
    lastModified,
    collection: collections.nameOf(transaction.collectionOf(document)),
  };
}

/** @throws EngineError script-failed, also when the scripts of the transaction exceed their common limit */
function run(
  transaction: Transaction,
  patch: PatchScript,
  input: RunInput,
  limits: ScriptLimits = defaultLimits,
): void {
  if (patch.script.trim() === "") return;
  if (transaction.scriptWork > limits.workMax) throw tooManyScripts(limits);
  if (transaction.scriptWorkBefore > batchScriptMsMax * scriptWorkPerMs) throw tooMuchOfBatch();
  const parameters = new ScriptParameters(patch.values);
  const { run: account } = compiled(patch).run({ ...input, parameters, limits });
  transaction.scriptWork += limits.workMax - account.affordableWork;
}

function tooManyScripts({ msMax }: ScriptLimits): EngineError {
  return new EngineError(
    "script-failed",
    `The scripts of one batch may take ${msMax} ms of processor time together, because nothing else is served while ` +
      "they run. Send fewer patches per batch, or patch by a query. You can configure it by modifying the configuration " +
      "option: 'Patching.MaxTimeForScriptInMs'.",
  );
}

function tooMuchOfBatch(): EngineError {
  return new EngineError(
    "script-failed",
    `The scripts of one batch may take ${batchScriptMsMax / 1000} seconds of processor time together, because nobody else ` +
      "writes to the database while they run. Send fewer patches per batch, or patch by a query.",
  );
}

/** @throws EngineError script-syntax */
function compiled(patch: PatchScript) {
  return scriptCache.get(patch.script, { kind: "patch" });
}

/** Returns a script's document as replies show it: stored metadata only, numbers in their own spelling. */
export function shownText(document: ScriptDocument): string {
  return withMetadata(document.bodyText(), document.metadataText());
}

function isExpected(
  transaction: Transaction,
  document: number,
  expected: string | undefined,
): boolean {
  if (expected === undefined) return true;
  if (document < 0) return expected === "";
  return expected === currentChangeVector(transaction, document);
}

function notCurrent(
  transaction: Transaction,
  document: number,
  request: PatchRequest,
): EngineError {
  const actual = document < 0 || !transaction.exists(document) ? null : document;
  return new EngineError(
    "concurrency",
    `Could not patch document '${request.id}' because non current change vector was used`,
    {
      details: {
        Id: request.id,
        ExpectedChangeVector: request.expectedChangeVector ?? null,
        ActualChangeVector: actual === null ? null : currentChangeVector(transaction, actual),
      },
    },
  );
}

/** Returns the error for a script that changed the document after deleting it. */
export function deletedMeanwhile(target: ScriptDocument, id: string): EngineError {
  const metadata = target.metadata();
  const vector = isObject(metadata) ? getOwn(metadata, "@change-vector") : undefined;
  const expected = typeof vector === "string" ? vector : null;
  return new EngineError(
    "concurrency",
    `Document ${id} does not exist, but Put was called with change vector: ${expected}. ` +
      "Optimistic concurrency violation, transaction will be aborted.",
    { details: { Id: id, ExpectedChangeVector: expected, ActualChangeVector: null } },
  );
}

/** @throws EngineError invalid-argument for ids that request a generated one */
function checkPatchedId(id: string): void {
  if (id === "" || id.endsWith("/") || id.endsWith("|")) {
    throw new EngineError(
      "invalid-argument",
      `The ID argument has invalid value: '${id}' (Parameter 'id')`,
    );
  }
}
