/**
 * Attachments: binary content under a name within a document. Contents are streamed in both directions; reads may
 * request a range. Headers are those of RavenDB 7.2.7; the ETag is the attachment's own change vector.
 *
 * Invariants:
 * - A browser never renders a content as a page of this server: it is always a download.
 */

import { invalidArgument } from "../../../engine/base/errors.ts";
import { boundedDocumentId } from "../../../engine/base/names.ts";
import type {
  Attachment,
  AttachmentName,
  ContentReader,
  Database,
} from "../../../engine/engine.ts";
import { byteRangeOf } from "../../http/byte-range.ts";
import { expectedVector, isUnchanged, missingEtag, quoted } from "../../http/conditional.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { lateBody } from "../../http/late-body.ts";
import type { ReplyStream } from "../../http/reply-stream.ts";
import { jsonContentType, type ReplyHeaders } from "../../http/response.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

const path = "/databases/:database/attachments";

export const attachmentRoutes: readonly Route[] = [
  { kind: "database", method: "GET", path, access: "read", handle: getAttachment },
  { kind: "database", method: "HEAD", path, access: "read", handle: headAttachment },
  { kind: "database", method: "POST", path, access: "read", copies: "any", handle: postAttachment },
  { kind: "database", method: "PUT", path, access: "write", handle: writeAttachment },
  { kind: "database", method: "DELETE", path, access: "write", handle: removeAttachment },
  {
    kind: "database",
    method: "POST",
    path: `${path}/bulk`,
    access: "read",
    copies: "any",
    handle: postBulk,
  },
  { kind: "database", method: "DELETE", path: `${path}/bulk`, access: "write", handle: removeBulk },
];

const jsonHeaders = { "content-type": jsonContentType };
/** Characters that `encodeURIComponent` leaves unencoded, and .NET encodes (RFC 8187 attributes). */
const leftUnencoded = /[!'()*]/g;

/** GET attachments?id=…&name=…: 200, 206, 304, 404, 416 */
async function getAttachment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const attachment = database.attachments.find(requestedName(exchange));
  await replyContent(exchange, database, attachment);
}

/** HEAD attachments?id=…&name=…: 200, 304, 404 */
function headAttachment(exchange: Exchange, { database }: DatabaseContext): void {
  const attachment = database.attachments.find(requestedName(exchange));
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
  const name = requestedName(exchange);
  const attachment = database.attachments.find(name);
  const body = await jsonBody(exchange);
  const type = body["Type"];
  if (typeof type !== "string") {
    throw invalidArgument("The 'Type' field in the body request is mandatory");
  }
  if (type === "Document") {
    await replyContent(exchange, database, attachment);
    return;
  }
  if (type !== "Revision") {
    throw invalidArgument(`'${type}' is not a type of attachments' owners.`);
  }
  if (typeof body["ChangeVector"] !== "string" || body["ChangeVector"] === "") {
    throw invalidArgument("Change Vector cannot be empty for attachment type Revision");
  }
  await replyContent(
    exchange,
    database,
    await database.attachments.findInRevision(name, body["ChangeVector"]),
  );
}

/**
 * POST attachments/bulk, body `{"AttachmentType":"Document","Attachments":[{"DocumentId","Name"}, …]}`: 200, one JSON
 * object `{"AttachmentsMetadata":[…]}`, followed by the contents, concatenated in that order with those sizes. Missing
 * ones are omitted. As in RavenDB 7.2.7, attachments of revisions are refused here: nothing in the body identifies a
 * revision.
 */
async function postBulk(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const requested = bulkKeys(await jsonBody(exchange));
  const found = requested.flatMap((name) => {
    const attachment = database.attachments.find(name);
    return attachment === undefined ? [] : [{ id: name.id, attachment }];
  });
  const attachments = found.map(({ attachment }) => attachment);
  // Until all are sent, even if they are deleted meanwhile.
  const release = database.attachments.retain(attachments);
  try {
    const stream = exchange.stream(200, { "x-content-type-options": "nosniff" });
    const listed = found.map(({ id, attachment }) => bulkRow(id, attachment));
    await stream.write(`{"AttachmentsMetadata":[${listed.join(",")}]}`);
    for (const attachment of attachments) {
      const content = await database.attachments.open(attachment);
      try {
        await writeBytes(stream, content, 0, attachment.size);
      } finally {
        await content.close();
      }
      if (stream.isClosed) return;
    }
    await stream.end();
  } finally {
    release();
  }
}

