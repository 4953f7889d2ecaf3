/** Streams, flow control and limits of a connection, with a client whose every frame is made by hand. */
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import {
  errorCodes,
  flags,
  frameTypes,
  settings,
} from "../../../../server/listening/http2/frames.ts";
import type { Http2Stream } from "../../../../server/listening/http2/http2-stream.ts";
import {
  data,
  frame,
  get,
  Http2Peer,
  initialWindow,
  literals,
  opening,
  post,
  request,
  reset,
  uint32,
  window,
} from "./http2-peer.ts";

const { endHeaders, endStream, padded } = flags;
const kilobyte = 1024;
const megabyte = 1024 * 1024;

/** Answers with what the path says: "/N" is N bytes. */
function answerSized(stream: Http2Stream): void {
  stream.respond(200, [], Buffer.alloc(Number(stream.head.target.slice(1)), "x"));
}

/** Answers with the body. */
async function echo(stream: Http2Stream): Promise<void> {
  try {
    stream.respond(200, ["a", "b"], Buffer.from(await text(stream.body())));
  } catch {
    // The client has gone.
  }
}

const echoing = (stream: Http2Stream) => void echo(stream);

describe("what is sent", () => {
  test("keeps to windows of one byte, of the stream and of the connection", async () => {
    const peer = new Http2Peer(answerSized);
    await peer.send(opening, initialWindow(0), get(1, "/70000"), get(3, "/5"));
    expect(peer.reply(1).body.length).toBe(0);
    for (let sent = 1; sent <= 5; sent++) {
      await peer.send(window(3, 1));
      expect(peer.reply(3).body.length).toBe(sent);
    }
    expect(peer.reply(3).isEnded).toBe(true);
    await peer.send(window(1, 100_000));
    expect(peer.reply(1).body.length).toBe(65_535 - 5);
    for (let sent = 1; sent <= 20; sent++) {
      await peer.send(window(0, 1));
      expect(peer.reply(1).body.length).toBe(65_530 + sent);
    }
    await peer.send(window(0, 10_000));
    expect(peer.reply(1)).toMatchObject({ isEnded: true, reset: undefined });
    expect(peer.reply(1).body.length).toBe(70_000);
  });

  test("waits while settings have made a window negative", async () => {
    const peer = new Http2Peer(answerSized);
    await peer.send(opening, initialWindow(1000), get(1, "/3000"));
    expect(peer.reply(1).body.length).toBe(1000);
    await peer.send(initialWindow(100), window(1, 900));
    expect(peer.reply(1).body.length).toBe(1000);
    await peer.send(window(1, 1));
    expect(peer.reply(1).body.length).toBe(1001);
    await peer.send(initialWindow(3000));
    expect(peer.reply(1).body.length).toBe(3000);
    expect(peer.reply(1).isEnded).toBe(true);
  });

  test("ends a reply whose window is used up, and one that has no body", async () => {
    const peer = new Http2Peer((stream) => {
      const body = stream.open(200, []);
      if (stream.head.target === "/10") body.write("0123456789");
      body.end();
    });
    await peer.send(opening, initialWindow(10), get(1, "/10"), get(3, "/none"));
    expect(peer.reply(1)).toMatchObject({ isEnded: true });
    await peer.send(initialWindow(0), get(5, "/none"));
    expect(peer.reply(5)).toMatchObject({ isEnded: true });
  });

  test("gives each of a hundred large replies its turn", async () => {
    const body = Buffer.alloc(megabyte, "x");
    const peer = new Http2Peer((stream) => {
      const sink = stream.open(200, []);
      sink.end(body);
    });
    const ids = Array.from({ length: 100 }, (_, n) => 2 * n + 1);
    await peer.send(opening, initialWindow(2 * megabyte), ...ids.map((id) => get(id)));
    for (let round = 0; round < 120; round++) await peer.send(window(0, megabyte));
    expect(ids.every((id) => peer.reply(id).isEnded)).toBe(true);
    expect(ids.every((id) => peer.reply(id).body.length === megabyte)).toBe(true);
    // No stream is two frames ahead of another that has something to send.
    const counts = new Map<number, number>();
    const order = peer.dataOrder.slice(0, 5000);
    let widest = 0;
    for (const id of order) {
      counts.set(id, (counts.get(id) ?? 0) + 1);
      const all = ids.map((one) => counts.get(one) ?? 0);
      widest = Math.max(widest, Math.max(...all) - Math.min(...all));
    }
    // One may have been cut short where the connection's window ended.
    expect(widest).toBeLessThanOrEqual(5);
  });

  test("waits for a client that stops reading, takes nothing from it meanwhile, and goes on", async () => {
    const peer = new Http2Peer(answerSized, { streamCountMax: 1000 });
    await peer.send(opening, initialWindow(megabyte), window(0, 100 * megabyte));
    peer.wire.isStalled = true;
    const ids = Array.from({ length: 200 }, (_, n) => 2 * n + 1);
    for (const id of ids) await peer.send(get(id, "/10000"));
    expect(peer.wire.isPaused()).toBe(true);
    expect(peer.wire.writableLength).toBeLessThan(400 * kilobyte);
    peer.wire.goOn();
    await peer.settle();
    await peer.settle();
    expect(peer.wire.isPaused()).toBe(false);
    expect(ids.every((id) => peer.reply(id).isEnded)).toBe(true);
    expect(ids.every((id) => peer.reply(id).body.length === 10_000)).toBe(true);
  });

  test("is a head of many frames, where it is that large", async () => {
    const value = "v".repeat(1000);
    const fields = Array.from({ length: 40 }, (_, n) => [`n${n}`, value]).flat();
    const peer = new Http2Peer((stream) => stream.respond(200, fields, Buffer.from("body")));
    await peer.send(opening, get(1));
    expect(peer.reply(1).body.toString()).toBe("body");
    expect(peer.reply(1).fields).toMatchObject({ ":status": "200", n0: value, n39: value });
  });

  test("a value that no header can have fails for who answers, and leaves the connection whole", async () => {
    const failures: unknown[] = [];
    const peer = new Http2Peer((stream) => {
      try {
        stream.respond(200, ["a", "b", "bad", "x\ny"], undefined);
      } catch (error) {
        failures.push(error);
        stream.respond(500, ["a", "b"], undefined);
      }
    });
    await peer.send(opening, get(1), get(3));
    expect(failures.length).toBe(2);
    expect(peer.reply(3).fields).toEqual({ ":status": "500", a: "b" });
  });
});

