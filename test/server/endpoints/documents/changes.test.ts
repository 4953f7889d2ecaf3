/**
 * Changes over web sockets: recipients and format of messages, and reasons for closing a
 * connection.
 */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { waitingBytesMax } from "../../../../server/changes/changes-connection.ts";
import { ChangesSocket } from "../../../support/changes-socket.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

const vector = expect.stringMatching(/^A:\d+-/);

async function put(id: string, collection = "Users"): Promise<void> {
  const body = { "@metadata": { "@collection": collection } };
  expect((await client.send(`PUT docs?id=${id}`, body)).status).toBe(201);
}

async function count(id: string, CounterName: string, Delta = 1): Promise<void> {
  const Operations = [{ Type: "Increment", CounterName, Delta }];
  const reply = await client.send("POST counters", { Documents: [{ DocumentId: id, Operations }] });
  expect(reply.status).toBe(200);
}

async function append(id: string, Name: string, Timestamp: string): Promise<void> {
  const body = { Name, Appends: [{ Timestamp, Values: [1] }] };
  expect((await client.send(`POST timeseries?docId=${id}`, body)).status).toBe(204);
}

function documentChange(Id: string, Type = "Put", CollectionName = "Users"): object {
  return { Type: "DocumentChange", Value: { Type, Id, CollectionName, ChangeVector: vector } };
}

describe("a connection", () => {
  test("receives a greeting, and a confirmation of each command", async () => {
    const socket = await ChangesSocket.open(client.server);
    await socket.command("watch-docs");
    await socket.command("Watch-Docs");
    await socket.command("unwatch-docs");
    expect(socket.frames[0]).toBe('[{"TopologyChange":true,"AggressiveCachingChange":true}]');
    expect(socket.frames[1]).toBe('[{"CommandId":1,"Type":"Confirm"}]');
    socket.socket.close();
  });

  test.each([
    ["{", "A command is a JSON object."],
    ["[]", "A command is a JSON object."],
    ["{}", "A command needs a Command."],
    ['{"CommandId":"x","Command":"watch-docs"}', "A CommandId is a whole number."],
    ['{"CommandId":1,"Command":"watch-all"}', "There is no command 'watch-all'."],
    ['{"CommandId":1,"Command":"watch-doc"}', "The command 'watch-doc' needs a Param."],
    ['{"CommandId":1,"Command":"watch-operation","Param":"x"}', /needs a Param/],
    ['{"CommandId":1,"Command":"watch-document-counter","Params":["a"]}', /needs Params/],
  ])("closes with a reason after %s", async (text, reason) => {
    const socket = await ChangesSocket.open(client.server);
    socket.socket.send(text);
    expect(await socket.closed).toEqual({ code: 1008, reason: expect.stringMatching(reason) });
    expect(socket.changes()).toEqual([]);
  });

  test("confirms each of many simultaneous commands, in order", async () => {
    const socket = await ChangesSocket.open(client.server);
    const count = 20_000;
    for (let CommandId = 0; CommandId < count; CommandId++) {
      socket.socket.send(JSON.stringify({ CommandId, Command: "unwatch-doc", Param: "x/1" }));
    }
    await socket.until(({ CommandId }) => CommandId === count - 1);
    const ids = Array.from({ length: count }, (_, i) => i);
    expect(socket.messages.map(({ CommandId }) => CommandId)).toEqual(ids);
    socket.socket.close();
    expect((await socket.closed).code).toBe(1005);
  });

  test("is established for each of many simultaneous requests", async () => {
    const sockets = await Promise.all(
      Array.from({ length: 200 }, () => ChangesSocket.open(client.server)),
    );
    await Promise.all(sockets.map((socket) => socket.command("watch-docs")));
    for (const { socket } of sockets) socket.close();
    await Promise.all(sockets.map(({ closed }) => closed));
  });

  test("watches at most 4096 ids and names", async () => {
    const socket = await ChangesSocket.open(client.server);
    for (let i = 0; i <= 4096; i++) {
      socket.socket.send(JSON.stringify({ CommandId: i, Command: "watch-doc", Param: `x/${i}` }));
    }
    const { reason } = await socket.closed;
    expect(reason).toBe("A connection watches at most 4096 ids and names.");
  });

  test("is listed, and closed on request", async () => {
    const socket = await ChangesSocket.open(client.server);
    await socket.command("watch-doc", "Users/1");
    await socket.command("watch-document-counter", null, ["users/1", "Likes"]);
    await socket.command("watch-indexes");
    const listed = (await client.json("GET changes/debug")) as {
      readonly Connections: readonly { readonly Id: number }[];
    };
    const row = listed.Connections.at(-1);
    expect(row).toMatchObject({
      State: "Open",
      WatchAllIndexes: true,
      WatchAllDocuments: false,
      WatchDocuments: ["Users/1"],
      WatchCounterOfDocument: [{ DocumentId: "users/1", Name: "Likes" }],
    });
    expect((await client.send(`DELETE changes?id=${row?.Id}`)).status).toBe(204);
    expect(await socket.closed).toMatchObject({ code: 1001 });
    expect((await client.send(`DELETE changes?id=${row?.Id}`)).status).toBe(204);
  });

  test("is rejected for a page of another site", async () => {
    const { url } = client.server;
    const address = `${url.replace(/^http/, "ws")}/databases/db/changes`;
    const socket = new WebSocket(address, { origin: "https://evil.example" });
    await expect(once(socket, "open")).rejects.toThrow("Unexpected server response: 403");
    const own = new WebSocket(address, { origin: url });
    await once(own, "open");
    own.close();
  });

  test("requires a web socket", async () => {
    const reply = await client.send("GET changes");
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ Type: "System.InvalidOperationException" });
  });
});

