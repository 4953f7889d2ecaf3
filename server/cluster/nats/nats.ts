/**
 * NATS for a cluster node: the connection, the node's own `nats-server` if it has one, streams, heartbeats, and the scrub
 * and repair of replicas. A single node loads and starts nothing of this.
 *
 *     const nats = await startNats({ settings, nodeTag: "A", dataFolder: "./data", log });
 *     const stream = await nats.createStream({ databaseId: "5e1f", generation: 1 });
 *     await stream.append(frame, 0); // { kind: "stored", sequence: 1 }
 *     await nats.close();
 *
 * Invariants:
 * - `startNats` returns when one NATS server is reached, even if too few are available to serve streams: the first node
 *   of a cluster must not wait for the second one.
 * - A replica is wiped only while two other replicas are clean and up to date, and one of these leads.
 */
import { randomBytes } from "node:crypto";
import { lookup } from "node:dns/promises";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../../logging/log.ts";
import { type ClusterSettings, hostOfRoute, isLoopback } from "../../settings/cluster-settings.ts";
import { StartError } from "../../settings/start-error.ts";
import { Heartbeats, type NodeStatus } from "../heartbeats.ts";
import { JetStreamStream, requestApi } from "./jetstream-stream.ts";
import { type LinkOptions, NatsLink, streamUnavailable } from "./nats-link.ts";
import { findNatsServer, NatsServer } from "./nats-server.ts";
import {
  joinViews,
  planRepair,
  problemsOf,
  readServerView,
  type ServerView,
  type StreamProblem,
} from "./replica-scrub.ts";
import {
  accountName,
  findOwnRoute,
  isRecent,
  oldestVersion,
  payloadBytesMax,
  systemAccountName,
} from "./server-configuration.ts";
import type { ScrubLook } from "./stream-remedies.ts";
import type { StreamId } from "./stream-settings.ts";

interface NatsOptions {
  readonly settings: ClusterSettings;
  readonly nodeTag: string;
  /** Folder that contains `nats/` of this node's nats-server. */
  readonly dataFolder: string;
  readonly log: Log;
}

type RepairOutcome =
  | { readonly kind: "repaired" }
  /** Nothing was changed. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The replica was wiped, and is not up to date yet. */
  | { readonly kind: "catching-up" };

/** Replicas of each stream, unless the NATS server stands alone. */
const replicasOfCluster = 3;
const connectMs = 30_000;
const systemConnectMs = 5000;
/** Timeout for the replies of all servers, in milliseconds. A server that purges may be slow. */
const scrubMs = 3000;
const electionMs = 15_000;
const catchUpMs = 60_000;
const stepDownMs = 5000;
const pollMs = 250;
/** Pause between the first two checks, in milliseconds. By the second, a replica has the messages that others had at the first. */
const betweenLooksMs = 2000;

/**
 * Connects to the servers of `Cluster.Nats.Url`, or starts one for `Cluster.Routes` and connects to it.
 * @throws StartError nats-unusable, setting-invalid
 */
export async function startNats(options: NatsOptions): Promise<Nats> {
  const { settings, nodeTag, log } = options;
  const own = settings.urls.length === 0 ? await startOwn(options) : undefined;
  const isEncrypted = settings.urls.some(({ protocol }) => protocol === "tls:");
  const common = {
    name: `jackdaw ${nodeTag}`,
    connectMs,
    report: (message: string, cause?: unknown) => log.write("Warn", message, undefined, cause),
  };
  const reached = own?.reached ?? {
    servers: settings.urls.map((url) => `${url.hostname}:${url.port || "4222"}`),
    user: settings.user,
    password: settings.password,
    tls: settings.tls ?? (isEncrypted ? systemAuthorities : undefined),
  };
  try {
    const link = await connect({ ...common, ...reached });
    const serverCount = Math.max(settings.urls.length, settings.routes.length);
    const system = own?.system ?? systemOf(settings);
    return new Nats({
      link,
      log,
      nodeTag,
      replicas: link.server?.isClustered === true ? replicasOfCluster : 1,
      serverCount,
      server: own?.server,
      system:
        system === undefined
          ? undefined
          : { ...common, ...reached, ...system, connectMs: systemConnectMs },
    });
  } catch (error) {
    await own?.server.stop();
    throw error;
  }
}

