/** NATS servers on loopback, each a process that can be killed and suspended. */
import { randomInt } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { NatsLink } from "../../server/cluster/nats/nats-link.ts";
import { findNatsServer, NatsServer } from "../../server/cluster/nats/nats-server.ts";
import {
  joinViews,
  readServerView,
  type ServerView,
} from "../../server/cluster/nats/replica-scrub.ts";
import { silentLog } from "../../server/logging/log.ts";
import { projectRoot } from "./project-root.ts";

/**
 * The path of NATS_SERVER, of the server built by `node packaging/nats-server.js`, or of one on the
 * path.
 */
export function natsServerPath(): string {
  const created = join(projectRoot, "node_modules/.cache/nats-server-2.15.1/nats-server");
  const found = (process.env["PATH"] ?? "").split(delimiter).map((one) => join(one, "nats-server"));
  const path = [process.env["NATS_SERVER"] ?? created, ...found].find((one) => existsSync(one));
  if (path === undefined) throw new Error("run node packaging/nats-server.js first");
  return path;
}

/** Whether a nats-server is available. Tests fail without one; benches are skipped. */
export function hasNatsServer(): boolean {
  try {
    return existsSync(natsServerPath());
  } catch {
    return false;
  }
}

/**
 * Free ports of loopback. They are below those that systems assign to connections and to listeners
 * without a fixed port (32768 on Linux), so that a port is still free when a process binds it some seconds later.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(12_000, 32_768);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const listener = createServer();
    listener.once("error", () => resolve(false));
    listener.listen(port, "127.0.0.1", () => listener.close(() => resolve(true)));
  });
}

export class NatsCluster {
  readonly servers: readonly NatsServer[];
  readonly #folder: string;
  readonly #ports: readonly number[];
  readonly #closings = new Set<() => Promise<void>>();

  private constructor(servers: readonly NatsServer[], folder: string, ports: readonly number[]) {
    this.servers = servers;
    this.#folder = folder;
    this.#ports = ports;
  }

  static async start(count: number): Promise<NatsCluster> {
    const folder = mkdtempSync(join(tmpdir(), "jackdaw-nats-"));
    const ports = await freePorts(3 * count);
    const routes = ports.slice(0, count).map((port) => `127.0.0.1:${port}`);
    const server = await findNatsServer(natsServerPath());
    const servers = routes.map((ownRoute, at) =>
      NatsServer.start({
        server,
        folder: join(folder, String(at)),
        log: silentLog(),
        configuration: {
          name: nameOf(at),
          clientPort: ports[count + at] as number,
          monitoringPort: ports[2 * count + at] as number,
          ...users,
          routes,
          ownRoute,
          tls: undefined,
        },
      }),
    );
    return new NatsCluster(await Promise.all(servers), folder, ports.slice(count, 2 * count));
  }

  /** A connection to one server, or to any of them. */
  async link(at?: number, user: "user" | "system" = "user"): Promise<NatsLink> {
    const { servers } = this.options();
    const link = await NatsLink.connect({
      servers: at === undefined ? servers : [servers[at] as string],
      name: "test",
      user: user === "user" ? users.user : users.systemUser,
      password: user === "user" ? users.password : users.systemPassword,
      tls: undefined,
      connectMs: 10_000,
      report: () => undefined,
    });
    this.closeLater(() => link.close());
    return link;
  }

  /** For a connection that is created otherwise. */
  options() {
    const servers = this.#ports.map((port) => `127.0.0.1:${port}`);
    return { servers, user: users.user, pass: users.password };
  }

  /** Called before the servers are stopped. */
  closeLater(close: () => Promise<void>): void {
    this.#closings.add(close);
  }

  /** The servers' reports on their replicas. */
  async views(): Promise<ServerView[]> {
    const link = await this.link(undefined, "system");
    const requested = JSON.stringify({ accounts: true, streams: true, config: true, raft: true });
    const limits = { waitMs: 2000, countMax: this.servers.length };
    const answers = await link.gather("$SYS.REQ.SERVER.PING.JSZ", requested, limits);
    await link.close();
    return answers.map(readServerView);
  }

  /** The server that leads a stream. */
  async leaderOf(stream: string): Promise<number> {
    for (;;) {
      const found = joinViews(await this.views()).find(({ name }) => name === stream)?.leader;
      const at = this.servers.findIndex((_, number) => nameOf(number) === found);
      if (at >= 0) return at;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  signal(at: number, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    const pid = this.servers[at]?.pid;
    if (pid === undefined) throw new Error(`server ${at} is not running`);
    process.kill(pid, signal);
  }

  async stop(): Promise<void> {
    for (const close of this.#closings) await close();
    await Promise.all(this.servers.map((server) => server.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const users = { user: "jackdaw", password: "p", systemUser: "system", systemPassword: "s" };

function nameOf(at: number): string {
  return `test-${at}`;
}
