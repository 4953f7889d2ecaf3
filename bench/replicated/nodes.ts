/** The nodes of bench/replicated.bench.ts: the one that leads is in this process, the two others are in their own. */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { OpenDatabase } from "../../engine/database/open-database.ts";
import { JetStreamStream } from "../../server/cluster/nats/jetstream-stream.ts";
import { StreamCutter } from "../../test/support/memory-stream.ts";
import type { NatsCluster } from "../../test/support/nats-cluster.ts";
import { ReplicatedNode } from "../../test/support/replicated-nodes.ts";
import type { NodeAnswer, NodeQuestion, NodeStart, NodeState } from "./node.ts";

const heartbeatMs = 100;
const pollMs = 10;
const startMs = 60_000;

/** Notes how long the stream takes to answer. */
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
      from.on("message", (answer: NodeAnswer) => {
        if (answer.kind !== "heard") return;
        own.replication?.heard(answer.heartbeat);
        for (const to of others) if (to !== from) ask(to, answer);
      });
    }
  }

  /** `standAfterMs`: of the other nodes; the one of this process is to lead first. */
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

  /** Of the node that leads. */
  get database(): OpenDatabase {
    const { database } = this.#own;
    if (database === null) throw new Error("a node that leads has a database");
    return database;
  }

  /** How long the stream took to answer, of each append. */
  get acknowledgedMs(): number[] {
    return this.#own.way.acknowledgedMs;
  }

  #beat(): void {
    const { replication } = this.#own;
    if (replication === null) return;
    for (const to of this.#others) ask(to, { kind: "heard", heartbeat: replication.heartbeat });
  }

  async followers(): Promise<NodeState[]> {
    return await Promise.all(this.#others.map((one) => stateOf(one)));
  }

  /** Resolves when the others have all that is in the log of the one that leads. */
  async caughtUp(): Promise<void> {
    const end = this.#own.replication?.mark?.sequence ?? 0;
    await poll(async () => (await this.followers()).every(({ sequence }) => sequence >= end));
  }

  /** Ends the node that leads. @returns milliseconds until another one has written */
  async failOver(): Promise<number> {
    const wrote = Promise.race(this.#others.map((one) => answerOf(one, "wrote")));
    for (const one of this.#others) ask(one, { kind: "write" });
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
        ask(one, { kind: "stop" });
        return exited;
      }),
    );
  }
}

function ask(node: ChildProcess, question: NodeQuestion): void {
  if (node.connected) node.send(question, () => undefined);
}

async function stateOf(node: ChildProcess): Promise<NodeState> {
  const answered = answerOf(node, "state");
  ask(node, { kind: "state" });
  return (await answered) as NodeState;
}

function answerOf(node: ChildProcess, kind: NodeAnswer["kind"]): Promise<NodeAnswer> {
  return new Promise((resolve, reject) => {
    const hear = (answer: NodeAnswer) => {
      if (answer.kind !== kind) return;
      node.off("message", hear);
      node.off("exit", ended);
      resolve(answer);
    };
    const ended = () => reject(new Error("a node has ended"));
    node.on("message", hear);
    node.once("exit", ended);
  });
}

async function poll(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + startMs;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error("the nodes do not come to an end");
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
