/**
 * A process is killed repeatedly while a continuous backup runs; each time only the backup is
 * restored.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Database, nodeEnvironment, openEngine } from "../../engine/engine.ts";
import { ContinuousFolder, continuousToRestore } from "../../server/backups/continuous-folder.ts";
import { FolderStorage } from "../../server/backups/folder-storage.ts";
import { newTestFolder } from "../support/open-test-database.ts";
import { builtPath } from "../support/project-root.ts";
import { SeededRandom } from "../support/random.ts";

const rounds = 4;
const roundMs = 300;
const { files } = nodeEnvironment();
/** The program, test/support/continuous-child.ts. */
const key = Buffer.alloc(32, 1);

/**
 * Output of a process that was killed some time after it had reported `tellings` times the contents
 * of the backup.
 */
async function killed(
  args: readonly string[],
  reportCount: number,
  afterMs: number,
): Promise<readonly string[]> {
  const child = spawn(process.execPath, [...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  const hasReported = new Promise<void>((resolve) => {
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.split("\nshipped\n").length > reportCount) resolve();
    });
  });
  const closed = once(child, "close") as Promise<[number | null]>;
  await Promise.race([hasReported, closed]);
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  child.kill("SIGKILL");
  expect((await closed)[0], "it was killed, and did not exit by itself").toBe(null);
  // The last line may be truncated.
  return text.split("\n").slice(1, -1);
}

/** The numbers that were certainly written to the backup. */
function shippedOf(lines: readonly string[]): readonly number[] {
  const last = lines.lastIndexOf("shipped");
  const started = lines.slice(0, Math.max(0, last)).lastIndexOf("begun");
  return numbersOf(lines.slice(0, Math.max(0, started)));
}

const numbersOf = (lines: readonly string[]) => lines.filter((one) => /^\d/.test(one)).map(Number);

async function restored(folder: string, use: (database: Database) => Promise<void>): Promise<void> {
  const engine = await openEngine({ folder: await newTestFolder() });
  const found = await ContinuousFolder.within(new FolderStorage(files, folder), key);
  const chosen = await continuousToRestore(found, null);
  const { database } = await engine.databases.createFromShipped(
    "again",
    (record) => ({ ...record, PeriodicBackups: [] }),
    Number.MAX_SAFE_INTEGER,
    async (restore) => {
      for (const { name } of [chosen.base, ...chosen.frames]) {
        await restore.add(name, chosen.folder.read(name));
      }
      for (const name of chosen.contents) {
        await restore.addContent(name, chosen.folder.readContent(name));
      }
    },
  );
  await use(database);
  await engine.close();
}

async function numberIn(database: Database, id: string): Promise<number> {
  const text = await database.documents.text(id);
  return text === null ? -1 : (JSON.parse(text.toString()) as { number: number }).number;
}

test("a killed process loses nothing reported as backed up, and resumes the backup", async () => {
  const program = builtPath("test/support/continuous-child.js");
  const data = join(await newTestFolder(), "data");
  const folder = join(await newTestFolder(), "backup");
  const random = new SeededRandom(815);
  let next = 1000;
  const newest = new Map<number, number>();
  let shippedCount = 0;
  for (let round = 0; round < rounds; round++) {
    const lines = await killed(
      [program, data, folder, `${next}`],
      // The first round creates the base; later it is also killed during startup, before it
      // resumes.
      round === 0 ? 2 : random.below(3),
      random.below(roundMs),
    );
    const acknowledged = numbersOf(lines);
    const shipped = shippedOf(lines);
    shippedCount += shipped.length;
    for (const number of shipped) {
      newest.set(number % 300, Math.max(number, newest.get(number % 300) ?? -1));
    }
    // Each of the four writers may be at most one number further.
    const end = Math.max(next, ...acknowledged) + 5;
    await restored(folder, async (database) => {
      for (let slot = 0; slot < 300; slot++) {
        const one = await numberIn(database, `one/${slot}`);
        expect(await numberIn(database, `two/${slot}`), "a partial write").toBe(one);
        expect(one, `slot ${slot}, round ${round}`).toBeGreaterThanOrEqual(newest.get(slot) ?? -1);
        expect(one).toBeLessThan(end);
      }
    });
    next = end + 300;
  }
  expect(shippedCount).toBeGreaterThan(10);
  // It went on in the same files each time.
  const folders = await ContinuousFolder.within(new FolderStorage(files, folder), key);
  const bases = await Promise.all(folders.map(async (one) => (await one.list()).base));
  expect(bases.filter((base) => base !== null)).toHaveLength(1);
}, 240_000);
