/** HTTP threads: worker threads that share a descriptor, and what clients see of them. Their code must be built. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import * as tls from "node:tls";
import { Worker } from "node:worker_threads";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { routes } from "../../../server/endpoints/route-table.ts";
import type { Route } from "../../../server/routing/route.ts";
import {
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../support/start-test-server.ts";

afterAll(stopTestServers);

const post = Worker.prototype.postMessage;
const databases = [{ name: "db" }];

function start(threads: number): Promise<TestServer> {
  return startTestServer({ databases, flags: [`--Http.Threads=${threads}`] });
}

/** A document of about `bytes`. */
function documentOf(bytes: number): string {
  return JSON.stringify({ Text: "0123456789".repeat(bytes / 10) });
}

describe.each([1, 3])("%i HTTP threads", (threads) => {
  test("serve both protocols, and requests of any size", async () => {
    const server = await start(threads);
    const session = server.session(server.admin);
    for (const bytes of [10, 15_000, 300_000, 3_000_000]) {
      const body = documentOf(bytes);
      const path = `/databases/db/docs?id=a${bytes}`;
      expect((await server.request(path, { method: "PUT", body })).status).toBe(201);
      expect((await requestHttp2(session, path, { method: "PUT", body })).status).toBe(201);
      const read = [await server.request(path), await requestHttp2(session, path)];
      for (const { text } of read) {
        expect((JSON.parse(text) as { Results: unknown[] }).Results).toMatchObject([
          JSON.parse(body),
        ]);
      }
    }
    session.close();
    await server.stop();
    await expect(server.request("/build/version")).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
  });

  test("answer web sockets", async () => {
    const server = await start(threads);
    const socket = new WebSocket(
      `${server.url.replace("http", "ws")}/databases/db/changes`,
      tlsOptions(server.authority, server.admin),
    );
    const messages: string[] = [];
    socket.on("message", (data: Buffer) => messages.push(String(data)));
    await once(socket, "open");
    socket.send(JSON.stringify({ CommandId: 1, Command: "watch-docs" }));
    await expect.poll(() => messages.join()).toContain('"CommandId":1');
    await server.request("/databases/db/docs?id=a", { method: "PUT", body: "{}" });
    await expect.poll(() => messages.join()).toContain('"Id":"a"');
    const closed = once(socket, "close");
    await server.stop();
    expect((await closed)[0]).toBe(1001);
  });

  test("refuse a web socket like any other request", async () => {
    const server = await start(threads);
    const socket = new WebSocket(
      `${server.url.replace("http", "ws")}/databases/none/changes`,
      tlsOptions(server.authority, server.admin),
    );
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
    expect(response.statusCode).toBe(400);
    await server.stop();
  });

  test("lose the rights of a certificate that is deleted, on open connections", async () => {
    const server = await start(threads);
    const pair = await server.client({ clearance: "Operator" });
    const sessions = Array.from({ length: 2 * threads }, () => server.session(pair));
    const statuses = () =>
      Promise.all(
        sessions.map(async (session) => (await requestHttp2(session, "/databases")).status),
      );
    expect(new Set(await statuses())).toEqual(new Set([200]));
    const thumbprint = server.running.services.certificates
      .list()
      .find(({ Name }) => Name === "test client")?.Thumbprint;
    const path = `/admin/certificates?thumbprint=${thumbprint}`;
    expect((await server.request(path, { method: "DELETE" })).status).toBe(204);
    expect(new Set(await statuses())).toEqual(new Set([403]));
    for (const session of sessions) session.close();
    await server.stop();
  });
});

test("decode and encode bodies on their thread", async () => {
  const server = await start(1);
  const { gzipSync } = await import("node:zlib");
  const body = gzipSync(documentOf(100_000));
  const headers = { "content-encoding": "gzip" };
  const path = "/databases/db/docs?id=a";
  expect((await server.request(path, { method: "PUT", body, headers })).status).toBe(201);
  const packed = await server.request(path, { headers: { "accept-encoding": "gzip" } });
  expect(packed.headers["content-encoding"]).toBe("gzip");
  const broken = { method: "PUT", body: Buffer.from("not gzip"), headers };
  expect((await server.request(path, broken)).status).toBe(400);
  const unknown = { method: "PUT", body, headers: { "content-encoding": "snappy" } };
  expect((await server.request(path, unknown)).status).toBe(415);
  await server.stop();
});

