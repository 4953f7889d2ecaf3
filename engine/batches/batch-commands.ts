/** THE table of batch commands: type -> handler. Result rows have the members and order of RavenDB 7.2.7's. */

import { EngineError } from "../base/errors.ts";
import { byteObjectOpen } from "../base/json/bytes.ts";
import { longValueBytes } from "../base/json/sliced-value.ts";
import { preparedBytesMin } from "../base/limits.ts";
import { countDropped } from "../base/memory/gc-hints.ts";
import { largeBuffer } from "../base/memory/large-buffer.ts";
import { boundedDocumentId } from "../base/names.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { firstMillisecond, formatTimestamp } from "../base/timestamp.ts";
import { DocumentParser } from "../state/documents/document-parser.ts";
import { flagsText } from "../state/documents/document-text.ts";
import type { ParsedDocument } from "../state/documents/parsed-document.ts";
import type { Attachment } from "../state/keyspaces/attachments.ts";
import type { DatabaseState } from "../state/store/database-state.ts";
import type { Transaction } from "../state/store/transaction.ts";
import {
  copyAttachment,
  deleteAttachment,
  moveAttachment,
  putAttachment,
} from "../writes/attachments.ts";
import { applyCounters, parseDocumentCounters } from "../writes/counter-operations.ts";
import {
  currentChangeVector,
  deleteDocument,
  forceRevisionBefore,
  forceRevisionOf,
  putParsed,
  storedIdOf,
} from "../writes/documents.ts";
import { type DocumentText, parsedOf, prepareDocument } from "../writes/prepared-document.ts";
import { copySeries } from "../writes/time-series.ts";
import {
  applySeriesOperations,
  optionalTime,
  parseBulkAppends,
  parseSeriesOperations,
} from "../writes/time-series-operations.ts";
import type { BatchHandler, BatchRun } from "./batch.ts";
import type { BatchCommand } from "./batch-parser.ts";
import { patchJson, patchMany, patchOne } from "./batch-patch.ts";
import type { BatchRow } from "./batch-rows.ts";

/** Milliseconds of sorting between two pauses. */
const settleMs = 1;

export const batchHandlers: ReadonlyMap<string, BatchHandler> = new Map<string, BatchHandler>([
  ["PUT", put],
  ["DELETE", remove],
  ["AttachmentPUT", attachmentPut],
  ["AttachmentDELETE", attachmentDelete],
  ["AttachmentMOVE", attachmentMove],
  ["AttachmentCOPY", attachmentCopy],
  ["Counters", counters],
  ["TimeSeries", timeSeries],
  ["TimeSeriesWithIncrements", timeSeries],
  ["TimeSeriesBulkInsert", timeSeriesBulkInsert],
  ["TimeSeriesCopy", timeSeriesCopy],
  ["PATCH", patchOne],
  ["BatchPATCH", patchMany],
  ["JsonPatch", patchJson],
  ["ForceRevisionCreation", forceRevision],
  ["BatchTrackChanges", trackChanges],
  ["HeartBeat", () => null],
  // Only cluster-wide transactions execute these: RavenDB 7.2.7 ignores them in others.
  ["CompareExchangePUT", () => null],
  ["CompareExchangeDELETE", () => null],
]);

/** Returns the text of the document of a PUT command. @throws EngineError invalid-operation if it is missing */
export function documentTextOf(command: BatchCommand): DocumentText {
  const span = command.span("Document");
  if (span === undefined) {
    throw new EngineError("invalid-operation", "PUT command must have a 'Document' property");
  }
  return { bytes: command.bytes, from: span.from, to: span.to };
}

/**
 * Parses a command's document before the transaction, if it has at least `bytesMin` bytes; then the command keeps no
 * text. @throws EngineError json-…, too-large
 */
export async function prepareCommand(
  state: DatabaseState,
  command: BatchCommand,
  bytesMin = preparedBytesMin,
): Promise<ParsedDocument | null> {
  const span = command.type === "PUT" ? command.span("Document") : undefined;
  if (span === undefined || span.to - span.from < bytesMin) return null;
  const prepared = await prepareDocument(state, documentTextOf(command), command.text("Id") ?? "");
  command.letGo();
  countDropped(span.to - span.from);
  return prepared;
}

