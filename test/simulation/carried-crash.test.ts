/**
 * A database whose log is carried to other nodes loses power at every file system call, while
 * several of its groups are carried together and written in one call. Afterwards it contains a
 * prefix of the carried groups with all acknowledged ones, and no damage is reported.
 *
 * `npm run stress faults` tries more outcomes.
 */
import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { crashEverywhere } from "../support/crash-loop.ts";
import { put } from "../support/database-scenarios.ts";
import { everyFault } from "../support/every-fault.ts";
import { GroupList, groupsIn } from "../support/followed-database.ts";
import {
  databaseFolder,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../support/simulated-database.ts";
import type { SimulatedFileSystem } from "../support/simulated-file-system.ts";

const seeds = everyFault ? 16 : 4;
/** Space for all groups that are carried together. */
const segments = { segmentBytesMin: 32 * 1024, segmentBytesMax: 32 * 1024 };
const atOnce = 4;
const rounds = 3;

/**
 * Holds carried groups and releases them last first, so that the log sees all of them as carried.
 */
class HoldingList extends GroupList {
  readonly #held: (() => void)[] = [];

  override async carry(payload: Buffer): Promise<Buffer> {
    const mark = await super.carry(payload);
    await new Promise<void>((resolve) => this.#held.push(resolve));
    return mark;
  }

  get heldCount(): number {
    return this.#held.length;
  }

  releaseAll(): void {
    for (const resolve of this.#held.splice(0).reverse()) resolve();
  }
}

interface Progress {
  acknowledged: number;
  carried: number;
  /** Number of calls that wrote several groups. */
  joined: number;
}

async function write(files: SimulatedFileSystem, progress: Progress): Promise<void> {
  const carrier = new HoldingList();
  const shop = await SimulatedDatabase.open(files, undefined, { carrier, ...segments });
  const writes = () => files.calls.filter(({ name }) => name === "write").length;
  let failure: Error | null = null;
  const until = async (isTrue: () => boolean) => {
    while (failure === null && !isTrue()) await tick();
    if (failure !== null) throw failure;
  };
  let count = 0;
  for (let round = 0; round < rounds; round++) {
    const written: Promise<unknown>[] = [];
    for (let n = 0; n < atOnce; n++) {
      const one = shop.write([put(`things/${++count}`, "x".repeat(600 * (n + 1)))]);
      written.push(one);
      one.catch((error: Error) => {
        failure ??= error;
      });
      await until(() => carrier.groups.length === count);
    }
    await until(() => carrier.heldCount === atOnce);
    progress.carried = count;
    const before = writes();
    carrier.releaseAll();
    await Promise.all(written);
    if (writes() - before < atOnce) progress.joined++;
    progress.acknowledged = count;
  }
  await shop.database.close();
}

async function check(after: SimulatedFileSystem, progress: Progress): Promise<void> {
  const { log, ...options } = logOptions();
  const database = await OpenDatabase.open(simulatedEnvironment(after), "shop", databaseFolder, {
    ...options,
    log: { ...log, carrier: new GroupList() },
  });
  const count = groupsIn(database);
  expect(count).toBeGreaterThanOrEqual(progress.acknowledged);
  expect(count).toBeLessThanOrEqual(progress.carried);
  for (let n = 1; n <= atOnce * rounds; n++) {
    expect(database.state.documents.lookup(`things/${n}`) >= 0).toBe(n <= count);
  }
  await database.abandon();
}

test("a prefix of the groups carried together survives a crash at any call", {
  timeout: 3_600_000,
}, async () => {
  let joined = 0;
  const scenario = async (files: SimulatedFileSystem, progress: Progress) => {
    await write(files, progress);
    joined += progress.joined;
  };
  const start = () => ({ acknowledged: 0, carried: 0, joined: 0 });
  await crashEverywhere(start, scenario, { seeds }, check);
  expect(joined).toBeGreaterThan(0);
});
