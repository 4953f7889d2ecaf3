/**
 * Files changed by something other than the log. Opening fails, or all reads return correct data.
 */
import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { decodeManifest } from "../../../../engine/storage/log/manifest.ts";
import { salvage } from "../../../../engine/storage/log/salvage.ts";
import type { Damage } from "../../../../engine/storage/log/scrub.ts";
import { snapshotFileName } from "../../../../engine/storage/log/snapshot-file.ts";
import {
  segmentFileName,
  segmentHeaderBytes,
} from "../../../../engine/storage/segments/segment.ts";
import { named } from "../../../support/crash-loop.ts";
import { everyFault } from "../../../support/every-fault.ts";
import { SeededRandom } from "../../../support/random.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";
import { TinyDatabase, TinyHistory, tinyFolder } from "../../../support/tiny-database.ts";
import { readRecord, TinyOwner } from "../../../support/tiny-owner.ts";

/** Records of a store. */
const recordCount = 8;

interface Store {
  readonly files: SimulatedFileSystem;
  readonly history: TinyHistory;
  readonly state: string;
  /** The last segment, and where its last frame with data begins. */
  readonly lastPath: string;
}

/** Three segments; after a power loss or a clean shutdown, with or without a snapshot. */
async function newStore(ending: "power" | "closed" | "snapshot"): Promise<Store> {
  const files = new SimulatedFileSystem();
  const history = new TinyHistory();
  const options = { segmentBytesMin: 480, segmentBytesMax: 480 };
  const database = await TinyDatabase.open(files, history, options);
  database.put("stays", "99999");
  await database.flush();
  for (let index = 0; index < 6; index++) {
    database.put(`key${index % 3}`, `${index}`.repeat(3 + index * 2));
    if (index === 3) database.remove("key1");
    await database.flush();
    if (index === 3 && ending === "snapshot") await database.snapshot();
  }
  if (ending === "closed") await database.close();
  if (ending === "snapshot") await database.closeWithSnapshot();
  const settled = ending === "power" ? files.powerLoss(1) : files;
  const lastPath = segmentsOf(settled).findLast(
    (path) => settled.content(path).readUInt32LE(64) !== 0,
  );
  return { files: settled, history, state: database.state, lastPath: String(lastPath) };
}

/** The files listed in the manifest, and the manifest itself. */
function listed(files: SimulatedFileSystem): string[] {
  const manifest = decodeManifest(files.content(`${tinyFolder}/MANIFEST`));
  const names = [
    "MANIFEST",
    ...manifest!.segments.map(({ number }) => `log/${segmentFileName(number)}`),
    ...manifest!.snapshots.map(({ number }) => `snap/${snapshotFileName(number)}`),
  ];
  return names.map((name) => `${tinyFolder}/${name}`);
}

function segmentsOf(files: SimulatedFileSystem): string[] {
  return listed(files).filter((path) => path.endsWith(".seg"));
}

/** Opens a damaged copy. @returns the outcome. */
async function tryOpen(
  store: Store,
  damage: (files: SimulatedFileSystem) => void,
): Promise<"refused" | "whole" | "shorter" | "found on reading"> {
  const files = store.files.restart();
  damage(files);
  const before = files.paths().map((path) => [path, files.content(path)] as const);
  const history = store.history.copy();
  const { acknowledged } = history;
  history.acknowledged = 0;
  let database: TinyDatabase;
  try {
    database = await TinyDatabase.open(files, history, { cacheBytes: 0 });
  } catch (error) {
    expect(error).toMatchObject({ code: "database-damaged" });
    expect((error as Error).message).toContain(tinyFolder);
    // A failed opening changes nothing.
    for (const [path, content] of before) expect(files.content(path).equals(content)).toBe(true);
    return "refused";
  }
  if (database.history.acknowledged < acknowledged) return "shorter";
  expect(database.state).toBe(store.state);
  try {
    await database.check();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    expect(error.code).toBe("record-damaged");
    return "found on reading";
  }
  return "whole";
}

