/**
 * Power loss at every file system call, in all database scenarios. After each, acknowledged writes exist, batches are
 * atomic, nothing has changed otherwise, and repeated recovery from the files, with snapshots and without, gives the
 * same result.
 *
 * By default power is lost at every 7th call, with one outcome; with `npm run stress faults` at every call, with three.
 */
import { expect, test } from "vitest";
import { crashEverywhere } from "../support/crash-loop.ts";
import { describeDatabase } from "../support/database-picture.ts";
import { checkRecovery, databaseScenarios } from "../support/database-scenarios.ts";
import { everyFault } from "../support/every-fault.ts";
import { History, SimulatedDatabase } from "../support/simulated-database.ts";
import { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const seeds = everyFault ? 3 : 1;
const step = everyFault ? 1 : 7;

for (const [name, scenario] of Object.entries(databaseScenarios)) {
  test(`completes and is intact: ${name}`, async () => {
    const files = new SimulatedFileSystem();
    const history = new History();
    await scenario(files, history);
    const again = await SimulatedDatabase.open(files.restart(), history);
    expect(history.acknowledged).toBe(history.states.length - 1);
    expect(await describeDatabase(again.database)).toBe(history.newest.text());
    await again.check();
    await again.database.close();
  });

  test(`a crash loses nothing acknowledged: ${name}`, { timeout: 3_600_000 }, async () => {
    await crashEverywhere(() => new History(), scenario, { seeds, step }, checkRecovery);
  });
}
