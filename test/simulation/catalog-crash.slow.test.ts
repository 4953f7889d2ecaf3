/**
 * Power loss and failing calls while databases are created, deleted and given other files: each exists completely, or not
 * at all, with the old files or the new.
 */
import { expect, test } from "vitest";
import { DatabaseCatalog } from "../../engine/api/database/database-catalog.ts";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { countCalls, crashEverywhere, named, playWithFault } from "../support/crash-loop.ts";
import { everyFault } from "../support/every-fault.ts";
import { logOptions, simulatedEnvironment } from "../support/simulated-database.ts";
import type { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const folder = "/data/Databases";
/** Interval between tested calls. */
const step = everyFault ? 1 : 11;

/**
 * The state reported to callers: a name exists, does not exist, or (during creation or deletion)
 * may be either.
 */
class Known {
  readonly names = new Map<string, "there" | "gone" | "either">();
}

function open(files: SimulatedFileSystem): Promise<DatabaseCatalog> {
  return DatabaseCatalog.open(simulatedEnvironment(files), folder, logOptions());
}

/** Like Promise.all, but waits for all of them before it rejects. */
async function allEnded(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

async function scenario(files: SimulatedFileSystem, known: Known): Promise<void> {
  const catalog = await open(files);
  const make = async (name: string): Promise<void> => {
    known.names.set(name, "either");
    const database = await catalog.create(name, { Made: name });
    known.names.set(name, "there");
    await database.put("a", { name });
  };
  const remove = async (name: string): Promise<void> => {
    known.names.set(name, "either");
    await catalog.delete(name);
    known.names.set(name, "gone");
  };
  await make("one");
  await allEnded([make("two"), make("three")]);
  await allEnded([remove("two"), make("four")]);
  await remove("one");
  await make("one");
  await catalog.close();
}

async function check(files: SimulatedFileSystem, known: Known): Promise<void> {
  const catalog = await open(files);
  const names = new Set(catalog.names());
  for (const [name, state] of known.names) {
    if (state !== "either") expect(names.has(name), name).toBe(state === "there");
    const database = await catalog.find(name);
    expect(database !== undefined).toBe(names.has(name));
    if (database === undefined) continue;
    expect(database.settings).toEqual({ Made: name });
    database.checkInvariants();
  }
  // The remains of interrupted creations and deletions are removed.
  const paths = files.paths().map((path) => path.slice(folder.length + 1).split("/")[0] ?? "");
  expect(paths.filter((path) => path.startsWith("."))).toEqual([]);
  await catalog.create("new", {});
  await catalog.close();
}

test("a crash leaves only complete databases", { timeout: 600_000 }, async () => {
  await crashEverywhere(() => new Known(), scenario, { seeds: 1, step }, check);
});

test("a failed call leaves only complete databases", { timeout: 600_000 }, async () => {
  const calls = await countCalls(() => new Known(), scenario);
  for (const code of ["EIO", "ENOSPC"] as const) {
    for (let at = 0; at < calls; at += step * 2) {
      const known = new Known();
      const files = await playWithFault(scenario, known, (index) =>
        index === at ? { kind: "error", code } : undefined,
      );
      await named(
        `${code} in call ${at} (${files.calls[at]?.name} ${files.calls[at]?.path})`,
        async () => {
          await check(files.restart(), known);
          await check(files.powerLoss(at), known);
        },
      );
    }
  }
});

/** The files of `shop`: the new ones if this was acknowledged, else either. */
class Replaced {
  readonly mayBe = new Set<string>(["old"]);
}

async function replaceScenario(files: SimulatedFileSystem, known: Replaced): Promise<void> {
  const catalog = await open(files);
  if (!catalog.has("shop")) await catalog.create("shop", { Made: "old" });
  const replace = async (created: string): Promise<void> => {
    known.mayBe.add(created);
    const database = await catalog.replaceFiles("shop", async (environment, making) => {
      const other = await OpenDatabase.open(environment, "shop", making, logOptions());
      await other.changeSettings(() => ({ Made: created }));
      await other.close();
    });
    known.mayBe.clear();
    known.mayBe.add(created);
    await database.put("a", { made: created });
  };
  await replace("new");
  await replace("newer");
  known.mayBe.add("gone");
  await catalog.delete("shop");
  known.mayBe.clear();
  known.mayBe.add("gone");
  await catalog.close();
}

async function checkReplaced(files: SimulatedFileSystem, known: Replaced): Promise<void> {
  const catalog = await open(files);
  const database = await catalog.find("shop");
  const created = database === undefined ? "gone" : (database.settings["Made"] as string);
  // Before it existed at all.
  if (created !== "gone" || !known.mayBe.has("old")) {
    expect([...known.mayBe]).toContain(created);
  }
  database?.checkInvariants();
  const paths = files.paths().map((path) => path.slice(folder.length + 1).split("/")[0] ?? "");
  expect(paths.filter((path) => path.startsWith("."))).toEqual([]);
  await catalog.close();
}

test("a crash leaves the old files of a database, or the new", { timeout: 600_000 }, async () => {
  const options = { seeds: everyFault ? 3 : 1, step: everyFault ? 1 : 5 };
  await crashEverywhere(() => new Replaced(), replaceScenario, options, checkReplaced);
});

test("a failed call leaves the old files or the new", { timeout: 600_000 }, async () => {
  const calls = await countCalls(() => new Replaced(), replaceScenario);
  for (const code of ["EIO", "ENOSPC"] as const) {
    for (let at = 0; at < calls; at += everyFault ? 1 : 7) {
      const known = new Replaced();
      const files = await playWithFault(replaceScenario, known, (index) =>
        index === at ? { kind: "error", code } : undefined,
      );
      await named(
        `${code} in call ${at} (${files.calls[at]?.name} ${files.calls[at]?.path})`,
        async () => {
          await checkReplaced(files.restart(), known);
          await checkReplaced(files.powerLoss(at), known);
        },
      );
    }
  }
});
