/**
 * Bulk insert: documents, counters and attachments as one stream that is committed as it arrives. It is also an
 * operation: its progress can be queried, and it can be cancelled.
 */
import type { Exchange } from "../../http/exchange.ts";
import { lateBody } from "../../http/late-body.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import { callerName } from "../../security/caller-name.ts";
import { requiredId } from "../databases/operations.ts";

export const bulkInsertRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "POST",
    path: "/databases/:database/bulk_insert",
    access: "write",
    isLong: true,
    handle: postBulkInsert,
  },
];

/**
 * POST bulk_insert?id=…&skipOverwriteIfUnchanged=…: 201 at the closing bracket of the commands. Clients may leave the
 * request open; some never end it.
 */
async function postBulkInsert(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const id = requiredId(exchange);
  const skipsUnchanged = exchange.query.bool("skipOverwriteIfUnchanged", false);
  const options = { skipsUnchanged, documentBytesMax: server.config.limits.bodyBytesMax };
  const startedBy = callerName(server, exchange);
  const { ended } = database.bulkInserts.start(id, lateBody(exchange), options, startedBy);
  const { error } = await ended;
  if (error !== undefined) throw error;
  exchange.reply(201);
}
