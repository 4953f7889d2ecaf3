/**
 * A database is shipped and restored: the restored content, points in time, and detection of
 * damaged files.
 */
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test, vi } from "vitest";
import { openedDatabase } from "../../../../engine/api/database.ts";
import { followedBytesMin } from "../../../../engine/base/limits.ts";
import {
  type Database,
  type Engine,
  openEngine,
  type Shipment,
  type ShippedFile,
} from "../../../../engine/engine.ts";
import { pictureOf } from "../../../support/database-picture.ts";

const root = mkdtempSync(join(tmpdir(), "jackdaw-shipment-"));
let count = 0;
const engines: Engine[] = [];
afterAll(async () => {
  for (const engine of engines) await engine.close().catch(() => undefined);
  await rm(root, { recursive: true, force: true });
});

/** With segments so small that there are many. */
async function opened(folder = join(root, String(count++))): Promise<Engine> {
  const log = { segmentBytesMin: 4096, segmentBytesMax: 16_384 };
  const engine = await openEngine({ folder, database: { log } });
  engines.push(engine);
  return engine;
}

const shippedRecord = { PeriodicBackups: [{ TaskId: 1, Continuous: { IntervalInSec: 1 } }] };

/** A remote destination. */
class Place {
  readonly files: { name: string; bytes: Buffer }[] = [];
  readonly contents = new Map<string, Buffer>();

  async take(shipment: Shipment, file: ShippedFile): Promise<void> {
    for (const name of file.contents) this.contents.set(name, await all(shipment.content(name)));
    const { kind, after, through } = file.head;
    this.files.push({
      name: `${kind} ${after.number}-${through.number}`,
      bytes: await all(file.bytes),
    });
    file.taken();
    file.release();
  }

  async ship(shipment: Shipment): Promise<void> {
    for (let file = shipment.next(); file !== null; file = shipment.next()) {
      await this.take(shipment, file);
    }
  }

  /** Restores into a new engine. */
  async restore(throughMicros = Number.MAX_SAFE_INTEGER, pieceBytes = 1 << 20): Promise<Database> {
    const engine = await opened();
    const record = (found: object) => ({ ...found, Restored: true });
    const { database } = await engine.databases.createFromShipped(
      "again",
      record,
      throughMicros,
      async (restore) => {
        for (const { name, bytes } of this.files) {
          if (!restore.isDone) await restore.add(name, pieces(bytes, pieceBytes));
        }
        for (const [name, bytes] of this.contents)
          await restore.addContent(name, pieces(bytes, 64));
      },
    );
    return database;
  }
}

async function all(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of bytes) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const put = (database: Database, id: string, value: unknown) =>
  database.documents.put(id, Buffer.from(JSON.stringify({ value, filler: "x".repeat(200) })));

async function valueIn(database: Database, id: string): Promise<unknown> {
  const text = await database.documents.text(id);
  return text === null ? undefined : (JSON.parse(text.toString()) as { value: unknown }).value;
}

/** All content except the settings and the positions of records. */
function contentOf(database: Database): unknown {
  const { documents, entries, revisions } = pictureOf(openedDatabase(database));
  const { values: _values, ...others } = entries;
  return JSON.parse(JSON.stringify({ documents, others, revisions }), (key, value) =>
    key === "position" || key === "length" ? undefined : value,
  );
}

async function attach(database: Database, id: string, name: string, text: string): Promise<void> {
  const type = "text/plain";
  const source = { [Symbol.asyncIterator]: () => pieces(Buffer.from(text), 10) };
  await database.attachments.put({ id, name }, type, source as never);
}

async function shippedFrom(
  engine: Engine,
): Promise<{ database: Database; shipment: Shipment; place: Place }> {
  const database = await engine.databases.create("one", shippedRecord);
  for (let i = 0; i < 50; i++) await put(database, `a/${i}`, i);
  const { base, shipment } = database.shipping.begin();
  const place = new Place();
  database.shipping.resumed();
  await place.take(shipment, base);
  return { database, shipment, place };
}

