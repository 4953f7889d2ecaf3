/**
 * Nodes of one process, each with its own copy of one database and its own connection to the stream
 * that replicates it.
 */
import { rm } from "node:fs/promises";
import { expect } from "vitest";
import { DatabaseReplication } from "../../engine/api/database/database-replication.ts";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { nodeEnvironment } from "../../engine/base/platform/node-environment.ts";
import { LogRestore } from "../../engine/storage/shipping/log-restore.ts";
import { Shipment } from "../../engine/storage/shipping/shipment.ts";
import { expectSameContents } from "./followed-database.ts";
import type { CutWay } from "./memory-stream.ts";

const databaseId = Buffer.from("0123456789abcdef");
const heartbeatMs = 50;
/** Timeout for finding a leader, on a busy machine. */
const leaderMs = 45_000;
const pollMs = 20;

export class ReplicatedNode<Way extends CutWay = CutWay> {
  readonly tag: string;
  readonly folder: string;
  readonly way: Way;
  readonly #standAfterMs: number;
  /** Needs and alarms reported by its replication. */
  readonly reported: string[] = [];
  /** Whether another node has frames that were removed from the stream. */
  hasFrames = false;
  /** The node from which it copies the files of the database if its own are insufficient. */
  source: () => OpenDatabase | null = () => null;
  /** Contents of attachments on other nodes; null if no node has the content. */
  fetchContent: (name: string) => AsyncIterable<Buffer> | null = () => null;
  database: OpenDatabase | null = null;
  #isDown = true;
  #turn: Promise<void> = Promise.resolve();

  constructor(tag: string, folder: string, way: Way, standAfterMs: number) {
    this.tag = tag;
    this.folder = folder;
    this.way = way;
    this.#standAfterMs = standAfterMs;
  }

  get replication(): DatabaseReplication | null {
    return this.database?.replication ?? null;
  }

  /** Whether it is running or starting. */
  get isUp(): boolean {
    return !this.#isDown;
  }

  get isLeading(): boolean {
    return this.replication?.role === "leader";
  }

  async open(): Promise<void> {
    this.#isDown = false;
    const environment = nodeEnvironment();
    const watcher = {
      roleChanged: () => undefined,
      needSnapshot: (reason: string) => {
        this.reported.push(`snapshot: ${reason}`);
        this.#turn = this.#turn.then(() => this.#replaceFiles());
      },
      blocked: (reason: string) => void this.reported.push(`blocked: ${reason}`),
      fetchRange: () => Promise.resolve(this.hasFrames ? [] : null),
    };
    const replicate = () =>
      new DatabaseReplication(
        {
          databaseId: databaseId.toString("hex"),
          originTag: "A",
          stream: this.way,
          generation: 1,
          tag: this.tag,
          standAfterMs: this.#standAfterMs,
          isSeed: true,
          watcher,
          fetchContent: async (name) => await this.fetchContent(name),
        },
        { ...environment, report: (text) => void this.reported.push(text) },
      );
    const options = { replicate };
    const database = await OpenDatabase.open(environment, "shop", this.folder, options);
    database.whenStopped = () => {
      this.#turn = this.#turn.then(() => this.#openAgain(database));
    };
    this.database = database;
  }

  async #openAgain(stopped: OpenDatabase): Promise<void> {
    if (this.#isDown) return;
    this.database = null;
    await stopped.abandon();
    await this.open();
  }

  /** Replaces the files by those of another node. */
  async #replaceFiles(): Promise<void> {
    const from = this.source();
    if (this.#isDown || from === null) return;
    await this.database?.abandon();
    this.database = null;
    await rm(this.folder, { recursive: true, force: true });
    const { base, shipment } = Shipment.begin(from.shipped);
    const restore = new LogRestore(nodeEnvironment(), this.folder, Number.POSITIVE_INFINITY);
    await restore.add("base", base.bytes);
    for (const name of base.contents) await restore.addContent(name, shipment.content(name));
    await restore.finish();
    base.release();
    shipment.close();
    await this.open();
  }

  /** Like kill -9: no further writes or notifications. */
  async kill(): Promise<void> {
    this.#isDown = true;
    await this.#turn;
    this.replication?.close();
    await this.database?.abandon();
    this.database = null;
  }

  async close(): Promise<void> {
    this.#isDown = true;
    await this.#turn;
    await this.database?.close();
    this.database = null;
  }
}

/** Nodes that receive each other's heartbeats. Call `stop` at the end. */
export class ReplicatedNodes<Way extends CutWay = CutWay> {
  readonly nodes: readonly ReplicatedNode<Way>[];
  readonly #timer: NodeJS.Timeout;

  /** `standAfterMs`: of the first node; each further node waits a little longer. */
  constructor(folder: string, ways: readonly Way[], standAfterMs: number) {
    this.nodes = ways.map((way, at) => {
      const tag = String.fromCharCode(65 + at);
      return new ReplicatedNode(tag, `${folder}/${tag}`, way, standAfterMs * (1 + at / 5));
    });
    for (const node of this.nodes) {
      node.source = () => this.nodes.find((one) => one.isLeading)?.database ?? null;
    }
    this.#timer = setInterval(() => this.#beat(), heartbeatMs);
  }

  #beat(): void {
    const heard = this.nodes.filter(({ way }) => !way.isCut);
    for (const from of heard) {
      const { replication } = from;
      if (replication === null) continue;
      for (const to of heard) if (to !== from) to.replication?.heard(replication.heartbeat);
    }
  }

  /** The only node that leads and is reachable, once there is exactly one. */
  async leader(): Promise<ReplicatedNode<Way>> {
    // Without vitest, because benches use it too.
    const endMs = performance.now() + leaderMs;
    for (;;) {
      const leading = this.nodes.filter((node) => node.isLeading && !node.way.isCut);
      const [only] = leading;
      if (only !== undefined && leading.length === 1) return only;
      if (performance.now() > endMs) throw new Error(`${leading.length} nodes lead`);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  followers(): ReplicatedNode<Way>[] {
    return this.nodes.filter((node) => node.database !== null && !node.isLeading);
  }

  /** Waits until all running nodes have the same contents. */
  async expectSame(): Promise<void> {
    const leader = await this.leader();
    const { database } = leader;
    if (database === null) throw new Error("the leader has no database");
    await database.flush();
    for (const node of this.nodes) {
      if (node === leader || !node.isUp) continue;
      await expect
        .poll(() => node.database?.state.committedEtag, { timeout: 30_000, interval: 20 })
        .toBe(database.state.committedEtag);
      await expect
        .poll(() => node.replication?.mark?.sequence, { timeout: 30_000, interval: 20 })
        .toBe(leader.replication?.mark?.sequence);
      if (node.database !== null) await expectSameContents(database, node.database);
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    for (const node of this.nodes) await node.kill();
  }
}
