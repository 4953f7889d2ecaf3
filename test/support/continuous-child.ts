/**
 * The process that is killed while a continuous backup runs: writes batches of two documents, and attachments, and
 * prints `<number>` for each acknowledged write; `begun` before, and `shipped` after, everything that was acknowledged
 * is written to the backup. Arguments: the data folder, the folder of the backup, the first number to use.
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeEnvironment, openEngine } from "../../engine/engine.ts";
import { periodicBackup } from "../../server/backups/backup-configuration.ts";
import { ContinuousBackup } from "../../server/backups/continuous-backup.ts";
import { FolderStorage } from "../../server/backups/folder-storage.ts";

const [folder = "", path = "", first = "0"] = process.argv.slice(2);
const sent = { Continuous: { IntervalInSec: 1 }, LocalSettings: { FolderPath: path } };
const task = periodicBackup(sent, 1, new Date());

const log = { segmentBytesMin: 16 * 1024, segmentBytesMax: 64 * 1024 };
const engine = await openEngine({ folder, database: { log } });
const database = engine.databases.has("db")
  ? await engine.databases.find("db")
  : await engine.databases.create("db", { PeriodicBackups: [task] });
if (database === undefined) throw new Error("the database does not exist");
const host = {
  report: (line: string, cause?: unknown) => console.error(line, cause),
  nowMs: () => Date.now(),
  ended: () => undefined,
};
const backup = new ContinuousBackup(host, database, task, {
  place: new FolderStorage(nodeEnvironment().files, path),
  key: Buffer.alloc(32, 1),
});
void backup.resumed.then(() => database.shipping.resumed());
writeSync(1, "open\n");

let next = Number(first);

async function write(): Promise<void> {
  for (;;) {
    const number = next++;
    const Document = { number, filler: "x".repeat(number % 700) };
    const Commands = ["one", "two"].map((kind) => {
      return { Type: "PUT", Id: `${kind}/${number % 300}`, Document };
    });
    const batch = await database?.batches.prepare(Buffer.from(JSON.stringify({ Commands })));
    await batch?.run();
    writeSync(1, `${number}\n`);
  }
}

async function ship(): Promise<void> {
  for (;;) {
    // A round that began earlier may not include writes acknowledged in the meantime.
    await backup.ship();
    writeSync(1, "begun\n");
    await backup.ship();
    if (backup.status()["Error"] !== null) throw new Error(JSON.stringify(backup.status()));
    writeSync(1, "shipped\n");
    await sleep(10);
  }
}

await Promise.all([write(), write(), write(), write(), ship()]);
