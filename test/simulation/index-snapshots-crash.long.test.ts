/**
 * Power loss, and disk failures, at every file system call while indexes are built, saved and read again. After each
 * the indexes return the same results as newly built ones.
 *
 * By default every 29th call; with `npm run stress faults` every call.
 */
import { expect, test } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { countCalls, crashEverywhere, playWithFault } from "../support/crash-loop.ts";
import { everyFault } from "../support/every-fault.ts";
import { query } from "../support/open-database.ts";
import { databaseFolder, logOptions, simulatedEnvironment } from "../support/simulated-database.ts";
import type { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const step = everyFault ? 1 : 29;
const definitions = [
  {
    Name: "Loaded",
    Maps: ["map('Users', u => ({ City: (load(u.City, 'Cities') || {}).Name, Age: u.Age }))"],
    Fields: { City: { Storage: "Yes" } },
  },
  {
    Name: "Reduced",
    Maps: ["map('Users', u => ({ City: u.City, Count: 1 }))"],
    Reduce:
      "groupBy(x => x.City).aggregate(g => ({ City: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))",
    OutputReduceToCollection: "Counts",
  },
];
const questions = [
  "from Users where Age > 2 order by id() select Age",
  "from index 'Loaded' where City != 'x' order by id() select City",
  "from index 'Reduced' order by City",
  "from Counts order by City select City, Count",
];

async function open(files: SimulatedFileSystem): Promise<OpenDatabase> {
  return await OpenDatabase.open(simulatedEnvironment(files), "shop", databaseFolder, logOptions());
}

async function answers(database: OpenDatabase): Promise<object[]> {
  const replies: object[] = [];
  for (const question of questions) {
    const { outcome, rows } = await query(database, question);
    expect(outcome?.isStale).toBe(false);
    replies.push(rows.map(({ "@metadata": _, ...rest }) => rest));
  }
  database.queries.indexes.checkInvariants();
  return replies;
}

const user = (i: number, round: number) => ({
  Age: (i * 7 + round) % 9,
  City: `cities/${(i + round) % 3}`,
  "@metadata": { "@collection": "Users" },
});
const city = (name: string) => ({ Name: name, "@metadata": { "@collection": "Cities" } });

/** Rounds of changes, each on the saved state of the previous one. */
async function scenario(files: SimulatedFileSystem): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const database = await open(files);
    try {
      if (round === 0) {
        for (let i = 0; i < 3; i++) await database.put(`cities/${i}`, city(`c${i}`));
        await database.queries.administration.deploy(definitions, true);
      }
      for (let i = 0; i < 6; i++) await database.put(`users/${i + round * 2}`, user(i, round));
      if (round === 1) await database.delete("users/1");
      await answers(database);
      if (round === 1) await database.delete("cities/1");
      if (round === 2) await database.put("cities/2", city("renamed"));
      await database.maintenance.cleanTombstones();
    } finally {
      await database.close();
    }
  }
}

async function check(after: SimulatedFileSystem): Promise<void> {
  const database = await open(after);
  try {
    const hasIndexes = database.queries.indexes.byName("Reduced") !== undefined;
    if (!hasIndexes) await database.queries.administration.deploy(definitions, true);
    const found = await answers(database);
    for (const { name, failure } of database.queries.indexes.all()) {
      expect(failure).toBeNull();
      database.queries.indexes.reset(name);
    }
    expect(found).toEqual(await answers(database));
  } finally {
    await database.close();
  }
}

test("indexes are correct after a crash at any call", { timeout: 3_600_000 }, async () => {
  await crashEverywhere(() => null, scenario, { seeds: 1, step }, check);
});

test.each(["EIO", "ENOSPC"] as const)(
  "indexes are correct after %s at any call",
  { timeout: 3_600_000 },
  async (code) => {
    const count = await countCalls(() => null, scenario);
    for (let index = 0; index < count; index += 2 * step) {
      const files = await playWithFault(scenario, null, (call) =>
        call === index ? { kind: "error", code } : undefined,
      );
      await check(files.restart());
    }
  },
);
