/**
 * One node of a cluster: its part in the values that all nodes share, the heartbeats, and the copies of databases that it
 * has. What the rest of the server sees of it is a `ClusterView`.
 *
 *     const cluster = new Cluster({ config, log });
 *     const storage = await openStorage(config, cluster.replication);   // databases know which are copies
 *     await cluster.open({ nats, databases, shared, values });
 *     cluster.serve({ peers, member });                                 // when it listens
 *     await cluster.stop(); await storage.close(); await cluster.close();
 *
 * Invariants:
 * - What the nodes agree on changes only through `change`, on the node that leads the shared values.
 * - A heartbeat of a node is heard by the replication of a database only if that node has a copy.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { checkDatabaseName } from "../../engine/base/database-name.ts";
import {
  type Database,
  type Databases,
  EngineError,
  type FolderReplication,
  type ReplicatedStream,
  type ReplicationWatcher,
  type SharedValues,
} from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { ClusterHealth, ScrubState } from "./cluster-health.ts";
import type {
  ClusterDatabase,
  ClusterMember,
  ClusterView,
  NodeSighting,
  ReplicaSighting,
  ReplicaState,
  ValueChange,
} from "./cluster-view.ts";
import type { Heartbeats, NodeStatus } from "./heartbeats.ts";
import { LazyStream } from "./lazy-stream.ts";
import { LocalCopies } from "./local-copies.ts";
import type { Nats } from "./nats/nats.ts";
import { decodeStatus, encodeStatus, heartbeatOf, type StatusOfNode } from "./node-status.ts";
import type { PeerLink } from "./peer-link.ts";
import {
  databaseKey,
  deletedKey,
  isSameMember,
  memberKey,
  Registry,
  removedKey,
  topologyIdKey,
} from "./registry.ts";

/** Of the shared values, in every cluster. 32 hexadecimal digits, as of any database. */
export const sharedValuesId = Buffer.from("jackdaw-cluster\n").toString("hex");
const sharedGeneration = 1;
/** A node waits so long, and up to `standSpreadMs` more, before it stands for a leader that is not heard. */
const standAfterMs = 3000;
const standSpreadMs = 2000;
const tickMs = 500;
/** After this long without a heartbeat a node is not thought to be there. */
const silentMs = 3000;
/** A change waits this long for somebody who can make it. */
const changeMs = 15_000;
const creationMs = 30_000;
const retryMs = 100;
const transferMs = 10_000;
/** Routes between nodes: see endpoints/cluster-values.ts. */
export const valuesPath = "/cluster/values";
export const standPath = "/cluster/stand";

export interface ClusterOptions {
  readonly tag: string;
  readonly version: string;
  readonly log: Log;
}

/** What it is made of once the data folder is open. */
export interface ClusterParts {
  readonly nats: Nats;
  readonly databases: Databases;
  readonly shared: SharedValues;
  /** Of this node alone. */
  readonly values: ValueStore;
}

/** What it is once it can be reached. */
export interface ClusterService {
  readonly peers: PeerLink;
  readonly member: () => ClusterMember;
}

/** What another node answers. */
interface PeerAnswer {
  /** The shared values have the change from here on. */
  readonly Index?: number;
  /** Why it was not made. */
  readonly Code?: string;
  readonly Message?: string;
}

