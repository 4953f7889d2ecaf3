/** Loss of power at every call to the file system, in every operation of a log. */
import { expect, test } from "vitest";
import { countCalls, crashEverywhere, named } from "../../../support/crash-loop.ts";
import { everyFault } from "../../../support/every-fault.ts";
import type { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";
import { TinyDatabase, type TinyHistory, tinyFolder } from "../../../support/tiny-database.ts";
import { newHistory, scenarioOf, tinyScenarios } from "../../../support/tiny-scenarios.ts";

/** Recovers twice, with the same result. */
async function checkRecovery(after: SimulatedFileSystem, history: TinyHistory): Promise<void> {
  const known = history.copy();
  const first = await TinyDatabase.open(after, known);
  const { state } = first;
  await first.check();
  // Power is lost right after recovery, before any write.
  const second = await TinyDatabase.open(after.powerLoss(1), known);
  expect(second.state).toBe(state);
  await second.check();
  second.put("after", "recovery");
  await second.close();
}

async function checkWithoutSnapshots(after: SimulatedFileSystem, history: TinyHistory) {
  const full = after.restart();
  const withSnapshot = await TinyDatabase.open(after, history.copy());
  for (const path of full.paths()) {
    if (path.startsWith(`${tinyFolder}/snap/`)) full.remove(path);
  }
  const withoutSnapshot = await TinyDatabase.open(full, history.copy());
  expect(withoutSnapshot.state).toBe(withSnapshot.state);
  expect(withoutSnapshot.log.metrics().deadBytes).toBe(withSnapshot.log.metrics().deadBytes);
  await withoutSnapshot.check();
}

for (const [name, scenario] of Object.entries(tinyScenarios)) {
  test(`a crash loses nothing that was acknowledged: ${name}`, async () => {
    await crashEverywhere(newHistory, scenario, { seeds: everyFault ? 4 : 1 }, checkRecovery);
  });
}

for (const name of ["snapshots while writing", "compaction of puts and deletions"]) {
  test(`a snapshot and a full replay give the same state: ${name}`, async () => {
    const scenario = scenarioOf(name);
    await crashEverywhere(newHistory, scenario, { seeds: 1, step: 2 }, checkWithoutSnapshots);
  });
}

test.each(["rolling from segment to segment", "compaction of puts and deletions"])(
  "a crash during recovery changes nothing: %s",
  async (name) => {
    const scenario = scenarioOf(name);
    await crashEverywhere(newHistory, scenario, { seeds: 1, step: 11 }, async (after, history) => {
      const expected = (await TinyDatabase.open(after.restart(), history.copy())).state;
      const calls = await countCalls(newHistory, async (files) => {
        const recovering = after.restart();
        await TinyDatabase.open(recovering, history.copy());
        files.callCount = recovering.callCount;
      });
      for (let index = 0; index < calls; index++) {
        const recovering = after.restart();
        recovering.onCall = (call) => (call.index === index ? { kind: "crash" } : undefined);
        await TinyDatabase.open(recovering, history.copy()).catch(() => undefined);
        await named(`then in call ${index} of recovery`, async () => {
          const again = await TinyDatabase.open(recovering.powerLoss(index), history.copy());
          expect(again.state).toBe(expected);
        });
      }
    });
  },
);
