/**
 * Converts items of a dump of RavenDB 3.5 or earlier to the current format: the metadata of documents, index
 * definitions, attachments, and the names of identities. Results equal those of RavenDB 7.2.7.
 */

import { EngineError } from "../../base/errors.ts";
import { isObject, type JsonObject } from "../../base/json/json-object.ts";
import { eachRawMember } from "../../base/json/raw-scan.ts";

/**
 * Returns whether the build has the old format. Numbers of two digits were development builds: 35 and 40 are 3.5 and
 * 4.0. A dump without a build has the old format.
 */
export function isOldBuild(build: number): boolean {
  return build < 40 || (build >= 100 && build < 40_000);
}

/** Metadata keys that are left out. */
const droppedKeys: ReadonlySet<string> = new Set([
  "@etag",
  "@index-score",
  "Last-Modified",
  "Non-Authoritative-Information",
  "Raven-Delete-Marker",
  "Raven-Document-Parent-Revision",
  "Raven-Document-Revision",
  "Raven-Document-Revision-Status",
  "Raven-Last-Modified",
  "Raven-Read-Only",
  "Raven-Replication-History",
  "Raven-Replication-Merged-History",
  "Raven-Replication-Source",
  "Raven-Replication-Version",
]);

const renamedKeys: ReadonlyMap<string, string> = new Map([
  ["Raven-Entity-Name", "@collection"],
  ["Raven-Expiration-Date", "@expires"],
]);

/**
 * Returns the text of a document's `@metadata` in the present format. `text`: an object. @throws EngineError
 * json-invalid
 */
export function presentMetadata(id: string, text: string): string {
  if (id.startsWith("Raven/Hilo/")) return '{"@collection":"@hilo"}';
  const bytes = Buffer.from(text);
  const members = new Map<string, string>();
  eachRawMember(bytes, 0, bytes.length, (key, from, to) => {
    if (!droppedKeys.has(key)) members.set(renamedKeys.get(key) ?? key, bytes.utf8Slice(from, to));
  });
  const texts = [...members].map(([key, value]) => `${JSON.stringify(key)}:${value}`);
  return `{${texts.join(",")}}`;
}

/** Type of an item of `Docs`. */
export type OldDocumentKind = "document" | "revision" | "obsolete";

/** `metadata`: as in the dump. */
export function oldDocumentKind(id: string, metadata: JsonObject): OldDocumentKind {
  if (metadata["Raven-Delete-Marker"] === true) return "obsolete";
  const isOfReplication =
    id === "Raven/Replication/Destinations" || id.startsWith("Raven/Replication/Sources/");
  if (isOfReplication) return "obsolete";
  const isRevision = metadata["Raven-Document-Revision-Status"] === "Historical";
  return isRevision && id.includes("/revisions/") ? "revision" : "document";
}

/** `orders/` is `orders|`. `name` is not empty. */
export function presentIdentityName(name: string): string {
  return `${name.slice(0, -1)}|`;
}

/** Indexes that every database of 3.5 had. */
export const obsoleteIndexes: ReadonlySet<string> = new Set([
  "Raven/DocumentsByEntityName",
  "Raven/ConflictDocuments",
]);

/** Field options by their key in old definitions: the present key, and present words by lower-cased old ones. */
const fieldOptions: readonly {
  readonly old: string;
  readonly key: string;
  /** Null stands for the default. */
  readonly words: Readonly<Record<string, string | null>>;
}[] = [
  {
    old: "Indexes",
    key: "Indexing",
    words: { no: "No", analyzed: "Search", notanalyzed: "Exact", default: null },
  },
  { old: "Stores", key: "Storage", words: { yes: "Yes", no: null } },
  {
    old: "TermVectors",
    key: "TermVector",
    words: {
      no: null,
      yes: "Yes",
      withpositions: "WithPositions",
      withoffsets: "WithOffsets",
      withpositionsandoffsets: "WithPositionsAndOffsets",
    },
  },
];