const systemAuthorities = {
  certificatePath: undefined,
  keyPath: undefined,
  authorityPath: undefined,
};

function systemOf({ systemUser, systemPassword }: ClusterSettings) {
  return systemUser === undefined ? undefined : { user: systemUser, password: systemPassword };
}

interface OwnServer {
  readonly server: NatsServer;
  readonly reached: Pick<LinkOptions, "servers" | "user" | "password" | "tls">;
  readonly system: Pick<LinkOptions, "user" | "password">;
}

async function startOwn({ settings, nodeTag, dataFolder, log }: NatsOptions): Promise<OwnServer> {
  const { routes, tls } = settings;
  const found = await findNatsServer(settings.natsPath);
  const ownRoute = settings.ownRoute ?? (await guessOwnRoute(routes));
  const isLocal = routes.every((route) => isLoopback(hostOfRoute(route)));
  const user = "jackdaw";
  const systemUser = "system";
  const [password, systemPassword] = [secret(), secret()];
  const [clientPort, monitoringPort] = await freePorts();
  const server = await NatsServer.start({
    server: found,
    folder: join(dataFolder, "nats"),
    log,
    configuration: {
      name: serverNameOf(nodeTag),
      clientPort,
      monitoringPort,
      user,
      password,
      systemUser,
      systemPassword,
      routes,
      ownRoute,
      tls: isLocal && tls === undefined ? undefined : completeTls(tls),
    },
  });
  log.info(
    `nats-server ${found.version} runs with route ${ownRoute} and monitoring at http://127.0.0.1:${monitoringPort}`,
  );
  const servers = [`127.0.0.1:${clientPort}`];
  const system = { user: systemUser, password: systemPassword };
  return { server, reached: { servers, user, password, tls: undefined }, system };
}

/** @throws StartError setting-invalid */
function completeTls(tls: ClusterSettings["tls"]) {
  const { certificatePath, keyPath, authorityPath } = tls ?? systemAuthorities;
  if (certificatePath !== undefined && keyPath !== undefined && authorityPath !== undefined) {
    return { certificatePath, keyPath, authorityPath };
  }
  throw new StartError("setting-invalid", "Cluster.Routes need certificates: see Cluster.Nats.*");
}

/** @throws StartError setting-invalid */
async function guessOwnRoute(routes: readonly string[]): Promise<string> {
  if (routes.length === 1) return routes[0] as string;
  const own = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).map(({ address }) => address),
  );
  const addressesOf = (host: string) =>
    lookup(host, { all: true }).then(
      (found) => found.map(({ address }) => address),
      () => [],
    );
  const found = await findOwnRoute(routes, own, addressesOf);
  if (found !== undefined) return found;
  throw new StartError(
    "setting-invalid",
    `The addresses of this machine do not determine which of Cluster.Routes (${routes}) belongs to this node: set Cluster.Nats.Route`,
  );
}

function serverNameOf(nodeTag: string): string {
  return `jackdaw-${nodeTag}`;
}

function secret(): string {
  return randomBytes(24).toString("base64url");
}

/** Returns two unused ports of the loopback interface. */
async function freePorts(): Promise<[number, number]> {
  const listeners = await Promise.all(
    [0, 1].map(async () => {
      const listener = createServer();
      await new Promise<void>((resolve, reject) => {
        listener.once("error", reject).listen(0, "127.0.0.1", resolve);
      });
      return listener;
    }),
  );
  const ports = listeners.map((listener) => (listener.address() as { port: number }).port);
  for (const listener of listeners) listener.close();
  return ports as [number, number];
}

