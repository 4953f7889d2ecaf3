/** Metrics sent at intervals: heartbeats, back-pressure, the limit on sockets, and errors. */
import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type FeedSocket, liveFeedsMax, startFeed } from "../../../server/changes/live-feed.ts";

beforeEach(
  () => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }),
);
afterEach(() => void vi.useRealTimers());

class Socket extends EventEmitter {
  readonly sent: string[] = [];
  readonly closes: unknown[] = [];
  bufferedAmount = 0;

  send(text: string): void {
    this.sent.push(text);
  }

  close(code: number): void {
    this.closes.push(code);
    this.emit("close");
  }
}

const asSocket = (socket: Socket) => socket as unknown as FeedSocket;
const report = () => undefined;

test("sends news immediately and at each interval, and a heartbeat if nothing is new", () => {
  const socket = new Socket();
  const news = [["a"], [], ["b", "c"]];
  startFeed(asSocket(socket), { everyMs: 1_000, next: () => news.shift() ?? [], report });
  expect(socket.sent).toEqual(["a"]);
  vi.advanceTimersByTime(2_000);
  expect(socket.sent).toEqual(["a", "b", "c"]);
  vi.advanceTimersByTime(4_000);
  expect(socket.sent).toEqual(["a", "b", "c", "\r\n"]);
  socket.close(1000);
});

test("builds no messages for a client that does not read or has disconnected", () => {
  const socket = new Socket();
  let requested = 0;
  let ended = 0;
  const next = () => [`${++requested}`];
  startFeed(asSocket(socket), { everyMs: 1_000, next, end: () => ended++, report });
  socket.bufferedAmount = 2 * 1024 * 1024;
  vi.advanceTimersByTime(10_000);
  expect(requested).toBe(1);
  socket.bufferedAmount = 0;
  vi.advanceTimersByTime(1_000);
  expect(socket.sent).toEqual(["1", "2"]);
  socket.close(1000);
  vi.advanceTimersByTime(10_000);
  expect([requested, ended]).toEqual([2, 1]);
});

test("rejects clients beyond the limit until another one disconnects", () => {
  const feed = () => ({ everyMs: 1_000, next: () => [], report });
  const all = Array.from({ length: liveFeedsMax }, () => new Socket());
  for (const socket of all) startFeed(asSocket(socket), feed());
  const late = new Socket();
  startFeed(asSocket(late), feed());
  expect(late.closes).toEqual([1013]);
  all[0]?.close(1000);
  const next = new Socket();
  startFeed(asSocket(next), feed());
  expect(next.closes).toEqual([]);
  for (const socket of [...all.slice(1), next]) socket.close(1000);
});

test("an error closes its socket and is reported", () => {
  const socket = new Socket();
  const reported: unknown[] = [];
  const next = () => {
    throw new Error("no figures");
  };
  startFeed(asSocket(socket), { everyMs: 1_000, next, report: (error) => reported.push(error) });
  expect(socket.closes).toEqual([1011]);
  expect(reported).toHaveLength(1);
  vi.advanceTimersByTime(5_000);
  expect(reported).toHaveLength(1);
});
