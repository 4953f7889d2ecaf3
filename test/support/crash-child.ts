/**
 * The process to be killed: writes documents, batches, counters and attachments to a database
 * concurrently, and prints a line on standard output for each acknowledged write. Arguments: the
 * folder, a seed, the first number to use.
 */
import { writeSync } from "node:fs";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { scriptWorkPerMs, sliceMs } from "../../engine/base/limits.ts";
import { nodeEnvironment } from "../../engine/base/platform/node-environment.ts";
import type { Lease } from "../../engine/storage/log/blob-store.ts";
import { largeDocumentOf, operationsOf } from "./crash-writes.ts";
import { applyTo, type Batch } from "./model-database.ts";

const [folder = "", seed = "0", first = "0"] = process.argv.slice(2);
const writersCount = 8;

const database = await OpenDatabase.open(nodeEnvironment(), "killed", folder, {
  log: {
    segmentBytesMin: 64 * 1024,
    segmentBytesMax: 256 * 1024,
    oversizedBytesMin: 128 * 1024,
    compaction: { bytesPerSecond: 1e8 },
  },
  maintenance: { snapshotIntervalMs: 40, tombstoneCleanupIntervalMs: 25 },
});
writeSync(1, "open\n");

let next = Number(first);
const underWay = new Set<number>();

/** A write may delete another's document only after that write was acknowledged: else it may be ordered before it. */
async function waitForDeleted(operations: Batch): Promise<void> {
  for (const operation of operations) {
    if (operation.kind !== "delete") continue;
    const number = Number(operation.id.split("/")[1]);
    while (underWay.has(number)) await new Promise((resolve) => setImmediate(resolve));
  }
}

async function write(): Promise<void> {
  for (;;) {
    const number = next++;
    const operations = operationsOf(Number(seed), number);
    underWay.add(number);
    await waitForDeleted(operations);
    const large = largeDocumentOf(Number(seed), number);
    if (large !== "") await database.put(`large/${number}`, Buffer.from(large));
    const contents = new Map<string, Lease>();
    for (const operation of operations) {
      if (operation.kind !== "attach") continue;
      contents.set(operation.content, await database.blobs.store([Buffer.from(operation.content)]));
    }
    await database.writeInSlices(function* (transaction) {
      for (const operation of operations) {
        applyTo(transaction, operation, contents);
        // Every third pauses after each operation, and the others wait for it.
        if (number % 3 === 0) transaction.scriptWork += sliceMs * scriptWorkPerMs;
        yield;
      }
    });
    writeSync(1, `${number}\n`);
    underWay.delete(number);
    for (const lease of contents.values()) lease.release();
  }
}

await Promise.all(Array.from({ length: writersCount }, () => write()));
