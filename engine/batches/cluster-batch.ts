/**
 * Executes a cluster-wide batch: documents and compare-exchange values, all or nothing, on the only node. Each document
 * gets an atomic guard, the compare-exchange value `rvn-atomic/<id>`, whose index is part of the document's change
 * vector (`TRXN`), so that a stale cluster-wide write of it can be refused.
 *
 *   change vector := RAFT:<number of documents written by such batches>-<hash>(,TRXN:<index of the batch>-<hash>)?
 *
 * Rows, texts and the order of checks equal those of RavenDB 7.2.7.
 *
 * Invariants:
 * - All writes of the batch have the same index, greater than all before.
 * - All violations are collected, and reported together, before anything is written.
 */

import { lowerCased } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import { checkCompareExchangeKey } from "../base/names.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { formatTimestamp } from "../base/timestamp.ts";
import { DocumentParser } from "../state/documents/document-parser.ts";
import type { ParsedDocument } from "../state/documents/parsed-document.ts";
import { compareExchangeKey } from "../state/keyspaces/compare-exchange.ts";
import { clusterCountKey } from "../state/keyspaces/values.ts";
import type { Store } from "../state/store/store.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { checkExpiry, nextIndex } from "../writes/compare-exchange.ts";
import { deleteDocument, nextIdentity, type PutOptions, putParsed } from "../writes/documents.ts";
import { parsedOf } from "../writes/prepared-document.ts";
import { documentTextOf, prepareCommand } from "./batch-commands.ts";
import type { BatchCommand } from "./batch-parser.ts";
import { recordsAhead } from "./batch-records.ts";
import { earlierOutcome, keepOutcome } from "./repeated-requests.ts";

/** Prefix of the keys of guards. */
export const guardPrefix = "rvn-atomic/";
const guardIndexPattern = /(?:^|,)\s*TRXN:(\d+)-/;

export interface ClusterBatchResult {
  /** JSON texts of the rows, joined by commas: documents, then compare-exchange values. */
  readonly rows: string;
  readonly index: number;
}

/** A command with the facts that are checked before anything is written. */
interface ClusterCommand {
  readonly command: BatchCommand;
  readonly type: "PUT" | "DELETE" | "CompareExchangePUT" | "CompareExchangeDELETE";
  readonly id: string;
}

interface Violation {
  readonly Type: "Document" | "CompareExchange";
  readonly Id: string;
  readonly Expected: number;
  /** -1 if the value does not exist. */
  readonly Actual: number;
}

/**
 * Executes the commands in order. `hasGuards`: documents get guards, and existing guards are checked. `requestId`: id
 * of a request that may be repeated.
 * @throws EngineError cluster-concurrency with all violations, raft-apply, out-of-range, and the errors of storing
 */
export async function executeClusterBatch(
  database: Store,
  commands: readonly BatchCommand[],
  hasGuards: boolean,
  requestId?: string,
): Promise<ClusterBatchResult> {
  for (const command of commands) checkType(command);
  const prepared = new Map<BatchCommand, ParsedDocument>();
  for (const command of commands) {
    const one = await prepareCommand(database.state, command);
    if (one !== null) prepared.set(command, one);
  }
  const fetched = await recordsAhead(database, commands);
  const carryOut = function* carryOut(transaction: Transaction): Work<ClusterBatchResult> {
    const earlier = earlierOutcome(transaction, "batch", requestId);
    if (earlier !== undefined) return earlier as ClusterBatchResult;
    const known: ClusterCommand[] = [];
    for (const command of commands) {
      known.push(checked(transaction, command));
      yield;
    }
    yield* refuseViolations(transaction, known, hasGuards);
    const index = nextIndex(transaction);
    const documentRows: string[] = [];
    const valueRows: string[] = [];
    for (const each of known) {
      if (each.type === "PUT" || each.type === "DELETE") {
        documentRows.push(writeDocument(transaction, each, index, hasGuards, prepared));
      } else valueRows.push(writeValue(transaction, each, index));
      yield;
    }
    const result = { rows: [...documentRows, ...valueRows].join(","), index };
    keepOutcome(transaction, "batch", requestId, result);
    return result;
  };
  return await database.writeInSlices(carryOut, { fetched });
}

