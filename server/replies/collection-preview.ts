/**
 * Previews of documents for lists and completion: short values, and the names and types of fields. Shapes are those of
 * RavenDB 7.2.7, for its Studio. A reply uses one view, so its parts are consistent.
 */

import { byteBackslash, byteObjectOpen } from "../../engine/base/json/bytes.ts";
import { decodeString, firstElement, valueKind } from "../../engine/base/json/field-access.ts";
import { JsonText } from "../../engine/base/json/json-text.ts";
import { type Member, membersOf } from "../../engine/base/json/object-members.ts";
import { runInSlices } from "../../engine/base/scheduling/time-slices.ts";
import type { Work } from "../../engine/base/scheduling/work-budget.ts";
import type { Database, DocumentRow, DocumentsView, FoundDocument } from "../../engine/engine.ts";
import { isUnchanged, quoted } from "../http/conditional.ts";
import type { Exchange } from "../http/exchange.ts";
import { reserveForReply } from "../http/reply-room.ts";
import { jsonContentType, type ReplyHeaders } from "../http/response.ts";
import { StreamedReply } from "../http/streamed-reply.ts";
import { eachListed, type Listing } from "./document-listing.ts";

/** Maximum length of a text in a preview, in UTF-16 units. */
const shownCharacters = 255;
/** Maximum size of a value that may be included whole, in bytes. */
const wholeValueBytesMax = 1024 * 1024;
/** Size of a row after which further fields are omitted, in bytes. */
const rowBytesMax = 1024 * 1024;
/** Number of columns, and of fields of a row, after which further ones are omitted. */
const columnsMax = 10_000;

const metadataHead = '{"@metadata":{';
/** Members of metadata that rows omit, as in RavenDB 7.2.7: flags indicate their presence. */
const derived: ReadonlySet<string> = new Set(["@attachments", "@counters", "@timeseries"]);

/** The parameters of a preview. */
interface PreviewRequest {
  /** Undefined for documents of all collections. */
  readonly collection: string | undefined;
  readonly start: number;
  readonly pageSize: number;
  /** Fields to include, or null for all. */
  readonly columns: ReadonlySet<string> | null;
  /** Fields to include whole, which may be further ones. */
  readonly wholeColumns: ReadonlySet<string>;
}

/**
 * Replies `{"TotalResults":n,"AvailableColumns":[…],"Results":[…]}`, newest first. A row has the document's scalar
 * values, texts cut to 255 characters; its `@metadata` begins with the number of elements of arrays (`$a`), the number of
 * members of objects (`$o`), and the fields that are cut (`$t`).
 */
export async function replyPreview(
  exchange: Exchange,
  database: Database,
  request: PreviewRequest,
): Promise<void> {
  const view = database.documents.view();
  const total = totalOf(database, request.collection);
  try {
    const headers = await changedHeaders(exchange, view, request.collection, total);
    if (headers === null) return;
    const reply = new StreamedReply(exchange, 200, headers);
    const columns = await columnsOf(view, request);
    reply.text.addText(`{"TotalResults":${total},"AvailableColumns":${JSON.stringify(columns)}`);
    reply.text.addText(',"Results":[');
    await addRows(reply, view, request);
    reply.text.addText("]}");
    await reply.end();
  } finally {
    view.release();
  }
}

/** The ETag headers from the newest change vector and the number of documents, or null after a 304 reply. */
async function changedHeaders(
  exchange: Exchange,
  view: DocumentsView,
  collection: string | undefined,
  total: number,
): Promise<ReplyHeaders | null> {
  let etag = "";
  await view.list({ collection }, ({ changeVector }) => {
    etag = `${changeVector}/${total}`;
    return false;
  });
  if (etag === "") return {};
  if (!isUnchanged(exchange, etag)) return { etag: quoted(etag) };
  exchange.reply(304, { "content-type": jsonContentType });
  return null;
}

function totalOf({ documents }: Database, collection: string | undefined): number {
  return collection === undefined ? documents.count : documents.countOf(collection);
}

function listingOf({ start, pageSize }: Pick<PreviewRequest, "start" | "pageSize">): Listing {
  return {
    start,
    pageSize,
    metadataOnly: false,
    startsWith: undefined,
    startAfter: undefined,
    fromEtag: undefined,
    isWanted: undefined,
  };
}

/** Processes a document's row: synchronously, or time-sliced if it is large. */
function withRow(
  row: DocumentRow | null,
  found: FoundDocument,
  work: (row: DocumentRow) => Work<void>,
): Promise<void> | undefined {
  if (row === null) return withLarge(found, work);
  for (const steps = work(row); steps.next().done !== true; );
  return undefined;
}

async function withLarge(
  found: FoundDocument,
  work: (row: DocumentRow) => Work<void>,
): Promise<void> {
  const large = await found.open(reserveForReply);
  try {
    await runInSlices(work(large.row));
  } finally {
    large.release();
  }
}

/** Returns the fields of the page's documents, in the order of their first occurrence. */
async function columnsOf(view: DocumentsView, request: PreviewRequest): Promise<string[]> {
  const names = new Set<string>();
  await eachListed(view, listingOf(request), request.collection, (row, found) =>
    withRow(row, found, function* ({ bodyBytes }) {
      for (const member of membersOf(bodyBytes, 0)) {
        if (names.size >= columnsMax) return;
        if (member === null) yield;
        else names.add(nameOf(bodyBytes, member));
      }
    }),
  );
  return [...names];
}

function nameOf(bytes: Buffer, { keyFrom, keyTo }: Member): string {
  return decodeString(bytes, keyFrom, keyTo);
}