/** `{"Type":"PUT","Id","Document","ChangeVector"?,"ForceRevisionCreationStrategy"?}` */
function put({ transaction, prepared, rows }: BatchRun, command: BatchCommand): null {
  const given = command.text("Id");
  const id = given !== null && given.trim() !== "" ? given : transaction.state.newGuid();
  // A generated identity must not overwrite a document that was stored under that id by hand.
  const expected = command.text("ChangeVector") ?? (id.endsWith("|") ? "" : undefined);
  switch (command.text("ForceRevisionCreationStrategy") ?? "None") {
    case "Before":
      forceRevisionBefore(transaction, id);
      break;
    case "None":
      break;
    default:
      throw new EngineError(
        "invalid-operation",
        `Invalid property name: ${command.text("ForceRevisionCreationStrategy")}`,
      );
  }
  const text = documentTextOf(command);
  const parsed = parsedOf(transaction.state, text, prepared?.get(command));
  const stored = putParsed(transaction, id, parsed, expected);
  rows.addStored(transaction, stored);
  return null;
}

/** `{"Type":"ForceRevisionCreation","Id"}` */
function forceRevision({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const stored = forceRevisionOf(transaction, requiredText(command, "Id"));
  if (stored === null) return '{"RevisionCreated":false,"Type":"ForceRevisionCreation"}';
  const vector = currentChangeVector(transaction, stored.document);
  const row =
    `{"RevisionCreated":true,"Type":"ForceRevisionCreation","@id":${JSON.stringify(stored.id)}` +
    `,"@change-vector":"${vector}","@last-modified":"${formatTimestamp(stored.lastModified)}"` +
    `,"@flags":"${flagsText(stored.flags)}"}`;
  return row;
}

/** `{"Type":"DELETE","Id","ChangeVector"?,"IdPrefixed"?}` */
function remove(run: BatchRun, command: BatchCommand): BatchRow | Work<BatchRow> {
  const { transaction } = run;
  const id = command.text("Id");
  const idText = JSON.stringify(id);
  if (command.isSet("IdPrefixed")) return removeAll(run, command);
  if (id) boundedDocumentId(id);
  const isDeleted = id
    ? deleteDocument(transaction, id, command.text("ChangeVector") ?? undefined)
    : false;
  const rest = isDeleted ? ',"ChangeVector":null' : "";
  return `{"Id":${idText},"Type":"DELETE","Deleted":${isDeleted}${rest}}`;
}

function tooManyUnder(prefix: string): EngineError {
  return new EngineError(
    "too-large",
    `More documents than a batch may delete have ids that begin with '${prefix}': a batch is one transaction, and each of ` +
      "them counts as a command (setting Http.MaxBatchCommands). Delete them by query, which takes as many transactions as " +
      `it needs: DELETE /databases/<name>/queries with the query "from @all_docs where startsWith(id(), $prefix)".`,
  );
}

/** Deletes all documents whose ids begin with `Id`. @throws EngineError invalid-argument, too-large */
function* removeAll(run: BatchRun, command: BatchCommand): Work<BatchRow> {
  const { transaction } = run;
  const prefix = command.text("Id");
  if (!prefix) {
    throw new EngineError("invalid-argument", "A prefix of ids to delete cannot be empty.");
  }
  // Reading by prefix sorts all new documents, however many there are.
  while (!transaction.state.documents.settleOrder(settleMs)) yield;
  const documents = transaction.withIdPrefix(prefix, run.deletableCount);
  if (documents.length > run.deletableCount) throw tooManyUnder(prefix);
  run.deletableCount -= documents.length;
  for (const document of documents) {
    yield;
    deleteDocument(transaction, storedIdOf(transaction, document));
  }
  const row = `{"Id":${JSON.stringify(prefix)},"Type":"DELETE","Deleted":${documents.length > 0}}`;
  return row;
}

/** `{"Type":"AttachmentPUT","Id","Name","ContentType"?,"ChangeVector"?}`; its content is uploaded with the batch. */
function attachmentPut(run: BatchRun, command: BatchCommand): BatchRow {
  const { transaction } = run;
  if (!command.text("Name")) {
    throw new EngineError("invalid-operation", "AttachmentPUT command must have a 'Name' property");
  }
  const documentId = requiredText(command, "Id");
  const name = requiredText(command, "Name");
  const contentType = command.value("ContentType") === null ? "" : command.text("ContentType");
  const { hash, size } = run.nextContent();
  const attachment = putAttachment(
    transaction,
    documentId,
    { name, contentType: contentType ?? "", hash, size },
    command.text("ChangeVector") ?? undefined,
  );
  return () =>
    `{"Id":${JSON.stringify(documentId)},"Type":"AttachmentPUT"${attachmentMembers(attachment, contentType)}` +
    `,"DocumentChangeVector":${vectorText(transaction, documentId)}}`;
}

/** `{"Type":"AttachmentDELETE","Id","Name","ChangeVector"?}` */
function attachmentDelete({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const documentId = requiredText(command, "Id");
  const name = requiredText(command, "Name");
  deleteAttachment(transaction, documentId, name, command.text("ChangeVector") ?? undefined);
  return () => {
    const vector = vectorText(transaction, documentId);
    const rest = vector === "null" ? "" : `,"DocumentChangeVector":${vector}`;
    return `{"Type":"AttachmentDELETE","@id":${JSON.stringify(documentId)},"Name":${JSON.stringify(name)}${rest}}`;
  };
}

/** `{"Type":"AttachmentMOVE","Id","Name","DestinationId","DestinationName","ChangeVector"?}` */
function attachmentMove({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const source = endOf(command, "Id", "Name");
  const target = endOf(command, "DestinationId", "DestinationName");
  const expected = command.text("ChangeVector") ?? undefined;
  const attachment = moveAttachment(transaction, source, target, expected);
  const names =
    `,"Name":${JSON.stringify(source.name)},"DestinationId":${JSON.stringify(target.documentId)}` +
    `,"DestinationName":${JSON.stringify(target.name)}`;
  return () =>
    `{"Id":${JSON.stringify(source.documentId)},"Type":"AttachmentMOVE"${names}${contentMembers(attachment)}` +
    `,"DocumentChangeVector":${vectorText(transaction, source.documentId)}` +
    `,"DestinationDocumentChangeVector":${vectorText(transaction, target.documentId)}}`;
}

/** `{"Type":"AttachmentCOPY","Id","Name","DestinationId","DestinationName","ChangeVector"?}` */
function attachmentCopy({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const source = endOf(command, "Id", "Name");
  const target = endOf(command, "DestinationId", "DestinationName");
  const expected = command.text("ChangeVector") ?? undefined;
  const attachment = copyAttachment(transaction, source, target, expected);
  return () =>
    `{"Id":${JSON.stringify(target.documentId)},"Type":"AttachmentCOPY"${attachmentMembers(attachment)}` +
    `,"DocumentChangeVector":${vectorText(transaction, target.documentId)}}`;
}

/** Parses and minifies the operations, in slices if they are long. @throws EngineError json-… */
function* countersText(
  shared: DocumentParser,
  bytes: Buffer,
  from: number,
  to: number,
): Work<Buffer> {
  if (to - from < longValueBytes || bytes[from] !== byteObjectOpen) {
    // A copy: it is used over pauses, in which others use the parser.
    return Buffer.from(shared.parseValue(bytes, from, to).body);
  }
  const parser = new DocumentParser(null);
  return (yield* parser.parseInSlices(bytes, from, to, largeBuffer(to - from))).body;
}

/** `{"Type":"Counters","Id","Counters":{"DocumentId","Operations":[…]}}` */
function* counters({ transaction }: BatchRun, command: BatchCommand): Work<BatchRow> {
  const span = command.span("Counters");
  if (span === undefined) {
    throw new EngineError("invalid-operation", "Counters command must have a 'Counters' property");
  }
  const text = yield* countersText(transaction.state.parser, command.bytes, span.from, span.to);
  const request = yield* parseDocumentCounters(text, 0);
  const { slots, etag, isListChanged } = yield* applyCounters(transaction, request);
  const details = slots.map((slot) =>
    slot === null || slot.name === ""
      ? "null"
      : `{"DocumentId":${JSON.stringify(slot.documentId)},"CounterName":${JSON.stringify(slot.name)},"TotalValue":${slot.value},"CounterValues":null}`,
  );
  return () => {
    const documentVector = isListChanged ? vectorText(transaction, request.documentId) : "null";
    const own = etag === 0 ? "null" : `"${transaction.changeVectorAt(etag)}"`;
    const vector = isListChanged ? documentVector : own;
    return (
      `{"Id":${JSON.stringify(command.text("Id"))},"ChangeVector":${vector},"Type":"Counters"` +
      `,"CountersDetail":{"Counters":[${details.join(",")}]},"DocumentChangeVector":${documentVector}}`
    );
  };
}

/** `{"Type":"TimeSeries","Id","TimeSeries":{"Name","Appends"?,"Deletes"?,"Increments"?}}` */
function* timeSeries({ transaction }: BatchRun, command: BatchCommand): Work<BatchRow> {
  const documentId = requiredText(command, "Id");
  const operations = yield* parseSeriesOperations(command.value("TimeSeries"));
  const etag = yield* applySeriesOperations(transaction, documentId, operations);
  return seriesRow(transaction, documentId, etag, command);
}

/** `{"Type":"TimeSeriesBulkInsert","Id","TimeSeries":{"Name","Appends":[[time,count,…values,tag?],…]}}`: no row */
function* timeSeriesBulkInsert({ transaction }: BatchRun, command: BatchCommand): Work<null> {
  const documentId = requiredText(command, "Id");
  const operations = yield* parseBulkAppends(command.value("TimeSeries"));
  yield* applySeriesOperations(transaction, documentId, operations);
  return null;
}

/** `{"Type":"TimeSeriesCopy","Id","Name","DestinationId","DestinationName","From"?,"To"?}` */
function timeSeriesCopy({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const source = endOf(command, "Id", "Name");
  const target = endOf(command, "DestinationId", "DestinationName");
  const from = optionalTime(command.value("From"), firstMillisecond);
  const to = optionalTime(command.value("To"));
  const etag = copySeries(transaction, { ...source, from, to }, target);
  return seriesRow(transaction, target.documentId, etag, command);
}

/**
 * `{"Type":"BatchTrackChanges","TrackedEntities":{id: change vector}}`: the batch is refused when one of the documents
 * has another change vector; "" requires that it does not exist, null is not checked.
 */
function trackChanges({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const tracked = command.value("TrackedEntities");
  if (typeof tracked !== "object" || tracked === null || Array.isArray(tracked)) {
    throw new EngineError(
      "invalid-operation",
      "BatchTrackChanges command must have a 'TrackedEntities' object",
    );
  }
  for (const [id, expected] of Object.entries(tracked)) {
    if (expected === null) continue;
    if (typeof expected !== "string") {
      throw new EngineError("invalid-format", `The change vector of '${id}' must be a string.`);
    }
    const document = transaction.find(id);
    const actual = document < 0 ? "" : currentChangeVector(transaction, document);
    if (actual === expected) continue;
    throw new EngineError(
      "concurrency",
      `Document '${id}' has been modified since it was loaded. The expected change vector '${expected || "string.Empty"}' does not match the current change vector '${actual || "string.Empty"}'.`,
      { details: { Id: id, ExpectedChangeVector: expected, ActualChangeVector: actual } },
    );
  }
  return '{"Type":"BatchTrackChanges","Result":1}';
}

/** @param etag 0 when nothing was changed. */
function seriesRow(
  transaction: Transaction,
  documentId: string,
  etag: number,
  { type }: BatchCommand,
): BatchRow {
  const vector = etag === 0 ? "null" : `"${transaction.changeVectorAt(etag)}"`;
  return () => `{"Id":${JSON.stringify(documentId)},"ChangeVector":${vector},"Type":"${type}"}`;
}

function endOf(command: BatchCommand, idKey: string, nameKey: string) {
  return { documentId: requiredText(command, idKey), name: requiredText(command, nameKey) };
}

/** @throws EngineError invalid-argument when it is absent or blank */
function requiredText(command: BatchCommand, key: string): string {
  const text = command.text(key);
  if (text === null || text.trim() === "") {
    throw new EngineError("invalid-argument", `${command.type}: '${key}' cannot be empty.`);
  }
  return text;
}

function attachmentMembers(
  attachment: Attachment,
  contentType: string | null = attachment.contentType,
): string {
  return `,"Name":${JSON.stringify(attachment.name)}${contentMembers(attachment, contentType)}`;
}

function contentMembers(
  { changeVector, hash, contentType: stored, size }: Attachment,
  contentType: string | null = stored,
): string {
  return `,"ChangeVector":"${changeVector}","Hash":"${hash}","ContentType":${JSON.stringify(contentType)},"Size":${size}`;
}

/** Returns the document's change vector as JSON, as the transaction leaves it; null when there is no document. */
function vectorText(transaction: Transaction, documentId: string): string {
  const document = transaction.find(documentId);
  return document < 0 ? "null" : `"${currentChangeVector(transaction, document)}"`;
}
