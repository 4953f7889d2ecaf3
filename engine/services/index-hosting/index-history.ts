/**
 * The history of indexes: for each name the last deployed definitions, with deployer and time. A definition equal to
 * the newest revision is not recorded again. Behaves as RavenDB 7.2.7 does: the history is deleted with the index,
 * survives a reset, and does not record changes of lock mode and priority.
 *
 * Knows neither which indexes exist nor how they are built.
 *
 * Invariants:
 * - The revisions of an index use at most `indexHistoryLengthMax`; the newest revision is always retained.
 */

import type { JsonObject } from "../../base/json/json-object.ts";
import { indexHistoryLengthMax, indexRevisionsDefault } from "../../base/limits.ts";
import {
  isSameIndex,
  parseSentOptions,
  type SentOptions,
  type StaticDefinition,
} from "../../indexing/definitions/static-definition.ts";
import {
  indexHistoryKey,
  indexHistoryNumber,
  indexHistoryPrefix,
} from "../../state/keyspaces/index-histories.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import type { Transaction } from "../../state/store/transaction.ts";

/** The origin of a deployment. */
export interface Deployer {
  /** The name of a machine, an address, or a component of the server. */
  readonly source: string;
  /** The index of the command; 0: none. */
  readonly commandIndex: number;
}

export interface IndexRevision extends Deployer {
  readonly definition: StaticDefinition;
  readonly options: SentOptions;
  readonly createdAtMicros: number;
}

/** Returns the number of revisions for a value of the setting `Indexing.History.NumberOfRevisions`. */
export function revisionsKept(setting: unknown): number {
  const text = String(setting ?? "");
  return /^\d{1,9}$/.test(text) ? Number(text) : indexRevisionsDefault;
}

/** Records a deployed definition in the index's history. `countMax`: revisions of the index that are kept. */
export function keepRevision(
  transaction: Transaction,
  revision: IndexRevision,
  countMax: number,
): void {
  const { indexHistories } = transaction.keyspaces;
  const { name } = revision.definition;
  const known = transaction.entriesWithPrefix(indexHistories, indexHistoryPrefix(name)).reverse();
  const newest = known[0];
  if (newest !== undefined && isSameDeployment(asRevision(newest[1]), revision)) return;
  let length = JSON.stringify(revision).length;
  const number = newest === undefined ? 1 : indexHistoryNumber(newest[0]) + 1;
  if (countMax > 0) {
    const value = revision as unknown as JsonObject;
    transaction.putEntry(indexHistories, indexHistoryKey(name, number), value);
  }
  for (const [i, [key, older]] of known.entries()) {
    length += JSON.stringify(older).length;
    if (i + 1 < countMax && length <= indexHistoryLengthMax) continue;
    transaction.putEntry(indexHistories, key, undefined);
  }
}

/** Deletes the history of an index. */
export function dropRevisions(transaction: Transaction, name: string): void {
  const { indexHistories } = transaction.keyspaces;
  const prefix = indexHistoryPrefix(name);
  for (const [key] of transaction.entriesWithPrefix(indexHistories, prefix)) {
    transaction.putEntry(indexHistories, key, undefined);
  }
}

/** Returns the revisions of each index by its name, newest first. */
export function historiesOf({ keyspaces }: DatabaseState): Map<string, IndexRevision[]> {
  const histories = new Map<string, IndexRevision[]>();
  for (const [, value] of keyspaces.indexHistories.withPrefix("")) {
    const revision = asRevision(value);
    const { name } = revision.definition;
    const revisions = histories.get(name);
    if (revisions === undefined) histories.set(name, [revision]);
    else revisions.unshift(revision);
  }
  return histories;
}

/** Returns the revision that records a definition. @throws EngineError invalid-format */
export function revisionOf(
  definition: StaticDefinition,
  json: JsonObject,
  deployer: Deployer,
  createdAtMicros: number,
): IndexRevision {
  return { definition, options: parseSentOptions(json), ...deployer, createdAtMicros };
}

function isSameDeployment(left: IndexRevision, right: IndexRevision): boolean {
  const { lockMode, priority, state } = left.options;
  return (
    isSameIndex(left.definition, right.definition) &&
    lockMode === right.options.lockMode &&
    priority === right.options.priority &&
    state === right.options.state
  );
}

function asRevision(value: JsonObject): IndexRevision {
  return value as unknown as IndexRevision;
}