/**
 * Returns the name and the definition of an item of `Indexes`: `{"name","definition"}`. @throws EngineError
 * invalid-format
 */
export function presentIndex(item: JsonObject): JsonObject {
  const name = item["name"] ?? item["Name"];
  const old = item["definition"] ?? item["Definition"];
  if (typeof name !== "string" || !isObject(old)) {
    throw unreadable("Could not read legacy index definition.");
  }
  const maps = old["Maps"];
  if (!Array.isArray(maps) || maps.length === 0 || maps.some((map) => typeof map !== "string")) {
    throw unreadable("The index definition contains no Maps.");
  }
  if (old["Reduce"] === "") throw unreadable(`The reduce function of index '${name}' is empty.`);
  return {
    Name: /^auto\//i.test(name) ? `Legacy/${name}` : name,
    Maps: maps,
    Reduce: old["Reduce"] ?? null,
    LockMode: old["LockMode"] ?? null,
    Fields: presentFields(old),
  };
}

function presentFields(old: JsonObject): JsonObject {
  const fields = new Map<string, Record<string, unknown>>();
  const set = (field: string, key: string, value: unknown): void => {
    const options = fields.get(field) ?? {};
    options[key] = value;
    fields.set(field, options);
  };
  for (const { old: oldKey, key, words } of fieldOptions) {
    for (const [field, word] of membersOf(old, oldKey)) {
      if (typeof word !== "string") continue;
      const present = words[word.toLowerCase()];
      if (present === undefined) throw unreadable(`Requested value '${word}' was not found.`);
      if (present !== null) set(field, key, present);
    }
  }
  for (const [field, analyzer] of membersOf(old, "Analyzers")) {
    if (typeof analyzer === "string") set(field, "Analyzer", analyzer);
  }
  for (const [field, options] of membersOf(old, "SpatialIndexes")) {
    if (isObject(options)) set(field, "Spatial", options);
  }
  const suggested = old["SuggestionsOptions"];
  for (const field of Array.isArray(suggested) ? suggested : []) {
    if (typeof field === "string") set(field, "Suggestions", true);
  }
  return Object.fromEntries(fields);
}

function membersOf(old: JsonObject, key: string): [string, unknown][] {
  const value = old[key] ?? {};
  if (!isObject(value)) throw unreadable(`'${key}' of an index definition is not an object.`);
  return Object.entries(value);
}

/** An item of `Attachments`, which becomes the attachment of a document of its own. */
interface OldAttachment {
  readonly key: string;
  readonly content: Buffer;
  /** Text of the document. */
  readonly text: string;
}

/** `{"Key","Data": base64,"Metadata"}`. @throws EngineError invalid-argument, invalid-format */
export function oldAttachment({
  Key: key,
  Data: data,
  Metadata: metadata,
}: JsonObject): OldAttachment {
  if (typeof key !== "string" || key === "") {
    throw new EngineError("invalid-argument", "The key of a legacy attachment is missing.");
  }
  if (typeof data !== "string") {
    throw new EngineError(
      "invalid-argument",
      `Data of legacy attachment with key=${key} is missing`,
    );
  }
  if (metadata === undefined || metadata === null) {
    throw new EngineError(
      "invalid-argument",
      `Metadata of legacy attachment with key=${key} is missing`,
    );
  }
  if (!isObject(metadata))
    throw unreadable(`Metadata of legacy attachment ${key} is not an object.`);
  const content = Buffer.from(data, "base64");
  if (data.length % 4 !== 0 || content.toString("base64") !== data) {
    throw unreadable(`Data of legacy attachment with key=${key} is not in Base64.`);
  }
  const own = { "@collection": "@files", "@legacy-attachment-metadata": metadata };
  return { key, content, text: JSON.stringify({ "@metadata": own }) };
}

/** Returns the id of the document of an old attachment. */
export function oldAttachmentId(key: string): string {
  return `files/${key}`;
}

function unreadable(message: string): EngineError {
  return new EngineError("invalid-format", message);
}
