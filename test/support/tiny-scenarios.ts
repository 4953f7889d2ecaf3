/** All log activities as short scenarios to be interrupted. */
import type { Scenario } from "./crash-loop.ts";
import { TinyDatabase, TinyHistory, tinyFolder } from "./tiny-database.ts";

type TinyScenario = Scenario<TinyHistory>;

export const newHistory = () => new TinyHistory();

export const tinyScenarios: Readonly<Record<string, TinyScenario>> = {
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

  async "removing the folder"(files, history) {
    const database = await TinyDatabase.open(files, history);
    for (let index = 0; index < 4; index++) database.put(`key${index}`, `${index}`);
    await database.flush();
    await database.close();
    // From here on nothing has to be found, but found data must be consistent.
    history.acknowledged = 0;
    await files.rename(tinyFolder, `${tinyFolder}.gone`);
    await files.syncDirectory("/data");
    await files.removeTree(`${tinyFolder}.gone`);
    history.forget(0);
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

  async "automatic compaction while writing"(files, history) {
    const compaction = { bytesPerSecond: Number.POSITIVE_INFINITY };
    const options = { segmentBytesMin: 256, segmentBytesMax: 1024, compaction };
    const database = await TinyDatabase.open(files, history, options);
    for (let round = 0; round < 6; round++) {
      database.put(`stays${round}`, "s".repeat(60));
      for (let index = 0; index < 4; index++) database.put(`key${index}`, `${round}`.repeat(90));
      if (round % 3 === 1) database.remove("key0");
      await database.flush();
      database.clock.advance(round === 4 ? 1500 : 0);
    }
    await database.log.compactionEnded();
    await database.closeWithSnapshot();
  },
};

export function scenarioOf(name: string): TinyScenario {
  const scenario = tinyScenarios[name];
  if (scenario === undefined) throw new Error(`the scenario "${name}" does not exist`);
  return scenario;
}
