/**
 * Detects damaged replicas of streams in the reports that each NATS server returns about itself (`JSZ`). JetStream does
 * not check itself: a replica that has lost messages serves the holes, and can be elected. Pure.
 *
 * Invariants:
 * - A replica is judged by its own server alone, so that no leader reports for others. Only whether it is current is
 *   reported by the leader.
 * - Losses at the beginning or the end of a replica show only in comparison with the others, which are queried one after
 *   another while messages are added and removed. The others are therefore taken from an earlier or a later check.
 * - A server that does not reply is a problem.
 */
import { isObject } from "./stream-answers.ts";
import { streamIdOf } from "./stream-settings.ts";

type ProblemKind =
  /** The replica lacks messages: within it, at its beginning, or at its end. */
  | "hole"
  /** The replica has the same sequences as others but different contents. */
  | "differs"
  /** The replica is not up to date. This resolves by itself unless it persists. */
  | "behind"
  /** A server does not reply, or lacks a replica that it should have. */
  | "missing"
  /** A server does not write every append to disk before it acknowledges it. */
  | "unsafe";

export interface StreamProblem {
  /** Empty if the problem concerns the server. */
  readonly stream: string;
  readonly server: string;
  readonly kind: ProblemKind;
  /** A sentence for the operator. */
  readonly problem: string;
}

/** One replica, as reported by its server. */
export interface Replica {
  readonly server: string;
  readonly first: number;
  readonly last: number;
  readonly messages: number;
  readonly bytes: number;
  readonly deleted: number;
  /** Name of the folder of its raft log. */
  readonly raftGroup: string | undefined;
}

export interface ScrubbedStream {
  readonly name: string;
  /** The leading server according to most servers with replicas, or undefined. */
  readonly leader: string | undefined;
  readonly replicaCount: number;
  readonly replicas: readonly Replica[];
  /** Servers whose replica is up to date according to the leader, including the leader. */
  readonly current: ReadonlySet<string>;
}

export interface ServerView {
  readonly server: string;
  readonly version: string;
  readonly syncsAlways: boolean;
  /** Number of servers known in its cluster. */
  readonly clusterSize: number;
  readonly streams: readonly StreamView[];
}

interface StreamView {
  readonly name: string;
  readonly leader: string | undefined;
  readonly replicaCount: number;
  readonly replica: Replica;
  /** Other servers that are current according to this one. */
  readonly current: readonly string[];
}

/** Parses the report of one server. @throws TypeError, SyntaxError for invalid input */
export function readServerView(bytes: Buffer): ServerView {
  const answer = JSON.parse(bytes.toString()) as unknown;
  const { server, data } = objectOf(answer, "the reply");
  const { name, ver } = objectOf(server, "server");
  const { config, account_details: accounts, meta_cluster: meta } = objectOf(data, "data");
  const { sync_always } = objectOf(config, "config");
  const details = listOf(accounts).flatMap((account) =>
    listOf(objectOf(account, "an account")["stream_detail"]),
  );
  return {
    server: String(name),
    version: String(ver),
    syncsAlways: sync_always === true,
    clusterSize: isObject(meta) ? numberOf(meta["cluster_size"]) : 1,
    streams: details
      .map((detail) => streamView(String(name), objectOf(detail, "a stream")))
      .filter(({ name: stream }) => streamIdOf(stream) !== null),
  };
}

function streamView(server: string, detail: Readonly<Record<string, unknown>>): StreamView {
  const state = objectOf(detail["state"], "state");
  const config = isObject(detail["config"]) ? detail["config"] : {};
  const cluster = isObject(detail["cluster"]) ? detail["cluster"] : {};
  const { leader } = cluster;
  const group = detail["stream_raft_group"];
  const others = listOf(cluster["replicas"]).map((one) => objectOf(one, "a replica"));
  return {
    name: String(detail["name"]),
    // A standalone server leads everything.
    leader: typeof leader === "string" ? leader : others.length === 0 ? server : undefined,
    replicaCount: numberOf(config["num_replicas"]) || 1,
    replica: {
      server,
      first: numberOf(state["first_seq"]),
      last: numberOf(state["last_seq"]),
      messages: numberOf(state["messages"]),
      bytes: numberOf(state["bytes"]),
      deleted: numberOf(state["num_deleted"]),
      raftGroup: typeof group === "string" ? group : undefined,
    },
    current: others
      .filter((one) => one["current"] === true && one["offline"] !== true)
      .map((one) => String(one["name"])),
  };
}

