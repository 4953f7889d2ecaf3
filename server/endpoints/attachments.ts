/**
 * Attachments: binary content under a name of a document. Contents go in and out as streams, ranges of them too.
 * Headers are those of RavenDB 7.2.7; the ETag is the attachment's own change vector.
 *
 * Invariants:
 * - A content is never shown by a browser as a page of this server: it is always a download.
 */
import { etagOf } from "../../engine/document.ts";
import { EngineError } from "../../engine/errors.ts";
import {
  type Attachment,
  attachmentKey,
  revisionAttachmentKey,
} from "../../engine/keyspaces/attachments.ts";
import {
  checkAttachmentTarget,
  deleteAttachment,
  putAttachment,
} from "../../engine/writes/attachments.ts";
import { byteRangeOf } from "../byte-range.ts";
import { expectedVector, isUnchanged, missingEtag, quoted } from "../conditional.ts";
import type { Exchange } from "../exchange.ts";
import { jsonBody } from "../json-body.ts";
import { jsonContentType, type ReplyHeaders } from "../response.ts";
import { revisionByVector } from "../revision-reading.ts";
import type { DatabaseContext, Route } from "../route.ts";
import type { Database } from "../services.ts";

const path = "/databases/:database/attachments";

export const attachmentRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", handle: getAttachment },
  { kind: "database", method: "HEAD", path, access: "read", handle: headAttachment },
  { kind: "database", method: "POST", path, access: "read", handle: postAttachment },
  { kind: "database", method: "PUT", path, access: "write", handle: writeAttachment },
  { kind: "database", method: "DELETE", path, access: "write", handle: removeAttachment },
];

const jsonHeaders = { "content-type": jsonContentType };
/** Attributes of RFC 8187: what `encodeURIComponent` leaves, .NET encodes. */
const leftUnencoded = /[!'()*]/g;

/** GET attachments?id=…&name=…: 200, 206, 304, 404, 416 */
async function getAttachment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { attachment } = requested(exchange, database);
  await replyContent(exchange, database, attachment);
}

/** HEAD attachments?id=…&name=…: 200, 304, 404 */
function headAttachment(exchange: Exchange, { database }: DatabaseContext): void {
  const { attachment } = requested(exchange, database);
  if (attachment === undefined) {
    exchange.reply(isUnchanged(exchange, missingEtag) ? 304 : 404, jsonHeaders);
  } else if (isUnchanged(exchange, attachment.changeVector)) exchange.reply(304, jsonHeaders);
  else {
    exchange.reply(200, {
      ...jsonHeaders,
      etag: quoted(attachment.changeVector),
      "accept-ranges": "bytes",
      "content-length": attachment.size,
    });
  }
}

/** POST attachments?id=…&name=…, body `{"Type":"Document"|"Revision","ChangeVector"}`: as GET */
async function postAttachment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { attachment } = requested(exchange, database);
  const body = await jsonBody(exchange);
  const type = body["Type"];
  if (typeof type !== "string") {
    throw new EngineError("invalid-argument", "The 'Type' field in the body request is mandatory");
  }
  if (type === "Document") {
    await replyContent(exchange, database, attachment);
    return;
  }
  if (type !== "Revision") {
    throw new EngineError("invalid-argument", `'${type}' is not a type of attachments' owners.`);
  }
  if (typeof body["ChangeVector"] !== "string" || body["ChangeVector"] === "") {
    throw new EngineError(
      "invalid-argument",
      "Change Vector cannot be empty for attachment type Revision",
    );
  }
  await replyContent(
    exchange,
    database,
    await attachmentOfRevision(exchange, database, body["ChangeVector"]),
  );
}

/** What a revision of the document has under the name. */
async function attachmentOfRevision(
  { query }: Exchange,
  database: Database,
  changeVector: string,
): Promise<Attachment | undefined> {
  const id = query.required("id");
  const revision = await revisionByVector(database, changeVector);
  if (revision === null || revision.id.toLowerCase() !== id.toLowerCase()) return undefined;
  const etag = etagOf(revision.record, 0);
  return database.state.keyspaces.attachments.get(
    revisionAttachmentKey(id, etag, query.required("name")),
  );
}

/** PUT attachments?id=…&name=…&contentType=…, If-Match: 201 with what was stored */
async function writeAttachment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = exchange.query.required("id");
  const name = exchange.query.required("name");
  const contentType = exchange.query.get("contentType") ?? "";
  const expected = expectedVector(exchange);
  checkAttachmentTarget(database.state, id, name);
  const content = await database.blobs.store(exchange.hasBody ? exchange.bodyStream() : []);
  let stored: Attachment;
  try {
    const { hash, size } = content;
    stored = await database.write((transaction) =>
      putAttachment(transaction, id, { name, contentType, hash, size }, expected),
    );
  } finally {
    content.release();
  }
  exchange.replyJson(201, {
    ChangeVector: stored.changeVector,
    Name: stored.name,
    DocumentId: id,
    ContentType: stored.contentType,
    Hash: stored.hash,
    Size: stored.size,
    RemoteParameters: null,
  });
}

/** DELETE attachments?id=…&name=…, If-Match: 204, also when there is none */
async function removeAttachment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const id = exchange.query.required("id");
  const name = exchange.query.required("name");
  const expected = expectedVector(exchange);
  await database.write((transaction) => deleteAttachment(transaction, id, name, expected), {
    isDeletion: true,
  });
  exchange.reply(204);
}

function requested(
  { query }: Exchange,
  database: Database,
): { readonly attachment: Attachment | undefined } {
  const key = attachmentKey(query.required("id"), query.required("name"));
  return { attachment: database.state.keyspaces.attachments.get(key) };
}

/** Sends the content, or the range of it that was asked for, no faster than the client reads. */
async function replyContent(
  exchange: Exchange,
  database: Database,
  attachment: Attachment | undefined,
): Promise<void> {
  if (attachment === undefined) {
    exchange.reply(isUnchanged(exchange, missingEtag) ? 304 : 404, jsonHeaders);
    return;
  }
  if (isUnchanged(exchange, attachment.changeVector)) {
    exchange.reply(304, jsonHeaders);
    return;
  }
  const { size } = attachment;
  const range = byteRangeOf(exchange.header("range"), size);
  const headers = headersOf(attachment);
  if (range === "unsatisfiable") {
    exchange.reply(416, { ...headers, "content-range": `bytes */${size}` });
    return;
  }
  const { start, end } = range ?? { start: 0, end: size };
  const part = range === undefined ? {} : { "content-range": `bytes ${start}-${end - 1}/${size}` };
  const content = await database.blobs.open(attachment.hash);
  try {
    const stream = exchange.stream(range === undefined ? 200 : 206, {
      ...headers,
      ...part,
      "content-length": end - start,
    });
    for await (const chunk of content.read(start, end)) {
      await stream.write(chunk);
      if (stream.isClosed) return;
    }
    await stream.end();
  } finally {
    await content.close();
  }
}

function headersOf({ name, hash, size, contentType, changeVector }: Attachment): ReplyHeaders {
  // Half surrogate pairs cannot be encoded; they become U+FFFD.
  const wellFormed = Buffer.from(name).toString();
  const encoded = encodeURIComponent(wellFormed).replace(
    leftUnencoded,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return {
    "content-type": contentType.replace(/[^\x20-\x7e]/g, ""),
    etag: quoted(changeVector),
    "attachment-hash": hash,
    "attachment-size": size,
    "content-disposition": `attachment; filename="${encoded}"; filename*=UTF-8''${encoded}`,
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
  };
}
