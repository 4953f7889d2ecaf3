/** Repair of damaged replicas: which action, by which node, and when none. */
import { describe, expect, test } from "vitest";
import {
  problemsOf,
  readServerView,
  type ServerView,
  type StreamProblem,
} from "../../../../server/cluster/nats/replica-scrub.ts";
import { type Remedy, remediesOf } from "../../../../server/cluster/nats/stream-remedies.ts";

interface ReplicaReport {
  readonly first?: number;
  readonly last?: number;
  readonly lost?: number;
  readonly extraBytes?: number;
}

interface Seen {
  /** By server; a server that is left out has no replica. */
  readonly replicas: Readonly<Record<string, ReplicaReport>>;
  readonly leader?: string | null;
  /** Replicas that are not up to date. */
  readonly late?: readonly string[];
  /** Number of replicas of the stream; 3 by default. */
  readonly copies?: number;
}

const hole: ReplicaReport = { lost: 3 };

/** Reports of servers a, b, c; servers in `silent` do not report. */
function viewsOf(
  streams: Readonly<Record<string, Seen>>,
  silent: readonly string[] = [],
): ServerView[] {
  const servers = ["a", "b", "c"].filter((server) => !silent.includes(server));
  return servers.map((server) => {
    const details = Object.entries(streams).flatMap(([name, seen]) => {
      const { replicas, leader = "a", late = [], copies = 3 } = seen;
      const own = replicas[server];
      if (own === undefined) return [];
      const { first = 5, last = 20, lost = 0, extraBytes = 0 } = own;
      const messages = last - first + 1 - lost;
      const others = Object.keys(replicas).filter((one) => one !== server);
      return {
        name,
        cluster: {
          ...(leader === null ? {} : { leader }),
          replicas: others.map((one) => ({ name: one, current: !late.includes(one) })),
        },
        config: { num_replicas: copies },
        state: {
          first_seq: first,
          last_seq: last,
          messages,
          bytes: messages * 100 + extraBytes,
          num_deleted: lost,
        },
        stream_raft_group: `S-${name}`,
      };
    });
    const data = {
      config: { sync_always: true },
      meta_cluster: { cluster_size: 3 },
      account_details: [{ stream_detail: details }],
    };
    const answer = { server: { name: server, ver: "2.15.1" }, data };
    return readServerView(Buffer.from(JSON.stringify(answer)));
  });
}

/** The remedies when two consecutive checks return `views`, or the second one returns `then`. */
function remedies(views: ServerView[], then: ServerView[] = views): Remedy[] {
  const before = problemsOf(views, 3, views);
  return remediesOf({ views: then, earlier: views, problems: problemsOf(then, 3, views) }, before);
}

const one = "JD_1_1";
const two = "JD_2_1";