describe("changes of documents", () => {
  test("are sent to clients that watch the document, its prefix, its collection or all documents", async () => {
    const watched = [
      ["watch-docs", null],
      ["watch-doc", "DOCS/1"],
      ["watch-prefix", "DOCS/"],
      ["watch-collection", "ones"],
    ] as const;
    const sockets = await Promise.all(watched.map(() => ChangesSocket.open(client.server)));
    for (const [i, [command, param]] of watched.entries())
      await sockets[i]?.command(command, param);
    await put("Docs/1", "Ones");
    await put("docs/2", "Twos");
    await put("others/1", "Ones");
    await client.send("DELETE docs?id=docs/1");
    const reported = await Promise.all(sockets.map((socket) => socket.settledChanges()));
    const first = documentChange("Docs/1", "Put", "Ones");
    const second = documentChange("docs/2", "Put", "Twos");
    const third = documentChange("others/1", "Put", "Ones");
    const last = documentChange("Docs/1", "Delete", "Ones");
    expect(reported[0]).toEqual([first, second, third, last]);
    expect(reported[1]).toEqual([first, last]);
    expect(reported[2]).toEqual([first, second, last]);
    expect(reported[3]).toEqual([first, third, last]);
    for (const { socket } of sockets) socket.close();
  });

  test("are sent once, though watched in several ways, and not after unwatch", async () => {
    const socket = await ChangesSocket.open(client.server);
    await socket.command("watch-docs");
    await socket.command("watch-doc", "twice/1");
    await socket.command("watch-doc", "twice/1");
    await socket.command("watch-collection", "Users");
    await put("twice/1");
    expect(await socket.settledChanges()).toEqual([documentChange("twice/1")]);
    await socket.command("unwatch-docs");
    await socket.command("unwatch-doc", "TWICE/1");
    await socket.command("unwatch-collection", "users");
    await put("twice/1");
    expect(await socket.settledChanges()).toHaveLength(1);
    socket.socket.close();
  });

  test("of one batch are sent in one frame, in order", async () => {
    const socket = await ChangesSocket.open(client.server);
    await socket.command("watch-prefix", "batch/");
    const Commands = [1, 2, 3].map((i) => ({ Type: "PUT", Id: `batch/${i}`, Document: {} }));
    await client.send("POST bulk_docs", { Commands });
    await socket.until((message) => JSON.stringify(message).includes("batch/3"));
    expect(JSON.parse(socket.frames.at(-1) ?? "")).toEqual(
      [1, 2, 3].map((i) => documentChange(`batch/${i}`, "Put", "@empty")),
    );
    socket.socket.close();
  });

  test("are coalesced on a throttled connection to the newest of each document", async () => {
    const socket = await ChangesSocket.open(
      client.server,
      "/databases/db/changes?throttleConnection=true",
    );
    await socket.command("watch-prefix", "slow/");
    for (let i = 0; i < 5; i++) for (const id of ["slow/1", "slow/2"]) await put(id);
    const newest = (await client.send("GET docs?id=slow/2")).text;
    await socket.until((message) => JSON.stringify(message).includes("slow/2"));
    const changes = await socket.settledChanges();
    expect(changes.length).toBeLessThan(10);
    const last = changes.at(-1) as { readonly Value: { readonly ChangeVector: string } };
    const { ChangeVector } = last.Value;
    expect(newest).toContain(ChangeVector);
    socket.socket.close();
  });

  test("are sent as 'something changed' to clients that cache replies", async () => {
    const socket = await ChangesSocket.open(client.server);
    await socket.command("watch-aggressive-caching");
    await put("cached/1");
    expect(await socket.settledChanges()).toEqual([{ Type: "AggressiveCacheChange" }]);
    socket.socket.close();
  });
});

