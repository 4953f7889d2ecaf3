/**
 * Predicts the records that the commands of a batch read, from the ids in the commands: they are fetched ahead
 * (`Store.fetchAhead`), because each record that a transaction misses makes it run again. Documents that are found by a
 * script, a prefix or an earlier command of the batch are not predicted.
 */

import { pauseIfDue } from "../base/scheduling/time-slices.ts";
import { documentFlags, explicitVectorRowFlag } from "../state/documents/document-record.ts";
import type { DatabaseState } from "../state/store/database-state.ts";
import { type FetchedRecords, nothingFetched } from "../state/store/fetched-records.ts";
import type { Store } from "../state/store/store.ts";
import type { BatchCommand } from "./batch-parser.ts";

/** Commands that read the record of the document `Id`. */
const readers: ReadonlySet<string> = new Set([
  "DELETE",
  "AttachmentPUT",
  "AttachmentDELETE",
  "AttachmentMOVE",
  "AttachmentCOPY",
  "Counters",
  "TimeSeries",
  "TimeSeriesWithIncrements",
  "TimeSeriesBulkInsert",
  "TimeSeriesCopy",
  "PATCH",
  "JsonPatch",
  "ForceRevisionCreation",
]);

/** Number of commands between two readings of the clock. */
const commandsPerLook = 256;

/** Reads the records that the commands will need, before their transaction keeps other writers waiting. */
export async function recordsAhead(
  database: Store,
  commands: readonly BatchCommand[],
): Promise<FetchedRecords> {
  if (database.state.log.isInMemory()) return nothingFetched;
  return await database.fetchAhead(await documentsRead(database.state, commands));
}

/** Returns the numbers of the documents whose records the commands read. Pauses when there are many commands. */
async function documentsRead(
  state: DatabaseState,
  commands: readonly BatchCommand[],
): Promise<Set<number>> {
  const found = new Set<number>();
  for (const [position, command] of commands.entries()) {
    if (position % commandsPerLook === commandsPerLook - 1) await pauseIfDue();
    for (const id of idsOf(command)) {
      const document = state.documents.lookup(id);
      if (document < 0 || state.documents.newestEtag(document) === 0) continue;
      if (command.type !== "PUT" || isReadByPut(state, document, command)) found.add(document);
    }
  }
  return found;
}

function* idsOf(command: BatchCommand): Generator<string> {
  if (command.type === "BatchPATCH") {
    const items = command.value("Ids");
    if (!Array.isArray(items)) return;
    for (const item of items) {
      const { Id } = (item ?? {}) as Record<string, unknown>;
      if (typeof Id === "string") yield Id;
    }
    return;
  }
  if (command.type !== "PUT" && !readers.has(command.type)) return;
  for (const key of ["Id", "DestinationId"]) {
    const id = command.value(key);
    if (typeof id === "string" && id !== "") yield id;
  }
}

/**
 * A document is replaced without reading the old one, unless that is stored as a revision or has a vector of its own.
 */
function isReadByPut(
  { documents, keyspaces }: DatabaseState,
  document: number,
  command: BatchCommand,
): boolean {
  const flags = documents.newestFlags(document);
  return (
    (flags & (explicitVectorRowFlag | documentFlags.HasRevisions)) !== 0 ||
    keyspaces.revisionRules.of(documents.newestCollection(document)) !== null ||
    (command.value("ForceRevisionCreationStrategy") ?? "None") !== "None"
  );
}