describe("a replica of three", () => {
  test("is wiped by its own node if it has a hole", () => {
    for (const server of ["b", "c"]) {
      const replicas = { a: {}, b: {}, c: {}, [server]: hole };
      expect(remedies(viewsOf({ [one]: { replicas } }))).toEqual([
        { kind: "wipe", stream: one, server },
      ]);
    }
  });

  test("is not wiped after a single check", () => {
    const views = viewsOf({ [one]: { replicas: { a: {}, b: {}, c: hole } } });
    const look = { views, earlier: views, problems: problemsOf(views, 3, views) };
    expect(remediesOf(look, [])).toMatchObject([
      { kind: "wait", reason: "it may resolve by itself" },
    ]);
    const other: StreamProblem = { stream: one, server: "b", kind: "hole", problem: "" };
    expect(remediesOf(look, [other])).toMatchObject([{ kind: "wait" }]);
  });

  test("hands over leadership immediately if it is the leader, and is wiped afterwards", () => {
    const views = viewsOf({ [one]: { replicas: { a: hole, b: {}, c: {} } } });
    const look = { views, earlier: views, problems: problemsOf(views, 3, views) };
    expect(remediesOf(look, [])).toMatchObject([
      { kind: "lead", stream: one, server: "b" },
      { kind: "wait" },
    ]);
    expect(remedies(views)).toEqual([
      { kind: "lead", stream: one, server: "b" },
      { kind: "wipe", stream: one, server: "a" },
    ]);
  });

  test("is wiped if its bytes differ from two others", () => {
    const views = viewsOf({ [one]: { replicas: { a: {}, b: {}, c: { extraBytes: -1 } } } });
    expect(remedies(views)).toEqual([{ kind: "wipe", stream: one, server: "c" }]);
  });

  test("is wiped if its start or end is missing", () => {
    for (const c of [{ first: 9 }, { last: 18 }]) {
      const views = viewsOf({ [one]: { replicas: { a: {}, b: {}, c } } });
      expect(remedies(views)).toEqual([{ kind: "wipe", stream: one, server: "c" }]);
      // A single check does not prove it.
      expect(problemsOf(views, 3)).toEqual([]);
    }
  });

  test("may be ahead or lag while messages are added and removed", () => {
    const before = viewsOf({ [one]: { replicas: { a: {}, b: {}, c: {} } } });
    const cases = [
      { a: { last: 30 }, b: { last: 29 }, c: { last: 25 } },
      { a: { first: 15 }, b: {}, c: {} },
      { a: { first: 15, last: 40 }, b: { first: 15, last: 38 }, c: { last: 20 } },
    ];
    for (const replicas of cases) {
      const views = viewsOf({ [one]: { replicas } });
      expect(problemsOf(views, 3, before)).toEqual([]);
    }
    // One replica was trimmed first.
    const trimmed = viewsOf({ [one]: { replicas: { a: { first: 9 }, b: {}, c: {} } } });
    const all = viewsOf({
      [one]: { replicas: { a: { first: 9 }, b: { first: 9 }, c: { first: 9 } } },
    });
    expect(problemsOf(all, 3, trimmed)).toEqual([]);
  });

  test("is not treated as damaged if it is not up to date", () => {
    const replicas = { a: {}, b: {}, c: { last: 9 } };
    const views = viewsOf({ [one]: { replicas, late: ["c"] } });
    expect(problemsOf(views, 3, views)).toMatchObject([{ kind: "behind", server: "c" }]);
    expect(remedies(views)).toEqual([]);
  });

  test("is not wiped while a server is away, or another replica is not up to date", () => {
    const damaged = { replicas: { a: {}, b: {}, c: hole } };
    const away = viewsOf({ [one]: damaged }, ["b"]);
    expect(remedies(away)).toMatchObject([
      { kind: "wait", reason: expect.stringMatching(/^only 1 other replicas of JD_1_1 are clean/) },
    ]);
    const late = { replicas: { a: {}, b: {}, c: {} }, late: ["b"] };
    expect(remedies(viewsOf({ [one]: damaged, [two]: late }))).toEqual([
      {
        kind: "wait",
        stream: one,
        reason: "c is not stopped while b, JD_2_1: it is at 20 and not up to date",
      },
    ]);
    // Its own lag in another stream does not prevent it.
    const own = { replicas: { a: {}, b: {}, c: {} }, late: ["c"] };
    expect(remedies(viewsOf({ [one]: damaged, [two]: own }))).toMatchObject([{ kind: "wipe" }]);
    const unled = { replicas: { a: {}, b: {}, c: {} }, leader: null };
    expect(remedies(viewsOf({ [one]: damaged, [two]: unled }))).toMatchObject([{ kind: "wait" }]);
  });

  test("is wiped one at a time", () => {
    const views = viewsOf({
      [two]: { replicas: { a: {}, b: hole, c: {} } },
      [one]: { replicas: { a: {}, b: {}, c: hole } },
    });
    expect(remedies(views).filter(({ kind }) => kind === "wipe")).toHaveLength(1);
  });
});

describe("when too few replicas are clean", () => {
  test("wipes nothing, makes a clean one the leader, and purges messages that are in the nodes' logs", () => {
    expect(remedies(viewsOf({ [one]: { replicas: { a: hole, b: hole, c: {} } } }))).toEqual([
      { kind: "lead", stream: one, server: "c" },
      { kind: "purge", stream: one },
    ]);
    expect(remedies(viewsOf({ [one]: { replicas: { a: hole, b: hole, c: hole } } }))).toEqual([
      { kind: "purge", stream: one },
    ]);
  });

  test("purges a stream with a single replica, too", () => {
    const views = viewsOf({ [one]: { replicas: { a: hole }, copies: 1 } });
    expect(remedies(views)).toEqual([{ kind: "purge", stream: one }]);
  });

  test("purges nothing while a replica is away, lags, or has no leader", () => {
    const replicas = { a: {}, b: hole, c: hole };
    expect(remedies(viewsOf({ [one]: { replicas } }, ["a"]))).toMatchObject([{ kind: "wait" }]);
    const late = viewsOf({ [one]: { replicas, late: ["a"], leader: "b" } });
    expect(remedies(late)).toMatchObject([{ kind: "wait" }]);
    const unled = viewsOf({ [one]: { replicas, leader: null } });
    expect(remedies(unled)).toMatchObject([
      { kind: "wait", reason: "JD_1_1 has no leader at the moment" },
    ]);
  });
});

test("intact replicas need no action", () => {
  expect(remedies(viewsOf({ [one]: { replicas: { a: {}, b: {}, c: {} } } }))).toEqual([]);
});