test.each([1, 2])("a thread of %i that dies is replaced", async (threads) => {
  const workers = new Set<Worker>();
  const spy = vi.spyOn(Worker.prototype, "postMessage").mockImplementation(function (
    this: Worker,
    ...args: Parameters<Worker["postMessage"]>
  ) {
    if (this.threadId > 0) workers.add(this);
    return post.apply(this, args);
  });
  onTestFinished(() => spy.mockRestore());
  const server = await start(threads);
  expect((await server.request("/build/version")).status).toBe(200);
  const http = [...workers].slice(-threads);
  await http[0]?.terminate();
  await expect
    .poll(
      () =>
        server.request("/build/version").then(
          ({ status }) => status,
          () => 0,
        ),
      {
        timeout: 8_000,
      },
    )
    .toBe(200);
  const metrics = await server.request("/admin/monitoring/v1/prometheus");
  expect(metrics.text).toMatch(/^jackdaw_http_thread_restarts_total 1$/m);
  expect(server.errors).toEqual([]);
  await server.stop();
});

test("a streamed reply is held until the client has read it, and no longer", async () => {
  const server = await start(1);
  const session = server.session(server.admin);
  const path = "/databases/db/attachments?id=a&name=large";
  await requestHttp2(session, "/databases/db/docs?id=a", { method: "PUT", body: "{}" });
  const body = Buffer.alloc(500_000, "0123456789");
  expect((await requestHttp2(session, path, { method: "PUT", body })).status).toBe(201);
  expect((await requestHttp2(session, path)).body.equals(body)).toBe(true);
  const threads = async () =>
    ((await server.request("/admin/metrics/history")).json as { HttpThreads: object[] })
      .HttpThreads;
  // The session is open; the connection of the request for metrics may be counted, too.
  await expect
    .poll(threads, { timeout: 5_000 })
    .toMatchObject([{ QueuedBytes: 0, Connections: expect.toSatisfy((n: number) => n >= 1) }]);
  session.close();
  await server.stop();
});

/** Streams 40 chunks from one buffer, which is overwritten after each write has completed. */
const reusing: Route = {
  kind: "server",
  method: "GET",
  path: "/test/reusing",
  access: "valid-user",
  async handle(exchange) {
    const stream = exchange.stream(200, { "content-type": "application/octet-stream" });
    const chunk = Buffer.alloc(100_000);
    for (let n = 1; n <= 40; n++) {
      chunk.fill(n);
      await stream.write(chunk);
    }
    chunk.fill(0);
    await stream.end();
  },
};

test.each([0, 1])(
  "with %i HTTP threads a source may reuse memory after a write",
  async (threads) => {
    const flags = [`--Http.Threads=${threads}`];
    const server = await startTestServer({ flags, routes: [...routes, reusing] });
    const session = server.session(server.admin);
    for (const { body } of [
      await server.request(reusing.path),
      await requestHttp2(session, reusing.path),
    ]) {
      const starts = Array.from({ length: 40 }, (_, n) =>
        body.subarray(n * 100_000, (n + 1) * 100_000),
      );
      expect(starts.map((chunk, n) => chunk.every((byte) => byte === n + 1))).not.toContain(false);
      expect(body).toHaveLength(4_000_000);
    }
    session.close();
    await server.stop();
  },
);

test("a TLS session is resumed on any thread", async () => {
  const server = await start(3);
  const connect = (session: { readonly session?: Buffer }) =>
    tls.connect({
      ...tlsOptions(server.authority, server.admin),
      host: "127.0.0.1",
      port: server.port,
      ALPNProtocols: ["http/1.1"],
      ...session,
    });
  const first = connect({});
  first.resume(); // tickets arrive after the handshake
  const [session] = (await once(first, "session")) as [Buffer];
  first.destroy();
  // Connections that open together are accepted by different threads.
  const resumed = await Promise.all(
    Array.from({ length: 24 }, async () => {
      const socket = connect({ session });
      await once(socket, "secureConnect");
      const isReused = socket.isSessionReused();
      socket.destroy();
      return isReused;
    }),
  );
  expect(resumed).not.toContain(false);
  await server.stop();
});
