/**
 * NATS for a clustered server: its connection, its own `nats-server` where it has one, streams, heartbeats, the scrub and
 * the repair of replicas. Nothing here is loaded or started by a single node.
 *
 *     const nats = await startNats({ settings, nodeTag: "A", dataFolder: "./data", log });
 *     const stream = await nats.createStream({ databaseId: "5e1f", generation: 1 });
 *     await stream.append(frame, 0); // { kind: "stored", sequence: 1 }
 *     await nats.close();
 *
 * Invariants:
 * - `startNats` returns when a server of NATS is reached, whether or not enough of them are there to serve streams: the
 *   first node of a cluster must not wait for the second one.
 * - A replica is wiped only while two others are clean and up to date, and one of these leads.
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
import { ask, JetStreamStream } from "./jetstream-stream.ts";
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

export interface NatsOptions {
  readonly settings: ClusterSettings;
  readonly nodeTag: string;
  /** The own nats-server has `nats/` in it. */
  readonly dataFolder: string;
  readonly log: Log;
}

export type RepairOutcome =
  | { readonly kind: "repaired" }
  /** Nothing was changed. */
  | { readonly kind: "refused"; readonly reason: string }
  /** It was wiped, and is not up to date yet. */
  | { readonly kind: "catching-up" };

/** Copies of each stream, unless the server of NATS stands alone. */
const replicasOfCluster = 3;
const connectMs = 30_000;
const systemConnectMs = 5000;
/** For the answers of all servers: one that is busy with a purge takes its time. */
const scrubMs = 3000;
const electionMs = 15_000;
const catchUpMs = 60_000;
const stepDownMs = 5000;
const pollMs = 250;
/** Between the first two looks: by the second one a replica has what the others had at the first. */
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
    `nats-server ${found.version} runs with ${ownRoute} for the other nodes, and tells of itself at http://127.0.0.1:${monitoringPort}`,
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
    `Which of Cluster.Routes (${routes}) is this node's cannot be told by the addresses of this machine: set Cluster.Nats.Route`,
  );
}

function serverNameOf(nodeTag: string): string {
  return `jackdaw-${nodeTag}`;
}

function secret(): string {
  return randomBytes(24).toString("base64url");
}

/** Two ports of loopback that nobody has at the moment. */
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
    const told = `NATS cannot be reached at ${options.servers.join(", ")}: ${text}`;
    throw new StartError("nats-unusable", told, { cause: error });
  }
  const server = link.server;
  const wrong =
    server === undefined
      ? "is gone"
      : !server.hasStreams
        ? "has no JetStream: enable it in its configuration"
        : !isRecent(server.version)
          ? `has version ${server.version}; ${oldestVersion} is the oldest that can be used`
          : server.payloadBytesMax < payloadBytesMax
            ? `takes messages of ${server.payloadBytesMax} bytes; set its max_payload to 8MB`
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
  /** How the system account is reached; undefined: not at all, so nothing can be scrubbed. */
  readonly system: LinkOptions | undefined;
}

export class Nats {
  readonly #parts: NatsParts;
  readonly #report: LinkOptions["report"];
  /** What the last look has seen. */
  #seen: readonly ServerView[] | null = null;

  constructor(parts: NatsParts) {
    this.#parts = parts;
    this.#report = (message, cause) => parts.log.write("Warn", message, undefined, cause);
  }

  get isConnected(): boolean {
    return this.#parts.link.isConnected;
  }

  /** The server of NATS that this is connected to; undefined: none at the moment. */
  get serverName(): string | undefined {
    return this.#parts.link.server?.name;
  }

  get version(): string | undefined {
    return this.#parts.link.server?.version;
  }

  /** Copies that each stream has. */
  get replicas(): number {
    return this.#parts.replicas;
  }

  /** The nats-server of this node; undefined: those of `Cluster.Nats.Url` run by themselves. */
  get server(): NatsServer | undefined {
    return this.#parts.server;
  }

  /** For subjects that nothing stores. */
  get link(): NatsLink {
    return this.#parts.link;
  }

