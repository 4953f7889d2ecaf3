/** When a node checks the NATS replicas, and its reactions, with simulated NATS servers. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EngineError } from "../../../engine/engine.ts";
import type {
  ScrubbedStream,
  ServerView,
  StreamProblem,
} from "../../../server/cluster/nats/replica-scrub.ts";
import type { ScrubLook } from "../../../server/cluster/nats/stream-remedies.ts";
import { StreamScrub } from "../../../server/cluster/stream-scrub.ts";
import { Log } from "../../../server/logging/log.ts";

const stream = "JD_ab_1";
const sharedId = "cd";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Three servers; each of `damaged` has a hole in the stream. */
function lookOf(damaged: readonly string[], name = stream): ScrubLook {
  const servers = ["jackdaw-A", "jackdaw-B", "jackdaw-C"];
  const views: ServerView[] = servers.map((server) => ({
    server,
    version: "2.15.1",
    syncsAlways: true,
    clusterSize: 3,
    streams: [
      {
        name,
        leader: "jackdaw-A" as ScrubbedStream["leader"],
        replicaCount: 3,
        replica: {
          server,
          first: 1,
          last: 9,
          messages: damaged.includes(server) ? 8 : 9,
          bytes: 900,
          deleted: 0,
          raftGroup: "S-1",
        },
        current: servers.filter((one) => one !== server),
      },
    ],
  }));
  const problems: StreamProblem[] = damaged.map((server) => ({
    stream: name,
    server,
    kind: "hole",
    problem: "a message is missing",
  }));
  return { views, earlier: views, problems };
}

function scrubOf({ isFirst = true, ownServer = "jackdaw-C" as string | null } = {}) {
  const calls: string[] = [];
  const reported: string[] = [];
  const state = {
    look: lookOf([]) as ScrubLook | Error,
    outcome: { kind: "repaired" } as { kind: "repaired" } | { kind: "refused"; reason: string },
    change: null as Error | null,
  };
  const values = new Map<string, string>();
  const scrub = new StreamScrub({
    nats: () => ({
      ownServer: ownServer ?? undefined,
      look: async () => {
        calls.push("look");
        if (state.look instanceof Error) throw state.look;
        return state.look;
      },
      lead: async (name, server) => void calls.push(`lead ${name} ${server}`),
      repair: async (name) => {
        calls.push(`repair ${name} ${values.size}`);
        return state.outcome;
      },
    }),
    log: new Log("Info", [
      {
        write: ({ message }) => void reported.push(message),
        droppedCount: 0,
        close: async () => undefined,
      },
    ]),
    cluster: {
      tag: "C",
      value: (key) => values.get(key),
      change: async (changes) => {
        if (state.change !== null) throw state.change;
        for (const { key, value } of changes) {
          if (value === null) values.delete(key);
          else values.set(key, value);
        }
      },
    },
    sharedId,
    isFirst: () => isFirst,
    purge: async (id) => {
      calls.push(`purge ${id}`);
      return true;
    },
    restart: (id) => void calls.push(`restart ${id}`),
    nameOf: (id) => (id === "ab" ? "shop" : id),
  });
  scrub.start();
  /** Returns its actions in the next `seconds`. */
  const after = async (seconds: number) => {
    calls.length = 0;
    await vi.advanceTimersByTimeAsync(seconds * 1000);
    return [...calls];
  };
  return { scrub, state, reported, values, after };
}

test("checks soon after the start and every minute, and more often after a problem", async () => {
  const { scrub, state, after } = scrubOf({ ownServer: "jackdaw-A" });
  expect(scrub.state).toBeNull();
  expect(await after(4)).toEqual([]);
  expect(await after(1)).toEqual(["look"]);
  expect(scrub.state).toMatchObject({ problems: [], failure: null });
  expect(await after(59)).toEqual([]);
  state.look = lookOf(["jackdaw-C"]);
  expect(await after(1)).toEqual(["look"]);
  expect(scrub.state?.problems).toHaveLength(1);
  expect(await after(20)).toEqual(["look", "look"]);
  await scrub.stop();
  expect(await after(100)).toEqual([]);
});

