/**
 * Executes a batch as one transaction: everything in it becomes durable and visible together, or nothing does. The
 * commands are in the table of batch-commands.ts.
 */
import { assert } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import { transactionBytesMax } from "../base/limits.ts";
import { countDropped, countPassing } from "../base/memory/gc-hints.ts";
import { largeBuffer } from "../base/memory/large-buffer.ts";
import { pauseIfDue } from "../base/scheduling/time-slices.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import type { ParsedDocument } from "../state/documents/parsed-document.ts";
import type { DatabaseState } from "../state/store/database-state.ts";
import type { Store } from "../state/store/store.ts";
import type { Transaction } from "../state/store/transaction.ts";
import type { BlobStore, Lease } from "../storage/log/blob-store.ts";
import { nextIdentity, rewriteTouched } from "../writes/documents.ts";
import { batchHandlers, prepareCommand } from "./batch-commands.ts";
import type { Batch, BatchCommand } from "./batch-parser.ts";
import { recordsAhead } from "./batch-records.ts";
import { type BatchRow, BatchRows } from "./batch-rows.ts";

/** Bytes of a batch from which on its larger documents are parsed before its transaction. */
const longBatchBytes = 256 * 1024;
/** Minimum size of such a document, in bytes: for a smaller one, a separate parser costs more than parsing it. */
const batchPreparedBytesMin = 16 * 1024;
/** Memory for the writes of a batch besides those documents, in bytes. */
const preparedRoomBytes = 4 * 1024 * 1024;
/** Bytes of memory that are touched in one go. */
const touchedBytes = 2 * 1024 * 1024;
/**
 * Size of a batch's text, in bytes, from which it is collected immediately. A shorter text is young when it is dropped,
 * and minor collections free it: for many such batches a second, major collections took as much time as the writing.
 */
const droppedBytesMin = 1024 * 1024;
/** Bytes of commands, or commands, between two readings of the clock. */
const bytesPerLook = 4 * 1024;
const rowsPerLook = 8;
const none: readonly never[] = [];

/** Context of a command while it runs. */
export interface BatchRun {
  readonly transaction: Transaction;
  readonly rows: BatchRows;
  /** Large documents of its commands, parsed beforehand. */
  readonly prepared?: ReadonlyMap<BatchCommand, ParsedDocument>;
  /** How many documents its commands may yet delete by prefix. */
  deletableCount: number;
  /** Returns the content of the next attachment, in the order of the commands. @throws EngineError invalid-operation */
  nextContent(): Lease;
}

/**
 * Executes a command, synchronously or, if it may be long, in slices. @returns its row; null if it has no row, or has
 * added the row itself.
 */
export type BatchHandler = (
  run: BatchRun,
  command: BatchCommand,
) => BatchRow | Work<BatchRow | null> | null;

/** Returns whether the command uses the next of the contents uploaded with the batch. */
export function takesContent({ type }: BatchCommand): boolean {
  return type === "AttachmentPUT";
}

/**
 * Stores the contents of a batch's attachments before its transaction. Release the leases afterward.
 * @param contents one for each command that uses one, in order; surplus contents are not read.
 */
export async function storeContents(
  blobs: BlobStore,
  count: number,
  contents: AsyncIterator<AsyncIterable<Buffer>>,
): Promise<Lease[]> {
  const leases: Lease[] = [];
  try {
    while (leases.length < count) {
      const next = await contents.next();
      if (next.done) break;
      leases.push(await blobs.store(next.value));
    }
    if (leases.length === count) await contents.next(); // to the end of the body
    return leases;
  } catch (error) {
    for (const lease of leases) lease.release();
    throw error;
  }
}

/**
 * Executes the commands in order.
 * @returns the rows as JSON text, joined by commas, once everything is durable. The bytes are the caller's.
 * @throws EngineError the error of the first failing command; then nothing was written.
 */
