import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type FileLog, openLog } from "../../../../engine/storage/log/file-log.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { SeededRandom } from "../../../support/random.ts";
import { SimulatedClock } from "../../../support/simulated-clock.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";
import { TinyDatabase, tinyFolder } from "../../../support/tiny-database.ts";
import { readRecord, TinyOwner } from "../../../support/tiny-owner.ts";

const fast = { bytesPerSecond: Number.POSITIVE_INFINITY };

const nextSlice = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Waits until files are removed in the background. */
async function removed(): Promise<void> {
  for (let count = 0; count < 20; count++) await nextSlice();
}

function segmentFiles(files: SimulatedFileSystem): number {
  return files.paths().filter((path) => path.startsWith(`${tinyFolder}/log/`)).length;
}

async function filled(files: SimulatedFileSystem): Promise<TinyDatabase> {
  const database = await TinyDatabase.open(files);
  for (let round = 0; round < 10; round++) {
    for (let index = 0; index < 5; index++) database.put(`key${index}`, `${round}`.repeat(150));
    await database.flush();
  }
  return database;
}

/** A log in memory that compacts when its clock triggers it. */
async function openInMemory(bytesPerSecond: number) {
  const clock = new SimulatedClock();
  const random = new SeededRandom(1);
  const owner = new TinyOwner();
  const log = await openLog({
    files: new SimulatedFileSystem(),
    folder: null,
    clock,
    random: (count) => random.bytes(count),
    owner,
    listener: {
      durable: (count) => owner.durable(count),
      lost: () => undefined,
      stopped: () => undefined,
    },
    cache: new SegmentCache(0, new ImagePool(true)),
    segmentBytesMin: 1024,
    segmentBytesMax: 1024,
    compaction: { bytesPerSecond },
  });
  owner.log = log;
  await log.replay();
  return { log, owner, clock };
}

function expectIntact(log: FileLog, owner: TinyOwner): void {
  expect(log.metrics().recordBytes - log.metrics().deadBytes).toBe(owner.liveBytes());
  for (const [key, entry] of owner.entries) {
    const bytes = log.peek(entry.position, entry.length) as Buffer;
    expect(readRecord(bytes, 0)).toMatchObject({ key, value: entry.value });
  }
}

