/**
 * Items that the official client stores beside documents: attachments, counters, revisions, time
 * series, compare exchange.
 */
import {
  type AttachmentResult,
  ConfigureExpirationOperation,
  ConfigureRefreshOperation,
  ConfigureRevisionsOperation,
  DeleteCompareExchangeValueOperation,
  type DocumentStore,
  GetCompareExchangeValueOperation,
  GetCompareExchangeValuesOperation,
  PutCompareExchangeValueOperation,
  RevisionsCollectionConfiguration,
  RevisionsConfiguration,
} from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

class User {
  id?: string;
  name: string;
  constructor(name: string) {
    this.name = name;
  }
}

afterAll(closeStores);

async function contentOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe.each(ways)("documents $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
  });

  async function save(id: string, name = "x"): Promise<void> {
    const session = store.openSession();
    await session.store(new User(name), id);
    await session.saveChanges();
  }

  test("have attachments, that are copied, moved and deleted", async () => {
    await save("users/1");
    await save("users/2");
    const session = store.openSession();
    const { attachments } = session.advanced;
    attachments.store("users/1", "note.txt", Buffer.from("hello"), "text/plain");
    attachments.store("users/1", "empty", Buffer.alloc(0));
    await session.saveChanges();
    attachments.copy("users/1", "note.txt", "users/2", "copied.txt");
    attachments.rename("users/1", "empty", "renamed");
    await session.saveChanges();
    const other = store.openSession();
    const user = (await other.load<User>("users/1", User)) as User;
    const named = other.advanced.attachments.getNames(user);
    expect(named.map(({ name, size }) => [name, size])).toEqual([
      ["note.txt", 5],
      ["renamed", 0],
    ]);
    const copied = await other.advanced.attachments.get("users/2", "copied.txt");
    expect(copied?.details).toMatchObject({
      contentType: "text/plain",
      size: 5,
      name: "copied.txt",
    });
    expect(await contentOf((copied as AttachmentResult).data)).toBe("hello");
    copied?.dispose();
    expect(await other.advanced.attachments.exists("users/2", "note.txt")).toBe(false);
    other.advanced.attachments.move("users/2", "copied.txt", "users/1", "moved.txt");
    other.advanced.attachments.delete("users/1", "note.txt");
    await other.saveChanges();
    const last = store.openSession().advanced.attachments;
    expect(await last.exists("users/1", "moved.txt")).toBe(true);
    expect(await last.exists("users/1", "note.txt")).toBe(false);
    expect(await last.get("users/1", "none")).toBeNull();
  });

  test("have counters, which can be included in loads", async () => {
    await save("users/counted");
    const session = store.openSession();
    session.countersFor("users/counted").increment("likes", 5);
    session.countersFor("users/counted").increment("Views");
    await session.saveChanges();
    const reader = store.openSession();
    await reader.load("users/counted", { includes: (builder) => builder.includeCounter("likes") });
    expect(await reader.countersFor("users/counted").get("likes")).toBe(5);
    expect(reader.advanced.numberOfRequests).toBe(1);
    expect(await reader.countersFor("users/counted").getAll()).toEqual({ likes: 5, Views: 1 });
    const queried = store.openSession();
    await queried
      .query<User>(User)
      .whereEquals("name", "x")
      .waitForNonStaleResults()
      .include((builder) => builder.includeAllCounters())
      .all();
    expect(await queried.countersFor("users/counted").get("views")).toBe(1);
    expect(queried.advanced.numberOfRequests).toBe(1);
    queried.countersFor("users/counted").delete("likes");
    await queried.saveChanges();
    expect(await store.openSession().countersFor("users/counted").get("likes")).toBeNull();
  });

  test("have time series", async () => {
    await save("users/beating");
    const at = (hour: number) => new Date(Date.UTC(2024, 0, 1, hour));
    const session = store.openSession();
    const series = session.timeSeriesFor("users/beating", "Heart");
    series.append(at(1), 60, "watch");
    series.append(at(2), [61, 62]);
    series.append(at(3), 63);
    await session.saveChanges();
    const reader = store.openSession().timeSeriesFor("users/beating", "Heart");
    const entries = await reader.get(at(2), at(9));
    expect(entries?.map(({ values }) => [...values])).toEqual([[61, 62], [63]]);
    const including = store.openSession();
    await including.load("users/beating", {
      includes: (builder) => builder.includeTimeSeries("Heart"),
    });
    expect(await including.timeSeriesFor("users/beating", "Heart").get()).toHaveLength(3);
    expect(including.advanced.numberOfRequests).toBe(1);
    const deleting = store.openSession();
    deleting.timeSeriesFor("users/beating", "Heart").deleteAt(at(3));
    await deleting.saveChanges();
    expect(await store.openSession().timeSeriesFor("users/beating", "Heart").get()).toHaveLength(2);
  });

  test("have revisions, by number, time and change vector", async () => {
    const configuration = new RevisionsConfiguration();
    const rule = new RevisionsCollectionConfiguration();
    rule.minimumRevisionsToKeep = 10;
    configuration.collections = new Map([["Users", rule]]);
    await store.maintenance.send(new ConfigureRevisionsOperation(configuration));
    await save("users/revised", "one");
    const before = new Date();
    await save("users/revised", "two");
    await save("users/revised", "three");
    const session = store.openSession();
    const { revisions } = session.advanced;
    const all = await revisions.getFor<User>("users/revised", { documentType: User });
    expect(all.map(({ name }) => name)).toEqual(["three", "two", "one"]);
    expect(await revisions.getCountFor("users/revised")).toBe(3);
    const metadata = await revisions.getMetadataFor("users/revised");
    expect(metadata[0]).toMatchObject({ "@flags": "HasRevisions, Revision" });
    const vector = metadata[1]?.["@change-vector"] as string;
    expect((await revisions.get<User>(vector))?.name).toBe("two");
    expect((await revisions.get<User>("users/revised", before))?.name).toBe("one");
    await session.store(new User("forced"), "others/forced");
    await session.saveChanges();
    const page = await revisions.getFor<User>("users/revised", { start: 1, pageSize: 1 });
    expect(page.map(({ name }) => name)).toEqual(["two"]);
  });

  test("get a revision on the session's request", async () => {
    class Note {
      text = "first";
    }
    const session = store.openSession();
    const note = new Note();
    await session.store(note, "notes/1");
    await session.saveChanges();
    note.text = "second";
    session.advanced.revisions.forceRevisionCreationFor(note);
    await session.saveChanges();
    expect(await session.advanced.revisions.getCountFor("notes/1")).toBe(1);
    const kept = await session.advanced.revisions.getFor<Note>("notes/1");
    expect(kept.map(({ text }) => text)).toEqual(["first"]);
  });

  test("expire and are refreshed when due", async () => {
    await store.maintenance.send(
      new ConfigureExpirationOperation({ disabled: false, deleteFrequencyInSec: 1 }),
    );
    await store.maintenance.send(
      new ConfigureRefreshOperation({ disabled: false, refreshFrequencyInSec: 1 }),
    );
    const session = store.openSession();
    const past = new Date(Date.now() - 1000).toISOString();
    for (const [id, key] of [
      ["users/expiring", "@expires"],
      ["users/refreshed", "@refresh"],
    ] as const) {
      const user = new User(id);
      await session.store(user, id);
      session.advanced.getMetadataFor(user)[key] = past;
    }
    await session.saveChanges();
    const isThere = () => store.openSession().advanced.exists("users/expiring");
    await expect.poll(isThere, { timeout: 10_000 }).toBe(false);
    const isMarked = async () => {
      const reader = store.openSession();
      const user = (await reader.load<User>("users/refreshed", User)) as User;
      return "@refresh" in reader.advanced.getMetadataFor(user);
    };
    await expect.poll(isMarked, { timeout: 10_000 }).toBe(false);
  });
});