function checkType({ type }: BatchCommand): void {
  if (type === "PUT" || type === "DELETE") return;
  if (type === "CompareExchangePUT" || type === "CompareExchangeDELETE") return;
  throw new EngineError(
    "out-of-range",
    `Specified argument was out of the range of valid values. (Parameter 'The command type ${type} is not supported in cluster transaction.')`,
  );
}

/** @throws EngineError raft-apply, compare-exchange-key-invalid, compare-exchange-key-too-big, invalid-operation */
function checked(transaction: Transaction, command: BatchCommand): ClusterCommand {
  const { idSeparator } = transaction.keyspaces;
  const type = command.type as ClusterCommand["type"]; // checked by `checkType`
  const id = command.text("Id") ?? "";
  if (id.trim() === "") {
    throw new EngineError(
      "raft-apply",
      `In ClusterTransactionDataCommand document id cannot be null, empty or white spaces as part of cluster transaction. Type:(${type}), Index:(${indexOf(command)})`,
    );
  }
  if (command.isSet("IdPrefixed")) {
    throw new EngineError(
      "raft-apply",
      "Deleting by prefix is not supported on cluster transaction",
    );
  }
  if (type === "PUT" && command.span("Document") === undefined) {
    throw new EngineError("invalid-operation", "PUT command must have a 'Document' property");
  }
  if (type === "PUT" && id.endsWith("|")) {
    const number = nextIdentity(transaction, id);
    return { command, type, id: `${id.slice(0, -1)}${idSeparator}${number}` };
  }
  if (id.endsWith("|") || id.endsWith(idSeparator)) {
    throw new EngineError(
      "raft-apply",
      `Document id ${id} cannot end with '|' or '${idSeparator}' as part of cluster transaction`,
    );
  }
  if (type === "CompareExchangePUT" || type === "CompareExchangeDELETE") checkKey(command, id);
  return { command, type, id };
}

function checkKey(command: BatchCommand, key: string): void {
  checkCompareExchangeKey(key);
  if (lowerCased(key).startsWith(guardPrefix)) {
    throw new EngineError(
      "compare-exchange-key-invalid",
      `You cannot manipulate the atomic guard '${key}' via the cluster-wide session`,
    );
  }
  if (command.type === "CompareExchangePUT" && command.span("Document") === undefined) {
    throw new EngineError("raft-apply", `The compare exchange value '${key}' has no 'Document'.`);
  }
}

function indexOf(command: BatchCommand): number {
  const index = command.value("Index");
  if (typeof index !== "number") return 0;
  // An impossible index must not become 0, which means that no value is expected.
  if (Math.abs(index) > Number.MAX_SAFE_INTEGER) return Number.MAX_SAFE_INTEGER;
  return Number.isInteger(index) ? index : 0;
}

/** @throws EngineError cluster-concurrency */
function* refuseViolations(
  transaction: Transaction,
  commands: readonly ClusterCommand[],
  hasGuards: boolean,
): Work<void> {
  const issues: string[] = [];
  const violations: Violation[] = [];
  const seen = new Set<string>();
  for (const { command, type, id } of commands) {
    yield;
    const isDocument = type === "PUT" || type === "DELETE";
    const key = isDocument ? `${guardPrefix}${lowerCased(id)}` : id;
    const lowerKey = compareExchangeKey(key);
    // Values written earlier in the same batch are no violation.
    if ((isDocument && !hasGuards) || seen.has(lowerKey)) continue;
    seen.add(lowerKey);
    // A session without optimistic concurrency still sends the change vector that it has loaded.
    const vector = command.text("OriginalChangeVector") ?? command.text("ChangeVector");
    if (type === "DELETE" && vector === null) continue;
    const expected = isDocument
      ? Number(guardIndexPattern.exec(vector ?? "")?.[1] ?? 0)
      : indexOf(command);
    const actual = indexNow(transaction, lowerKey);
    if (actual === expected || (actual === -1 && expected === 0)) continue;
    if (isDocument) {
      issues.push(
        `Guard compare exchange value '${key}' index does not match the transaction index's ${expected} change vector on ${id}`,
      );
    }
    const verb = type === "PUT" || type === "CompareExchangePUT" ? "putting" : "deleting";
    issues.push(
      `Concurrency check failed for ${verb} the key '${key}'. Requested index: ${expected}, actual index: ${actual}`,
    );
    violations.push({
      Type: isDocument ? "Document" : "CompareExchange",
      Id: key,
      Expected: expected,
      Actual: actual,
    });
  }
  if (violations.length === 0) return;
  throw new EngineError(
    "cluster-concurrency",
    `Failed to execute cluster transaction due to the following issues: ${issues.join("\n")}`,
    {
      details: {
        Id: null,
        ExpectedChangeVector: null,
        ActualChangeVector: null,
        ConcurrencyViolations: violations,
      },
    },
  );
}

