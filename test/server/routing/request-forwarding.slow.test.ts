/**
 * Request forwarding in a cluster: requests run on the node that can serve them, with real servers
 * and a fake cluster view.
 */
import { createHash, randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import type * as http from "node:http";
import * as https from "node:https";
import * as net from "node:net";
import { PassThrough } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type CertificatePair, makeServerCertificate } from "../../../certs/authority.ts";
import { ReplicaPositions } from "../../../server/cluster/replica-positions.ts";
import { routes } from "../../../server/endpoints/route-table.ts";
import type { Exchange } from "../../../server/http/exchange.ts";
import type { DatabaseRoute, Route } from "../../../server/routing/route.ts";
import { ChangesSocket } from "../../support/changes-socket.ts";
import { type FakeDatabase, FakeNodes } from "../../support/fake-nodes.ts";
import {
  type Reply,
  type RequestOptions,
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../support/start-test-server.ts";
import { connectTcp } from "../../support/tcp-client.ts";

const noLeaderType = "Raven.Client.Exceptions.Cluster.NoLeaderException";

let cluster: FakeNodes;
let [a, b, c]: TestServer[] = [];
let writer: CertificatePair;
let db: FakeDatabase;

beforeAll(async () => {
  const databases = [{ name: "Shop" }];
  const start = (tag: string) => {
    const flags = [`--Cluster.NodeTag=${tag.toUpperCase()}`];
    return startTestServer({ databases, flags, routes: watched(tag) });
  };
  [a, b, c] = await Promise.all(["a", "b", "c"].map(start));
  writer = await server("a").client({ permissions: { shop: "ReadWrite" } }, "writer");
  for (const tag of ["b", "c"]) await register(server(tag), writer);
});
afterAll(stopTestServers);

beforeEach(() => {
  cluster = new FakeNodes();
  for (const tag of ["a", "b", "c"]) cluster.join(server(tag), tag.toUpperCase());
  db = cluster.addDatabase("Shop", ["A", "B", "C"], "B");
});
afterEach(() => cluster.close());

/** Exchanges whose handlers are running, by server. */
const running = new Map<string, Set<Exchange>>();

function watched(tag: string): Route[] {
  const open = new Set<Exchange>();
  running.set(tag, open);
  return routes.map((route): Route => {
    if (route.kind !== "database") return route;
    const handle: DatabaseRoute["handle"] = async (exchange, context) => {
      open.add(exchange);
      try {
        await route.handle(exchange, context);
      } finally {
        open.delete(exchange);
      }
    };
    return { ...route, handle };
  });
}

function server(tag: string): TestServer {
  return { a, b, c }[tag] as TestServer;
}

async function register(
  { running }: TestServer,
  { certificate }: CertificatePair,
  terms: { Disabled?: boolean } = {},
): Promise<void> {
  await running.services.certificates.put(new X509Certificate(certificate), {
    Name: "writer",
    SecurityClearance: "ValidUser",
    Permissions: { shop: "ReadWrite" },
    Disabled: false,
    ...terms,
  });
}

const docs = (id: string) => `/databases/Shop/docs?id=${id}`;

function put(tag: string, id: string, options: RequestOptions = {}, pair = writer): Promise<Reply> {
  const body = JSON.stringify({ by: tag });
  return server(tag).request(docs(id), { method: "PUT", body, ...options }, pair);
}

/** The tags of the servers that store a document, regardless of the cluster. */
async function whereIs(id: string): Promise<string> {
  let found = "";
  for (const tag of ["a", "b", "c"]) {
    const database = await server(tag).running.services.databases.find("Shop");
    if (database?.documents.find(id) != null) found += tag;
  }
  return found;
}

describe("a write", () => {
  test("runs on the leader, also if another node receives it", async () => {
    expect((await put("a", "w/1")).status).toBe(201);
    expect((await put("b", "w/2")).status).toBe(201);
    expect(await whereIs("w/1")).toBe("b");
    expect(await whereIs("w/2")).toBe("b");
  });

  test("works over HTTP/2, and returns the leader's reply", async () => {
    const session = server("a").session(writer);
    const reply = await requestHttp2(session, docs("w/3"), { method: "PUT", body: "{}" });
    expect(reply.status).toBe(201);
    expect(reply.json).toMatchObject({ Id: "w/3" });
    expect(reply.headers["raven-server-version"]).toMatch(/^7\./);
    session.close();
    expect(await whereIs("w/3")).toBe("b");
  });

  test("with an error returns the leader's error", async () => {
    const reply = await put("a", "w/4", {
      headers: { "if-match": '"A:1-AAAAAAAAAAAAAAAAAAAAAA"' },
    });
    expect(reply.status).toBe(409);
    expect(reply.json).toMatchObject({ Type: "Raven.Client.Exceptions.ConcurrencyException" });
  });

  test("is forwarded with its encoding", async () => {
    const body = gzipSync('{"packed":true}');
    const reply = await put("a", "w/5", { body, headers: { "content-encoding": "gzip" } });
    expect(reply.status).toBe(201);
    const stored = await server("b").request(docs("w/5"), {}, writer);
    expect(stored.json).toMatchObject({ Results: [{ packed: true }] });
  });

  test("waits for a leader", async () => {
    db.leader = null;
    const reply = put("a", "w/6");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await whereIs("w/6")).toBe("");
    db.leader = "C";
    cluster.changed();
    expect((await reply).status).toBe(201);
    expect(await whereIs("w/6")).toBe("c");
  });

  test("runs locally if this node became the leader while it waited", async () => {
    db.leader = null;
    const reply = put("a", "w/7");
    await new Promise((resolve) => setTimeout(resolve, 100));
    db.leader = "A";
    cluster.changed();
    expect((await reply).status).toBe(201);
    expect(await whereIs("w/7")).toBe("a");
  });

  test("is rejected after a time without a leader, with a retry time", async () => {
    db.leader = null;
    const startedMs = performance.now();
    const reply = await put("a", "w/8");
    expect(performance.now() - startedMs).toBeGreaterThan(4_000);
    expect(reply.status).toBe(503);
    expect(reply.headers["retry-after"]).toBe("1");
    expect(reply.json).toMatchObject({ Type: noLeaderType });
    expect(await whereIs("w/8")).toBe("");
  }, 15_000);

  test("goes to the next leader if the first node no longer leads", async () => {
    // B learns late of the change, and reports that it does not lead.
    db.roles = { B: "follower" };
    const reply = put("a", "w/9");
    await new Promise((resolve) => setTimeout(resolve, 300));
    db.leader = "C";
    cluster.changed();
    expect((await reply).status).toBe(201);
    expect(await whereIs("w/9")).toBe("c");
  });

  test("goes to the next leader if the first node does not answer", async () => {
    const member = cluster.members.get("B");
    if (member === undefined) throw new Error("B is not a member");
    const closed = net.createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const { port } = closed.address() as net.AddressInfo;
    closed.close();
    await once(closed, "close");
    cluster.members.set("B", { ...member, url: `https://127.0.0.1:${port}` });
    cluster.changed();
    const reply = put("a", "w/10");
    await new Promise((resolve) => setTimeout(resolve, 300));
    db.leader = "C";
    cluster.changed();
    expect((await reply).status).toBe(201);
    expect(await whereIs("w/10")).toBe("c");
  });
});

