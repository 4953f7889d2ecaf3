/** Lists of stored items by etag, and counts of attachments by content, in the shapes of RavenDB 7.2.7. */
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import type { Exchange } from "../../http/exchange.ts";
import { StreamedReply } from "../../http/streamed-reply.ts";
import { int32Max } from "../../replies/document-listing.ts";
import { type DatabaseContext, databasePrefix, type Route } from "../../routing/route.ts";

const shown = { kind: "database", method: "GET", access: "read" } as const;
const here = { ...shown, copies: "here" } as const;

export const storedItemRoutes: readonly Route[] = [
  { ...here, path: `${databasePrefix}debug/attachments/hash`, handle: getAttachmentCount },
  { ...here, path: `${databasePrefix}debug/documents/get-revisions`, handle: getRevisions },
  { ...here, path: `${databasePrefix}debug/documents/export-all-ids`, handle: getAllIds },
  { ...shown, path: `${databasePrefix}replication/tombstones`, handle: getTombstones },
  {
    kind: "database",
    method: "POST",
    path: `${databasePrefix}admin/tombstones/cleanup`,
    access: "database-admin",
    handle: postCleanup,
  },
];

/** GET debug/attachments/hash?hash=…: the number of attachments, also of revisions, with this content */
function getAttachmentCount(exchange: Exchange, { database }: DatabaseContext): void {
  const Hash = exchange.query.required("hash");
  const Count = database.attachments.countOf(Hash);
  exchange.replyJson(200, { Hash, LocalAttachmentsCount: Count, RemoteAttachmentsCount: 0, Count });
}

/** GET debug/documents/get-revisions?etag=…&pageSize=…: the ids and versions of revisions from an etag on, oldest first */
async function getRevisions(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { rows } = await database.revisions.list({
    collection: undefined,
    kind: "all",
    start: 0,
    pageSize: exchange.query.int("pageSize", int32Max),
    fromEtag: exchange.query.long("etag", 0),
  });
  const Revisions = rows.map(({ id, etag, modifiedAt, changeVector }) => {
    return {
      Id: id,
      Etag: etag,
      LastModified: formatTimestamp(modifiedAt),
      ChangeVector: changeVector,
    };
  });
  exchange.replyJson(200, { Revisions });
}

/** GET debug/documents/export-all-ids: the ids of all documents in etag order, one in each line, after a byte order mark */
async function getAllIds(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const view = database.documents.view();
  const file = `ids-for-${database.name}-${formatTimestamp(database.nowMicros())}.txt`;
  const reply = new StreamedReply(exchange, 200, {
    "content-type": "text/plain; charset=utf-8", // RavenDB 7.2.7 labels it as JSON, which it is not
    "content-disposition": `attachment; filename=${encodeURI(file)}`,
  });
  try {
    reply.text.addText("\ufeff");
    await view.list({ fromEtag: 0 }, (row) => {
      reply.text.addText(`${row.id}\n`);
      return reply.isClosed ? false : reply.flush();
    });
    await reply.end();
  } finally {
    view.release();
  }
}

/** GET replication/tombstones?etag=…&start=…&pageSize=…: deletions from an etag on, oldest first */
function getTombstones(exchange: Exchange, { database }: DatabaseContext): void {
  const { query } = exchange;
  const wanted = { start: query.int("start", 0), pageSize: query.int("pageSize", int32Max) };
  const found = database.statistics.tombstones(query.long("etag", 0), wanted);
  const Tombstones = found.map(({ id, etag, type, changeVector, lastModified, collection }) => {
    return {
      Id: id,
      Etag: etag,
      Type: `${type[0]?.toUpperCase()}${type.slice(1)}`,
      ChangeVector: changeVector,
      LastModified: formatTimestamp(lastModified),
      ...(type === "attachment" ? {} : { Collection: collection }),
    };
  });
  exchange.replyJson(200, { Tombstones, ContinuationToken: null });
}

/** POST admin/tombstones/cleanup: purges deletions that nothing needs; replies their number */
async function postCleanup(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  exchange.replyJson(200, { Value: await database.purgeTombstones() });
}
