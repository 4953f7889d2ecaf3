/**
 * The progress and result of an export or import: counts per kind of item, and messages, in the format of RavenDB's
 * `SmugglerResult`.
 *
 * Invariants:
 * - At most `smugglerMessagesMax` messages are kept: the first and the last ones.
 */
import { smugglerMessagesMax } from "../../base/limits.ts";
import { formatTimestamp } from "../../base/timestamp.ts";

/** Kinds of items, in the order of the reply. */
const kinds = [
  "DatabaseRecord",
  "Documents",
  "RevisionDocuments",
  "Tombstones",
  "Conflicts",
  "Identities",
  "Indexes",
  "CompareExchange",
  "Subscriptions",
  "Counters",
  "CompareExchangeTombstones",
  "TimeSeries",
  "ReplicationHubCertificates",
  "TimeSeriesDeletedRanges",
] as const;
/** Kinds of items that have messages, but no counts in the reply. */
const unlistedKinds = ["LegacyDocumentDeletions", "LegacyAttachmentDeletions"] as const;
export type ResultKind = (typeof kinds)[number] | (typeof unlistedKinds)[number];

/** Kinds whose items have etags, and kinds with items that can be skipped. */
const withEtags: ReadonlySet<ResultKind> = new Set([
  "Documents",
  "RevisionDocuments",
  "Tombstones",
  "Conflicts",
  "Identities",
  "CompareExchange",
  "Counters",
  "TimeSeries",
  "TimeSeriesDeletedRanges",
]);
const withSkips: ReadonlySet<ResultKind> = new Set([
  "Documents",
  "RevisionDocuments",
  "Counters",
  "TimeSeries",
  "TimeSeriesDeletedRanges",
]);

/** Counts of one kind of item. */
export class ItemCounts {
  /** Microseconds since 1970; null: not started. */
  startedAt: number | null = null;
  isSkipped = true;
  readCount = 0;
  erroredCount = 0;
  skippedCount = 0;
  sizeBytes = 0;
  lastEtag = 0;
}

