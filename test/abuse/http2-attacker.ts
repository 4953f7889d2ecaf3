/** A client of HTTP/2 that sends what no honest one does: frames made by hand. Takes no account of what it reads. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { AbuseServer } from "./abuse-server.ts";
import { flags, frameHeadBytes, frameTypes } from "./http2-frames.ts";

/** Who attacks: with the administrator's certificate, without one, or without TLS. */
export type Caller = "with a certificate" | "without a certificate" | "without TLS";

/** Bytes that an attacker hands to its socket ahead of the server. */
const aheadBytes = 512 * 1024;

export function frame(type: number, flagBits: number, id: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(frameHeadBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flagBits;
  bytes.writeUInt32BE(id, 5);
  bytes.set(payload, frameHeadBytes);
  return bytes;
}

export function setting(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(number, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

/** A header block of literals that no table keeps, of strings shorter than 127. `fields`: names and values in turn. */
export function literals(...fields: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    parts.push(Buffer.from([0]), text(fields[at] ?? ""), text(fields[at + 1] ?? ""));
  }
  return Buffer.concat(parts);
}

function text(one: string): Buffer {
  return Buffer.concat([Buffer.from([one.length]), Buffer.from(one, "latin1")]);
}

/** A request without a body. */
export function get(id: number, path: string): Buffer {
  const block = literals(":method", "GET", ":scheme", "https", ":path", path, ":authority", "a");
  return frame(frameTypes.headers, flags.endHeaders | flags.endStream, id, block);
}

/** A header block of any length, in full frames. */
export function head(id: number, block: Buffer, isEnd: boolean): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < block.length; at += 16_384) {
    const isLast = at + 16_384 >= block.length;
    const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
    const ending = at === 0 && isEnd ? flags.endStream : 0;
    frames.push(
      frame(type, ending | (isLast ? flags.endHeaders : 0), id, block.subarray(at, at + 16_384)),
    );
  }
  return Buffer.concat(frames);
}

/** A connection with the preface and `settings` sent. It reads unless `isDeaf`. Ends with the attack at the latest. */
export async function http2Socket(
  server: AbuseServer,
  caller: Caller,
  settings: Buffer = Buffer.alloc(0),
  isDeaf = false,
): Promise<Socket> {
  const socket = await open(server, caller, ["h2"]);
  if (isDeaf) socket.pause();
  else socket.resume();
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(frame(frameTypes.settings, 0, 0, settings));
  return socket;
}

/** A connection over which something of `protocols` is spoken. Ends with the attack at the latest. */
export async function open(
  server: AbuseServer,
  caller: Caller,
  protocols: readonly string[],
): Promise<Socket> {
  const { port, host, tls } = server;
  const isPlain = caller === "without TLS";
  const ALPNProtocols = [...protocols];
  const socket =
    isPlain || tls === undefined
      ? connect(port, host)
      : caller === "with a certificate"
        ? connectTls({ ...tls, port, host, ALPNProtocols })
        : connectTls({ ca: tls.ca, port, host, ALPNProtocols });
  socket.on("error", () => undefined);
  server.track(socket, () => socket.destroy());
  const closed = once(socket, "close");
  await Promise.race([once(socket, isPlain ? "connect" : "secureConnect"), closed]);
  return socket;
}

/** Writes what `next` makes until `untilMs` (performance.now()), as fast as the server reads. Ends with the socket. */
export async function pour(socket: Socket, untilMs: number, next: () => Buffer): Promise<void> {
  while (performance.now() < untilMs && !socket.destroyed && socket.writable) {
    socket.write(next());
    if (socket.writableLength > aheadBytes) await taken(socket, untilMs);
    else await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Resolves when `socket` takes more, or has ended, or at `untilMs`. */
function taken(socket: Socket, untilMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => done(), Math.max(0, untilMs - performance.now()));
    const done = () => {
      clearTimeout(timer);
      socket.off("drain", done);
      socket.off("close", done);
      resolve();
    };
    socket.on("drain", done);
    socket.on("close", done);
  });
}