describe("changes of counters", () => {
  test("are sent to clients that watch them by name, by document, by both, or all", async () => {
    await put("counted/1");
    await put("counted/2");
    const watched = [
      ["watch-counters", null, undefined],
      ["watch-counter", "LIKES", undefined],
      ["watch-document-counters", "COUNTED/1", undefined],
      ["watch-document-counter", null, ["COUNTED/1", "LIKES"]],
    ] as const;
    const sockets = await Promise.all(watched.map(() => ChangesSocket.open(client.server)));
    for (const [i, parts] of watched.entries())
      await sockets[i]?.command(parts[0], parts[1], parts[2]);
    await count("counted/1", "Likes", 3);
    await count("counted/1", "likes", 4);
    await count("counted/1", "Other");
    await count("counted/2", "Likes");
    const Operations = [{ Type: "Delete", CounterName: "Likes" }];
    await client.send("POST counters", { Documents: [{ DocumentId: "counted/1", Operations }] });
    const change = (DocumentId: string, Name: string, Value: number, Type: string) => ({
      Type: "CounterChange",
      Value: { Name, Value, DocumentId, CollectionName: "Users", ChangeVector: vector, Type },
    });
    const likes = [
      change("counted/1", "Likes", 3, "Put"),
      change("counted/1", "likes", 7, "Increment"),
    ];
    const other = change("counted/1", "Other", 1, "Put");
    const second = change("counted/2", "Likes", 1, "Put");
    const deletion = change("counted/1", "Likes", 0, "Delete");
    const reported = await Promise.all(sockets.map((socket) => socket.settledChanges()));
    expect(reported[0]).toEqual([...likes, other, second, deletion]);
    expect(reported[1]).toEqual([...likes, second, deletion]);
    expect(reported[2]).toEqual([...likes, other, deletion]);
    expect(reported[3]).toEqual([...likes, deletion]);
    for (const { socket } of sockets) socket.close();
  });

  test("contain all digits", async () => {
    await put("counted/3");
    const socket = await ChangesSocket.open(client.server);
    await socket.command("watch-counters");
    const body =
      '{"Documents":[{"DocumentId":"counted/3","Operations":[' +
      '{"Type":"Increment","CounterName":"c","Delta":9223372036854775806}]}]}';
    await client.send("POST counters", body);
    await socket.settledChanges();
    expect(socket.frames.join()).toContain('"Value":9223372036854775806,');
    socket.socket.close();
  });
});

test("changes of time series are sent to clients that watch them by name, by document, by both, or all", async () => {
  await put("series/1");
  await put("series/2");
  const watched = [
    ["watch-all-timeseries", null, undefined],
    ["watch-timeseries", "HEART", undefined],
    ["watch-all-document-timeseries", "SERIES/1", undefined],
    ["watch-document-timeseries", null, ["SERIES/1", "HEART"]],
  ] as const;
  const sockets = await Promise.all(watched.map(() => ChangesSocket.open(client.server)));
  for (const [i, parts] of watched.entries())
    await sockets[i]?.command(parts[0], parts[1], parts[2]);
  const moment = "2020-01-01T02:00:00.1230000Z";
  await append("series/1", "Heart", moment);
  await append("series/1", "Steps", moment);
  await append("series/2", "Heart", moment);
  await client.send("POST timeseries?docId=series/1", { Name: "Heart", Deletes: [{}] });
  const change = (
    DocumentId: string,
    Name: string,
    Type: string,
    [From, To]: readonly (string | null)[],
  ) => ({
    Type: "TimeSeriesChange",
    Value: { Name, From, To, DocumentId, ChangeVector: vector, Type, CollectionName: "Users" },
  });
  const first = change("series/1", "Heart", "Put", [moment, moment]);
  const second = change("series/1", "Steps", "Put", [moment, moment]);
  const third = change("series/2", "Heart", "Put", [moment, moment]);
  const last = change("series/1", "Heart", "Delete", [null, null]);
  const reported = await Promise.all(sockets.map((socket) => socket.settledChanges()));
  expect(reported[0]).toEqual([first, second, third, last]);
  expect(reported[1]).toEqual([first, third, last]);
  expect(reported[2]).toEqual([first, second, last]);
  expect(reported[3]).toEqual([first, last]);
  for (const { socket } of sockets) socket.close();
});

