/** Revisions: read by document or change vector, bin, delete, revert. Shapes are those of RavenDB 7.2.7. */

import { foldedName } from "../../../engine/base/case-folding.ts";
import { EngineError } from "../../../engine/base/errors.ts";
import { isObject, type JsonObject } from "../../../engine/base/json/json-object.ts";
import { JsonText } from "../../../engine/base/json/json-text.ts";
import { boundedDocumentId } from "../../../engine/base/names.ts";
import { parseTimestamp } from "../../../engine/base/timestamp.ts";
import type {
  Database,
  DocumentRow,
  OperationWork,
  RevisionScope,
} from "../../../engine/engine.ts";
import { isUnchanged, quoted, StateHash } from "../../http/conditional.ts";
import { humaneSize } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

const path = "/databases/:database/revisions";
const adminPath = "/databases/:database/admin/revisions";
const int32Max = 2_147_483_647;
const nothing = "nothing";

export const revisionRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", handle: getRevisions },
  { kind: "database", method: "GET", path: `${path}/count`, access: "read", handle: getCount },
  { kind: "database", method: "GET", path: `${path}/bin`, access: "read", handle: getBin },
  { kind: "database", method: "GET", path: `${path}/size`, access: "read", handle: getSize },
  {
    kind: "database",
    method: "GET",
    path: `${path}/resolved`,
    access: "read",
    handle: getResolved,
  },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/replication/conflicts",
    access: "read",
    handle: getConflicts,
  },
  {
    kind: "database",
    method: "DELETE",
    path: adminPath,
    access: "database-admin",
    handle: removeRevisions,
  },
  {
    kind: "database",
    method: "POST",
    path: `${adminPath}/config/enforce`,
    access: "database-admin",
    handle: postEnforce,
  },
  {
    kind: "database",
    method: "POST",
    path: `${adminPath}/orphaned/adopt`,
    access: "database-admin",
    handle: postAdopt,
  },
  {
    kind: "database",
    method: "POST",
    path: `${path}/revert`,
    access: "write",
    handle: postRevert,
  },
  {
    kind: "database",
    method: "POST",
    path: `${path}/revert/docs`,
    access: "write",
    handle: postRevertDocuments,
  },
];

const jsonHeaders = { "content-type": jsonContentType };

/** GET revisions?id=…&before=…&start=…&pageSize=…  |  ?changeVector=…&changeVector=…: newest first, or those with the given change vectors */
async function getRevisions(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const metadataOnly = query.bool("metadataOnly", false);
  const vectors = query.all("changeVector");
  if (vectors.length > 0) {
    await replyByVectors(exchange, database, vectors, metadataOnly);
    return;
  }
  const id = requiredId(exchange);
  const before = query.dateMs("before", undefined);
  const start = Math.max(0, query.int("start", 0));
  const pageSize = query.int("pageSize", int32Max);
  const { rows, total } = await database.revisions.read(id, {
    before: before === undefined ? undefined : before * 1000,
    start,
    pageSize: Math.max(0, pageSize),
  });
  const etag = rows.length === 0 ? nothing : etagOf(rows);
  if (isUnchanged(exchange, etag)) {
    exchange.reply(304, jsonHeaders);
    return;
  }
  const text = resultsOf(rows, metadataOnly);
  text.addText(`,"TotalResults":${total}}`);
  exchange.replyJson(200, text.bytes, { etag: quoted(etag) });
}

async function replyByVectors(
  exchange: Exchange,
  database: Database,
  vectors: readonly string[],
  metadataOnly: boolean,
): Promise<void> {
  const found: (DocumentRow | null)[] = [];
  for (const vector of vectors) found.push(await database.revisions.byChangeVector(vector));
  if (found.length === 1 && found[0] === null) {
    exchange.reply(404, jsonHeaders);
    return;
  }
  const etag = etagOf(found);
  if (isUnchanged(exchange, etag)) {
    exchange.reply(304, jsonHeaders);
    return;
  }
  const text = resultsOf(found, metadataOnly).addText("}");
  exchange.replyJson(200, text.bytes, { etag: quoted(etag) });
}

/** GET revisions/count?id=…: `{"RevisionsCount":n}` */
function getCount(exchange: Exchange, { database }: DatabaseContext): void {
  exchange.replyJson(200, { RevisionsCount: database.revisions.count(requiredId(exchange)) });
}

