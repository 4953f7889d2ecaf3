import { expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import type { FileHandle, FileSystem } from "../../../../engine/base/environment.ts";
import { EngineError } from "../../../../engine/base/errors.ts";
import { allCollections } from "../../../../engine/state/keyspaces/document-table.ts";
import { ImagePool } from "../../../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../../../engine/storage/segments/segment-cache.ts";
import { incrementCounter } from "../../../../engine/writes/counters.ts";
import {
  deleteDocument,
  putParsed,
  putText,
  storedIdOf,
} from "../../../../engine/writes/documents.ts";
import { describeDatabase } from "../../../support/database-picture.ts";
import { put } from "../../../support/database-scenarios.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";
import {
  databaseFolder,
  History,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

/** Segments of 4 KiB, only one of them in memory, so nearly every record must be read from disk. */
function tinyLog() {
  return {
    log: {
      segmentBytesMin: 4096,
      segmentBytesMax: 4096,
      cache: new SegmentCache(1, new ImagePool(true)),
    },
  };
}

test("a transaction reads the records that it needs from the disk", async () => {
  const database = await openTestDatabase(tinyLog());
  for (let index = 0; index < 40; index++) {
    await database.put(`things/${index}`, { index, text: "x".repeat(500) });
  }
  const ids = await database.write((transaction) => {
    const found: string[] = [];
    for (let index = 0; index < 40; index += 5) {
      incrementCounter(transaction, `THINGS/${index}`, "likes", BigInt(index));
      found.push(storedIdOf(transaction, transaction.find(`things/${index}`)));
    }
    return found;
  });
  expect(ids).toEqual([0, 5, 10, 15, 20, 25, 30, 35].map((index) => `things/${index}`));
  expect(await database.get("things/35")).toMatchObject({
    index: 35,
    "@metadata": { "@counters": ["likes"] },
  });
});

test("transactions see the newest version of records that are compacted concurrently", async () => {
  const database = await openTestDatabase(tinyLog());
  for (let index = 0; index < 60; index++) {
    await database.put(`things/${index % 20}`, { index, text: "x".repeat(500) });
  }
  const writes: Promise<unknown>[] = [];
  const compaction = database.compact();
  for (let index = 0; index < 20; index++) {
    writes.push(
      database.write((transaction) => {
        incrementCounter(transaction, `things/${index}`, "n", 1n);
        if (index % 5 === 0) deleteDocument(transaction, `things/${19 - index}`);
      }),
      database.getText(`things/${index}`),
    );
  }
  const outcomes = await Promise.allSettled([compaction, ...writes]);
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") {
      expect(outcome.reason).toMatchObject({ code: "document-missing" });
    }
  }
  expect(await database.get("things/1")).toMatchObject({ "@metadata": { "@counters": ["n"] } });
});

test("a view stays consistent through compactions", async () => {
  const database = await openTestDatabase(tinyLog());
  for (let index = 0; index < 30; index++) {
    await database.put(`things/${index}`, { index, text: "x".repeat(400) });
  }
  const view = database.view();
  // On a busy machine, the automatic compaction may have finished before.
  for (let sources = 0; sources === 0; sources = (await database.compact()).sources) {
    for (let index = 0; index < 30; index++) {
      if (index % 3 === 0) await database.delete(`things/${index}`);
      else await database.put(`things/${index}`, { index: -index, text: "y".repeat(400) });
    }
  }
  const batch = new Uint32Array(64);
  const count = view.documents.byEtag(allCollections, 0).fill(batch, batch.length);
  expect(count).toBe(30);
  for (const document of batch.subarray(0, count)) {
    const position = view.documents.positionOf(document);
    const record = await database.recordAt(document, position, view.documents.lengthOf(document));
    expect(record.toString("latin1")).toContain("x".repeat(400));
  }
  view.release();
});

