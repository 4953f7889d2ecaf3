import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { serverConfiguration } from "../../server/cluster/nats/server-configuration.ts";
import { freePorts, natsServerPath } from "../support/nats-cluster.ts";
import { builtPath, projectRoot } from "../support/project-root.ts";
import { Child } from "./child-process.ts";
import { ClusterCertificates } from "./cluster-certificates.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { HttpSender } from "./http-sender.ts";
import { SmallDisk } from "./small-disk.ts";

const users = { user: "jackdaw", password: "p", systemUser: "system", systemPassword: "s" };
const tags = ["A", "B", "C", "D", "E"];
const completeMs = 90_000;
const clockLibraries = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

export interface ClusterOptions {
  /** Number of nodes; 3 by default. */
  readonly count?: number;
  readonly isSecured?: boolean;
  /**
   * `child`: each node starts its own NATS server, and links between these cannot be cut; `none`: a
   * single node.
   */
  readonly nats?: "own" | "child" | "none";
  /** Whether the clock of each node can be changed. */
  readonly hasClocks?: boolean;
  /** Whether the last node has a disk that can be filled. */
  readonly hasSmallDisk?: boolean;
  readonly flags?: readonly string[];
}

export interface ClusterNode {
  readonly at: number;
  readonly tag: string;
  readonly child: Child;
  readonly folder: string;
  /** The URL known to the cluster, through its proxy. */
  readonly url: string;
  readonly directUrl: string;
  readonly send: HttpSender;
  /** null if its disk cannot be filled. */
  readonly disk: SmallDisk | null;
  /** The source address of its connections. */
  readonly origin: string;
}

export interface NatsNode {
  readonly at: number;
  readonly child: Child;
  readonly folder: string;
  readonly storeFolder: string;
}

export class ClusterNodes {
  readonly nodes: readonly ClusterNode[];
  readonly nats: readonly NatsNode[];
  readonly certificates: ClusterCertificates | null;
  readonly #folder: string;
  readonly #nodeProxies: readonly CuttingProxy[];
  readonly #natsProxies: readonly CuttingProxy[];
  /** By "from>to". */
  readonly #routeProxies: ReadonlyMap<string, CuttingProxy>;
  readonly hasClocks: boolean;

  private constructor(parts: {
    nodes: readonly ClusterNode[];
    nats: readonly NatsNode[];
    folder: string;
    nodeProxies: readonly CuttingProxy[];
    natsProxies: readonly CuttingProxy[];
    routeProxies: ReadonlyMap<string, CuttingProxy>;
    certificates: ClusterCertificates | null;
    hasClocks: boolean;
  }) {
    this.nodes = parts.nodes;
    this.nats = parts.nats;
    this.#folder = parts.folder;
    this.#nodeProxies = parts.nodeProxies;
    this.#natsProxies = parts.natsProxies;
    this.#routeProxies = parts.routeProxies;
    this.certificates = parts.certificates;
    this.hasClocks = parts.hasClocks;
  }

