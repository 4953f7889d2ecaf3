import { describe, expect, test } from "vitest";
import { checkDatabase } from "../../../../engine/api/database/check-database.ts";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { decodeManifest, type Manifest } from "../../../../engine/storage/log/manifest.ts";
import { segmentFileName } from "../../../../engine/storage/segments/segment.ts";
import { SeededRandom } from "../../../support/random.ts";
import {
  databaseFolder,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

async function createShop(): Promise<SimulatedDatabase> {
  const shop = await SimulatedDatabase.open(new SimulatedFileSystem());
  for (let index = 0; index < 12; index++) {
    const id = `things/${index}`;
    await shop.write([
      { kind: "put", id, body: `{"field${index % 3}":"${"x".repeat(200)}"}` },
      { kind: "attach", id, name: "file", content: `content ${index % 2}` },
    ]);
  }
  await shop.write([{ kind: "delete", id: "things/3" }]);
  for (let round = 0; round < 12; round++) {
    await shop.write([
      { kind: "put", id: `things/${round % 2}`, body: `{"a":"${"y".repeat(300)}"}` },
    ]);
  }
  await shop.database.compact();
  return shop;
}

async function check(files: SimulatedFileSystem) {
  return await checkDatabase(simulatedEnvironment(files), databaseFolder, () => undefined);
}

async function opens(files: SimulatedFileSystem): Promise<boolean> {
  try {
    const environment = simulatedEnvironment(files);
    const database = await OpenDatabase.open(environment, "shop", databaseFolder, logOptions());
    await database.abandon();
    return true;
  } catch {
    return false;
  }
}

/** Segments in commit order. */
function segmentsOf(files: SimulatedFileSystem): string[] {
  const manifest = decodeManifest(files.content(`${databaseFolder}/MANIFEST`)) as Manifest;
  return manifest.segments.map(({ number }) => `${databaseFolder}/log/${segmentFileName(number)}`);
}

const contentsOf = (files: SimulatedFileSystem) =>
  files
    .paths()
    .filter((path) => !path.includes("LOCK"))
    .map((path) => [path, files.content(path).toString("base64")]);

describe("checking an intact database", () => {
  test("reads all of it and changes nothing", async () => {
    const { files, database } = await createShop();
    await database.close();
    const before = contentsOf(files);
    let bytes = 0;
    const found = await checkDatabase(simulatedEnvironment(files), databaseFolder, (count) => {
      bytes += count;
    });
    expect(found).toMatchObject({
      documents: 11,
      contents: 2,
      damages: [],
      unusableSnapshots: [],
      tornBytes: 0,
    });
    expect(found.records).toBeGreaterThan(24);
    expect(found.committedMicros).toBeGreaterThan(0);
    const logBytes = files.paths().filter((path) => path.endsWith(".seg"));
    expect(bytes).toBeGreaterThan(
      logBytes.reduce((sum, path) => sum + files.content(path).length, 0),
    );
    expect(contentsOf(files)).toEqual(before);
  });

  test("finds no damage after a power loss, with any set of segments compacted", async () => {
    for (let round = 0; round < 8; round++) {
      const shop = await createShop();
      for (let write = 0; write < 3 * round; write++) {
        const body = `{"a":"${"y".repeat(300)}","b":${write}}`;
        await shop.write([{ kind: "put", id: "things/1", body }]);
      }
      const files = shop.files.powerLoss(round);
      expect([round, (await check(files)).damages]).toEqual([round, []]);
      expect(await opens(files)).toBe(true);
    }
  });

  test("accepts a torn write at the end of the log", async () => {
    const { files, database } = await createShop();
    await database.close();
    const used = segmentsOf(files);
    // Bytes after the last frame that no header covers.
    const last = used.findLast((path) => files.content(path).readUInt32LE(64) !== 0) as string;
    files.damage(last, (bytes) => bytes.fill(0x55, bytes.length - 64));
    const found = await check(files);
    expect(found.damages).toEqual([]);
    expect(found.tornBytes).toBeGreaterThan(0);
    expect(await opens(files)).toBe(true);
  });

  test("fails while the database is locked", async () => {
    const { files, database } = await createShop();
    await expect(check(files)).rejects.toMatchObject({ code: "database-locked" });
    await database.close();
  });

  test("fails if the folder does not exist", async () => {
    const nowhere = checkDatabase(
      simulatedEnvironment(new SimulatedFileSystem()),
      "/data/none",
      () => undefined,
    );
    await expect(nowhere).rejects.toThrow();
  });
});

describe("checking a damaged database", () => {
  test("detects one changed byte anywhere in the log, the manifest or the contents", async () => {
    const { files, database } = await createShop();
    await database.close();
    const random = new SeededRandom(4711);
    const paths = files.paths().filter((path) => /\.seg$|MANIFEST$|\/blobs\//.test(path));
    let damages = 0;
    for (const path of paths) {
      // Zeros after the last frame of a segment that has successors are never read.
      const isFollowed = segmentsOf(files).slice(0, -2).includes(path);
      const { length } = files
        .content(path)
        .toString("latin1")
        .replace(isFollowed ? /\0+$/ : "", "");
      for (let round = 0; round < 25; round++) {
        const at = random.below(length);
        const copy = files.restart();
        copy.damage(path, (bytes) => {
          bytes[at] = (bytes[at] as number) ^ (1 << random.below(8));
          return bytes;
        });
        const found = await check(copy);
        const reported = found.damages.length + found.tornBytes;
        expect([path, at, reported > 0]).toEqual([path, at, true]);
        if (found.damages.length > 0) damages++;
        // Damage found on opening is reported here too.
        if (!(await opens(copy)))
          expect([path, at, found.damages.length > 0]).toEqual([path, at, true]);
      }
    }
    const manifest = decodeManifest(files.content(`${databaseFolder}/MANIFEST`)) as Manifest;
    expect(manifest.segments.some(({ kind }) => kind === "compacted")).toBe(true);
    expect(damages).toBeGreaterThan(100);
  });

  test("continues after damage: each damage has its file and offset", async () => {
    const { files, database } = await createShop();
    await database.close();
    const segments = segmentsOf(files);
    const [first, second] = segments as [string, string];
    files.damage(first, (bytes) => bytes.fill(0x55, 300, 308));
    files.damage(second, (bytes) => bytes.fill(0, 64, 128));
    const blob = files.paths().find((path) => path.includes("/blobs/")) as string;
    files.remove(blob);
    const { damages } = await check(files);
    const [one] = damages;
    expect(one).toMatchObject({ file: first, reason: expect.stringContaining("checksum") });
    expect((one?.offset ?? 0) < 300 && 308 <= (one?.offset ?? 0) + (one?.length ?? 0)).toBe(true);
    expect(damages).toContainEqual(
      expect.objectContaining({ file: second, offset: 64, reason: "there is no whole frame" }),
    );
    expect(damages.at(-1)).toMatchObject({ file: blob });
    expect(damages.at(-1)?.reason).toMatch(/^the content of .*\/file is missing$/);
  });

  test("detects a missing segment and a segment of another log", async () => {
    const { files, database } = await createShop();
    await database.close();
    const segments = segmentsOf(files);
    const missing = files.restart();
    missing.remove(segments[1] as string);
    expect((await check(missing)).damages).toContainEqual(
      expect.objectContaining({ file: segments[1], reason: "the file is missing" }),
    );
    const other = files.restart();
    other.damage(segments[1] as string, () => files.content(segments[0] as string));
    expect((await check(other)).damages).toContainEqual(
      expect.objectContaining({ file: segments[1], reason: expect.stringContaining("another") }),
    );
  });

  test("reports a damaged snapshot separately, because no data is lost", async () => {
    const { files, database } = await createShop();
    await database.close();
    const snapshot = files.paths().find((path) => path.endsWith(".idx")) as string;
    expect(snapshot).toBeDefined();
    files.damage(snapshot, (bytes) => bytes.fill(0x55, 70, 80));
    const found = await check(files);
    expect(found.damages).toEqual([]);
    expect(found.unusableSnapshots).toMatchObject([{ file: snapshot }]);
    expect(await opens(files)).toBe(true);
  });
});
