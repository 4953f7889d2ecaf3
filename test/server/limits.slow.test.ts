/**
 * Limits of size and time, malformed requests, and floods of HTTP/2, while a second client must not
 * be affected.
 */
import { once } from "node:events";
import * as http from "node:http";
import type * as http2 from "node:http2";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { processMemory } from "../../engine/base/memory/memory-budget.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import type { Exchange } from "../../server/http/exchange.ts";
import type { Route } from "../../server/routing/route.ts";
import {
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../support/start-test-server.ts";

let aborted = 0;
const huge = Buffer.alloc(50_000_000, 120);
const testRoutes: readonly Route[] = [
  {
    kind: "server",
    method: "POST",
    path: "/test/echo",
    access: "valid-user",
    handle: async (exchange: Exchange) => {
      exchange.reply(200, { "content-type": "text/plain" }, await exchange.body());
    },
  },
  {
    kind: "server",
    method: "POST",
    path: "/test/count",
    access: "valid-user",
    handle: async (exchange: Exchange) => {
      let count = 0;
      for await (const chunk of exchange.bodyStream()) count += chunk.length;
      exchange.replyJson(200, { count });
    },
  },
  {
    kind: "server",
    method: "GET",
    path: "/test/wait",
    access: "valid-user",
    handle: async (exchange: Exchange) => {
      if (!exchange.signal.aborted) await once(exchange.signal, "abort");
      aborted++;
      exchange.reply(204);
    },
  },
  {
    kind: "server",
    method: "GET",
    path: "/test/huge",
    access: "valid-user",
    handle: (exchange: Exchange) => {
      exchange.reply(200, { "content-type": "text/plain" }, huge);
    },
  },
  {
    kind: "server",
    method: "GET",
    path: "/test/endless",
    access: "valid-user",
    handle: async (exchange: Exchange) => {
      const stream = exchange.stream(200);
      while (!stream.isClosed) await stream.write("x".repeat(100_000));
      aborted++;
    },
  },
];

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    unsecured: true,
    routes: [...routes, ...testRoutes],
    flags: [
      "--Http.RequestHeadersTimeoutInSec=1",
      "--Http.RequestBodyIdleTimeoutInSec=0.5",
      "--Http.MinDataRateBytesPerSec=1000",
      "--Http.MinDataRateGracePeriodInSec=1",
      "--Http.ResponseStallTimeoutInSec=0.5",
      "--Http.KeepAliveTimeoutInSec=1",
      "--Http.MaxRequestBodySizeInMb=1",
      "--Http.MaxRequestsInFlight=300",
      "--Http.Http2.MaxStreamsPerConnection=120",
    ],
  });
});
afterAll(stopTestServers);

/** Writes parts with pauses of `pauseMs`; returns everything received until the server closes. */
async function raw(parts: readonly (string | Buffer)[], pauseMs = 0): Promise<string> {
  const socket = net.connect(server.port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => undefined);
  const closed = once(socket, "close");
  for (const part of parts) {
    if (!socket.destroyed) socket.write(part);
    if (pauseMs > 0) await sleep(pauseMs);
  }
  await closed;
  return text;
}

const host = "Host: 127.0.0.1\r\n";