/** @throws StartError nats-unusable */
async function connect(options: LinkOptions): Promise<NatsLink> {
  let link: NatsLink;
  try {
    link = await NatsLink.connect(options);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const failure = `NATS cannot be reached at ${options.servers.join(", ")}: ${text}`;
    throw new StartError("nats-unusable", failure, { cause: error });
  }
  const server = link.server;
  const wrong =
    server === undefined
      ? "has disconnected"
      : !server.hasStreams
        ? "has no JetStream: enable it in its configuration"
        : !isRecent(server.version)
          ? `has version ${server.version}; the oldest supported version is ${oldestVersion}`
          : server.payloadBytesMax < payloadBytesMax
            ? `accepts messages of up to ${server.payloadBytesMax} bytes; set its max_payload to 8MB`
            : undefined;
  if (wrong === undefined) return link;
  await link.close();
  throw new StartError("nats-unusable", `NATS at ${options.servers.join(", ")} ${wrong}`);
}

interface NatsParts {
  readonly link: NatsLink;
  readonly log: Log;
  readonly nodeTag: string;
  readonly replicas: number;
  readonly serverCount: number;
  readonly server: NatsServer | undefined;
  /** Connection options of the system account, or undefined, in which case nothing can be scrubbed. */
  readonly system: LinkOptions | undefined;
}

export class Nats {
  readonly #parts: NatsParts;
  readonly #report: LinkOptions["report"];
  /** Result of the last check. */
  #seen: readonly ServerView[] | null = null;

  constructor(parts: NatsParts) {
    this.#parts = parts;
    this.#report = (message, cause) => parts.log.write("Warn", message, undefined, cause);
  }

  get isConnected(): boolean {
    return this.#parts.link.isConnected;
  }

  /** Name of the connected NATS server, or undefined while disconnected. */
  get serverName(): string | undefined {
    return this.#parts.link.server?.name;
  }

  get version(): string | undefined {
    return this.#parts.link.server?.version;
  }

  /** Number of replicas of each stream. */
  get replicas(): number {
    return this.#parts.replicas;
  }

  /** The nats-server of this node, or undefined with the external servers of `Cluster.Nats.Url`. */
  get server(): NatsServer | undefined {
    return this.#parts.server;
  }

  /** The connection, for subjects that no stream stores. */
  get link(): NatsLink {
    return this.#parts.link;
  }

