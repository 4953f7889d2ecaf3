/**
 * What a continuous backup costs those who write: the same documents are stored without one, and with one that writes
 * every second. Without HTTP, so the share of the backup is as large as it can be. Prints wall and processor time, and
 * how long what was acknowledged last took to be elsewhere.
 *
 * JACKDAW_BENCH_DOCUMENTS: number of documents.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, nodeEnvironment, openEngine } from "../engine/engine.ts";
import { periodicBackup } from "../server/backups/backup-configuration.ts";
import { ContinuousBackup } from "../server/backups/continuous-backup.ts";
import {
  type BenchSize,
  type Cost,
  costOf,
  documentText,
  interleavedCosts,
  temporaryFolder,
} from "./harness.ts";

const loads = [
  { name: "1,024 writes in flight", inFlight: 1024 },
  { name: "64 writes in flight", inFlight: 64 },
] as const;

export async function run(size: BenchSize): Promise<string[]> {
  const given = Number(process.env["JACKDAW_BENCH_DOCUMENTS"] ?? 400_000);
  const count = size === "smoke" ? 2_000 : given;
  const lines: string[] = [];
  const folder = temporaryFolder();
  let round = 0;
  try {
    for (const { name, inFlight } of loads) {
      const documents = inFlight === 64 ? Math.ceil(count / 4) : count;
      let behindMs = 0;
      const variant = (isShipped: boolean) => async () => {
        const path = join(folder.path, String(++round));
        const result = await measured(path, documents, inFlight, isShipped);
        behindMs = Math.max(behindMs, result.behindMs);
        return result.cost;
      };
      const costs = await interleavedCosts(size === "smoke" ? 1 : 7, {
        without: variant(false),
        with: variant(true),
      });
      const [without, shipped] = [costs["without"] as Cost, costs["with"] as Cost]; // both were run
      const line =
        `${name}: ${rate(documents, without)} documents/s without, ${rate(documents, shipped)} with: wall ` +
        `${percent(shipped.wallMs, without.wallMs)}, processor ${percent(shipped.processorMs, without.processorMs)}; ` +
        `elsewhere ${Math.round(behindMs)} ms after the last write, of an interval of 1000 ms`;
      lines.push(line);
      console.log(line);
    }
  } finally {
    folder.remove();
  }
  return lines;
}

async function measured(
  path: string,
  count: number,
  inFlight: number,
  isShipped: boolean,
): Promise<{ readonly cost: Cost; readonly behindMs: number }> {
  const engine = await openEngine({ folder: join(path, "data") });
  const database = await engine.databases.create("bench", {});
  const backup = isShipped ? begin(database, join(path, "backup")) : null;
  try {
    await backup?.ship();
    const cost = await costOf(() => write(database, count, inFlight));
    const writtenMs = performance.now();
    while (backup !== null && waiting(backup) > 0) await sleep(5);
    return { cost, behindMs: backup === null ? 0 : performance.now() - writtenMs };
  } finally {
    backup?.close();
    await engine.close();
  }
}

function begin(database: Database, folder: string): ContinuousBackup {
  const sent = { Continuous: { IntervalInSec: 1 }, LocalSettings: { FolderPath: folder } };
  const host = {
    files: nodeEnvironment().files,
    report: (line: string, cause?: unknown) => console.error(line, cause),
    nowMs: () => Date.now(),
    ended: () => undefined,
  };
  return new ContinuousBackup(host, database, periodicBackup(sent, 1, new Date()), folder);
}

function waiting(backup: ContinuousBackup): number {
  const { WaitingBytes } = backup.status()["Continuous"] as { WaitingBytes: number };
  return WaitingBytes;
}

async function write(database: Database, count: number, inFlight: number): Promise<void> {
  let next = 0;
  const writer = async (): Promise<void> => {
    while (next < count) {
      const number = next++;
      await database.documents.put(`users/${number}`, Buffer.from(documentText(number)));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, writer));
}

function rate(count: number, { wallMs }: Cost): string {
  return Math.round(count / (wallMs / 1000)).toLocaleString("en");
}

function percent(value: number, base: number): string {
  const change = (value / base - 1) * 100;
  return `${change >= 0 ? "+" : ""}${change.toFixed(1)} %`;
}
