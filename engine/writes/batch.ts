/**
 * Carries out a batch as one transaction: everything in it becomes durable and visible together, or nothing does.
 * What a command does is in the table of batch-commands.ts.
 */
import { assert } from "../assert.ts";
import type { BlobStore, Lease } from "../blob-store.ts";
import type { Database } from "../database.ts";
import { EngineError } from "../errors.ts";
import type { Transaction } from "../transaction.ts";
import { batchHandlers } from "./batch-commands.ts";
import type { Batch, BatchCommand } from "./batch-parser.ts";
import { nextIdentity, rewriteTouched } from "./documents.ts";

/** The JSON text of a command's row. Called when all commands are carried out and all change vectors known. */
export type BatchRow = () => string;

/** What a command may use while it is carried out. */
export interface BatchRun {
  readonly transaction: Transaction;
  /** The content of the next attachment, in the order of the commands. @throws EngineError invalid-operation */
  nextContent(): Lease;
}

/** Carries out a command. @returns its row, null when it has none. */
export type BatchHandler = (run: BatchRun, command: BatchCommand) => BatchRow | null;

/** Whether a command takes the next content of those that were uploaded with the batch. */
export function takesContent({ type }: BatchCommand): boolean {
  return type === "AttachmentPUT";
}

/**
 * Stores the contents of a batch's attachments before its transaction. Release the leases after it.
 * @param contents one for each command that takes one, in order; surplus ones are not read.
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
 * Carries out the commands in order.
 * @returns the rows as JSON text, joined by commas, when everything is durable.
 * @throws EngineError what the first failing command says; then nothing was done.
 */
export async function executeBatch(
  database: Database,
  { commands, transactionMode }: Batch,
  contents: readonly Lease[] = [],
): Promise<string> {
  assert(transactionMode !== "ClusterWide", "cluster-wide batches go to executeClusterBatch");
  const handlers = commands.map(({ type }) => handlerOf(type));
  const isDeletion = commands.length > 0 && commands.every(({ type }) => type === "DELETE");
  const written = database.write(
    (transaction) => {
      let taken = 0;
      const run: BatchRun = {
        transaction,
        nextContent() {
          const lease = contents[taken++];
          if (lease === undefined) {
            throw new EngineError(
              "invalid-operation",
              "The batch has more AttachmentPUT commands than attachments.",
            );
          }
          return lease;
        },
      };
      const rows: BatchRow[] = [];
      for (const [position, command] of commands.entries()) {
        const row = handlers[position]?.(run, command);
        if (row != null) rows.push(row);
      }
      rewriteTouched(transaction);
      return rows.map((row) => row()).join(",");
    },
    { isDeletion },
  );
  try {
    return await written;
  } catch (error) {
    await useUpIdentities(database, commands).catch(() => undefined); // what the batch failed of is to be told
    throw error;
  }
}

/**
 * The numbers of a batch that failed are used up, as on RavenDB 7.2.7: the next try gets others, and so gets past a document that
 * has the id.
 */
async function useUpIdentities(database: Database, commands: Batch["commands"]): Promise<void> {
  const names = commands.flatMap((command) => {
    const id = command.type === "PUT" ? command.text("Id") : null;
    return id?.endsWith("|") ? [id] : [];
  });
  if (names.length === 0) return;
  await database.write((transaction) => {
    for (const name of names) nextIdentity(transaction, name);
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