/** Merges the streams of all servers. */
export function joinViews(views: readonly ServerView[]): ScrubbedStream[] {
  const byName = new Map<string, StreamView[]>();
  for (const { streams } of views) {
    for (const stream of streams) {
      const same = byName.get(stream.name) ?? [];
      same.push(stream);
      byName.set(stream.name, same);
    }
  }
  return [...byName].map(([name, same]) => {
    const leader = mostNamed(same.map((one) => one.leader));
    const led = same.find((one) => one.replica.server === leader);
    return {
      name,
      leader,
      replicaCount: Math.max(...same.map(({ replicaCount }) => replicaCount)),
      replicas: same.map(({ replica }) => replica),
      current: new Set(led === undefined || leader === undefined ? [] : [leader, ...led.current]),
    };
  });
}

/**
 * Returns the problems of all replicas.
 * @param knownCount minimum number of servers
 * @param earlier reports of some seconds before, without which losses at beginnings and ends are not detected
 */
export function problemsOf(
  views: readonly ServerView[],
  knownCount: number,
  earlier: readonly ServerView[] = [],
): StreamProblem[] {
  const serverCount = Math.max(knownCount, ...views.map(({ clusterSize }) => clusterSize));
  const problems: StreamProblem[] = views
    .filter(({ syncsAlways }) => !syncsAlways)
    .map(({ server }) => ({
      stream: "",
      server,
      kind: "unsafe",
      problem:
        "it does not have sync_interval: always, so acknowledged messages may be lost in a crash",
    }));
  if (views.length < serverCount) {
    const problem = `only ${views.length} of ${serverCount} NATS servers replied`;
    problems.push({ stream: "", server: "", kind: "missing", problem });
  }
  const before = joinViews(earlier);
  for (const stream of joinViews(views)) {
    problems.push(...problemsOfStream(stream, streamNamed(before, stream.name)));
  }
  return problems;
}

function streamNamed(streams: readonly ScrubbedStream[], name: string) {
  return streams.find((one) => one.name === name);
}

function problemsOfStream(
  stream: ScrubbedStream,
  before: ScrubbedStream | undefined,
): StreamProblem[] {
  const problems: StreamProblem[] = [];
  const add = (server: string, kind: ProblemKind, problem: string) =>
    problems.push({ stream: stream.name, server, kind, problem });
  if (stream.replicas.length < stream.replicaCount) {
    const existing = `${stream.replicas.length} of ${stream.replicaCount} replicas exist`;
    add("", "missing", existing);
  }
  if (stream.leader === undefined) add("", "missing", "no server leads it");
  for (const replica of stream.replicas) {
    const damage = damageOf(replica, stream, before);
    if (damage !== null) add(replica.server, damage.kind, damage.problem);
    else if (stream.leader !== undefined && !stream.current.has(replica.server)) {
      add(replica.server, "behind", `it is at ${replica.last} and not up to date`);
    }
  }
  return problems;
}

/** Returns damage of a replica that does not heal by itself, in comparison with the others, or null. */
export function damageOf(
  replica: Replica,
  stream: ScrubbedStream,
  before: ScrubbedStream | undefined,
): { readonly kind: "hole" | "differs"; readonly problem: string } | null {
  const hole = holeOf(replica) ?? lostEndOf(replica, stream, before);
  if (hole !== null) return { kind: "hole", problem: hole };
  if (!differsFromMost(replica, stream.replicas)) return null;
  const { first, last, bytes } = replica;
  return {
    kind: "differs",
    problem: `it has ${bytes} bytes in ${first} to ${last}, unlike the others`,
  };
}

