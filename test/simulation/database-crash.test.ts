/**
 * Loss of power at every call of the file system, in everything that a database does. After each: what was acknowledged
 * is there, batches are whole, nothing is another thing than it was, and reading the files again and again, with index
 * snapshots and without, gives the same.
 *
 * DATABASE_CRASH_SEEDS sets in how many ways power is lost at each call (2).
 */
import { expect, test } from "vitest";
import { crashEverywhere } from "../support/crash-loop.ts";
import { describeDatabase, pictureOf } from "../support/database-picture.ts";
import { databaseScenarios, put } from "../support/database-scenarios.ts";
import { History, SimulatedDatabase } from "../support/simulated-database.ts";
import type { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const seeds = Number(process.env["DATABASE_CRASH_SEEDS"] ?? 2);

/** Opens what the crash left, and again after another loss of power; then goes on writing. */
async function checkRecovery(after: SimulatedFileSystem, history: History): Promise<void> {
  const known = history.copy();
  const first = await SimulatedDatabase.open(after, known);
  await first.check();
  const picture = pictureOf(first.database);
  const second = await SimulatedDatabase.open(after.powerLoss(1), known);
  expect(pictureOf(second.database)).toEqual(picture);
  await second.write([put("after", "recovery"), { kind: "identity", name: "invoices" }]);
  await second.database.compact();
  await second.check();
  await second.database.close();
  await first.database.abandon().catch(() => undefined);
}

for (const [name, scenario] of Object.entries(databaseScenarios)) {
  test(`plays to its end and is whole: ${name}`, async () => {
    const { SimulatedFileSystem } = await import("../support/simulated-file-system.ts");
    const files = new SimulatedFileSystem();
    const history = new History();
    await scenario(files, history);
    const again = await SimulatedDatabase.open(files.restart(), history);
    expect(history.acknowledged).toBe(history.states.length - 1);
    expect(await describeDatabase(again.database)).toBe(history.newest.text());
    await again.check();
    await again.database.close();
  });

  test(`nothing acknowledged is lost by a crash: ${name}`, { timeout: 600_000 }, async () => {
    await crashEverywhere(() => new History(), scenario, { seeds }, checkRecovery);
  });
}