test("committed data is restored as the same database", async () => {
  const { database, shipment, place } = await shippedFrom(await opened());
  await attach(database, "a/1", "note", "kept");
  for (let i = 0; i < 200; i++) await put(database, `b/${i}`, i);
  await database.documents.delete("a/3");
  await place.ship(shipment);
  expect(shipment.next()).toBeNull();
  const again = await place.restore();
  expect(contentOf(again)).toEqual(contentOf(database));
  expect(again.databaseId).toBe(database.databaseId);
  expect(again.settings).toMatchObject({ ...shippedRecord, Restored: true });
  openedDatabase(again).checkInvariants();
  expect(await openedDatabase(again).blobs.findDamaged()).toEqual([]);
  // Change vectors that the lost database may have issued later are not issued again.
  const next = await put(again, "a/2", 2);
  expect(Number(/^A:(\d+)-/.exec(next.changeVector)?.[1])).toBeGreaterThan(2 ** 32);
  shipment.close();
});

test("any point in time can be restored, with each transaction complete or absent", async () => {
  const { database, shipment, place } = await shippedFrom(await opened());
  const moments: { micros: number; value: number }[] = [];
  for (let i = 1; i <= 30; i++) {
    await Promise.all([put(database, "x", i), attach(database, "a/1", "note", `note ${i}`)]);
    await sleep(2);
    moments.push({ micros: Date.now() * 1000, value: i });
    await sleep(2);
    if (i % 7 === 0) await place.ship(shipment);
  }
  await place.ship(shipment);
  for (const { micros, value } of moments.filter((_, i) => i % 5 === 0)) {
    const again = await place.restore(micros, 100 + value);
    expect(await valueIn(again, "x")).toBe(value);
    const attachment = again.attachments.find({ id: "a/1", name: "note" });
    expect(attachment?.size).toBe(`note ${value}`.length);
    expect(await openedDatabase(again).blobs.findDamaged()).toEqual([]);
  }
  shipment.close();
});

test("a point in time before the base is rejected", async () => {
  const before = Date.now() * 1000 - 1_000_000;
  const { shipment, place } = await shippedFrom(await opened());
  await expect(place.restore(before)).rejects.toThrow("it is of a later moment");
  shipment.close();
});

test("detects a flipped bit, a truncation and a missing end in every section of every file", async () => {
  const { database, shipment, place } = await shippedFrom(await opened());
  for (let i = 0; i < 3; i++) {
    for (let j = 0; j < 8; j++) await put(database, `c/${i}/${j}`, i);
    await place.ship(shipment);
  }
  shipment.close();
  for (const file of place.files) {
    const { bytes } = file;
    // Every byte of the header and the first frame, then one in every few dozen bytes.
    for (let at = 0; at < bytes.length; at += at < 900 ? 17 : 997) {
      bytes[at] = (bytes[at] as number) ^ 0x10;
      await expect(place.restore(), `${file.name} at ${at}`).rejects.toThrow(file.name);
      bytes[at] = (bytes[at] as number) ^ 0x10;
    }
    for (const length of [0, 10, bytes.length - 1, Math.floor(bytes.length / 2)]) {
      file.bytes = bytes.subarray(0, length);
      await expect(place.restore(), `${file.name} of ${length}`).rejects.toThrow(file.name);
    }
    file.bytes = Buffer.concat([bytes, Buffer.from("x")]);
    await expect(place.restore()).rejects.toThrow("longer than");
    file.bytes = bytes;
  }
  expect(await valueIn(await place.restore(), "c/2/7")).toBe(2);
}, 60_000);

