/**
 * Thousands of sequences of frames, most of them broken: nothing is thrown, the same is seen however the bytes were
 * cut, and all is given back. SEED=n repeats a run.
 */
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { flags, frameTypes, settings } from "../../../../server/listening/http2/frames.ts";
import type { Http2Stream } from "../../../../server/listening/http2/http2-stream.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";
import {
  data,
  frame,
  get,
  Http2Peer,
  initialWindow,
  literals,
  opening,
  request,
  uint32,
  window,
} from "./http2-peer.ts";

const { endHeaders, endStream, padded } = flags;
const sequences = 1500;
const seed = seedOfRun();

/** The frames of one request, which may be cut into continuations. */
function requestFrames(random: SeededRandom, id: number): Buffer[] {
  const hasBody = random.chance(0.6);
  const length = random.chance(0.1) ? random.below(40_000) : random.below(300);
  const body = Buffer.alloc(length, random.bytes(7));
  const fields = random.chance(0.4) ? ["x-name", "y".repeat(random.below(200))] : [];
  if (random.chance(0.3)) fields.push("content-length", String(hasBody ? body.length : 0));
  const kept = Buffer.concat([Buffer.from([0x40]), literals("kept", `${id}`).subarray(1)]);
  const named = random.chance(0.5) && id > 1 ? Buffer.from([0xbe]) : kept;
  const block = Buffer.concat([
    request(`/${id}`, random.chance(0.1) ? "CONNECT" : "POST", ...fields),
    named,
  ]);
  const frames: Buffer[] = [];
  const cut = random.chance(0.3) ? random.below(block.length) : block.length;
  const end = hasBody ? 0 : endStream;
  const isWhole = cut === block.length;
  frames.push(
    frame(frameTypes.headers, (isWhole ? endHeaders : 0) | end, id, block.subarray(0, cut)),
  );
  if (!isWhole) frames.push(frame(frameTypes.continuation, endHeaders, id, block.subarray(cut)));
  if (!hasBody) return frames;
  const hasTrailers = random.chance(0.2);
  for (let at = 0; at < body.length; ) {
    const part = body.subarray(at, at + 1 + random.below(random.chance(0.2) ? 16_000 : 200));
    at += part.length;
    const isEnd = at === body.length && !hasTrailers ? endStream : 0;
    const pad = random.below(100);
    frames.push(
      random.chance(0.2)
        ? frame(
            frameTypes.data,
            isEnd | padded,
            id,
            Buffer.concat([Buffer.from([pad]), part, Buffer.alloc(pad)]),
          )
        : frame(frameTypes.data, isEnd, id, part),
    );
  }
  if (hasTrailers) {
    frames.push(frame(frameTypes.headers, endHeaders | endStream, id, literals("sum", "1")));
  } else if (body.length === 0) frames.push(data(id, "", true));
  return frames;
}

function otherFrame(random: SeededRandom): Buffer {
  const id = random.below(12);
  switch (random.below(8)) {
    case 0:
      return frame(frameTypes.ping, random.below(2), 0, random.bytes(8));
    case 1:
      return window(random.chance(0.5) ? 0 : id, random.below(random.chance(0.1) ? 2 ** 31 : 1000));
    case 2:
      return initialWindow(random.below(100_000));
    case 3:
      return frame(
        frameTypes.settings,
        0,
        0,
        Buffer.concat([Buffer.from([0, settings.headerTableSize]), uint32(random.below(10_000))]),
      );
    case 4:
      return frame(frameTypes.priority, 0, 1 + id, random.bytes(5));
    case 5:
      return frame(0x20 + random.below(100), random.below(256), id, random.bytes(random.below(50)));
    case 6:
      return frame(frameTypes.settings, flags.ack, 0);
    default:
      return random.chance(0.1)
        ? frame(frameTypes.goAway, 0, 0, Buffer.alloc(8))
        : frame(frameTypes.reset, 0, 1 + id, uint32(random.below(14)));
  }
}

/** The frames of several requests, in turn. */
function sequenceOf(random: SeededRandom): Buffer[] {
  const queues = Array.from({ length: 1 + random.below(6) }, (_, n) =>
    requestFrames(random, 2 * n + 1),
  );
  const frames: Buffer[] = [opening];
  // Heads must come in the order of their numbers, and blocks in one piece.
  let begun = 0;
  while (queues.some(({ length }) => length > 0)) {
    const isNext = begun < queues.length && random.chance(0.4);
    const queue = queues[isNext ? begun++ : random.below(begun)];
    for (let next = queue?.shift(); next !== undefined; next = queue?.shift()) {
      frames.push(next);
      const isBlock = next[3] === frameTypes.headers && ((next[4] as number) & endHeaders) === 0;
      if (!isBlock && random.chance(0.5)) break;
    }
    if (random.chance(0.2)) frames.push(otherFrame(random));
  }
  return frames;
}

