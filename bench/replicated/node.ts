/**
 * One of three nodes that have copies of a database, in a process of its own, for bench/replicated.bench.ts. Started with
 * fork() and the `NodeStart` as its argument; hears and answers the messages below.
 */

import { JetStreamStream } from "../../server/cluster/nats/jetstream-stream.ts";
import { NatsLink } from "../../server/cluster/nats/nats-link.ts";
import type { StreamId } from "../../server/cluster/nats/stream-settings.ts";
import { StreamCutter } from "../../test/support/memory-stream.ts";
import { ReplicatedNode } from "../../test/support/replicated-nodes.ts";

export interface NodeStart {
  readonly servers: readonly string[];
  readonly user: string;
  readonly password: string;
  readonly stream: StreamId;
  readonly tag: string;
  readonly folder: string;
  readonly standAfterMs: number;
}

type Replication = NonNullable<ReplicatedNode["replication"]>;

/** To a node. */
export type NodeQuestion =
  | { readonly kind: "heard"; readonly heartbeat: Replication["heartbeat"] }
  /** Answered by `NodeState`. */
  | { readonly kind: "state" }
  /** Write a document as soon as you lead: `wrote` follows. */
  | { readonly kind: "write" }
  | { readonly kind: "stop" };

export interface NodeState {
  readonly kind: "state";
  readonly processorMs: number;
  /** Of the stream, up to which its log is a copy. */
  readonly sequence: number;
}

/** From a node. */
export type NodeAnswer =
  | { readonly kind: "heard"; readonly heartbeat: Replication["heartbeat"] }
  | NodeState
  | { readonly kind: "wrote" };

const heartbeatMs = 100;
const pollMs = 5;

const start = JSON.parse(process.argv[2] ?? "{}") as NodeStart;
const { servers, user, password, tag, folder, standAfterMs } = start;
const report = (message: string) => console.error(message);
const link = await NatsLink.connect({
  servers,
  name: `bench ${tag}`,
  user,
  password,
  tls: undefined,
  connectMs: 10_000,
  report: () => undefined,
});
const stream = await JetStreamStream.create(link, start.stream, 3, report);
const node = new ReplicatedNode(tag, folder, new StreamCutter(stream), standAfterMs);
await node.open();

function send(answer: NodeAnswer): void {
  // The bench may have ended.
  process.send?.(answer, () => undefined);
}

async function writeWhenLeading(): Promise<void> {
  while (!node.isLeading) await new Promise((resolve) => setTimeout(resolve, pollMs));
  await node.database?.put("first", { of: tag });
  send({ kind: "wrote" });
}

process.on("message", (question: NodeQuestion) => {
  switch (question.kind) {
    case "heard":
      node.replication?.heard(question.heartbeat);
      return;
    case "state": {
      const { user: own, system } = process.cpuUsage();
      const sequence = node.replication?.mark?.sequence ?? 0;
      send({ kind: "state", processorMs: (own + system) / 1000, sequence });
      return;
    }
    case "write":
      void writeWhenLeading();
      return;
    default:
      void node
        .kill()
        .then(() => link.close())
        .then(() => process.exit());
  }
});
process.on("disconnect", () => process.exit());
setInterval(() => {
  const { replication } = node;
  if (replication !== null) send({ kind: "heard", heartbeat: replication.heartbeat });
}, heartbeatMs);
