/**
 * A bulk insert: a stream of commands, committed in batches while more of them arrive.
 *
 * While one batch is being made durable the next one is gathered, so batches grow with the latency of the disk. When
 * too much is gathered, reading stops until a batch has been committed (back-pressure).
 *
 * Invariants:
 * - Batches are committed in the order of the commands, each in one or more transactions.
 * - Batches committed before the insert fails are kept.
 */

import { EngineError, type ErrorCode } from "../base/errors.ts";
import { truncated } from "../base/json/raw-scan.ts";
import {
  batchCommandsMax,
  bulkInsertBatchBytes,
  bulkInsertBatchCommands,
  preparedBytesMin,
  sliceMs,
} from "../base/limits.ts";
import { BufferedChunks } from "../base/memory/buffered-chunks.ts";
import { countDropped } from "../base/memory/gc-hints.ts";
import { pauseIfDue } from "../base/scheduling/time-slices.ts";
import { finish, type Work } from "../base/scheduling/work-budget.ts";
import type { ParsedDocument } from "../state/documents/parsed-document.ts";
import { bulkResult, type OperationFigures } from "../state/store/operations.ts";
import type { Store } from "../state/store/store.ts";
import type { Transaction } from "../state/store/transaction.ts";
import type { Lease } from "../storage/log/blob-store.ts";
import { isUnchanged, putParsed } from "../writes/documents.ts";
import { parsedOf } from "../writes/prepared-document.ts";
import { type BatchRun, carriedOut } from "./batch.ts";
import { batchHandlers, documentTextOf, prepareCommand } from "./batch-commands.ts";
import type { BatchCommand } from "./batch-parser.ts";
import { BatchRows } from "./batch-rows.ts";
import { CommandScanner } from "./command-scanner.ts";

/** The counter that a command of this type is counted in. */
const countNames = {
  PUT: "documents",
  AttachmentPUT: "attachments",
  Counters: "counters",
  TimeSeriesBulkInsert: "timeSeries",
} as const;

interface Item {
  readonly command: BatchCommand;
  /** The content of an attachment. */
  readonly content: Lease | undefined;
  /** Its document, if large, once it has been parsed ahead of its transaction. */
  prepared: ParsedDocument | null;
}

/** Bytes of commands in one transaction: some milliseconds of work. */
const partBytes = 512 * 1024;
/** Bytes, or commands, between two readings of the clock. */
const bytesPerLook = 16 * 1024;
const itemsPerLook = 32;
/** A command other than PUT with at least this many bytes gets its own transaction, in time slices. */
const longCommandBytes = 16 * 1024;

export interface BulkInsertOptions {
  /** Documents that would not change are not written. */
  readonly skipsUnchanged: boolean;
  /** Maximum size of a command's document in bytes, if less than the general limit. */
  readonly documentBytesMax?: number;
}

export class BulkInsert {
  readonly #database: Store;
  readonly #options: BulkInsertOptions;
  readonly #scanner: CommandScanner;
  readonly #counts = { total: 0, documents: 0, attachments: 0, counters: 0, timeSeries: 0 };
  #batchCount = 0;
  #gathered: Item[] = [];
  #gatheredBytes = 0;
  /** The batch being made durable; never rejects. */
  #committing: Promise<void> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #wake: (() => void) | null = null;
  #progress: (figures: OperationFigures) => void = () => undefined;

  constructor(database: Store, options: BulkInsertOptions) {
    this.#database = database;
    this.#options = options;
    this.#scanner = new CommandScanner(options.documentBytesMax);
  }

