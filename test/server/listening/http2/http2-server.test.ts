/** HTTP/2 with a whole server: clients that break off, over TLS and in the clear, and what is left of them. */
import { once } from "node:events";
import * as http2 from "node:http2";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { processMemory } from "../../../../engine/base/memory-budget.ts";
import { routes } from "../../../../server/endpoints/route-table.ts";
import type { Connection } from "../../../../server/http/connection.ts";
import type { Exchange } from "../../../../server/http/exchange.ts";
import type { Route } from "../../../../server/routing/route.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";
import {
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../../support/start-test-server.ts";
import { data, frame, get, opening, post, reset, window } from "./http2-peer.ts";

const seed = seedOfRun();
const megabyte = 1024 * 1024;
const connections = new Set<Connection>();
const large = Buffer.alloc(megabyte, "x");
let waiting = 0;

function route(
  method: string,
  path: string,
  handle: (exchange: Exchange) => Promise<void> | void,
): Route {
  return {
    kind: "server",
    method,
    path,
    access: "valid-user",
    handle: (exchange: Exchange) => {
      connections.add(exchange.connection);
      return handle(exchange);
    },
  } as Route;
}

const testRoutes: readonly Route[] = [
  route("POST", "/test/echo", async (exchange) => {
    exchange.reply(200, { "content-type": "text/plain" }, await exchange.body());
  }),
  route("POST", "/test/count", async (exchange) => {
    let count = 0;
    for await (const chunk of exchange.bodyStream()) count += chunk.length;
    exchange.replyJson(200, { count });
  }),
  route("GET", "/test/large", (exchange) => {
    exchange.reply(200, { "content-type": "text/plain" }, large);
  }),
  route("GET", "/test/stream", async (exchange) => {
    const stream = exchange.stream(200);
    for (let n = 0; n < 30 && !stream.isClosed; n++) await stream.write("x".repeat(10_000));
    await stream.end();
  }),
  route("GET", "/test/slow", async (exchange) => {
    waiting++;
    await sleep(150);
    exchange.reply(200, { "content-type": "text/plain" }, "slow");
    waiting--;
  }),
];

let plain: TestServer;
let secure: TestServer;
beforeAll(async () => {
  const options = { routes: [...routes, ...testRoutes] };
  plain = await startTestServer({ ...options, unsecured: true });
  secure = await startTestServer(options);
});
afterAll(stopTestServers);

/** A connection whose frames are made by hand, and the socket below it. */
async function connect(server: TestServer): Promise<{ socket: net.Socket; raw: net.Socket }> {
  const raw = net.connect(server.port, "127.0.0.1");
  raw.on("error", () => undefined);
  await once(raw, "connect");
  if (server === plain) return { socket: raw, raw };
  const socket = tls.connect({
    socket: raw,
    ALPNProtocols: ["h2"],
    ...tlsOptions(server.authority, server.admin),
    checkServerIdentity: () => undefined,
  });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return { socket, raw };
}

/** Nothing is left of clients that have gone. */
async function expectAllGiven(): Promise<void> {
  await expect.poll(() => processMemory.workBytesOf("bodies")).toBe(0);
  await expect.poll(() => processMemory.workBytesOf("replies")).toBe(0);
  await expect
    .poll(() => [...connections].reduce((sum, { open }) => sum + open.size, 0), { timeout: 5000 })
    .toBe(0);
  await expect.poll(() => [...connections].some((one) => one.waiting.length > 0)).toBe(false);
}

describe.each([
  ["in the clear", () => plain],
  ["over TLS", () => secure],
])("a client %s", (_how, serverOf) => {
  test.each<[string, (socket: net.Socket, raw: net.Socket) => void]>([
    ["resets its connection", (_socket, raw) => raw.resetAndDestroy()],
    ["closes it", (socket) => socket.destroy()],
    ["ends its side", (socket) => socket.end()],
    ["ends its side within a frame", (socket) => socket.end(get(9).subarray(0, 12))],
    ["ends its side with a broken frame", (socket) => socket.end(data(99, "x"))],
    [
      "says farewell, and more",
      (socket) => {
        socket.write(Buffer.concat([frame(7, 0, 0, Buffer.alloc(8)), get(9), data(99, "x")]));
        setTimeout(() => socket.end(), 50);
      },
    ],
  ])("that %s while it is answered disturbs nobody", async (_what, breakOff) => {
    const server = serverOf();
    const { socket, raw } = await connect(server);
    socket.resume();
    const requests = [
      get(1, "/test/slow"),
      get(3, "/test/large"),
      post(5, "/test/echo"),
      data(5, "part"),
      post(7, "/test/count"),
      data(7, "part"),
    ];
    socket.write(Buffer.concat([opening, window(0, 1 << 30), ...requests]));
    await expect.poll(() => waiting).toBe(1);
    breakOff(socket, raw);
    await expect.poll(() => waiting).toBe(0);
    socket.destroy();
    await expectAllGiven();
    expect((await server.request("/build/version")).status).toBe(200);
    expect(server.errors).toEqual([]);
  });

  test("sends and receives large bodies on many streams, with small windows", async () => {
    const server = serverOf();
    const session = http2.connect(server.url, {
      ...tlsOptions(server.authority, server.admin),
      maxSessionMemory: 1000,
      settings: { initialWindowSize: 10_000 },
    });
    const up = Array.from({ length: 10 }, (_, n) =>
      requestHttp2(session, "/test/echo", { method: "POST", body: Buffer.alloc(megabyte, n) }),
    );
    const down = Array.from({ length: 10 }, () => requestHttp2(session, "/test/large"));
    for (const [n, one] of (await Promise.all(up)).entries()) {
      expect(one.body.equals(Buffer.alloc(megabyte, n))).toBe(true);
    }
    for (const one of await Promise.all(down)) expect(one.body.equals(large)).toBe(true);
    session.close();
    await expectAllGiven();
  });
});

test("nothing is left of clients that send anything at all", async () => {
  const random = new SeededRandom(seed);
  for (let round = 0; round < 40; round++) {
    const { socket, raw } = await connect(plain);
    socket.resume();
    const frames: Buffer[] = [opening];
    const paths = ["/test/large", "/test/stream", "/test/slow", "/build/version", "/nowhere"];
    for (let id = 1; id < 40; id += 2) {
      if (random.chance(0.5)) frames.push(get(id, paths[random.below(5)]));
      else {
        const isCounted = random.chance(0.5);
        frames.push(post(id, isCounted ? "/test/count" : "/test/echo"));
        for (let parts = random.below(5); parts > 0; parts--) {
          frames.push(data(id, Buffer.alloc(random.below(16_000)), random.chance(0.3)));
        }
      }
      if (random.chance(0.3)) frames.push(window(random.below(id), 1 + random.below(100_000)));
      if (random.chance(0.2)) frames.push(reset(1 + 2 * random.below((id + 1) / 2)));
      if (random.chance(0.03)) frames.push(random.bytes(20));
    }
    for (const one of frames) {
      if (!socket.destroyed) socket.write(one);
      if (random.chance(0.05)) await sleep(1);
    }
    await sleep(random.below(30));
    if (random.chance(0.5)) raw.resetAndDestroy();
    else socket.destroy();
  }
  await expectAllGiven();
  expect(plain.errors).toEqual([]);
});

test("a connection that stops reading its large replies in turns gets all of them", async () => {
  const session = plain.session(undefined);
  const stream = session.request({ ":path": "/test/large" });
  let received = 0;
  for await (const chunk of stream) {
    received += (chunk as Buffer).length;
    if (received % 10 === 0) await sleep(2);
  }
  expect(received).toBe(megabyte);
  session.close();
});

test("a server that stops lets a slow client read its replies", async () => {
  const server = await startTestServer({ unsecured: true, routes: [...routes, ...testRoutes] });
  const socket = net.connect(server.port, "127.0.0.1");
  const gets = Array.from({ length: 20 }, (_, n) => get(2 * n + 1, "/test/stream"));
  const widened = gets.map((_, n) => window(2 * n + 1, megabyte));
  socket.write(Buffer.concat([opening, window(0, 1 << 30), ...gets, ...widened]));
  await sleep(300);
  const stopping = server.stop();
  let length = 0;
  socket.on("data", (chunk: Buffer) => {
    length += chunk.length;
  });
  await once(socket, "close");
  await stopping;
  expect(length).toBeGreaterThan(20 * 300_000);
});
