/** Monitored figures of an open database: sizes, counts and the state of its indexes, without reading documents. */
import type { Meter } from "../../base/scheduling/meter.ts";
import type { IndexErrors } from "../../indexing/index-errors.ts";
import type { OpenIndex } from "../../indexing/open-index.ts";
import { StaticIndex } from "../../indexing/static-index.ts";
import type { LogFigures } from "../../state/store/store.ts";
import type { WriteMeters } from "../../state/store/write-meters.ts";
import type { OpenDatabase } from "./open-database.ts";

interface MonitoredIndex {
  readonly name: string;
  readonly isStale: boolean;
  /** It answers no queries: it failed, or too many of its maps did. */
  readonly hasFailed: boolean;
  /** Number of etags between the newest change and the last processed one; 0 if it is up to date. */
  readonly etagLag: number;
  /** Attempts to map or reduce that have failed. */
  readonly errorCount: number;
  readonly isReduce: boolean;
  readonly mapAttempts: number;
  readonly reduceAttempts: number;
  /** Bytes of its newest snapshot, or 0. */
  readonly snapshotBytes: number;
}

export interface MonitoredFigures extends LogFigures {
  readonly newestEtag: number;
  readonly documents: number;
  readonly damagedItems: number;
  readonly indexes: readonly MonitoredIndex[];
  readonly operationsRunning: number;
  readonly subscriptions: number;
  readonly subscriptionWorkers: number;
}

/** Counts since the opening. */
export interface DatabaseMeters {
  readonly writes: WriteMeters;
  /** Attempts to map of indexes that do not reduce, one meter for each index. */
  readonly indexed: readonly Meter[];
  /** As `indexed`, of the other indexes. */
  readonly mapped: readonly Meter[];
  /** Attempts to reduce of those. */
  readonly reduced: readonly Meter[];
}

export function databaseMeters({ state, queries }: OpenDatabase): DatabaseMeters {
  const all = queries.indexes.all();
  const reducing = all.filter(isReduce);
  return {
    writes: state.writes,
    indexed: all.filter((index) => !isReduce(index)).map(({ batches }) => batches.mapped),
    mapped: reducing.map(({ batches }) => batches.mapped),
    reduced: reducing.map(({ batches }) => batches.reduced),
  };
}

function isReduce({ type }: OpenIndex): boolean {
  return type.endsWith("MapReduce");
}

export function monitoredFigures(database: OpenDatabase): MonitoredFigures {
  const { state, queries, operations, subscriptions } = database;
  const nowMicros = state.nowMicros();
  let workers = 0;
  let tasks = 0;
  for (const { name } of subscriptions.tasks()) {
    tasks++;
    workers += subscriptions.workersOf(name).length;
  }
  return {
    newestEtag: state.committedEtag,
    documents: state.documents.documentCount,
    ...database.logFigures(),
    damagedItems: database.damaged.length,
    indexes: queries.indexes.all().map((index) => ({
      name: index.name,
      isStale: index.isStale,
      hasFailed: index.stateAt(nowMicros) === "Error",
      etagLag: index.isStale ? Math.max(0, state.committedEtag - index.lastEtag) : 0,
      errorCount: index instanceof StaticIndex ? errorCountOf(index.errors) : 0,
      isReduce: isReduce(index),
      mapAttempts: index.counts().mapAttempts,
      reduceAttempts: index.counts().reduceAttempts,
      snapshotBytes: queries.administration.snapshotBytesOf(index),
    })),
    operationsRunning: operations.list().filter(({ state: { status } }) => status === "running")
      .length,
    subscriptions: tasks,
    subscriptionWorkers: workers,
  };
}

function errorCountOf({ mapErrors, mapReferenceErrors, reduceErrors }: IndexErrors): number {
  return mapErrors + mapReferenceErrors + reduceErrors;
}
