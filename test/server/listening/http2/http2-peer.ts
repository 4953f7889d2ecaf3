/** A client of HTTP/2 for tests: frames made and read by hand, over a socket that is a pair of arrays. */

import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { MemoryBudget } from "../../../../engine/base/memory-budget.ts";
import { HeldReplies, type HeldShare } from "../../../../server/http/held-replies.ts";
import {
  flags,
  frameHeadBytes,
  frameTypes,
  settings,
} from "../../../../server/listening/http2/frames.ts";
import { HeaderDecoder } from "../../../../server/listening/http2/header-decoder.ts";
import {
  type Http2Limits,
  Http2Session,
  preface,
} from "../../../../server/listening/http2/http2-session.ts";
import type { Http2Stream } from "../../../../server/listening/http2/http2-stream.ts";
import { InputScheduler } from "../../../../server/listening/input-scheduler.ts";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

export function frame(
  type: number,
  flagBits: number,
  id: number,
  payload: Buffer | string = "",
): Buffer {
  const bytes = Buffer.from(payload);
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(bytes.length, 0, 3);
  head[3] = type;
  head[4] = flagBits;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, bytes]);
}

export function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + frameHeadBytes + bytes.readUIntBE(at, 3);
    frames.push({
      type: bytes.readUInt8(at + 3),
      flags: bytes.readUInt8(at + 4),
      id: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + frameHeadBytes, end),
    });
    at = end;
  }
  return frames;
}

/** A header block of literals that no table keeps. `fields`: names and values in turn. */
export function literals(...fields: readonly string[]): Buffer {
  const text = (one: string) => {
    const { length } = one;
    const head = length < 127 ? [length] : [127, ((length - 127) & 127) | 128, (length - 127) >> 7];
    return Buffer.concat([Buffer.from(head), Buffer.from(one, "latin1")]);
  };
  const parts: Buffer[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    parts.push(Buffer.from([0]), text(fields[at] as string), text(fields[at + 1] as string));
  }
  return Buffer.concat(parts);
}

/** A block that asks for `path`. */
export function request(path: string, method = "GET", ...fields: readonly string[]): Buffer {
  return literals(
    ":method",
    method,
    ":scheme",
    "http",
    ":path",
    path,
    ":authority",
    "localhost",
    ...fields,
  );
}

const { endHeaders, endStream } = flags;

export const get = (id: number, path = "/"): Buffer =>
  frame(frameTypes.headers, endHeaders | endStream, id, request(path));
export const post = (id: number, path = "/", ...fields: readonly string[]): Buffer =>
  frame(frameTypes.headers, endHeaders, id, request(path, "POST", ...fields));
export const data = (id: number, bytes: Buffer | string, isEnd = false): Buffer =>
  frame(frameTypes.data, isEnd ? endStream : 0, id, bytes);
export const window = (id: number, more: number): Buffer =>
  frame(frameTypes.windowUpdate, 0, id, uint32(more));
export const reset = (id: number): Buffer => frame(frameTypes.reset, 0, id, uint32(8));
export const initialWindow = (bytes: number): Buffer =>
  frame(
    frameTypes.settings,
    0,
    0,
    Buffer.concat([Buffer.from([0, settings.initialWindowSize]), uint32(bytes)]),
  );
export const opening = Buffer.concat([preface, frame(frameTypes.settings, 0, 0)]);

export function uint32(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number);
  return bytes;
}

/** What the session writes is collected; while `isStalled`, none of it is taken. */
class Wire extends Duplex {
  readonly written: Buffer[] = [];
  isStalled = false;
  #waiting: (() => void)[] = [];

  override _read(): void {
    // Bytes are given to the session itself.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written.push(Buffer.from(chunk));
    if (this.isStalled) this.#waiting.push(done);
    else done();
  }

