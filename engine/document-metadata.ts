/**
 * What of a document's `@metadata` is stored: the writer's own keys and the genuine lists of attachments and
 * counters, sorted by the bytes of their keys; the rest is made by the server when the document is read, and
 * dropped here when a writer sends it.
 *
 * RavenDB 7.2.7: a collection that is absent, null or no text is `@empty`, and such a key is not stored;
 * `@expires` and `@refresh` must be dates when they are text.
 */
import { EngineError } from "./errors.ts";
import { quoteString } from "./json/escape.ts";
import { type DocumentParser, metadataSpanSlots } from "./json/json-parser.ts";
import { emptyCollectionName } from "./keyspaces/collections.ts";
import { parseTimestamp } from "./timestamp.ts";

const serverMadeKeys: ReadonlySet<string> = new Set([
  "@id",
  "@change-vector",
  "@last-modified",
  "@flags",
  "@etag",
  "@index-score",
  "@attachments",
  "@counters",
  "@timeseries",
]);
const collectionKey = "@collection";
const dateKeys: ReadonlySet<string> = new Set(["@expires", "@refresh"]);

/** Texts of the lists that the server makes; null when the document has none. */
export interface GenuineLists {
  readonly attachments: string | null;
  readonly counters: string | null;
}

interface Member {
  readonly key: string;
  readonly keyText: string;
  readonly value: string;
}

export const noLists: GenuineLists = { attachments: null, counters: null };

/** The name of the collection that the last parsed document is for. */
export function collectionOfParsed(parser: DocumentParser): string {
  for (let i = 0; i < parser.metadataCount; i++) {
    if (memberKey(parser, i) !== collectionKey) continue;
    const value: unknown = JSON.parse(memberValue(parser, i));
    return typeof value === "string" ? value : emptyCollectionName;
  }
  return emptyCollectionName;
}

/**
 * The stored text of the last parsed document's metadata, "" when it is what the collection says by itself.
 * @param collection the collection's name in its own spelling.
 * @throws EngineError invalid-operation when `@expires` or `@refresh` is text and no date
 */
export function storedMetadata(
  parser: DocumentParser,
  collection: string,
  lists: GenuineLists,
): string {
  const members: Member[] = [];
  for (let i = 0; i < parser.metadataCount; i++) {
    const key = memberKey(parser, i);
    if (serverMadeKeys.has(key)) continue;
    const value = memberValue(parser, i);
    if (key === collectionKey && !value.startsWith('"')) continue;
    if (dateKeys.has(key)) checkDate(key, value);
    members.push({ key, keyText: memberKeyText(parser, i), value });
  }
  return joined(members, collection, lists);
}

/** As `storedMetadata`, for members that are stored already: `text` is the inner text of an object. */
export function relistedMetadata(
  parser: DocumentParser,
  text: string,
  collection: string,
  lists: GenuineLists,
): string {
  const members: Member[] = [];
  if (text !== "") {
    const bytes = Buffer.from(`{"@metadata":{${text}}}`);
    parser.parse(bytes, 0, bytes.length);
    for (let i = 0; i < parser.metadataCount; i++) {
      const key = memberKey(parser, i);
      if (serverMadeKeys.has(key)) continue;
      members.push({ key, keyText: memberKeyText(parser, i), value: memberValue(parser, i) });
    }
  } else if (collection !== emptyCollectionName) {
    members.push(member(collectionKey, quoted(collection)));
  }
  return joined(members, collection, lists);
}

function joined(members: Member[], collection: string, lists: GenuineLists): string {
  if (lists.attachments !== null) members.push(member("@attachments", lists.attachments));
  if (lists.counters !== null) members.push(member("@counters", lists.counters));
  const [first] = members;
  if (first === undefined) return "";
  if (members.length > 1) members.sort((a, b) => compareBytes(a.key, b.key));
  else if (first.key === collectionKey && first.value === quoted(collection)) return "";
  return members.map(({ keyText, value }) => `${keyText}:${value}`).join(",");
}

function quoted(text: string): string {
  return quoteString(text).toString();
}

function member(key: string, value: string): Member {
  return { key, keyText: `"${key}"`, value };
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** With its quotes, as it stands in the text. */
function memberKeyText(parser: DocumentParser, index: number): string {
  const at = index * metadataSpanSlots;
  const { metadataSpans } = parser;
  return parser.metadata.toString("utf8", metadataSpans[at], metadataSpans[at + 1]);
}

function memberKey(parser: DocumentParser, index: number): string {
  const text = memberKeyText(parser, index);
  return text.includes("\\") ? (JSON.parse(text) as string) : text.slice(1, -1);
}

function memberValue(parser: DocumentParser, index: number): string {
  const at = index * metadataSpanSlots;
  const { metadataSpans } = parser;
  return parser.metadata.toString("utf8", metadataSpans[at + 2], metadataSpans[at + 3]);
}

function checkDate(key: string, value: string): void {
  if (!value.startsWith('"')) return;
  const text = JSON.parse(value) as string;
  if (Number.isNaN(parseTimestamp(text))) {
    throw new EngineError(
      "invalid-operation",
      `The ${key === "@expires" ? "expiration" : "refresh"} date format for document is not valid: '${text}'. Use the following format: yyyy-MM-ddTHH:mm:ss.fffffffZ`,
    );
  }
}