describe("what is received", () => {
  test("is the body, with padding, trailers and frames without bytes", async () => {
    const peer = new Http2Peer(echoing);
    const padding = (bytes: string, count: number) =>
      Buffer.concat([Buffer.from([count]), Buffer.from(bytes), Buffer.alloc(count)]);
    await peer.send(
      opening,
      frame(
        frameTypes.headers,
        endHeaders | padded | flags.priority,
        1,
        Buffer.concat([
          Buffer.from([3]),
          Buffer.alloc(5),
          request("/", "POST", "content-length", "8"),
          Buffer.alloc(3),
        ]),
      ),
      frame(frameTypes.data, padded, 1, padding("one", 9)),
      data(1, ""),
      frame(frameTypes.data, padded, 1, padding("", 255)),
      data(1, "two"),
      frame(frameTypes.data, padded, 1, padding("34", 0)),
      frame(frameTypes.headers, endHeaders | endStream, 1, literals("checksum", "1")),
    );
    expect(peer.reply(1).body.toString()).toBe("onetwo34");
    expect(peer.reply(1).isEnded).toBe(true);
  });

  test("is the same byte by byte", async () => {
    const peer = new Http2Peer(echoing);
    const whole = Buffer.concat([
      opening,
      post(1),
      data(1, "first"),
      data(1, "last", true),
      get(3),
    ]);
    for (const byte of whole) peer.session.feed(Buffer.from([byte]));
    await peer.settle();
    expect(peer.reply(1).body.toString()).toBe("firstlast");
    expect(peer.reply(3).isEnded).toBe(true);
  });

  test("is given back to the windows, whether it was read, refused, padding, or late", async () => {
    const kinds: ((id: number) => Buffer[])[] = [
      (id) => [post(id, "/read"), ...full(id, 8), data(id, "", true)],
      // Longer than declared.
      (id) => [post(id, "/read", "content-length", "1"), ...full(id, 1)],
      // Answered before it has come.
      (id) => [post(id, "/early"), ...full(id, 4)],
      // Not a request.
      (id) => [post(id, "no path"), ...full(id, 4)],
      // Behind its end.
      (id) => [post(id, "/read"), data(id, "x", true), data(id, Buffer.alloc(8000))],
      (id) => [post(id, "/read"), padding(id), padding(id), data(id, "", true)],
      // Ended by trailers that are none.
      (id) => [
        post(id, "/never"),
        ...full(id, 1),
        frame(frameTypes.headers, endHeaders, id, literals("a", "b")),
      ],
      // Taken back by the client, with a part that nobody has read.
      (id) => [post(id, "/never"), ...full(id, 4), reset(id)],
    ];
    function full(id: number, count: number): Buffer[] {
      return Array.from({ length: count }, () => data(id, Buffer.alloc(16_000)));
    }
    function padding(id: number): Buffer {
      const payload = Buffer.alloc(256, 0);
      payload[0] = 255;
      return frame(frameTypes.data, padded, id, payload);
    }
    const peer = new Http2Peer((stream) => {
      if (stream.head.target === "/read") echoing(stream);
      else if (stream.head.target === "/early") stream.respond(403, [], undefined);
    });
    await peer.send(opening, window(0, 1 << 30), initialWindow(megabyte));
    let sent = 0;
    let id = 1;
    for (let round = 0; round < 60; round++) {
      for (const kind of kinds) {
        const frames = kind(id);
        for (const one of frames) if (one[3] === frameTypes.data) sent += one.readUIntBE(0, 3);
        // One by one, so that some come after the stream was closed.
        for (const one of frames) peer.session.feed(one);
        await peer.settle();
        id += 2;
      }
    }
    expect(peer.goodbye).toBeUndefined();
    expect(sent).toBeGreaterThan(16 * megabyte);
    // All but what is not yet worth a frame.
    const widened = (peer.widened.get(0) ?? 0) - (8 * megabyte - 65_535);
    expect(sent - widened).toBeLessThan(4 * megabyte);
    expect(sent - widened).toBeGreaterThanOrEqual(0);
  });

  test("ends with an error where it ends before its time", async () => {
    const ends: Promise<string>[] = [];
    const peer = new Http2Peer((stream) => {
      ends.push(text(stream.body()).then(String, () => "failed"));
    });
    await peer.send(
      opening,
      post(1),
      data(1, "part"),
      post(3),
      data(3, "part"),
      post(5, "/", "content-length", "9"),
      data(5, "part", true),
      post(7),
      data(7, "part"),
    );
    await peer.send(reset(1));
    await peer.send(data(9, "of no stream"));
    expect(await Promise.all(ends)).toEqual(["failed", "failed", "failed"]);
    expect(peer.reply(5).reset).toBe(errorCodes.protocol);
    expect(peer.goodbye?.code).toBe(errorCodes.protocol);
    expect(peer.accepted.every(({ isClosed }) => isClosed)).toBe(true);
  });

  test("in half a million frames of a byte takes no more memory than their bytes, and no time", async () => {
    const peer = new Http2Peer();
    const count = 500_000;
    const chunk = Buffer.concat(Array.from({ length: 5000 }, () => data(1, "x")));
    await peer.send(opening, post(1));
    const before = process.memoryUsage();
    const startedMs = performance.now();
    for (let sent = 0; sent < count; sent += 5000) peer.session.feed(Buffer.from(chunk));
    const after = process.memoryUsage();
    const heldBytes = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    expect(peer.accepted[0]?.unreadBytes).toBe(count);
    // Garbage counts too, and an object for each frame would take more than 100 MB.
    expect(heldBytes).toBeLessThan(80 * megabyte);
    const reading = text((peer.accepted[0] as Http2Stream).body());
    await peer.send(data(1, "", true));
    expect((await reading).length).toBe(count);
    expect(performance.now() - startedMs).toBeLessThan(5000);
  });

  test("of a byte does not keep the chunk in which it came", async () => {
    const peer = new Http2Peer();
    await peer.send(opening, post(1));
    for (let round = 0; round < 300; round++) {
      const fill = frame(0x77, 0, 0, Buffer.alloc(16_000));
      peer.session.feed(Buffer.concat([data(1, "xy"), fill, fill, fill, fill]));
    }
    const body = (peer.accepted[0] as Http2Stream).body();
    const chunks: Buffer[] = [];
    body.on("data", (chunk: Buffer) => chunks.push(chunk));
    await peer.send(data(1, "", true));
    const memory = new Set(chunks.map(({ buffer }) => buffer));
    const bytes = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(Buffer.concat(chunks).length).toBe(600);
    expect(bytes).toBeLessThan(64 * kilobyte);
  });

  test("comes to who reads it in as few pieces as it came", async () => {
    const peer = new Http2Peer();
    await peer.send(opening, post(1));
    const chunks: Buffer[] = [];
    (peer.accepted[0] as Http2Stream).body().on("data", (chunk: Buffer) => chunks.push(chunk));
    await peer.settle();
    await peer.send(...Array.from({ length: 1000 }, () => data(1, "x")));
    expect(Buffer.concat(chunks).length).toBe(1000);
    expect(chunks.length).toBeLessThan(5);
  });
});

