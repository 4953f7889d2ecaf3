/** Disks that fail or fill up, at every call to the file system. */
import { expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { countCalls, named, playWithFault } from "../../../support/crash-loop.ts";
import { everyFault } from "../../../support/every-fault.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";
import { TinyDatabase } from "../../../support/tiny-database.ts";
import { newHistory, scenarioOf, tinyScenarios } from "../../../support/tiny-scenarios.ts";

/** Interval between failing calls. */
const step = everyFault ? 1 : 3;
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

for (const [name, scenario] of Object.entries(tinyScenarios)) {
  test(`a failed call and a later power loss lose nothing acknowledged: ${name}`, async () => {
    const count = await countCalls(newHistory, scenario);
    for (let index = 0; index < count; index += step) {
      for (const revert of [false, true]) {
        const history = newHistory();
        const files = await playWithFault(scenario, history, (call) =>
          call === index ? { kind: "error", code: "EIO", writtenShare: 0.5, revert } : undefined,
        );
        const where = `EIO in call ${index} (${files.calls[index]?.name}), revert ${revert}`;
        await named(where, async () => {
          // The process restarts on the same system, so it may read data that is not on the device.
          const restarted = files.restart();
          const database = await TinyDatabase.open(restarted, history);
          await database.check();
          database.put("after", "the failure");
          await database.flush();
          for (let seed = 0; seed < 2; seed++) {
            const again = await TinyDatabase.open(restarted.powerLoss(seed), history.copy());
            await again.check();
          }
        });
      }
    }
  });

  test(`a disk that is full for one call loses nothing acknowledged: ${name}`, async () => {
    const count = await countCalls(newHistory, scenario);
    for (let index = 0; index < count; index += step) {
      for (const writtenShare of [0.5, 1]) {
        const history = newHistory();
        const files = await playWithFault(scenario, history, (call, callName) =>
          call === index && (callName === "write" || callName === "open")
            ? { kind: "error", code: "ENOSPC", writtenShare }
            : undefined,
        );
        const where = `ENOSPC in call ${index} (${files.calls[index]?.name}) after ${writtenShare}`;
        await named(where, async () => {
          for (const seed of [0, 1]) {
            const database = await TinyDatabase.open(files.powerLoss(seed), history.copy());
            await database.check();
          }
        });
      }
    }
  });
}

test("a failed sync stops the log permanently", async () => {
  const files = new SimulatedFileSystem();
  const database = await TinyDatabase.open(files);
  database.put("before", "1");
  await database.flush();
  let syncs = 0;
  files.onCall = (call) => {
    if (call.name !== "sync") return undefined;
    syncs++;
    return { kind: "error", code: "EIO" };
  };
  database.put("lost", "2");
  await expect(database.flush()).rejects.toMatchObject({ code: "database-stopped" });
  expect(syncs).toBe(1);
  expect(() => database.put("more", "3")).toThrow(EngineError);
  await expect(database.flush()).rejects.toMatchObject({ code: "database-stopped" });
  await expect(database.snapshot()).rejects.toMatchObject({ code: "database-stopped" });
  await database.close();
  expect(syncs).toBe(1);
  expect(database.state).toBe('{"before":"1"}');
});

test("a full disk loses only undurable records, reports them, and recovers", async () => {
  const files = new SimulatedFileSystem();
  const database = await TinyDatabase.open(files);
  database.put("kept", "1");
  await database.flush();
  files.onCall = (call) =>
    call.name === "write" ? { kind: "error", code: "ENOSPC", writtenShare: 0.5 } : undefined;
  database.put("lost", "2");
  const flushed = database.flush();
  // The half-written frame is overwritten with zeros once space is available.
  const fill = files.onCall;
  let writes = 0;
  files.onCall = (call) => (call.name === "write" && ++writes > 1 ? undefined : fill(call));
  await expect(flushed).rejects.toMatchObject({ code: "disk-full" });
  expect(() => database.put("refused", "3")).toThrow(/disk is full/);
  database.write([["kept", undefined]], true);
  await database.flush();
  await tick();
  database.clock.advance(2000);
  expect(() => database.put("refused", "4")).toThrow(/disk is full/);
  await tick();
  database.put("again", "5");
  await database.flush();
  expect(database.state).toBe('{"again":"5"}');
  const after = await TinyDatabase.open(files.powerLoss(1), database.history.copy());
  expect(after.state).toBe('{"again":"5"}');
});

test("accepts only deletions below the reserve", async () => {
  const files = new SimulatedFileSystem();
  files.capacityBytes = 20_000;
  const options = { diskReserveBytes: 8_000 };
  const database = await TinyDatabase.open(files, newHistory(), options);
  let refused = 0;
  for (let index = 0; index < 200 && refused === 0; index++) {
    try {
      database.put(`key${index}`, "x".repeat(200));
      await database.flush();
    } catch (error) {
      expect(error).toMatchObject({ code: "disk-full" });
      refused++;
    }
    database.clock.advance(1500);
    await tick();
  }
  expect(refused).toBe(1);
  expect(database.log.isDiskFull).toBe(true);
  const keys = [...database.owner.entries.keys()];
  for (const key of keys) {
    database.write([[key, undefined]], true);
    await database.flush();
  }
  await database.log.compact();
  database.clock.advance(2000);
  expect(database.log.isDiskFull).toBe(true);
  await tick();
  expect(database.log.isDiskFull).toBe(false);
  database.put("room", "again");
  await database.flush();
  await database.check();
  await database.close();
  const after = await TinyDatabase.open(files, database.history.copy(), options);
  expect(after.state).toBe('{"room":"again"}');
});

test("a disk that fills up at any byte loses nothing acknowledged, and the log resumes once space is freed", async () => {
  const scenario = scenarioOf("rolling from segment to segment");
  for (let capacity = 500; capacity < 14_000; capacity += 217) {
    const history = newHistory();
    const files = new SimulatedFileSystem();
    files.capacityBytes = capacity;
    await named(`capacity ${capacity}`, async () => {
      await scenario(files, history).catch((error: unknown) => {
        if (!(error instanceof EngineError) && !/ENOSPC/.test(String(error))) throw error;
      });
      files.capacityBytes = Number.POSITIVE_INFINITY;
      const after = files.powerLoss(capacity);
      const database = await TinyDatabase.open(after, history);
      database.put("room", "again");
      await database.close();
    });
  }
});

test("a temporarily unreadable sector is not reported as damage, and is read later", async () => {
  const files = new SimulatedFileSystem();
  const database = await TinyDatabase.open(files, newHistory(), { cacheBytes: 0 });
  for (let index = 0; index < 12; index++) database.put(`key${index}`, "x".repeat(300));
  await database.flush();
  const { position, length } = database.owner.entries.get("key0")!;
  files.onCall = (call) => (call.name === "read" ? { kind: "error", code: "EIO" } : undefined);
  await expect(database.log.read(position, length)).rejects.toMatchObject({
    code: "read-failed",
  });
  expect(await database.log.readExtent(position)).toBeNull();
  const damages: unknown[] = [];
  await database.log.scrub((damage) => damages.push(damage), Number.POSITIVE_INFINITY);
  expect(damages).toEqual([]);
  database.put("more", "is written");
  await database.flush();
  files.onCall = undefined;
  await database.check();
  const extent = await database.log.readExtent(position);
  expect(extent?.has(position % 2 ** 32, length)).toBe(true);
  await database.close();
});
