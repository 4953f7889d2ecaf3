/** Two nodes whose heartbeats are delivered by the test. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Heartbeats } from "../../../server/cluster/heartbeats.ts";
import { MembershipTable } from "../../../server/cluster/membership-table.ts";
import { encodeStatus } from "../../../server/cluster/node-status.ts";
import { ProgressReports } from "../../../server/cluster/progress-reports.ts";

const id = "0".repeat(32);
let membership: MembershipTable;
let reports: ProgressReports;
/** For each heartbeat sent, whether it reported a waiting writer. */
let sent: boolean[];

beforeEach(() => {
  vi.useFakeTimers();
  membership = new MembershipTable();
  reports = new ProgressReports(membership);
  sent = [];
  const link = { publish: () => undefined, subscribe: () => ({ stop: () => undefined }) };
  const status = () => {
    sent.push(reports.reported());
    return {};
  };
  const report = (text: string) => expect.fail(text);
  reports.start(new Heartbeats({ link, tag: "A", status, heard: () => undefined, report }));
});

afterEach(() => {
  reports.stop();
  reports.close();
  vi.useRealTimers();
});

function hear(applied: number, isWaiting = false): void {
  const member = { tag: "B", url: "http://127.0.0.1:1", tcpUrl: null, fingerprint: null };
  const databases = new Map([[id, { role: "follower", epoch: 1, applied, mark: 0 } as const]]);
  const status = encodeStatus({ member, version: "1", databases, isWaiting });
  expect(membership.record("B", status)).not.toBeNull();
  reports.heard(isWaiting);
}

test("a writer waits until the other copy has the message, and reports it immediately", async () => {
  const untilMs = performance.now() + 60_000;
  const waited = reports.haveCopies(["B"], id, { wanted: 7, count: 1, untilMs });
  await vi.advanceTimersByTimeAsync(1);
  expect(sent).toEqual([false, true]);
  hear(6);
  await vi.advanceTimersByTimeAsync(1);
  hear(7);
  expect(await waited).toBe(1);
});

test("a wait ends at its time, and when the node stops", async () => {
  const untilMs = performance.now() + 50;
  const late = reports.haveCopies(["B"], id, { wanted: 7, count: 1, untilMs });
  await vi.advanceTimersByTimeAsync(60);
  expect(await late).toBe(0);
  const stopped = reports.haveCopies(["B"], id, { wanted: 7, count: 1, untilMs: untilMs + 1e6 });
  reports.stop();
  expect(await stopped).toBe(0);
});

test("progress is reported soon only to a node that waits, at most every 20 ms", () => {
  reports.progressed();
  vi.advanceTimersByTime(100);
  expect(sent).toHaveLength(1);
  hear(0, true);
  for (let ms = 0; ms < 90; ms++) {
    reports.progressed();
    vi.advanceTimersByTime(1);
  }
  expect(sent).toHaveLength(6);
});