describe("compaction", () => {
  test("deletes the files of dead records and keeps the live ones", async () => {
    const files = new SimulatedFileSystem();
    const database = await filled(files);
    const before = segmentFiles(files);
    const report = await database.log.compact(fast);
    await database.check();
    await database.close();
    expect(report.sources).toBeGreaterThanOrEqual(4);
    expect(report.outputs).toBe(1);
    expect(segmentFiles(files)).toBe(before - report.sources + 1);
    const again = await TinyDatabase.open(files, database.history.copy());
    await again.check();
    expect(await again.log.compact(fast)).toMatchObject({ sources: 0 });
    await again.close();
  });

  test("keeps a deletion while an older record could reappear, then drops it", async () => {
    const files = new SimulatedFileSystem();
    const database = await TinyDatabase.open(files);
    database.put("stays", "s".repeat(600));
    database.put("goes", "g");
    await database.flush();
    // Each of the two gets its own segment.
    for (let index = 0; index < 4; index++) database.put("filler", `${index}`.repeat(700));
    database.remove("goes");
    for (let index = 0; index < 4; index++) database.put("filler", `${index}`.repeat(700));
    await database.flush();
    await database.log.compact(fast);
    await removed();
    expect(deletionsOf(files)).toEqual(["goes"]);
    // The segment with both "stays" and the dead "goes" is rewritten only now.
    database.put("stays", "new");
    for (let index = 0; index < 4; index++) database.put("filler", `${index}`.repeat(700));
    await database.flush();
    await database.log.compact(fast);
    await database.log.compact(fast);
    await removed();
    expect(deletionsOf(files)).toEqual([]);
    const again = await TinyDatabase.open(files.powerLoss(1), database.history.copy());
    await again.check();
    expect(again.owner.entries.has("goes")).toBe(false);
  });

  test("does not drop a deletion that is not in a snapshot", async () => {
    const files = new SimulatedFileSystem();
    const database = await TinyDatabase.open(files);
    database.put("goes", "g".repeat(300));
    await database.flush();
    await database.snapshot();
    database.remove("goes");
    for (let index = 0; index < 8; index++) database.put("filler", `${index}`.repeat(700));
    await database.flush();
    await database.log.compact(fast);
    await removed();
    expect(deletionsOf(files)).toEqual(["goes"]);
    await database.snapshot();
    await database.snapshot();
    database.put("filler", "f".repeat(1500));
    database.put("filler", "f".repeat(1500));
    await database.flush();
    await database.log.compact(fast);
    await removed();
    expect(deletionsOf(files)).toEqual([]);
    const again = await TinyDatabase.open(files.powerLoss(1), database.history.copy());
    await again.check();
  });

  test("leaves files to readers that hold an older pin", async () => {
    const files = new SimulatedFileSystem();
    const database = await filled(files);
    const pin = database.log.pin();
    const old = [...database.owner.entries.values()].map((entry) => ({ ...entry }));
    const before = segmentFiles(files);
    await database.log.compact(fast);
    const younger = database.log.pin();
    expect(segmentFiles(files)).toBe(before + 1);
    for (const entry of old) {
      const bytes = await database.log.read(entry.position, entry.length);
      expect(readRecord(bytes, 0).value).toBe(entry.value);
    }
    pin.release();
    pin.release();
    await database.log.close();
    expect(segmentFiles(files)).toBeLessThan(before);
    younger.release();
  });

  test("starts automatically when a segment is half dead, unless it is held", async () => {
    const { log, owner, clock } = await openInMemory(fast.bytesPerSecond);
    const holds = [log.holdCompaction(), log.holdCompaction()];
    for (let index = 0; index < 40; index++) {
      owner.put(`stays${index}`, `${index % 10}`.repeat(90));
      owner.put("changes", `${index % 10}`.repeat(110));
      await log.flush();
      clock.advance(500);
    }
    const before = log.metrics().segments;
    expect(before).toBeGreaterThan(8);
    for (const hold of [holds[0], holds[0]]) hold?.release();
    clock.advance(2000);
    await log.compactionEnded();
    expect(log.metrics().segments).toBe(before);
    holds[1]?.release();
    await removed();
    expect(log.metrics().segments).toBe(before);
    clock.advance(2000);
    await log.compactionEnded();
    expect(log.metrics().segmentBytes).toBeLessThan(before * 1024 * 0.8);
    expectIntact(log, owner);
    await log.close();
  });

  test("deletes replaced segments, also while it is held", async () => {
    const { log, owner, clock } = await openInMemory(fast.bytesPerSecond);
    const hold = log.holdCompaction();
    for (let index = 0; index < 200; index++) {
      owner.put(`key${index % 3}`, `${index}`.repeat(50));
      await log.flush();
      clock.advance(0);
      await log.compactionEnded();
    }
    expect(log.metrics().segments).toBeLessThan(8);
    expectIntact(log, owner);
    hold.release();
    await log.close();
  });

  test("starts immediately and also copies fuller segments when the dead total is large", async () => {
    const { log, owner, clock } = await openInMemory(fast.bytesPerSecond);
    let most = 0;
    for (let index = 0; index < 1200; index++) {
      const key = index < 200 ? index : (index * 7919) % 200;
      owner.put(`key${key}`, `${index % 10}`.repeat(90));
      await log.flush();
      clock.advance(0);
      await log.compactionEnded();
      most = Math.max(most, log.metrics().deadBytes / owner.liveBytes());
    }
    // It would be near 1 if only half-dead segments were copied.
    expect(most).toBeLessThan(0.7);
    expectIntact(log, owner);
    await log.close();
  });

  test("slows writers down when it lags, until it is finished", async () => {
    // It writes nothing while the clock does not advance.
    const compaction = { bytesPerSecond: 64 };
    const database = await TinyDatabase.open(new SimulatedFileSystem(), undefined, { compaction });
    const isDurable = async (advanceMs: number): Promise<boolean> => {
      let isDone = false;
      const flushed = database.flush().then(() => {
        isDone = true;
      });
      for (let tick = 0; tick < 1000 && !isDone; tick++) {
        database.clock.advance(advanceMs);
        await nextSlice();
      }
      flushed.catch(() => undefined);
      return isDone;
    };
    for (let key = 0; key < 200; key++) database.put(`key${key}`, "0".repeat(90));
    expect(await isDurable(0)).toBe(true);
    let rounds = 0;
    do {
      for (let key = 0; key < 200; key += 2) database.put(`key${key}`, `${rounds}`.repeat(90));
    } while ((await isDurable(0)) && ++rounds < 10);
    expect(rounds).toBeLessThan(5);
    expect(await isDurable(1000)).toBe(true);
    database.log.hurry();
    await database.log.compactionEnded();
    await database.check();
    await database.close();
  });

  test("only the newest snapshot is kept when it is large compared with the live data", async () => {
    const files = new SimulatedFileSystem();
    const database = await TinyDatabase.open(files);
    const snapshots = () => files.paths().filter((path) => path.includes("/snap/")).length;
    database.put("key", "small");
    for (let round = 0; round < 3; round++) await database.snapshot();
    expect(snapshots()).toBe(2);
    // A tiny snapshot contains all values.
    for (let index = 0; index < 40; index++) database.put(`key${index}`, "l".repeat(30_000));
    await database.flush();
    for (let round = 0; round < 2; round++) await database.snapshot();
    expect(snapshots()).toBe(1);
    const again = await TinyDatabase.open(files.powerLoss(1), database.history.copy());
    expect(again.owner.entries.size).toBe(41);
    expect(again.owner.replayed).toBe(0);
    await again.check();
  });

  test("a slow compaction and a slow snapshot do not delay closing", async () => {
    const files = new SimulatedFileSystem();
    const database = await filled(files);
    // The clock does not advance here, so a wait for it would never end.
    const compaction = database.log.compact({ bytesPerSecond: 1 });
    const snapshot = database.log.writeSnapshot(database.owner.sections(), 1);
    for (let count = 0; count < 5; count++) await removed();
    await database.close();
    await compaction;
    await snapshot;
    const again = await TinyDatabase.open(files, database.history.copy());
    await again.check();
    expect(again.report.wasClosed).toBe(true);
  });

  /**
   * A database whose first segment is damaged; `more` are keys that are written first and stay
   * live.
   */
  async function damagedFirst(files: SimulatedFileSystem, more: readonly string[]) {
    const database = await TinyDatabase.open(files);
    for (const key of more) database.put(key, "stays");
    for (let round = 0; round < 50; round++) database.put(`key${round % 5}`, "v".repeat(150));
    await database.flush();
    const path = `${tinyFolder}/log/00000000000000000001.seg`;
    files.damage(path, (bytes) => {
      bytes[200]! ^= 1;
      return bytes;
    });
    return { database, path };
  }

  test("ends before the last snapshot is written if the log is closed meanwhile", async () => {
    for (let turns = 0; turns < 40; turns++) {
      const files = new SimulatedFileSystem();
      const database = await TinyDatabase.open(files);
      database.put("stays", "s".repeat(50));
      for (let index = 0; index < 30; index++) database.put("key", `${index}`.repeat(80));
      await database.flush();
      const compaction = database.log.compact(fast);
      for (let turn = 0; turn < turns; turn++) await nextSlice();
      await database.closeWithSnapshot();
      await compaction;
      const again = await TinyDatabase.open(files, database.history.copy());
      expect(again.report.snapshotsIgnored).toBe(0);
      expect(again.state).toBe(database.state);
      await again.check();
    }
  });

  test("does not copy a damaged segment", async () => {
    const files = new SimulatedFileSystem();
    const { database, path } = await damagedFirst(files, ["needed"]);
    const report = await database.log.compact(fast);
    expect(report.damaged).toBe(1);
    expect(files.paths()).toContain(path);
    await database.check();
    await database.close();
  });

  test("does not read a segment without live records", async () => {
    const files = new SimulatedFileSystem();
    const { database, path } = await damagedFirst(files, []);
    const report = await database.log.compact(fast);
    await removed();
    expect(report.damaged).toBe(0);
    expect(files.paths()).not.toContain(path);
    await database.check();
    await database.close();
  });
});

