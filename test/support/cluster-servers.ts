/** Servers of one process that are nodes of a cluster, over real servers of NATS. */
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
  /** The certificates are those of the test servers when it is false. */
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

  /** The servers of NATS, and no node yet. */
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

  /** With the data folder of a node, as a single one. */
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
    if (server === undefined) throw new Error(`node ${tag} does not run`);
    return server;
  }

  get tags(): string[] {
    return [...this.#servers.keys()];
  }

  cluster(tag: string): ClusterView {
    const { cluster } = this.at(tag).running.services;
    if (cluster === undefined) throw new Error(`node ${tag} is alone`);
    return cluster;
  }

  /** Waits until every node that runs knows of so many. */
  async complete(count: number): Promise<void> {
    await this.until(() =>
      this.tags.every((tag) => {
        const cluster = this.cluster(tag);
        return cluster.members().length === count && cluster.topologyId !== null;
      }),
    );
  }

  /** The node that leads what the nodes share, as all that run say: one that just began has not heard of it yet. */
  leader(): Promise<string> {
    return this.#agreed((cluster) => cluster.leaderTag);
  }

  /** The node that leads a database, as all that run say. */
  leaderOf(name: string): Promise<string> {
    return this.#agreed((cluster) => cluster.find(name)?.leaderTag);
  }

  async #agreed(leaderOf: (cluster: ClusterView) => string | null | undefined): Promise<string> {
    let found: string | null | undefined;
    await this.until(() => {
      const told = this.tags.map((tag) => leaderOf(this.cluster(tag)));
      found = told[0];
      return typeof found === "string" && this.tags.includes(found) && new Set(told).size === 1;
    });
    return found as string;
  }

  async until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    // Also before the tests begin, where vitest does not poll.
    const endMs = performance.now() + waitMs;
    while (!(await isSo())) {
      if (performance.now() > endMs) throw new Error(`it is not so after ${waitMs} ms: ${isSo}`);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  async stop(): Promise<void> {
    for (const tag of this.tags) await this.close(tag);
    await this.nats.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