describe.each(["power", "closed", "snapshot"] as const)("a store that ended with: %s", (ending) => {
  test("never returns wrong data after a bit of any byte was flipped", {
    timeout: 600_000,
  }, async () => {
    const store = await newStore(ending);
    expect(segmentsOf(store.files).length).toBeGreaterThanOrEqual(3);
    const counts = { refused: 0, whole: 0, shorter: 0, "found on reading": 0 };
    for (const path of listed(store.files)) {
      for (let at = 0; at < store.files.content(path).length; at++) {
        for (const bit of everyFault ? [0, 1, 2, 3, 4, 5, 6, 7] : [at % 8]) {
          const result = await named(`bit ${bit} of byte ${at} of ${path}`, () =>
            tryOpen(store, (files) =>
              files.damage(path, (bytes) => {
                bytes[at]! ^= 1 << bit;
                return bytes;
              }),
            ),
          );
          counts[result]++;
          if (result !== "shorter") continue;
          // Only the last frame can be mistaken for a torn one, and only if no header covers it.
          expect(path).toBe(store.lastPath);
        }
      }
    }
    expect(counts.refused).toBeGreaterThan(500);
    expect(counts.whole).toBeGreaterThan(100);
    if (ending === "power") expect(counts.shorter).toBeLessThan(200 * 8);
    else expect(counts.shorter).toBe(0);
    if (ending === "snapshot") expect(counts["found on reading"]).toBeGreaterThan(0);
    else expect(counts["found on reading"]).toBe(0);
  });

  test("fails if any segment is truncated anywhere", async () => {
    const store = await newStore(ending);
    for (const path of segmentsOf(store.files)) {
      for (let length = 0; length < store.files.content(path).length; length++) {
        const result = await tryOpen(store, (files) =>
          files.damage(path, (bytes) => bytes.subarray(0, length)),
        );
        if (result !== "refused") expect.fail(`${path} cut to ${length} bytes: ${result}`);
      }
    }
  });

  test("fails if any file but a snapshot is missing or empty", async () => {
    const store = await newStore(ending);
    for (const path of listed(store.files)) {
      const expected = path.includes("/snap/") ? "whole" : "refused";
      expect(await tryOpen(store, (files) => files.remove(path))).toBe(expected);
      expect(await tryOpen(store, (files) => files.damage(path, () => Buffer.alloc(0)))).toBe(
        expected,
      );
    }
  });

  test("never returns wrong data after a block was zeroed", async () => {
    const store = await newStore(ending);
    for (const path of listed(store.files)) {
      for (let at = 0; at < store.files.content(path).length; at += 64) {
        const result = await tryOpen(store, (files) =>
          files.damage(path, (bytes) => bytes.fill(0, at, Math.min(at + 512, bytes.length))),
        );
        // If all of the last frames are in that block, no header covers them.
        if (path !== store.lastPath) expect(result).not.toBe("shorter");
      }
    }
  });

  test("fails if segments were exchanged or duplicated", async () => {
    const store = await newStore(ending);
    const [first, second] = segmentsOf(store.files) as [string, string];
    const exchanged = await tryOpen(store, (files) => {
      const bytes = files.content(first);
      files.damage(first, () => files.content(second));
      files.damage(second, () => bytes);
    });
    expect(exchanged).toBe("refused");
    const doubled = await tryOpen(store, (files) =>
      files.damage(first, () => files.content(second)),
    );
    expect(doubled).toBe("refused");
  });
});

test("reports the position of the damage and the number of bytes after it", async () => {
  const { files } = await newStore("closed");
  const [first] = segmentsOf(files) as [string];
  files.damage(first, (bytes) => {
    bytes[140]! ^= 4;
    return bytes;
  });
  await expect(TinyDatabase.open(files)).rejects.toThrow(
    `${first} is damaged at byte 64: commit 1 was durable and is not whole; 7 later commits follow it.`,
  );
});

test("distinguishes a segment of another format from a damaged one", async () => {
  const { files } = await newStore("closed");
  const [first] = segmentsOf(files) as [string];
  files.damage(first, (bytes) => {
    bytes.writeUInt32LE(1, 12);
    bytes.writeUInt32LE(crc32(bytes.subarray(12, segmentHeaderBytes)), 8);
    return bytes;
  });
  await expect(TinyDatabase.open(files)).rejects.toThrow(
    `${first} is of format 1, and this version reads format 2 only. Nothing was changed`,
  );
});

