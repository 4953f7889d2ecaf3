/**
 * Simulates many databases on many nodes without servers: the placement of copies and leaders by the product's code, its
 * balance, the moves after a node is added, lost or replaced, and the cost of idle databases, extrapolated from
 * measurements.
 *
 * Databases are created one after another by a seeded schedule, by requests to random nodes; bytes and writes are
 * skewed, as a few databases have most of them. Both are unknown when a database is created, so placement can only
 * balance the number of copies.
 */
import { planCopyMoves } from "../cli/commands/copy-balance.ts";
import type {
  ClusterView,
  ReceivedHeartbeat,
  ReplicaState,
} from "../server/cluster/cluster-view.ts";
import { decodeStatus, encodeStatus, type StatusOfNode } from "../server/cluster/node-status.ts";
import { placesForNew } from "../server/cluster/topology.ts";
import { addCopyTo } from "../server/endpoints/cluster/cluster-databases.ts";
import { fakeDatabase, fakeMember } from "../test/support/seen-cluster.ts";
import { type BenchSize, costOf, printer, seeded } from "./harness.ts";

const copies = 3;
/** Measured with 200 idle databases on three nodes, as in docs/cluster.md: cores and MB per copy and stream. */
const nodeCorePerCopy = 0.08 / 200;
const natsCorePerStream = 0.12 / 200;
const nodeMbPerCopy = 1.05;

interface Simulated {
  readonly state: ReplicaState;
  readonly bytes: number;
  readonly writes: number;
}

/** Totals of a node. */
interface Figures {
  copies: number;
  leaders: number;
  bytes: number;
  writes: number;
}

class Simulation {
  readonly nodes: string[];
  readonly databases = new Map<string, Simulated>();
  readonly #random: () => number;
  /** True if all databases are created through the first node, otherwise through random nodes. */
  readonly #isAskedAtOne: boolean;
  #created = 0;
  /** Bytes that each node received from others. */
  readonly taken = new Map<string, number>();

  constructor(nodeCount: number, isAskedAtOne: boolean, seed = 7) {
    this.#isAskedAtOne = isAskedAtOne;
    this.nodes = Array.from({ length: nodeCount }, (_, at) => tagOf(at));
    this.#random = seeded(seed);
  }