  /** Resolves when all processes are ready, but not yet one cluster (`complete`). */
  static async start(options: ClusterOptions = {}): Promise<ClusterNodes> {
    const count = options.count ?? 3;
    const folder = mkdtempSync(join(tmpdir(), "jackdaw-cluster-"));
    const certificates =
      options.isSecured === true ? await ClusterCertificates.make(folder, count) : null;
    const disk = options.hasSmallDisk === true ? SmallDisk.mount(join(folder, "disk")) : null;
    const ports = await freePorts(6 * count);
    const portsOf = (at: number) => ports.slice(at * count, (at + 1) * count);
    const [http = [], tcp = [], routes = [], clients = [], monitoring = []] = [0, 1, 2, 3, 4].map(
      portsOf,
    );
    const kind = options.nats ?? "own";
    const isOwn = kind === "own";
    const routeProxies = new Map<string, CuttingProxy>();
    const natsProxies: CuttingProxy[] = [];
    if (isOwn) {
      for (const port of clients) natsProxies.push(await CuttingProxy.open(() => port));
      for (let from = 0; from < count; from++) {
        for (const [to, port] of routes.entries()) {
          if (to !== from) routeProxies.set(`${from}>${to}`, await CuttingProxy.open(() => port));
        }
      }
    }
    const nodeProxies: CuttingProxy[] = [];
    for (const port of http) nodeProxies.push(await CuttingProxy.open(() => port));
    const nats = isOwn
      ? clients.map((clientPort, at) =>
          natsNode({
            at,
            folder: join(disk !== null && at === count - 1 ? disk.folder : folder, `nats-${at}`),
            clientPort,
            monitoringPort: monitoring[at] as number,
            ownRoute: `127.0.0.1:${routes[at]}`,
            routes: clients.flatMap((_, to) => routeProxies.get(`${at}>${to}`)?.address ?? []),
          }),
        )
      : [];
    const clockLibrary = clockLibraries.find((path) => existsSync(path));
    const hasClocks = options.hasClocks === true && clockLibrary !== undefined;
    const scheme = certificates === null ? "http" : "https";
    const nodes = http.map((port, at): ClusterNode => {
      const tag = tags[at] as string;
      const isSmall = disk !== null && at === count - 1;
      const dataFolder = join(isSmall ? disk.folder : folder, tag);
      const url = `${scheme}://${nodeProxies[at]?.address}`;
      const directUrl = `${scheme}://127.0.0.1:${port}`;
      const origin = `127.0.0.${11 + at}`;
      const flags = [
        `--ServerUrl=${directUrl}`,
        `--PublicServerUrl=${url}`,
        `--ServerUrl.Tcp=tcp://127.0.0.1:${tcp[at]}`,
        `--DataDir=${dataFolder}`,
        "--Server.ShutdownTimeoutInSec=5",
        `--Cluster.NodeTag=${tag}`,
        ...(certificates === null
          ? ["--Security.UnsecuredAccessAllowed=Local"]
          : certificates.flags(at)),
        ...natsFlags(kind, at, natsProxies, routes),
        ...(options.flags ?? []),
      ];
      const clockPath = join(folder, `clock-${tag}`);
      writeFileSync(clockPath, "+0\n");
      const child = new Child(`node ${tag}`, {
        command: process.execPath,
        args: [
          "--require",
          join(projectRoot, "test/cluster/from-own-address.cjs"),
          builtPath("server/main.js"),
          ...flags,
        ],
        environment: {
          FROM_ADDRESS: origin,
          ...(hasClocks
            ? {
                LD_PRELOAD: clockLibrary as string,
                FAKETIME_TIMESTAMP_FILE: clockPath,
                FAKETIME_NO_CACHE: "1",
                FAKETIME_DONT_FAKE_MONOTONIC: "1",
              }
            : {}),
        },
        ready: /Server available on: /,
      });
      const proxy = nodeProxies[at] as CuttingProxy;
      child.whenChanged = (isRunning) => (isRunning ? proxy.listen() : proxy.refuse());
      const send = new HttpSender(directUrl, certificates?.admin);
      return {
        at,
        tag,
        child,
        folder: dataFolder,
        url,
        directUrl,
        send,
        origin,
        disk: isSmall ? disk : null,
      };
    });
    const all = new ClusterNodes({
      nodes,
      nats,
      folder,
      nodeProxies,
      natsProxies,
      routeProxies,
      certificates,
      hasClocks,
    });
    try {
      await Promise.all(nats.map(({ child }) => child.start()));
      await Promise.all(nodes.map(({ child }) => child.start()));
    } catch (error) {
      await all.stop();
      throw error;
    }
    return all;
  }

  /** Resolves when all nodes know each other and the leader. */
  async complete(): Promise<void> {
    await this.eventually("the cluster is complete", async () => {
      for (const { send } of this.nodes) {
        const { Topology, Leader } = JSON.parse((await send.get("/cluster/topology")).text) as {
          Topology: { AllNodes?: Record<string, string>; Members?: Record<string, string> };
          Leader?: string | null;
        };
        const known = Object.keys(Topology.AllNodes ?? Topology.Members ?? {});
        if (known.length < this.nodes.length || !Leader) return `knows ${known}, leader ${Leader}`;
      }
      return null;
    });
  }

  /** Creates a database with a copy on each node; resolves when each node has it. */
  async createDatabase(name: string, replicationFactor = this.nodes.length): Promise<void> {
    const path = `/admin/databases?name=${name}&replicationFactor=${replicationFactor}`;
    await this.eventually("the database is created", async () => {
      const { status, text } = await this.any.send.put(path, { DatabaseName: name });
      return status === 201 || (status === 409 && /exists/i.test(text))
        ? null
        : `${status} ${text}`;
    });
    await this.eventually("all nodes have the database", async () => {
      for (const { tag, send } of this.nodes) {
        const { status, text } = await send.get(`/databases/${name}/stats`);
        if (status !== 200) return `${tag}: ${status} ${text}`;
      }
      return null;
    });
  }

  /** A running node. */
  get any(): ClusterNode {
    const node = this.nodes.find(({ child }) => child.isRunning && !child.isStopped);
    if (node === undefined) throw new Error("no node is running");
    return node;
  }