describe("a stream", () => {
  test("is refused over the number that may be open, and the next one is not", async () => {
    const peer = new Http2Peer(undefined, { streamCountMax: 3 });
    await peer.send(opening, get(1), get(3), get(5), get(7), get(9));
    expect(peer.reply(7).reset).toBe(errorCodes.refused);
    expect(peer.reply(9).reset).toBe(errorCodes.refused);
    peer.accepted[0]?.respond(200, [], undefined);
    await peer.send(get(11));
    expect(peer.accepted.map(({ id }) => id)).toEqual([1, 3, 5, 11]);
  });

  test("that is closed says so once, and takes no reply", async () => {
    const closed: number[] = [];
    const peer = new Http2Peer((stream) => stream.whenClosed(() => closed.push(stream.id)));
    await peer.send(opening, get(1), get(3), get(5));
    await peer.send(reset(1), reset(1), reset(3));
    peer.wire.destroy();
    await peer.settle();
    expect(closed).toEqual([1, 3, 5]);
    for (const stream of peer.accepted) {
      stream.respond(200, [], Buffer.from("late"));
      stream.open(200, []).end("late");
      stream.reset(errorCodes.cancel);
    }
    await peer.settle();
    expect(peer.replies.size).toBe(0);
  });

  test("that is a tunnel ends on both sides one by one, and loses nothing", async () => {
    const received: string[] = [];
    const peer = new Http2Peer((stream) => {
      const tunnel = stream.tunnel();
      stream.sendHead(200, []);
      tunnel.on("data", (chunk: Buffer) => received.push(chunk.toString()));
      tunnel.write("hello");
      if (stream.head.authority === "ends") tunnel.end();
    });
    const connect = (id: number, authority: string) =>
      frame(
        frameTypes.headers,
        endHeaders,
        id,
        literals(
          ":method",
          "CONNECT",
          ":protocol",
          "websocket",
          ":scheme",
          "http",
          ":path",
          "/",
          ":authority",
          authority,
        ),
      );
    await peer.send(opening, connect(1, "ends"));
    expect(peer.reply(1)).toMatchObject({ isEnded: true, reset: undefined });
    await peer.send(data(1, "still"));
    await peer.send(data(1, "there", true));
    expect(received).toEqual(["still", "there"]);
    expect(peer.accepted[0]?.isClosed).toBe(true);
    await peer.send(connect(3, "stays"));
    await peer.send(data(3, "x", true));
    expect(peer.accepted[1]?.isClosed).toBe(false);
    peer.accepted[1]?.reset(errorCodes.cancel);
    await peer.settle();
    expect(peer.reply(3)).toMatchObject({ isEnded: false, reset: errorCodes.cancel });
  });
});