describe("a read", () => {
  test("is answered by the local copy", async () => {
    await put("b", "r/1");
    expect((await server("a").request(docs("r/1"), {}, writer)).status).toBe(404);
    expect((await server("b").request(docs("r/1"), {}, writer)).status).toBe(200);
  });

  test("is answered by another node if there is no local copy", async () => {
    db.members = ["B", "C"];
    await put("a", "r/2");
    const reply = await server("a").request(docs("r/2"), {}, writer);
    expect(reply.json).toMatchObject({ Results: [{ by: "a" }] });
    const etag = reply.headers.etag ?? "";
    const same = await server("a").request(
      docs("r/2"),
      { headers: { "if-none-match": etag } },
      writer,
    );
    expect([same.status, same.text]).toEqual([304, ""]);
    const head = await server("a").request(docs("r/2"), { method: "HEAD" }, writer);
    expect([head.status, head.headers.etag, head.text]).toEqual([200, etag, ""]);
  });

  test("is answered by the node that the request names", async () => {
    await put("b", "r/3");
    const headers = { "x-ravendb-request-node": "B" };
    expect((await server("a").request(docs("r/3"), { headers }, writer)).status).toBe(200);
    const unknown = { "x-ravendb-request-node": "Z" };
    expect((await server("a").request(docs("r/3"), { headers: unknown }, writer)).status).toBe(404);
  });

  test("is answered by the next node if one does not answer", async () => {
    db.members = ["B", "C"];
    await put("c", "r/4");
    db.leader = "C";
    cluster.changed();
    await put("c", "r/4");
    const member = cluster.members.get("B");
    if (member === undefined) throw new Error("B is not a member");
    cluster.members.set("B", { ...member, url: "https://127.0.0.1:1" });
    db.leader = null;
    cluster.changed();
    expect((await server("a").request(docs("r/4"), {}, writer)).status).toBe(200);
  });

  test("is not answered by a local copy that lags an already seen position", async () => {
    await put("b", "r/6");
    db.visible = { A: 4, B: 5, C: 5 };
    const sendRequest = async (headers = {}) =>
      (await server("a").request(docs("r/6"), { headers }, writer)).status;
    expect(await sendRequest()).toBe(404);
    expect(await sendRequest({ "x-ravendb-request-node": "B" })).toBe(200);
    // The local copy has 200 ms, then the leader answers.
    expect(await sendRequest()).toBe(200);
    const waiting = sendRequest();
    db.visible = { ...db.visible, A: 5 };
    expect(await waiting).toBe(404);
    // If no node has reached the position, the read waits for the next leader.
    db.visible = { A: 4, B: 5, C: 4 };
    db.leader = null;
    cluster.changed();
    const late = sendRequest();
    await new Promise((resolve) => setTimeout(resolve, 500));
    db.leader = "B";
    cluster.changed();
    expect(await late).toBe(200);
  });

  test("is answered by a remote copy that has reached the seen position", async () => {
    db.members = ["B", "C"];
    await put("b", "r/7");
    db.visible = { B: 5, C: 4 };
    const sendRequest = async () => (await server("a").request(docs("r/7"), {}, writer)).status;
    expect(await sendRequest()).toBe(200);
    db.leader = null;
    cluster.heartbeats.set("C", { ageMs: 1, version: "", databases: new Map() });
    cluster.changed();
    // C is queried first, but lags.
    expect(await sendRequest()).toBe(200);
    db.visible = { B: 5, C: 5 };
    expect(await sendRequest()).toBe(404);
  });

  test("is answered only by the leader while the seen position is unknown", async () => {
    db.members = ["B", "C"];
    await put("b", "r/8");
    const shown = vi
      .spyOn(ReplicaPositions.prototype, "of")
      .mockReturnValue(Number.POSITIVE_INFINITY);
    try {
      const sendRequest = async (headers = {}) =>
        (await server("a").request(docs("r/8"), { headers }, writer)).status;
      expect(await sendRequest({ "x-ravendb-request-node": "C" })).toBe(200);
      const member = cluster.members.get("B");
      if (member === undefined) throw new Error("B is not a member");
      cluster.members.set("B", { ...member, url: "https://127.0.0.1:1" });
      const waiting = sendRequest();
      await new Promise((resolve) => setTimeout(resolve, 500));
      cluster.members.set("B", member);
      cluster.changed();
      expect(await waiting).toBe(200);
    } finally {
      shown.mockRestore();
    }
  });

  test("is compressed by the node that composes the reply, as the client accepts", async () => {
    db.members = ["B"];
    const body = JSON.stringify({ long: "x".repeat(20_000) });
    await put("a", "r/5", { body });
    const headers = { "accept-encoding": "gzip" };
    const reply = await server("a").request(docs("r/5"), { headers }, writer);
    expect(reply.headers["content-encoding"]).toBe("gzip");
    expect(reply.body.length).toBeLessThan(2_000);
    const plain = await server("a").request(docs("r/5"), {}, writer);
    expect(plain.headers["content-encoding"]).toBeUndefined();
    expect(plain.json).toMatchObject({ Results: [{ long: "x".repeat(20_000) }] });
  });

  test("of a query has a single request-time header", async () => {
    db.members = ["B"];
    const path = "/databases/Shop/queries";
    const body = JSON.stringify({ Query: "from @all_docs" });
    const reply = await server("a").request(path, { method: "POST", body }, writer);
    expect(reply.status).toBe(200);
    expect(reply.headers["request-time"]).toMatch(/^\d+$/);
  });
});