function indexNow(transaction: Transaction, key: string): number {
  return transaction.entry(transaction.keyspaces.compareExchange, key)?.index ?? -1;
}

/** @returns its row */
function writeDocument(
  transaction: Transaction,
  { command, type, id }: ClusterCommand,
  index: number,
  hasGuards: boolean,
  prepared: ReadonlyMap<BatchCommand, ParsedDocument>,
): string {
  const { state } = transaction;
  const guard = hasGuards ? `,TRXN:${index}-${state.transactionHash}` : "";
  const vector = `RAFT:${nextCount(transaction)}-${state.clusterHash}${guard}`;
  let storedId = id;
  if (type === "PUT") {
    const parsed = parsedOf(state, documentTextOf(command), prepared.get(command));
    storedId = putParsed(transaction, id, parsed, undefined, vector).id;
  } else deleteDocument(transaction, id, undefined, vector);
  if (hasGuards) setGuard(transaction, storedId, type === "PUT" ? index : null);
  const when = formatTimestamp(state.nextModified());
  const idKey = type === "PUT" ? "@id" : "Id";
  return `{"Type":"${type}","@last-modified":"${when}","${idKey}":${JSON.stringify(storedId)},"@change-vector":"${vector}"}`;
}

/**
 * Stores a parsed document, like a cluster-wide batch of this document alone, but without checking its guard: for
 * imports. @throws EngineError as `putParsed`
 */
export function putGuarded(
  transaction: Transaction,
  id: string,
  parsed: ParsedDocument,
  options: PutOptions,
): void {
  const { state } = transaction;
  const index = nextIndex(transaction);
  const vector = `RAFT:${nextCount(transaction)}-${state.clusterHash},TRXN:${index}-${state.transactionHash}`;
  const stored = putParsed(transaction, id, parsed, undefined, vector, options);
  setGuard(transaction, stored.id, index);
}

/** Sets a document's guard; `index` null: removes it, as the document is deleted. */
function setGuard(transaction: Transaction, id: string, index: number | null): void {
  const { compareExchange } = transaction.keyspaces;
  const key = `${guardPrefix}${lowerCased(id)}`;
  if (index !== null) {
    const text = `{"Object":{"Id":${JSON.stringify(id)}}}`;
    transaction.putEntry(compareExchange, key, { key, index, text });
  } else if (transaction.entry(compareExchange, key) !== undefined) {
    transaction.putEntry(compareExchange, key, undefined);
  }
}

/** Returns the sequence number of this document write among those of all cluster-wide transactions. */
function nextCount(transaction: Transaction): number {
  const { values } = transaction.keyspaces;
  const last = transaction.entry(values, clusterCountKey);
  const next = (typeof last === "number" ? last : 0) + 1;
  transaction.putEntry(values, clusterCountKey, next);
  return next;
}

/** Without shapes: values are no documents. */
const valueParser = new DocumentParser(null);

/** @returns its row */
function writeValue(
  transaction: Transaction,
  { command, type, id }: ClusterCommand,
  index: number,
): string {
  const { compareExchange } = transaction.keyspaces;
  const key = compareExchangeKey(id);
  const current = transaction.entry(compareExchange, key);
  const span = command.span("Document");
  if (type === "CompareExchangePUT" && span !== undefined) {
    valueParser.parse(command.bytes, span.from, span.to); // verifies that it is an object
    const text = valueParser.parseValue(command.bytes, span.from, span.to).body.utf8Slice();
    checkExpiry(transaction, id, text);
    transaction.putEntry(compareExchange, key, { key: current?.key ?? id, index, text });
  } else if (current !== undefined) transaction.putEntry(compareExchange, key, undefined);
  return `{"Type":"${type}","Key":${JSON.stringify(id)},"Index":${index}}`;
}