test("wipes the node's own replica if damage persists, after claiming the repair", async () => {
  const { state, reported, values, after } = scrubOf();
  state.look = lookOf(["jackdaw-C"]);
  expect(await after(5)).toEqual(["look"]);
  expect(await after(10)).toEqual(["look", `repair ${stream} 1`]);
  expect(values.size).toBe(0);
  expect(reported).toEqual(["The local replica of the stream of shop is intact again"]);
  state.outcome = { kind: "refused", reason: "nobody leads" };
  expect(await after(10)).toEqual(["look", `repair ${stream} 1`]);
  expect(reported.at(-1)).toBe("The local replica of shop is not wiped: nobody leads");
});

test("wipes nothing while another node does, and no replica of another node", async () => {
  const { state, values, after } = scrubOf();
  values.set("cluster/repair", '{"tag":"B"}');
  state.look = lookOf(["jackdaw-C"]);
  expect(await after(15)).toEqual(["look", "look"]);
  values.clear();
  state.look = lookOf(["jackdaw-B"]);
  expect(await after(30)).toEqual(["look", "look", "look"]);
});

test("without a leader of the cluster's values, only their own stream is repaired", async () => {
  const { state, reported, after } = scrubOf();
  state.change = new EngineError("not-leader", "nobody leads");
  state.look = lookOf(["jackdaw-C"]);
  expect(await after(15)).toEqual(["look", "look"]);
  expect(reported).toEqual(["The stream of shop could not be repaired: nobody leads"]);
  state.look = lookOf(["jackdaw-C"], `JD_${sharedId}_1`);
  expect(await after(20)).toEqual(["look", "look", `repair JD_${sharedId}_1 0`]);
});

test("one node chooses a stream's leader, and handles standalone servers", async () => {
  const first = scrubOf({ ownServer: null });
  first.state.look = lookOf(["jackdaw-A"]);
  expect(await first.after(5)).toEqual(["look", `lead ${stream} jackdaw-B`]);
  await first.after(20);
  const advice = first.reported.filter((message) => message.includes("Stop jackdaw-A"));
  expect(advice).toEqual([
    `The replica of the stream of shop on jackdaw-A is damaged; the others are intact. Stop jackdaw-A, remove the folder ${stream} of its store (jetstream/ACCOUNT/streams/${stream}), and start it`,
  ]);
  const other = scrubOf({ isFirst: false, ownServer: null });
  other.state.look = lookOf(["jackdaw-A"]);
  expect(await other.after(15)).toEqual(["look", "look"]);
  expect(other.reported).toEqual([]);
});

test("when most replicas are damaged, messages in the nodes' logs are removed from the stream", async () => {
  const { state, reported, after } = scrubOf();
  state.look = lookOf(["jackdaw-A", "jackdaw-B", "jackdaw-C"]);
  expect(await after(15)).toEqual(["look", "look", "purge ab"]);
  expect(reported).toEqual([
    expect.stringMatching(/^Most replicas of the stream of shop are damaged/),
  ]);
});

test("a stopped copy restarts when its stream is intact", async () => {
  const { scrub, state, after } = scrubOf({ ownServer: "jackdaw-A" });
  await after(5);
  state.look = lookOf(["jackdaw-C"]);
  scrub.blocked("ab");
  expect(await after(3)).toEqual(["look"]);
  state.look = lookOf([]);
  expect(await after(10)).toEqual(["look", "restart ab"]);
  expect(await after(60)).toEqual(["look"]);
});

test("reports a failed check, which changes nothing, and repeats it", async () => {
  const { scrub, state, after } = scrubOf();
  state.look = lookOf(["jackdaw-C"]);
  await after(5);
  state.look = new EngineError("stream-unavailable", "NATS does not answer");
  scrub.blocked("ab");
  expect(await after(3)).toEqual(["look"]);
  expect(scrub.state).toMatchObject({ problems: [], failure: "NATS does not answer" });
  // Problems found before the failure do not count as persistent.
  state.look = lookOf(["jackdaw-C"]);
  expect(await after(10)).toEqual(["look"]);
});
