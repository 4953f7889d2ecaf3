/** `jackdaw studio` as a proxy for a real server over TLS, and for misbehaving servers. */
import { once } from "node:events";
import * as http from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { Connection } from "../../../cli/connection.ts";
import {
  type ProxyOptions,
  StudioProxy,
  sessionMsMax,
  unusedMsMax,
} from "../../../cli/studio/studio-proxy.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";
import { codeOf, ProxyClient } from "../../support/studio-proxy.ts";

let server: TestServer;
const opened: StudioProxy[] = [];
const upstreams: http.Server[] = [];

beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "shop" }] });
});
afterEach(async () => {
  for (const proxy of opened.splice(0)) await proxy.close();
  for (const one of upstreams.splice(0)) {
    one.close();
    one.closeAllConnections();
  }
});
afterAll(() => stopTestServers());

async function start(options: Partial<ProxyOptions> = {}): Promise<ProxyClient> {
  const connection: Connection = {
    url: new URL(server.url),
    cert: server.admin.certificate,
    key: server.admin.key,
    ca: server.authority.certificate,
  };
  const proxy = await StudioProxy.start({ connection, port: 0, ...options });
  opened.push(proxy);
  return new ProxyClient(proxy);
}

/** A page with a session, connected to a server of the test. */
async function startBefore(handle: http.RequestListener, more: Partial<ProxyOptions> = {}) {
  const upstream = http.createServer(handle);
  upstreams.push(upstream);
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const url = new URL(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`);
  const connection = { url, cert: undefined, key: undefined, ca: undefined };
  const page = await start({ connection, ...more });
  await page.enter();
  return { page, upstream, url };
}

describe("access", () => {
  test("reads and writes use the command's certificate", async () => {
    const page = await start();
    expect((await page.enter()).status).toBe(200);
    const body = JSON.stringify({ Name: "Ann", "@metadata": { "@collection": "Users" } });
    const put = await page.request("/databases/shop/docs?id=users/1", { method: "PUT", body });
    expect(put.status).toBe(201);
    const { text: found } = await page.request("/databases/shop/docs?id=users/1");
    expect(found).toContain('"Name":"Ann"');
    const { json } = await page.request("/certificates/whoami");
    expect(json).toMatchObject({ SecurityClearance: "ClusterAdmin" });
  });

  test("is denied without a session, with a used code, or with a used ticket", async () => {
    const page = await start();
    expect((await page.request("/databases")).json).toMatchObject({ Type: "Jackdaw.NotSignedIn" });
    const code = codeOf(page.proxy.newAddress());
    await page.enter(code);
    const again = await page.enter(code);
    expect([again.status, again.headers["set-cookie"]]).toEqual([401, undefined]);
    const { cookie = "" } = page.session;
    const sendRequest = async (path: string) => {
      const headers = { "sec-fetch-site": "same-origin", cookie };
      const response = await fetch(page.origin + path, { headers });
      return response.status;
    };
    const address = await page.withTicket("/databases");
    expect(await sendRequest(address)).toBe(200);
    expect(await sendRequest(address)).toBe(401);
    expect(await sendRequest("/databases")).toBe(401);
  });

  test("a foreign page gets 403 without a body, whatever it sends", async () => {
    const page = await start();
    await page.enter();
    const foreign = [
      { host: `evil.example:${page.proxy.port}` },
      { origin: "https://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ];
    for (const headers of foreign) {
      for (const path of ["/databases", "/studio/databases", "/", "/studio/session"]) {
        for (const method of ["GET", "POST", "OPTIONS"]) {
          const reply = await page.request(path, { method, headers });
          expect([reply.status, reply.text], `${method} ${path}`).toEqual([403, ""]);
          const allowing = Object.keys(reply.headers).filter((name) =>
            /^access-control/.test(name),
          );
          expect(allowing).toEqual([]);
        }
      }
    }
  });

  test("the page itself is public on this machine, and is never forwarded", async () => {
    const page = await start();
    expect((await page.request("/")).headers["location"]).toBe("/studio/databases");
    const reply = await page.request("/studio/db/shop/docs");
    expect([200, 404]).toContain(reply.status); // 404 if the studio was not built.
    expect(reply.text).not.toContain("NotSignedIn");
    expect((await page.request("/studio/x", { method: "POST" })).status).toBe(405);
    const long = { method: "POST", body: JSON.stringify({ code: "x".repeat(20_000) }) };
    expect((await page.request("/studio/session", long)).status).toBe(400);
  });

  test("ends after 8 hours, or 30 minutes without a request", async () => {
    const clock = { ms: 1 };
    const page = await start({ nowMs: () => clock.ms });
    await page.enter();
    clock.ms += unusedMsMax - 1;
    expect(page.proxy.endReason()).toBeUndefined();
    await page.request("/databases");
    clock.ms += 1;
    expect(page.proxy.endReason()).toBeUndefined();
    clock.ms += unusedMsMax;
    expect(page.proxy.endReason()).toBe("unused for 30 minutes");
    clock.ms = sessionMsMax;
    await page.request("/databases");
    clock.ms += 1;
    expect(page.proxy.endReason()).toBe("a session lasts 8 hours");
  });
});

describe("forwarding", () => {
  test("removes headers of the session, the origin and the connection, in both directions", async () => {
    let seen: http.IncomingHttpHeaders = {};
    const { page, url } = await startBefore((request, response) => {
      seen = request.headers;
      response.writeHead(302, {
        location: `${request.url === "/away" ? "https://else.example" : url.origin}/there`,
        "set-cookie": "a=1",
        "access-control-allow-origin": "*",
        connection: "x-secret, close",
        "x-secret": "1",
        "content-security-policy": "default-src *",
        etag: '"1"',
      });
      response.end();
    });
    const headers = {
      connection: "keep-alive, x-mine",
      "x-mine": "1",
      te: "trailers",
      "if-match": "1",
    };
    const reply = await page.request("/a?b=%20c", { headers });
    expect(seen).toMatchObject({ host: url.host, "if-match": "1" });
    const kept = ["cookie", "origin", "x-jackdaw-session", "sec-fetch-site", "x-mine", "te"];
    expect(kept.filter((name) => name in seen)).toEqual([]);
    expect(reply).toMatchObject({ status: 302, headers: { location: "/there", etag: '"1"' } });
    expect(reply.headers["content-security-policy"]).toContain("sandbox");
    const dropped = ["set-cookie", "access-control-allow-origin", "x-secret"];
    expect(dropped.filter((name) => name in reply.headers)).toEqual([]);
    const away = await page.request("/away");
    expect(away.headers["location"]).toBe("https://else.example/there");
  });

  test("stores a download instead of displaying it", async () => {
    const { page } = await startBefore((request, response) => {
      const named = { "content-disposition": "inline; filename=a.html" };
      response.writeHead(200, {
        "content-type": "text/html",
        ...(request.url === "/named" ? named : {}),
      });
      response.end("<script>alert(1)</script>");
    });
    for (const [path, disposition] of [
      ["/named", "attachment; filename=a.html"],
      ["/plain", "attachment"],
    ] as const) {
      const { headers } = await fetch(page.origin + (await page.withTicket(path)), {
        headers: { "sec-fetch-site": "same-origin", cookie: page.session["cookie"] ?? "" },
      });
      expect(headers.get("content-disposition")).toBe(disposition);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });

  test("streams bodies in both directions, also slow ones", async () => {
    const { page } = await startBefore((request, response) => {
      response.writeHead(200);
      request.on("data", (chunk: Buffer) => response.write(`got ${chunk}`));
      request.on("end", () => response.end());
    });
    const request = page.open("/echo", "POST");
    request.write("one");
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    const next = async () => String(((await once(response, "data")) as [Buffer])[0]);
    expect(await next()).toBe("got one");
    request.write("two");
    expect(await next()).toBe("got two");
    request.end();
    await once(response, "end");
  });

  test("sends no faster than the receiver reads", async () => {
    const { page } = await startBefore((request) => request.pause());
    const request = page.open("/held", "POST");
    const piece = Buffer.alloc(1024 * 1024);
    let written = 0;
    const write = () => {
      while (written < 256) {
        written++;
        if (!request.write(piece)) return;
      }
    };
    request.on("drain", write);
    request.on("error", () => undefined);
    write();
    await sleep(500);
    expect(written).toBeLessThan(64);
    request.destroy();
  });

  test("aborts a stalled body, but not a slow reply", async () => {
    let isAborted = false;
    const { page } = await startBefore(
      (request, response) => {
        request.on("close", () => {
          isAborted ||= !request.complete;
        });
        request.resume();
        request.on("end", () => setTimeout(() => response.end("late"), 400));
      },
      { idleMs: 100 },
    );
    expect((await page.request("/slow", { method: "POST", body: "x" })).text).toBe("late");
    const request = page.open("/still", "POST");
    request.write("x");
    await once(request, "error");
    await expect.poll(() => isAborted).toBe(true);
  });

  test("aborts the server's request when the page disconnects", async () => {
    let isClosed = false;
    const { page } = await startBefore((_request, response) => {
      response.on("close", () => {
        isClosed = true;
      });
      response.write("begun");
    });
    const request = page.open("/endless", "GET");
    request.on("error", () => undefined);
    request.end();
    await once(request, "response");
    request.destroy();
    await expect.poll(() => isClosed).toBe(true);
  });

  test("reports an unreachable server, and aborts when the server aborts", async () => {
    const { page, upstream, url } = await startBefore((_request, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("a part");
      setTimeout(() => response.destroy(), 50);
    });
    await expect(page.request("/part")).rejects.toThrow();
    upstream.close();
    upstream.closeAllConnections();
    const reply = await page.request("/gone", { method: "POST", body: "x" });
    expect(reply.status).toBe(502);
    expect(reply.json).toMatchObject({
      Type: "Jackdaw.ServerUnreachable",
      Message: expect.stringContaining(`Cannot connect to ${url.origin}`),
    });
  });

  test("does not query a server named in the address", async () => {
    const { page } = await startBefore((_request, response) => response.end("reached"));
    const socket = connect(page.proxy.port, "127.0.0.1");
    const head = Object.entries({ host: `127.0.0.1:${page.proxy.port}`, ...page.headers() })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("");
    socket.end(`GET http://evil.example/ HTTP/1.1\r\n${head}\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1.1 403 /);
  });
});