describe("large bodies", () => {
  const size = 24 * 1024 * 1024;
  const attachment = (id: string) => `/databases/Shop/attachments?id=${id}&name=large`;

  test("are transferred in both directions, and in ranges", async () => {
    await put("b", "l/1");
    db.members = ["B"];
    const body = randomBytes(size);
    const sent = await server("a").request(attachment("l/1"), { method: "PUT", body }, writer);
    expect(sent.status).toBe(201);
    const hash = createHash("sha256").update(body).digest("base64");
    expect(sent.json).toMatchObject({ Size: size, Hash: expect.any(String) });
    const got = await server("a").request(attachment("l/1"), {}, writer);
    expect(createHash("sha256").update(got.body).digest("base64")).toBe(hash);
    const headers = { range: "bytes=100-199" };
    const part = await server("a").request(attachment("l/1"), { headers }, writer);
    expect(part.status).toBe(206);
    expect(part.body.equals(body.subarray(100, 200))).toBe(true);
  });

  test("are not read if they are rejected", async () => {
    const unknown = await server("a").client(
      { permissions: { shop: "ReadWrite" } },
      "unknown to B",
    );
    const { request, received } = upload("a", attachment("l/2"), unknown, size);
    request.write(Buffer.alloc(1024));
    expect((await received).statusCode).toBe(403);
    request.destroy();
    expect(inProgress("a")).toBe(0);
  });

  test("end on the other node, too, when the client disconnects", async () => {
    await put("b", "l/3");
    const { request } = upload("a", attachment("l/3"), writer, size);
    request.write(Buffer.alloc(1024 * 1024));
    await vi.waitFor(() => expect(inProgress("b")).toBe(1));
    request.destroy();
    await vi.waitFor(() => expect(inProgress("b")).toBe(0));
    expect((await server("b").request(attachment("l/3"), {}, writer)).status).toBe(404);
  });

  test("are not buffered on the way if the client does not read", async () => {
    await put("b", "l/4");
    const body = randomBytes(size);
    await server("b").request(attachment("l/4"), { method: "PUT", body }, writer);
    db.members = ["B"];
    const request = https.get(server("a").url + attachment("l/4"), {
      agent: false,
      ...tlsOptions(server("a").authority, writer),
    });
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    await new Promise((resolve) => setTimeout(resolve, 500));
    // B does not read beyond the buffers of the sockets.
    expect(inProgress("b")).toBe(1);
    const hash = createHash("sha256");
    for await (const chunk of response) hash.update(chunk as Buffer);
    expect(hash.digest("hex")).toBe(createHash("sha256").update(body).digest("hex"));
    await vi.waitFor(() => expect(inProgress("b")).toBe(0));
  });

  test("have an unknown outcome if the leader dies during the transfer", async () => {
    const dying = await DyingNode.start();
    const { request, received } = upload("a", attachment("l/5"), writer, size);
    request.write(Buffer.alloc(4 * 1024 * 1024));
    await vi.waitFor(() => expect(dying.byteCount).toBeGreaterThan(1024 * 1024));
    dying.close();
    const response = await received;
    expect(response.statusCode).toBe(503);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({
      Type: noLeaderType,
      Message: expect.stringContaining("may or may not have been executed") as string,
    });
    request.destroy();
  });
});

