/**
 * The overhead of a continuous backup for writers: the same documents are stored without a backup, and with a backup
 * that writes every second. Without HTTP, so that the share of the backup is maximal. Prints wall and processor time,
 * as the median of the overhead of each round compared with the preceding round without a backup, and the delay until
 * the last acknowledged write is in the backup. The machine's load is printed, since other processes affect both.
 *
 * JACKDAW_BENCH_DOCUMENTS: number of documents.
 */
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, nodeEnvironment, openEngine } from "../engine/engine.ts";
import { periodicBackup } from "../server/backups/backup-configuration.ts";
import { ContinuousBackup } from "../server/backups/continuous-backup.ts";
import { FolderStorage } from "../server/backups/folder-storage.ts";
import {
  type BenchSize,
  type Cost,
  costOf,
  documentText,
  median,
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
      const pairs: Pair[] = [];
      for (let i = 0; i < (size === "smoke" ? 1 : 7); i++) {
        const without = await measured(
          join(folder.path, String(++round)),
          documents,
          inFlight,
          false,
        );
        const shipped = await measured(
          join(folder.path, String(++round)),
          documents,
          inFlight,
          true,
        );
        pairs.push({ without, shipped });
      }
      const typical = (of: (pair: Pair) => number) => median(pairs.map(of));
      const line =
        `${name}: ${rate(
          documents,
          typical(({ without }) => without.cost.wallMs),
        )} documents/s without, ` +
        `${rate(
          documents,
          typical(({ shipped }) => shipped.cost.wallMs),
        )} with: ` +
        `wall ${percent(typical(({ without, shipped }) => shipped.cost.wallMs / without.cost.wallMs))}, ` +
        `processor ${percent(typical(({ without, shipped }) => shipped.cost.processorMs / without.cost.processorMs))}; ` +
        `copied ${Math.round(typical(({ shipped }) => shipped.behindMs))} ms after the last write, with an interval of ` +
        `1000 ms; load average ${loadavg()[0]?.toFixed(1)}`;
      lines.push(line);
      console.log(line);
    }
  } finally {
    folder.remove();
  }
  return lines;
}

interface Measured {
  readonly cost: Cost;
  readonly behindMs: number;
}

/** Two consecutive runs. */
interface Pair {
  readonly without: Measured;
  readonly shipped: Measured;
}

async function measured(
  path: string,
  count: number,
  inFlight: number,
  isShipped: boolean,
): Promise<Measured> {
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
    report: (line: string, cause?: unknown) => console.error(line, cause),
    nowMs: () => Date.now(),
    ended: () => undefined,
  };
  return new ContinuousBackup(host, database, periodicBackup(sent, 1, new Date()), {
    place: new FolderStorage(nodeEnvironment().files, folder),
    key: null,
  });
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

function rate(count: number, wallMs: number): string {
  return Math.round(count / (wallMs / 1000)).toLocaleString("en");
}

function percent(ratio: number): string {
  const change = (ratio - 1) * 100;
  return `${change >= 0 ? "+" : ""}${change.toFixed(1)} %`;
}