  /**
   * Reads commands from `chunks` until the closing bracket, which need not be the end of the stream.
   * @returns the final counts, once everything is durable.
   * @throws EngineError invalid-operation, with the cause and the counts so far; operation-cancelled
   */
  async run(
    chunks: AsyncIterable<Buffer>,
    progress: (figures: OperationFigures) => void,
    signal: AbortSignal,
  ): Promise<OperationFigures> {
    this.#progress = progress;
    const iterator = chunks[Symbol.asyncIterator]();
    const pieces = new BufferedChunks(iterator);
    const onAbort = () =>
      this.#fail(new EngineError("operation-cancelled", "Bulk insert was aborted by the user."));
    signal.addEventListener("abort", onAbort);
    try {
      await this.#readAll(pieces);
      while (this.#committing !== null || this.#gathered.length > 0) {
        this.#pump();
        await this.#committing;
        this.#check();
      }
      return bulkResult(this.#counts);
    } catch (error) {
      this.#failure ??= { error };
      await this.#committing;
      if (signal.aborted) throw error;
      throw this.#explained(error);
    } finally {
      signal.removeEventListener("abort", onAbort);
      pieces.release();
      // Not awaited: it resolves only when the client sends more, or disconnects.
      iterator.return?.().catch(() => undefined);
      for (const { content } of this.#gathered) content?.release();
      this.#gathered = [];
      // The operation is kept in memory after it has ended; the received bytes must not be.
      this.#scanner.letGo();
    }
  }

  async #readAll(pieces: BufferedChunks): Promise<void> {
    for (;;) {
      const command = this.#scanner.next();
      if (command === "end") return;
      if (command === "more") {
        await this.#receive(pieces);
        // Bytes that were already received arrive without a wait.
        await pauseIfDue();
        continue;
      }
      if (!command.isWhole) await command.parseRest();
      if (command.type === "HeartBeat") continue;
      checkCommand(command);
      const content =
        command.type === "AttachmentPUT"
          ? await this.#database.blobs.store(this.#contentOf(command, pieces))
          : undefined;
      this.#gathered.push({ command, content, prepared: null });
      this.#gatheredBytes += command.endAt - command.startAt;
      while (
        this.#gathered.length >= bulkInsertBatchCommands ||
        this.#gatheredBytes >= bulkInsertBatchBytes
      ) {
        if (this.#committing === null) this.#pump();
        else await this.#committing;
        this.#check();
      }
    }
  }

  /** Yields the raw bytes that follow an attachment's command. */
  async *#contentOf(command: BatchCommand, pieces: BufferedChunks): AsyncGenerator<Buffer> {
    const length = command.value("ContentLength");
    if (typeof length !== "number" || !Number.isSafeInteger(length) || length < 0) {
      throw new EngineError("invalid-argument", "AttachmentPUT: 'ContentLength' must be a size.");
    }
    for (let left = length; left > 0; ) {
      const part = this.#scanner.raw(left);
      left -= part.length;
      if (part.length > 0) yield part;
      else await this.#receive(pieces);
    }
  }

  /**
   * Waits for more of the body, or until a batch fails or the insert is cancelled. If nothing arrives within a tick of
   * the event loop, the gathered commands are committed in the meantime; of a truncated body that arrived in one chunk
   * nothing is committed, as on RavenDB 7.2.7.
   */
  async #receive(pieces: BufferedChunks): Promise<void> {
    this.#check();
    const failed = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const chunk = pieces.next(this.#scanner.heldBytes);
    let received = await Promise.race([chunk, failed, late()]);
    if (received === isLate) {
      this.#pump();
      received = await Promise.race([chunk, failed]);
    }
    this.#wake = null;
    if (received === undefined) chunk.catch(() => undefined);
    this.#check();
    if (received === undefined || received.done) throw truncated();
    this.#scanner.push(received.value);
  }

  /** Commits the gathered commands; if a batch is in progress, once it is durable. */
  #pump(): void {
    if (this.#committing !== null || this.#gathered.length === 0 || this.#failure !== null) return;
    const items = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#committing = this.#commit(items)
      .catch((error: unknown) => this.#fail(error))
      .then(() => {
        this.#committing = null;
        this.#pump();
      });
  }

  /** In several transactions, which are written to disk concurrently. */
  async #commit(items: readonly Item[]): Promise<void> {
    const written: Promise<void>[] = [];
    try {
      for (let from = 0; from < items.length; ) {
        const first = items[from] as Item; // from < items.length
        first.prepared = await prepareCommand(this.#database.state, first.command);
        await pauseIfDue();
        const part = new Part(items, from);
        const write = isLong(first.command) ? this.#writeLong(first, part) : this.#write(part);
        const { prepared } = first;
        const counted = write.then((lastId) => {
          this.#count(items.slice(part.from, part.to), lastId);
          if (prepared !== null) countDropped(prepared.placed?.bytes.length ?? 0);
        });
        counted.catch(() => undefined); // reported below
        written.push(counted);
        from = part.to;
        // A transaction that must wait is awaited: this keeps the order of commands, and none follows a failed one.
        if (!part.isRun) {
          await counted;
          from = part.to;
        }
      }
    } finally {
      const ended = await Promise.allSettled(written);
      for (const { content } of items) content?.release();
      for (const one of ended) if (one.status === "rejected") this.#fail(one.reason);
    }
  }

  #count(part: readonly Item[], lastId: string): void {
    this.#batchCount++;
    this.#counts.total += part.length;
    for (const { command } of part) {
      this.#counts[countNames[command.type as keyof typeof countNames]]++;
    }
    this.#progress({
      Total: this.#counts.total,
      BatchCount: this.#batchCount,
      LastProcessedId: lastId,
      DocumentsProcessed: this.#counts.documents,
      AttachmentsProcessed: this.#counts.attachments,
      CountersProcessed: this.#counts.counters,
      TimeSeriesProcessed: this.#counts.timeSeries,
    });
  }

  /** Writes a part synchronously. @returns the id of the last command's document. */
  #write(part: Part): Promise<string> {
    return this.#database.write((transaction) => {
      let lastId = "";
      for (const item of part) lastId = this.#execute(transaction, item);
      return lastId;
    });
  }

  /** Writes one long command, in slices. @returns the id of its document. */
  #writeLong(item: Item, part: Part): Promise<string> {
    const { command } = item;
    part.takeFirst();
    return this.#database.writeInSlices((transaction) => {
      return executed(runOf(transaction, item), command);
    });
  }

  /** @returns the id of the command's document. */
  #execute(transaction: Transaction, item: Item): string {
    const { command, prepared } = item;
    const { state } = transaction;
    if (command.type === "PUT") {
      const id = command.text("Id") || state.newGuid();
      const parsed = parsedOf(state, documentTextOf(command), prepared);
      if (this.#options.skipsUnchanged && isUnchanged(transaction, id, parsed)) return id;
      return putParsed(transaction, id, parsed).id;
    }
    return finish(executed(runOf(transaction, item), command));
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wake?.();
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Unexpected errors are rethrown unchanged, and errors of the server are not reported as errors of the caller. */
  #explained(error: unknown): unknown {
    if (!(error instanceof EngineError)) return error;
    const { code, details } = error;
    return new EngineError(
      serverErrors.has(code) ? code : "invalid-operation",
      `Failed to process bulk insert. Inserted ${this.#counts.total} items in ${this.#batchCount} batches. ${error.message}`,
      { cause: error, ...(serverErrors.has(code) && details !== undefined ? { details } : {}) },
    );
  }
}

