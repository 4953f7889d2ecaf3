/** Loss of power at every call of the file system, in everything that a log does. */
import { expect, test } from "vitest";
import { countCalls, crashEverywhere, named, type Scenario } from "../../support/crash-loop.ts";
import type { SimulatedFileSystem } from "../../support/simulated-file-system.ts";
import { TinyDatabase, TinyHistory, tinyFolder } from "../../support/tiny-database.ts";

type TinyScenario = Scenario<TinyHistory>;

const newHistory = () => new TinyHistory();

const scenarios: Readonly<Record<string, TinyScenario>> = {
  async "single puts, each awaited"(files, history) {
    const database = await TinyDatabase.open(files, history);
    for (let index = 0; index < 6; index++) {
      database.put(`key${index % 3}`, `value ${index}`);
      await database.flush();
    }
    await database.close();
  },

  async "groups of transactions of several records"(files, history) {
    const database = await TinyDatabase.open(files, history);
    for (let group = 0; group < 4; group++) {
      for (let index = 0; index < 3; index++) {
        database.write([
          ["one", `${group}.${index}`],
          [`two${index}`, `${group}`],
          ["three", index === 1 ? undefined : "x".repeat(40 * index)],
        ]);
        if (index === 1) await Promise.resolve();
      }
      if (group === 2) await database.flush();
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await database.close();
  },

  async "rolling from segment to segment"(files, history) {
    const database = await TinyDatabase.open(files, history);
    for (let index = 0; index < 14; index++) {
      database.put(`key${index % 5}`, `${index}`.repeat(100));
      if (index % 3 === 0) await database.flush();
    }
    database.put("large", "L".repeat(5000));
    database.put("small", "S");
    await database.close();
  },

  async "barriers after idleness"(files, history) {
    const database = await TinyDatabase.open(files, history);
    for (let index = 0; index < 3; index++) {
      database.put("key", `${index}`);
      await database.flush();
      await new Promise<void>((resolve) => setImmediate(resolve));
      database.clock.advance(60);
    }
    await database.close();
  },

  async "snapshots while writing"(files, history) {
    const database = await TinyDatabase.open(files, history);
    for (let round = 0; round < 4; round++) {
      for (let index = 0; index < 4; index++) database.put(`key${index}`, `${round}`.repeat(60));
      await database.flush();
      database.put("later", `${round}`);
      const snapshot = database.snapshot();
      database.put("meanwhile", `${round}`);
      await snapshot;
    }
    await database.closeWithSnapshot();
  },

  async "closing and opening"(files, history) {
    for (let round = 0; round < 3; round++) {
      const database = await TinyDatabase.open(files, history);
      database.put("key", `${round}`.repeat(200));
      database.put("other", `${round}`);
      if (round === 1) await database.closeWithSnapshot();
      else await database.close();
    }
  },

  async "compaction of puts and deletions"(files, history) {
    const database = await TinyDatabase.open(files, history);
    for (let round = 0; round < 3; round++) {
      for (let index = 0; index < 8; index++) {
        database.put(`key${index % 4}`, `${round}${index}`.repeat(70));
      }
      database.remove(`key${round}`);
      await database.flush();
      if (round === 1) await database.snapshot();
      const compaction = database.log.compact();
      database.put("meanwhile", `${round}`);
      await compaction;
    }
    await database.close();
  },
};

/** Recovers, and again and again: each time the same. */
async function checkRecovery(after: SimulatedFileSystem, history: TinyHistory): Promise<void> {
  const known = copyOf(history);
  const first = await TinyDatabase.open(after, known);
  const { state } = first;
  await first.check();
  // Power is lost right after recovery, before anything was written.
  const second = await TinyDatabase.open(after.powerLoss(1), known);
  expect(second.state).toBe(state);
  await second.check();
  second.put("after", "recovery");
  await second.close();
}

async function checkWithoutSnapshots(after: SimulatedFileSystem, history: TinyHistory) {
  const full = after.restart();
  const withSnapshot = await TinyDatabase.open(after, copyOf(history));
  for (const path of full.paths()) {
    if (path.startsWith(`${tinyFolder}/snap/`)) full.remove(path);
  }
  const withoutSnapshot = await TinyDatabase.open(full, copyOf(history));
  expect(withoutSnapshot.state).toBe(withSnapshot.state);
  expect(withoutSnapshot.log.metrics().deadBytes).toBe(withSnapshot.log.metrics().deadBytes);
  await withoutSnapshot.check();
}

function copyOf(history: TinyHistory): TinyHistory {
  const copy = new TinyHistory();
  copy.states.push(...history.states.slice(1));
  copy.acknowledged = history.acknowledged;
  return copy;
}

for (const [name, scenario] of Object.entries(scenarios)) {
  test(`nothing acknowledged is lost by a crash: ${name}`, async () => {
    await crashEverywhere(newHistory, scenario, { seeds: 4 }, checkRecovery);
  });
}

for (const name of ["snapshots while writing", "compaction of puts and deletions"]) {
  test(`a snapshot and full replay give the same: ${name}`, async () => {
    const scenario = scenarios[name] as TinyScenario;
    await crashEverywhere(newHistory, scenario, { seeds: 1, step: 2 }, checkWithoutSnapshots);
  });
}

test.each(["rolling from segment to segment", "compaction of puts and deletions"])(
  "a crash during recovery changes nothing: %s",
  async (name) => {
    const scenario = scenarios[name] as TinyScenario;
    await crashEverywhere(newHistory, scenario, { seeds: 1, step: 11 }, async (after, history) => {
      const expected = (await TinyDatabase.open(after.restart(), copyOf(history))).state;
      const calls = await countCalls(newHistory, async (files) => {
        const recovering = after.restart();
        await TinyDatabase.open(recovering, copyOf(history));
        files.callCount = recovering.callCount;
      });
      for (let index = 0; index < calls; index++) {
        const recovering = after.restart();
        recovering.onCall = (call) => (call.index === index ? { kind: "crash" } : undefined);
        await TinyDatabase.open(recovering, copyOf(history)).catch(() => undefined);
        await named(`then in call ${index} of recovery`, async () => {
          const again = await TinyDatabase.open(recovering.powerLoss(index), copyOf(history));
          expect(again.state).toBe(expected);
        });
      }
    });
  },
);