describe("rights", () => {
  test("are those of the caller on the executing node", async () => {
    const reader = await server("a").client({ permissions: { shop: "ReadWrite" } }, "reader");
    expect((await put("a", "i/1", {}, reader)).status).toBe(403);
    await server("b").running.services.certificates.put(new X509Certificate(reader.certificate), {
      Name: "reader",
      SecurityClearance: "ValidUser",
      Permissions: { shop: "Read" },
      Disabled: false,
    });
    const refused = await put("a", "i/1", {}, reader);
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining("ReadWrite access is required"),
    ]);
    await register(server("b"), reader, { Disabled: true });
    const disabled = await put("a", "i/1", {}, reader);
    expect([disabled.status, disabled.text]).toEqual([
      403,
      expect.stringContaining("unknown to the server"),
    ]);
    await register(server("b"), reader);
    expect((await put("a", "i/1", {}, reader)).status).toBe(201);
  });

  test("cannot be obtained with headers reserved for nodes", async () => {
    const admin = new X509Certificate(server("b").admin.certificate);
    const headers = {
      "x-jackdaw-forwarded": "A",
      "x-jackdaw-caller": admin.fingerprint.replaceAll(":", ""),
    };
    const path = "/admin/certificates";
    expect((await server("b").request(path, { headers }, writer)).status).toBe(403);
    // Nor through a forwarding node.
    const through = "/databases/Shop/admin/indexes/stop";
    const reply = await server("a").request(through, { method: "POST", headers }, writer);
    expect(reply.status).toBe(403);
    // An untrusted header has no effect and is forwarded.
    expect((await put("a", "i/2", { headers })).status).toBe(201);
    expect(await whereIs("i/2")).toBe("b");
  });

  test("of a forwarding node are those of its caller", async () => {
    const node = pairOf("a");
    const caller = new X509Certificate(writer.certificate).fingerprint.replaceAll(":", "");
    const headers = { "x-jackdaw-forwarded": "A", "x-jackdaw-caller": caller };
    const path = "/admin/certificates";
    expect((await server("b").request(path, {}, node)).status).toBe(200);
    expect((await server("b").request(path, { headers }, node)).status).toBe(403);
    expect((await put("b", "i/3", { headers }, node)).status).toBe(201);
    const nobody = { ...headers, "x-jackdaw-caller": "00".repeat(20) };
    const refused = await put("b", "i/4", { headers: nobody }, node);
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining("unknown to the server"),
    ]);
  });

  test("of a node end when it is removed, also on open connections", async () => {
    const node = pairOf("a");
    const session = server("b").session(node);
    expect((await requestHttp2(session, "/admin/certificates")).status).toBe(200);
    const { request, received } = upload("b", "/databases/Shop/bulk_insert?id=1", node, 1000);
    received.catch(() => undefined);
    request.write("[");
    await vi.waitFor(() => expect(inProgress("b")).toBe(1));
    const closed = new Promise((resolve) => request.once("close", resolve));
    cluster.members.delete("A");
    cluster.changed();
    await closed;
    expect((await requestHttp2(session, "/admin/certificates")).status).toBe(403);
    expect((await put("a", "i/5")).status).toBe(403);
    cluster.join(server("a"), "A");
    expect((await requestHttp2(session, "/admin/certificates")).status).toBe(200);
    session.close();
  });

  test("that are revoked abort running requests on another node", async () => {
    const other = await server("a").client({ permissions: { shop: "ReadWrite" } }, "other");
    await register(server("b"), other);
    const { request } = upload("a", "/databases/Shop/bulk_insert?id=2", other, 100_000);
    request.write("[");
    await vi.waitFor(() => expect(inProgress("b")).toBe(1));
    await register(server("b"), other, { Disabled: true });
    await vi.waitFor(() => expect(inProgress("b")).toBe(0));
    await vi.waitFor(() => expect(inProgress("a")).toBe(0));
    request.destroy();
  });
});

