/** Heartbeats over a subject in memory. */
import { expect, test, vi } from "vitest";
import {
  type HeartbeatLink,
  type HeartbeatOptions,
  Heartbeats,
  heartbeatMs,
} from "../../../server/cluster/heartbeats.ts";

type Received = (message: { readonly data: Uint8Array }) => void;

class Subject implements HeartbeatLink {
  readonly #all = new Set<Received>();
  readonly sent: string[] = [];

  publish(subject: string, payload: string): void {
    expect(subject).toBe("jd.heartbeat");
    this.sent.push(payload);
    for (const one of this.#all) one({ data: Buffer.from(payload) });
  }

  subscribe(_: string, received: Received) {
    this.#all.add(received);
    return { stop: () => void this.#all.delete(received) };
  }
}

function start(link: Subject, tag: string, more: Partial<HeartbeatOptions> = {}): Heartbeats {
  return new Heartbeats({
    link,
    tag,
    status: () => ({ of: tag }),
    report: (reported) => expect.fail(reported),
    ...more,
  });
}

test("nodes receive each other's heartbeats every 500 ms, timed by their own clock", () => {
  vi.useFakeTimers();
  try {
    const link = new Subject();
    let nowMs = 1000;
    const heard: string[] = [];
    const a = start(link, "A", { nowMs: () => nowMs, heard: (tag) => heard.push(tag) });
    const b = start(link, "B");
    expect(a.heard.get("B")).toEqual({ status: { of: "B" }, atMs: 1000 });
    expect(a.heard.has("A")).toBe(false);
    nowMs = 1700;
    vi.advanceTimersByTime(heartbeatMs);
    expect(a.heard.get("B")?.atMs).toBe(1700);
    expect(b.heard.get("A")?.status).toEqual({ of: "A" });
    expect(heard).toEqual(["B", "B"]);
    b.stop();
    nowMs = 2500;
    vi.advanceTimersByTime(3 * heartbeatMs);
    expect(a.heard.get("B")?.atMs).toBe(1700);
    a.stop();
  } finally {
    vi.useRealTimers();
  }
});

test("drops invalid heartbeats and the hundred and first node", () => {
  const link = new Subject();
  const node = start(link, "A");
  for (const text of [
    "",
    "{",
    "null",
    "[]",
    '{"tag":"b","run":"1","status":{}}',
    '{"tag":"B","status":{}}',
    '{"tag":"B","run":"1","status":[]}',
    '{"tag":"B","run":"1"}',
    `{"tag":"B","run":"1","status":{"long":"${"x".repeat(1024 * 1024)}"}}`,
  ]) {
    link.publish("jd.heartbeat", text);
  }
  expect(node.heard.size).toBe(0);
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  for (const one of letters) {
    for (const other of letters.slice(0, 8)) {
      link.publish("jd.heartbeat", `{"tag":"${one}${other}","run":"1","status":{}}`);
    }
  }
  expect(node.heard.size).toBe(100);
  node.stop();
});

test("two servers with one tag log an error once a minute, and a status that is too large is not sent", () => {
  const link = new Subject();
  const reported: string[] = [];
  let nowMs = 0;
  const options = { report: (line: string) => reported.push(line), nowMs: () => nowMs };
  const first = start(link, "A", options);
  const second = start(link, "A", options);
  second.beat();
  expect(reported).toHaveLength(1);
  expect(reported[0]).toMatch(/Another server has the same tag A/);
  expect(first.heard.size).toBe(0);
  nowMs = 60_000;
  second.beat();
  expect(reported).toHaveLength(2);
  first.stop();
  second.stop();
  const large = start(link, "C", { ...options, status: () => ({ a: "x".repeat(2 ** 20) }) });
  expect(reported[2]).toMatch(/^The status of this node has \d+ characters and is not sent$/);
  large.stop();
});