  /** Repeats `check` until it returns null. @throws if it still fails after `limitMs` */
  async eventually(
    what: string,
    check: () => Promise<string | null>,
    limitMs = completeMs,
  ): Promise<void> {
    const endMs = performance.now() + limitMs;
    for (;;) {
      const wrong = await check().catch((error: Error) => error.message);
      if (wrong === null) return;
      if (performance.now() > endMs) {
        throw new Error(`not within ${limitMs} ms: ${what}: ${wrong}`);
      }
      await pause(100);
    }
  }

  /**
   * Returns the leader of a database, as reported by any running node. @throws if no node reports
   * one within a minute
   */
  async leaderOf(database: string): Promise<ClusterNode> {
    let found: ClusterNode | undefined;
    await this.eventually(`${database} has a leader`, async () => {
      for (const { child, send } of this.nodes) {
        if (!child.isRunning || child.isStopped) continue;
        const { status, text } = await send.get(`/topology?name=${database}`, { timeoutMs: 2_000 });
        if (status !== 200) continue;
        const first = (JSON.parse(text) as { Nodes: { ClusterTag: string }[] }).Nodes[0];
        found = this.nodes.find(({ tag }) => tag === first?.ClusterTag);
        if (found !== undefined) return null;
      }
      return "no node tells";
    });
    return found as ClusterNode;
  }

  /** The NATS server that leads the stream of a database; null if it has no leader. */
  async natsLeaderOf(stream: RegExp): Promise<NatsNode | null> {
    for (const { child, folder } of this.nats) {
      if (!child.isRunning || child.isStopped) continue;
      const configuration = JSON.parse(readFileSync(join(folder, "nats.conf"), "utf8"));
      const url = `http://${configuration.http}/jsz?streams=true&accounts=true`;
      const view = (await fetch(url, { signal: AbortSignal.timeout(2_000) })
        .then((reply) => reply.json())
        .catch(() => null)) as JszView | null;
      for (const one of view?.account_details?.flatMap((account) => account.stream_detail ?? []) ??
        []) {
        if (!stream.test(one.name)) continue;
        const found = this.nats.find(({ at }) => natsName(at) === one.cluster?.leader);
        if (found !== undefined) return found;
      }
    }
    return null;
  }