export class SmugglerResult {
  readonly #counts = new Map<ResultKind, ItemCounts>(
    [...kinds, ...unlistedKinds].map((kind) => [kind, new ItemCounts()]),
  );
  readonly documentAttachments = new ItemCounts();
  readonly revisionAttachments = new ItemCounts();
  /** Parts of the record that an import changed, by their names in the reply. */
  readonly updatedParts: string[] = [];
  /** Of an export: the etag of the newest change before it. */
  asOfEtag = 0;
  readonly #messages: string[] = [];
  #droppedMessages = 0;
  readonly #nowMicros: () => number;
  readonly #startedAt: number;

  constructor(nowMicros: () => number) {
    this.#nowMicros = nowMicros;
    this.#startedAt = nowMicros();
  }

  of(kind: ResultKind): ItemCounts {
    return this.#counts.get(kind) as ItemCounts; // every kind is there
  }

  /** Starts a section. `name`: its name in messages. */
  start(kind: ResultKind, name: string = kind): ItemCounts {
    const counts = this.of(kind);
    counts.startedAt ??= this.#nowMicros();
    counts.isSkipped = false;
    this.add("INFO", `Started processing ${name}.`);
    return counts;
  }

  /** Ends a section. */
  finish(kind: ResultKind, name: string = kind): void {
    this.add("INFO", `Finished processing ${name}. ${this.#summary(kind)}`);
  }

  /** Records that a section is skipped. `readCount`: its skipped items. */
  skip(name: string, readCount = 0): void {
    this.add("INFO", `Skipping '${name}' processing.`);
    const read = readCount > 0 ? ` Skipped ${readCount} items.` : "";
    this.add("INFO", `Skipped '${name}' processing.${read}`);
  }

  add(level: "INFO" | "WARNING" | "ERROR", text: string): void {
    const time = formatTimestamp(this.#nowMicros()).slice(11, 19);
    this.#messages.push(`[${time} ${level}] ${text}`);
    if (this.#messages.length <= smugglerMessagesMax) return;
    this.#messages.splice(smugglerMessagesMax / 2, 1);
    this.#droppedMessages++;
  }

  #summary(kind: ResultKind): string {
    const counts = this.of(kind);
    if (kind === "DatabaseRecord") {
      const parts = this.updatedParts.map((part) => `- ${wordsOf(part)}\n`).join("");
      return parts === "" ? "" : `Following configurations were updated:\n${parts}`;
    }
    const hasSkips = counts.skippedCount > 0 || (withSkips.has(kind) && !kind.includes("Document"));
    const parts = [
      ...(hasSkips ? [`Skipped: ${counts.skippedCount}.`] : []),
      ...(counts.erroredCount > 0 ? [`Errored: ${counts.erroredCount}.`] : []),
      `Read: ${counts.readCount}.`,
      ...(counts.sizeBytes > 0 ? [`Size: ${humane(counts.sizeBytes)}.`] : []),
    ];
    const attachments = this.#attachmentsOf(kind);
    if (attachments === null || attachments.readCount === 0) return parts.join(" ");
    const size = attachments.sizeBytes > 0 ? ` Size: ${humane(attachments.sizeBytes)}.` : "";
    return `${parts.join(" ")}\nAttachments: Read: ${attachments.readCount}.${size}`;
  }

  #attachmentsOf(kind: ResultKind): ItemCounts | null {
    if (kind === "Documents") return this.documentAttachments;
    return kind === "RevisionDocuments" ? this.revisionAttachments : null;
  }

  /** Returns the JSON of replies, without `$type`. `isDone`: the operation has ended. */
  toJson(isDone: boolean): Record<string, unknown> {
    const reply: Record<string, unknown> = {};
    for (const kind of kinds) {
      const counts = this.of(kind);
      const attachments = this.#attachmentsOf(kind);
      reply[kind] = {
        ...plain(counts, isDone),
        ...(withEtags.has(kind) ? { LastEtag: counts.lastEtag } : {}),
        ...(attachments === null ? {} : { Attachments: plain(attachments, isDone) }),
        ...(withSkips.has(kind) ? { SkippedCount: counts.skippedCount } : {}),
        ...(kind === "DatabaseRecord"
          ? Object.fromEntries(this.updatedParts.map((part) => [`${part}Updated`, true]))
          : {}),
      };
    }
    const dropped =
      this.#droppedMessages === 0 ? [] : [`... ${this.#droppedMessages} messages are left out ...`];
    const half = smugglerMessagesMax / 2;
    reply["Messages"] = [
      ...this.#messages.slice(0, half),
      ...dropped,
      ...this.#messages.slice(half),
    ];
    reply["Elapsed"] = spanText(this.#nowMicros() - this.#startedAt);
    return reply;
  }
}

function plain(counts: ItemCounts, isDone: boolean): Record<string, unknown> {
  return {
    StartTime: counts.startedAt === null ? null : formatTimestamp(counts.startedAt),
    Processed: isDone,
    ReadCount: counts.readCount,
    Skipped: counts.isSkipped,
    ErroredCount: counts.erroredCount,
    SizeInBytes: counts.sizeBytes,
  };
}

/** `RevisionsConfiguration` is `Revisions`, `LockMode` is `Lock Mode`. */
function wordsOf(part: string): string {
  return part.replace(/Configuration$/, "").replace(/([a-z])([A-Z])/g, "$1 $2");
}

function humane(bytes: number): string {
  const units = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${Number(size.toFixed(2))} ${units[unit]}`;
}

/** `hh:mm:ss.fffffff` */
function spanText(micros: number): string {
  const pad = (value: number, digits: number) => String(Math.floor(value)).padStart(digits, "0");
  const seconds = micros / 1e6;
  const whole = `${pad(seconds / 3600, 2)}:${pad((seconds / 60) % 60, 2)}:${pad(seconds % 60, 2)}`;
  return `${whole}.${pad(micros % 1e6, 6)}0`;
}
