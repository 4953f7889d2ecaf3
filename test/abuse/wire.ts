/** Abuse of connections, bodies and replies. See `run-abuse.ts` for how to write a case. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Stream, constants } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createGzip, deflateSync, gzipSync } from "node:zlib";
import { type AbuseCase, assertRefused, putZipped } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";

const megabyte = 1024 * 1024;
const largeBytes = 20 * megabyte;
const area = "wire";

/** A document of about `bytes`, as text: many small members. */
function documentText(bytes: number): string {
  const row = '{"Name":"a name of some length","Number":12345.678,"Tags":["one","two","three"]}';
  const rows = new Array<string>(Math.ceil(bytes / (row.length + 1))).fill(row);
  return `{"Rows":[${rows.join(",")}],"@metadata":{"@collection":"Larges"}}`;
}

async function putLarge(server: AbuseServer, bytes = largeBytes, id = "large"): Promise<void> {
  await server.ask(`${server.database}/docs?id=${id}`, {
    method: "PUT",
    body: documentText(bytes),
  });
}

const field = "a selected value of 20 MB is found and written in one turn: 130 to 230 ms";
const length = "a script counts the elements of an array of 20 MB in one turn: 900 ms, and 1.1 GB";

/** Does the attacked database still answer? */
async function answersStill(server: AbuseServer): Promise<Reply[]> {
  return [await server.request(`${server.database}/docs?id=none`)];
}

function assertAnswers([reply]: readonly Reply[]): void {
  assert.equal(reply?.status, 404, "the attacked database answers");
}

/** Streams that ask for `path` and never take anything. */
function stalledStreams(server: AbuseServer, path: string, count: number): ClientHttp2Stream[] {
  const streams: ClientHttp2Stream[] = [];
  for (let done = 0; done < count; done += 100) {
    const session = server.session({ settings: { initialWindowSize: 0 } });
    for (let n = done; n < Math.min(count, done + 100); n++) {
      const stream = session.request({ ":path": `${server.database}${path}` });
      stream.on("error", () => undefined);
      streams.push(stream);
    }
  }
  return streams;
}

/** Asks `count` times in one packet, and never reads. */
async function pipelined(server: AbuseServer, path: string, count: number): Promise<Socket> {
  const socket = await server.connect();
  socket.pause();
  const one = `GET ${server.database}${path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n\r\n`;
  socket.write(one.repeat(count));
  return socket;
}

/** Resolves when `socket` takes more, or has ended. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("drain", done);
      socket.off("close", done);
      resolve();
    };
    socket.on("drain", done);
    socket.on("close", done);
  });
}

/** Begins a request with a body of `bytes`, and sends all but the last `missing` of them. */
async function beginBody(
  server: AbuseServer,
  head: string,
  bytes: number,
  missing: number,
): Promise<Socket> {
  const socket = await server.connect();
  socket.write(`${head}\r\nHost: localhost\r\nContent-Length: ${bytes}\r\n\r\n`);
  const piece = Buffer.alloc(megabyte, 0x20);
  let left = bytes - missing;
  const send = async () => {
    while (left > 0 && !socket.destroyed) {
      const part = piece.subarray(0, Math.min(left, piece.length));
      left -= part.length;
      if (!socket.write(part)) await drained(socket);
    }
  };
  void send().catch(() => undefined);
  return socket;
}