test("closing waits for writes in flight and rejects later ones", async () => {
  const database = await openTestDatabase();
  const writes = Array.from({ length: 30 }, (_, index) => database.put(`a/${index}`, { index }));
  const closed = database.close();
  await expect(database.put("late", {})).rejects.toMatchObject({ code: "database-stopped" });
  await closed;
  expect((await Promise.allSettled(writes)).every(({ status }) => status === "fulfilled")).toBe(
    true,
  );
  await expect(database.getText("a/1")).rejects.toMatchObject({ code: "database-stopped" });
  await database.close();
});

test("closing completes a snapshot, a compaction and an upload in progress", async () => {
  const database = await openTestDatabase(tinyLog());
  for (let index = 0; index < 60; index++) {
    await database.put(`a/${index % 10}`, { index, text: "x".repeat(400) });
  }
  let goOn: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  async function* slow(): AsyncGenerator<Buffer> {
    yield Buffer.from("one");
    await gate;
    yield Buffer.from("two");
  }
  const works = [
    database.compact(),
    database.writeSnapshot(1000),
    database.blobs.store(slow()),
  ].map((work) => work.catch((error: unknown) => error));
  await new Promise<void>((resolve) => setImmediate(resolve));
  await database.close();
  goOn();
  const [, , upload] = await Promise.all(works);
  expect(upload).toMatchObject({ code: "database-stopped" });
});

test("concurrent snapshot requests are executed one after the other", async () => {
  const database = await openTestDatabase();
  await database.put("a", { a: 1 });
  await Promise.all([database.writeSnapshot(), database.writeSnapshot()]);
  expect(database.logMetrics.snapshots).toBe(2);
});

test("closing releases the folder even if the last write failed on a full disk", async () => {
  const files = new SimulatedFileSystem();
  const shop = await SimulatedDatabase.open(files);
  await shop.write([put("a", "A")]);
  files.capacityBytes = files.usedBytes();
  const lost = shop.write([put("b", "B".repeat(5000))]);
  await shop.database.close();
  await expect(lost).rejects.toMatchObject({ code: "disk-full" });
  files.capacityBytes = Number.POSITIVE_INFINITY;
  const again = await SimulatedDatabase.open(files, shop.history);
  await again.check();
  await again.database.close();
});

test("a time-sliced transaction fails with the write that it was built on", async () => {
  const files = new SimulatedFileSystem();
  const shop = await SimulatedDatabase.open(files);
  const { database } = shop;
  await shop.write([put("a", "A")]);
  files.capacityBytes = files.usedBytes();
  const lost = shop.write([put("b", "B".repeat(5000))]);
  let turns = 0;
  const long = database.writeInSlices(function* count(transaction) {
    for (let n = 0; n < 400; n++) incrementCounter(transaction, "b", `n${n}`, 1n);
    for (; turns < 50; turns++) {
      const untilMs = performance.now() + 6;
      while (performance.now() < untilMs);
      yield;
    }
  });
  await expect(lost).rejects.toMatchObject({ code: "disk-full" });
  await expect(long).rejects.toMatchObject({ code: "disk-full" });
  expect(turns).toBeLessThan(50);
  expect([...database.state.keyspaces.counters.newestWithPrefix("")]).toEqual([]);
  database.checkInvariants();
  await database.close();
});

/** Wraps `files` so that writes to segments wait until `open` is called. */
function gated(files: SimulatedFileSystem): { files: FileSystem; shut(): void } {
  let gate: Promise<void> | null = null;
  const gatedFiles = new Proxy(files, {
    get(target, key) {
      const value = Reflect.get(target, key, target) as unknown;
      if (key !== "open") return typeof value === "function" ? value.bind(target) : value;
      return async (path: string, mode: "read" | "update" | "create"): Promise<FileHandle> => {
        const handle = await target.open(path, mode);
        if (!path.endsWith(".seg")) return handle;
        const write = handle.write.bind(handle);
        handle.write = async (...given): Promise<void> => {
          await gate;
          await write(...given);
        };
        return handle;
      };
    },
  });
  return {
    files: gatedFiles,
    shut() {
      gate = new Promise(() => undefined);
    },
  };
}

