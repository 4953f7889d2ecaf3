/**
 * Many databases over many nodes, without any server: where the code of the product puts copies and leaders, how even that
 * is, what moves when a node is added, lost or replaced, and what idle databases cost by figures that were measured.
 *
 * Databases are created one after another by a seeded schedule, at a node that is asked at random; bytes and writes are
 * skewed, as a few databases have most. Neither is known when a database is created: only what counts evenly can be even.
 */
import { copyMoves } from "../cli/commands/spread.ts";
import type {
  ClusterView,
  ReceivedHeartbeat,
  ReplicaState,
} from "../server/cluster/cluster-view.ts";
import { decodeStatus, encodeStatus, type StatusOfNode } from "../server/cluster/node-status.ts";
import { placesForNew } from "../server/cluster/topology.ts";
import { addCopyTo } from "../server/endpoints/cluster-databases.ts";
import { fakeDatabase, fakeMember } from "../test/support/seen-cluster.ts";
import { type BenchSize, costOf, seeded } from "./harness.ts";

const copies = 3;
/** Of 200 idle databases on three nodes, as in docs/cluster.md: thousandths of a core and MB for each copy and stream. */
const nodeCorePerCopy = 0.08 / 200;
const natsCorePerStream = 0.12 / 200;
const nodeMbPerCopy = 1.05;

interface Simulated {
  readonly state: ReplicaState;
  readonly bytes: number;
  readonly writes: number;
}

/** Of a node. */
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
  /** All databases are created at the first node, otherwise at any. */
  readonly #isAskedAtOne: boolean;
  #created = 0;
  /** Bytes that each node has taken from others. */
  readonly taken = new Map<string, number>();

  constructor(nodeCount: number, isAskedAtOne: boolean, seed = 7) {
    this.#isAskedAtOne = isAskedAtOne;
    this.nodes = Array.from({ length: nodeCount }, (_, at) => tagOf(at));
    this.#random = seeded(seed);
  }

  /** What a node sees. */
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
    if (found === undefined) throw new Error(`there is no database ${name}`);
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
      // Pareto: a fifth of the databases has four fifths.
      const skewed = () => (1 - this.#random() / 2 ** 32) ** (-1 / 1.16);
      this.databases.set(name, { state, bytes: skewed(), writes: skewed() });
    }
  }

  #below(count: number): number {
    return this.#random() % count;
  }

  /** A node is gone: what it led is led by one of the other copies, whichever has waited least. */
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

  /** Each database with too few copies gets one where the product puts it. */
  async refill(): Promise<number> {
    let count = 0;
    for (const [name, { state }] of this.databases) {
      if (state.registered.members.length >= Math.min(copies, this.nodes.length)) continue;
      await addCopyTo(this.#viewOf(this.nodes[0] as string), this.#found(name).state, undefined);
      count++;
    }
    return count;
  }

  /** What `jackdaw cluster spread` moves. */
  spread(): number {
    const placed = [...this.databases].map(([name, { state }]) => ({
      name,
      leader: state.leaderTag,
      tags: state.registered.members,
      isSound: true,
    }));
    const moves = copyMoves(this.nodes, placed);
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

  /** The most of all nodes, as a multiple of the mean. */
  imbalance(): string {
    const rows = [...this.figures().values()];
    const of = (what: "copies" | "leaders" | "bytes" | "writes") =>
      maxOverMean(rows.map((row) => row[what])).toFixed(2);
    return `${of("copies")} / ${of("leaders")} / ${of("bytes")} / ${of("writes")}`;
  }

  /** In the mean, with how many others a node shares databases; and the most that two share, as a multiple of the mean. */
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
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  const cases =
    size === "smoke"
      ? [[4, 10]]
      : [3, 5, 10, 30].flatMap((nodes) => [10, 100, 1_000].map((databases) => [nodes, databases]));
  print("most of a node / mean of nodes, of copies / leaders / bytes / writes of the leader");
  for (const isAskedAtOne of [false, true]) {
    print(isAskedAtOne ? "all created at one node" : "created at any node");
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
      `${count} streams on each of three servers of NATS: ${(count * natsCorePerStream * 100).toFixed(1)} %`,
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
    `  a node is lost, which led ${gone[1].leaders}: ${lost.imbalance()}; one other takes ${Math.max(...gained)} of these`,
  );
  const refilled = await lost.refill();
  const most = maxOverMean(lost.nodes.map((tag) => lost.taken.get(tag) ?? 0));
  print(
    `  its ${refilled} copies are made again elsewhere: ${lost.imbalance()}; one node takes ${most.toFixed(2)} times the mean of these bytes`,
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
    `  a node is added: ${at0}, nothing moves; with ${Math.round(count / nodeCount)} more databases: ${grown.imbalance()}, it has ${row?.copies} copies and leads ${row?.leaders}`,
  );
  print(`  or ${moved} copies are spread onto it: ${even.imbalance()}; ${even.pairs()}`);
}

/** What it costs to say and to hear how far copies are, twice a second, by the code of the product. */
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
    const said = await costOf(() => {
      for (let at = 0; at < rounds; at++) text = JSON.stringify(encodeStatus(status));
    });
    const heard = await costOf(() => {
      for (let at = 0; at < rounds; at++) decodeStatus("A", JSON.parse(text) as never);
    });
    print(
      `a heartbeat of ${count} copies: ${text.length} bytes, ${(said.processorMs / rounds).toFixed(2)} ms to say and ${(heard.processorMs / rounds).toFixed(2)} ms to hear`,
    );
  }
}
