/**
 * A cluster for tests of code that uses `ClusterView`: plain data that a test changes, and a log of
 * calls.
 */
import type { Database } from "../../engine/engine.ts";
import type { ClusterHealth } from "../../server/cluster/cluster-health.ts";
import type {
  ClusterDatabase,
  ClusterMember,
  ClusterView,
  ReceivedHeartbeat,
  ReplicaReport,
  ReplicaState,
} from "../../server/cluster/cluster-view.ts";

type Writable<Value> = { -readonly [Name in keyof Value]: Value[Name] };

export interface FakeCluster extends Writable<ClusterView> {
  nodes: ClusterMember[];
  foreign: ClusterMember[];
  heartbeats: Map<string, Writable<ReceivedHeartbeat>>;
  states: Writable<ReplicaState>[];
  health: Writable<ClusterHealth> | undefined;
  /** Received calls, such as `transfer shop B`. */
  readonly received: string[];
}

export function fakeMember(tag: string): ClusterMember {
  return { tag, url: `http://${tag.toLowerCase()}.example:8080`, tcpUrl: null, fingerprint: null };
}

/** A database with copies on all of `members`; the first is the leader. */
export function fakeDatabase(
  name: string,
  members: readonly string[],
  given: Partial<Omit<ReplicaState, "registered">> = {},
): Writable<ReplicaState> {
  const registered: ClusterDatabase = {
    name,
    id: Buffer.from(name).toString("hex").padEnd(32, "0").slice(0, 32),
    generation: 1,
    members,
    originTag: members[0] ?? "A",
    isSeeded: true,
    initialRecord: {},
    index: 1,
  };
  return {
    registered,
    role: "follower",
    epoch: 1,
    leaderTag: members[0] ?? null,
    applied: 0,
    topologyEtag: 1,
    visible: 0,
    mustShow: 0,
    isComplete: true,
    trouble: null,
    ...given,
  };
}

export function fakeHeartbeat(
  databases: Readonly<Record<string, ReplicaReport>> = {},
  ageMs = 100,
): Writable<ReceivedHeartbeat> {
  const ids = Object.entries(databases).map(
    ([name, one]) => [fakeDatabase(name, []).registered.id, one] as const,
  );
  return { ageMs, version: "7.2.7", databases: new Map(ids) };
}

/** Nodes A, B and C, as seen by A, the leader. */
export function fakeCluster(given: Partial<FakeCluster> = {}): FakeCluster {
  const requested: string[] = [];
  const send = (what: string) => (name: string, tag?: string) => {
    requested.push([what, name, tag].filter((word) => word !== undefined).join(" "));
    return Promise.resolve();
  };
  const refuse = () => Promise.reject(new Error("not supported by the fake cluster"));
  const cluster: FakeCluster = {
    tag: "A",
    topologyId: "00000000-0000-0000-0000-000000000001",
    index: 7,
    leaderTag: "A",
    epoch: 1,
    nodes: ["A", "B", "C"].map(fakeMember),
    foreign: [],
    heartbeats: new Map(["B", "C"].map((tag) => [tag, fakeHeartbeat()])),
    states: [],
    health: undefined,
    received: requested,
    // Methods, like those of the real class: destructuring them loses `this`.
    members() {
      return this.nodes;
    },
    lastHeartbeat(tag) {
      return this.heartbeats.get(tag);
    },
    strangers() {
      return this.foreign;
    },
    databases() {
      return this.states;
    },
    find: (name) =>
      cluster.states.find(({ registered }) => registered.name.toLowerCase() === name.toLowerCase()),
    change: refuse,
    changeHere: refuse,
    standFor: () => undefined,
    value: () => undefined,
    values: () => [],
    answered: () => undefined,
    whenVisible: () => Promise.resolve(true),
    onChange: () => () => undefined,
    addMember: send("add"),
    removeMember: send("remove"),
    addCopy: send("add-copy"),
    removeCopy: send("remove-copy"),
    createDatabase: refuse,
    ownDatabases: () => [],
    adoptDatabase: (name, members) => {
      requested.push(`adopt ${name} ${members}`);
      return Promise.resolve({ name } as Database);
    },
    deleteDatabase: refuse,
    transfer: send("transfer"),
    waitForCopies: () => Promise.resolve(0),
    ...given,
  };
  return cluster;
}
