/** Frames of one connection: when they are sent, their content, and the queue for a slow reader. */
import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { WebSocket } from "ws";
import { ChangesConnection } from "../../../server/changes/changes-connection.ts";

/** The members of a web socket that are used; `read` reads from it. */
class Socket extends EventEmitter {
  bufferedAmount = 0;
  readonly frames: string[] = [];
  readonly closes: unknown[] = [];
  #sent: (() => void)[] = [];

  send(text: string | Buffer, done: () => void): void {
    const frame = String(text);
    this.frames.push(frame);
    this.bufferedAmount += frame.length;
    this.#sent.push(done);
  }

  close(...parts: unknown[]): void {
    this.closes.push(parts);
  }

  read(): void {
    this.bufferedAmount = 0;
    for (const done of this.#sent.splice(0)) done();
  }
}

let socket: Socket;
beforeEach(() => {
  vi.useFakeTimers();
  socket = new Socket();
});
afterEach(() => vi.useRealTimers());

function connect(waitingBytesMax = 1_000_000, isThrottled = false): ChangesConnection {
  const pace = { waitingBytesMax, isThrottled };
  const connection = new ChangesConnection(1, socket as unknown as WebSocket, pace);
  vi.advanceTimersByTime(1);
  socket.frames.length = 0;
  socket.read();
  return connection;
}

const message = (fill: string, length: number) => JSON.stringify({ Type: fill.repeat(length) });

test("sends an empty frame at intervals, unless the client does not read", () => {
  connect();
  vi.advanceTimersByTime(5_000);
  expect(socket.frames).toEqual(["[]"]);
  vi.advanceTimersByTime(60_000);
  expect(socket.frames).toEqual(["[]"]);
  socket.read();
  vi.advanceTimersByTime(5_000);
  expect(socket.frames).toEqual(["[]", "[]"]);
  socket.emit("close");
  vi.advanceTimersByTime(60_000);
  expect(socket.frames).toHaveLength(2);
});

test("combines the messages of one tick into a frame, or several if large, in order", () => {
  const connection = connect();
  const messages = [message("a", 3), message("b", 70_000), message("c", 3), message("d", 3)];
  for (const text of messages) connection.send(text);
  expect(socket.frames).toEqual([]);
  vi.advanceTimersByTime(1);
  socket.read();
  vi.advanceTimersByTime(1);
  expect(socket.frames.flatMap((frame) => JSON.parse(frame))).toEqual(
    messages.map((text) => JSON.parse(text)),
  );
  expect(socket.frames).toHaveLength(2);
});

test("queues messages for a slow reader, and sends them as it reads", () => {
  const connection = connect();
  for (let i = 0; i < 10; i++) connection.send(message(String(i), 60_000));
  vi.advanceTimersByTime(1);
  const sent = socket.frames.length;
  expect(sent).toBeLessThan(10);
  expect(connection.waitingCount).toBeGreaterThan(0);
  vi.advanceTimersByTime(1_000);
  expect(socket.frames).toHaveLength(sent);
  while (connection.waitingCount > 0) {
    socket.read();
    vi.advanceTimersByTime(1);
  }
  const types = socket.frames.flatMap((frame) => JSON.parse(frame) as { Type: string }[]);
  expect(types.map(({ Type }) => Type[0])).toEqual([..."0123456789"]);
  expect(socket.closes).toEqual([]);
});

test("queues a repeatable message once, and sends it again later", () => {
  const connection = connect();
  for (let i = 0; i < 3; i++) connection.sendOnce('{"Type":"x"}');
  vi.advanceTimersByTime(1);
  connection.sendOnce('{"Type":"x"}');
  vi.advanceTimersByTime(1);
  expect(socket.frames).toEqual(['[{"Type":"x"}]', '[{"Type":"x"}]']);
});

test.each([false, true])("who lets too much wait is cut off once; throttled: %s", (isThrottled) => {
  const connection = connect(10_000, isThrottled);
  const onEnd = vi.fn();
  connection.onEnd = onEnd;
  for (let i = 0; i < 200; i++) connection.sendOfDocument(`users/${i}`, message("a", 100));
  vi.advanceTimersByTime(10_000);
  expect(socket.closes).toEqual([[1013, "Changes were not read: more than 10 KB are pending."]]);
  expect(socket.frames).toEqual([]);
  expect(connection.waitingCount).toBe(0);
  socket.emit("close");
  expect(onEnd).toHaveBeenCalledTimes(1);
});

test("truncates a long reason between characters", () => {
  connect().close(1001, "é".repeat(200));
  expect(socket.closes).toEqual([[1001, "é".repeat(61)]]);
});
