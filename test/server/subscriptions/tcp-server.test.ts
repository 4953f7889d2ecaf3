/** The TCP protocol of subscriptions. Messages as measured on RavenDB 7.2.7. */
import { X509Certificate } from "node:crypto";
import * as net from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeAuthority, makeClientCertificate } from "../../../certs/authority.ts";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { openedDatabase } from "../../../engine/api/database.ts";
import {
  noCertificate,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";
import {
  connectTcp,
  headerOf,
  type Message,
  openSubscription,
  openTcp,
  type TcpClient,
} from "../../support/tcp-client.ts";

let server: TestServer;
let secure: TestServer;
let database: OpenDatabase;
let opened: TcpClient[];
let count = 0;

beforeAll(async () => {
  server = await startTestServer({ unsecured: true });
  secure = await startTestServer({ databases: [{ name: "db" }, { name: "other" }] });
});
afterAll(stopTestServers);
beforeEach(async () => {
  opened = [];
  const name = `db${++count}`;
  const { databases } = server.running.services;
  database = openedDatabase(await databases.create(name, { DatabaseName: name }));
});
afterEach(() => {
  for (const client of opened) client.close();
});

async function open(options: object = {}): Promise<TcpClient> {
  const client = await openTcp(server, options, database.name);
  opened.push(client);
  return client;
}

/** Connects and reads the confirmation. */
async function accepted(options: object = {}): Promise<TcpClient> {
  const client = await open(options);
  expect(await client.next()).toEqual({ Type: "ConnectionStatus", Status: "Accepted" });
  return client;
}

async function connect(): Promise<TcpClient> {
  const client = await connectTcp(server);
  opened.push(client);
  return client;
}

function put(id: string, body: object = {}): Promise<unknown> {
  return database.put(id, { ...body, "@metadata": { "@collection": "Users" } });
}

function define(query = "from Users", name = "s"): Promise<unknown> {
  return database.subscriptions.put({ name, query }, ++count);
}

function idsOf(batch: readonly Message[]): unknown[] {
  return batch.map(({ Data }) => (Data as { "@metadata": { "@id": string } })["@metadata"]["@id"]);
}

const acknowledge = { Type: "Acknowledge" };
const position = () => database.subscriptions.task({ name: "s" }).changeVector;

describe("agreeing on a version", () => {
  test.each([53_000, 51_000, 50_000, 41_400, 40])("accepts %d", async (version) => {
    const client = await connect();
    client.send(headerOf(database.name, version));
    expect(await client.next()).toEqual({
      Status: "Ok",
      Version: version,
      LicensedFeatures: { DataCompression: false },
    });
  });

  test("announces features to clients that support them", async () => {
    const client = await connect();
    client.send({
      DatabaseName: database.name,
      Operation: "Subscription",
      OperationVersion: 40,
      AuthorizeInfo: null,
    });
    expect(await client.next()).toEqual({ Status: "Ok", Version: 40, LicensedFeatures: null });
  });

  // Measured on RavenDB 7.2.7 for each version.
  test.each([
    ["include Friend", 41_400, "Includes"],
    ["include counters('likes')", 50_000, "Counter Includes"],
    ["include timeseries('Pulse', last(1, 'day'))", 51_000, "TimeSeries Includes"],
    ["include Friend, counters('likes')", 50_000, "Counter Includes"],
  ])(
    "rejects options that a version does not support: %s needs %d",
    async (include, first, name) => {
      await put("u1", { Friend: "u1" });
      await define(`from Users ${include}`);
      const { id } = database.subscriptions.task({ name: "s" });
      for (const version of [53_000, 51_000, 50_000, 41_400, 40]) {
        const client = await connect();
        await openSubscription(client, {}, database.name, version);
        const reply = await client.next();
        if (version >= first) expect(reply).toMatchObject({ Status: "Accepted" });
        else if (version >= 41_400 || first === 41_400) {
          expect(reply).toMatchObject({
            Type: "ConnectionStatus",
            Status: "Invalid",
            Message: `A connection to Subscription Task with ID '${id}' cannot be opened because it requires the protocol to support ${name}.`,
          });
        } else expect(reply).toMatchObject({ Status: "Invalid" });
        client.close();
        await expect.poll(() => database.subscriptions.workersOf("s")).toEqual([]);
      }
    },
  );

  test("omits includes of scripts if the version does not support them", async () => {
    await put("u1", { Friend: "u2" });
    await define(
      "declare function f(u) { include(u.Friend); return u; } from Users as u where id() = 'u1' select f(u)",
    );
    await database.put("u2", { "@metadata": { "@collection": "Others" } });
    const types = async (version: number) => {
      const client = await openSubscription(await connect(), {}, database.name, version);
      const seen: unknown[] = [];
      do seen.push((await client.next())?.["Type"]);
      while (seen.at(-1) !== "EndOfBatch");
      client.close();
      await expect.poll(() => database.subscriptions.workersOf("s")).toEqual([]);
      return seen;
    };
    expect(await types(40)).toEqual(["ConnectionStatus", "Data", "EndOfBatch"]);
    expect(await types(41_400)).toEqual(["ConnectionStatus", "Data", "Includes", "EndOfBatch"]);
  });

  test("offers the nearest older version for an unknown one, on the same connection", async () => {
    const client = await connect();
    client.send(headerOf(database.name, 99_999));
    expect(await client.next()).toMatchObject({ Status: "TcpVersionMismatch", Version: 53_000 });
    client.send(headerOf(database.name, 50_500));
    expect(await client.next()).toMatchObject({ Status: "TcpVersionMismatch", Version: 50_000 });
    client.send(headerOf(database.name, 50_000));
    expect(await client.next()).toMatchObject({ Status: "Ok", Version: 50_000 });
  });

  test.each([
    ["an unknown operation", { DatabaseName: "x", Operation: "Nope", OperationVersion: 1 }],
    ["an unknown version", headerOf("x", -1)],
    ["no version", { DatabaseName: "x", Operation: "Subscription" }],
    ["no database", { Operation: "Subscription", OperationVersion: 53_000 }],
    ["a list", "[1]"],
    ["HTTP", "GET / HTTP/1.1\r\n\r\n"],
    ["text that is not JSON", '{"DatabaseName":nope}'],
    ["an endless message", `{"DatabaseName":"${"x".repeat(70_000)}`],
  ])("rejects %s, and closes", async (_what, header) => {
    const client = await connect();
    client.send(header);
    expect(await client.next()).toEqual({
      Type: "Error",
      Exception: expect.stringMatching(/^[\w.+]+: ./),
      Message: expect.any(String),
    });
    expect(await client.next()).toBeNull();
  });

  test("closes after too many headers", async () => {
    const client = await connect();
    for (let i = 0; i < 8; i++) client.send(headerOf(database.name, 99_999));
    for (let i = 0; i < 8; i++) expect(await client.next()).toHaveProperty("Status");
    expect(await client.next()).toMatchObject({ Type: "Error" });
    expect(await client.next()).toBeNull();
  });

  test("reports a missing or disabled database afterwards", async () => {
    for (const name of ["none", database.name]) {
      if (name !== "none") await database.putSettings({ Disabled: true });
      const client = await connect();
      client.send(headerOf(name));
      expect(await client.next()).toMatchObject({ Status: "Ok" });
      const Exception = name === "none" ? /DatabaseDoesNotExist/ : /DatabaseDisabled/;
      expect(await client.next()).toMatchObject({
        Type: "Error",
        Exception: expect.stringMatching(Exception),
      });
      expect(await client.next()).toBeNull();
    }
  });
});

describe("a worker", () => {
  test("receives batches, each after acknowledging the previous one", async () => {
    for (const id of ["users/1", "users/2", "users/3"]) await put(id, { Name: id });
    await define();
    const client = await accepted({ MaxDocsPerBatch: 2 });
    const first = await client.batch();
    expect(first).toEqual([
      {
        Type: "Data",
        Data: {
          Name: "users/1",
          "@metadata": {
            "@collection": "Users",
            "@change-vector": expect.stringMatching(/^A:1-/),
            "@id": "users/1",
            "@last-modified": expect.any(String),
          },
        },
      },
      expect.objectContaining({ Type: "Data" }),
    ]);
    expect(position()).toBeNull();
    client.send(acknowledge);
    expect(await client.next()).toEqual({ Type: "Confirm" });
    expect(position()).toMatch(/^A:2-/);
    expect(idsOf(await client.batch())).toEqual(["users/3"]);
    client.send({ ChangeVector: "whatever", ...acknowledge });
    expect(await client.next()).toEqual({ Type: "Confirm" });
    await put("users/4");
    expect(idsOf(await client.batch())).toEqual(["users/4"]);
  });

  test("leaves its batch to the next worker when it disconnects", async () => {
    await put("users/1");
    await define();
    const first = await accepted();
    await first.batch();
    first.close();
    await expect.poll(() => database.subscriptions.workersOf("s").length).toBe(0);
    const second = await accepted();
    expect(idsOf(await second.batch())).toEqual(["users/1"]);
  });

  test("receives includes, and errors", async () => {
    await put("users/1", { Friend: "users/2" });
    await put("users/2", { Friend: "users/1", bad: true });
    await server.request(`/databases/${database.name}/counters`, {
      method: "POST",
      body: JSON.stringify({
        Documents: [
          {
            DocumentId: "users/1",
            Operations: [{ Type: "Increment", CounterName: "likes", Delta: 3 }],
          },
        ],
      }),
    });
    await define(
      "declare function f(u) { if (u.bad) throw 'oops'; return true; } from Users as u where f(u) include u.Friend, counters(u)",
    );
    const client = await accepted();
    const batch = await client.batch();
    expect(batch.map(({ Type }) => Type)).toEqual(["Data", "Data", "Includes", "CounterIncludes"]);
    expect(batch).toContainEqual({
      Type: "Data",
      Data: { "@metadata": expect.objectContaining({ "@id": "users/2" }) },
      Exception: expect.stringMatching(/^Raven\.Client.*JavaScriptException: .*oops/),
    });
    expect(batch).toContainEqual({
      Type: "Includes",
      Includes: { "users/2": expect.objectContaining({ bad: true }) },
    });
    expect(batch).toContainEqual({
      Type: "CounterIncludes",
      CounterIncludes: {
        "users/1": [{ DocumentId: "users/1", CounterName: "likes", TotalValue: 3 }],
      },
      IncludedCounterNames: { "users/1": [] },
    });
  });

  test("receives entries of included time series", async () => {
    await put("users/1");
    const reply = await server.request(`/databases/${database.name}/timeseries?docId=users%2F1`, {
      method: "POST",
      body: JSON.stringify({
        Name: "heart",
        Appends: [1, 2, 3].map((day) => ({
          Timestamp: `2026-01-0${day}T00:00:00Z`,
          Values: [day],
        })),
      }),
    });
    expect(reply.status).toBe(204);
    await define("from Users include timeseries('heart', last(2))");
    const [, message] = await (await accepted()).batch();
    expect(message).toMatchObject({
      Type: "TimeSeriesIncludes",
      TimeSeriesIncludes: {
        "users/1": {
          heart: [
            {
              From: "2026-01-02T00:00:00.0000000Z",
              To: null,
              Entries: [{ Values: [2] }, { Values: [3] }],
            },
          ],
        },
      },
    });
  });

  test("receives documents of many megabytes, in smaller batches", async () => {
    for (let i = 0; i < 24; i++) await put(`users/${i}`, { text: "x".repeat(1_000_000) });
    await define();
    const client = await accepted();
    let received = 0;
    while (received < 24) {
      const batch = await client.batch();
      received += batch.length;
      client.send(acknowledge);
      expect(await client.next()).toEqual({ Type: "Confirm" });
    }
    expect(received).toBe(24);
  });

  test("that requests only existing documents is notified at the end", async () => {
    await put("users/1");
    await define();
    const client = await accepted({ CloseWhenNoDocsLeft: true });
    await client.batch();
    client.send(acknowledge);
    await client.next();
    expect(await client.next()).toMatchObject({
      Type: "ConnectionStatus",
      Status: "Closed",
      Exception: expect.stringMatching(/SubscriptionClosedException: /),
      Data: { CanReconnect: false, NoDocsLeft: true },
    });
    expect(await client.next()).toBeNull();
  });
});

describe("a worker is rejected", () => {
  test.each([
    [{ SubscriptionName: "none" }, "ConnectionStatus NotFound"],
    [{ SubscriptionName: null }, "ConnectionStatus NotFound"],
    [{ Strategy: "Zz" }, "Error None"],
    [{ MaxDocsPerBatch: "x" }, "Error None"],
    [{ MaxErroneousPeriod: "soon" }, "Error None"],
  ])("for %j", async (options, expected) => {
    await define();
    const client = await open(options);
    const { Type, Status, Message: text, Exception } = (await client.next()) ?? {};
    expect(`${String(Type)} ${String(Status)}`).toBe(expected);
    expect(Exception).toContain(text);
    expect(await client.next()).toBeNull();
  });

  test("if the subscription has a worker, unless it takes over or waits", async () => {
    await put("users/1");
    await define();
    const first = await accepted();
    await first.batch();
    const second = await open();
    expect(await second.next()).toMatchObject({ Status: "InUse" });
    expect(await second.next()).toBeNull();
    const waiting = await open({ Strategy: "WaitForFree" });
    await expect.poll(() => database.subscriptions.pendingOf("s").length).toBe(1);
    const third = await accepted({ Strategy: "TakeOver" });
    expect(await first.next()).toMatchObject({ Status: "InUse", Message: "Closed by TakeOver" });
    expect(await first.next()).toBeNull();
    expect(idsOf(await third.batch())).toEqual(["users/1"]);
    third.close();
    expect(await waiting.next()).toMatchObject({ Status: "Accepted" });
    expect(idsOf(await waiting.batch())).toEqual(["users/1"]);
  });

  test("while waiting, and is forgotten when it disconnects", async () => {
    await define();
    await accepted();
    const waiting = await open({ Strategy: "WaitForFree" });
    await expect.poll(() => database.subscriptions.pendingOf("s").length).toBe(1);
    waiting.close();
    await expect.poll(() => database.subscriptions.pendingOf("s").length).toBe(0);
  });

  test.each([
    ["an acknowledgment without a batch", acknowledge],
    ["an unknown word", { Type: "Foo" }],
    ["invalid JSON", "garbage"],
    ["too much", `${"{}".repeat(5000)}`],
  ])("for sending %s", async (_what, message) => {
    await define();
    const client = await accepted();
    client.send(message);
    expect(await client.next()).toMatchObject({ Type: "Error", Status: "None" });
    expect(await client.next()).toBeNull();
    await expect.poll(() => database.subscriptions.workersOf("s").length).toBe(0);
  });

  test("but not if it announces its disconnect", async () => {
    await define();
    const client = await accepted();
    client.send({ Type: "DisposedNotification" });
    expect(await client.next()).toBeNull();
  });
});

describe("a worker receives the reason for its disconnection", () => {
  const ways: [string, string, object | undefined, object][] = [
    [
      "POST",
      "subscriptions/drop?name=s",
      undefined,
      { Status: "Closed", Data: { CanReconnect: false, NoDocsLeft: false } },
    ],
    ["DELETE", "subscriptions?taskName=s", undefined, { Status: "NotFound" }],
    [
      "POST",
      "subscriptions/update",
      { Name: "s", Query: "from Dogs" },
      { Status: "Closed", Data: { CanReconnect: true, NoDocsLeft: false } },
    ],
    [
      "POST",
      "admin/tasks/state?key=0&type=Subscription&disable=true&taskName=s",
      undefined,
      { Status: "Closed" },
    ],
    ["DELETE", "/admin/databases", undefined, { Type: "Error" }],
  ];
  test.each(ways)("%s %s", async (method, path, body, expected) => {
    await put("users/1");
    await define();
    const client = await accepted();
    await client.batch();
    const isServer = path.startsWith("/");
    const reply = await server.request(isServer ? path : `/databases/${database.name}/${path}`, {
      method,
      body: JSON.stringify(isServer ? { DatabaseNames: [database.name], HardDelete: true } : body),
    });
    expect(reply.status).toBeLessThan(300);
    expect(await client.next()).toMatchObject(expected);
    expect(await client.next()).toBeNull();
  });
});

describe("bad input", () => {
  test("closes only its own connection", async () => {
    await put("users/1");
    await define();
    const client = await accepted();
    await client.batch();
    const bad = [
      Buffer.from([0, 1, 2, 3, 255, 254]),
      Buffer.from("{".repeat(60_000)),
      Buffer.from("\u0016\u0003\u0001", "latin1"),
      Buffer.from('{"a":"\ud800"}'),
      Buffer.from('{"DatabaseName":{"a":[1]},"Operation":["Subscription"],"OperationVersion":{}}'),
      Buffer.from("}}}}"),
    ];
    for (const bytes of bad) {
      const socket = net.connect(server.running.address.tcpPort, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.end(bytes);
      await new Promise((resolve) => socket.resume().once("close", resolve));
    }
    client.send(acknowledge);
    expect(await client.next()).toEqual({ Type: "Confirm" });
    expect(server.errors).toEqual([]);
  });
});

describe("over TLS", () => {
  let admin: TcpClient;
  const open = (options: object, pair: Parameters<typeof openTcp>[3], name = "db") =>
    openTcp(secure, options, name, pair).then((client) => {
      opened.push(client);
      return client;
    });

  beforeEach(async () => {
    const db = await secure.running.services.databases.find("db");
    if (db === undefined) throw new Error("no database");
    await openedDatabase(db).put("users/1", { "@metadata": { "@collection": "Users" } });
    if (db.subscriptions.list().length === 0) {
      await db.subscriptions.put({ name: "s", query: "from Users" }, ++count);
    }
  });

  test("an admin and a user with write access receive documents", async () => {
    admin = await open({ Strategy: "WaitForFree" }, secure.admin);
    expect(await admin.next()).toMatchObject({ Status: "Accepted" });
    expect(idsOf(await admin.batch())).toEqual(["users/1"]);
    admin.close();
    const user = await secure.client({ permissions: { db: "ReadWrite" } });
    const client = await open({ Strategy: "WaitForFree" }, user);
    expect(await client.next()).toMatchObject({ Status: "Accepted" });
    client.close();
  });

  test.each(["none", "unknown", "reader", "other"])(
    "a client without access is rejected: %s",
    async (who) => {
      const pair =
        who === "none"
          ? noCertificate
          : who === "unknown"
            ? await makeClientCertificate(await makeAuthority("another"), "stranger")
            : await secure.client({
                permissions: who === "reader" ? { db: "Read" } : { other: "Admin" },
              });
      for (const name of ["db", "missing"]) {
        const client = await connectTcp(secure, pair);
        opened.push(client);
        client.send(headerOf(name));
        expect(await client.next()).toMatchObject({
          Status: "AuthorizationFailed",
          Message: expect.any(String),
        });
        expect(await client.next()).toBeNull();
      }
    },
  );

  test("a client that loses its rights loses the connection", async () => {
    const pair = await secure.client({ permissions: { db: "ReadWrite" } });
    const client = await open({ Strategy: "WaitForFree" }, pair);
    expect(await client.next()).toMatchObject({ Status: "Accepted" });
    await client.batch();
    const { certificates } = secure.running.services;
    const { fingerprint } = new X509Certificate(pair.certificate);
    await certificates.delete(fingerprint.replaceAll(":", ""));
    expect(await client.next()).toMatchObject({
      Type: "Error",
      Exception: expect.stringMatching(/AuthorizationException/),
    });
    expect(await client.next()).toBeNull();
  });

  test("a client with another protocol receives nothing", async () => {
    const socket = net.connect(secure.running.address.tcpPort, "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined);
    socket.write(JSON.stringify(headerOf("db")));
    await new Promise((resolve) => socket.once("close", resolve));
    expect(Buffer.concat(chunks).toString("latin1")).not.toContain("Status");
  });
});

test("the port is announced, and closes with the server", async () => {
  const own = await startTestServer({
    unsecured: true,
    flags: ["--ServerUrl.Tcp=tcp://127.0.0.1:0"],
  });
  const { tcpPort } = own.running.address;
  const url = `tcp://127.0.0.1:${tcpPort}`;
  expect((await own.request("/info/tcp")).json).toMatchObject({ Url: url, Urls: [url] });
  const client = await connectTcp(own);
  await own.stop();
  expect(await client.next()).toBeNull();
  await expect(connectTcp(own)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