export async function executeBatch(
  database: Store,
  { commands, transactionMode, commandsMax }: Batch,
  contents: readonly Lease[] = [],
): Promise<Buffer> {
  assert(transactionMode !== "ClusterWide", "cluster-wide batches go to executeClusterBatch");
  const handlers = commands.map(({ type }) => handlerOf(type));
  const isDeletion = commands.length > 0 && commands.every(({ type }) => type === "DELETE");
  const bytes = commands[0]?.bytes.length ?? 0;
  const { prepared, room } = await prepareCommands(database.state, commands);
  const fetched = await recordsAhead(database, commands);
  const written = database.writeInSlices(
    (transaction) => {
      if (room !== null) transaction.scratch.adopt(room);
      let taken = 0;
      const run: BatchRun = {
        transaction,
        rows: new BatchRows(commands.length),
        prepared,
        deletableCount: commandsMax,
        nextContent() {
          const lease = contents[taken++];
          if (lease === undefined) {
            throw new EngineError(
              "null-reference",
              "The batch has more AttachmentPUT commands than attachments.",
            );
          }
          return lease;
        },
      };
      return carryOut(run, commands, handlers);
    },
    {
      isDeletion,
      fetched,
      // From here on the log has the memory that the text and the parsed documents took.
      whenAppended() {
        if (bytes >= droppedBytesMin) countDropped(bytes);
        for (const command of commands) command.letGo();
        prepared.clear();
      },
    },
  );
  try {
    const rows = await written;
    if (bytes >= droppedBytesMin) countDropped(bytes);
    else countPassing(bytes + rows.length);
    return rows;
  } catch (error) {
    await useUpIdentities(database, commands).catch(() => undefined); // the error to report is the error of the batch
    throw error;
  }
}

/** Executes the commands in order. @returns the rows as JSON text, joined by commas. */
function* carryOut(
  run: BatchRun,
  commands: readonly BatchCommand[],
  handlers: readonly BatchHandler[],
): Work<Buffer> {
  const { rows } = run;
  let bytes = 0;
  for (let at = 0; at < commands.length; at++) {
    const handler = handlers[at] as BatchHandler; // one for each command
    const command = commands[at] as BatchCommand;
    const result = handler(run, command);
    const row = isWork(result) ? yield* result : result;
    if (row !== null) rows.add(row);
    // Short documents take less time than frequent readings of the clock; a script may take long.
    bytes += command.endAt - command.startAt;
    const isShort = command.type === "PUT" && bytes < bytesPerLook;
    if (isShort && at % rowsPerLook !== 0) continue;
    bytes = 0;
    yield;
  }
  yield* rewriteTouched(run.transaction);
  return yield* rows.whole();
}

/** Runs a handler's work to its end. @returns the row */
export function* carriedOut(result: ReturnType<BatchHandler>): Work<BatchRow | null> {
  return isWork(result) ? yield* result : result;
}

function isWork(result: ReturnType<BatchHandler>): result is Work<BatchRow | null> {
  return typeof result === "object" && result !== null;
}

/**
 * Parses large documents and, if there are several commands, allocates one buffer for all of them, in slices.
 * @throws EngineError json-…, too-large
 */
async function prepareCommands(
  state: DatabaseState,
  commands: readonly BatchCommand[],
): Promise<{ prepared: Map<BatchCommand, ParsedDocument>; room: Buffer | null }> {
  const prepared = new Map<BatchCommand, ParsedDocument>();
  let bytes = 0;
  const last = commands.at(-1);
  const isLong = last !== undefined && last.endAt >= longBatchBytes;
  for (const command of isLong ? commands : none) {
    const one = await prepareCommand(state, command, batchPreparedBytesMin);
    if (one === null) continue;
    prepared.set(command, one);
    bytes += one.found.bodyLength;
  }
  if (prepared.size === 0 || commands.length === 1) return { prepared, room: null };
  const room = largeBuffer(Math.min(bytes + preparedRoomBytes, transactionBytesMax));
  // The operating system provides memory on first write, which costs as much as the copy.
  for (let at = 0; at < bytes; at += touchedBytes) {
    room.fill(0, at, Math.min(at + touchedBytes, room.length));
    await pauseIfDue();
  }
  return { prepared, room };
}

/**
 * The identity numbers of a failed batch are not reused, as on RavenDB 7.2.7: a retry gets other numbers, and so avoids
 * an id that exists already.
 */
async function useUpIdentities(database: Store, commands: Batch["commands"]): Promise<void> {
  const names = commands.flatMap((command) => {
    const id = command.type === "PUT" ? command.text("Id") : null;
    return id?.endsWith("|") ? [id] : [];
  });
  if (names.length === 0) return;
  await database.writeInSlices(function* useUp(transaction) {
    for (const name of names) {
      nextIdentity(transaction, name);
      yield;
    }
  });
}

/** @throws EngineError command-invalid */
function handlerOf(type: string): BatchHandler {
  const handler = batchHandlers.get(type);
  if (handler === undefined) {
    throw new EngineError("command-invalid", `Invalid command type: ${type}`);
  }
  return handler;
}
