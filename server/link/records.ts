/**
 * The records that transfer the calls of `link.ts` through a ring. The header of a record has its kind, its flags, a
 * 16-bit number, a connection and an exchange (`ring.ts`); this table lists what the rest contains.
 *
 * From an HTTP thread to the engine thread:
 *
 *     kind  call          flags                    number  payload
 *     1     opened        1 secure                 bytes of the address   address, certificate
 *     2     closed
 *     3     request       1 whole, 2 pending, 4 web socket    bytes of the method
 *                                                          u32 bytes of the target, u32 bytes of the authority,
 *                                                          u32 bytes of the fields, then these four texts, then the body
 *     4     bodyData      1 last                           bytes
 *     5     bodyFailed                             failure detail
 *     6     sent                                           u32 bytes
 *     7     aborted
 *     8     message       1 binary                         bytes
 *     9     socketClosed                           code
 *
 * From the engine thread to an HTTP thread:
 *
 *     16    reply         1 compressible, 2 body   status  u32 bytes of the fields, fields, body
 *     17    open          1 compressible           status  fields
 *     18    data          1 last                           bytes
 *     20    pull                                           u32 bytes
 *     21    abort
 *     22    disconnect
 *     23    acceptSocket                                   fields
 *     24    send          1 last                           text in UTF-8
 *     25    closeSocket                            code    reason in UTF-8
 *     26    acceptTunnel                                   fields
 *     27    identify                                       client in UTF-8
 *
 * Texts of HTTP are Latin-1, as node:http and node:http2 decode them. Numbers are little-endian.
 */
import { assert } from "../../engine/base/assert.ts";
import type { BodyFailure, ConnectionInfo, HttpCommands, HttpEvents, RequestHead } from "./link.ts";
import type { RecordHandler, RingSender } from "./ring.ts";

const kinds = {
  opened: 1,
  closed: 2,
  request: 3,
  bodyData: 4,
  bodyFailed: 5,
  sent: 6,
  aborted: 7,
  message: 8,
  socketClosed: 9,
  reply: 16,
  open: 17,
  data: 18,
  pull: 20,
  abort: 21,
  disconnect: 22,
  acceptSocket: 23,
  send: 24,
  closeSocket: 25,
  acceptTunnel: 26,
  identify: 27,
} as const;

const failures: readonly BodyFailure[] = ["cut-off", "unknown-encoding", "wrong-encoding"];

/** What writes records: a ring, and the moment at which its records are sent. */
export interface RecordOutput {
  readonly sender: RingSender;
  /** Sends the records at the end of the present tick. */
  sendSoon(): void;
}

/** Writes a record without a payload. */
function writeEmpty(
  output: RecordOutput,
  kind: number,
  number: number,
  connection: number,
  exchange: number,
): void {
  output.sender.begin(kind, 0, number, connection, exchange, 0);
  output.sendSoon();
}

function writeNumber(output: RecordOutput, kind: number, exchange: number, value: number): void {
  const { sender } = output;
  const at = sender.begin(kind, 0, 0, 0, exchange, 4);
  sender.target.writeUInt32LE(value, at);
  output.sendSoon();
}

/** Writes bytes, in several records if they exceed the maximum. The last one has `flags`. */
function writeBytes(
  output: RecordOutput,
  kind: number,
  flags: number,
  exchange: number,
  bytes: Buffer,
): void {
  for (const [part, isLast] of partsOf(bytes, output.sender)) {
    const at = output.sender.begin(kind, isLast ? flags : 0, 0, 0, exchange, part.length);
    part.copy(output.sender.target, at);
  }
  output.sendSoon();
}

/** As `writeBytes`, as bulk records. `isConstant`: the bytes never change. */
function writeBulk(
  output: RecordOutput,
  kind: number,
  flags: number,
  exchange: number,
  bytes: Buffer,
  isConstant: boolean,
  number = 0,
): void {
  const { sender } = output;
  for (const [part, isLast] of partsOf(bytes, sender)) {
    const partFlags = isLast ? flags : 0;
    if (sender.takesBulk) {
      const at = sender.begin(kind, partFlags, number, 0, exchange, part.length);
      part.copy(sender.target, at);
    } else {
      const payload = isConstant ? part : Buffer.from(part);
      sender.sendLater({ kind, flags: partFlags, number, exchange, payload });
    }
  }
  output.sendSoon();
}

/** Yields at least one part, the last marked. */
function* partsOf(bytes: Buffer, { payloadBytesMax }: RingSender): Generator<[Buffer, boolean]> {
  for (let start = 0; ; start += payloadBytesMax) {
    const end = start + payloadBytesMax;
    if (end >= bytes.length) return yield [bytes.subarray(start), true];
    yield [bytes.subarray(start, end), false];
  }
}