const replyCases: readonly AbuseCase[] = [
  {
    name: "300 GETs of 20 MB that are reset at once",
    area,
    who: "reader",
    setUp: (server) => putLarge(server),
    async attack(server) {
      const session = server.session();
      for (let n = 0; n < 300; n++) {
        const stream = session.request({ ":path": `${server.database}/docs?id=large` });
        stream.on("error", () => undefined);
        stream.close(constants.NGHTTP2_CANCEL);
      }
      await sleep(1000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "39,000 GETs of 20 MB that are reset at once",
    area,
    who: "reader",
    setUp: (server) => putLarge(server),
    async attack(server) {
      for (let done = 0; done < server.count(39_000, 5_000); ) {
        const session = server.session();
        await once(session, "connect");
        // Destroyed by a GOAWAY and an end of the socket, some ticks before it emits `close`.
        for (let n = 0; n < 800 && !session.destroyed && !session.closed; n++) {
          const stream = session.request({ ":path": `${server.database}/docs?id=large` });
          stream.on("error", () => undefined);
          stream.close(constants.NGHTTP2_CANCEL);
          done++;
          if (n % 100 === 0) await sleep(1);
        }
        await sleep(5);
      }
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "100 streams with window 0 that ask for 20 MB",
    area,
    who: "reader",
    setUp: (server) => putLarge(server),
    async attack(server) {
      stalledStreams(server, "/docs?id=large", 100);
      await sleep(3000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "100 streams with window 0 that ask for 20 different documents of 20 MB",
    area,
    who: "reader",
    async setUp(server) {
      for (let n = 0; n < 20; n++) await putLarge(server, largeBytes, `large${n}`);
    },
    async attack(server) {
      for (let n = 0; n < 100; n++) stalledStreams(server, `/docs?id=large${n % 20}`, 1);
      await sleep(server.count(15_000, 3_000));
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "200 pipelined GETs of 20 MB that are never read",
    area,
    who: "reader",
    setUp: (server) => putLarge(server),
    async attack(server) {
      await pipelined(server, "/docs?id=large", 200);
      await sleep(3000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "20,000 pipelined GETs of a small document that are never read",
    area,
    who: "reader",
    setUp: (server) => server.fill(10, (n) => `{"N":${n},"Text":"${"x".repeat(4000)}"}`),
    async attack(server) {
      for (let n = 0; n < 20; n++) await pipelined(server, "/docs?id=users%2F1", 1000);
      await sleep(3000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "HEAD floods of 20 MB",
    area,
    who: "reader",
    setUp: (server) => putLarge(server),
    async attack(server) {
      for (let n = 0; n < 10; n++) {
        const socket = await server.connect();
        socket.resume();
        const one = `HEAD ${server.database}/docs?id=large HTTP/1.1\r\nHost: localhost\r\n\r\n`;
        socket.write(one.repeat(1000));
      }
      await sleep(2000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "conditional GET floods of 20 MB",
    area,
    who: "reader",
    setUp: (server) => putLarge(server),
    async attack(server) {
      const { headers } = await server.request(`${server.database}/docs?id=large`, {
        method: "HEAD",
      });
      for (let n = 0; n < 10; n++) {
        const socket = await server.connect();
        socket.resume();
        const one = `GET ${server.database}/docs?id=large HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: ${headers.etag}\r\n\r\n`;
        socket.write(one.repeat(1000));
      }
      await sleep(2000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "OPTIONS floods",
    area,
    who: "anybody let in",
    async attack(server) {
      for (let n = 0; n < 10; n++) {
        const socket = await server.connect();
        socket.resume();
        socket.write(
          `OPTIONS ${server.database}/docs HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(3000),
        );
      }
      await sleep(2000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "100 compressed GETs of 20 MB that are read",
    area,
    gap: "compressing takes the second processor from the others",
    who: "reader",
    setUp: (server) => putLarge(server),
    async attack(server) {
      const session = server.session({ settings: { initialWindowSize: megabyte } });
      await once(session, "connect");
      session.setLocalWindowSize(16 * megabyte);
      const streams = Array.from({ length: server.count(100, 20) }, () =>
        session.request({ ":path": `${server.database}/docs?id=large`, "accept-encoding": "gzip" }),
      );
      for (const stream of streams) stream.resume().on("error", () => undefined);
      await Promise.all(streams.map((stream) => once(stream, "close")));
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "100 streams of all documents that are never read",
    area,
    gap: "the streams of one packet begin in few turns",
    who: "reader",
    setUp: (server) => server.fill(20_000, (n) => `{"N":${n},"Text":"${"x".repeat(1000)}"}`),
    async attack(server) {
      stalledStreams(server, "/streams/docs", 200);
      stalledStreams(server, "/docs?startsWith=users/&pageSize=1000000", 100);
      stalledStreams(server, "/streams/queries?query=from%20Users", 100);
      stalledStreams(server, "/queries?query=from%20Users", 100);
      await sleep(3000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "100 queries for documents of 20 MB that are never read",
    area,
    who: "reader",
    async setUp(server) {
      for (let n = 0; n < 5; n++) await putLarge(server, largeBytes, `large${n}`);
    },
    async attack(server) {
      stalledStreams(server, "/queries?query=from%20Larges", 50);
      stalledStreams(server, "/streams/queries?query=from%20Larges", 50);
      await sleep(4000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "100 lists of documents of 20 MB that are never read",
    area,
    who: "reader",
    async setUp(server) {
      for (let n = 0; n < 5; n++) await putLarge(server, largeBytes, `large${n}`);
    },
    async attack(server) {
      stalledStreams(server, "/docs?startsWith=large", 30);
      stalledStreams(server, "/streams/docs", 30);
      stalledStreams(server, "/docs?id=large0&id=large1&id=large2", 30);
      stalledStreams(server, "/collections/docs?name=Larges", 30);
      await sleep(4000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  ...(
    [
      ["lists", "/docs?startsWith=large"],
      ["loads", "/docs?id=large0&id=large1&id=large2"],
      ["streams", "/streams/docs"],
      ["queries", "/queries?query=from%20Larges"],
      ["streamed queries", "/streams/queries?query=from%20Larges"],
      ["selected fields", `/queries?query=${encodeURIComponent("from Larges select Rows")}`, field],
      [
        "selected objects with a field",
        `/queries?query=${encodeURIComponent("from Larges as l select { All: l.Rows }")}`,
        field,
      ],
      [
        "selected lengths of loaded fields",
        `/queries?query=${encodeURIComponent("from Larges as l load 'large0' as o select { N: o.Rows.length }")}`,
        length,
      ],
    ] as const
  ).map(
    ([what, path, gap]): AbuseCase => ({
      name: `${what} of documents of 20 MB that are read`,
      area,
      ...(gap === undefined ? {} : { gap }),
      who: "reader",
      async setUp(server) {
        for (let n = 0; n < 3; n++) await putLarge(server, largeBytes, `large${n}`);
      },
      attack: async (server) => [await server.request(`${server.database}${path}`)],
      check: ([reply]) =>
        assert.ok([200, 400, 413, 503].includes(reply?.status ?? 0), reply?.text.slice(0, 300)),
    }),
  ),
  {
    name: "multi_get of 10,000 large documents",
    area,
    who: "reader",
    setUp: (server) => putLarge(server, megabyte),
    async attack(server) {
      const item = { Url: `${server.database}/docs`, Query: "?id=large" };
      const body = JSON.stringify({ Requests: new Array(10_000).fill(item) });
      const socket = await server.connect();
      socket.pause();
      socket.write(
        `POST ${server.database}/multi_get HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      await sleep(4000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "a load of a million ids",
    area,
    who: "reader",
    setUp: (server) => server.fill(1000, (n) => `{"N":${n}}`),
    async attack(server) {
      const ids = Array.from(
        { length: server.count(1_000_000, 300_000) },
        (_, n) => `users/${n % 2000}`,
      );
      const body = JSON.stringify({ Ids: ids });
      await server.request(`${server.database}/docs`, { method: "POST", body });
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "exports of documents of 20 MB that are read",
    area,
    who: "reader",
    async setUp(server) {
      for (let n = 0; n < 3; n++) await putLarge(server, largeBytes, `large${n}`);
    },
    async attack(server) {
      const path = `${server.database}/smuggler/export`;
      return [await server.request(path, { method: "POST", body: "{}" })];
    },
    check: ([reply]) => assert.equal(reply?.status, 200),
  },
  {
    name: "20 exports that are never read",
    area,
    who: "reader",
    setUp: (server) => server.fill(20_000, (n) => `{"N":${n},"Text":"${"x".repeat(1000)}"}`),
    async attack(server) {
      for (let n = 0; n < 20; n++) {
        const socket = await server.connect();
        socket.pause();
        socket.write(
          `POST ${server.database}/smuggler/export HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`,
        );
      }
      await sleep(3000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
];

const bodyCases: readonly AbuseCase[] = [
  {
    name: "4 POSTs of 200 MB that are begun",
    area,
    who: "anybody let in",
    async attack(server) {
      const head = `POST ${server.database}/bulk_docs HTTP/1.1`;
      for (let n = 0; n < 4; n++) await beginBody(server, head, 200 * megabyte, 1000);
      await sleep(4000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "4 POSTs of 150 MB that are begun",
    area,
    who: "anybody let in",
    async attack(server) {
      const head = `POST ${server.database}/bulk_docs HTTP/1.1`;
      for (let n = 0; n < 4; n++) await beginBody(server, head, 150 * megabyte, 1000);
      await sleep(4000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "100 PUTs of 30 MB that are begun, while somebody puts a small document",
    area,
    who: "anybody let in",
    async attack(server) {
      const head = `PUT ${server.database}/docs?id=a HTTP/1.1`;
      for (let n = 0; n < 100; n++) await beginBody(server, head, 30 * megabyte, 1000);
      await sleep(2000);
      const small = await server.request(`${server.database}/docs?id=small`, {
        method: "PUT",
        body: documentText(100_000),
      });
      return [...(await answersStill(server)), small];
    },
    check: (replies) => {
      assertAnswers(replies);
      assert.equal(replies[1]?.status, 201);
    },
  },
  {
    name: "4 bulk inserts whose command of 100 MB does not end",
    area,
    who: "writer",
    async attack(server) {
      for (let n = 0; n < 4; n++) {
        const socket = await server.connect();
        socket.write(
          `POST ${server.database}/bulk_insert?id=${n + 1} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n`,
        );
        const begin = '[{"Id":"a","Type":"PUT","Document":{"T":"';
        const text = Buffer.from(begin + "x".repeat(megabyte - begin.length));
        const rest = Buffer.alloc(megabyte, 0x78);
        const send = async () => {
          for (let piece = 0; piece < 100 && !socket.destroyed; piece++) {
            socket.write("100000\r\n");
            socket.write(piece === 0 ? text : rest);
            if (!socket.write("\r\n")) await drained(socket);
          }
        };
        void send().catch(() => undefined);
      }
      await sleep(4000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "4 imports whose document of 100 MB does not end",
    area,
    who: "writer",
    async attack(server) {
      for (let n = 0; n < 4; n++) {
        const begin = '{"BuildVersion":60000,"Docs":[{"T":"';
        const head = `POST ${server.database}/smuggler/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n`;
        const socket = await server.connect();
        socket.write(head);
        const first = Buffer.from(begin + "x".repeat(megabyte - begin.length));
        const rest = Buffer.alloc(megabyte, 0x78);
        const send = async () => {
          for (let piece = 0; piece < 100 && !socket.destroyed; piece++) {
            socket.write("100000\r\n");
            socket.write(piece === 0 ? first : rest);
            if (!socket.write("\r\n")) await drained(socket);
          }
        };
        void send().catch(() => undefined);
      }
      await sleep(4000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  ...(["gzip", "deflate"] as const).map(
    (encoding): AbuseCase => ({
      name: `a PUT of 600 MB of text in ${encoding}`,
      area,
      who: "writer",
      async attack(server) {
        const count = server.count(600, 300);
        const body =
          encoding === "gzip"
            ? await foldedText(count)
            : deflateSync(Buffer.alloc(count * megabyte, 0x78));
        return [
          await server.request(`${server.database}/docs?id=a`, {
            method: "PUT",
            headers: { "Content-Encoding": encoding },
            body,
          }),
        ];
      },
      check: ([reply]) => assertRefused(reply, [413], /setting Http.MaxRequestBodySizeInMb/),
    }),
  ),
  {
    name: "a PUT of 300 MB of text in zstd",
    area,
    who: "writer",
    async attack(server) {
      return [
        await server.request(`${server.database}/docs?id=a`, {
          method: "PUT",
          headers: { "Content-Encoding": "zstd" },
          body: zstdOfZeros(300 * megabyte),
        }),
      ];
    },
    check: ([reply]) =>
      assertRefused(reply, [413, 400], /setting Http.MaxRequestBodySizeInMb|zstd/),
  },
  {
    name: "20 PUTs at once of 40 MB of text in gzip",
    area,
    isLong: true,
    who: "writer",
    async attack(server) {
      const text = `{"Text":"${"x".repeat(40 * megabyte)}`;
      return putZipped(server, 20, gzipSync(text)); // it does not end
    },
    check: (replies) => {
      for (const reply of replies) assertRefused(reply, [400, 503], /./);
    },
  },
  {
    name: "a PUT of a document of 100 MB",
    area,
    gap: "its body and its record are in memory at the same time, then its record and the image of its segment: twice its size",
    who: "writer",
    async attack(server) {
      const body = documentText(server.count(100, 50) * megabyte);
      return [await server.request(`${server.database}/docs?id=a`, { method: "PUT", body })];
    },
    check: ([reply]) => assert.equal(reply?.status, 201),
  },
  {
    name: "a PUT of a text of 150 MB",
    area,
    gap: "its body and its record are in memory at the same time, then its record and the image of its segment: twice its size",
    who: "writer",
    async attack(server) {
      const body = `{"Text":"${"x".repeat(server.count(150, 60) * megabyte)}"}`;
      return [await server.request(`${server.database}/docs?id=a`, { method: "PUT", body })];
    },
    check: ([reply]) => assert.equal(reply?.status, 201),
  },
  {
    name: "a PUT of a number of 20 MB",
    area,
    who: "writer",
    async attack(server) {
      const body = `{"N":${"1".repeat(20 * megabyte)}}`;
      return [await server.request(`${server.database}/docs?id=a`, { method: "PUT", body })];
    },
    check: ([reply]) => assertRefused(reply, [400], /./),
  },
  {
    name: "a PUT of two million repeats of one key",
    area,
    who: "writer",
    async attack(server) {
      const body = `{${'"a":1,'.repeat(server.count(2_000_000, 500_000))}"b":2}`;
      return [await server.request(`${server.database}/docs?id=a`, { method: "PUT", body })];
    },
    check: ([reply]) => assert.equal(reply?.status, 201, reply?.text.slice(0, 300)),
  },
  {
    name: "a PUT of two million repeats of one key, in an object of the document",
    area,
    who: "writer",
    async attack(server) {
      const body = `{"B":{${'"a":1,'.repeat(server.count(2_000_000, 500_000))}"b":2}}`;
      return [await server.request(`${server.database}/docs?id=a`, { method: "PUT", body })];
    },
    check: ([reply]) => assert.equal(reply?.status, 201, reply?.text.slice(0, 300)),
  },
  {
    name: "a PUT that is 10 million levels deep",
    area,
    who: "writer",
    async attack(server) {
      const body = `{"A":${"[".repeat(10_000_000)}`;
      return [await server.request(`${server.database}/docs?id=a`, { method: "PUT", body })];
    },
    check: ([reply]) => assertRefused(reply, [400, 413], /./),
  },
  {
    name: "bulk_docs with a million commands",
    area,
    who: "writer",
    async attack(server) {
      const commands = Array.from(
        { length: server.count(1_000_000, 200_000) },
        (_, n) => `{"Id":"a/${n}","Type":"PUT","Document":{"N":${n}}}`,
      );
      const body = `{"Commands":[${commands.join(",")}]}`;
      return [await server.request(`${server.database}/bulk_docs`, { method: "POST", body })];
    },
    check: ([reply]) => assert.ok(reply?.status === 201 || reply?.status === 413, reply?.text),
  },
  {
    name: "a load whose body of 60 MB is no list of ids",
    area,
    who: "reader",
    async attack(server) {
      const body = documentText(60 * megabyte);
      return [await server.request(`${server.database}/docs`, { method: "POST", body })];
    },
    check: ([reply]) => assertRefused(reply, [400, 413], /./),
  },
];

const connectionCases: readonly AbuseCase[] = [
  {
    name: "2,000 idle connections",
    area,
    who: "anybody let in",
    async attack(server) {
      for (let n = 0; n < server.count(2000, 500); n++) {
        const socket = await server.connect();
        if (n % 2 === 0)
          socket.write(`GET ${server.database}/docs?id=a HTTP/1.1\r\nHost: localhost\r\nX:`);
      }
      await sleep(1000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "requests with 1,000 small headers",
    area,
    who: "anybody let in",
    async attack(server) {
      const headers = Array.from({ length: 1000 }, (_, n) => `a${n}: b\r\n`).join("");
      const one = `GET ${server.database}/docs?id=a HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
      for (let n = 0; n < 10; n++) {
        const socket = await server.connect();
        socket.resume();
        socket.write(one.repeat(200));
      }
      await sleep(2000);
      return answersStill(server);
    },
    check: assertAnswers,
  },
  {
    name: "trailing data without end behind requests",
    area,
    who: "anybody let in",
    async attack(server) {
      for (let n = 0; n < 10; n++) {
        const socket = await server.connect();
        socket.resume();
        socket.write(`GET ${server.database}/docs?id=a HTTP/1.1\r\nHost: localhost\r\n\r\n`);
        socket.write(Buffer.alloc(10 * megabyte, 0x41));
      }
      await sleep(1500);
      return answersStill(server);
    },
    check: assertAnswers,
  },
];

/** `count` MB of one letter, in gzip. */
async function foldedText(count: number): Promise<Buffer> {
  const gzip = createGzip({ level: 1 });
  const chunks: Buffer[] = [];
  gzip.on("data", (chunk: Buffer) => chunks.push(chunk));
  const piece = Buffer.alloc(megabyte, 0x78);
  for (let n = 0; n < count; n++) if (!gzip.write(piece)) await once(gzip, "drain");
  gzip.end();
  await once(gzip, "end");
  return Buffer.concat(chunks);
}

/** A frame of zstd: blocks of 128 KiB of one byte, four bytes each. */
function zstdOfZeros(bytes: number): Buffer {
  const blockBytes = 128 * 1024;
  const count = Math.ceil(bytes / blockBytes);
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38]); // a window of 128 KiB, no size
  const blocks = Buffer.alloc(count * 4);
  for (let n = 0; n < count; n++) {
    const isLast = n === count - 1 ? 1 : 0;
    blocks.writeUIntLE(isLast | (1 << 1) | (blockBytes << 3), n * 4, 3);
    blocks[n * 4 + 3] = 0x20;
  }
  return Buffer.concat([head, blocks]);
}

export const wireCases: readonly AbuseCase[] = [...replyCases, ...bodyCases, ...connectionCases];