test("after an idle period, an empty frame keeps damage to the last frame from looking like a torn end", async () => {
  const files = new SimulatedFileSystem();
  const database = await TinyDatabase.open(files);
  database.put("key", "value");
  await database.flush();
  await new Promise<void>((resolve) => setImmediate(resolve));
  database.clock.advance(60);
  for (let count = 0; count < 10; count++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  const after = files.powerLoss(1);
  after.damage(segmentsOf(after)[0] as string, (bytes) => {
    bytes[130]! ^= 1;
    return bytes;
  });
  await expect(TinyDatabase.open(after, new TinyHistory())).rejects.toMatchObject({
    code: "database-damaged",
  });
});

test("a folder with log files and no manifest is never opened as a new database", async () => {
  const { files } = await newStore("closed");
  for (const name of ["MANIFEST", "MANIFEST.tmp"]) {
    if (files.paths().includes(`${tinyFolder}/${name}`)) files.remove(`${tinyFolder}/${name}`);
  }
  await expect(TinyDatabase.open(files)).rejects.toThrow("MANIFEST is missing");
});

test("an absent database is not created when it must exist", async () => {
  const files = new SimulatedFileSystem();
  const opening = TinyDatabase.open(files, new TinyHistory(), { mustExist: true });
  await expect(opening).rejects.toMatchObject({ code: "database-missing" });
  expect(files.paths()).toEqual([]);
});

describe("scrub", () => {
  test("reports only the damaged record", async () => {
    const { files, history } = await newStore("snapshot");
    const [first] = segmentsOf(files) as [string];
    const clean = await TinyDatabase.open(files.restart(), history.copy(), { cacheBytes: 0 });
    const none = await clean.log.scrub(() => expect.fail("nothing is damaged"), 1e9);
    expect(none).toMatchObject({ damages: 0 });
    expect(none.segments).toBeGreaterThan(1);
    const entry = clean.owner.entries.get("stays")!;
    files.damage(first, (bytes) => {
      bytes[(entry.position % 2 ** 32) + 30]! ^= 1;
      return bytes;
    });
    const database = await TinyDatabase.open(files, history.copy(), { cacheBytes: 0 });
    const found: Damage[] = [];
    const report = await database.log.scrub(
      (damage) => found.push(damage),
      Number.POSITIVE_INFINITY,
    );
    expect(report.damages).toBe(1);
    expect(found).toMatchObject([{ position: entry.position, length: entry.length, file: first }]);
    const extent = await database.log.readExtent(entry.position);
    expect(extent?.has(entry.position % 2 ** 32, entry.length)).toBe(false);
    await expect(database.log.read(entry.position, entry.length)).rejects.toMatchObject({
      code: "record-damaged",
    });
  });
});

describe("salvage", () => {
  test.each([true, false])(
    "returns all records of an intact store, with a manifest: %s",
    async (hasManifest) => {
      const store = await newStore("closed");
      if (!hasManifest) store.files.remove(`${tinyFolder}/MANIFEST`);
      const owner = new TinyOwner();
      const before = store.files.paths();
      const report = await salvage(store.files, tinyFolder, owner);
      expect(report).toMatchObject({ records: recordCount, losses: [] });
      expect(JSON.stringify(owner.state())).toBe(store.state);
      expect(store.files.paths()).toEqual(before);
    },
  );

  test("returns every record but the damaged one", async () => {
    const random = new SeededRandom(3);
    const store = await newStore("closed");
    for (let round = 0; round < 300; round++) {
      const files = store.files.restart();
      const paths = segmentsOf(files);
      const path = paths[random.below(3)] as string;
      const at = random.below(files.content(path).length);
      files.damage(path, (bytes) => {
        bytes[at]! ^= 1 << random.below(8);
        return bytes;
      });
      if (random.chance(0.5)) files.remove(`${tinyFolder}/MANIFEST`);
      const seen: string[] = [];
      const report = await salvage(files, tinyFolder, {
        replay: (bytes, start) => {
          const { key, value } = readRecord(bytes, start);
          if (value !== "") expect(value).toMatch(/^(\d)\1+$/);
          seen.push(key);
        },
      });
      await named(`byte ${at} of ${path}`, async () => {
        expect(report.records).toBe(seen.length);
        expect(report.records).toBeGreaterThanOrEqual(recordCount - 1);
        if (report.records < recordCount) expect(report.losses.length).toBeGreaterThan(0);
      });
    }
  });

  test("omits records replaced by compaction, also without a manifest", async () => {
    const files = new SimulatedFileSystem();
    const database = await TinyDatabase.open(files);
    for (let index = 0; index < 30; index++) database.put(`key${index % 3}`, `${index}`.repeat(90));
    await database.flush();
    const pin = database.log.pin();
    await database.log.compact();
    files.remove(`${tinyFolder}/MANIFEST`);
    const owner = new TinyOwner();
    await salvage(files, tinyFolder, owner);
    expect(JSON.stringify(owner.state())).toBe(database.state);
    pin.release();
  });

  test("reports an empty folder", async () => {
    const files = new SimulatedFileSystem();
    await files.makeDirectory(tinyFolder);
    await expect(salvage(files, tinyFolder, new TinyOwner())).rejects.toMatchObject({
      code: "database-missing",
    });
  });
});