  /** Returns the cluster view of a node. */
  #viewOf(tag: string): ClusterView {
    const heartbeat: ReceivedHeartbeat = { ageMs: 0, version: "", databases: new Map() };
    const states = [...this.databases.values()].map(({ state }) => state);
    return {
      tag,
      members: () => this.nodes.map(fakeMember),
      lastHeartbeat: () => heartbeat,
      databases: () => states,
      addCopy: (name: string, node: string) => {
        this.#change(name, ({ members }) => [...members, node]);
        const { bytes } = this.#found(name);
        this.taken.set(node, (this.taken.get(node) ?? 0) + bytes);
        return Promise.resolve();
      },
    } as unknown as ClusterView;
  }

  #found(name: string): Simulated {
    const found = this.databases.get(name);
    if (found === undefined) throw new Error(`database ${name} does not exist`);
    return found;
  }

  #change(name: string, of: (state: { members: readonly string[] }) => readonly string[]): void {
    const { state, ...rest } = this.#found(name);
    const members = of(state.registered);
    const registered = { ...state.registered, members };
    this.databases.set(name, { ...rest, state: { ...state, registered } });
  }

  create(count: number): void {
    for (let at = 0; at < count; at++) {
      const asked = this.nodes[this.#isAskedAtOne ? 0 : this.#below(this.nodes.length)] as string;
      const name = `d${this.#created++}`;
      const members = placesForNew(this.#viewOf(asked), name, copies);
      const state = fakeDatabase(name, members);
      // Pareto distribution: a fifth of the databases has four fifths of the total.
      const skewed = () => (1 - this.#random() / 2 ** 32) ** (-1 / 1.16);
      this.databases.set(name, { state, bytes: skewed(), writes: skewed() });
    }
  }

  #below(count: number): number {
    return this.#random() % count;
  }

  /** Removes a node: each database it led is led by the copy with the shortest election delay. */
  lose(tag: string): void {
    this.nodes.splice(this.nodes.indexOf(tag), 1);
    for (const [name, { state, ...rest }] of this.databases) {
      const members = state.registered.members.filter((one) => one !== tag);
      const leaderTag =
        state.leaderTag === tag ? (members[this.#below(members.length)] ?? null) : state.leaderTag;
      const registered = { ...state.registered, members };
      this.databases.set(name, { ...rest, state: { ...state, leaderTag, registered } });
    }
  }

  /** Adds missing copies where the product places them. */
  async refill(): Promise<number> {
    let count = 0;
    for (const [name, { state }] of this.databases) {
      if (state.registered.members.length >= Math.min(copies, this.nodes.length)) continue;
      await addCopyTo(this.#viewOf(this.nodes[0] as string), this.#found(name).state, undefined);
      count++;
    }
    return count;
  }

  /** Applies the moves of `jackdaw cluster spread`. */
  spread(): number {
    const placed = [...this.databases].map(([name, { state }]) => ({
      name,
      leader: state.leaderTag,
      tags: state.registered.members,
      isSound: true,
    }));
    const moves = planCopyMoves(this.nodes, placed);
    for (const { name, from, to } of moves) {
      this.#change(name, ({ members }) => [...members.filter((tag) => tag !== from), to]);
      const { state, ...rest } = this.#found(name);
      if (state.leaderTag === from) {
        this.databases.set(name, { ...rest, state: { ...state, leaderTag: to } });
      }
    }
    return moves.length;
  }

  add(): string {
    const tag = tagOf(this.nodes.length + 10);
    this.nodes.push(tag);
    return tag;
  }

  figures(): Map<string, Figures> {
    const found = new Map<string, Figures>(
      this.nodes.map((tag) => [tag, { copies: 0, leaders: 0, bytes: 0, writes: 0 }]),
    );
    for (const { state, bytes, writes } of this.databases.values()) {
      for (const tag of state.registered.members) {
        const row = found.get(tag);
        if (row === undefined) continue;
        row.copies++;
        row.bytes += bytes;
      }
      const leader = found.get(state.leaderTag ?? "");
      if (leader === undefined) continue;
      leader.leaders++;
      leader.writes += writes;
    }
    return found;
  }

  /** Returns the maximum over all nodes as a multiple of the mean. */
  imbalance(): string {
    const rows = [...this.figures().values()];
    const of = (what: "copies" | "leaders" | "bytes" | "writes") =>
      maxOverMean(rows.map((row) => row[what])).toFixed(2);
    return `${of("copies")} / ${of("leaders")} / ${of("bytes")} / ${of("writes")}`;
  }

  /**
   * Returns the mean number of nodes that a node shares databases with, and the maximum shared by two nodes as a
   * multiple of the mean.
   */
  pairs(): string {
    const shared = new Map<string, number>();
    for (const { state } of this.databases.values()) {
      const members = [...state.registered.members].sort();
      for (const [at, one] of members.entries()) {
        for (const other of members.slice(at + 1)) {
          shared.set(`${one} ${other}`, (shared.get(`${one} ${other}`) ?? 0) + 1);
        }
      }
    }
    const { length } = this.nodes;
    const most = (Math.max(...shared.values()) * length * (length - 1)) / 2;
    const sum = [...shared.values()].reduce((one, other) => one + other, 0);
    return `${((2 * shared.size) / length).toFixed(1)} neighbours, two nodes share up to ${(most / sum).toFixed(2)} times the mean`;
  }
}

function tagOf(at: number): string {
  const letter = (of: number) => String.fromCharCode(65 + of);
  return at < 26 ? letter(at) : letter(Math.floor(at / 26) - 1) + letter(at % 26);
}

function maxOverMean(values: readonly number[]): number {
  const sum = values.reduce((one, other) => one + other, 0);
  return sum === 0 ? 0 : (Math.max(...values) * values.length) / sum;
}

export async function run(size: BenchSize): Promise<string[]> {
  const { lines, print } = printer();
  const cases =
    size === "smoke"
      ? [[4, 10]]
      : [3, 5, 10, 30].flatMap((nodes) => [10, 100, 1_000].map((databases) => [nodes, databases]));
  print("maximum / mean over nodes, of copies / leaders / bytes / writes of the leader");
  for (const isAskedAtOne of [false, true]) {
    print(isAskedAtOne ? "all created through one node" : "created through random nodes");
    for (const [nodes = 0, databases = 0] of cases) {
      await simulate(() => new Simulation(nodes, isAskedAtOne), databases, print);
    }
  }
  await heartbeatCosts(size, print);
  return lines;
}

async function simulate(
  make: () => Simulation,
  count: number,
  print: (line: string) => void,
): Promise<void> {
  const made = make();
  const nodeCount = made.nodes.length;
  made.create(count);
  const perNode = (copies * count) / nodeCount;
  print(
    `${nodeCount} nodes, ${count} databases: ${made.imbalance()}; ${made.pairs()}; ` +
      `${Math.max(...[...made.figures().values()].map((row) => row.copies))} copies on a node: ` +
      `${(perNode * nodeCorePerCopy * 100).toFixed(1)} % of a core and ${Math.round(perNode * nodeMbPerCopy)} MB when idle; ` +
      `${count} streams on each of three NATS servers: ${(count * natsCorePerStream * 100).toFixed(1)} %`,
  );
  const lost = make();
  lost.create(count);
  const [gone] = [...lost.figures()].sort(([, one], [, other]) => other.leaders - one.leaders);
  if (gone === undefined) return;
  const before = lost.figures();
  lost.lose(gone[0]);
  const gained = [...lost.figures()].map(
    ([tag, row]) => row.leaders - (before.get(tag)?.leaders ?? 0),
  );
  print(
    `  a node that led ${gone[1].leaders} is lost: ${lost.imbalance()}; another node takes over up to ${Math.max(...gained)}`,
  );
  const refilled = await lost.refill();
  const most = maxOverMean(lost.nodes.map((tag) => lost.taken.get(tag) ?? 0));
  print(
    `  its ${refilled} copies are recreated elsewhere: ${lost.imbalance()}; a node receives up to ${most.toFixed(2)} times the mean of these bytes`,
  );
  const grown = make();
  grown.create(count);
  const added = grown.add();
  const at0 = grown.imbalance();
  const even = make();
  even.create(count);
  even.add();
  const moved = even.spread();
  grown.create(Math.round(count / nodeCount));
  const row = grown.figures().get(added);
  print(
    `  a node is added: ${at0}, nothing moves; with ${Math.round(count / nodeCount)} more databases: ${grown.imbalance()}, the node has ${row?.copies} copies and leads ${row?.leaders}`,
  );
  print(`  or ${moved} copies are moved to it: ${even.imbalance()}; ${even.pairs()}`);
}

/** Measures sending and receiving heartbeats with the positions of copies, twice per second, by the product's code. */
async function heartbeatCosts(size: BenchSize, print: (line: string) => void): Promise<void> {
  for (const count of size === "smoke" ? [10] : [100, 1_000]) {
    const databases = new Map(
      Array.from({ length: count }, (_, at) => [
        at.toString(16).padStart(32, "0"),
        { role: "follower", epoch: 7, applied: 48_000 + at, mark: 48_000 + at } as const,
      ]),
    );
    const status: StatusOfNode = {
      member: fakeMember("A"),
      version: "1.0.0",
      databases,
      isWaiting: false,
    };
    const rounds = size === "smoke" ? 2 : 300;
    let text = "";
    const sending = await costOf(() => {
      for (let at = 0; at < rounds; at++) text = JSON.stringify(encodeStatus(status));
    });
    const receiving = await costOf(() => {
      for (let at = 0; at < rounds; at++) decodeStatus("A", JSON.parse(text) as never);
    });
    print(
      `a heartbeat of ${count} copies: ${text.length} bytes, ${(sending.processorMs / rounds).toFixed(2)} ms to send and ${(receiving.processorMs / rounds).toFixed(2)} ms to receive`,
    );
  }
}