test("index events are sent to clients that watch one index or all", async () => {
  const all = await ChangesSocket.open(client.server);
  const one = await ChangesSocket.open(client.server);
  const other = await ChangesSocket.open(client.server);
  await all.command("watch-indexes");
  await one.command("watch-index", "auto/users/bywatched");
  await other.command("watch-index", "auto/users/byother");
  await client.send("POST queries", { Query: "from Users where watched = 1" });
  const name = "Auto/Users/Bywatched";
  const change = (Type: string) => ({ Type: "IndexChange", Value: { Name: name, Type } });
  await one.until((message) => JSON.stringify(message).includes("BatchCompleted"));
  await client.send(`POST indexes/set-priority`, { IndexNames: [name], Priority: "High" });
  await client.send(`POST admin/indexes/disable?name=${name}`);
  await client.send(`POST admin/indexes/stop?name=${name}`);
  await client.send(`DELETE indexes?name=${name}`);
  const reported = await one.settledChanges();
  expect(reported.filter((message) => !JSON.stringify(message).includes("Batch"))).toEqual(
    ["IndexAdded", "PriorityChanged", "IndexDemotedToDisabled", "IndexPaused", "IndexRemoved"].map(
      change,
    ),
  );
  expect(await all.settledChanges()).toEqual(reported);
  expect(await other.settledChanges()).toEqual([]);
  for (const { socket } of [all, one, other]) socket.close();
});

test("the progress of operations is sent to clients that watch one or all", async () => {
  await put("worked/1", "Worked");
  const all = await ChangesSocket.open(client.server);
  const one = await ChangesSocket.open(client.server);
  await all.command("watch-operations");
  const { Id } = (await client.json("GET operations/next-operation-id")) as { Id: number };
  await one.command("watch-operation", String(Id));
  const document = { Id: "worked/2", Type: "PUT", Document: {} };
  expect((await client.send(`POST bulk_insert?id=${Id}`, [document])).status).toBe(201);
  await client.send("PATCH queries", {
    Query: { Query: "from Worked update { this.done = true }" },
  });
  const state = (socket: ChangesSocket) =>
    socket.changes().map(({ Type, Value }) => {
      const { OperationId, State } = Value as { OperationId: number; State: { Status: string } };
      return [Type, OperationId === Id, State.Status];
    });
  await one.until((message) => JSON.stringify(message).includes('"Status":"Completed"'));
  expect(state(one)).toEqual([
    ["OperationStatusChange", true, "InProgress"],
    ["OperationStatusChange", true, "Completed"],
  ]);
  expect(one.changes()[0]).toMatchObject({
    Value: { State: { Progress: { LastProcessedId: "worked/2", Total: 1 } } },
  });
  await all.until(
    ({ Value }) =>
      (Value as { OperationId: number } | undefined)?.OperationId !== Id &&
      JSON.stringify(Value ?? null).includes("Completed"),
  );
  expect(state(all)).toContainEqual(["OperationStatusChange", false, "Completed"]);
  for (const { socket } of [all, one]) socket.close();
});

