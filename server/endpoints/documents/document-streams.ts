/**
 * Document streams: any number of documents, from one view, sent while they are read. `format=jsonl` writes one document per
 * line, any other format `{"Results":[…]}`.
 */

import type { Exchange } from "../../http/exchange.ts";
import { jsonContentType } from "../../http/response.ts";
import { StreamedReply } from "../../http/streamed-reply.ts";
import { eachListed, listingOf } from "../../replies/document-listing.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

export const documentStreamRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/streams/docs",
    access: "read",
    handle: streamDocuments,
  },
];

/** GET streams/docs?format=…&startsWith=…&matches=…&exclude=…&startAfter=…&start=…&pageSize=…: documents of any number */
async function streamDocuments(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const listing = listingOf(exchange);
  const isLines = exchange.query.get("format") === "jsonl";
  const view = database.documents.view();
  const reply = new StreamedReply(exchange, 200);
  let count = 0;
  try {
    if (!isLines) reply.text.addText('{"Results":[');
    await eachListed(view, listing, undefined, (row, found) => {
      if (!isLines && count > 0) reply.text.addText(",");
      count++;
      if (row === null) {
        if (reply.isClosed) return false;
        const added = reply.addLarge(found);
        return isLines ? added.then(() => void reply.text.addText("\r\n")) : added;
      }
      row.addTo(reply.text, listing.metadataOnly);
      if (isLines) reply.text.addText("\r\n");
      return reply.isClosed ? false : reply.flush();
    });
    if (!isLines) reply.text.addText("]}");
    if (isLines && count === 0) exchange.reply(200, { "content-type": jsonContentType });
    else await reply.end();
  } finally {
    view.release();
  }
}