/** Errors that the caller did not cause: the same request may succeed later. */
const serverErrors: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "database-stopped",
  "disk-full",
  "memory-full",
  "not-leader",
  "outcome-unknown",
  "overloaded",
  "read-failed",
  "storage-failed",
  "stream-unavailable",
]);

function runOf(transaction: Transaction, item: Item): BatchRun {
  const nextContent = () => contentOf(item);
  return { transaction, rows: new BatchRows(1), deletableCount: batchCommandsMax, nextContent };
}

/** Executes a command other than PUT. @returns the id of its document. */
function* executed(run: BatchRun, command: BatchCommand): Work<string> {
  const result = batchHandlers.get(command.type)?.(run, command) ?? null;
  yield* carriedOut(result);
  return command.text("Id") ?? "";
}

/** @throws EngineError json-truncated */
function contentOf({ content }: Item): Lease {
  if (content === undefined) throw truncated();
  return content;
}

/** Returns whether the command needs more time than one slice. */
function isLong(command: BatchCommand): boolean {
  if (command.type === "PUT") return false;
  return command.endAt - command.startAt >= longCommandBytes || command.isSet("IdPrefixed");
}

/**
 * The items of one transaction that runs synchronously: as many as fit in a time slice, at least one. A large document
 * is always the first item, parsed beforehand. If the transaction is run again, it gets the same items.
 */
class Part {
  readonly from: number;
  /** Exclusive; final once the transaction has run. */
  to: number;
  isRun = false;
  readonly #items: readonly Item[];

  constructor(items: readonly Item[], from: number) {
    this.#items = items;
    this.from = from;
    this.to = from;
  }

  takeFirst(): void {
    this.to = this.from + 1;
    this.isRun = true;
  }

  *[Symbol.iterator](): Generator<Item> {
    const stopMs = performance.now() + sliceMs;
    let bytesAtLook = 0;
    let bytes = 0;
    for (let at = this.from; at < (this.isRun ? this.to : this.#items.length); at++) {
      const item = this.#items[at] as Item; // at < length
      if (!this.isRun && at > this.from) {
        const { startAt, endAt } = item.command;
        if (endAt - startAt >= preparedBytesMin || isLong(item.command)) break;
        if (bytes >= partBytes) break;
        if (bytes >= bytesAtLook || (at - this.from) % itemsPerLook === 0) {
          if (performance.now() >= stopMs) break;
          bytesAtLook = bytes + bytesPerLook;
        }
      }
      yield item;
      bytes += item.command.endAt - item.command.startAt;
      if (!this.isRun) this.to = at + 1;
    }
    this.isRun = true;
  }
}

/** Nothing arrived in a tick of the event loop. */
const isLate = Symbol("late");

function late(): Promise<typeof isLate> {
  return new Promise((resolve) => setImmediate(resolve, isLate));
}

/** @throws EngineError command-invalid, not-supported */
function checkCommand(command: BatchCommand): void {
  if (!batchHandlers.has(command.type)) {
    throw new EngineError("command-invalid", `Invalid command type: ${command.type}`);
  }
  if (!Object.hasOwn(countNames, command.type)) {
    throw new EngineError(
      "not-supported",
      `A bulk insert has no commands of type ${command.type}.`,
    );
  }
  const id = command.text("Id");
  if (command.type === "PUT" && id?.endsWith("|")) {
    throw new EngineError(
      "not-supported",
      `Document ids cannot end with '|', but was called with ${id}. A bulk insert makes no identities.`,
    );
  }
}