describe("between nodes", () => {
  test("nothing is sent to a node whose certificate is not the registered one", async () => {
    const stranger = await DyingNode.start(pairOf("c"));
    const reply = put("a", "b/1");
    await vi.waitFor(() => expect(stranger.connectionCount).toBeGreaterThan(0));
    db.leader = "C";
    cluster.changed();
    expect((await reply).status).toBe(201);
    expect(stranger.byteCount).toBe(0);
    stranger.close();
  });

  test("a forwarded request is not forwarded again", async () => {
    db.leader = "C";
    db.roles = { B: "leader", C: "follower" };
    const node = pairOf("a");
    const caller = new X509Certificate(writer.certificate).fingerprint.replaceAll(":", "");
    const headers = { "x-jackdaw-forwarded": "A", "x-jackdaw-caller": caller };
    const reply = await put("c", "b/2", { headers }, node);
    expect([reply.status, reply.headers["x-jackdaw-misplaced"]]).toEqual([503, "1"]);
    expect(await whereIs("b/2")).toBe("");
  });

  test("a running request to a removed node is completed, and the node receives no new requests", async () => {
    const peers = cluster.join(server("a"), "A");
    const body = new PassThrough();
    const target = "/databases/Shop/bulk_insert?id=3";
    const reply = peers.send("B", { method: "POST", target, body });
    body.write("[");
    await vi.waitFor(() => expect(inProgress("b")).toBe(1));
    cluster.members.delete("B");
    cluster.changed();
    body.end("]");
    const { status, body: content } = await reply;
    content.resume();
    expect(status).toBe(201);
    await expect(peers.send("B", { method: "GET", target: "/build/version" })).rejects.toThrow(
      "it is not a member of the cluster",
    );
  });

  test("a new certificate of this node is presented on new connections", async () => {
    expect((await put("a", "b/3")).status).toBe(201);
    const { presentedCertificate } = server("a").running.services;
    const next = await makeServerCertificate(server("a").authority, ["127.0.0.1"]);
    await presentedCertificate?.replace(Buffer.from(`${next.certificate}\n${next.key}`), "");
    // B does not know it yet.
    expect((await put("a", "b/4")).status).toBe(403);
    cluster.join(server("a"), "A");
    expect((await put("a", "b/5")).status).toBe(201);
  });
});

