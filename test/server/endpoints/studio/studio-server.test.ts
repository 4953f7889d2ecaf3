/**
 * Requests of RavenDB's Studio to a server: notifications over web sockets, limits, versions,
 * secrets, revisions.
 */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { CertificatePair } from "../../../../certs/authority.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../../support/start-test-server.ts";

interface Notification {
  readonly Type: string;
  readonly [member: string]: unknown;
}

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "shop" }] });
});
afterAll(() => stopTestServers());

const send = async (path: string, method = "GET", body?: unknown) => {
  const reply = await server.request(path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: reply.status,
    json: reply.text.startsWith("{") ? reply.json : null,
    text: reply.text,
  };
};
const put = (id: string, collection: string) =>
  send(`/databases/shop/docs?id=${id}`, "PUT", { "@metadata": { "@collection": collection } });

async function watch(path: string, pair: CertificatePair = server.admin) {
  const reported: Notification[] = [];
  const socket = new WebSocket(server.url.replace("https", "wss") + path, {
    ...tlsOptions(server.authority, pair),
  });
  socket.on("message", (data) => reported.push(JSON.parse(String(data)) as Notification));
  await once(socket, "open");
  return { reported, socket };
}

describe("notifications", () => {
  test("of a database report operations and, once a second, writes", async () => {
    const { reported, socket } = await watch("/databases/shop/notification-center/watch");
    await put("notes/1", "Notes");
    await send("/databases/shop/queries", "PATCH", {
      Query: { Query: "from Notes update { this.A = 1 }" },
    });
    await expect.poll(() => reported.map(({ Severity }) => Severity)).toContain("Success");
    const exported = await send("/databases/shop/smuggler/export?operationId=99", "POST", {});
    expect(exported.status).toBe(200);
    await expect.poll(() => reported.map(({ Id }) => Id)).toContain("OperationChanged/99");
    const ofExport = reported.filter(({ Id }) => Id === "OperationChanged/99");
    // RavenDB's Studio fails on an export that runs and has no progress.
    expect(JSON.stringify(ofExport)).not.toContain('"Progress":null,"Result":null');
    const ended = reported.find(({ Severity }) => Severity === "Success");
    expect(ended).toMatchObject({
      Type: "OperationChanged",
      Title: "Update by Query",
      Database: "shop",
      Killable: false,
      State: { Status: "Completed", Result: { Total: 1 } },
    });
    await expect.poll(() => reported.map(({ Type }) => Type)).toContain("DatabaseStatsChanged");
    expect(reported.find(({ Type }) => Type === "DatabaseStatsChanged")).toMatchObject({
      CountOfDocuments: 1,
      ModifiedCollections: [{ Name: "Notes", Count: 1 }],
    });
    socket.close();
  });

  test("end with the database", async () => {
    await server.running.services.databases.create("gone", { DatabaseName: "gone" });
    const { socket } = await watch("/databases/gone/notification-center/watch");
    const closed = once(socket, "close");
    await server.running.services.databases.delete("gone");
    const [code] = (await closed) as [number];
    expect(code).toBe(1001);
  });

  test("of the server report created and deleted databases to clients with access", async () => {
    const reader = await server.client({ permissions: { seen: "Read" } });
    const mine = await watch("/server/notification-center/watch", reader);
    const all = await watch("/server/notification-center/watch");
    await expect
      .poll(() => all.reported[0])
      .toMatchObject({
        Type: "ClusterTopologyChanged",
        Leader: "A",
        Topology: { Members: { A: server.url } },
      });
    for (const name of ["seen", "hidden"]) {
      await server.running.services.databases.create(name, { DatabaseName: name });
    }
    const ids = (of: typeof mine) => of.reported.map(({ Id }) => Id);
    const seen = "DatabaseChanged/Put/seen";
    await expect.poll(() => ids(mine), { timeout: 5000 }).toContain(seen);
    await expect.poll(() => ids(all), { timeout: 5000 }).toContain("DatabaseChanged/Put/hidden");
    await server.running.services.databases.delete("hidden");
    await expect.poll(() => ids(all), { timeout: 5000 }).toContain("DatabaseChanged/Delete/hidden");
    expect(ids(mine).filter((id) => String(id).endsWith("hidden"))).toEqual([]);
    mine.socket.close();
    all.socket.close();
  });
});

test("revisions of all documents are listed newest first, by type and by collection", async () => {
  await send("/databases/shop/admin/revisions/config", "POST", { Default: { Disabled: false } });
  for (const id of ["a/1", "a/2"]) await put(id, "As");
  await put("b/1", "Bs");
  await send("/databases/shop/docs?id=a/1", "DELETE");
  const list = async (query: string) =>
    (await send(`/databases/shop/studio/revisions/preview${query}`)).json as {
      TotalResults?: number;
      Results: { Id: string; Flags: string; Collection: string }[];
    };
  const ids = async (query: string) => (await list(query)).Results.map(({ Id }) => Id);
  expect(await ids("")).toEqual(["a/1", "b/1", "a/2", "a/1"]);
  expect(await ids("?start=1&pageSize=2")).toEqual(["b/1", "a/2"]);
  expect(await ids("?type=Regular")).toEqual(["b/1", "a/2", "a/1"]);
  const deleted = await list("?type=Deleted");
  expect(deleted.Results).toMatchObject([
    { Id: "a/1", Flags: expect.stringContaining("DeleteRevision"), Collection: "As" },
  ]);
  expect(await list("?collection=Bs")).toMatchObject({ TotalResults: 1, Results: [{ Id: "b/1" }] });
  expect(await list("?collection=Bs&type=Deleted")).toEqual({ Results: [] });
  expect(await ids("?collection=Nothing")).toEqual([]);
  expect((await send("/databases/shop/studio/revisions/preview?type=Foo")).text).toContain(
    "All, Regular, Deleted",
  );
});