describe.each(ways)("compare exchange $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
  });

  test("puts, reads and deletes values that no other client has changed", async () => {
    const put = (value: string, index: number) =>
      store.operations.send(new PutCompareExchangeValueOperation("names/ann", value, index));
    const first = await put("users/1", 0);
    expect(first).toMatchObject({ successful: true, value: "users/1" });
    expect(await put("users/2", 0)).toMatchObject({ successful: false, value: "users/1" });
    expect(await put("users/2", first.index)).toMatchObject({ successful: true });
    const get = new GetCompareExchangeValueOperation<string>("names/ann");
    const { value, index } = await store.operations.send(get);
    expect(value).toBe("users/2");
    await store.operations.send(new PutCompareExchangeValueOperation("names/bob", "users/3", 0));
    const both = await store.operations.send(
      new GetCompareExchangeValuesOperation<string>({ startWith: "names/" }),
    );
    expect(Object.keys(both)).toEqual(["names/ann", "names/bob"]);
    const deleted = await store.operations.send(
      new DeleteCompareExchangeValueOperation<string>("names/ann", index),
    );
    expect(deleted.successful).toBe(true);
    expect((await store.operations.send(get)) ?? null).toBeNull();
  });

  test("works in cluster-wide sessions with documents, guarded by it", async () => {
    const open = () => store.openSession({ transactionMode: "ClusterWide" });
    const session = open();
    await session.store(new User("Ann"), "users/guarded");
    session.advanced.clusterTransaction.createCompareExchangeValue("emails/ann", "users/guarded");
    await session.saveChanges();
    const one = open();
    const two = open();
    const mine = (await one.load<User>("users/guarded", User)) as User;
    const theirs = (await two.load<User>("users/guarded", User)) as User;
    theirs.name = "theirs";
    await two.saveChanges();
    mine.name = "mine";
    await expect(one.saveChanges()).rejects.toMatchObject({
      name: "ClusterTransactionConcurrencyException",
    });
    const three = open();
    const { clusterTransaction } = three.advanced;
    const email = await clusterTransaction.getCompareExchangeValue<string>("emails/ann");
    expect(email?.value).toBe("users/guarded");
    clusterTransaction.deleteCompareExchangeValue("emails/ann", email?.index ?? 0);
    await three.delete("users/guarded");
    await three.saveChanges();
    expect(await store.openSession().advanced.exists("users/guarded")).toBe(false);
    const gone = await open().advanced.clusterTransaction.getCompareExchangeValue("emails/ann");
    expect(gone).toBeNull();
  });
});