/** DELETE attachments/bulk, body `{"Attachments":[{"DocumentId","Name"}, …]}`: 200; atomic; missing ones are ignored */
async function removeBulk(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  await database.attachments.deleteAll(namedAttachments(await jsonBody(exchange)));
  exchange.reply(200);
}

/** @throws EngineError invalid-argument */
function bulkKeys(body: JsonObject): AttachmentName[] {
  const { AttachmentType } = body;
  if (AttachmentType !== "Document" && AttachmentType !== "Revision") {
    throw invalidArgument("The 'AttachmentType' field in the body request is mandatory");
  }
  const named = namedAttachments(body);
  if (AttachmentType === "Revision" && named.length > 0) {
    throw invalidArgument("Change Vector cannot be empty for attachment type Revision");
  }
  return named;
}

/** @throws EngineError invalid-argument */
function namedAttachments({ Attachments }: JsonObject): AttachmentName[] {
  if (!Array.isArray(Attachments)) {
    throw invalidArgument("The 'Attachments' field in the body request is mandatory");
  }
  return Attachments.map((item: unknown) => {
    const { DocumentId: id, Name: name } = (item ?? {}) as JsonObject;
    if (typeof id !== "string") throw invalidArgument("Could not parse DocumentId");
    if (typeof name !== "string") throw invalidArgument("Could not parse Name");
    return { id, name };
  });
}

function bulkRow(documentId: string, attachment: Attachment): string {
  const { name, hash, contentType, size, changeVector } = attachment;
  return JSON.stringify({
    Name: name,
    Hash: hash,
    ContentType: contentType,
    Size: size,
    ChangeVector: changeVector,
    DocumentId: documentId,
    RemoteParameters: null,
  });
}

/** Writes bytes [start, end) of a content, until the client disconnects. */
async function writeBytes(
  stream: ReplyStream,
  content: ContentReader,
  start: number,
  end: number,
): Promise<void> {
  for await (const chunk of content.read(start, end)) {
    await stream.write(chunk);
    if (stream.isClosed) return;
  }
}

/** PUT attachments?id=…&name=…&contentType=…, If-Match: 201 with the stored attachment */
async function writeAttachment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const name = requestedName(exchange);
  const contentType = exchange.query.get("contentType") ?? "";
  const expected = expectedVector(exchange);
  const bytes = exchange.hasBody ? lateBody(exchange) : [];
  const stored = await database.attachments.put(name, contentType, bytes, expected);
  exchange.replyJson(201, {
    ChangeVector: stored.changeVector,
    Name: stored.name,
    DocumentId: name.id,
    ContentType: stored.contentType,
    Hash: stored.hash,
    Size: stored.size,
    RemoteParameters: null,
  });
}

/** DELETE attachments?id=…&name=…, If-Match: 204, even when it does not exist */
async function removeAttachment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  await database.attachments.delete(requestedName(exchange), expectedVector(exchange));
  exchange.reply(204);
}

function requestedName({ query }: Exchange): AttachmentName {
  return { id: boundedDocumentId(query.required("id")), name: query.required("name") };
}

/** Sends the content, or the requested range of it, under the client's back-pressure. */
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
  if (range === "unsatisfiable") {
    exchange.reply(416, { ...headersOf(attachment), "content-range": `bytes */${size}` });
    return;
  }
  const { start, end } = range ?? { start: 0, end: size };
  const part = range === undefined ? {} : { "content-range": `bytes ${start}-${end - 1}/${size}` };
  const content = await database.attachments.open(attachment);
  try {
    const stream = exchange.stream(range === undefined ? 200 : 206, {
      ...headersOf(attachment),
      ...part,
      "content-length": end - start,
    });
    await writeBytes(stream, content, start, end);
    await stream.end();
  } finally {
    await content.close();
  }
}

function headersOf({ name, hash, size, contentType, changeVector }: Attachment): ReplyHeaders {
  // A name may look like a path: only its last part is the file name. Lone surrogates cannot be encoded; they become
  // U+FFFD.
  const wellFormed = Buffer.from(name.slice(name.lastIndexOf("/") + 1) || name).toString();
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
