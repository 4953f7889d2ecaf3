/**
 * Abuse of channels other than plain requests and replies: web sockets, attachment contents, multipart bodies,
 * compressed bodies, TLS handshakes, the TCP port. See `run-abuse.ts` for how to write a case.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { WebSocket } from "ws";
import { type AbuseCase, assertRefused, putZipped } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";

const megabyte = 1024 * 1024;
const area = "channels";

async function answersStill(server: AbuseServer): Promise<Reply[]> {
  return [await server.request(`${server.database}/docs?id=none`)];
}

function assertAnswers([reply]: readonly Reply[]): void {
  assert.equal(reply?.status, 404, "the attacked database answers");
}

/** A web socket that follows changes of the attacked database; ends with the attack. */
async function followChanges(server: AbuseServer): Promise<WebSocket> {
  const url = `${server.url.replace(/^http/, "ws")}${server.database}/changes`;
  const socket = new WebSocket(url, { ...server.tls, maxPayload: 0 });
  socket.on("error", () => undefined);
  server.track(socket, () => socket.terminate());
  await once(socket, "open");
  return socket;
}

function watch(kind: string, param: string, id: number): string {
  return JSON.stringify({ CommandId: id, Command: kind, Param: param });
}

async function sendCommands(
  server: AbuseServer,
  command: string,
  isRead: boolean,
): Promise<Reply[]> {
  const socket = await followChanges(server);
  if (!isRead) socket.pause();
  for (let n = 0; n < 50_000; n++) socket.send(watch(command, `users/${n}`, n));
  await sleep(2_000);
  return answersStill(server);
}