function writeText(
  output: RecordOutput,
  kind: number,
  number: number,
  exchange: number,
  text: string,
  connection = 0,
): void {
  const { sender } = output;
  const at = sender.begin(kind, 0, number, connection, exchange, Buffer.byteLength(text));
  sender.target.utf8Write(text, at);
  output.sendSoon();
}

/** The events of an HTTP thread, as records. */
export class EventWriter implements HttpEvents {
  readonly #output: RecordOutput;

  constructor(output: RecordOutput) {
    this.#output = output;
  }

  opened(connection: number, info: ConnectionInfo): void {
    const { address, certificate } = info;
    const { sender } = this.#output;
    const length = address.length + (certificate?.length ?? 0);
    const flags = info.isSecure ? 1 : 0;
    const at = sender.begin(kinds.opened, flags, address.length, connection, 0, length);
    sender.target.latin1Write(address, at);
    certificate?.copy(sender.target, at + address.length);
    this.#output.sendSoon();
  }

  closed(connection: number): void {
    writeEmpty(this.#output, kinds.closed, 0, connection, 0);
  }

  /** Hot. */
  request(connection: number, exchange: number, head: RequestHead, body: Buffer | undefined): void {
    const { method, target, authority, fields } = head;
    const { sender } = this.#output;
    const textLength = method.length + target.length + authority.length + fields.length;
    const flags =
      (head.body === "whole" ? 1 : head.body === "pending" ? 2 : 0) | (head.isWebSocket ? 4 : 0);
    const length = 12 + textLength + (body?.length ?? 0);
    let at = sender.begin(kinds.request, flags, method.length, connection, exchange, length);
    const { target: bytes } = sender;
    at = bytes.writeUInt32LE(target.length, at);
    at = bytes.writeUInt32LE(authority.length, at);
    at = bytes.writeUInt32LE(fields.length, at);
    bytes.latin1Write(method + target + authority + fields, at);
    body?.copy(bytes, at + textLength);
    this.#output.sendSoon();
  }

  bodyData(exchange: number, chunk: Buffer, isLast: boolean): void {
    writeBytes(this.#output, kinds.bodyData, isLast ? 1 : 0, exchange, chunk);
  }

  bodyFailed(exchange: number, failure: BodyFailure, detail: string): void {
    writeText(this.#output, kinds.bodyFailed, failures.indexOf(failure), exchange, detail);
  }

  sent(exchange: number, bytes: number): void {
    writeNumber(this.#output, kinds.sent, exchange, bytes);
  }

  aborted(exchange: number): void {
    writeEmpty(this.#output, kinds.aborted, 0, 0, exchange);
  }

  message(exchange: number, data: Buffer, isBinary: boolean): void {
    const { sender } = this.#output;
    const at = sender.begin(kinds.message, isBinary ? 1 : 0, 0, 0, exchange, data.length);
    data.copy(sender.target, at);
    this.#output.sendSoon();
  }

  socketClosed(exchange: number, code: number): void {
    writeEmpty(this.#output, kinds.socketClosed, code, 0, exchange);
  }
}

/** Returns a handler that reads the events of an HTTP thread, and passes them to `events`. */
export function eventReader(events: HttpEvents): RecordHandler {
  return (kind, flags, number, connection, exchange, bytes, start, end) => {
    switch (kind) {
      case kinds.opened:
        events.opened(connection, {
          address: bytes.latin1Slice(start, start + number),
          isSecure: (flags & 1) !== 0,
          certificate: start + number === end ? undefined : copyOf(bytes, start + number, end),
        });
        return;
      case kinds.closed:
        events.closed(connection);
        return;
      case kinds.request: {
        let at = start + 12 + number + bytes.readUInt32LE(start);
        const targetEnd = at;
        at += bytes.readUInt32LE(start + 4);
        const authorityEnd = at;
        at += bytes.readUInt32LE(start + 8);
        const head: RequestHead = {
          method: bytes.latin1Slice(start + 12, start + 12 + number),
          target: bytes.latin1Slice(start + 12 + number, targetEnd),
          authority: bytes.latin1Slice(targetEnd, authorityEnd),
          fields: bytes.latin1Slice(authorityEnd, at),
          body: (flags & 1) !== 0 ? "whole" : (flags & 2) !== 0 ? "pending" : "none",
          isWebSocket: (flags & 4) !== 0,
        };
        const isWhole = (flags & 1) !== 0;
        events.request(connection, exchange, head, isWhole ? copyOf(bytes, at, end) : undefined);
        return;
      }
      case kinds.bodyData:
        events.bodyData(exchange, copyOf(bytes, start, end), (flags & 1) !== 0);
        return;
      case kinds.bodyFailed: {
        const failure = failures[number];
        assert(failure !== undefined, "a failure of a body that is defined");
        events.bodyFailed(exchange, failure, bytes.utf8Slice(start, end));
        return;
      }
      case kinds.sent:
        events.sent(exchange, bytes.readUInt32LE(start));
        return;
      case kinds.aborted:
        events.aborted(exchange);
        return;
      case kinds.message:
        events.message(exchange, copyOf(bytes, start, end), (flags & 1) !== 0);
        return;
      default:
        assert(kind === kinds.socketClosed, "an event that is defined");
        events.socketClosed(exchange, number);
    }
  };
}

/** The commands of the engine thread, as records. */
export class CommandWriter implements HttpCommands {
  readonly #output: RecordOutput;

  constructor(output: RecordOutput) {
    this.#output = output;
  }

  /** Hot. */
  reply(
    exchange: number,
    status: number,
    fields: string,
    body: Buffer | undefined,
    isCompressible: boolean,
  ): void {
    const { sender } = this.#output;
    const flags = (isCompressible ? 1 : 0) | (body === undefined ? 0 : 2);
    const length = 4 + fields.length + (body?.length ?? 0);
    let at = sender.begin(kinds.reply, flags, status, 0, exchange, length);
    const { target } = sender;
    at = target.writeUInt32LE(fields.length, at);
    target.latin1Write(fields, at);
    body?.copy(target, at + fields.length);
    this.#output.sendSoon();
  }

  open(exchange: number, status: number, fields: string, isCompressible: boolean): void {
    const { sender } = this.#output;
    const flags = isCompressible ? 1 : 0;
    const at = sender.begin(kinds.open, flags, status, 0, exchange, fields.length);
    sender.target.latin1Write(fields, at);
    this.#output.sendSoon();
  }

  data(exchange: number, chunk: Buffer, isLast: boolean): void {
    writeBulk(this.#output, kinds.data, isLast ? 1 : 0, exchange, chunk, false);
  }

  pull(exchange: number, bytes: number): void {
    writeNumber(this.#output, kinds.pull, exchange, bytes);
  }

  abort(exchange: number): void {
    writeEmpty(this.#output, kinds.abort, 0, 0, exchange);
  }

  identify(connection: number, client: string): void {
    writeText(this.#output, kinds.identify, 0, 0, client, connection);
  }

  disconnect(connection: number): void {
    writeEmpty(this.#output, kinds.disconnect, 0, connection, 0);
  }

  acceptSocket(exchange: number, fields: string): void {
    writeText(this.#output, kinds.acceptSocket, 0, exchange, fields);
  }

  acceptTunnel(exchange: number, fields: string): void {
    writeText(this.#output, kinds.acceptTunnel, 0, exchange, fields);
  }

  send(exchange: number, chunk: Buffer, isLast: boolean): void {
    writeBulk(this.#output, kinds.send, isLast ? 1 : 0, exchange, chunk, true);
  }

  closeSocket(exchange: number, code: number, reason: string): void {
    // Bulk, so that it does not overtake messages that were sent before.
    writeBulk(this.#output, kinds.closeSocket, 0, exchange, Buffer.from(reason), true, code);
  }
}

/** Returns a handler that reads the commands of the engine thread, and passes them to `commands`. */
export function commandReader(commands: HttpCommands): RecordHandler {
  return (kind, flags, number, connection, exchange, bytes, start, end) => {
    switch (kind) {
      case kinds.reply: {
        const bodyStart = start + 4 + bytes.readUInt32LE(start);
        const fields = bytes.latin1Slice(start + 4, bodyStart);
        const body = (flags & 2) === 0 ? undefined : copyOf(bytes, bodyStart, end);
        commands.reply(exchange, number, fields, body, (flags & 1) !== 0);
        return;
      }
      case kinds.open:
        commands.open(exchange, number, bytes.latin1Slice(start, end), (flags & 1) !== 0);
        return;
      case kinds.data:
        commands.data(exchange, copyOf(bytes, start, end), (flags & 1) !== 0);
        return;
      case kinds.pull:
        commands.pull(exchange, bytes.readUInt32LE(start));
        return;
      case kinds.abort:
        commands.abort(exchange);
        return;
      case kinds.identify:
        commands.identify(connection, bytes.utf8Slice(start, end));
        return;
      case kinds.disconnect:
        commands.disconnect(connection);
        return;
      case kinds.acceptSocket:
        commands.acceptSocket(exchange, bytes.utf8Slice(start, end));
        return;
      case kinds.acceptTunnel:
        commands.acceptTunnel(exchange, bytes.utf8Slice(start, end));
        return;
      case kinds.send:
        commands.send(exchange, copyOf(bytes, start, end), (flags & 1) !== 0);
        return;
      default:
        assert(kind === kinds.closeSocket, "a command that is defined");
        commands.closeSocket(exchange, number, bytes.utf8Slice(start, end));
    }
  };
}

/** The memory of a ring is overwritten: its receiver needs bytes of its own. */
function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start);
  bytes.copy(copy, 0, start, end);
  return copy;
}
