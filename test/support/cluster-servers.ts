/** Servers of one process that are nodes of a cluster, over real NATS servers. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterView } from "../../server/cluster/cluster-view.ts";
import { NatsCluster } from "./nats-cluster.ts";
import { startTestServer, type TestServer } from "./start-test-server.ts";

const waitMs = 45_000;
const pollMs = 20;

export class ClusterServers {
  readonly nats: NatsCluster;
  readonly #folder: string;
  readonly #flags: readonly string[];
  readonly #servers = new Map<string, TestServer>();
  /** If false, the certificates of the test servers are used. */
  readonly #unsecured: boolean;

  private constructor(nats: NatsCluster, unsecured: boolean) {
    this.nats = nats;
    this.#unsecured = unsecured;
    this.#folder = mkdtempSync(join(tmpdir(), "jackdaw-cluster-"));
    const { servers, user, pass } = nats.options();
    this.#flags = [
      `--Cluster.Nats.Url=${servers.map((server) => `nats://${server}`).join(",")}`,
      `--Cluster.Nats.User=${user}`,
      `--Cluster.Nats.Password=${pass}`,
      "--RunInMemory=false",
    ];
  }

  /** The NATS servers, without nodes. */
  static async prepare(count: number, { unsecured = true } = {}): Promise<ClusterServers> {
    return new ClusterServers(await NatsCluster.start(count), unsecured);
  }

  /** Nodes A, B, … Resolves when all are registered. */
  static async start(count: number, { unsecured = true } = {}): Promise<ClusterServers> {
    const servers = await ClusterServers.prepare(count, { unsecured });
    const tags = Array.from({ length: count }, (_, at) => String.fromCharCode(65 + at));
    await Promise.all(tags.map((tag) => servers.open(tag)));
    await servers.complete(count);
    return servers;
  }

  open(tag: string, flags: readonly string[] = []): Promise<TestServer> {
    return this.#open(tag, [...this.#flags, ...flags]);
  }

  /** Opens a node's data folder as that of a single node. */
  openAlone(tag: string, flags: readonly string[] = []): Promise<TestServer> {
    return this.#open(tag, ["--RunInMemory=false", ...flags]);
  }

  async #open(tag: string, flags: readonly string[]): Promise<TestServer> {
    const server = await startTestServer({
      unsecured: this.#unsecured,
      flags: [...flags, `--Cluster.NodeTag=${tag}`, `--DataDir=${this.folderOf(tag)}`],
    });
    this.#servers.set(tag, server);
    return server;
  }

  folderOf(tag: string): string {
    return join(this.#folder, tag);
  }

  async close(tag: string): Promise<void> {
    await this.at(tag).stop();
    this.#servers.delete(tag);
  }

  at(tag: string): TestServer {
    const server = this.#servers.get(tag);
    if (server === undefined) throw new Error(`node ${tag} is not running`);
    return server;
  }

  get tags(): string[] {
    return [...this.#servers.keys()];
  }

  cluster(tag: string): ClusterView {
    const { cluster } = this.at(tag).running.services;
    if (cluster === undefined) throw new Error(`node ${tag} has no cluster`);
    return cluster;
  }

  /** Waits until every running node knows `count` nodes. */
  async complete(count: number): Promise<void> {
    await this.until(() =>
      this.tags.every((tag) => {
        const cluster = this.cluster(tag);
        return cluster.members().length === count && cluster.topologyId !== null;
      }),
    );
  }

  /**
   * The leader of the shared values, as reported by all running nodes: a new leader is not known to
   * all immediately.
   */
  leader(): Promise<string> {
    return this.#agreed((cluster) => cluster.leaderTag);
  }

  /** The leader of a database, as reported by all running nodes. */
  leaderOf(name: string): Promise<string> {
    return this.#agreed((cluster) => cluster.find(name)?.leaderTag);
  }

  async #agreed(leaderOf: (cluster: ClusterView) => string | null | undefined): Promise<string> {
    let found: string | null | undefined;
    await this.until(() => {
      const reported = this.tags.map((tag) => leaderOf(this.cluster(tag)));
      found = reported[0];
      return typeof found === "string" && this.tags.includes(found) && new Set(reported).size === 1;
    });
    return found as string;
  }

  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    // Also called before the tests begin, where vitest cannot poll.
    const endMs = performance.now() + waitMs;
    while (!(await condition())) {
      if (performance.now() > endMs)
        throw new Error(`not reached after ${waitMs} ms: ${condition}`);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  async stop(): Promise<void> {
    for (const tag of this.tags) await this.close(tag);
    await this.nats.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
