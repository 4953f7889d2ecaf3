/**
 * What an export or import is to take, in the words of RavenDB's smuggler. Knows nothing of how options arrive.
 */
import { EngineError } from "../errors.ts";
import type { JsonObject } from "../json/json-object.ts";

/** The words of `OperateOnTypes`. */
const itemTypes = [
  "Documents",
  "RevisionDocuments",
  "Indexes",
  "Identities",
  "Tombstones",
  "LegacyAttachments",
  "Conflicts",
  "CompareExchange",
  "LegacyDocumentDeletions",
  "LegacyAttachmentDeletions",
  "DatabaseRecord",
  "Unknown",
  "Counters",
  "Attachments",
  "CounterGroups",
  "Subscriptions",
  "CompareExchangeTombstones",
  "TimeSeries",
  "ReplicationHubCertificates",
  "TimeSeriesDeletedRanges",
] as const;
export type DumpItemType = (typeof itemTypes)[number];

const defaultTypes: readonly DumpItemType[] = [
  "Indexes",
  "Documents",
  "RevisionDocuments",
  "Conflicts",
  "DatabaseRecord",
  "ReplicationHubCertificates",
  "Identities",
  "CompareExchange",
  "Attachments",
  "CounterGroups",
  "Subscriptions",
  "TimeSeries",
  "TimeSeriesDeletedRanges",
];

/** Steps of a script for one document: when nothing is said, and at most. */
const usualStepsMax = 10_000;
const stepsLimit = 10_000_000;

export interface DumpOptions {
  readonly types: ReadonlySet<DumpItemType>;
  /** Parts of the database's record, in lower case; null: all. */
  readonly recordTypes: ReadonlySet<string> | null;
  /** Lower-cased collections; empty: all. */
  readonly collections: ReadonlySet<string>;
  /** Documents whose `@expires` is over. */
  readonly includesExpired: boolean;
  /** Documents that an index made. */
  readonly includesArtificial: boolean;
  readonly includesArchived: boolean;
  /** Indexes lose the analyzers of their fields. */
  readonly removesAnalyzers: boolean;
  /** Imported documents get no revisions but those of the dump. */
  readonly skipsRevisionCreation: boolean;
  /** A patch script, run on each document; `throw 'skip'` leaves it out. Null: none. */
  readonly transformScript: string | null;
  /** Steps of the script for one document. */
  readonly scriptStepsMax: number;
}

/**
 * Reads options as clients send them; their keys may be in camel case.
 * @throws EngineError json-invalid, not-supported for encryption
 */
export function parseDumpOptions(sent: JsonObject): DumpOptions {
  const known = new Map(Object.entries(sent).map(([key, value]) => [key.toLowerCase(), value]));
  const option = (name: string): unknown => known.get(name.toLowerCase()) ?? undefined;
  if (option("EncryptionKey") !== undefined) {
    throw new EngineError(
      "not-supported",
      "Encrypted dumps are not supported. Encrypt the file itself, or the disk that it is on.",
    );
  }
  const compression = textOf("CompressionAlgorithm", option("CompressionAlgorithm"));
  if (compression !== null && !/^(gzip|zstd)$/i.test(compression)) {
    throw unreadable("CompressionAlgorithm", compression);
  }
  const script = textOf("TransformScript", option("TransformScript"));
  return {
    types: new Set(typesOf(option("OperateOnTypes"))),
    recordTypes: recordTypesOf(option("OperateOnDatabaseRecordType")),
    collections: new Set(
      listOf("Collections", option("Collections")).map((name) => name.toLowerCase()),
    ),
    includesExpired: flagOf("IncludeExpired", option("IncludeExpired"), true),
    includesArtificial: flagOf("IncludeArtificial", option("IncludeArtificial"), false),
    includesArchived: flagOf("IncludeArchived", option("IncludeArchived"), true),
    removesAnalyzers: flagOf("RemoveAnalyzers", option("RemoveAnalyzers"), false),
    skipsRevisionCreation: flagOf("SkipRevisionCreation", option("SkipRevisionCreation"), false),
    transformScript: script === null || script.trim() === "" ? null : script,
    scriptStepsMax: stepsOf(option("MaxStepsForTransformScript")),
  };
}

/** All that a database has, and nothing left out. */
export const wholeDump: DumpOptions = parseDumpOptions({});

function typesOf(sent: unknown): readonly DumpItemType[] {
  if (sent === undefined) return defaultTypes;
  const words = (Array.isArray(sent) ? sent : String(sent).split(",")).map((word) =>
    String(word).trim(),
  );
  if (words.length === 1 && words[0]?.toLowerCase() === "none") return [];
  return words.map((word) => {
    const found = itemTypes.find((type) => type.toLowerCase() === word.toLowerCase());
    if (found === undefined) throw unreadable("OperateOnTypes", String(sent));
    return found;
  });
}

function recordTypesOf(sent: unknown): ReadonlySet<string> | null {
  if (sent === undefined) return null;
  const words =
    typeof sent === "string" ? sent.split(",") : listOf("OperateOnDatabaseRecordType", sent);
  return new Set(words.map((word) => word.trim().toLowerCase()));
}

function listOf(name: string, sent: unknown): readonly string[] {
  if (sent === undefined) return [];
  if (!Array.isArray(sent) || sent.some((item) => typeof item !== "string")) {
    throw unreadable(name, JSON.stringify(sent));
  }
  return sent as string[];
}

function textOf(name: string, sent: unknown): string | null {
  if (sent === undefined) return null;
  if (typeof sent !== "string") throw unreadable(name, JSON.stringify(sent));
  return sent;
}

function flagOf(name: string, sent: unknown, usual: boolean): boolean {
  if (sent === undefined) return usual;
  if (typeof sent !== "boolean") throw unreadable(name, JSON.stringify(sent));
  return sent;
}

function stepsOf(sent: unknown): number {
  if (sent === undefined) return usualStepsMax;
  if (typeof sent !== "number" || !Number.isSafeInteger(sent)) {
    throw unreadable("MaxStepsForTransformScript", JSON.stringify(sent));
  }
  return sent < 0 ? usualStepsMax : Math.min(sent, stepsLimit);
}

function unreadable(name: string, value: string): EngineError {
  return new EngineError(
    "json-invalid",
    `The value '${value}' supplied in '${name}' is not parsable`,
  );
}