  /** The stream, made if it is not there. @throws EngineError stream-unavailable */
  createStream(id: StreamId): Promise<JetStreamStream> {
    return JetStreamStream.create(this.#parts.link, id, this.#parts.replicas, this.#report);
  }

  /** null: the cluster says that there is none. @throws EngineError stream-unavailable, also for other settings */
  openStream(id: StreamId): Promise<JetStreamStream | null> {
    return JetStreamStream.open(this.#parts.link, id, this.#parts.replicas, this.#report);
  }

  /** Removes a stream with all that it holds. @returns was it there? @throws EngineError stream-unavailable */
  removeStream(id: StreamId): Promise<boolean> {
    return JetStreamStream.remove(this.#parts.link, id);
  }

  /** Says every 500 ms what `status` returns, and hears the others, until it is stopped. */
  heartbeats(
    status: () => NodeStatus,
    heard?: (tag: string, status: NodeStatus) => void,
  ): Heartbeats {
    const { link, nodeTag, log } = this.#parts;
    const report = (message: string) => log.warn(message);
    const common = { link, tag: nodeTag, status, report };
    return new Heartbeats(heard === undefined ? common : { ...common, heard });
  }

  /** The name of this node's own server of NATS; undefined: it has none, they run by themselves. */
  get ownServer(): string | undefined {
    return this.#parts.server === undefined ? undefined : serverNameOf(this.#parts.nodeTag);
  }

  /**
   * What is wrong with the replicas of Jackdaw's streams on all servers; empty: nothing.
   * @throws EngineError stream-unavailable when that cannot be found out
   */
  async scrub(): Promise<readonly StreamProblem[]> {
    return (await this.look()).problems;
  }

  /** As `scrub`, with what the servers have said. Calls must not overlap. @throws EngineError stream-unavailable */
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
   * Has a server lead a stream. Who leads is decided by an election after that.
   * @throws EngineError stream-unavailable
   */
  async lead(stream: string, server: string): Promise<void> {
    const body = { placement: { preferred: server } };
    try {
      await ask(this.#parts.link, `STREAM.LEADER.STEPDOWN.${stream}`, body, stepDownMs);
    } catch (error) {
      throw streamUnavailable(stream, error);
    }
  }

  /**
   * Wipes this node's replica of a stream, which comes back from the others. Its nats-server is stopped meanwhile.
   * @throws EngineError stream-unavailable, StartError nats-unusable
   */
  async repair(stream: string): Promise<RepairOutcome> {
    const { server, nodeTag, log } = this.#parts;
    if (server === undefined) {
      return {
        kind: "refused",
        reason: "its nats-server is not this node's to stop: see the docs",
      };
    }
    const name = serverNameOf(nodeTag);
    const untilMs = performance.now() + electionMs;
    const earlier = this.#seen ?? [];
    let plan = planRepair(await this.#views(), stream, name, earlier);
    while (typeof plan !== "string" && plan.leadTo !== undefined) {
      if (performance.now() > untilMs) {
        return { kind: "refused", reason: `${plan.leadTo} does not come to lead ${stream}` };
      }
      await this.lead(stream, plan.leadTo);
      await pause(pollMs * 4);
      plan = planRepair(await this.#views(), stream, name, earlier);
    }
    if (typeof plan === "string") return { kind: "refused", reason: plan };
    log.warn(`The replica of ${stream} on ${name} is wiped, and comes back from the others`);
    await server.stop();
    const store = join(server.storeFolder, "jetstream");
    const wiped = [join(store, accountName, "streams", stream)];
    if (plan.raftGroup !== undefined)
      wiped.push(join(store, systemAccountName, "_js_", plan.raftGroup));
    for (const folder of wiped) await rm(folder, { recursive: true, force: true });
    await server.resume();
    return { kind: (await this.#isWhole(stream, name)) ? "repaired" : "catching-up" };
  }

  /** Ends the connection and the own nats-server. */
  async close(): Promise<void> {
    await this.#parts.link.close();
    await this.#parts.server?.stop();
  }

  /** Is this replica up to date within the time that it may take? */
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
      const asked = JSON.stringify({ accounts: true, streams: true, config: true, raft: true });
      // How many servers that run by themselves there are is not known.
      const countMax = server === undefined ? undefined : serverCount;
      const limits = { waitMs: scrubMs, countMax };
      const answers = await link.gather("$SYS.REQ.SERVER.PING.JSZ", asked, limits);
      return answers.map(readServerView);
    } catch (error) {
      throw streamUnavailable("of any name", error);
    } finally {
      await link?.close();
    }
  }
}