test("a snapshot contains no shape of a transaction that is not durable", async () => {
  const disk = new SimulatedFileSystem();
  const { files, shut } = gated(disk);
  const environment = { ...simulatedEnvironment(disk), files };
  const database = await OpenDatabase.open(environment, "shop", databaseFolder, logOptions());
  await database.put("a", { first: 1 });
  shut();
  database.put("b", { second: 2 }).catch(() => undefined);
  await database.writeSnapshot();
  const after = disk.powerLoss(1);
  const reopened = await OpenDatabase.open(
    simulatedEnvironment(after),
    "shop",
    databaseFolder,
    logOptions(),
  );
  expect(await reopened.get("b")).toBeNull();
  await reopened.put("c", { second: 3 });
  await reopened.abandon();
  for (const path of after.paths()) if (path.includes("/snap/")) after.remove(path);
  const replayed = await OpenDatabase.open(
    simulatedEnvironment(after),
    "shop",
    databaseFolder,
    logOptions(),
  );
  expect(JSON.parse(await describeDatabase(replayed))).toMatchObject({
    documents: [{ id: "a" }, { id: "c", body: '{"second":3}' }],
  });
  await replayed.close();
});

test("reports a missing or damaged MANIFEST beside data", async () => {
  for (const damage of ["removed", "emptied", "of another database"]) {
    const files = new SimulatedFileSystem();
    const shop = await SimulatedDatabase.open(files);
    await shop.write([put("a", "A")]);
    await shop.database.close();
    const manifest = `${databaseFolder}/MANIFEST`;
    if (damage === "removed") files.remove(manifest);
    else
      files.damage(manifest, (bytes) =>
        damage === "emptied" ? Buffer.alloc(0) : bytes.fill(0x20, 9, 12),
      );
    const opening = OpenDatabase.open(
      simulatedEnvironment(files),
      "shop",
      databaseFolder,
      logOptions(),
    );
    await expect(opening).rejects.toMatchObject({
      code: "database-damaged",
      message: expect.stringContaining("MANIFEST"),
    });
  }
});

test("a throwing listener does not hide a durable write", async () => {
  const files = new SimulatedFileSystem();
  const history = new History();
  const shop = await SimulatedDatabase.open(files, history);
  shop.database.feed.listen(() => {
    throw new Error("a listener's mistake");
  });
  await Promise.allSettled([shop.write([put("a", "A")]), shop.write([put("b", "B")])]);
  expect(shop.database.state.documents.documentCount).toBe(2);
  await shop.database.abandon();
  const again = await SimulatedDatabase.open(files, history);
  await again.check();
  await again.database.close();
});

test("an upload keeps a content that is being removed", async () => {
  const database = await openTestDatabase();
  const { putAttachment, deleteAttachment } = await import(
    "../../../../engine/writes/attachments.ts"
  );
  await database.put("a", {});
  const attach = async (name: string): Promise<void> => {
    const lease = await database.blobs.store([Buffer.from("the same content")]);
    const { hash, size } = lease;
    await database.write((transaction) =>
      putAttachment(transaction, "a", { name, contentType: "", hash, size }),
    );
    lease.release();
  };
  await attach("file");
  for (let round = 0; round < 20; round++) {
    const removal = database.write((transaction) => deleteAttachment(transaction, "a", "file"));
    const uploads = Array.from({ length: round % 3 }, () => attach("other"));
    await Promise.all([removal, attach("file"), ...uploads]);
    await attach("file");
    expect(await database.blobs.findDamaged()).toEqual([]);
  }
});

test("a failed upload leaves no files", async () => {
  const database = await openTestDatabase();
  async function* broken(): AsyncGenerator<Buffer> {
    yield Buffer.from("some");
    throw new Error("the client went away");
  }
  await expect(database.blobs.store(broken())).rejects.toThrow("the client went away");
  expect(database.blobs.count).toBe(0);
});