test("ids with revisions are found by prefix", async () => {
  const find = (query: string) => send(`/databases/shop/studio/revisions/ids${query}`);
  await send("/databases/shop/admin/revisions/config", "POST", { Default: { Disabled: false } });
  for (const id of ["found/2", "Found/1"]) await put(id, "As");
  await send("/databases/shop/docs?id=found/2", "DELETE");
  const both = { Results: [{ Id: "Found/1" }, { Id: "found/2" }] };
  expect((await find("?prefix=FOUND")).json).toEqual(both);
  expect((await find("?prefix=found/&pageSize=1")).json).toEqual({ Results: [{ Id: "Found/1" }] });
  for (const query of ["", "?prefix=", "?prefix=%20"]) {
    const { status, text } = await find(query);
    expect(status).toBe(400);
    expect(text).toContain("Query string prefix is mandatory, but wasn't specified.");
  }
  expect((await find("?prefix=f&pageSize=x")).status).toBe(400);
});

test("counts index errors by type", async () => {
  const maps = ["map('As', (a) => { throw 'no'; })"];
  await send("/databases/shop/indexes", "PUT", { Indexes: [{ Name: "Bad", Maps: maps }] });
  const counted = async () => (await send("/databases/shop/studio/indexes/errors-count")).json;
  const bad = { Name: "Bad", Errors: [{ Action: "Map", NumberOfErrors: expect.any(Number) }] };
  await expect.poll(counted).toEqual({ Results: [bad] });
  // RavenDB 7.2.7 lists indexes without errors, too.
  const fine = { Name: "Fine", Maps: ["map('As', (a) => ({ a: 1 }))"] };
  await send("/databases/shop/indexes", "PUT", { Indexes: [fine] });
  const { Results } = (await counted()) as { Results: object[] };
  expect(Results).toHaveLength(2);
  expect(Results).toContainEqual({ Name: "Fine", Errors: [] });
  const named = await send("/databases/shop/studio/indexes/errors-count?name=Fine");
  expect(named.json).toEqual({ Results: [{ Name: "Fine", Errors: [] }] });
  await send("/databases/shop/indexes?name=Fine", "DELETE");
});

test("counts limits, creates a new secret each time, and reports unsupported features as absent", async () => {
  await send("/databases/shop/subscriptions", "PUT", { Query: "from Notes" });
  expect((await send("/license/limits-usage")).json).toMatchObject({
    NumberOfStaticIndexesInCluster: 1,
    NumberOfAutoIndexesInCluster: 0,
    NumberOfSubscriptionsInCluster: 1,
  });
  const secrets = [await send("/secrets/generate"), await send("/secrets/generate")];
  for (const { text } of secrets) expect(Buffer.from(text, "base64")).toHaveLength(32);
  expect(secrets[0]?.text).not.toBe(secrets[1]?.text);
  expect((await send("/databases/shop/etl/stats")).json).toMatchObject({ Results: [] });
  expect((await send("/databases/shop/tasks/errors")).json).toMatchObject({ Results: [] });
  expect((await send("/configuration/studio")).status).toBe(404);
  expect((await send("/databases/shop/schema-validation/config")).status).toBe(404);
  expect((await send("/databases/shop/notifications")).json).toEqual({
    Results: [],
    TotalResults: 0,
  });
  expect((await send("/build/version/updates", "POST")).json).toMatchObject({ Version: null });
  expect((await send("/studio-tasks/bootstrap")).status).toBe(200);
  expect((await send("/assistant/settings")).json).toMatchObject({ DisableAiAssistant: true });
  expect((await send("/admin/server-wide/tasks")).json).toEqual({ Tasks: [] });
});

describe("all documents of a collection", () => {
  const idsLeft = async () => {
    const { json } = await send("/databases/shop/queries", "POST", { Query: "from @all_docs" });
    const { Results } = json as { Results: { "@metadata": { "@id": string } }[] };
    const ids = Results.map((one) => one["@metadata"]["@id"]);
    return ids.filter((id) => /^(temps|others)/.test(id)).sort();
  };
  const remove = (name: string, body: unknown) =>
    send(
      `/databases/shop/studio/collections/docs?name=${encodeURIComponent(name)}`,
      "DELETE",
      body,
    );

  test("are deleted by an operation, except the excluded ones, in any letter case", async () => {
    for (const id of ["temps/a", "temps/b", "temps/c"]) await put(id, "O'Temps");
    await put("others/a", "Others");
    const { status, json } = await remove("O'Temps", { ExcludeIds: ["TEMPS/b"] });
    expect(status).toBe(200);
    expect(json).toEqual({ OperationId: expect.any(Number), OperationNodeTag: "A" });
    await expect.poll(idsLeft).toEqual(["others/a", "temps/b"]);
    await remove("O'Temps", { ExcludeIds: [] });
    await expect.poll(idsLeft).toEqual(["others/a"]);
    expect((await remove("Nothing", {})).status).toBe(200);
    expect((await remove("Others", { ExcludeIds: 1 })).status).toBe(400);
    await remove("@all_docs", { ExcludeIds: [] });
    await expect.poll(idsLeft).toEqual([]);
  });
});