function mutated(random: SeededRandom, frames: readonly Buffer[]): Buffer[] {
  const result: Buffer[] = frames.map((one) => Buffer.from(one));
  for (let left = random.below(4); left > 0; left--) {
    const at = random.below(result.length);
    const one = result[at] as Buffer;
    switch (random.below(8)) {
      case 0:
        one[random.below(one.length)] = random.below(256);
        break;
      case 1:
        result.splice(at, 1);
        break;
      case 2:
        result.splice(at, 0, one);
        break;
      case 3:
        result.splice(random.below(result.length), 0, one);
        break;
      case 4:
        if (one.length >= 9) one[4] = random.below(256);
        break;
      case 5:
        if (one.length >= 9) one[3] = random.below(12);
        break;
      case 6:
        if (one.length >= 9) one[8] = random.below(16);
        break;
      default:
        result.splice(at, 0, otherFrame(random));
    }
    if (result.length === 0) result.push(Buffer.from(opening));
  }
  return result;
}

function cutInto(random: SeededRandom, bytes: Buffer, lengthMax: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + random.below(lengthMax);
    pieces.push(Buffer.from(bytes.subarray(at, at + length)));
    at += length;
  }
  return pieces;
}

interface Seen {
  readonly requests: Map<number, string>;
  readonly code: number | undefined;
  /** Was a stream reset because of what came? */
  readonly hasReset: boolean;
}

/** What a session has seen of these pieces. Replies begin when all was given, so that they change nothing of it. */
async function seenOf(pieces: readonly Buffer[], random: SeededRandom): Promise<Seen> {
  const bodies = new Map<number, Promise<string>>();
  const peer = new Http2Peer((stream) => {
    // Some are read as they come, some later, some not.
    if (stream.id % 3 === 1) bodies.set(stream.id, bodyOf(stream));
  });
  for (const piece of pieces) peer.session.feed(piece);
  await peer.settle();
  const hasReset = [...peer.replies.values()].some((reply) => reply.reset !== undefined);
  for (const stream of peer.accepted) {
    if (stream.id % 3 === 2) bodies.set(stream.id, bodyOf(stream));
  }
  for (const stream of peer.accepted) await answer(stream, random);
  await peer.settle();
  expect(peer.errors).toEqual([]);
  const code = peer.goodbye?.code;
  peer.session.close();
  peer.wire.destroy();
  await peer.settle();
  const requests = new Map<number, string>();
  for (const stream of peer.accepted) {
    expect(stream.isClosed).toBe(true);
    expect(stream.unreadBytes).toBe(0);
    const { method, target } = stream.head;
    requests.set(stream.id, JSON.stringify([method, target, ...stream.head.entries()]));
    // Each reader is told of the end.
    await bodies.get(stream.id);
  }
  return { requests, code, hasReset };
}

function bodyOf(stream: Http2Stream): Promise<string> {
  return text(stream.body()).catch(() => "failed");
}

async function answer(stream: Http2Stream, random: SeededRandom): Promise<void> {
  const body = Buffer.alloc(random.below(random.chance(0.1) ? 100_000 : 100));
  if (random.chance(0.5)) stream.respond(200, ["a", "b"], body);
  else if (random.chance(0.8)) {
    const sink = stream.open(200, ["a", "b"]);
    sink.write(body);
    if (random.chance(0.9)) sink.end();
    else sink.destroy();
  } else stream.reset(2);
}

test("nothing escapes, and the cut of the bytes changes nothing", async () => {
  const codes = new Map<number | undefined, number>();
  for (let number = 0; number < sequences; number++) {
    // Spread: the first numbers of neighboring seeds are alike.
    const random = new SeededRandom(Math.imul(seed + number, 0x9e3779b1) >>> 0);
    const whole = sequenceOf(random);
    const frames = random.chance(0.2) ? whole : mutated(random, whole);
    const bytes = Buffer.concat(frames);
    const hint = `seed ${seed}, sequence ${number}`;
    const atOnce = await seenOf([Buffer.from(bytes)], random);
    const lengthMax = bytes.length > 5000 ? 500 : random.chance(0.3) ? 1 : 60;
    const inPieces = await seenOf(cutInto(random, bytes, lengthMax), random);
    codes.set(atOnce.code, (codes.get(atOnce.code) ?? 0) + 1);
    expect(inPieces.code, hint).toBe(atOnce.code);
    expect(inPieces.hasReset, hint).toBe(atOnce.hasReset);
    // What is taken back or ended within the same chunk does not begin.
    for (const [id, one] of atOnce.requests) expect(inPieces.requests.get(id), hint).toBe(one);
    const hasReset = frames.some(
      (one) => one[3] === frameTypes.reset || one[3] === frameTypes.goAway,
    );
    if (atOnce.code === undefined && !hasReset && !atOnce.hasReset) {
      expect(inPieces.requests.size, hint).toBe(atOnce.requests.size);
    }
  }
  // The mutations reach most of the ways to end, and many sequences go well.
  expect(codes.size).toBeGreaterThanOrEqual(5);
  expect(codes.get(undefined)).toBeGreaterThan(sequences / 4);
}, 60_000);

test("a sequence that is valid is seen the same at each place where it is cut", async () => {
  const random = new SeededRandom(seed);
  const frames = [opening, ...requestFrames(random, 1).slice(0, 4), get(3), get(5)];
  const bytes = Buffer.concat(frames);
  const whole = await seenOf([bytes], random);
  for (let at = 1; at < bytes.length; at += bytes.length > 2000 ? 17 : 1) {
    const seen = await seenOf([bytes.subarray(0, at), bytes.subarray(at)], random);
    expect(seen, `seed ${seed}, cut at ${at}`).toEqual(whole);
  }
});