  /** Returns the stream, created if it does not exist. @throws EngineError stream-unavailable */
  createStream(id: StreamId): Promise<JetStreamStream> {
    return JetStreamStream.create(this.#parts.link, id, this.#parts.replicas, this.#report);
  }

  /** Resolves to null if the stream does not exist. @throws EngineError stream-unavailable, also for other settings */
  openStream(id: StreamId): Promise<JetStreamStream | null> {
    return JetStreamStream.open(this.#parts.link, id, this.#parts.replicas, this.#report);
  }

  /** Removes a stream with its messages. @returns whether it existed @throws EngineError stream-unavailable */
  removeStream(id: StreamId): Promise<boolean> {
    return JetStreamStream.remove(this.#parts.link, id);
  }

  /** Publishes the result of `status` every 500 ms, and receives the heartbeats of other nodes, until stopped. */
  heartbeats(
    status: () => NodeStatus,
    heard: (tag: string, status: NodeStatus) => void,
  ): Heartbeats {
    const { link, nodeTag, log } = this.#parts;
    const report = (message: string) => log.warn(message);
    return new Heartbeats({ link, tag: nodeTag, status, heard, report });
  }

  /** Name of this node's nats-server, or undefined with external servers. */
  get ownServer(): string | undefined {
    return this.#parts.server === undefined ? undefined : serverNameOf(this.#parts.nodeTag);
  }

  /**
   * Returns the problems of the replicas of Jackdaw's streams on all servers.
   * @throws EngineError stream-unavailable if the servers cannot be queried
   */
  async scrub(): Promise<readonly StreamProblem[]> {
    return (await this.look()).problems;
  }

  /** As `scrub`, with the replies of the servers. Calls must not overlap. @throws EngineError stream-unavailable */
  async look(): Promise<ScrubLook> {
    if (this.#seen === null) {
      this.#seen = await this.#views();
      await pause(betweenLooksMs);
    }
    const earlier = this.#seen;
    const views = await this.#views();
    this.#seen = views;
    return { views, earlier, problems: problemsOf(views, this.#parts.serverCount, earlier) };
  }

  /**
   * Requests that a server lead a stream. An election then decides.
   * @throws EngineError stream-unavailable
   */
  async lead(stream: string, server: string): Promise<void> {
    const body = { placement: { preferred: server } };
    try {
      await requestApi(this.#parts.link, `STREAM.LEADER.STEPDOWN.${stream}`, body, stepDownMs);
    } catch (error) {
      throw streamUnavailable(stream, error);
    }
  }

  /**
   * Wipes this node's replica of a stream, which is then copied from the other replicas. Stops its nats-server meanwhile.
   * @throws EngineError stream-unavailable, StartError nats-unusable
   */
  async repair(stream: string): Promise<RepairOutcome> {
    const { server, nodeTag, log } = this.#parts;
    if (server === undefined) {
      return {
        kind: "refused",
        reason: "this node did not start the nats-server and cannot stop it: see the docs",
      };
    }
    const name = serverNameOf(nodeTag);
    const untilMs = performance.now() + electionMs;
    const earlier = this.#seen ?? [];
    let plan = planRepair(await this.#views(), stream, name, earlier);
    while (typeof plan !== "string" && plan.leadTo !== undefined) {
      if (performance.now() > untilMs) {
        return { kind: "refused", reason: `${plan.leadTo} did not take over ${stream}` };
      }
      await this.lead(stream, plan.leadTo);
      await pause(pollMs * 4);
      plan = planRepair(await this.#views(), stream, name, earlier);
    }
    if (typeof plan === "string") return { kind: "refused", reason: plan };
    log.warn(
      `The replica of ${stream} on ${name} is wiped, and then copied from the other replicas`,
    );
    await server.stop();
    const store = join(server.storeFolder, "jetstream");
    const wiped = [join(store, accountName, "streams", stream)];
    if (plan.raftGroup !== undefined)
      wiped.push(join(store, systemAccountName, "_js_", plan.raftGroup));
    for (const folder of wiped) await rm(folder, { recursive: true, force: true });
    await server.resume();
    return { kind: (await this.#isWhole(stream, name)) ? "repaired" : "catching-up" };
  }

  /** Closes the connection, and stops this node's nats-server. */
  async close(): Promise<void> {
    await this.#parts.link.close();
    await this.#parts.server?.stop();
  }

  /** Returns whether this replica is up to date within the time limit. */
  async #isWhole(stream: string, server: string): Promise<boolean> {
    const untilMs = performance.now() + catchUpMs;
    const earlier = this.#seen ?? [];
    while (performance.now() < untilMs) {
      await pause(pollMs);
      const views = await this.#views().catch(() => []);
      const found = joinViews(views).find(({ name }) => name === stream);
      const replica = found?.replicas.find((one) => one.server === server);
      const isSound = problemsOf(views, this.#parts.serverCount, earlier).every(
        (problem) => problem.stream !== stream || problem.server !== server,
      );
      if (replica !== undefined && found?.current.has(server) === true && isSound) return true;
    }
    return false;
  }

  /** @throws EngineError stream-unavailable */
  async #views(): Promise<ServerView[]> {
    const { system, server, serverCount } = this.#parts;
    if (system === undefined) {
      throw streamUnavailable(
        "of any name",
        "the scrub needs the system account: set Cluster.Nats.SystemUser and Cluster.Nats.SystemPassword",
      );
    }
    let link: NatsLink | undefined;
    try {
      link = await NatsLink.connect(system);
      const options = JSON.stringify({ accounts: true, streams: true, config: true, raft: true });
      // The number of external servers is not known.
      const countMax = server === undefined ? undefined : serverCount;
      const limits = { waitMs: scrubMs, countMax };
      const answers = await link.gather("$SYS.REQ.SERVER.PING.JSZ", options, limits);
      return answers.map(readServerView);
    } catch (error) {
      throw streamUnavailable("of any name", error);
    } finally {
      await link?.close();
    }
  }
}