  cutFromNats(node: ClusterNode): void {
    for (const proxy of this.#natsProxies) proxy.cut(node.origin);
  }

  /** Isolates a node from the other nodes; clients still reach it. */
  cutFromPeers(node: ClusterNode): void {
    for (const other of this.nodes) {
      if (other === node) continue;
      this.#nodeProxies[other.at]?.cut(node.origin);
      this.#nodeProxies[node.at]?.cut(other.origin);
    }
  }

  /** Isolates a NATS server from the other two; nodes still reach it. */
  cutNats({ at }: NatsNode): void {
    for (const [link, proxy] of this.#routeProxies) {
      if (link.split(">").includes(String(at))) proxy.cut();
    }
  }

  /** Cuts one direction of a link. */
  cutRoute(from: number, to: number): void {
    this.#routeProxies.get(`${from}>${to}`)?.cut();
  }

  heal(): void {
    const proxies = [...this.#nodeProxies, ...this.#natsProxies, ...this.#routeProxies.values()];
    for (const proxy of proxies) proxy.heal();
  }

  /** Sets the clock of a node, as an offset from the real time in seconds. */
  setClock(node: ClusterNode, seconds: number): void {
    const sign = seconds < 0 ? "-" : "+";
    writeFileSync(join(this.#folder, `clock-${node.tag}`), `${sign}${Math.abs(seconds)}\n`);
  }

  /** Removes all data of a node, which must not be running. */
  wipe({ child, folder }: ClusterNode | NatsNode): void {
    if (child.isRunning) throw new Error(`${child.name} runs`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    restoreConfiguration(child, folder);
  }

  /**
   * Damages the messages of a stream on a NATS server, which must not be running.
   * @returns false if it has no messages that can be damaged.
   */
  damage({ child, storeFolder }: NatsNode, stream: RegExp, how: "flip" | "cut"): boolean {
    if (child.isRunning) throw new Error(`${child.name} runs`);
    if (!existsSync(storeFolder)) return false;
    const blocks = readdirSync(storeFolder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".blk") && name.includes("/streams/") && stream.test(name))
      .map((name) => blockAt(join(storeFolder, name)))
      .sort((one, other) => other.bytes.length - one.bytes.length);
    const [block] = blocks;
    if (block === undefined || block.bytes.length < 4096) return false;
    const { path, bytes } = block;
    const middle = bytes.length >>> 1;
    if (how === "cut") truncateSync(path, middle);
    else {
      bytes[middle] = (bytes[middle] as number) ^ 0xff;
      writeFileSync(path, bytes);
    }
    return true;
  }

  /** The last output of all processes, for a failed test. */
  lastWords(): string {
    return [...this.nodes, ...this.nats]
      .map(({ child }) => `${child.name}:\n  ${child.lastWords()}`)
      .join("\n");
  }

  /** Stops the nodes, so that each has its acknowledged writes on disk, and the NATS servers. */
  async end(): Promise<void> {
    await Promise.all(this.nodes.map(({ child }) => child.end("SIGTERM")));
    await Promise.all(this.nats.map(({ child }) => child.end("SIGTERM")));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.nodes, ...this.nats].map(({ child }) => child.kill()));
    await this.#stopChildren();
    for (const { send } of this.nodes) send.close();
    for (const proxy of [
      ...this.#nodeProxies,
      ...this.#natsProxies,
      ...this.#routeProxies.values(),
    ])
      proxy.close();
    for (const { disk } of this.nodes) disk?.unmount();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** NATS servers left running by killed nodes. */
  async #stopChildren(): Promise<void> {
    for (const { folder } of this.nodes) {
      for (const path of pidFiles(folder)) {
        const pid = Number(readFileSync(path, "utf8"));
        const words = await commandLineOf(pid);
        if (words.includes(this.#folder)) process.kill(pid, "SIGKILL");
      }
    }
  }
}

interface JszView {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly {
      readonly name: string;
      readonly cluster?: { readonly leader?: string };
    }[];
  }[];
}

function blockAt(path: string): { readonly path: string; readonly bytes: Buffer } {
  return { path, bytes: readFileSync(path) };
}

function pidFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith("nats-server.pid"))
    .map((name) => join(folder, name));
}

async function commandLineOf(pid: number): Promise<string> {
  const path = `/proc/${pid}/cmdline`;
  return Number.isSafeInteger(pid) && existsSync(path) ? readFileSync(path, "utf8") : "";
}

function natsName(at: number): string {
  return `test-${at}`;
}

const configurations = new Map<Child, string>();

function restoreConfiguration(child: Child, folder: string): void {
  const text = configurations.get(child);
  if (text !== undefined) writeFileSync(join(folder, "nats.conf"), text);
}

function natsNode(options: {
  at: number;
  folder: string;
  clientPort: number;
  monitoringPort: number;
  ownRoute: string;
  routes: readonly string[];
}): NatsNode {
  const { at, folder, clientPort, monitoringPort, ownRoute, routes } = options;
  const storeFolder = join(folder, "store");
  mkdirSync(folder, { recursive: true });
  const configuration = JSON.parse(
    serverConfiguration({
      name: natsName(at),
      storeFolder,
      pidPath: join(folder, "nats.pid"),
      clientPort,
      monitoringPort,
      ...users,
      routes: [ownRoute, ...routes],
      ownRoute,
      tls: undefined,
    }),
  );
  // The addresses that they advertise are unusable: they reach each other only through the proxies.
  if (routes.length > 0) configuration.cluster.advertise = "127.0.0.1:1";
  const path = join(folder, "nats.conf");
  const child = new Child(`nats-server ${at}`, {
    command: natsServerPath(),
    args: ["--config", path],
    ready: /Server is ready/,
  });
  configurations.set(child, JSON.stringify(configuration));
  restoreConfiguration(child, folder);
  return { at, child, folder, storeFolder };
}

function natsFlags(
  kind: NonNullable<ClusterOptions["nats"]>,
  at: number,
  proxies: readonly CuttingProxy[],
  routes: readonly number[],
): string[] {
  if (kind === "none") return [];
  if (kind === "own") {
    return [
      `--Cluster.Nats.Url=${proxies.map(({ address }) => `nats://${address}`).join(",")}`,
      `--Cluster.Nats.User=${users.user}`,
      `--Cluster.Nats.Password=${users.password}`,
      `--Cluster.Nats.SystemUser=${users.systemUser}`,
      `--Cluster.Nats.SystemPassword=${users.systemPassword}`,
    ];
  }
  return [
    `--Cluster.Routes=${routes.map((route) => `127.0.0.1:${route}`).join(",")}`,
    `--Cluster.Nats.Route=127.0.0.1:${routes[at]}`,
    `--Cluster.Nats.Path=${natsServerPath()}`,
  ];
}