export class Cluster implements ClusterView {
  readonly #options: ClusterOptions;
  readonly #copies: LocalCopies;
  readonly #patienceMs = standAfterMs + Math.random() * standSpreadMs;
  readonly #nats: Promise<Nats>;
  #natsFound: (nats: Nats) => void = () => undefined;
  #parts: ClusterParts | null = null;
  #service: ClusterService | null = null;
  #heartbeats: Heartbeats | null = null;
  readonly #listeners = new Set<() => void>();
  #registry: Registry | null = null;
  /** What was heard last of each other node, understood. */
  readonly #statuses = new Map<string, { status: StatusOfNode; atMs: number }>();
  #timer: NodeJS.Timeout | null = null;
  #isReconciling = false;
  #isStale = true;
  #isStopped = false;
  #isTelling = false;
  #duties: Promise<void> | null = null;
  /** Streams of deleted databases that this process has removed. */
  readonly #removedStreams = new Set<string>();
  /** Of the copies here, by the id of the database: see `ClusterHealth`. */
  readonly #gaps = new Map<string, number>();
  /** What the last scrub of NATS has found; null: there was none. Set by whoever scrubs. */
  scrubbed: ScrubState | null = null;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#nats = new Promise((resolve) => {
      this.#natsFound = resolve;
    });
    this.#copies = new LocalCopies({
      tag: options.tag,
      standAfterMs: this.#patienceMs,
      databases: () => this.#opened.databases,
      values: () => this.#opened.values,
      stream: (id, generation, mayMake) => this.#streamOf(id, generation, mayMake),
      watcher: (copy) => this.#watcherOf(copy.name, copy.id),
    });
  }

  /** Which databases of the data folder are copies. */
  get replication(): FolderReplication {
    return {
      of: (name) => this.#copies.replicationOf(name),
      cluster: {
        databaseId: sharedValuesId,
        originTag: this.tag,
        stream: this.#streamOf(sharedValuesId, sharedGeneration, true),
        generation: sharedGeneration,
        tag: this.tag,
        standAfterMs: this.#patienceMs,
        // The first to append to an empty stream begins it.
        isSeed: true,
        watcher: this.#watcherOf("the cluster's values", sharedValuesId),
      },
    };
  }

  /** Opens this node's copy of the shared values. @throws EngineError database-damaged */
  async open(parts: ClusterParts): Promise<void> {
    this.#parts = parts;
    this.#natsFound(parts.nats);
    await parts.shared.open();
    parts.shared.onCommit(() => this.#changed());
  }

  /** Begins to take part: it says that it is there, and makes its copies. */
  serve(service: ClusterService): void {
    this.#service = service;
    this.#heartbeats = this.#opened.nats.heartbeats(
      () => this.#status(),
      (tag, status) => this.#heard(tag, status),
    );
    this.#timer = setInterval(() => this.#tick(), tickMs).unref();
    this.#tick();
  }

  /** Makes and removes copies no more. Before the databases are closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    while (this.#isReconciling || this.#duties !== null) await pause(retryMs / 10);
  }

  /** Says a last time how far it is, and leaves. After the databases were closed. */
  async close(): Promise<void> {
    this.#heartbeats?.beat();
    this.#heartbeats?.stop();
    await this.#parts?.nats.close();
  }

  // ClusterView

  get tag(): string {
    return this.#options.tag;
  }

  get topologyId(): string | null {
    return this.#known.topologyId;
  }

  get index(): number {
    return this.#opened.shared.index;
  }

  get leaderTag(): string | null {
    return leaderOf(this.#opened.shared.replication, this.tag);
  }

  get epoch(): number {
    return this.#opened.shared.replication.heartbeat.epoch;
  }

  get nats(): Nats {
    return this.#opened.nats;
  }

  get health(): ClusterHealth {
    const { nats } = this;
    return {
      nats: {
        isConnected: nats.isConnected,
        server: nats.serverName ?? null,
        version: nats.version ?? null,
        replicas: nats.replicas,
        restarts: nats.server?.restartCount ?? 0,
        scrub: this.scrubbed,
      },
      gaps: (id) => this.#gaps.get(id) ?? 0,
    };
  }

  members(): readonly ClusterMember[] {
    return [...this.#known.members.values()];
  }

  sighting(tag: string): NodeSighting | undefined {
    const found = this.#statuses.get(tag);
    if (found === undefined) return undefined;
    const { version, databases } = found.status;
    return { ageMs: performance.now() - found.atMs, version, databases };
  }

  strangers(): readonly ClusterMember[] {
    const { members } = this.#known;
    const heard = [...this.#statuses.values()].filter(({ atMs }) => isRecent(atMs));
    return heard.map(({ status }) => status.member).filter(({ tag }) => !members.has(tag));
  }

  find(name: string): ReplicaState | undefined {
    const registered = this.#known.databases.get(name.toLowerCase());
    return registered === undefined ? undefined : this.#stateOf(registered);
  }

  databases(): readonly ReplicaState[] {
    return [...this.#known.databases.values()].map((one) => this.#stateOf(one));
  }

  value(key: string): string | undefined {
    const value = this.#opened.shared.get(key);
    return value === undefined ? undefined : JSON.stringify(value);
  }

  *values(prefix: string): Iterable<readonly [string, string]> {
    for (const [key, value] of this.#opened.shared.entries(prefix)) {
      yield [key, JSON.stringify(value)];
    }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async change(changes: readonly ValueChange[]): Promise<void> {
    const untilMs = performance.now() + changeMs;
    for (;;) {
      try {
        await this.#changeOnce(changes);
        return;
      } catch (error) {
        if (!isForLater(error) || this.#isStopped || performance.now() > untilMs) throw error;
      }
      await pause(retryMs);
    }
  }

  async changeHere(changes: readonly ValueChange[]): Promise<number> {
    const { shared } = this.#opened;
    if (shared.replication.role !== "leader") throw this.#notLeading();
    await shared.change(
      changes.map(({ key, expected, value }) => ({
        key,
        expected: typeof expected === "string" ? (JSON.parse(expected) as unknown) : expected,
        value: value === null ? null : (JSON.parse(value) as unknown),
      })),
    );
    this.#changed();
    return shared.index;
  }

  async addMember(tag: string): Promise<void> {
    const status = this.#statuses.get(tag);
    if (this.#known.members.has(tag)) {
      throw new EngineError("invalid-argument", `The node ${tag} is in the cluster already.`);
    }
    if (status === undefined || !isRecent(status.atMs)) {
      throw new EngineError(
        "invalid-argument",
        `No node ${tag} is heard. Start it with --Cluster.NodeTag=${tag} and the same servers of NATS as this one.`,
      );
    }
    await this.change([
      { key: removedKey(tag), value: null },
      { key: memberKey(tag), expected: null, value: JSON.stringify(status.status.member) },
    ]);
  }

  async removeMember(tag: string): Promise<void> {
    const { members, databases } = this.#known;
    const member = members.get(tag);
    if (member === undefined) {
      throw new EngineError("invalid-argument", `There is no node ${tag} in the cluster.`);
    }
    const changes: ValueChange[] = [
      { key: memberKey(tag), expected: JSON.stringify(member), value: null },
      { key: removedKey(tag), value: JSON.stringify(new Date().toISOString()) },
    ];
    for (const registered of databases.values()) {
      if (registered.members.includes(tag)) changes.push(this.#withoutCopy(registered, tag));
    }
    await this.change(changes);
  }

  async addCopy(name: string, tag: string): Promise<void> {
    const registered = this.#registered(name);
    if (!this.#known.members.has(tag)) {
      throw new EngineError("invalid-argument", `There is no node ${tag} in the cluster.`);
    }
    if (registered.members.includes(tag)) {
      throw new EngineError(
        "invalid-operation",
        `The node ${tag} has a copy of '${registered.name}'.`,
      );
    }
    await this.change([this.#withMembers(registered, [...registered.members, tag])]);
  }

  async removeCopy(name: string, tag: string): Promise<void> {
    const registered = this.#registered(name);
    if (!registered.members.includes(tag)) {
      throw new EngineError(
        "invalid-operation",
        `The node ${tag} has no copy of '${registered.name}'.`,
      );
    }
    await this.change([this.#withoutCopy(registered, tag)]);
  }

  async createDatabase(
    name: string,
    record: Readonly<Record<string, unknown>>,
    members: readonly string[],
  ): Promise<Database> {
    checkDatabaseName(name);
    const { databases, nats } = this.#opened;
    if (this.find(name) !== undefined || databases.has(name)) {
      throw new EngineError("database-exists", `Database '${name}' already exists!`);
    }
    const id = randomBytes(16).toString("hex");
    const registered: ClusterDatabase = {
      name,
      id,
      generation: 1,
      members,
      originTag: this.tag,
      isSeeded: false,
      initialRecord: record,
      index: this.index + 1,
    };
    await nats.createStream({ databaseId: id, generation: 1 });
    try {
      await this.change([
        { key: databaseKey(name), expected: null, value: JSON.stringify(registered) },
      ]);
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "concurrency") throw error;
      await nats.removeStream({ databaseId: id, generation: 1 });
      throw new EngineError("database-exists", `Database '${name}' already exists!`);
    }
    return await this.#whenReady(registered);
  }

  async deleteDatabase(name: string): Promise<boolean> {
    const state = this.find(name);
    if (state === undefined) return false;
    const { registered } = state;
    const { id, generation } = registered;
    await this.change([
      { key: databaseKey(name), expected: JSON.stringify(registered), value: null },
      { key: deletedKey(id), value: JSON.stringify({ name: registered.name, generation }) },
    ]);
    await this.#reconciled(() => !this.#opened.databases.has(name) || !this.#copies.has(name));
    return true;
  }

  async transfer(name: string, tag: string): Promise<void> {
    const { registered, leaderTag } = this.#stateOf(this.#registered(name));
    if (!registered.members.includes(tag)) {
      throw new EngineError("invalid-operation", `The node ${tag} has no copy of '${name}'.`);
    }
    if (leaderTag === tag) return;
    if (tag === this.tag) this.standFor(registered.name);
    else await this.#post(tag, standPath, { Name: registered.name });
    const isDone = () => this.find(name)?.leaderTag === tag;
    if (await this.#reconciled(isDone, transferMs)) return;
    throw new EngineError(
      "timeout",
      `The node ${tag} does not lead '${registered.name}' after ${transferMs} ms: is it behind, or not heard?`,
    );
  }

  standFor(name: string): void {
    this.#copies.opened(name)?.replication?.stand();
  }

  async waitForCopies(name: string, count: number, timeoutMs: number): Promise<number> {
    const { registered } = this.#stateOf(this.#registered(name));
    const wanted = this.#copies.opened(name)?.replication?.mark?.sequence ?? 0;
    const others = registered.members.filter((tag) => tag !== this.tag);
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const have = others.filter((tag) => this.#appliedBy(tag, registered.id) >= wanted).length;
      if (have >= count || performance.now() >= untilMs || this.#isStopped) return have;
      await pause(Math.min(retryMs / 4, Math.max(1, untilMs - performance.now())));
    }
  }

  // Databases

  /** Are the files of this name, if there are any, a copy of a database of the cluster? */
  isCopy(name: string): boolean {
    return this.#copies.has(name);
  }

  #stateOf(registered: ClusterDatabase): ReplicaState {
    const { name, members, index } = registered;
    const hasCopy = members.includes(this.tag);
    const replication = hasCopy ? this.#copies.opened(name)?.replication : undefined;
    const own = replication?.heartbeat;
    const epoch = own?.epoch ?? this.#epochElsewhere(registered);
    return {
      registered,
      role: hasCopy ? (own?.role ?? "stopped") : null,
      epoch,
      leaderTag:
        replication !== null && replication !== undefined
          ? leaderOf(replication, this.tag)
          : this.#leaderElsewhere(registered),
      applied: own?.applied ?? 0,
      topologyEtag: index + epoch,
      trouble: this.#copies.trouble(name),
    };
  }

  /** Of a database without an open copy on this node: as the others say. */
  #leaderElsewhere({ id, members }: ClusterDatabase): string | null {
    let found: string | null = null;
    let newest = -1;
    for (const [tag, { status, atMs }] of this.#statuses) {
      const sighting = status.databases.get(id);
      if (sighting?.role !== "leader" || !members.includes(tag) || !isRecent(atMs)) continue;
      if (sighting.epoch <= newest) continue;
      newest = sighting.epoch;
      found = tag;
    }
    return found;
  }

  #epochElsewhere({ id }: ClusterDatabase): number {
    let newest = 0;
    for (const { status } of this.#statuses.values()) {
      newest = Math.max(newest, status.databases.get(id)?.epoch ?? 0);
    }
    return newest;
  }

  #appliedBy(tag: string, id: string): number {
    return this.#statuses.get(tag)?.status.databases.get(id)?.applied ?? 0;
  }

  /** @throws EngineError database-missing */
  #registered(name: string): ClusterDatabase {
    const found = this.#known.databases.get(name.toLowerCase());
    if (found === undefined) {
      throw new EngineError("database-missing", `Database '${name}' does not exist.`);
    }
    return found;
  }

  #withMembers(registered: ClusterDatabase, members: readonly string[]): ValueChange {
    const changed: ClusterDatabase = {
      ...registered,
      members,
      index: Math.max(registered.index, this.index) + 1,
    };
    return {
      key: databaseKey(registered.name),
      expected: JSON.stringify(registered),
      value: JSON.stringify(changed),
    };
  }

  /** @throws EngineError invalid-operation */
  #withoutCopy(registered: ClusterDatabase, tag: string): ValueChange {
    const members = registered.members.filter((one) => one !== tag);
    const { leaderTag, epoch } = this.#stateOf(registered);
    if (members.length === 0 || (leaderTag === null && epoch === 0)) {
      throw new EngineError(
        "invalid-operation",
        `The node ${tag} has the only copy of '${registered.name}': delete the database, or add a copy elsewhere first.`,
      );
    }
    return this.#withMembers(registered, members);
  }

  /** Waits for a database that was just registered. */
  async #whenReady(registered: ClusterDatabase): Promise<Database> {
    const { name, id } = registered;
    const ready = () => {
      const database = this.#copies.opened(name);
      return database !== undefined && hasRecord(database);
    };
    if (!(await this.#reconciled(ready))) {
      throw new EngineError(
        "stream-unavailable",
        `Database '${name}' is registered, but is not ready yet: ${this.#copies.trouble(name) ?? "no node leads it"}.`,
      );
    }
    const database = await this.#opened.databases.find(name);
    if (database === undefined || this.find(name)?.registered.id !== id) {
      throw new EngineError("database-missing", `Database '${name}' was deleted meanwhile.`);
    }
    return database;
  }

  /** Waits until it is as wanted. @returns false: it is not, after `withinMs` */
  async #reconciled(isWanted: () => boolean, withinMs = creationMs): Promise<boolean> {
    const untilMs = performance.now() + withinMs;
    while (!isWanted()) {
      if (performance.now() > untilMs || this.#isStopped) return false;
      this.#reconcileSoon();
      await pause(retryMs / 10);
    }
    return true;
  }

  // Changes of the shared values

  async #changeOnce(changes: readonly ValueChange[]): Promise<void> {
    const { leaderTag } = this;
    if (leaderTag === this.tag) {
      await this.changeHere(changes);
      return;
    }
    if (leaderTag === null) throw this.#notLeading();
    const { status, answer } = await this.#post(leaderTag, valuesPath, { Changes: changes });
    if (answer.Index === undefined) throw refusalOf(leaderTag, status, answer);
    const index = answer.Index;
    if (!(await this.#reachedIndex(index))) {
      throw new EngineError(
        "outcome-unknown",
        `The change was made, and has not come to this node within ${changeMs} ms.`,
      );
    }
  }

  /** Asks another node. @throws EngineError node-unreachable, not-leader before this node can ask */
  async #post(
    tag: string,
    path: string,
    body: unknown,
  ): Promise<{ readonly status: number; readonly answer: PeerAnswer }> {
    if (this.#service === null) throw this.#notLeading();
    const reply = await this.#service.peers.send(tag, {
      method: "POST",
      target: path,
      headers: { "content-type": "application/json" },
      body: Buffer.from(JSON.stringify(body)),
      headMs: changeMs,
    });
    const pieces: Buffer[] = [];
    for await (const piece of reply.body) pieces.push(piece as Buffer);
    const text = Buffer.concat(pieces).toString();
    const answer = reply.status === 200 ? (JSON.parse(text) as PeerAnswer) : {};
    return { status: reply.status, answer };
  }

  async #reachedIndex(index: number): Promise<boolean> {
    const untilMs = performance.now() + changeMs;
    while (this.index < index) {
      if (performance.now() > untilMs) return false;
      await pause(retryMs / 10);
    }
    return true;
  }

  #notLeading(): EngineError {
    return new EngineError(
      "not-leader",
      "No node of the cluster orders its changes at the moment.",
    );
  }

  // Taking part

  get #opened(): ClusterParts {
    if (this.#parts === null) throw new Error("the cluster is not open yet");
    return this.#parts;
  }

  /** What is registered, as of now. */
  get #known(): Registry {
    this.#registry ??= new Registry(this.#opened.shared);
    return this.#registry;
  }

  /** Something is different from before. Listeners are told once for all changes of a turn. */
  #changed(): void {
    this.#registry = null;
    this.#isStale = true;
    if (this.#isTelling || this.#isStopped) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      for (const listener of this.#listeners) listener();
      this.#reconcileSoon();
    });
  }

  #streamOf(id: string, generation: number, mayMake: boolean): ReplicatedStream {
    const stream = { databaseId: id, generation };
    return new LazyStream(async () => {
      const nats = await this.#nats;
      const found = await nats.openStream(stream);
      if (found !== null) return found;
      if (mayMake && !this.#isKnownElsewhere(id)) return await nats.createStream(stream);
      throw new EngineError(
        "stream-unavailable",
        `NATS has no stream of generation ${generation} of the database ${id} any more.`,
      );
    });
  }

  /** Has any node something of this database? Then its stream is not new, and must not be begun again. */
  #isKnownElsewhere(id: string): boolean {
    if (id === sharedValuesId && this.#parts !== null && this.index > 0) return true;
    return [...this.#statuses.values()].some(
      ({ status }) => (status.databases.get(id)?.applied ?? 0) > 0,
    );
  }

  #watcherOf(name: string, id: string): ReplicationWatcher {
    return {
      roleChanged: () => {
        this.#copies.setTrouble(name, null);
        this.#changed();
        setImmediate(() => this.#heartbeats?.beat());
      },
      needSnapshot: (reason) => {
        this.#copies.setTrouble(name, `it needs the files of another node: ${reason}`);
        this.#changed();
      },
      blocked: (reason) => {
        this.#copies.setTrouble(name, `it is blocked: ${reason}`);
        this.#changed();
      },
      // Own logs keep no frames: what the stream has no more comes with the files of another node.
      fetchRange: async () => {
        this.#gaps.set(id, (this.#gaps.get(id) ?? 0) + 1);
        return (await this.#hasFrames(id)) ? [] : null;
      },
    };
  }

  /** Frames are removed from streams only when all nodes have them, or are thought to be gone. */
  async #hasFrames(_id: string): Promise<boolean> {
    return false;
  }

  #status(): NodeStatus {
    const { member } = this.#serving;
    const databases = new Map<string, ReplicaSighting>();
    databases.set(sharedValuesId, this.#opened.shared.replication.heartbeat);
    for (const { id, name, members } of this.#known.databases.values()) {
      if (!members.includes(this.tag)) continue;
      const heartbeat = this.#copies.opened(name)?.replication?.heartbeat;
      if (heartbeat !== undefined) databases.set(id, heartbeat);
    }
    return encodeStatus({ member: member(), version: this.#options.version, databases });
  }

  get #serving(): ClusterService {
    if (this.#service === null) throw new Error("the cluster does not serve yet");
    return this.#service;
  }

  #heard(tag: string, sent: NodeStatus): void {
    const status = decodeStatus(tag, sent);
    if (status === null) return;
    this.#statuses.set(tag, { status, atMs: performance.now() });
    const shared = status.databases.get(sharedValuesId);
    if (shared !== undefined) this.#opened.shared.replication.heard(heartbeatOf(tag, shared));
    for (const { id, name, members } of this.#known.databases.values()) {
      const sighting = status.databases.get(id);
      if (sighting === undefined || !members.includes(tag)) continue;
      this.#copies.opened(name)?.replication?.heard(heartbeatOf(tag, sighting));
    }
  }

  #tick(): void {
    this.#isStale = true;
    this.#reconcileSoon();
    if (this.#duties !== null || this.leaderTag !== this.tag || this.#isStopped) return;
    this.#duties = this.#doDuties()
      .catch((error: unknown) => this.#options.log.report("The cluster's registry", error))
      .finally(() => {
        this.#duties = null;
      });
  }

  /** What the node does that orders the changes of the shared values: registers those that are there. */
  async #doDuties(): Promise<void> {
    const { topologyId, members, removed, deleted } = this.#known;
    if (topologyId === null) {
      await this.changeHere([
        { key: topologyIdKey, expected: null, value: JSON.stringify(randomUUID()) },
      ]);
    }
    const heard = [...this.#statuses.values()].filter(({ atMs }) => isRecent(atMs));
    const present = [this.#serving.member(), ...heard.map(({ status }) => status.member)];
    for (const member of present) {
      const known = members.get(member.tag);
      if (known === undefined ? removed.has(member.tag) : isSameMember(known, member)) continue;
      await this.changeHere([
        {
          key: memberKey(member.tag),
          expected: known === undefined ? null : JSON.stringify(known),
          value: JSON.stringify(member),
        },
      ]);
    }
    for (const [id, { generation }] of deleted) {
      if (this.#removedStreams.has(id)) continue;
      await this.#opened.nats.removeStream({ databaseId: id, generation });
      this.#removedStreams.add(id);
    }
  }

  #reconcileSoon(): void {
    if (this.#isReconciling || !this.#isStale || this.#isStopped || this.#service === null) return;
    this.#isReconciling = true;
    void this.#reconcile().finally(() => {
      this.#isReconciling = false;
    });
  }

  async #reconcile(): Promise<void> {
    while (this.#isStale && !this.#isStopped) {
      this.#isStale = false;
      const registry = this.#known;
      await this.#copies.reconcile(registry);
      for (const registered of registry.databases.values()) await this.#begin(registered);
    }
  }

  /** The node that leads a new database first writes its record; the one that began its stream says that it has begun. */
  async #begin(registered: ClusterDatabase): Promise<void> {
    const { name, initialRecord, isSeeded } = registered;
    const database = this.#copies.opened(name);
    if (database?.replication?.role !== "leader") return;
    try {
      if (!hasRecord(database)) await database.changeSettings(() => initialRecord);
      if (isSeeded) return;
      await this.change([
        {
          key: databaseKey(name),
          expected: JSON.stringify(registered),
          value: JSON.stringify({ ...registered, isSeeded: true }),
        },
      ]);
    } catch (error) {
      // The next leader does it, or this node in the next turn.
      if (!(error instanceof EngineError)) throw error;
    }
  }
}

/** Does it have the record that its creator gave it? */
export function hasRecord(database: Database): boolean {
  return Object.keys(database.settings).length > 0;
}

function leaderOf(
  { role, leaderTag }: { readonly role: string; readonly leaderTag: string | null },
  own: string,
): string | null {
  if (role === "leader") return own;
  // One that lost its place, or has not been fenced yet.
  return leaderTag === own ? null : leaderTag;
}

function isRecent(atMs: number): boolean {
  return performance.now() - atMs < silentMs;
}

/** Was nothing changed, so that another try may help? */
function isForLater(error: unknown): boolean {
  if (!(error instanceof EngineError)) return false;
  if (error.code === "not-leader") return true;
  return error.code === "node-unreachable" && error.details?.["wasSent"] === false;
}

function refusalOf(tag: string, status: number, { Code, Message }: PeerAnswer): EngineError {
  if (Code === "concurrency") return new EngineError("concurrency", Message ?? "");
  if (Code === "not-leader") return new EngineError("not-leader", Message ?? "");
  return new EngineError(
    "outcome-unknown",
    Message ?? `Node ${tag} answered the change of the cluster's values by ${status}.`,
  );
}