describe("HTTP/1.1", () => {
  test.each([
    [
      "a URL that is too long",
      `GET /${"x".repeat(17_000)} HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
      414,
    ],
    [
      "headers that are too large",
      `GET / HTTP/1.1\r\n${host}X: ${"y".repeat(60_000)}\r\n\r\n`,
      431,
    ],
    [
      "two lengths",
      `POST /test/echo HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
      400,
    ],
    [
      "length and chunks",
      `POST /test/echo HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["a negative length", `POST /test/echo HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`, 400],
    [
      "an unknown transfer encoding",
      `POST /test/echo HTTP/1.1\r\n${host}Transfer-Encoding: gzip\r\n\r\n`,
      400,
    ],
    ["no host", "GET /setup/alive HTTP/1.1\r\n\r\n", 400],
    ["two hosts", `GET /setup/alive HTTP/1.1\r\n${host}Host: b\r\n\r\n`, 400],
    ["a space before a colon", `GET /setup/alive HTTP/1.1\r\n${host}X : 1\r\n\r\n`, 400],
    ["a NUL in a header", `GET /setup/alive HTTP/1.1\r\n${host}X: \0\r\n\r\n`, 400],
    ["a NUL in the target", "GET /setup\0/alive HTTP/1.1\r\nHost: x\r\n\r\n", 400],
    ["CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 400],
    ["another protocol", "hello\r\n\r\n", 400],
  ])("answers %s", async (_name, request, status) => {
    const reply = await raw([request]);
    expect(reply.slice(0, 40)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(reply).toContain("Raven-Server-Version: 7.");
    expect(reply).toContain("Content-Type: application/json; charset=utf-8");
    expect(JSON.parse(reply.slice(reply.indexOf("\r\n\r\n") + 4))).toHaveProperty("Message");
  });

  test("answers 408 to headers and bodies that stall or arrive too slowly", async () => {
    const [headers, silent, slow] = await Promise.all([
      raw([`GET /setup/alive HTTP/1.1\r\n${host}`, "X: 1\r\n"], 100),
      raw([`POST /test/echo HTTP/1.1\r\n${host}Content-Length: 100\r\n\r\nab`]),
      raw(
        [`POST /test/echo HTTP/1.1\r\n${host}Content-Length: 100\r\n\r\n`, ..."x".repeat(12)],
        150,
      ),
    ]);
    expect(headers).toMatch(/^HTTP\/1\.1 408/);
    expect(silent).toMatch(/^HTTP\/1\.1 408/);
    expect(silent).toContain("stood still");
    expect(slow).toMatch(/^HTTP\/1\.1 408/);
    expect(slow).toContain("slower than 1000 bytes");
  });

  test("aborts a streamed body that stalls", async () => {
    const head = `POST /test/count HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`;
    expect(await raw([`${head}3\r\nabc\r\n`])).toMatch(/^HTTP\/1\.1 408/);
  });

  test("closes connections that are idle, or never send a request", async () => {
    expect(await raw([`GET /setup/alive HTTP/1.1\r\n${host}\r\n`])).toMatch(/^HTTP\/1\.1 204/);
    expect(await raw([])).toBe("");
  });

  test("rejects a body over the limit without reading it", async () => {
    const head = `POST /test/echo HTTP/1.1\r\n${host}Content-Length: 900000000\r\n\r\n`;
    expect(await raw([head])).toMatch(/^HTTP\/1\.1 413/);
  });

  test("answers pipelined requests in order", async () => {
    const one = (text: string) =>
      `POST /test/echo HTTP/1.1\r\n${host}Content-Length: ${text.length}\r\n\r\n${text}`;
    const reply = await raw([one("first") + one("second") + one("third")]);
    expect(reply.match(/first|second|third/g)).toEqual(["first", "second", "third"]);
  });

  test("disconnects a client that does not read", async () => {
    const before = aborted;
    const socket = net.connect(server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(`GET /test/endless HTTP/1.1\r\n${host}\r\n`);
    socket.pause();
    await expect.poll(() => aborted, { timeout: 10_000 }).toBe(before + 1);
    socket.destroy();
  });
});

/** One HTTP/2 frame. */
function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const opening = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0)]);
const authority = Buffer.concat([Buffer.from([0x01, 9]), Buffer.from("127.0.0.1")]);
/** HPACK: GET, http, a literal path, an authority. */
function headerBlock(path: string): Buffer {
  return Buffer.concat([
    Buffer.from([0x82, 0x86, 0x04, path.length]),
    Buffer.from(path),
    authority,
  ]);
}
const getAlive = (stream: number) => frame(1, 0x05, stream, headerBlock("/setup/alive"));
const getWait = (stream: number) => frame(1, 0x05, stream, headerBlock("/test/wait"));
const reset = (stream: number) => frame(3, 0, stream, Buffer.from([0, 0, 0, 8]));
const times = (count: number, make: (position: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, position) => make(position)));

/**
 * Each is sent on one connection; some are answered, some close the connection; other clients must
 * not be affected.
 */
const floods: readonly (readonly [string, () => Buffer])[] = [
  [
    "streams opened and reset",
    () => times(5000, (n) => Buffer.concat([getWait(2 * n + 1), reset(2 * n + 1)])),
  ],
  ["streams opened and answered", () => times(5000, (n) => getAlive(2 * n + 1))],
  ["streams left open", () => times(5000, (n) => getWait(2 * n + 1))],
  ["pings", () => times(20_000, () => frame(6, 0, 0, Buffer.alloc(8)))],
  ["settings", () => times(20_000, () => frame(4, 0, 0))],
  [
    "an endless continuation",
    () =>
      Buffer.concat([
        frame(1, 0x01, 1, headerBlock("/setup/alive")),
        times(5000, (n) =>
          frame(
            9,
            0,
            1,
            Buffer.concat([
              Buffer.from([0x40, 4]),
              Buffer.from(`x${n % 900}`.padEnd(4)),
              Buffer.from([1, 97]),
            ]),
          ),
        ),
      ]),
  ],
  [
    "empty continuation",
    () => Buffer.concat([frame(1, 0x01, 1, headerBlock("/")), times(20_000, () => frame(9, 0, 1))]),
  ],
  [
    "empty data",
    () =>
      Buffer.concat([
        frame(1, 0x04, 1, headerBlock("/test/echo")),
        times(20_000, () => frame(0, 0, 1)),
      ]),
  ],
  [
    "data of one byte",
    () =>
      Buffer.concat([
        frame(1, 0x04, 1, headerBlock("/test/echo")),
        times(5000, () => frame(0, 0, 1, Buffer.from("x"))),
      ]),
  ],
  ["priorities", () => times(20_000, (n) => frame(2, 0, 2 * n + 1, Buffer.from([0, 0, 0, 0, 1])))],
  ["window updates", () => times(20_000, () => frame(8, 0, 0, Buffer.from([0, 0, 0, 1])))],
  ["frames of unknown type", () => times(20_000, () => frame(0x77, 0, 1))],
  [
    "a window that overflows",
    () => times(3, () => frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))),
  ],
  ["a frame that is too large", () => frame(0, 0, 1, Buffer.alloc(300_000))],
  ["garbage", () => Buffer.from("GET / HTTP/1.1\r\n\r\n".repeat(100))],
  [
    "a header bomb",
    () => {
      // One large header in the table, then thousands of references to it, in one byte each.
      const entry = Buffer.concat([
        Buffer.from([0x40, 1, 0x78, 0x7f, 0x81, 0x1e]),
        Buffer.alloc(4000, 97),
      ]);
      return frame(
        1,
        0x05,
        1,
        Buffer.concat([headerBlock("/setup/alive"), entry, Buffer.alloc(10_000, 0xbe)]),
      );
    },
  ],
];

describe("HTTP/2", () => {
  let probe: http2.ClientHttp2Session;
  /** Excludes idle connections from the limits for two minutes. */
  let patient: TestServer;
  beforeAll(async () => {
    patient = await startTestServer({ unsecured: true, routes: [...routes, ...testRoutes] });
    probe = server.session(undefined);
    await once(probe, "connect");
  });

  test("announces its maximum number of streams and header size", async () => {
    const settings = () => probe.remoteSettings.maxConcurrentStreams;
    await expect.poll(settings).toBe(120);
    expect(probe.remoteSettings.maxHeaderListSize).toBe(32 * 1024);
  });

  test.each(floods)("a flood of %s does not affect other clients", async (_name, make) => {
    const socket = net.connect(server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.resume();
    socket.write(opening);
    socket.write(make());
    const session = server.session(undefined);
    for (let round = 0; round < 10; round++) {
      const reply = await requestHttp2(session, "/build/version");
      expect(reply.status).toBe(200);
      await sleep(10);
    }
    session.close();
    socket.destroy();
  });

  test.each([
    ["streams opened and reset", 1],
    ["empty data", 1],
    ["data of one byte", 1],
    ["settings", 1],
    ["priorities", 1],
    // These are detected by their bytes, which are checked twice a second.
    ["window updates", 30],
    ["frames of unknown type", 30],
  ])("a flood of %s closes its connection", async (name, repeats) => {
    const make = floods.find(([known]) => known === name)?.[1];
    const socket = net.connect(patient.port, "127.0.0.1");
    // `once` of node:events would fail if the server's reset arrives while the flood is written.
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined);
    socket.resume();
    socket.write(opening);
    for (let round = 0; round < repeats && !socket.destroyed; round++) {
      socket.write(make?.() ?? "");
      await sleep(20);
    }
    await closed;
  });

  test("neither a large upload nor a large download counts as a flood", async () => {
    const session = patient.session(undefined);
    const upload = session.request({ ":method": "POST", ":path": "/test/count" });
    for (let sent = 0; sent < 40; sent++) {
      upload.write(Buffer.alloc(500_000));
      await sleep(30);
    }
    upload.end();
    const chunks: Buffer[] = [];
    for await (const chunk of upload) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual({ count: 20_000_000 });
    const download = session.request({ ":path": "/test/huge" });
    let received = 0;
    for await (const chunk of download) {
      received += (chunk as Buffer).length;
      if (received % 20 === 0) await sleep(1);
    }
    expect(received).toBe(huge.length);
    session.close();
  });

  test("a body in small pieces, each sent by itself, does not count as a flood", async () => {
    const session = patient.session(undefined);
    const upload = session.request({ ":method": "POST", ":path": "/test/count" });
    for (let sent = 0; sent < 5_000; sent++) {
      await new Promise((resolve) => upload.write('"a":', resolve));
    }
    upload.end();
    const chunks: Buffer[] = [];
    for await (const chunk of upload) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual({ count: 20_000 });
    session.close();
  });

  test("clients that never read do not affect other clients", async () => {
    const sockets = Array.from({ length: 20 }, () => {
      const socket = net.connect(server.port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.pause();
      socket.write(
        Buffer.concat([
          opening,
          times(50, (n) => frame(1, 0x05, 2 * n + 1, headerBlock("/test/huge"))),
        ]),
      );
      return socket;
    });
    // By now, the server holds replies for them.
    await expect.poll(() => processMemory.workBytesOf("replies")).toBeGreaterThan(0);
    const session = server.session(undefined);
    expect((await requestHttp2(session, "/build/version")).status).toBe(200);
    session.close();
    for (const socket of sockets) socket.destroy();
  });

  test("a reply before the end of its request is complete before the rest is rejected", async () => {
    const socket = net.connect(server.port, "127.0.0.1");
    const types: number[] = [];
    let unread = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      unread = Buffer.concat([unread, chunk]);
      while (unread.length >= 9 && unread.length >= 9 + unread.readUIntBE(0, 3)) {
        if (unread.readUInt32BE(5) === 1) types.push(unread[3] ?? -1);
        unread = unread.subarray(9 + unread.readUIntBE(0, 3));
      }
    });
    socket.write(Buffer.concat([opening, frame(1, 0x04, 1, headerBlock("/test/nothing"))]));
    await expect.poll(() => types.includes(0)).toBe(true);
    await sleep(100);
    // Data that arrives in the meantime is accepted.
    socket.write(frame(0, 0, 1, Buffer.alloc(1000)));
    await sleep(20);
    expect(types).toEqual([1, 0]);
    await expect.poll(() => types, { timeout: 3000 }).toEqual([1, 0, 3]);
    socket.destroy();
  });

  test("headers over the limit end the stream, not the connection", async () => {
    const session = server.session(undefined);
    expect((await requestHttp2(session, "/setup/alive")).status).toBe(204);
    await expect(
      requestHttp2(session, "/setup/alive", { headers: { big: "x".repeat(40_000) } }),
    ).rejects.toThrow();
    expect((await requestHttp2(session, "/setup/alive")).status).toBe(204);
    session.destroy();
  });

  test("requests over the limit of concurrent requests get 503, and the others continue", async () => {
    const sessions = Array.from({ length: 4 }, () => server.session(undefined));
    const waiting = sessions.flatMap((session) =>
      Array.from({ length: 76 }, () => {
        const stream = session.request({ ":path": "/test/wait" });
        stream.on("error", () => undefined);
        return stream;
      }),
    );
    await expect
      .poll(async () => (await server.request("/build/version")).status, { timeout: 5000 })
      .toBe(503);
    const reply = await server.request("/build/version");
    expect(reply.headers["retry-after"]).toBe("1");
    expect(reply.text).toContain("Http.MaxRequestsInFlight");
    // Another client, here with another address, is served in the meantime.
    const other = http.get(`${server.url}/build/version`, { localAddress: "127.0.0.2" });
    const [served] = (await once(other, "response")) as [http.IncomingMessage];
    expect(served.resume().statusCode).toBe(200);
    for (const stream of waiting) stream.close();
    await expect
      .poll(async () => (await server.request("/build/version")).status, { timeout: 5000 })
      .toBe(200);
    for (const session of sessions) session.destroy();
  });

  test("closes an idle session", async () => {
    const session = server.session(undefined);
    expect((await requestHttp2(session, "/setup/alive")).status).toBe(204);
    await once(session, "close");
  });

  test("closes a session with unterminated headers", async () => {
    const socket = net.connect(server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.resume();
    socket.write(Buffer.concat([opening, frame(1, 0x01, 1, Buffer.from([0x82]))]));
    await once(socket, "close");
  });

  test("logged no server error for any of this", () => {
    expect(server.errors).toEqual([]);
  });
});

describe("over TLS", () => {
  test("closes a client without a handshake, and connections over the limit", async () => {
    const secure = await startTestServer({
      flags: ["--Http.HandshakeTimeoutInSec=0.5", "--Http.MaxConnections=5"],
    });
    const sockets = Array.from({ length: 8 }, () => net.connect(secure.port, "127.0.0.1"));
    const closed = sockets.map((socket) => {
      socket.on("error", () => undefined);
      socket.resume();
      return once(socket, "close");
    });
    await Promise.all(closed);
    expect((await secure.request("/build/version")).status).toBe(200);
  });
});
