/** Watching requests over a web socket: the messages, their recipients, and no document data. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Exchange } from "../../../server/http/exchange.ts";
import {
  maskedTarget,
  TrafficWatch,
  trafficKind,
  type WatchSocket,
  watchersMax,
} from "../../../server/monitoring/traffic-watch.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../support/start-test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "mine" }, { name: "other" }] });
});
afterAll(stopTestServers);

type Message = Record<string, unknown>;

async function watch(query = ""): Promise<{ messages: Message[]; socket: WebSocket }> {
  const address = `${server.url.replace(/^http/, "ws")}/admin/traffic-watch${query}`;
  const socket = new WebSocket(address, tlsOptions(server.authority, server.admin));
  const messages: Message[] = [];
  socket.on("message", (data) => messages.push(JSON.parse(String(data)) as Message));
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  return { messages, socket };
}

test("each completed request is sent in RavenDB's format, of one database on request", async () => {
  const all = await watch();
  const other = await watch("?resourceName=OTHER");
  const body = '{"secret":"s3cret"}';
  await server.request("/databases/mine/docs?id=users/1", { method: "PUT", body });
  const Query = JSON.stringify({
    Query: "from Users where secret = 's3cret' and n = $p",
    QueryParameters: { p: "s3cret" },
  });
  await server.request("/databases/other/queries", { method: "POST", body: Query });
  const address = encodeURIComponent("from Users where secret = 's3cret'");
  await server.request(`/databases/other/streams/queries?query=${address}&parameters=s3cret`);
  await server.request("/nothing");
  await expect.poll(() => all.messages.length).toBe(4);
  await expect.poll(() => other.messages.length).toBe(2);
  expect(other.messages).toEqual(all.messages.slice(1, 3));
  const [put, query, stream, nothing] = all.messages;
  expect(Object.keys(put as Message).join(" ")).toBe(
    "TrafficWatchType TimeStamp DatabaseName CustomInfo ClientIP ProxyIP CertificateThumbprint CertificateName " +
      "SsoUserIdentity RequestId HttpMethod ElapsedMilliseconds ResponseStatusCode RequestUri AbsoluteUri " +
      "RequestSizeInBytes ResponseSizeInBytes Type",
  );
  expect(put).toMatchObject({
    TrafficWatchType: "Http",
    DatabaseName: "mine",
    CustomInfo: "users/1",
    HttpMethod: "PUT",
    ResponseStatusCode: 201,
    RequestUri: `${server.url}/databases/mine/docs?id=users/1`,
    AbsoluteUri: server.url,
    RequestSizeInBytes: body.length,
    Type: "Documents",
    ClientIP: "127.0.0.1",
    CertificateThumbprint: expect.stringMatching(/^[0-9A-F]{40}$/) as string,
    TimeStamp: expect.stringMatching(/^\d{4}-.*Z$/) as string,
  });
  expect(query).toMatchObject({
    DatabaseName: "other",
    CustomInfo: "from Users where secret = ? and n = $p",
    Type: "Queries",
  });
  expect(stream).toMatchObject({
    CustomInfo: "from Users where secret = ?",
    RequestUri: `${server.url}/databases/other/streams/queries?query=?&parameters=?`,
    Type: "Streams",
  });
  expect(nothing).toMatchObject({ DatabaseName: "N/A", ResponseStatusCode: 400, Type: "None" });
  expect(JSON.stringify(all.messages)).not.toContain("s3cret");
  for (const { socket } of [all, other]) socket.close();
  await expect.poll(() => server.running.services.requests.traffic.isOn).toBe(false);
});

test("only operators can watch", async () => {
  const user = await server.client({ permissions: { mine: "Admin" } });
  const address = `${server.url.replace(/^http/, "ws")}/admin/traffic-watch`;
  const socket = new WebSocket(address, tlsOptions(server.authority, user));
  const status = await new Promise((resolve) => {
    socket.once("unexpected-response", (_, reply) => resolve(reply.statusCode));
    socket.once("error", () => undefined);
  });
  expect(status).toBe(403);
});

test("a slow watcher misses messages, and excess watchers are rejected", () => {
  const traffic = new TrafficWatch();
  const sent: string[] = [];
  let close = (): void => undefined;
  const socket = {
    bufferedAmount: 0,
    send: (text: string) => sent.push(text),
    on: (_: string, listener: () => void) => {
      close = listener;
    },
  };
  expect(traffic.add(socket as unknown as WatchSocket, null)).toBe(true);
  const exchange = {
    identity: { thumbprint: "", label: "" },
    connection: { remoteAddress: "::1" },
    method: "GET",
    target: "/",
    baseUrl: "http://x",
    query: { get: () => undefined },
    header: () => undefined,
    status: 200,
    replyBytes: 1,
  } as unknown as Exchange;
  traffic.ended(exchange, "/", 1);
  socket.bufferedAmount = 1024 * 1024;
  traffic.ended(exchange, "/", 1);
  expect([sent.length, traffic.missedCount]).toEqual([1, 1]);
  const add = () => traffic.add({ ...socket } as unknown as WatchSocket, null);
  for (let i = 1; i < watchersMax; i++) expect(add()).toBe(true);
  expect(add()).toBe(false);
  close();
  expect(traffic.isOn).toBe(true);
});

test("requests have RavenDB's types", () => {
  const of = (what: string) => {
    const [method = "", path = ""] = what.split(" ");
    return trafficKind(method, path.replace("~", "/databases/:database"));
  };
  expect(
    ["GET ~/docs", "DELETE ~/docs", "PATCH ~/queries", "POST ~/bulk_docs", "GET ~/stats"].map(of),
  ).toEqual(["Documents", "None", "Queries", "BulkDocs", "None"]);
  expect(maskedTarget("/a?x=1&query=from%20X&Parameters=s&y=2")).toBe(
    "/a?x=1&query=?&Parameters=?&y=2",
  );
});
