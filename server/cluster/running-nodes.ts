/**
 * Checks whether any node of a cluster is running, given only a stopped data folder: at the registered addresses of the
 * nodes, and at the routes of their nats-servers.
 */
import * as http from "node:http";
import * as https from "node:https";
import { connect } from "node:net";
import type { ClusterMember } from "./cluster-view.ts";

const answerMs = 3000;
/** Statuses of a proxy whose server is not available. */
const goneStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/** The addresses in the configuration of a node's nats-server. */
export interface NatsAddresses {
  /** Client address of this node's nats-server, which may outlive a killed node. */
  readonly own: string | null;
  readonly others: readonly string[];
}

/** @param text content of the file, or null if the node uses external servers */
export function natsAddresses(text: string | null): NatsAddresses {
  if (text === null) return { own: null, others: [] };
  const { listen, cluster } = JSON.parse(text) as {
    listen?: string;
    cluster?: { routes?: readonly string[] };
  };
  const others = (cluster?.routes ?? []).map((route) => route.replace(/^\w+:\/\//, ""));
  return { own: listen ?? null, others };
}

/** Returns a sentence for each process that responds. */
export async function findRunningNodes(
  members: readonly Pick<ClusterMember, "tag" | "url">[],
  { own, others }: NatsAddresses,
): Promise<string[]> {
  const checks = [
    ...members.map(async ({ tag, url }) =>
      (await nodeAnswers(url)) ? `node ${tag} responds at ${url}` : null,
    ),
    ...others.map(async (route) =>
      (await natsAnswers(route)) ? `the nats-server of another node responds at ${route}` : null,
    ),
  ];
  if (own !== null && (await natsAnswers(own))) {
    checks.push(Promise.resolve(`the nats-server of this node still runs at ${own}: stop it`));
  }
  return (await Promise.all(checks)).filter((one) => one !== null);
}

/** Returns whether any process responds: it need not be the lost node. */
async function nodeAnswers(url: string): Promise<boolean> {
  return await new Promise((resolve) => {
    let isEncrypted = false;
    const options = { timeout: answerMs, agent: false, rejectUnauthorized: false };
    const send = url.startsWith("https:") ? https.get : http.get;
    const request = send(`${url.replace(/\/$/, "")}/build/version`, options, (reply) => {
      resolve(!goneStatuses.has(reply.statusCode ?? 0));
      reply.destroy();
    });
    // A server that requires a certificate refuses the request after it has presented its own.
    request.on("socket", (socket) => {
      socket.on("secureConnect", () => {
        isEncrypted = true;
      });
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(isEncrypted));
  });
}

/** A NATS server sends its INFO line immediately. */
async function natsAnswers(address: string): Promise<boolean> {
  const [, host = "", port = ""] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
  return await new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    const end = (isThere: boolean) => {
      socket.destroy();
      resolve(isThere);
    };
    socket.setTimeout(answerMs, () => end(false));
    socket.once("data", (bytes) => end(bytes.toString("latin1").startsWith("INFO ")));
    socket.on("error", () => end(false));
    socket.on("close", () => end(false));
  });
}