test("any mix of writes, snapshots, compactions, full disks and restarts preserves the data", {
  timeout: 300_000,
}, async () => {
  const key = fc.constantFrom("a", "b", "c", "d", "e", "f");
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.constant("put" as const), key, fc.nat(900)) },
    { weight: 3, arbitrary: fc.tuple(fc.constant("remove" as const), key) },
    { weight: 2, arbitrary: fc.tuple(fc.constant("flush" as const)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant("snapshot" as const)) },
    { weight: 2, arbitrary: fc.tuple(fc.constant("compact" as const)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant("full" as const), fc.nat(3000)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant("room" as const)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant("close" as const)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant("power" as const), fc.nat(1000)) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      let files = new SimulatedFileSystem();
      let database = await TinyDatabase.open(files);
      let working: Promise<unknown> = Promise.resolve();
      let count = 0;
      for (const [what, ...rest] of steps) {
        try {
          if (what === "put") {
            database.put(String(rest[0]), `${count++}`.padEnd(Number(rest[1]), "."));
          }
          if (what === "remove") database.write([[String(rest[0]), undefined]], true);
          if (what === "flush") await database.flush();
          if (what === "snapshot") await database.snapshot();
        } catch (error) {
          expect(error).toMatchObject({ code: "disk-full" });
        }
        if (what === "compact") {
          working = database.log.compact(fast);
          working.catch(() => undefined);
        }
        if (what === "full") files.capacityBytes = files.usedBytes() + Number(rest[0]);
        if (what === "room") {
          files.capacityBytes = Number.POSITIVE_INFINITY;
          database.clock.advance(2000);
        }
        if (what !== "close" && what !== "power") continue;
        files.capacityBytes = Number.POSITIVE_INFINITY;
        if (what === "close") {
          await working.catch(() => undefined);
          await database.flush().catch(() => undefined);
          await database.closeWithSnapshot();
        } else {
          files = files.powerLoss(Number(rest[0]));
        }
        working = Promise.resolve();
        database = await TinyDatabase.open(files, database.history.copy());
        await database.check();
      }
      await working.catch(() => undefined);
      files.capacityBytes = Number.POSITIVE_INFINITY;
      await database.flush().catch(() => undefined);
      await database.check();
      const again = await TinyDatabase.open(files.powerLoss(7), database.history.copy());
      await again.check();
    }),
    { numRuns: 300 },
  );
});

/** Keys of the deletions in all segment files. */
function deletionsOf(files: SimulatedFileSystem): string[] {
  const keys: string[] = [];
  for (const path of files.paths().filter((name) => name.endsWith(".seg"))) {
    const bytes = files.content(path);
    for (let at = 128; at + 32 <= bytes.length; at += 8) {
      const isDeletion = bytes[at + 8] === 11 && bytes[at + 9] === 1 && bytes[at + 12] === 0;
      if (isDeletion && bytes.readUInt32LE(at) === 32) keys.push(readRecord(bytes, at).key);
    }
  }
  return keys;
}