describe("a connection", () => {
  test("that is asked to end answers what it has begun, and takes nothing new", async () => {
    const peer = new Http2Peer();
    await peer.send(opening, get(1), get(3));
    peer.session.close();
    await peer.send(get(5), post(7), data(7, "late"));
    expect(peer.goodbye).toEqual({ code: errorCodes.none, lastId: 3 });
    expect(peer.accepted.length).toBe(2);
    for (const stream of peer.accepted) stream.respond(200, [], Buffer.from("answer"));
    await peer.settle();
    expect([1, 3].map((id) => peer.reply(id).body.toString())).toEqual(["answer", "answer"]);
    expect(peer.wire.writableEnded).toBe(true);
  });

  test("takes a farewell, whatever is behind it", async () => {
    const farewell = frame(frameTypes.goAway, 0, 0, Buffer.alloc(8));
    const peer = new Http2Peer(answerSized);
    await peer.send(opening, farewell, get(1), frame(0x77, 0, 0), data(9, "x"));
    expect(peer.goodbye).toEqual({ code: errorCodes.none, lastId: 0 });
    expect(peer.wire.errored).toBeNull();
    expect(peer.accepted.length).toBe(0);
  });

  test("that has said farewell leaves a slow client the time to read its replies", async () => {
    const peer = new Http2Peer(answerSized);
    await peer.send(opening, initialWindow(megabyte), window(0, megabyte));
    peer.wire.isStalled = true;
    await peer.send(get(1, "/200000"));
    peer.session.close();
    await new Promise((resolve) => setTimeout(resolve, 1200));
    peer.session.look(performance.now(), false);
    expect(peer.wire.destroyed).toBe(false);
    peer.wire.goOn();
    await peer.settle();
    expect(peer.reply(1).body.length).toBe(200_000);
    // One that does not read it at all is cut off.
    const deaf = new Http2Peer(answerSized);
    await deaf.send(opening);
    deaf.wire.isStalled = true;
    await deaf.send(get(1, "/2000"));
    deaf.session.close();
    const nowMs = performance.now();
    for (let ms = 0; ms <= 2600; ms += 500) deaf.session.look(nowMs + ms, false);
    expect(deaf.wire.destroyed).toBe(true);
  });

  test("is not idle while a reply is on its way", async () => {
    const peer = new Http2Peer(answerSized, { stallMs: 60_000 });
    await peer.send(opening, initialWindow(0), get(1, "/100"));
    const nowMs = performance.now();
    for (let ms = 0; ms <= 20_000; ms += 500) peer.session.look(nowMs + ms, false);
    expect(peer.goodbye).toBeUndefined();
    await peer.send(window(1, 100));
    expect(peer.reply(1).isEnded).toBe(true);
    peer.session.look(nowMs + 4_000, false);
    expect(peer.wire.writableEnded).toBe(false);
    peer.session.look(nowMs + 6_000, false);
    expect(peer.wire.writableEnded).toBe(true);
  });

  test.each([
    ["the stream's", initialWindow(0), 1],
    ["the connection's", initialWindow(megabyte), 0],
  ])(
    "does not keep replies for ever for a client that leaves %s window shut and sends pings",
    async (_what, setting, isReset) => {
      const peer = new Http2Peer(answerSized);
      await peer.send(opening, setting, get(1, "/64000"), get(3, "/64000"));
      const nowMs = performance.now();
      for (let ms = 0; ms <= 2600; ms += 500) {
        peer.session.look(nowMs + ms, false);
        if (!peer.wire.destroyed) await peer.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)));
      }
      await peer.settle();
      expect(peer.accepted.every(({ isClosed }) => isClosed)).toBe(true);
      expect(peer.wire.destroyed).toBe(isReset === 0);
    },
  );

  test("ends when a head comes too slowly, in one frame, in several, or before the first", async () => {
    const head = get(1);
    const cases = [
      [opening, head.subarray(0, 20)],
      [opening, frame(frameTypes.headers, endStream, 1, request("/"))],
      [opening.subarray(0, 20)],
      [opening.subarray(0, 30)],
    ];
    for (const parts of cases) {
      const peer = new Http2Peer();
      const nowMs = performance.now();
      await peer.send(...parts);
      peer.session.look(nowMs + 900, false);
      expect(peer.wire.destroyed).toBe(false);
      // A byte more is not enough.
      if (parts.length === 2 && parts[1]?.length === 20) peer.session.feed(head.subarray(20, 21));
      peer.session.look(nowMs + 1500, false);
      expect(peer.wire.destroyed).toBe(true);
    }
  });

  test("survives an error of who answers, which disturbs nobody else", async () => {
    const peer = new Http2Peer(() => {
      throw new Error("a bug");
    });
    await peer.send(opening, get(1));
    expect(peer.errors).toEqual([new Error("a bug")]);
    expect(peer.wire.destroyed).toBe(true);
    expect(peer.accepted[0]?.isClosed).toBe(true);
  });

  const settingsOf = (count: number) =>
    frame(
      frameTypes.settings,
      0,
      0,
      Buffer.concat(
        Array.from({ length: count }, (_, n) =>
          Buffer.concat([Buffer.from([0, settings.initialWindowSize]), uint32(n % 1000)]),
        ),
      ),
    );
  test.each<[string, Buffer[]]>([
    ["settings in one frame", [settingsOf(1001)]],
    [
      "heads of a stream that was reset",
      Array.from({ length: 1100 }, () =>
        frame(frameTypes.headers, endHeaders, 1, literals("a", "b")),
      ),
    ],
    ["empty data of a stream that was reset", Array.from({ length: 1100 }, () => data(1, ""))],
    ["streams after a farewell", Array.from({ length: 1100 }, (_, n) => get(2 * n + 5))],
    ["pings", Array.from({ length: 1100 }, () => frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))],
    [
      "streams that are no requests",
      Array.from({ length: 1100 }, (_, n) => post(2 * n + 5, "no path")),
    ],
    [
      "windows that grow by nothing",
      Array.from({ length: 1100 }, (_, n) => Buffer.concat([get(2 * n + 5), window(2 * n + 5, 0)])),
    ],
  ])("ends at a flood of %s", async (what, frames) => {
    const peer = new Http2Peer();
    await peer.send(opening, post(1), post(3));
    peer.accepted[0]?.reset(errorCodes.cancel);
    if (what.includes("farewell")) peer.session.close();
    await peer.send(...frames);
    expect(peer.goodbye?.code).toBe(errorCodes.enhanceYourCalm);
    expect(peer.accepted.every(({ isClosed }) => isClosed)).toBe(true);
  });

  const continued = (count: number, part: Buffer) => [
    frame(frameTypes.headers, endStream, 1, literals(":method", "GET")),
    ...Array.from({ length: count }, () => frame(frameTypes.continuation, 0, 1, part)),
  ];
  test.each([
    ["empty", Buffer.alloc(0)],
    ["of one byte", Buffer.from([0x82])],
    ["of a header", literals("a", "b")],
  ])("accepts at most eight CONTINUATION frames, %s", async (_what, part) => {
    const peer = new Http2Peer();
    await peer.send(opening, ...continued(8, part));
    expect(peer.goodbye).toBeUndefined();
    await peer.send(frame(frameTypes.continuation, 0, 1, part));
    expect(peer.goodbye?.code).toBe(errorCodes.enhanceYourCalm);
    expect(peer.accepted).toEqual([]);
  });

  test("reads a header block in nine frames", async () => {
    const peer = new Http2Peer();
    const rest = literals(":scheme", "https", ":path", "/a", ":authority", "a", "b", "c");
    const parts = Array.from({ length: 8 }, (_, n) =>
      frame(
        frameTypes.continuation,
        n === 7 ? endHeaders : 0,
        1,
        rest.subarray(n * 4, n === 7 ? rest.length : n * 4 + 4),
      ),
    );
    await peer.send(opening, ...continued(0, Buffer.alloc(0)), ...parts);
    expect(peer.accepted[0]?.head.target).toBe("/a");
  });

  test("survives a write to a client that has gone", async () => {
    const peer = new Http2Peer();
    await peer.send(opening, get(1));
    // As Node does where the client has ended its side.
    peer.wire.end();
    await peer.settle();
    peer.accepted[0]?.respond(200, [], Buffer.from("late"));
    await peer.settle();
    expect(peer.wire.destroyed).toBe(true);
  });
});
