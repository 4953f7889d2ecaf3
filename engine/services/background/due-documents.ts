/**
 * Documents with an action due at a time in their metadata: `@expires` (delete the document) and `@refresh` (rewrite it
 * without the key). One instance per key, active while it is configured.
 *
 * It costs writers nothing: each run first reads the metadata of the documents changed since the previous run, then
 * processes the due ones, a few documents per transaction. After opening, the first run scans all documents.
 *
 * Invariants:
 * - `#due` contains every document up to `#scannedEtag` with a due time, and perhaps some whose due time was removed:
 *   the transaction checks again.
 */

import { parseDueTime } from "../../base/due-time.ts";
import type { Clock } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { quoteString } from "../../base/json/escape.ts";
import { decodeString, skipString, skipValue } from "../../base/json/field-access.ts";
import { documentsPerTask, dueDocumentsIntervalMs, sliceMs } from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import type { StoredRow } from "../../indexing/index-host.ts";
import { RecordReader } from "../../queries/rows/record-reader.ts";
import { metadataLengthOf, metadataStartOf } from "../../state/documents/document-record.ts";
import { allCollections } from "../../state/keyspaces/document-table.ts";
import type { DatabaseView, Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { ConfiguredTask } from "./configured-task.ts";

const noBytes = Buffer.alloc(0);

export interface DueDocumentsOptions {
  readonly key: "@expires" | "@refresh";
  /** Member of the database's record with the configuration, and its member with the seconds between runs. */
  readonly settingsKey: string;
  readonly secondsKey: string;
  /** Performs the action on an existing document. */
  readonly act: (transaction: Transaction, document: number) => void;
}

type Configuration = Readonly<Record<string, unknown>>;

export class DueDocuments {
  readonly #database: Store;
  readonly #clock: Clock;
  readonly #row: StoredRow = { docNum: 0, etag: 0, bytes: noBytes, start: 0, block: null };
  readonly #options: DueDocumentsOptions;
  readonly #keyText: Buffer;
  readonly #task: ConfiguredTask;
  /** Due time by document, microseconds since 1970. */
  readonly #due = new Map<number, number>();
  #scannedEtag = 0;
  #isClosed = false;

  constructor(
    database: Store,
    clock: Clock,
    options: DueDocumentsOptions,
    failed: (error: unknown) => void,
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#options = options;
    this.#keyText = quoteString(options.key);
    this.#task = new ConfiguredTask(
      clock,
      () => this.run(),
      () => this.#secondsBetween(),
      failed,
    );
  }

  /** The database's record may have changed: reschedules the next run, if one is configured. */
  configure(): void {
    this.#task.configure();
  }

  #secondsBetween(): number | null {
    const configuration = this.#configuration();
    if (configuration === null) return null;
    const seconds = configuration[this.#options.secondsKey];
    return typeof seconds === "number" ? seconds : dueDocumentsIntervalMs / 1000;
  }

  /** Processes the documents due now. @returns how many. */
  async run(): Promise<number> {
    const configuration = this.#configuration();
    if (configuration === null || this.#database.isFollowing) return 0;
    await this.#scan();
    const most = configuration["MaxItemsToProcess"];
    const now = this.#clock.nowMicros();
    const due = [...this.#due]
      .filter(([, time]) => time <= now)
      .sort(([, left], [, right]) => left - right)
      .map(([document]) => document)
      .slice(0, typeof most === "number" ? most : undefined);
    let done = 0;
    for (let at = 0; at < due.length && !this.#isClosed; at += documentsPerTask) {
      const some = due.slice(at, at + documentsPerTask);
      done += await this.#database.write((transaction) => this.#actOn(transaction, some, now));
      for (const document of some) this.#due.delete(document);
    }
    return done;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#task.close();
  }

  /** Whether the action is configured in the database's record. */
  get isConfigured(): boolean {
    return this.#configuration() !== null;
  }

  #configuration(): Configuration | null {
    const configuration = this.#database.settings[this.#options.settingsKey];
    if (typeof configuration !== "object" || configuration === null) return null;
    return (configuration as Configuration)["Disabled"] === true
      ? null
      : (configuration as Configuration);
  }

  #actOn(transaction: Transaction, documents: readonly number[], now: number): number {
    let done = 0;
    for (const document of documents) {
      if (!transaction.exists(document)) continue;
      const { bytes, start } = transaction.recordOf(document);
      const time = this.#timeIn(bytes, start);
      if (Number.isNaN(time) || time > now) continue;
      this.#options.act(transaction, document);
      done++;
    }
    return done;
  }

  /** Reads the due times of the documents changed since the last scan. */
  async #scan(): Promise<void> {
    const view = this.#database.view();
    const reader = new RecordReader(this.#database);
    try {
      const { documents } = view;
      const cursor = documents.byEtag(allCollections, this.#scannedEtag + 1);
      const batch = new Uint32Array(documentsPerTask);
      let sliceEnd = this.#clock.monotonicMs() + sliceMs;
      for (let count = batch.length; count === batch.length && !this.#isClosed; ) {
        count = cursor.fill(batch, batch.length);
        for (let i = 0; i < count; i++) {
          const document = batch[i] as number; // i < count
          const read = this.#timeOf(reader, view, batch.subarray(i, count));
          const time = typeof read === "number" ? read : await read;
          if (Number.isNaN(time)) this.#due.delete(document);
          else this.#due.set(document, time);
          this.#scannedEtag = documents.etagOf(document);
        }
        if (this.#clock.monotonicMs() < sliceEnd) continue;
        await nextSlice();
        sliceEnd = this.#clock.monotonicMs() + sliceMs;
      }
    } finally {
      reader.close();
      view.release();
    }
  }

  /**
   * As `#timeIn`, for the first of a view's documents; NaN also for a damaged record, which must not hold up the
   * others.
   */
  #timeOf(
    reader: RecordReader,
    { documents }: Pick<DatabaseView, "documents">,
    batch: Uint32Array,
  ): number | Promise<number> {
    const document = batch[0] as number; // there is one
    const row = this.#row;
    if (reader.tryPlace(documents.positionOf(document), documents.lengthOf(document), row)) {
      return this.#timeIn(row.bytes, row.start);
    }
    return reader.gather(documents, batch, 0, batch.length).then(
      () => this.#timeOf(reader, { documents }, batch),
      (error: unknown) => {
        if (error instanceof EngineError && error.code === "record-damaged") return Number.NaN;
        throw error;
      },
    );
  }

  /** Returns the due time in a document's record; NaN for none. */
  #timeIn(bytes: Buffer, start: number): number {
    const length = metadataLengthOf(bytes, start);
    if (length === 0) return Number.NaN;
    const from = metadataStartOf(bytes, start);
    const text = bytes.subarray(from, from + length);
    if (!text.includes(this.#keyText)) return Number.NaN;
    for (let keyFrom = 0; keyFrom < length; ) {
      const keyTo = skipString(text, keyFrom);
      const valueTo = Math.min(skipValue(text, keyTo + 1), length);
      if (text.subarray(keyFrom, keyTo).equals(this.#keyText)) {
        const isText = text[keyTo + 1] === 0x22;
        return isText ? parseDueTime(decodeString(text, keyTo + 1, valueTo)) : Number.NaN;
      }
      keyFrom = valueTo + 1;
    }
    return Number.NaN;
  }
}
