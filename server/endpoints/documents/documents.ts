/**
 * Documents: load one or many with includes, list, store, delete.
 *
 * Statuses, ETags and the shape of replies are those of RavenDB 7.2.7: a single missing document is 404 with an empty
 * body, among several it is `null`; the ETag of a single document is its change vector.
 */
import { EngineError } from "../../../engine/base/errors.ts";
import { boundedDocumentId } from "../../../engine/base/names.ts";
import { expectedVector, isUnchanged, missingEtag, quoted } from "../../http/conditional.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { uploadedFile } from "../../http/multipart.ts";
import { listDocuments } from "../../replies/document-listing.ts";
import { loadDocuments } from "../../replies/document-loading.ts";
import type { Copies, DatabaseContext, Route } from "../../routing/route.ts";

const path = "/databases/:database/docs";

/** What is loaded in a cluster-wide session is what no other node can have changed. */
function clusterWideOrAny({ query }: Exchange): Copies {
  return query.get("txMode")?.toLowerCase() === "clusterwide" ? "confirmed" : "any";
}

export const documentRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path,
    access: "read",
    copies: clusterWideOrAny,
    handle: getDocuments,
  },
  {
    kind: "database",
    method: "POST",
    path,
    access: "read",
    copies: clusterWideOrAny,
    handle: postDocuments,
  },
  { kind: "database", method: "HEAD", path, access: "read", handle: headDocument },
  { kind: "database", method: "PUT", path, access: "write", handle: putDocument },
  { kind: "database", method: "DELETE", path, access: "write", handle: removeDocument },
  { kind: "database", method: "GET", path: `${path}/size`, access: "read", handle: getSize },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/collections/docs",
    access: "read",
    handle: getCollectionDocuments,
  },
];

/** GET docs?id=…&id=…  |  ?startsWith=…  |  neither: all, newest first */
function getDocuments(exchange: Exchange, { database }: DatabaseContext): Promise<void> | void {
  const { query } = exchange;
  const ids = query.all("id").map(boundedDocumentId);
  return ids.length > 0
    ? loadDocuments(exchange, database, ids)
    : listDocuments(exchange, database);
}

/** POST docs, body `{"Ids":[…]}`: a load with too many ids for a URL. */
async function postDocuments(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const ids = body["Ids"];
  if (ids !== undefined && ids !== null && !Array.isArray(ids)) {
    throw new EngineError("invalid-format", "Ids must be an array of ids.");
  }
  if (!Array.isArray(ids)) {
    throw new EngineError(
      "invalid-argument",
      "Query string Ids is mandatory, but wasn't specified.",
    );
  }
  const wanted = ids.map((id) => (typeof id === "string" ? boundedDocumentId(id) : ""));
  if (wanted.length === 0) await listDocuments(exchange, database);
  else await loadDocuments(exchange, database, wanted);
}

/** HEAD docs?id=…: 200 with the change vector as ETag, 304, or 404. */
async function headDocument(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const document = database.documents.find(boundedDocumentId(exchange.query.required("id")));
  if (document === null) {
    exchange.reply(isUnchanged(exchange, missingEtag) ? 304 : 404, jsonHeaders);
    return;
  }
  const { changeVector: etag } = await document.read();
  if (isUnchanged(exchange, etag)) exchange.reply(304, jsonHeaders);
  else exchange.reply(200, { ...jsonHeaders, etag: quoted(etag) });
}

/** The first byte of nearly every document. */
const braceOpen = 0x7b;
const jsonHeaders = { "content-type": "application/json; charset=utf-8" };

/**
 * PUT docs?id=…, If-Match: 201 `{"Id","ChangeVector"}`. The body is the document, or a form with the document as a
 * file.
 */
function putDocument(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = boundedDocumentId(exchange.query.required("id"));
  const expected = expectedVector(exchange);
  // The body is not awaited by itself: this function would keep it while the document is stored.
  const store = (body: Buffer) =>
    body[0] === braceOpen
      ? database.documents.put(id, body, expected)
      : uploadedFile(exchange.header("content-type"), body).then((text) =>
          database.documents.put(id, text, expected),
        );
  const body = exchange.bufferedBody();
  return (body instanceof Promise ? body.then(store) : store(body)).then((stored) =>
    exchange.replyJson(
      201,
      `{"Id":${JSON.stringify(stored.id)},"ChangeVector":"${stored.changeVector}"}`,
    ),
  );
}

/** DELETE docs?id=…, If-Match: 204, even when it does not exist */
async function removeDocument(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = boundedDocumentId(exchange.query.required("id"));
  const expected = expectedVector(exchange);
  await database.documents.delete(id, expected);
  exchange.reply(204);
}

/** GET docs/size?id=…: the bytes of the stored record */
function getSize(exchange: Exchange, { database }: DatabaseContext): void {
  const id = boundedDocumentId(exchange.query.required("id"));
  const document = database.documents.find(id);
  if (document === null) {
    exchange.reply(404, jsonHeaders);
    return;
  }
  const bytes = document.storedBytes;
  exchange.replyJson(200, {
    ActualSize: bytes,
    HumaneActualSize: `${bytes} Bytes`,
    AllocatedSize: bytes,
    HumaneAllocatedSize: `${bytes} Bytes`,
    IsCompressed: false,
    DocId: id,
  });
}

/** GET collections/docs?name=…: a page of one collection, newest first */
function getCollectionDocuments(
  exchange: Exchange,
  { database }: DatabaseContext,
): Promise<void> | void {
  return listDocuments(exchange, database, exchange.query.requiredFirst("name"));
}