describe("web sockets", () => {
  const socketTo = (page: ProxyClient, path: string, headers: Record<string, string> = {}) =>
    new WebSocket(page.origin.replace("http", "ws") + path, {
      headers: { origin: page.origin, cookie: page.session["cookie"] ?? "", ...headers },
    });
  const statusOf = async (socket: WebSocket) => {
    const [error] = (await once(socket, "error")) as [Error];
    return error.message;
  };

  test("transfer the changes of a real server", async () => {
    const page = await start();
    await page.enter();
    const socket = socketTo(page, await page.withTicket("/databases/shop/changes"));
    const frames: string[] = [];
    socket.on("message", (data) => frames.push(String(data)));
    await once(socket, "open");
    socket.send(JSON.stringify({ CommandId: 1, Command: "watch-docs" }));
    await expect.poll(() => frames.join()).toContain('"CommandId":1');
    await page.request("/databases/shop/docs?id=seen/1", { method: "PUT", body: "{}" });
    await expect.poll(() => frames.join()).toContain("seen/1");
    socket.close();
    await once(socket, "close");
  });

  test("need a ticket, the cookie and the page's own origin", async () => {
    const page = await start();
    await page.enter();
    const path = "/databases/shop/changes";
    expect(await statusOf(socketTo(page, path))).toContain("401");
    expect(await statusOf(socketTo(page, await page.withTicket(path), { cookie: "" }))).toContain(
      "401",
    );
    const elsewhere = { origin: "https://evil.example" };
    expect(await statusOf(socketTo(page, await page.withTicket(path), elsewhere))).toContain("403");
    const other = new WebSocket(`ws://127.0.0.1:${page.proxy.port}${await page.withTicket(path)}`, {
      headers: { cookie: page.session["cookie"] ?? "" },
    });
    expect(await statusOf(other)).toContain("403");
    // A rejection by the server keeps its status.
    const missing = socketTo(page, await page.withTicket("/databases/none/changes"));
    expect(await statusOf(missing)).toContain("400");
  });

  test("close on both sides together, and large messages pass completely", async () => {
    const { page, upstream } = await startBefore((_request, response) => response.end());
    const sockets = new WebSocketServer({ server: upstream });
    const connected = once(sockets, "connection") as Promise<[WebSocket]>;
    const socket = socketTo(page, await page.withTicket("/any"));
    const [far] = await connected;
    far.on("message", (data) => far.send(data));
    if (socket.readyState !== WebSocket.OPEN) await once(socket, "open");
    socket.send(Buffer.alloc(8 * 1024 * 1024, 7));
    const [echo] = (await once(socket, "message")) as [Buffer];
    expect(echo.equals(Buffer.alloc(8 * 1024 * 1024, 7))).toBe(true);
    far.terminate();
    await once(socket, "close");
    const second = once(sockets, "connection") as Promise<[WebSocket]>;
    const next = socketTo(page, await page.withTicket("/any"));
    const [distant] = await second;
    next.on("error", () => undefined);
    next.terminate();
    await once(distant, "close");
  });
});
