/**
 * Does any node of a cluster answer, of which only a stopped data folder is at hand? Asked are the addresses that the
 * cluster has registered, and those where the nats-servers of the nodes reach each other.
 */
import * as http from "node:http";
import * as https from "node:https";
import { connect } from "node:net";
import type { ClusterMember } from "./cluster-view.ts";

const answerMs = 3000;
/** A proxy in front says with these that there is nobody behind it. */
const goneStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/** The addresses in the configuration of a nats-server that a node has started. */
export interface NatsAddresses {
  /** Of itself, for clients: it may run on after its node was killed. */
  readonly own: string | null;
  readonly others: readonly string[];
}

/** @param text the file; null: there is none, its node uses servers that run by themselves */
export function natsAddresses(text: string | null): NatsAddresses {
  if (text === null) return { own: null, others: [] };
  const { listen, cluster } = JSON.parse(text) as {
    listen?: string;
    cluster?: { routes?: readonly string[] };
  };
  const others = (cluster?.routes ?? []).map((route) => route.replace(/^\w+:\/\//, ""));
  return { own: listen ?? null, others };
}

/** Who answers, in words; empty: nobody. */
export async function findRunningNodes(
  members: readonly Pick<ClusterMember, "tag" | "url">[],
  { own, others }: NatsAddresses,
): Promise<string[]> {
  const asked = [
    ...members.map(async ({ tag, url }) =>
      (await nodeAnswers(url)) ? `node ${tag} answers at ${url}` : null,
    ),
    ...others.map(async (route) =>
      (await natsAnswers(route)) ? `the nats-server of another node answers at ${route}` : null,
    ),
  ];
  if (own !== null && (await natsAnswers(own))) {
    asked.push(Promise.resolve(`the nats-server of this node still runs at ${own}: stop it`));
  }
  return (await Promise.all(asked)).filter((one) => one !== null);
}

/** Whoever it is: an address of the cluster that somebody answers at is not for certain that of a lost node. */
async function nodeAnswers(url: string): Promise<boolean> {
  return await new Promise((resolve) => {
    let isEncrypted = false;
    const options = { timeout: answerMs, agent: false, rejectUnauthorized: false };
    const send = url.startsWith("https:") ? https.get : http.get;
    const request = send(`${url.replace(/\/$/, "")}/build/version`, options, (reply) => {
      resolve(!goneStatuses.has(reply.statusCode ?? 0));
      reply.destroy();
    });
    // One that wants a certificate refuses after it has shown its own.
    request.on("socket", (socket) => {
      socket.on("secureConnect", () => {
        isEncrypted = true;
      });
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(isEncrypted));
  });
}

/** A server of NATS says what it is at once. */
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
