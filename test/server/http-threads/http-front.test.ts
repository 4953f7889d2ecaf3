/** The events of an HTTP thread. The test replaces the engine thread. */
import { once } from "node:events";
import * as http2 from "node:http2";
import * as net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import { afterEach, expect, test } from "vitest";
import { makeAuthority, makeServerCertificate } from "../../../certs/authority.ts";
import { HttpFront } from "../../../server/http-threads/http-front.ts";
import type { HttpEvents } from "../../../server/link/link.ts";

const mebi = 1024 * 1024;
const fronts: HttpFront[] = [];

afterEach(async () => {
  for (const front of fronts.splice(0)) await front.close(0, true);
});

interface Request {
  readonly connection: number;
  readonly exchange: number;
  /** Of the body, if it was reported with the request. */
  readonly wholeBytes: number | undefined;
}

/** Starts listening. Returns the reported requests and closed connections as well. */
async function listen(secure?: tls.SecureContextOptions, connectionCountMax = 100) {
  const requests: Request[] = [];
  const closed: number[] = [];
  const events: Partial<HttpEvents> = {
    opened: () => undefined,
    closed: (connection) => closed.push(connection),
    request: (connection, exchange, _head, body) =>
      requests.push({ connection, exchange, wholeBytes: body?.length }),
    aborted: () => undefined,
  };
  const front = new HttpFront(
    {
      headerBytesMax: 32_768,
      headerCountMax: 128,
      targetLengthMax: 16_384,
      streamCountMax: 100,
      connectionCountMax,
      handshakeMs: 10_000,
      headersMs: 10_000,
      keepAliveMs: 60_000,
      stallMs: 60_000,
      heldReplyBytesMax: 48 * mebi,
      compressReplies: true,
      ticketKeys: Buffer.alloc(48, 1),
    },
    () => events as HttpEvents,
  );
  fronts.push(front);
  const server = await front.listen({ host: "127.0.0.1", port: 0 }, secure);
  const { port } = server.address() as net.AddressInfo;
  return { front, port, requests, closed };
}

test.each([false, true])(
  "a body that the engine does not read stays with its client (TLS: %s)",
  async (isSecure) => {
    const authority = await makeAuthority("localhost");
    const { certificate, key } = await makeServerCertificate(authority, ["127.0.0.1"]);
    const { port, requests } = await listen(
      isSecure ? { cert: certificate, key, minVersion: "TLSv1.3" } : undefined,
    );
    const client = isSecure
      ? tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false })
      : net.connect(port, "127.0.0.1");
    client.on("error", () => undefined);
    const bytes = 64 * mebi;
    client.write(`POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`);
    for (let sent = 0; sent < bytes; sent += mebi) client.write(Buffer.alloc(mebi));
    await expect.poll(() => requests.length).toBe(1);
    let seen = -1;
    while (client.writableLength !== seen) {
      seen = client.writableLength;
      await sleep(100);
    }
    // The rest is in the buffers of the system.
    expect(seen).toBeGreaterThan(bytes / 2);
    client.destroy();
  },
);

test.each([false, true])(
  "requests beyond the first ones of a client that reads no replies stay with it (TLS: %s)",
  async (isSecure) => {
    const authority = await makeAuthority("localhost");
    const { certificate, key } = await makeServerCertificate(authority, ["127.0.0.1"]);
    const { front, port, requests } = await listen(
      isSecure ? { cert: certificate, key, minVersion: "TLSv1.3" } : undefined,
    );
    const client = isSecure
      ? tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false })
      : net.connect(port, "127.0.0.1");
    client.on("error", () => undefined).pause();
    const bytes = 32 * mebi;
    const many = Buffer.alloc(mebi, `GET /a HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(31)}\r\n\r\n`);
    for (let sent = 0; sent < bytes; sent += mebi) client.write(many);
    const body = Buffer.alloc(60_000);
    let answered = 0;
    let seen = -1;
    for (let quietChecks = 0; quietChecks < 50; quietChecks++) {
      if (client.writableLength !== seen || answered < requests.length) quietChecks = 0;
      seen = client.writableLength;
      for (; answered < requests.length; answered++) {
        front.reply((requests[answered] as Request).exchange, 200, "\n", body, false);
      }
      await sleep(5);
    }
    expect(answered).toBeGreaterThan(1);
    expect(seen).toBeGreaterThan(bytes / 2);
    client.destroy();
  },
);

test.each([
  ["all at once", [100], 100],
  ["none at all", [], 0],
  ["longer than a short body", [20_000], undefined],
  ["in two parts", [50, 50], undefined],
])("a body of unknown length over HTTP/2: %s", async (_name, parts, wholeBytes) => {
  const { front, port, requests } = await listen();
  const session = http2.connect(`http://127.0.0.1:${port}`);
  const stream = session.request({ ":method": "PUT", ":path": "/" });
  for (const [position, bytes] of parts.slice(0, -1).entries()) {
    stream.write(Buffer.alloc(bytes, position));
    await expect.poll(() => requests.length).toBe(1); // without waiting for the rest
  }
  const last = parts.at(-1);
  if (last === undefined) stream.end();
  else stream.end(Buffer.alloc(last));
  await expect.poll(() => requests.length).toBe(1);
  expect(requests[0]?.wholeBytes).toBe(wholeBytes);
  front.reply(requests[0]?.exchange as number, 200, "\n", undefined, false);
  session.close();
});

test("a connection has a limited number of unanswered requests, and long ones do not block others", async () => {
  const { front, port, requests } = await listen();
  const session = http2.connect(`http://127.0.0.1:${port}`);
  const replies: number[] = [];
  for (let n = 0; n < 40; n++) {
    const stream = session.request({ ":path": `/${n}` });
    stream.on("response", () => replies.push(n));
    stream.resume();
  }
  await expect.poll(() => requests.length).toBe(32);
  front.reply((requests[0] as Request).exchange, 200, "\n", undefined, false);
  await expect.poll(() => requests.length).toBe(33);
  // Nothing else is answered: after half a second all have begun.
  await expect.poll(() => requests.length).toBe(40);
  for (const { exchange } of requests.slice(1)) front.reply(exchange, 200, "\n", undefined, false);
  await expect.poll(() => replies.length).toBe(40);
  session.destroy();
});

test("a new connection takes the place of the least recently used one", async () => {
  const { front, port, requests, closed } = await listen(undefined, 4);
  const open = async () => {
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.resume();
    await once(socket, "connect");
    return socket;
  };
  const request = async (socket: net.Socket) => {
    const count = requests.length;
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => requests.length).toBe(count + 1);
    const { connection, exchange } = requests.at(-1) as Request;
    front.reply(exchange, 204, "\n", undefined, false);
    return connection;
  };
  const sockets = [await open(), await open(), await open()] as const;
  const first = await request(sockets[0]);
  const second = await request(sockets[1]);
  const third = await request(sockets[2]);
  await sleep(600); // use is noted twice a second
  await request(sockets[0]);
  await request(sockets[2]);
  await sleep(600);
  await open();
  await expect.poll(() => closed).toEqual([second]);
  expect([first, third]).not.toContain(second);
  for (const socket of sockets) socket.destroy();
});