test("does not reuse etags if the last one was a deletion that has been purged", async () => {
  const files = new SimulatedFileSystem();
  const shop = await SimulatedDatabase.open(files);
  for (let round = 0; round < 8; round++) await shop.write([put("a", "A".repeat(400))]);
  await shop.write([{ kind: "delete", id: "a" }]);
  const { lastEtag } = shop.database.state;
  await shop.database.maintenance.cleanTombstones();
  expect(shop.database.state.keyspaces.tombstones.count).toBe(0);
  for (let round = 0; round < 8; round++) {
    await shop.write([{ kind: "value", key: "filler", value: "x".repeat(400) }]);
    await shop.database.writeSnapshot();
    await shop.database.compact();
  }
  await shop.database.abandon();
  for (const path of files.paths()) if (path.includes("/snap/")) files.remove(path);
  const again = await SimulatedDatabase.open(files, shop.history);
  expect(again.database.state.lastEtag).toBeGreaterThanOrEqual(lastEtag);
  await again.database.close();
});

test("a discarded put leaves nothing but used etags", async () => {
  const database = await openTestDatabase();
  await database.put("a", { a: 1 });
  const failing = database.write((transaction) => {
    const bytes = Buffer.from('{"new shape":1,"@metadata":{"@collection":"New"}}');
    putParsed(transaction, "b", transaction.state.parser.parse(bytes, 0, bytes.length));
    throw new Error("changed my mind");
  });
  await expect(failing).rejects.toThrow("changed my mind");
  expect(await database.get("b")).toBeNull();
  await database.put("c", { "new shape": 2, "@metadata": { "@collection": "New" } });
  expect(await database.get("c")).toMatchObject({ "@metadata": { "@collection": "New" } });
});

test("deleting a document deletes the items that the same transaction added to it", async () => {
  const database = await openTestDatabase();
  const { putAttachment } = await import("../../../../engine/writes/attachments.ts");
  const lease = await database.blobs.store([Buffer.from("content")]);
  const { hash, size } = lease;
  await database.put("a", {});
  await database.write((transaction) => {
    incrementCounter(transaction, "a", "n", 1n);
    putAttachment(transaction, "a", { name: "file", contentType: "", hash, size });
    deleteDocument(transaction, "a");
  });
  lease.release();
  await database.put("a", {});
  const { counters, attachments } = database.state.keyspaces;
  expect([counters.count, attachments.count, database.blobs.count]).toEqual([0, 0, 0]);
});

test("a write without effect waits until the state it read is durable", async () => {
  const disk = new SimulatedFileSystem();
  const { files, shut } = gated(disk);
  const environment = { ...simulatedEnvironment(disk), files };
  const database = await OpenDatabase.open(environment, "shop", databaseFolder, logOptions());
  await database.put("a", {});
  shut();
  database.delete("a").catch(() => undefined);
  let isNotified = false;
  const again = database.delete("a").then(() => {
    isNotified = true;
  });
  again.catch(() => undefined);
  for (let tick = 0; tick < 20; tick++) await new Promise<void>((done) => setImmediate(done));
  expect(isNotified).toBe(false);
});

test("a rejected write creates neither an id nor a collection", async () => {
  const database = await openTestDatabase();
  await database.put("users/1", { "@metadata": { "@collection": "Users" } });
  const { documents, keyspaces } = database.state;
  const before = { ids: documents.idCount, collections: keyspaces.collections.count };
  for (let n = 0; n < 3000; n++) {
    const refused = database.write((transaction) => {
      const text = `{"@metadata":{"@collection":"Refused${n}"}}`;
      putText(transaction, `refused/${n}`, text);
      throw new EngineError("invalid-argument", "no");
    });
    await expect(refused).rejects.toThrow("no");
  }
  expect(keyspaces.collections.count).toBe(before.collections);
  expect(documents.idCount).toBeLessThan(before.ids + 100);
  await database.put("pets/1", { "@metadata": { "@collection": "Pets" } });
  expect(await database.get("pets/1")).toMatchObject({ "@metadata": { "@collection": "Pets" } });
  database.checkInvariants();
});
