/** Heartbeats over a subject in memory. */
import { expect, test, vi } from "vitest";
import {
  type HeartbeatLink,
  type HeartbeatOptions,
  Heartbeats,
  heartbeatMs,
} from "../../../server/cluster/heartbeats.ts";
import { MembershipTable } from "../../../server/cluster/membership-table.ts";
import { encodeStatus } from "../../../server/cluster/node-status.ts";

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
    heard: () => undefined,
    report: (reported) => expect.fail(reported),
    ...more,
  });
}

test("nodes receive each other's heartbeats every 500 ms", () => {
  vi.useFakeTimers();
  try {
    const link = new Subject();
    const heard: unknown[] = [];
    const note = (by: string) => (tag: string, status: unknown) => heard.push([by, tag, status]);
    const a = start(link, "A", { heard: note("A") });
    const b = start(link, "B", { heard: note("B") });
    expect(heard).toEqual([["A", "B", { of: "B" }]]);
    vi.advanceTimersByTime(heartbeatMs);
    expect(heard.slice(1)).toEqual([
      ["B", "A", { of: "A" }],
      ["A", "B", { of: "B" }],
    ]);
    b.stop();
    vi.advanceTimersByTime(3 * heartbeatMs);
    expect(heard).toHaveLength(3);
    a.stop();
  } finally {
    vi.useRealTimers();
  }
});

test("drops invalid heartbeats", () => {
  const link = new Subject();
  const node = start(link, "A", { heard: (tag) => expect.fail(tag) });
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
  node.stop();
});

test("the hundred and first node has no place in the membership table", () => {
  const membership = new MembershipTable();
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  for (const tag of letters.flatMap((one) => letters.slice(0, 8).map((other) => one + other))) {
    const member = { tag, url: "http://127.0.0.1:1", tcpUrl: null, fingerprint: null };
    const status = { member, version: "1", databases: new Map(), isWaiting: false };
    membership.record(tag, encodeStatus(status));
  }
  expect(membership.present()).toHaveLength(100);
});

test("two servers with one tag log an error once a minute, and a status that is too large is not sent", () => {
  const link = new Subject();
  const reported: string[] = [];
  let nowMs = 0;
  const heard = (tag: string) => expect(tag).toBe("C");
  const options = { report: (line: string) => reported.push(line), nowMs: () => nowMs, heard };
  const first = start(link, "A", options);
  const second = start(link, "A", options);
  second.beat();
  expect(reported).toHaveLength(1);
  expect(reported[0]).toMatch(/Another server has the same tag A/);
  nowMs = 60_000;
  second.beat();
  expect(reported).toHaveLength(2);
  first.stop();
  second.stop();
  const large = start(link, "C", { ...options, status: () => ({ a: "x".repeat(2 ** 20) }) });
  expect(reported[2]).toMatch(/^The status of this node has \d+ characters and is not sent$/);
  large.stop();
});
