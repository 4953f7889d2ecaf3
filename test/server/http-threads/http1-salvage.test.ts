import { once } from "node:events";
import * as net from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { methodIn, rejectedPart } from "../../../server/http-threads/http1-salvage.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ unsecured: true });
});
afterAll(() => stopTestServers());

/**
 * Sends each of `parts` after the reply to the previous one. @returns all replies, once the
 * connection is closed.
 */
async function exchange(...parts: readonly string[]): Promise<string[]> {
  const socket = net.connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  const closed = once(socket, "close");
  const replies: string[] = [];
  for (const part of parts) {
    socket.write(part);
    const [chunk] = (await once(socket, "data")) as [Buffer];
    replies.push(chunk.toString("latin1"));
  }
  socket.on("data", (chunk: Buffer) => replies.push(chunk.toString("latin1")));
  socket.end();
  await closed;
  return replies;
}

function bodyLengths(reply: string): { declared: number; sent: number } {
  const at = reply.indexOf("\r\n\r\n");
  const declared = Number(/content-length: (\d+)/i.exec(reply.slice(0, at))?.[1]);
  return { declared, sent: reply.length - at - 4 };
}

const host = "Host: localhost\r\n";
const get = `GET /build/version HTTP/1.1\r\n${host}\r\n`;
const head = `HEAD /databases/none/docs?id=a HTTP/1.1\r\n${host}\r\n`;

describe("the reply to a request that cannot be parsed", () => {
  test.each([
    ["after nothing", []],
    ["after GET", [get]],
    ["after HEAD", [head]],
    ["after HEAD on a connection of node:http", [`OPTIONS / HTTP/1.1\r\n${host}\r\n`, head]],
  ] as const)("%s has the body that it declares", async (_, before) => {
    const replies = await exchange(...before, "GARBAGE\r\n\r\n");
    expect(replies.length).toBe(before.length + 1);
    const last = replies.at(-1) as string;
    expect(last).toMatch(/^HTTP\/1\.1 400 /);
    const { declared, sent } = bodyLengths(last);
    expect(declared).toBeGreaterThan(0);
    expect(sent).toBe(declared);
  });

  test("has no body when it is HEAD", async () => {
    const [reply = ""] = await exchange(`HEAD / HTTP/1.1\r\nHost localhost\r\n\r\n`);
    expect(reply).toMatch(/^HTTP\/1\.1 400 /);
    expect(bodyLengths(reply).sent).toBe(0);
  });
});

test("finds the method of a rejected request from the last request in its packet", () => {
  const packet = Buffer.from(`${head}GARBAGE\r\n\r\n`);
  const rejectedMethod = (bytes: Buffer, parsed: number) => methodIn(rejectedPart(bytes, parsed));
  expect(rejectedMethod(packet, packet.length - 4)).toBeUndefined();
  expect(rejectedMethod(Buffer.from(`${get}HEAD /x y\r\n`), get.length + 7)).toBe("HEAD");
  expect(rejectedMethod(Buffer.from("HEAD / HTTP"), 8)).toBe("HEAD");
});

describe("a web socket request", () => {
  const upgrade =
    `${host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

  // RavenDB 7.2.7 ignores the upgrade, and replies as without it.
  test.each([
    ["OPTIONS", "/admin/traffic-watch"],
    ["POST", "/admin/traffic-watch"],
    ["PUT", "/databases/none/changes"],
    ["DELETE", "/nothing/at/all"],
    ["OPTIONS", "/build/version"],
  ])("with %s %s has the same JSON reply as without the upgrade", async (method, path) => {
    const [reply = ""] = await exchange(`${method} ${path} HTTP/1.1\r\n${upgrade}`);
    const [other = ""] = await exchange(`${method} ${path} HTTP/1.1\r\n${host}\r\n`);
    expect(reply.split("\r\n")[0]).toBe(other.split("\r\n")[0]);
    expect(reply).toContain("Content-Type: application/json");
    expect(bodyOf(reply)).toEqual(bodyOf(other));
  });

  // RavenDB 7.2.7 answers 200 with the version.
  test("to a route without web sockets is answered", async () => {
    const [reply = ""] = await exchange(`GET /build/version HTTP/1.1\r\n${upgrade}`);
    expect(reply).toMatch(/^HTTP\/1\.1 200 /);
    expect(bodyOf(reply)).toMatchObject({ ProductVersion: "7.2" });
  });

  test("to a route with web sockets is accepted", async () => {
    const socket = net.connect(server.port, "127.0.0.1");
    socket.write(`GET /admin/traffic-watch HTTP/1.1\r\n${upgrade}`);
    const [chunk] = (await once(socket, "data")) as [Buffer];
    expect(chunk.toString("latin1")).toMatch(/^HTTP\/1\.1 101 /);
    socket.destroy();
  });

  test("does not keep its connection open if rejected", async () => {
    const socket = net.connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.resume();
    const failed = new Promise((resolve) => socket.once("error", resolve));
    socket.write(`GET /build/version HTTP/1.1\r\n${upgrade}`);
    await once(socket, "end");
    // The client's side stays open and continues to send.
    const timer = setInterval(() => socket.write("x"), 50);
    expect(String(await failed)).toMatch(/EPIPE|ECONNRESET/);
    clearInterval(timer);
  });
});

function bodyOf(reply: string): unknown {
  const body = reply.slice(reply.indexOf("\r\n\r\n") + 4);
  return JSON.parse(body) as unknown;
}