async function addRows(
  reply: StreamedReply,
  view: DocumentsView,
  request: PreviewRequest,
): Promise<void> {
  let count = 0;
  await eachListed(view, listingOf(request), request.collection, (row, found) => {
    if (reply.isClosed) return false;
    if (count++ > 0) reply.text.addText(",");
    const wait = withRow(row, found, (opened) => addRow(reply.text, opened, request));
    return wait === undefined ? reply.flush() : wait.then(() => reply.flush());
  });
}

function* addRow(text: JsonText, row: DocumentRow, request: PreviewRequest): Work<void> {
  const { bodyBytes: bytes } = row;
  const { columns, wholeColumns } = request;
  const begin = text.length;
  const arrays: Record<string, number> = {};
  const objects: Record<string, number> = {};
  const cut: string[] = [];
  let fields = 0;
  text.addText("{");
  for (const member of membersOf(bytes, 0)) {
    if (fields >= columnsMax || text.length - begin > rowBytesMax) break;
    if (member === null) {
      yield;
      continue;
    }
    const name = nameOf(bytes, member);
    const isWhole = wholeColumns.has(name) && member.to - member.from <= wholeValueBytesMax;
    if (columns !== null && !columns.has(name) && !wholeColumns.has(name)) continue;
    fields++;
    if (!isWhole && member.kind === "array") arrays[name] = member.count;
    else if (!isWhole && member.kind === "object") objects[name] = member.count;
    else {
      const end = isWhole || member.kind !== "string" ? -1 : cutAt(bytes, member);
      text.addBytes(bytes, member.keyFrom, end < 0 ? member.to : end);
      text.addText(end < 0 ? "," : '",');
      if (end >= 0) cut.push(name);
    }
  }
  text.addText(`"@metadata":{"$a":${JSON.stringify(arrays)},"$o":${JSON.stringify(objects)}`);
  text.addText(`,"$t":${JSON.stringify(cut)},`);
  const metadata = new JsonText();
  row.addTo(metadata, true);
  let isFirst = true;
  for (const member of membersOf(metadata.bytes, metadataHead.length - 1)) {
    if (member === null) yield;
    else if (!derived.has(nameOf(metadata.bytes, member))) {
      if (!isFirst) text.addText(",");
      isFirst = false;
      text.addBytes(metadata.bytes, member.keyFrom, member.to);
    }
  }
  text.addText("}}");
}

/** Returns the position at which a long text is cut, or -1 for a short one. */
function cutAt(bytes: Buffer, { from, to }: Member): number {
  let at = from + 1;
  for (let shown = 0; at < to - 1; ) {
    const byte = bytes[at] as number;
    const isPair = byte >= 0xf0;
    shown += isPair ? 2 : 1;
    if (shown > shownCharacters) return at;
    if (byte === byteBackslash) at += bytes[at + 1] === 0x75 ? 6 : 2;
    else at += isPair ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
  }
  return -1;
}

/**
 * Replies the names and types of the fields of the newest document of a collection, or of each collection:
 * `{"No":"Number"}`; different types are listed, as in `"Number, String"`. `path` selects the object in that field, or in
 * the first element of the array there, instead of the document.
 */
export async function replyFields(
  exchange: Exchange,
  database: Database,
  collection: string | undefined,
  path: readonly string[],
): Promise<void> {
  const types = new Map<string, Set<string>>();
  const collections =
    collection === undefined
      ? database.statistics.collections().map(({ name }) => name)
      : [collection];
  const newest = listingOf({ start: 0, pageSize: 1 });
  const total = totalOf(database, collection);
  const view = database.documents.view();
  try {
    const headers = await changedHeaders(exchange, view, collection, total);
    if (headers === null) return;
    for (const one of collections) {
      await eachListed(view, newest, one, (row, found) =>
        withRow(row, found, (opened) => addFields(types, opened, path)),
      );
    }
    const rows = [...types].map(([name, seen]) => [name, [...seen].join(", ")]);
    exchange.replyJson(200, Object.fromEntries(rows) as Record<string, string>, headers);
  } finally {
    view.release();
  }
}

function* addFields(
  types: Map<string, Set<string>>,
  { bodyBytes }: DocumentRow,
  path: readonly string[],
): Work<void> {
  const start = yield* objectAt(bodyBytes, path);
  if (start < 0) return;
  for (const member of membersOf(bodyBytes, start)) {
    if (types.size >= columnsMax) break;
    if (member === null) yield;
    else addType(types, nameOf(bodyBytes, member), typeOf(bodyBytes, member));
  }
  if (path.length === 0) addType(types, "@metadata", "Object");
}

function addType(types: Map<string, Set<string>>, name: string, type: string): void {
  const seen = types.get(name);
  if (seen === undefined) types.set(name, new Set([type]));
  else seen.add(type);
}

/** Returns the position of the object at the path, or -1 if none exists. */
function* objectAt(bytes: Buffer, path: readonly string[]): Work<number> {
  let at = 0;
  for (const name of path) {
    let next = -1;
    for (const member of membersOf(bytes, at)) {
      if (member === null) yield;
      else if (nameOf(bytes, member) === name) {
        next = member.kind === "array" ? firstElement(bytes, member.from) : member.from;
        break;
      }
    }
    if (next < 0 || bytes[next] !== byteObjectOpen) return -1;
    at = next;
  }
  return at;
}

/** `ArrayNumber` is an array whose first element is a number; `Array` is one whose first element is null or missing. */
function typeOf(bytes: Buffer, { kind, from, count }: Member): string {
  if (kind !== "array") return capitalized(kind);
  const first = count === 0 ? "null" : valueKind(bytes, firstElement(bytes, from));
  return first === "null" ? "Array" : `Array${capitalized(first)}`;
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