/** Returns the loss at the beginning or end of a replica that is up to date, in comparison with the others, or null. */
function lostEndOf(
  replica: Replica,
  stream: ScrubbedStream,
  before: ScrubbedStream | undefined,
): string | null {
  const { server, first, last } = replica;
  if (before === undefined || !stream.current.has(server)) return null;
  const isOther = (one: Replica) => one.server !== server && stream.current.has(one.server);
  const lasts = before.replicas.filter(isOther).map((one) => one.last);
  const end = Math.max(0, ...lasts);
  if (last < end) return `it ends at ${last}, and others had ${end} before`;
  // A removal applies to all replicas: none begins, for long, at a message that another one has removed.
  const began = Math.min(first, before.replicas.find((one) => one.server === server)?.first ?? 0);
  const firsts = stream.replicas
    .filter((one) => isOther(one) && one.messages > 0)
    .map((one) => one.first);
  const begin = Math.min(Number.POSITIVE_INFINITY, ...firsts);
  return began > begin ? `it begins at ${first}, and others at ${begin}` : null;
}

/** Returns a description of messages missing within a replica, or null. */
function holeOf({ first, last, messages, deleted }: Replica): string | null {
  if (deleted > 0) return `${deleted} messages between ${first} and ${last} are missing`;
  const expected = messages === 0 ? 0 : last - first + 1;
  if (messages === expected) return null;
  return `it has ${messages} messages between ${first} and ${last}, and should have ${expected}`;
}

/** Returns whether the replica differs from two others that agree in the contents of the same sequences. */
function differsFromMost(one: Replica, all: readonly Replica[]): boolean {
  const same = all.filter(
    (other) => other.first === one.first && other.last === one.last && holeOf(other) === null,
  );
  const sizes = same.map(({ bytes }) => bytes);
  const alike = sizes.filter((bytes) => bytes === one.bytes).length;
  return sizes.length > 2 * alike;
}

interface RepairPlan {
  /** Server whose replica is to be wiped. */
  readonly server: string;
  /** Server that must lead first, or undefined if a clean one already leads. */
  readonly leadTo: string | undefined;
  readonly raftGroup: string | undefined;
}

/**
 * Returns a plan for wiping the replica of `server` so that it is copied from the others, or a sentence that explains why it
 * must not be wiped: two other replicas that are clean and current must exist.
 */
export function planRepair(
  views: readonly ServerView[],
  name: string,
  server: string,
  earlier: readonly ServerView[] = [],
): RepairPlan | string {
  const stream = streamNamed(joinViews(views), name);
  const replica = stream?.replicas.find((one) => one.server === server);
  if (stream === undefined || replica === undefined) return `${server} has no replica of ${name}`;
  if (stream.leader === undefined) return `${name} has no leader at the moment`;
  const before = streamNamed(joinViews(earlier), name);
  const good = cleanServers(stream, before).filter((one) => one !== server);
  if (good.length < 2) {
    return `only ${good.length} other replicas of ${name} are clean and up to date; two are required`;
  }
  return {
    server,
    leadTo: good.includes(stream.leader) ? undefined : good[0],
    raftGroup: replica.raftGroup,
  };
}

/** Returns the servers whose replicas are up to date and have lost nothing. */
export function cleanServers(
  stream: ScrubbedStream,
  before: ScrubbedStream | undefined,
): readonly string[] {
  return stream.replicas
    .filter((one) => stream.current.has(one.server) && damageOf(one, stream, before) === null)
    .map(({ server }) => server);
}

function mostNamed(names: readonly (string | undefined)[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) {
    if (name !== undefined && name !== "") counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0];
}

function objectOf(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value;
  throw new TypeError(`${name} of JSZ is not an object`);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
