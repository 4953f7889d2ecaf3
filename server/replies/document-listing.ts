/**
 * Lists documents: by id prefix in id order, or all of a database or collection, newest first. Rows are streamed from
 * one view, so a long list is consistent and needs no memory in proportion to its length.
 */

import { turnIsOver } from "../../engine/base/turns.ts";
import { idOf } from "../../engine/documents/document-record.ts";
import type { Database } from "../../engine/engine.ts";
import { allCollections } from "../../engine/keyspaces/document-table.ts";
import { DocumentCursor } from "../../engine/reading/query-rows.ts";
import { RecordReader } from "../../engine/reading/record-reader.ts";
import type { DatabaseView } from "../../engine/store/store.ts";
import { isUnchanged, quoted } from "../http/conditional.ts";
import type { Exchange } from "../http/exchange.ts";
import { isLarge, type RecordAddress } from "../http/large-document.ts";
import { jsonContentType } from "../http/response.ts";
import { StreamedReply } from "../http/streamed-reply.ts";

const int32Max = 2_147_483_647;

/** Yields document numbers in some order, a batch at a time. */
interface Cursor {
  fill(batch: Uint32Array, limit: number): number;
}

/** Which documents to list, and in which form. */
export interface Listing {
  readonly start: number;
  readonly pageSize: number;
  readonly metadataOnly: boolean;
  readonly startsWith: string | undefined;
  readonly startAfter: string | undefined;
  /** Only documents with this etag or a higher one, oldest first. */
  readonly fromEtag: number | undefined;
  /** Filters by the part of an id after the prefix. */
  readonly isWanted: (rest: string) => boolean;
}

/** The parameters of a listing. @throws EngineError invalid-argument */
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
  const view = database.view();
  const headers = etag === undefined ? undefined : { etag: quoted(etag) };
  const reply = new StreamedReply(exchange, 200, headers);
  try {
    reply.text.addText('{"Results":[');
    let count = 0;
    await eachListed(database, view, listing, collection, (record, address) => {
      if (count++ > 0) reply.text.addText(",");
      if (record === null) return reply.isClosed ? false : reply.addLarge(database, address);
      reply.text.addDocument(database.state, record, 0, listing.metadataOnly);
      return reply.isClosed ? false : reply.flush();
    });
    reply.text.addText("]}");
    await reply.end();
  } catch (error) {
    if (!reply.fail()) throw error;
  } finally {
    view.release();
  }
}

/**
 * Receives each record, or null and its address when it is too large to be composed at once. It may return a promise to
 * wait for, or false to stop.
 */
type ListedRow = (
  record: Buffer | null,
  address: RecordAddress,
) => Promise<void> | undefined | false;

/** Calls `row` with each document of the page, in order. */
export async function eachListed(
  database: Database,
  view: DatabaseView,
  listing: Listing,
  collection: string | undefined,
  row: ListedRow,
): Promise<void> {
  if (listing.start < 0 || listing.pageSize <= 0) return;
  const cursor = cursorOf(database, view, listing, collection);
  if (cursor === null) return;
  const rows = new DocumentCursor(view.documents, cursor, new RecordReader(database));
  try {
    await eachOf(rows, view, listing, row);
  } finally {
    rows.end();
  }
}

async function eachOf(
  rows: DocumentCursor,
  view: DatabaseView,
  listing: Listing,
  row: ListedRow,
): Promise<void> {
  const prefixLength = listing.startsWith?.length ?? 0;
  let skipped = 0;
  let given = 0;
  for (;;) {
    await turnIsOver();
    if (!rows.next()) {
      if (rows.pending === null) return;
      await rows.pending;
      continue;
    }
    const { bytes, start, docNum } = rows.row;
    const length = view.documents.lengthOf(docNum);
    const record = bytes.subarray(start, start + length);
    if (prefixLength > 0 && !listing.isWanted(idOf(record, 0).slice(prefixLength))) continue;
    if (skipped < listing.start) {
      skipped++;
      continue;
    }
    const isWhole = listing.metadataOnly || !isLarge(length);
    const position = view.documents.positionOf(docNum);
    const wait = row(isWhole ? record : null, { document: docNum, position, length });
    if (wait === false) return;
    if (wait !== undefined) await wait;
    if (++given >= listing.pageSize) return;
  }
}

function cursorOf(
  database: Database,
  view: DatabaseView,
  listing: Listing,
  collection: string | undefined,
): Cursor | null {
  if (listing.startsWith !== undefined) {
    return view.documents.byId(listing.startsWith, listing.startAfter);
  }
  if (collection === undefined && listing.fromEtag !== undefined) {
    return view.documents.byEtag(allCollections, Math.max(0, listing.fromEtag));
  }
  if (collection === undefined) {
    return view.documents.byEtag(allCollections, Number.MAX_SAFE_INTEGER, true);
  }
  const id = database.state.keyspaces.collections.find(collection);
  return id < 0 ? null : view.documents.byEtag(id, Number.MAX_SAFE_INTEGER, true);
}

/** `matches` and `exclude` are lists of wildcard patterns separated by `|`. */
function patternFilter(
  matches: string | undefined,
  exclude: string | undefined,
): (rest: string) => boolean {
  const wanted = patternsOf(matches);
  const unwanted = patternsOf(exclude);
  if (wanted.length === 0 && unwanted.length === 0) return () => true;
  return (rest) =>
    (wanted.length === 0 || wanted.some((pattern) => matchesPattern(rest, pattern))) &&
    !unwanted.some((pattern) => matchesPattern(rest, pattern));
}

function patternsOf(list: string | undefined): string[] {
  return list
    ? list
        .toLowerCase()
        .split("|")
        .filter((pattern) => pattern !== "")
    : [];
}

/** `*` matches any characters, `?` one; case-insensitive. Linear in the text for each `*`. */
export function matchesPattern(text: string, pattern: string): boolean {
  const lower = text.toLowerCase();
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