test("reports a file that is missing, duplicated, or from another database by name", async () => {
  const { database, shipment, place } = await shippedFrom(await opened());
  for (let i = 0; i < 3; i++) {
    await put(database, "x", i);
    await place.ship(shipment);
  }
  shipment.close();
  const [base, first, second, third] = [...place.files] as [
    Place["files"][number],
    Place["files"][number],
    Place["files"][number],
    Place["files"][number],
  ];
  const restored = async (files: readonly Place["files"][number][]) => {
    place.files.splice(0, place.files.length, ...files);
    return await place.restore();
  };
  await expect(restored([base, second, third])).rejects.toThrow("is missing before it");
  await expect(restored([base, first, third, second])).rejects.toThrow("is missing before it");
  await expect(restored([base, first, first])).rejects.toThrow("does not continue");
  await expect(restored([first, second])).rejects.toThrow("it is not a base");
  await expect(restored([base, base])).rejects.toThrow("there is one already");
  const other = await shippedFrom(await opened());
  await put(other.database, "x", 1);
  await other.place.ship(other.shipment);
  other.shipment.close();
  const foreign = other.place.files[1] as Place["files"][number];
  await expect(restored([base, foreign])).rejects.toThrow("of another database");
});

test("detects content that does not match its name", async () => {
  const { database, shipment, place } = await shippedFrom(await opened());
  await attach(database, "a/1", "note", "right");
  await place.ship(shipment);
  shipment.close();
  const [name] = [...place.contents.keys()] as [string];
  place.contents.set(name, Buffer.from("wrong"));
  await expect(place.restore()).rejects.toThrow(name);
});

test("retains frames and contents until they are fetched, despite compaction and removal", async () => {
  const { database, shipment, place } = await shippedFrom(await opened());
  await attach(database, "a/1", "note", "gone soon");
  await sleep(2);
  const micros = Date.now() * 1000;
  await sleep(2);
  await database.attachments.delete({ id: "a/1", name: "note" });
  for (let round = 0; round < 30; round++) {
    for (let i = 0; i < 50; i++) await put(database, `a/${i}`, round);
    await database.compact();
  }
  expect(shipment.isLost).toBe(false);
  const kept = openedDatabase(database).sizeBytes;
  await place.ship(shipment);
  await expect.poll(() => openedDatabase(database).sizeBytes).toBeLessThan(kept);
  expect(await openedDatabase(database).blobs.findDamaged()).toEqual([]);
  expect(contentOf(await place.restore())).toEqual(contentOf(database));
  const again = await place.restore(micros);
  expect(again.attachments.find({ id: "a/1", name: "note" })?.size).toBe("gone soon".length);
  expect(await openedDatabase(again).blobs.findDamaged()).toEqual([]);
  shipment.close();
});

test("a base handles commits of which nothing is left", async () => {
  const engine = await opened();
  const database = await engine.databases.create("shop", { Kept: true });
  const hold = openedDatabase(database).holdCompaction();
  // The middle of the log is replaced completely, so compaction replaces it with an empty segment.
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round++) {
      const text = JSON.stringify({ round, x: "x".repeat(3000) });
      for (let at = 0; at < 20; at++) await database.documents.put(`a/${at}`, Buffer.from(text));
    }
  };
  const emptyOnes = () => {
    const { base, shipment } = database.shipping.begin();
    base.release();
    shipment.close();
    return base.head.segments.filter(({ from, to }) => from === to);
  };
  await vi.waitFor(
    async () => {
      await rounds(2);
      expect(emptyOnes().map(({ kind }) => kind)).toContain("compacted");
    },
    { timeout: 20_000, interval: 10 },
  );
  const place = new Place();
  const { base, shipment } = database.shipping.begin();
  await place.take(shipment, base);
  shipment.close();
  hold.release();
  const restored = await place.restore();
  expect(restored.settings).toMatchObject({ Kept: true });
});

test("a shipment that would retain too much on disk is lost, and the database continues", async () => {
  const { database, shipment } = await shippedFrom(await opened());
  const [frames] = openedDatabase(database).shipped.blobs.followers;
  expect(frames).toBeDefined();
  await attach(database, "a/1", "note", "removed");
  await database.attachments.delete({ id: "a/1", name: "note" });
  // Simulates that the content, which only the shipment retains, is large.
  frames?.whenKept(followedBytesMin + 1);
  expect(shipment.isLost).toBe(true);
  expect(shipment.next()).toBeNull();
  await put(database, "x", 1);
  await expect.poll(() => openedDatabase(database).shipped.blobs.followers.size).toBe(0);
  expect(await openedDatabase(database).blobs.findDamaged()).toEqual([]);
});

