/**
 * One of three nodes with copies of a database, in a separate process, for bench/replicated.bench.ts. Started with
 * fork() and a `NodeStart` as its argument; receives and replies with the messages below.
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

/** Message to a node. */
export type NodeRequest =
  | { readonly kind: "received"; readonly heartbeat: Replication["heartbeat"] }
  /** The reply is a `NodeState`. */
  | { readonly kind: "state" }
  /** Write a document when the node leads; the reply is `wrote`. */
  | { readonly kind: "write" }
  | { readonly kind: "stop" };

export interface NodeState {
  readonly kind: "state";
  readonly processorMs: number;
  /** Sequence of the stream up to which the log is a copy. */
  readonly sequence: number;
}

/** Message from a node. */
export type NodeReply =
  | { readonly kind: "received"; readonly heartbeat: Replication["heartbeat"] }
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

function send(answer: NodeReply): void {
  // The bench may have exited.
  process.send?.(answer, () => undefined);
}

async function writeWhenLeading(): Promise<void> {
  while (!node.isLeading) await new Promise((resolve) => setTimeout(resolve, pollMs));
  await node.database?.put("first", { of: tag });
  send({ kind: "wrote" });
}

process.on("message", (request: NodeRequest) => {
  switch (request.kind) {
    case "received":
      node.replication?.heard(request.heartbeat);
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
  if (replication !== null) send({ kind: "received", heartbeat: replication.heartbeat });
}, heartbeatMs);
