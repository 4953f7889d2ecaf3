/** The last batches of indexes, in the shape of RavenDB 7.2.7. */
import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type { Database, IndexBatch } from "../../engine/engine.ts";
import type { JsonObject } from "../http/json-body.ts";

/** Returns `{"Name","Performance":[…]}` of the indexes selected by `isWanted`, with the batches after `version`; 0 for all. */
export function indexPerformance(
  database: Database,
  isWanted: (name: string) => boolean,
  version = 0,
): { readonly Name: string; readonly Performance: readonly JsonObject[] }[] {
  return database.indexes
    .batches()
    .filter(({ name }) => isWanted(name))
    .map(({ name, batches }) => ({
      Name: name,
      Performance: batches.filter((batch) => batch.version > version).map(batchRow),
    }));
}

/** Returns the newest version among the batches of all indexes. */
export function newestVersion(database: Database): number {
  const lists = database.indexes.batches().map(({ batches }) => batches.at(-1)?.version ?? 0);
  return Math.max(0, ...lists);
}

function batchRow(batch: IndexBatch): JsonObject {
  const passedMs = (batch.endedAtMicros - batch.startedAtMicros) / 1000;
  // A clock that was set back yields less time than the work took.
  const durationMs = rounded(Math.max(passedMs, batch.workMs));
  const reason = batch.hasCaughtUp ? "No more documents to index" : "The batch was long enough";
  const map = {
    ...step("Map", batch.workMs - batch.reduceMs),
    MapDetails: {
      BatchCompleteReason: batch.isComplete ? reason : null,
      ProcessPrivateMemory: 0,
      ProcessWorkingSet: 0,
      CurrentlyAllocated: 0,
      AllocationBudget: 0,
    },
  };
  const reduces = batch.reduced > 0 ? [step("Reduce", batch.reduceMs)] : [];
  return {
    Id: batch.id,
    Completed: batch.isComplete ? formatTimestamp(batch.endedAtMicros) : null,
    Details: step("Indexing", durationMs, [map, ...reduces]),
    InputCount: batch.inputs,
    FailedCount: batch.failures,
    OutputCount: batch.outputs,
    SuccessCount: batch.inputs - batch.failures,
    Started: formatTimestamp(batch.startedAtMicros),
    DurationInMs: durationMs,
    // Memory and document sizes are not counted per batch.
    AllocatedManagedBytes: null,
    AllocatedUnmanagedBytes: noBytes,
    DocumentsSize: noBytes,
    TombstoneDeleteSuccesses: 0,
  };
}

const noBytes = { SizeInBytes: 0, HumaneSize: "0 Bytes" };

function step(name: string, ms: number, operations: readonly JsonObject[] = []): JsonObject {
  return {
    Name: name,
    DurationInMs: rounded(ms),
    ReduceDetails: null,
    MapDetails: null,
    CleanupDetails: null,
    LuceneMergeDetails: null,
    CommitDetails: null,
    Operations: operations,
    ReferenceDetails: null,
  };
}

function rounded(ms: number): number {
  return Math.round(Math.max(0, ms) * 100) / 100;
}