test("a base taken during writes is the state at one point in time, and later frames continue it", async () => {
  const engine = await opened();
  const database = await engine.databases.create("one", shippedRecord);
  for (let i = 0; i < 100; i++) await put(database, `a/${i}`, i);
  let isOver = false;
  const writing = (async () => {
    for (let i = 0; !isOver; i++) {
      await put(database, `a/${i % 100}`, i);
      if (i % 40 === 0) await database.compact();
    }
  })();
  for (let round = 0; round < 5; round++) {
    const place = new Place();
    const { base, shipment } = database.shipping.begin();
    await place.take(shipment, base);
    await sleep(30);
    await place.ship(shipment);
    const again = await place.restore();
    openedDatabase(again).checkInvariants();
    expect(openedDatabase(again).state.documents.documentCount).toBe(100);
    shipment.close();
  }
  isOver = true;
  await writing;
}, 30_000);

test("a shipment resumes after a restart, with data committed but not yet shipped", async () => {
  const folder = join(root, String(count++));
  const first = await opened(folder);
  const { database, shipment, place } = await shippedFrom(first);
  await put(database, "x", 1);
  await place.ship(shipment);
  const { point } = shipment;
  await attach(database, "a/1", "note", "removed before the restart");
  await sleep(2);
  const micros = Date.now() * 1000;
  await sleep(2);
  await database.attachments.delete({ id: "a/1", name: "note" });
  for (let i = 0; i < 100; i++) await put(database, `new/${i}`, i);
  await first.close();
  const second = await opened(folder);
  const reopened = (await second.databases.find("one")) as Database;
  for (let i = 0; i < 100; i++) await put(reopened, `new/${i}`, -i);
  await reopened.compact();
  const known = new Set(place.contents.keys());
  const resumed = await reopened.shipping.resume(point, known);
  reopened.shipping.resumed();
  expect(resumed).not.toBeNull();
  if (resumed === null) return;
  await put(reopened, "x", 2);
  await place.ship(resumed);
  expect(contentOf(await place.restore())).toEqual(contentOf(reopened));
  const again = await place.restore(micros);
  expect(again.attachments.find({ id: "a/1", name: "note" })?.size).toBe(26);
  expect(await openedDatabase(again).blobs.findDamaged()).toEqual([]);
  resumed.close();
  await second.close();
});

test("a shipment does not resume if the log has another history, or none", async () => {
  const folder = join(root, String(count++));
  const first = await opened(folder);
  const { database, shipment } = await shippedFrom(first);
  const { point } = shipment;
  await put(database, "x", 1);
  await first.close();
  const second = await opened(folder);
  const reopened = (await second.databases.find("one")) as Database;
  const { shipping } = reopened;
  expect(await shipping.resume({ ...point, crc: point.crc ^ 1 }, new Set())).toBeNull();
  expect(await shipping.resume({ ...point, number: point.number + 1000 }, new Set())).toBeNull();
  shipping.resumed();
  expect(await shipping.resume(point, new Set())).toBeNull();
  await second.close();
});

test("retains nothing on opening if no task exists", async () => {
  const folder = join(root, String(count++));
  const first = await opened(folder);
  const database = await first.databases.create("one", {});
  const { shipment } = database.shipping.begin();
  const { point } = shipment;
  await first.close();
  const second = await opened(folder);
  const reopened = (await second.databases.find("one")) as Database;
  expect(await reopened.shipping.resume(point, new Set())).toBeNull();
  await second.close();
});

test("a database in memory cannot be shipped, and a server in memory cannot restore one", async () => {
  const engine = await openEngine();
  engines.push(engine);
  const database = await engine.databases.create("one", {});
  expect(() => database.shipping.begin()).toThrow("in memory");
  const restored = engine.databases.createFromShipped(
    "two",
    (r) => r,
    1,
    async () => undefined,
  );
  await expect(restored).rejects.toThrow("in memory");
});