describe("closing", () => {
  async function createDatabase(name: string): Promise<ChangesSocket> {
    await client.send(`PUT /admin/databases?name=${name}`, { DatabaseName: name });
    return await ChangesSocket.open(client.server, `/databases/${name}/changes`);
  }

  test("happens when the database is deleted", async () => {
    const socket = await createDatabase("doomed");
    await client.send("DELETE /admin/databases", { DatabaseNames: ["doomed"], HardDelete: true });
    expect(await socket.closed).toEqual({
      code: 1001,
      reason: "Database 'doomed' is being deleted.",
    });
    await expect(ChangesSocket.open(client.server, "/databases/doomed/changes")).rejects.toThrow(
      "Unexpected server response: 400",
    );
  });

  test("happens when the database is disabled; clients may reconnect after it is enabled", async () => {
    const socket = await createDatabase("resting");
    await client.send("POST /admin/databases/disable", { DatabaseNames: ["resting"] });
    expect(await socket.closed).toEqual({ code: 1001, reason: "Database 'resting' is disabled." });
    await expect(ChangesSocket.open(client.server, "/databases/resting/changes")).rejects.toThrow(
      "Unexpected server response: 503",
    );
    await client.send("POST /admin/databases/enable", { DatabaseNames: ["resting"] });
    const again = await ChangesSocket.open(client.server, "/databases/resting/changes");
    await again.command("watch-docs");
    again.socket.close();
  });

  test("happens with a reason for a client that does not read, before memory runs out", async () => {
    const slow = await ChangesSocket.open(client.server);
    const quick = await ChangesSocket.open(client.server);
    await slow.command("watch-docs");
    await quick.command("watch-counters");
    slow.socket.pause();
    const { Connections } = (await client.json("GET changes/debug")) as {
      readonly Connections: readonly { readonly Id: number; readonly WatchAllDocuments: boolean }[];
    };
    expect(Connections.filter(({ WatchAllDocuments }) => WatchAllDocuments)).toHaveLength(1);
    // More messages than fit into the queue and the buffers of both sockets.
    let written = 0;
    for (let batch = 0; written < 3 * waitingBytesMax; batch++) {
      const commands = Array.from({ length: 4000 }, (_, i) => {
        return { Id: `${"x".repeat(480)}/${batch}/${i}`, Type: "PUT", Document: {} };
      });
      written += commands.length * 600;
      expect((await client.send("POST bulk_insert?id=100", commands)).status).toBe(201);
    }
    await expect
      .poll(async () => JSON.stringify(await client.json("GET changes/debug")))
      .not.toContain('"WatchAllDocuments":true');
    slow.socket.resume();
    expect(await slow.closed).toEqual({
      code: 1013,
      reason: "Changes were not read: more than 16384 KB are pending.",
    });
    await quick.command("watch-docs"); // The reading client stays connected.
    quick.socket.close();
  });

  test("happens for all connections when the server stops", async () => {
    const other = await startTestServer({ unsecured: true, databases: [{ name: "db" }] });
    const socket = await ChangesSocket.open(other);
    await other.stop();
    expect(await socket.closed).toMatchObject({ code: 1001 });
  });
});

describe("over mTLS", () => {
  test("a client may watch a database that it may read, until its rights are revoked", async () => {
    const server = await startTestServer({ databases: [{ name: "db" }] });
    const reader = await server.client({ permissions: { db: "Read" } }, "reader");
    const other = await server.client({ permissions: { other: "Admin" } }, "other");
    const path = "/databases/db/changes";
    await expect(ChangesSocket.open(server, path, other)).rejects.toThrow("403");
    await expect(ChangesSocket.open(server, path, { certificate: "", key: "" })).rejects.toThrow(
      "403",
    );
    const socket = await ChangesSocket.open(server, path, reader);
    await socket.command("watch-docs");
    await server.running.services.databases.find("db");
    const body = JSON.stringify({ "@metadata": { "@collection": "Users" } });
    await server.request("/databases/db/docs?id=users/1", { method: "PUT", body });
    expect(await socket.settledChanges()).toEqual([documentChange("users/1")]);
    const { certificates } = server.running.services;
    const registered = certificates.list().find(({ Name }) => Name === "reader");
    await certificates.delete(registered?.Thumbprint ?? "");
    await socket.closed;
    await expect(ChangesSocket.open(server, path, reader)).rejects.toThrow("403");
  });
});

test("an invalid command closes only its connection", async () => {
  const deep = `${"[".repeat(5000)}1${"]".repeat(5000)}`;
  for (const Param of [deep, `{"a":${deep}}`, "NaN", "1e400", "null"]) {
    const socket = await ChangesSocket.open(client.server);
    const other = await ChangesSocket.open(client.server);
    await other.command("watch-doc", "after/1");
    socket.socket.send(`{"CommandId":1,"Command":"watch-operation","Param":${Param}}`);
    expect((await socket.closed).code).toBe(1008);
    await put("after/1");
    await expect.poll(() => other.messages).toContainEqual(documentChange("after/1"));
    other.socket.close();
  }
  expect(client.server.errors).toEqual([]);
});

test("an error in one connection closes only that connection", async () => {
  const { databases } = client.server.running.services;
  const database = await databases.find("db");
  const broken = await ChangesSocket.open(client.server);
  const other = await ChangesSocket.open(client.server);
  for (const socket of [broken, other]) await socket.command("watch-doc", "told/1");
  const { ChangesConnection } = await import("../../../../server/changes/changes-connection.ts");
  const real = ChangesConnection.prototype.sendOfDocument;
  const spy = vi.spyOn(ChangesConnection.prototype, "sendOfDocument");
  spy.mockImplementationOnce(() => {
    throw new TypeError("a mistake");
  });
  spy.mockImplementation(real);
  await put("told/1");
  expect((await broken.closed).code).toBe(1011);
  await expect.poll(() => other.messages).toContainEqual(documentChange("told/1"));
  expect(database?.hasEnded).toBe(false);
  spy.mockRestore();
  other.socket.close();
});
