/**
 * Lists documents: by id prefix in id order, or all of a database or collection, newest first. Rows are streamed from
 * one view, so a long list is consistent and needs no memory in proportion to its length.
 */

import { foldedName } from "../../engine/base/case-folding.ts";
import type { Database, DocumentRow, DocumentsView, FoundDocument } from "../../engine/engine.ts";
import { isUnchanged, quoted } from "../http/conditional.ts";
import type { Exchange } from "../http/exchange.ts";
import { jsonContentType } from "../http/response.ts";
import { StreamedReply } from "../http/streamed-reply.ts";

/** The value that RavenDB treats as no limit. */
export const int32Max = 2_147_483_647;

/** The selection and the format of documents to list. */
export interface Listing {
  readonly start: number;
  readonly pageSize: number;
  readonly metadataOnly: boolean;
  readonly startsWith: string | undefined;
  readonly startAfter: string | undefined;
  /** Only documents with at least this etag, oldest first. */
  readonly fromEtag: number | undefined;
  /** Filters by the part of an id after the prefix; undefined for no filter. */
  readonly isWanted: ((rest: string) => boolean) | undefined;
}

/** Parses the parameters of a listing. @throws EngineError invalid-argument */
export function listingOf(exchange: Exchange): Listing {
  const { query } = exchange;
  return {
    start: query.int("start", 0),
    pageSize: query.int("pageSize", int32Max),
    metadataOnly: query.strictBool("metadataOnly"),
    startsWith: query.get("startsWith"),
    startAfter: query.get("startAfter") || undefined,
    fromEtag: query.long("etag", undefined),
    // RavenDB 7.2.7 names it `excludes` for document streams, and `exclude` in its clients.
    isWanted: patternFilter(query.get("matches"), query.get("exclude") ?? query.get("excludes")),
  };
}

/**
 * Replies `{"Results":[…]}`; the ETag is the database's change vector. `collection` limits the list to one collection,
 * without an ETag.
 */
export async function listDocuments(
  exchange: Exchange,
  database: Database,
  collection?: string,
): Promise<void> {
  const listing = listingOf(exchange);
  const etag = collection === undefined ? database.changeVector : undefined;
  if (etag !== undefined && isUnchanged(exchange, etag)) {
    exchange.reply(304, { "content-type": jsonContentType });
    return;
  }
  const view = database.documents.view();
  const headers = etag === undefined ? undefined : { etag: quoted(etag) };
  const reply = new StreamedReply(exchange, 200, headers);
  await replyListed(reply, view, listing, collection, (row, found) => {
    if (row === null) return reply.isClosed ? false : reply.addLarge(found);
    row.addTo(reply.text, listing.metadataOnly);
    return reply.isClosed ? false : reply.flush();
  });
}

/** Replies `{"Results":[…]}` with the text that `add` adds for each document, and releases the view. */
export async function replyListed(
  reply: StreamedReply,
  view: DocumentsView,
  listing: Listing,
  collection: string | undefined,
  add: ListedRow,
): Promise<void> {
  try {
    reply.text.addText('{"Results":[');
    let count = 0;
    await eachListed(view, listing, collection, (row, found) => {
      if (count++ > 0) reply.text.addText(",");
      return add(row, found);
    });
    reply.text.addText("]}");
    await reply.end();
  } finally {
    view.release();
  }
}

/**
 * Receives each document; `row` is null if it is too large to be composed synchronously. It may return a promise to wait
 * for, or false to stop.
 */
type ListedRow = (
  row: DocumentRow | null,
  found: FoundDocument,
) => Promise<void> | undefined | false;

/** Calls `receive` with each document of the page, in order. */
export async function eachListed(
  view: DocumentsView,
  listing: Listing,
  collection: string | undefined,
  receive: ListedRow,
): Promise<void> {
  const { startsWith, startAfter, fromEtag, pageSize, start } = listing;
  if (start < 0 || pageSize <= 0) return;
  const prefixLength = startsWith?.length ?? 0;
  const isWanted = prefixLength > 0 ? listing.isWanted : undefined;
  // The filter applies only to documents that were read.
  const skip = isWanted === undefined ? start : 0;
  let skipped = skip;
  let given = 0;
  await view.list({ startsWith, startAfter, collection, fromEtag, skip }, (row, found) => {
    if (isWanted?.(row.id.slice(prefixLength)) === false) return undefined;
    if (skipped < start) {
      skipped++;
      return undefined;
    }
    const isWhole = listing.metadataOnly || !found.isLarge;
    const wait = receive(isWhole ? row : null, found);
    if (++given < pageSize || wait === false) return wait;
    return wait === undefined ? false : wait.then(() => false);
  });
}

/** `matches` and `exclude` are lists of wildcard patterns separated by `|`. */
function patternFilter(
  matches: string | undefined,
  exclude: string | undefined,
): ((rest: string) => boolean) | undefined {
  const wanted = patternsOf(matches);
  const unwanted = patternsOf(exclude);
  if (wanted.length === 0 && unwanted.length === 0) return undefined;
  return (rest) =>
    (wanted.length === 0 || wanted.some((pattern) => matchesPattern(rest, pattern))) &&
    !unwanted.some((pattern) => matchesPattern(rest, pattern));
}

function patternsOf(list: string | undefined): string[] {
  return list
    ? foldedName(list)
        .split("|")
        .filter((pattern) => pattern !== "")
    : [];
}

/** `*` matches any characters, `?` one. Compares uppercase text, as RavenDB 7.2.7 does. Linear in the text for each `*`. */
export function matchesPattern(text: string, pattern: string): boolean {
  const lower = foldedName(text);
  let at = 0;
  let p = 0;
  let star = -1;
  let resume = 0;
  while (at < lower.length) {
    if (p < pattern.length && (pattern[p] === "?" || pattern[p] === lower[at])) {
      at++;
      p++;
    } else if (pattern[p] === "*") {
      star = p++;
      resume = at;
    } else if (star >= 0) {
      p = star + 1;
      at = ++resume;
    } else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}