/** GET revisions/bin?start=…&pageSize=…: deleted documents that have revisions, most recently deleted first */
async function getBin(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const isOldClient = /^[45]\./.test(exchange.header("raven-client-version") ?? "");
  // Clients before 6 send only `etag`: the highest etag to include, 0 for all.
  const etagMax = query.long("etag", 0);
  if (query.has("etag") && !isOldClient) {
    throw new EngineError(
      "not-supported",
      "Parameter 'etag' is deprecated for endpoint /databases/*/revisions/bin. Use 'start' instead.",
    );
  }
  const start = Math.max(0, query.int("start", 0));
  const pageSize = Math.max(0, query.int("pageSize", int32Max));
  const bin = await database.revisions.bin(start, pageSize, etagMax > 0 ? etagMax : undefined);
  if (bin.newest === null) {
    exchange.replyJson(200, { Results: [] });
    return;
  }
  const etag = `${bin.newest.changeVector}/${bin.revisionCount}`;
  if (isUnchanged(exchange, etag)) {
    exchange.reply(304, jsonHeaders);
    return;
  }
  const text = resultsOf(bin.rows, false).addText("}");
  exchange.replyJson(200, text.bytes, { etag: quoted(etag) });
}

/** GET revisions/size?changeVector=…: the bytes of the stored record */
async function getSize(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { revisions } = database;
  const revision = await revisions.byChangeVector(exchange.query.required("changeVector"));
  if (revision === null) {
    exchange.reply(404, jsonHeaders);
    return;
  }
  const bytes = revision.storedBytes;
  exchange.replyJson(200, {
    ChangeVector: revision.changeVector,
    ActualSize: bytes,
    HumaneActualSize: humaneSize(bytes),
    AllocatedSize: bytes,
    HumaneAllocatedSize: humaneSize(bytes),
    IsCompressed: false,
  });
}

/** GET replication/conflicts[?docId]: document versions written concurrently by several nodes; always empty */
function getConflicts(exchange: Exchange): void {
  const id = exchange.query.get("docId") || null;
  exchange.query.int("pageSize", 0);
  if (id !== null) exchange.replyJson(200, { Id: id, LargestEtag: 0, Results: [] });
  else {
    const none = { TotalResults: 0, SkippedResults: 0, Results: [], ContinuationToken: null };
    exchange.replyJson(200, none);
  }
}

/** GET revisions/resolved: resolved conflicts between nodes; always empty */
function getResolved(exchange: Exchange): void {
  momentOf(exchange.query.get("since") || undefined);
  exchange.replyJson(200, { Results: [] });
}

/** DELETE admin/revisions `{"DocumentIds":[…],"RevisionsChangeVectors"?,"From"?,"To"?,"MaxDeletes"?,…}`: deletes revisions of documents */
async function removeRevisions(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const ids = stringsOf(body["DocumentIds"]);
  if (ids.length === 0) {
    throw new EngineError(
      "argument-null",
      "request 'DocumentIds' cannot be null or empty. (Parameter 'DocumentIds')",
    );
  }
  const vectors = stringsOf(body["RevisionsChangeVectors"]);
  if (vectors.length > 0 && ids.length > 1) {
    throw new EngineError(
      "invalid-argument",
      "DocumentIds (Parameter 'The request must include exactly one document ID when deleting specific revisions by their change-vectors.')",
    );
  }
  const countMax = body["MaxDeletes"];
  const total = await database.revisions.delete({
    ids,
    changeVectors: vectors.length === 0 ? null : vectors,
    from: momentOf(body["From"]) ?? Number.NEGATIVE_INFINITY,
    to: momentOf(body["To"]) ?? Number.POSITIVE_INFINITY,
    includesForced: body["RemoveForceCreatedRevisions"] === true,
    countMax: typeof countMax === "number" ? countMax : Number.POSITIVE_INFINITY,
  });
  exchange.replyJson(200, { TotalDeletes: total });
}

/** POST admin/revisions/config/enforce `{"IncludeForceCreated"?,"Collections"?}`: starts an operation */
async function postEnforce(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const scope = { ...scopeOf(body), includesForced: body["IncludeForceCreated"] === true };
  await start(
    exchange,
    database,
    "EnforceRevisionConfiguration",
    `Enforce revision configuration in database '${database.name}'.`,
    (progress, signal) => database.revisions.enforceRules(scope, progress, signal),
  );
}

