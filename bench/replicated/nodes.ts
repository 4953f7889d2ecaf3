/**
 * The nodes of bench/replicated.bench.ts: the leader is in this process, the two followers are in separate processes.
 */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { JetStreamStream } from "../../server/cluster/nats/jetstream-stream.ts";
import { StreamCutter } from "../../test/support/memory-stream.ts";
import type { NatsCluster } from "../../test/support/nats-cluster.ts";
import { ReplicatedNode } from "../../test/support/replicated-nodes.ts";
import type { NodeReply, NodeRequest, NodeStart, NodeState } from "./node.ts";

const heartbeatMs = 100;
const pollMs = 10;
const startMs = 60_000;

/** Records the acknowledgment time of appends. */
class TimedStream extends StreamCutter {
  readonly acknowledgedMs: number[] = [];

  override async append(message: Buffer, expectedLast: number) {
    const sentMs = performance.now();
    const outcome = await super.append(message, expectedLast);
    this.acknowledgedMs.push(performance.now() - sentMs);
    return outcome;
  }
}

export class BenchNodes {
  readonly #own: ReplicatedNode<TimedStream>;
  readonly #others: readonly ChildProcess[];
  readonly #timer: NodeJS.Timeout;

  private constructor(own: ReplicatedNode<TimedStream>, others: readonly ChildProcess[]) {
    this.#own = own;
    this.#others = others;
    this.#timer = setInterval(() => this.#beat(), heartbeatMs);
    for (const from of others) {
      from.on("message", (answer: NodeReply) => {
        if (answer.kind !== "received") return;
        own.replication?.heard(answer.heartbeat);
        for (const to of others) if (to !== from) sendRequest(to, answer);
      });
    }
  }

  /** Starts the nodes. `standAfterMs` is the election timeout of the followers, so that this process leads first. */
  static async start(cluster: NatsCluster, folder: string, standAfterMs: number) {
    const stream = { databaseId: Math.floor(Math.random() * 2 ** 48).toString(16), generation: 1 };
    const made = await JetStreamStream.create(await cluster.link(), stream, 3, console.error);
    const own = new ReplicatedNode("A", join(folder, "A"), new TimedStream(made), 100);
    await own.open();
    await poll(() => own.isLeading);
    const { servers, user, pass: password } = cluster.options();
    const others = ["B", "C"].map((tag, at) => {
      const begin: NodeStart = {
        servers,
        user,
        password,
        stream,
        tag,
        folder: join(folder, tag),
        standAfterMs: standAfterMs * (1 + at / 5),
      };
      return fork(fileURLToPath(new URL("./node.js", import.meta.url)), [JSON.stringify(begin)]);
    });
    const nodes = new BenchNodes(own, others);
    await nodes.caughtUp();
    return nodes;
  }

  /** Database of the leader. */
  get database(): OpenDatabase {
    const { database } = this.#own;
    if (database === null) throw new Error("the leader must have a database");
    return database;
  }

  /** Acknowledgment time of each append, in milliseconds. */
  get acknowledgedMs(): number[] {
    return this.#own.way.acknowledgedMs;
  }

  #beat(): void {
    const { replication } = this.#own;
    if (replication === null) return;
    for (const to of this.#others)
      sendRequest(to, { kind: "received", heartbeat: replication.heartbeat });
  }

  async followers(): Promise<NodeState[]> {
    return await Promise.all(this.#others.map((one) => stateOf(one)));
  }

  /** Resolves when the followers have the leader's whole log. */
  async caughtUp(): Promise<void> {
    const end = this.#own.replication?.mark?.sequence ?? 0;
    await poll(async () => (await this.followers()).every(({ sequence }) => sequence >= end));
  }

  /** Stops the leader. @returns milliseconds until another node has written */
  async failOver(): Promise<number> {
    const wrote = Promise.race(this.#others.map((one) => answerOf(one, "wrote")));
    for (const one of this.#others) sendRequest(one, { kind: "write" });
    const beginMs = performance.now();
    await this.#own.kill();
    await wrote;
    return performance.now() - beginMs;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#own.kill();
    await Promise.all(
      this.#others.map((one) => {
        const exited = new Promise((resolve) => one.once("exit", resolve));
        sendRequest(one, { kind: "stop" });
        return exited;
      }),
    );
  }
}

function sendRequest(node: ChildProcess, request: NodeRequest): void {
  if (node.connected) node.send(request, () => undefined);
}

async function stateOf(node: ChildProcess): Promise<NodeState> {
  const answered = answerOf(node, "state");
  sendRequest(node, { kind: "state" });
  return (await answered) as NodeState;
}

function answerOf(node: ChildProcess, kind: NodeReply["kind"]): Promise<NodeReply> {
  return new Promise((resolve, reject) => {
    const receive = (answer: NodeReply) => {
      if (answer.kind !== kind) return;
      node.off("message", receive);
      node.off("exit", ended);
      resolve(answer);
    };
    const ended = () => reject(new Error("a node has exited"));
    node.on("message", receive);
    node.once("exit", ended);
  });
}

async function poll(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + startMs;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error("timeout");
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