  goOn(): void {
    this.isStalled = false;
    for (const done of this.#waiting.splice(0)) done();
  }
}

export interface StreamReply {
  readonly fields: Record<string, string>;
  readonly parts: Buffer[];
  readonly body: Buffer;
  isEnded: boolean;
  /** The code with which it was reset. */
  reset: number | undefined;
}

export const limits: Http2Limits = {
  headerBytesMax: 32 * 1024,
  headerCountMax: 128,
  streamCountMax: 100,
  headersMs: 1000,
  keepAliveMs: 5000,
  stallMs: 2000,
};

/** Counts nothing. */
export function unheld(): HeldShare {
  return new HeldReplies(new MemoryBudget()).shareOf({
    heldBytes: 0,
    takenBytes: 0,
    setFull: () => undefined,
    endHolding: () => undefined,
  });
}

export class Http2Peer {
  readonly wire = new Wire();
  readonly session: Http2Session;
  readonly accepted: Http2Stream[] = [];
  readonly errors: unknown[] = [];
  readonly replies = new Map<number, StreamReply>();
  /** All frames that came, but for those of replies. */
  readonly frames: Frame[] = [];
  /** The order of the streams to which data came. */
  readonly dataOrder: number[] = [];
  readonly #decoder = new HeaderDecoder({ headerBytesMax: 1 << 20, headerCountMax: 1000 });
  #seen = 0;

  constructor(answer?: (stream: Http2Stream) => void, given: Partial<Http2Limits> = {}) {
    this.session = new Http2Session(this.wire as unknown as Socket, {
      limits: { ...limits, ...given },
      // Its clock stands still: all that came is processed in one slice.
      input: new InputScheduler(() => 0),
      held: unheld(),
      isKnown: true,
      accept: (stream) => {
        this.accepted.push(stream);
        answer?.(stream);
      },
      report: (error) => this.errors.push(error),
    });
  }

  /** Gives the session these bytes as one chunk, and reads its answer. */
  async send(...parts: readonly Buffer[]): Promise<void> {
    this.session.feed(Buffer.concat(parts));
    await this.settle();
  }

  /** Lets the session do what it has put off. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    this.#take();
  }

  /** The code and the last stream of the farewell; undefined: there was none. */
  get goodbye(): { code: number; lastId: number } | undefined {
    const found = this.frames.findLast(({ type }) => type === frameTypes.goAway);
    return found && { lastId: found.payload.readUInt32BE(0), code: found.payload.readUInt32BE(4) };
  }

  reply(id: number): StreamReply {
    const found = this.replies.get(id);
    if (found === undefined) throw new Error(`there is no reply on stream ${id}`);
    return found;
  }

  /** What windows of the peer were widened by, by stream; 0: the connection. */
  get widened(): Map<number, number> {
    const sums = new Map<number, number>();
    for (const { type, id, payload } of this.frames) {
      if (type !== frameTypes.windowUpdate) continue;
      sums.set(id, (sums.get(id) ?? 0) + payload.readUInt32BE(0));
    }
    return sums;
  }

  #take(): void {
    const written = this.wire.written.slice(this.#seen);
    this.#seen = this.wire.written.length;
    let block: Buffer[] = [];
    for (const one of framesIn(Buffer.concat(written))) {
      const { type, id, payload } = one;
      switch (type) {
        case frameTypes.headers:
        case frameTypes.continuation:
          if (type === frameTypes.headers) block = [];
          block.push(payload);
          if ((one.flags & endHeaders) !== 0) this.#head(id, Buffer.concat(block));
          break;
        case frameTypes.data: {
          const found = this.reply(id);
          if (found.isEnded) throw new Error(`data behind the end of stream ${id}`);
          found.parts.push(payload);
          this.dataOrder.push(id);
          break;
        }
        case frameTypes.reset:
          this.#orNew(id).reset = payload.readUInt32BE(0);
          break;
        default:
          this.frames.push(one);
      }
      const mayEnd = type === frameTypes.headers || type === frameTypes.data;
      if (mayEnd && (one.flags & endStream) !== 0) this.#orNew(id).isEnded = true;
    }
  }

  #head(id: number, block: Buffer): void {
    const found = this.#orNew(id);
    for (const { name, value } of this.#decoder.decode(block, 0, block.length) ?? []) {
      found.fields[name] = value;
    }
  }

  #orNew(id: number): StreamReply {
    let found = this.replies.get(id);
    if (found === undefined) {
      const parts: Buffer[] = [];
      found = {
        fields: {},
        parts,
        get body() {
          return Buffer.concat(parts);
        },
        isEnded: false,
        reset: undefined,
      };
      this.replies.set(id, found);
    }
    return found;
  }
}