/** POST admin/revisions/orphaned/adopt `{"Collections"?}`: starts an operation */
async function postAdopt(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const scope = scopeOf(await jsonBody(exchange));
  await start(
    exchange,
    database,
    "AdoptOrphanedRevisions",
    `Adopt orphaned revisions in database '${database.name}'.`,
    (progress, signal) => database.revisions.adoptOrphaned(scope, progress, signal),
  );
}

/** POST revisions/revert `{"Time","WindowInSec","Collections"?}`: starts an operation */
async function postRevert(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const moment = momentOf(body["Time"]);
  if (moment === undefined) {
    throw new EngineError("invalid-argument", "The 'Time' to revert to is missing.");
  }
  const { WindowInSec: window = null, Collections: collections = null } = body;
  if (collections !== null && !Array.isArray(collections)) throw unfit("Collections");
  if (window !== null && typeof window !== "number") throw unfit("WindowInSec");
  const named = scopeOf(body);
  // RavenDB's Studio sends an empty list for all collections.
  const scope = named.collections?.size === 0 ? { collections: null } : named;
  await start(
    exchange,
    database,
    "DatabaseRevert",
    `Revert database '${database.name}' to ${String(body["Time"])} UTC.`,
    (progress, signal) => database.revisions.revertTo(moment, scope, progress, signal),
  );
}

/** POST revisions/revert/docs `{"IdToChangeVector":{"users/1":"A:1-…"}}`: 200 */
async function postRevertDocuments(
  exchange: Exchange,
  { database }: DatabaseContext,
): Promise<void> {
  const vectors = (await jsonBody(exchange))["IdToChangeVector"] ?? {};
  if (!isObject(vectors)) throw unfit("IdToChangeVector");
  const wanted = Object.entries(vectors);
  await database.revisions.revertDocuments(wanted.map(([id, vector]) => [id, String(vector)]));
  exchange.reply(200);
}

function unfit(key: string): EngineError {
  return new EngineError("invalid-format", `'${key}' has a value of another type.`);
}

async function start(
  exchange: Exchange,
  database: Database,
  kind: string,
  description: string,
  work: OperationWork,
): Promise<void> {
  const wantedId = exchange.query.long("operationId", undefined);
  const { id } =
    wantedId === undefined
      ? await database.operations.start(kind, description, work)
      : database.operations.startWithId(wantedId, kind, description, work);
  exchange.replyJson(200, { OperationId: id, OperationNodeTag: database.nodeTag });
}

function scopeOf(body: JsonObject): RevisionScope {
  const collections = body["Collections"];
  if (!Array.isArray(collections)) return { collections: null };
  return { collections: new Set(stringsOf(collections).map((name) => foldedName(name))) };
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** Returns microseconds since the Unix epoch, or undefined if absent. @throws EngineError invalid-format */
function momentOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === "string" ? value : "";
  const moment = parseTimestamp(text);
  if (Number.isNaN(moment)) throw new EngineError("invalid-format", `'${text}' is not a date.`);
  return moment;
}

function requiredId({ query }: Exchange): string {
  if (query.get("id")) return boundedDocumentId(query.required("id"));
  throw new EngineError("invalid-argument", "Query string value 'id' must have a non empty value");
}

/** `{"Results":[…]`, without the closing brace. */
function resultsOf(revisions: readonly (DocumentRow | null)[], metadataOnly: boolean): JsonText {
  const text = new JsonText(4096).addText('{"Results":[');
  revisions.forEach((revision, position) => {
    if (position > 0) text.addText(",");
    if (revision === null) text.addText("null");
    else revision.addTo(text, metadataOnly);
  });
  return text.addText("]");
}

/** The change vector of a single revision; a hash for several. */
function etagOf(revisions: readonly (DocumentRow | null)[]): string {
  const [only] = revisions;
  if (revisions.length === 1 && only != null) return only.changeVector;
  const hash = new StateHash().add(revisions.length);
  for (const revision of revisions) hash.add(revision === null ? null : revision.changeVector);
  return hash.etag;
}