describe("a web socket", () => {
  const path = "/databases/Shop/changes";

  test("is forwarded in both directions if there is no local copy", async () => {
    db.members = ["B"];
    const socket = await ChangesSocket.open(server("a"), path, writer);
    await socket.command("watch-docs");
    await put("a", "s/1");
    await socket.until(({ Type }) => Type === "DocumentChange");
    const ended = socket.closed;
    cluster.members.delete("A");
    cluster.changed();
    await ended;
  });

  test("is closed when its client loses its rights", async () => {
    db.members = ["B"];
    const other = await server("a").client({ permissions: { shop: "Read" } }, "watcher");
    await register(server("b"), other);
    const socket = await ChangesSocket.open(server("a"), path, other);
    await socket.command("watch-docs");
    await server("a").running.services.certificates.delete(
      new X509Certificate(other.certificate).fingerprint.replaceAll(":", ""),
    );
    await socket.closed;
  });

  test("is served by the local copy if there is one", async () => {
    const socket = await ChangesSocket.open(server("a"), path, writer);
    await socket.command("watch-docs");
    cluster.members.delete("B");
    cluster.changed();
    await socket.command("watch-docs");
    socket.socket.close();
  });

  test("that the other node rejects is rejected here", async () => {
    db.members = ["B"];
    const unknown = await server("a").client({ permissions: { shop: "Read" } }, "not on B");
    await expect(ChangesSocket.open(server("a"), path, unknown)).rejects.toThrow("403");
  });
});

