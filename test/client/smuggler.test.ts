/** The official clients export and import, to files and into other databases, over HTTP and over mutual TLS. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as current from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { authentication, clients } from "../support/client-store.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

const ways = clients.flatMap(([version, client]) =>
  ([true, false] as const).map((isSecure) => ({ version, client, isSecure })),
);

const folder = mkdtempSync(join(tmpdir(), "jackdaw-dumps-"));
let plain: TestServer;
let secure: TestServer;

beforeAll(async () => {
  plain = await startTestServer({ unsecured: true });
  secure = await startTestServer();
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true, force: true });
});

let created = 0;

describe.each(ways)("client $version, secure: $isSecure", ({ client, isSecure }) => {
  class User {
    name: string;
    constructor(name: string) {
      this.name = name;
    }
  }

  const stores: current.DocumentStore[] = [];
  afterAll(() => {
    for (const store of stores) store.dispose();
  });

  async function newStore(): Promise<current.DocumentStore> {
    const server = isSecure ? secure : plain;
    created++;
    const name = `smuggler-${created}`;
    await server.running.services.databases.create(name, { DatabaseName: name });
    const store = new client.DocumentStore(server.url, name, authentication(server));
    store.initialize();
    stores.push(store);
    return store;
  }

  async function filledStore(): Promise<current.DocumentStore> {
    const store = await newStore();
    const session = store.openSession();
    for (const name of ["Ann", "Bea", "Cleo"]) await session.store(new User(name), `users/${name}`);
    await session.saveChanges();
    session.advanced.attachments.store("users/Ann", "note.txt", Buffer.from("hello"), "text/plain");
    session.countersFor("users/Ann").increment("likes", 5);
    session.timeSeriesFor("users/Ann", "rate").append(new Date(2020, 1, 1), 60, "watch");
    await session.saveChanges();
    return store;
  }

  test("transfers everything to another database in a dump file", async () => {
    const source = await filledStore();
    const target = await newStore();
    const file = join(folder, `${created}.ravendbdump`);
    const exported = await source.smuggler.export(new client.DatabaseSmugglerExportOptions(), file);
    await exported.waitForCompletion();
    const imported = await target.smuggler.import(new client.DatabaseSmugglerImportOptions(), file);
    await imported.waitForCompletion();
    const session = target.openSession();
    const ann = await session.load<User>("users/Ann", User);
    expect(ann?.name).toBe("Ann");
    const attachment = await session.advanced.attachments.get("users/Ann", "note.txt");
    expect(attachment?.details.contentType).toBe("text/plain");
    attachment?.dispose();
    expect(await session.countersFor("users/Ann").get("likes")).toBe(5);
    const series = await session.timeSeriesFor("users/Ann", "rate").get();
    expect(series?.map(({ value, tag }) => [value, tag])).toEqual([[60, "watch"]]);
    expect(await session.query<User>({ collection: "Users" }).count()).toBe(3);
  });

  test("options select items, and a script changes them", async () => {
    const source = await filledStore();
    const target = await newStore();
    const file = join(folder, `${created}.ravendbdump`);
    const options = new client.DatabaseSmugglerExportOptions();
    options.operateOnTypes = ["Documents"];
    options.collections = ["Users"];
    options.transformScript = "if (this.name == 'Bea') throw 'skip'; this.seen = true;";
    await (await source.smuggler.export(options, file)).waitForCompletion();
    const importOptions = new client.DatabaseSmugglerImportOptions();
    await (await target.smuggler.import(importOptions, file)).waitForCompletion();
    const session = target.openSession();
    const users = await session.query<User & { seen: boolean }>({ collection: "Users" }).all();
    expect(users.map(({ name }) => name).sort()).toEqual(["Ann", "Cleo"]);
    expect(users.every(({ seen }) => seen)).toBe(true);
  });

  test("rejects a file that is not a dump", async () => {
    const store = await newStore();
    const file = join(folder, "broken.ravendbdump");
    writeFileSync(file, "no dump");
    const options = new client.DatabaseSmugglerImportOptions();
    await expect(store.smuggler.import(options, file)).rejects.toThrow();
  });
});