const socketCases: readonly AbuseCase[] = [
  {
    name: "50,000 commands on one web socket",
    area,
    who: "reader",
    attack: (server) => sendCommands(server, "watch-doc", true),
    check: assertAnswers,
  },
  {
    name: "50,000 commands on one web socket that is never read",
    area,
    who: "reader",
    attack: (server) => sendCommands(server, "unwatch-doc", false),
    check: assertAnswers,
  },
  {
    name: "a frame of 100 MB on a web socket",
    area,
    who: "reader",
    async attack(server) {
      const socket = await followChanges(server);
      socket.send(Buffer.alloc(100 * megabyte, 0x20));
      await sleep(1_500);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "200,000 pings and empty frames on web sockets",
    area,
    who: "reader",
    async attack(server) {
      for (let count = 0; count < 10; count++) {
        const socket = await followChanges(server);
        for (let n = 0; n < 10_000; n++) {
          socket.ping();
          socket.send("");
        }
      }
      await sleep(2_000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "200 web sockets that follow everything and never read, while documents are written",
    area,
    who: "reader",
    async attack(server) {
      for (let n = 0; n < 200; n++) {
        const socket = await followChanges(server);
        socket.send(watch("watch-docs", "", 1));
        socket.pause();
      }
      await server.fill(20_000, (n) => `{"N":${n}}`);
      await sleep(1_000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "1,000 web sockets opened at once",
    area,
    who: "reader",
    async attack(server) {
      await Promise.all(
        Array.from({ length: 1_000 }, () => followChanges(server).catch(() => null)),
      );
      await sleep(500);
      return answersStill(server);
    },
    check: assertAnswers,
  },
];

async function* pieces(count: number): AsyncGenerator<Buffer> {
  const piece = randomBytes(megabyte);
  for (let n = 0; n < count; n++) yield piece;
}

/** A form with `count` parts behind the commands, each of `bytes`. */
async function* form(main: string, count: number, bytes: number): AsyncGenerator<Buffer | string> {
  const begin = (type: string) => `--cut\r\nContent-Type: ${type}\r\n\r\n`;
  yield `${begin("application/json")}${main}\r\n`;
  const content = randomBytes(bytes);
  for (let n = 0; n < count; n++) {
    content.writeUInt32LE(n, 0);
    yield Buffer.concat([
      Buffer.from(begin("application/octet-stream")),
      content,
      Buffer.from("\r\n"),
    ]);
  }
  yield "--cut--\r\n";
}

function postForm(
  server: AbuseServer,
  body: AsyncIterable<Buffer | string> | Buffer,
): Promise<Reply> {
  const headers = { "Content-Type": "multipart/mixed; boundary=cut" };
  return server.request(`${server.database}/bulk_docs`, { method: "POST", headers, body });
}

function attachmentCommands(count: number): string {
  const commands = Array.from(
    { length: count },
    (_, n) => `{"Type":"AttachmentPUT","Id":"users/1","Name":"a${n}","ContentType":""}`,
  );
  return `{"Commands":[${commands.join(",")}]}`;
}

const contentCases: readonly AbuseCase[] = [
  {
    name: "4 PUTs at once of attachments of 200 MB",
    area,
    who: "writer",
    setUp: (server) => server.fill(5, (n) => `{"N":${n}}`),
    attack: (server) =>
      Promise.all(
        Array.from({ length: 4 }, (_, n) =>
          server.request(`${server.database}/attachments?id=users/1&name=a${n}`, {
            method: "PUT",
            body: pieces(server.count(200, 100)),
          }),
        ),
      ),
    check: (replies) => {
      for (const { status } of replies) assert.ok(status === 201 || status === 503, `${status}`);
    },
  },
  {
    name: "300 ranges of an attachment of 100 MB that are never read",
    area,
    who: "reader",
    async setUp(server) {
      await server.fill(5, (n) => `{"N":${n}}`);
      await server.ask(`${server.database}/attachments?id=users/1&name=a`, {
        method: "PUT",
        body: pieces(100),
      });
    },
    async attack(server) {
      const session = server.session({ settings: { initialWindowSize: 0 } });
      for (let n = 0; n < 300; n++) {
        const stream = session.request({
          ":path": `${server.database}/attachments?id=users/1&name=a`,
          range: `bytes=${n}-`,
        });
        stream.on("error", () => undefined);
      }
      await sleep(2_000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "a header of 20,000 ranges",
    area,
    who: "reader",
    async setUp(server) {
      await server.fill(5, (n) => `{"N":${n}}`);
      await server.ask(`${server.database}/attachments?id=users/1&name=a`, {
        method: "PUT",
        body: pieces(1),
      });
    },
    attack: (server) =>
      Promise.all(
        Array.from({ length: 100 }, () =>
          server.request(`${server.database}/attachments?id=users/1&name=a`, {
            headers: { Range: `bytes=${"0-1,".repeat(2_000)}0-1` },
          }),
        ),
      ),
    check: ([reply]) => assert.ok(reply !== undefined && reply.status < 500, `${reply?.status}`),
  },
  {
    name: "a form with 5,000 attachments",
    area,
    who: "writer",
    setUp: (server) => server.fill(5, (n) => `{"N":${n}}`),
    async attack(server) {
      const count = server.count(5_000, 1_000);
      return [await postForm(server, form(attachmentCommands(count), count, 100))];
    },
    check: ([reply]) => assert.equal(reply?.status, 201),
  },
  {
    name: "a form whose commands have 60 MB",
    area,
    who: "writer",
    async attack(server) {
      const main = `{"Commands":[{"Type":"PUT","Id":"a","Document":{"T":"${"x".repeat(60 * megabyte)}"}}]}`;
      return [await postForm(server, form(main, 0, 4))];
    },
    check: ([reply]) => assert.equal(reply?.status, 201),
  },
  {
    name: "a form of 60 MB of line ends and dashes that never becomes a boundary",
    area,
    who: "writer",
    async attack(server) {
      const head = Buffer.from("--cut\r\nContent-Type: application/json\r\n\r\n");
      const rest = Buffer.from("\r\n--cu".repeat(10 * megabyte));
      return [await postForm(server, Buffer.concat([head, rest]))];
    },
    check: ([reply]) => assertRefused(reply, [400], /./),
  },
  {
    name: "a form whose part has a head of 60 MB",
    area,
    who: "writer",
    async attack(server) {
      const body = Buffer.from(`--cut\r\nX: ${"x".repeat(60 * megabyte)}`);
      return [await postForm(server, body)];
    },
    check: ([reply]) => assertRefused(reply, [400, 413], /./),
  },
];

/** `count` MB of one letter, in brotli. */
function brotliOf(count: number): Buffer {
  return brotliCompressSync(Buffer.alloc(count * megabyte, 0x78), {
    params: { [constants.BROTLI_PARAM_QUALITY]: 3 },
  });
}

const encodingCases: readonly AbuseCase[] = [
  {
    name: "a PUT of 600 MB of text in brotli",
    area,
    who: "writer",
    attack: async (server) => [
      await server.request(`${server.database}/docs?id=a`, {
        method: "PUT",
        headers: { "Content-Encoding": "br" },
        body: brotliOf(server.count(600, 300)),
      }),
    ],
    check: ([reply]) => assertRefused(reply, [413], /setting Http.MaxRequestBodySizeInMb/),
  },
  {
    name: "a bulk insert of a command of 600 MB in brotli",
    area,
    who: "writer",
    async attack(server) {
      const begin = '[{"Id":"a","Type":"PUT","Document":{"T":"';
      const body = brotliCompressSync(
        Buffer.concat([Buffer.from(begin), Buffer.alloc(server.count(600, 300) * megabyte, 0x78)]),
        { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } },
      );
      return [
        await server.request(`${server.database}/bulk_insert?id=${Date.now() % 1e6}`, {
          method: "POST",
          headers: { "Content-Encoding": "br" },
          body,
        }),
      ];
    },
    check: ([reply]) => assertRefused(reply, [400, 413, 500], /at most/),
  },
  {
    name: "20 PUTs at once of 100 MB of text in gzip",
    area,
    isLong: true,
    who: "writer",
    attack: (server) => {
      const body = gzipSync(Buffer.alloc(100 * megabyte, 0x78), { level: 1 });
      return putZipped(server, 20, body);
    },
    check: (replies) => {
      for (const reply of replies) assertRefused(reply, [400, 503], /./);
    },
  },
];

/** Connections that begin TLS and never finish; not of `server`'s client, as no certificate is shown. */
async function hello(server: AbuseServer, text: Buffer): Promise<Socket> {
  const socket = connectTcp(server.port, server.host);
  socket.on("error", () => undefined);
  server.track(socket, () => socket.destroy());
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

const handshakeCases: readonly AbuseCase[] = [
  {
    name: "300 TLS handshakes at once",
    area,
    isSecure: true,
    who: "anybody let in",
    async attack(server) {
      const shake = () =>
        new Promise<void>((resolve) => {
          const socket = connectTls({ ...server.tls, port: server.port, host: server.host });
          socket.on("error", () => resolve());
          socket.on("close", () => resolve());
          socket.on("secureConnect", () => socket.destroy());
        });
      await Promise.all(Array.from({ length: 300 }, shake));
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "2,000 connections that begin a TLS handshake with nonsense",
    area,
    isSecure: true,
    who: "anybody let in",
    async attack(server) {
      // A record of a handshake that announces 16 KiB, of which little comes.
      const begun = Buffer.from([0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0x3f, 0xfc]);
      for (let n = 0; n < server.count(2_000, 500); n++) {
        await hello(server, n % 2 === 0 ? begun : randomBytes(300));
      }
      await sleep(500);
      return answersStill(server);
    },
    check: assertAnswers,
  },
];

const tcpFlags = ["--ServerUrl.Tcp=tcp://127.0.0.1:0"];

/** Where the server's TCP port is, as it tells its clients. */
async function connectToTcp(server: AbuseServer, port: number): Promise<Socket> {
  const socket = connectTcp(port, server.host);
  socket.on("error", () => undefined);
  server.track(socket, () => socket.destroy());
  await once(socket, "connect");
  return socket;
}

async function tcpPortOf(server: AbuseServer): Promise<number> {
  const { text } = await server.ask(`${server.database}/info/tcp`);
  const { Url } = JSON.parse(text) as { Url: string };
  return Number(new URL(Url).port);
}

const tcpCases: readonly AbuseCase[] = [
  {
    name: "500 connections to the TCP port that say nothing or nonsense",
    area,
    who: "anybody let in",
    flags: tcpFlags,
    async attack(server) {
      const port = await tcpPortOf(server);
      for (let n = 0; n < 500; n++) {
        const socket = await connectToTcp(server, port);
        if (n % 3 === 1) socket.write(randomBytes(1_000));
        if (n % 3 === 2) socket.write(`{"Operation":"Subscription","A":[${"[".repeat(30_000)}`);
      }
      await sleep(1_000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "messages of 100 MB to the TCP port",
    area,
    who: "anybody let in",
    flags: tcpFlags,
    async attack(server) {
      const port = await tcpPortOf(server);
      for (let n = 0; n < 4; n++) {
        const socket = await connectToTcp(server, port);
        socket.write(`{"Operation":"${"x".repeat(100 * megabyte)}`);
      }
      await sleep(1_000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "300,000 messages in one packet to the TCP port",
    area,
    who: "anybody let in",
    flags: tcpFlags,
    async attack(server) {
      const port = await tcpPortOf(server);
      const header = `{"DatabaseName":"attacked","Operation":"Subscription","OperationVersion":"1"}`;
      for (let n = 0; n < 4; n++) {
        const socket = await connectToTcp(server, port);
        socket.write(header.repeat(3) + "{}".repeat(300_000));
      }
      await sleep(1_000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
];

export const channelCases: readonly AbuseCase[] = [
  ...socketCases,
  ...contentCases,
  ...encodingCases,
  ...handshakeCases,
  ...tcpCases,
];