describe("a worker of a subscription", () => {
  const options = { SubscriptionName: "s", Strategy: "OpenIfFree" };
  const header = { DatabaseName: "Shop", Operation: "Subscription", OperationVersion: 53_000 };

  test("is redirected to the leader", async () => {
    const client = await connectTcp(server("a"), writer);
    client.send(header);
    expect(await client.next()).toMatchObject({ Status: "Ok" });
    client.send(options);
    expect(await client.next()).toMatchObject({
      Type: "ConnectionStatus",
      Status: "Redirect",
      Data: { CurrentTag: "A", RedirectedTag: "B" },
    });
    expect(await client.next()).toBe(null);
  });

  test("finds the leader through any other node", async () => {
    const query = "database=Shop&remote-task=s&tag=x&verify-database=true";
    const reply = await server("a").request(`/info/remote-task/tcp?${query}`, {}, writer);
    const own = server("b").running.address.tcpUrl;
    expect(reply.json).toMatchObject({ Urls: [own] });
  });
});

function inProgress(tag: string): number {
  return running.get(tag)?.size ?? 0;
}

/** The certificate and key of a server. */
function pairOf(tag: string): CertificatePair {
  const { cert, key } = server(tag).running.certificate?.tls ?? {};
  return { certificate: String(cert), key: String(key) };
}

function upload(
  tag: string,
  path: string,
  pair: CertificatePair,
  length: number,
): { request: http.ClientRequest; received: Promise<http.IncomingMessage> } {
  const request = https.request(server(tag).url + path, {
    method: path.includes("bulk_insert") ? "POST" : "PUT",
    headers: { "content-length": length },
    agent: false,
    ...tlsOptions(server(tag).authority, pair),
  });
  request.on("error", () => undefined);
  const received = once(request, "response").then(([response]) => response as http.IncomingMessage);
  received.catch(() => undefined);
  return { request, received };
}

/** Listens at B's address, reads everything, and answers nothing. */
class DyingNode {
  byteCount = 0;
  connectionCount = 0;
  readonly #server: https.Server;
  readonly #sockets = new Set<net.Socket>();

  private constructor({ certificate, key }: CertificatePair) {
    this.#server = https.createServer({
      cert: certificate,
      key,
      requestCert: true,
      rejectUnauthorized: false,
    });
    this.#server.on("connection", (socket: net.Socket) => {
      this.connectionCount++;
      this.#sockets.add(socket);
    });
    const take = (request: http.IncomingMessage) => {
      this.byteCount++;
      request.on("data", (chunk: Buffer) => (this.byteCount += chunk.length));
      request.on("error", () => undefined);
    };
    this.#server.on("request", take);
    this.#server.on(
      "checkContinue",
      (request: http.IncomingMessage, response: http.ServerResponse) => {
        response.writeContinue();
        take(request);
      },
    );
  }

  static async start(pair = pairOf("b")): Promise<DyingNode> {
    const node = new DyingNode(pair);
    node.#server.listen(0, "127.0.0.1");
    await once(node.#server, "listening");
    const { port } = node.#server.address() as net.AddressInfo;
    const member = cluster.members.get("B");
    if (member === undefined) throw new Error("B is not a member");
    cluster.members.set("B", { ...member, url: `https://127.0.0.1:${port}` });
    cluster.changed();
    return node;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
