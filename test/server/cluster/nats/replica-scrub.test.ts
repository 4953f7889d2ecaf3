/** Judges replicas by the reports of their servers. */
import { expect, test } from "vitest";
import {
  planRepair,
  problemsOf,
  type Replica,
  readServerView,
  type ServerView,
} from "../../../../server/cluster/nats/replica-scrub.ts";

const name = "JD_1_1";
const sound = { first: 5, last: 20, messages: 16, bytes: 1600, deleted: 0 };

interface ReplicaReport extends Partial<Omit<Replica, "server" | "raftGroup">> {
  readonly isSynced?: boolean;
}

/** Three servers; the one called `leader` reports which of the other servers are current. */
function viewsOf(
  output: Readonly<Record<string, ReplicaReport>>,
  leader: string | undefined = "a",
  current: readonly string[] = Object.keys(output).filter((one) => one !== leader),
): ServerView[] {
  return Object.entries(output).map(([server, { isSynced = true, ...state }]) => {
    const { first, last, messages, bytes, deleted } = { ...sound, ...state };
    const others = Object.keys(output).filter((one) => one !== server);
    const replicas = others.map((one) => ({ name: one, current: current.includes(one) }));
    const detail = {
      name,
      cluster: { leader, replicas },
      config: { num_replicas: 3 },
      state: { first_seq: first, last_seq: last, messages, bytes, num_deleted: deleted },
      stream_raft_group: "S-R3F-x",
    };
    const other = { ...detail, name: "ORDERS", state: { ...detail.state, num_deleted: 5 } };
    const answer = {
      server: { name: server, ver: "2.15.1" },
      data: {
        config: { sync_always: isSynced },
        meta_cluster: { cluster_size: 3 },
        account_details: [{ name: "JACKDAW", stream_detail: [detail, other] }],
      },
    };
    return readServerView(Buffer.from(JSON.stringify(answer)));
  });
}

test("intact replicas have no problems, and foreign streams are ignored", () => {
  expect(problemsOf(viewsOf({ a: {}, b: {}, c: {} }), 3)).toEqual([]);
  // A replica that is being written may be ahead of another, which is current all the same.
  expect(
    problemsOf(viewsOf({ a: { last: 21, messages: 17, bytes: 1700 }, b: {}, c: {} }), 3),
  ).toEqual([]);
  const empty = { first: 21, messages: 0, bytes: 0 };
  expect(problemsOf(viewsOf({ a: empty, b: empty, c: empty }), 3)).toEqual([]);
});

test("detects holes from deleted messages and inconsistent counts", () => {
  expect(
    problemsOf(viewsOf({ a: {}, b: { messages: 13, deleted: 3 }, c: { messages: 14 } }), 3),
  ).toEqual([
    {
      stream: name,
      server: "b",
      kind: "hole",
      problem: "3 messages between 5 and 20 are missing",
    },
    {
      stream: name,
      server: "c",
      kind: "hole",
      problem: "it has 14 messages between 5 and 20, and should have 16",
    },
  ]);
});

test("detects a replica that differs from the two others, but none if all differ", () => {
  const [problem, ...more] = problemsOf(viewsOf({ a: {}, b: {}, c: { bytes: 1599 } }), 3);
  expect(problem).toMatchObject({ server: "c", kind: "differs" });
  expect(more).toEqual([]);
});

test("reports a lagging replica, a missing one, and a server that does not sync", () => {
  expect(
    problemsOf(viewsOf({ a: {}, b: {}, c: { last: 9, messages: 5 } }, "a", ["b"]), 3),
  ).toMatchObject([{ server: "c", kind: "behind", problem: "it is at 9 and not up to date" }]);
  // A single reporting server knows how many there should be.
  expect(problemsOf(viewsOf({ a: {}, b: {} }), 1)).toMatchObject([
    { stream: "", kind: "missing", problem: "only 2 of 3 NATS servers replied" },
    { stream: name, kind: "missing", problem: "2 of 3 replicas exist" },
  ]);
  expect(problemsOf(viewsOf({ a: {}, b: { isSynced: false }, c: {} }), 3)).toMatchObject([
    { stream: "", server: "b", kind: "unsafe" },
  ]);
});

test("wipes a replica only while two others are clean and current, and one of them leads", () => {
  const hole = { messages: 13, deleted: 3 };
  const plan = (views: ServerView[], server: string) => planRepair(views, name, server);
  expect(plan(viewsOf({ a: {}, b: {}, c: hole }), "c")).toEqual({
    server: "c",
    leadTo: undefined,
    raftGroup: "S-R3F-x",
  });
  expect(plan(viewsOf({ a: {}, b: {}, c: hole }, "c"), "c")).toMatchObject({ leadTo: "a" });
  const few = /^only 1 other replicas of JD_1_1 are clean and up to date; two are required$/;
  expect(plan(viewsOf({ a: {}, b: hole, c: hole }), "c")).toMatch(few);
  expect(plan(viewsOf({ a: {}, b: {}, c: hole }, "a", ["c"]), "c")).toMatch(few);
  expect(plan(viewsOf({ a: {}, c: hole }), "c")).toMatch(few);
  expect(plan(viewsOf({ a: {}, b: {}, c: hole }, ""), "c")).toBe(
    "JD_1_1 has no leader at the moment",
  );
  expect(plan(viewsOf({ a: {}, b: {}, c: hole }), "d")).toBe("d has no replica of JD_1_1");
  expect(planRepair([], name, "c")).toBe("c has no replica of JD_1_1");
});

test("rejects invalid server reports", () => {
  for (const text of ["{}", "[]", '{"server":{},"data":{}}']) {
    expect(() => readServerView(Buffer.from(text))).toThrow(TypeError);
  }
});
