/** Index statistics and definitions from the server, and derived values. */

import { sentenceOf } from "../../base/server-message.ts";

export interface IndexStats {
  readonly Name: string;
  readonly Type: string;
  readonly State: "Normal" | "Idle" | "Disabled" | "Error";
  readonly Status: "Running" | "Paused" | "Disabled";
  readonly IsStale: boolean;
  readonly IsInvalidIndex: boolean;
  readonly EntriesCount: number;
  readonly ErrorsCount: number;
  readonly MapAttempts: number;
  readonly MapErrors: number;
  readonly LockMode: "Unlock" | "LockedIgnore" | "LockedError";
  readonly Priority: "Low" | "Normal" | "High";
  /** When the index was opened if there was no query since. */
  readonly LastQueryingTime: string | null;
  /** Undefined for servers that do not report it. */
  readonly QueriedSinceStart?: boolean;
  readonly LastIndexingTime: string | null;
  readonly CreatedTimestamp: string;
  readonly Collections: Readonly<Record<string, { readonly DocumentLag: number }>>;
  readonly ReferencedCollections: readonly string[];
  readonly SourceType: string;
}

/** The stored definition, with options that the page does not interpret. */
export interface Definition {
  readonly Name: string;
  readonly Maps: readonly string[];
  readonly Reduce: string | null;
  readonly Fields: Readonly<Record<string, unknown>>;
  readonly [option: string]: unknown;
}

export interface IndexErrorRow {
  readonly Timestamp: string;
  readonly Document: string;
  readonly Action: string;
  readonly Error: string;
  readonly Line?: number;
  readonly Column?: number;
}

const unusedMs = 7 * 24 * 3600 * 1000;

export function isAuto({ Type }: IndexStats): boolean {
  return Type.startsWith("Auto");
}

/** Returns the number of documents to be indexed. */
export function lagOf({ Collections }: IndexStats): number {
  return Object.values(Collections).reduce((sum, { DocumentLag }) => sum + DocumentLag, 0);
}

export function isUnused({ LastQueryingTime, State }: IndexStats, nowMs: number): boolean {
  if (State === "Idle") return true;
  const queriedMs = LastQueryingTime === null ? 0 : Date.parse(LastQueryingTime);
  return nowMs - queriedMs > unusedMs;
}

export function kindOf({ Type }: IndexStats): string {
  if (Type.startsWith("Auto")) return Type === "AutoMapReduce" ? "Auto, map-reduce" : "Auto";
  return Type.endsWith("Reduce") ? "Map-reduce" : "Map";
}

const replacementPrefix = "ReplacementOf/";

/** Returns the new version of an index that is being built beside it. */
export function replacementOf(
  { Name }: IndexStats,
  all: readonly IndexStats[],
): IndexStats | undefined {
  return all.find((one) => one.Name === replacementPrefix + Name);
}

export function hasFailed({ IsInvalidIndex, State }: IndexStats): boolean {
  return IsInvalidIndex || State === "Error";
}

/** Sorts indexes with problems first, then by name; a new version follows its index. */
export function byAttention(all: readonly IndexStats[]): IndexStats[] {
  const nameOf = ({ Name }: IndexStats) => Name.replace(replacementPrefix, "");
  const rank = (index: IndexStats) => {
    const family = all.filter((one) => nameOf(one) === nameOf(index));
    return Math.min(...family.map(rankOf));
  };
  return [...all].sort(
    (left, right) =>
      rank(left) - rank(right) ||
      nameOf(left).localeCompare(nameOf(right)) ||
      left.Name.length - right.Name.length,
  );
}

function rankOf(index: IndexStats): number {
  if (hasFailed(index)) return 0;
  if (index.ErrorsCount > 0) return 1;
  if (index.IsStale) return 2;
  return index.Status === "Running" ? 4 : 3;
}

/** Returns true for C#, which only database administrators may deploy. */
export function hasCSharp({ Maps }: Pick<Definition, "Maps">): boolean {
  return Maps.some((map) => /^\s*(from\s|docs\b|(timeSeries|counters)\.(?!map\())/.test(map));
}

/** Errors at the same position whose messages differ only in numbers and in the document's id. */
export interface ErrorGroup {
  /** Message of the first error. */
  readonly message: string;
  /** Number of distinct messages, apart from the id. */
  readonly messages: number;
  readonly action: string;
  readonly line: number | null;
  readonly column: number | null;
  readonly documents: readonly string[];
  readonly firstMs: number;
  readonly lastMs: number;
}

function withoutId({ Error: error, Document }: IndexErrorRow): string {
  return sentenceOf(error).replaceAll(Document, "");
}

export function errorGroups(errors: readonly IndexErrorRow[]): ErrorGroup[] {
  const groups = new Map<string, IndexErrorRow[]>();
  for (const error of errors) {
    const key = `${withoutId(error).replace(/\d+([.,]\d+)*/g, "0")}\n${error.Action} ${error.Line ?? ""}`;
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [error]);
    else known.push(error);
  }
  const largestFirst = [...groups.values()].sort((one, other) => other.length - one.length);
  return largestFirst.map((rows) => {
    const [first] = rows as [IndexErrorRow];
    const times = rows.map(({ Timestamp }) => Date.parse(Timestamp));
    return {
      message: sentenceOf(first.Error),
      messages: new Set(rows.map(withoutId)).size,
      action: first.Action,
      line: first.Line ?? null,
      column: first.Column ?? null,
      documents: [...new Set(rows.map(({ Document }) => Document))],
      firstMs: Math.min(...times),
      lastMs: Math.max(...times),
    };
  });
}
