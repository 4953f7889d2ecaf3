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

import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { foldedName } from "../../engine/base/case-folding.ts";
import { checkDatabaseName } from "../../engine/base/database-name.ts";
import {
  type Database,
  type Databases,
  EngineError,
  type FolderReplication,
  type ReplicatedStream,
  type Replication,
  type ReplicationWatcher,
  type SharedValues,
} from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ValueStore } from "../settings/value-store.ts";
import { Adoption, isImported } from "./adoption.ts";
import { ClusterBootstrap } from "./cluster-bootstrap.ts";
import type { ClusterHealth } from "./cluster-health.ts";
import type {
  ClusterDatabase,
  ClusterMember,
  ClusterView,
  OwnDatabase,
  ReceivedHeartbeat,
  ReplicaReport,
  ReplicaRoleName,
  ReplicaState,
  ValueChange,
} from "./cluster-view.ts";
import { CopyRepairs } from "./copy-repairs.ts";
import { copySources } from "./copy-sources.ts";
import type { Heartbeats, NodeStatus } from "./heartbeats.ts";
import { LazyStream } from "./lazy-stream.ts";
import { LocalCopies } from "./local-copies.ts";
import { MembershipTable } from "./membership-table.ts";
import type { Nats } from "./nats/nats.ts";
import { encodeStatus, heartbeatOf } from "./node-status.ts";
import type { PeerLink } from "./peer-link.ts";
import { Registrar } from "./registrar.ts";
import {
  databaseKey,
  deletedKey,
  memberKey,
  Registry,
  removedKey,
  sharedValuesId,
} from "./registry.ts";
import { ReplicaPositions } from "./replica-positions.ts";
import { SharedChanges, wasNotMade } from "./shared-changes.ts";
import { StreamScrub } from "./stream-scrub.ts";
import { StreamTrim, type TrimmedDatabase } from "./stream-trim.ts";

const sharedGeneration = 1;
const sharedName = "the cluster's values";
/** A node waits so long, and up to `standSpreadMs` more, before it stands for a leader that is not heard. */
const standAfterMs = 3000;
const standSpreadMs = 2000;
/** Between two looks at what the streams need not keep. */
const trimMs = 60_000;
const tickMs = 500;
const creationMs = 30_000;
const retryMs = 100;
/** How often a change is made again because the registry has changed. */
const triesMax = 10;
/** How often the stream is followed again from a frame that does not come. */
const gapTriesMax = 5;
/** The least between two heartbeats. */
const beatMs = 20;
const transferMs = 10_000;
/**
 * After this long without a leader none is waited for: longer than nodes take to hear each other after a start, or to lead
 * after another one.
 */
const leaderlessMs = 15_000;
/** A change waits so long for nodes that are heard, and slow: they have it later. */
const spreadMs = 1000;

export interface ClusterOptions {
  readonly tag: string;
  readonly version: string;
  readonly log: Log;
  /** How long the streams keep what a node that is away has not seen. */
  readonly trimAfterAbsenceMs: number;
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

export class Cluster implements ClusterView {
  readonly #options: ClusterOptions;
  readonly #copies: LocalCopies;
  readonly #nats: Promise<Nats>;
  #natsFound: (nats: Nats) => void = () => undefined;
  #parts: (ClusterParts & { readonly changes: SharedChanges }) | null = null;
  #service: ClusterService | null = null;
  #servedMs = Number.POSITIVE_INFINITY;
  #heartbeats: Heartbeats | null = null;
  readonly #listeners = new Set<() => void>();
  #registry: Registry | null = null;
  readonly #membership = new MembershipTable();
  readonly #positions = new ReplicaPositions();
  readonly #repairs: CopyRepairs;
  readonly #registrar = new Registrar({
    change: (changes) => this.changeHere(changes),
    removeStream: (id, generation) =>
      this.#opened.nats.removeStream({ databaseId: id, generation }),
  });
  #timer: NodeJS.Timeout | null = null;
  #isReconciling = false;
  #isStale = true;
  #isStopped = false;
  #isTelling = false;
  /** Frames that were missing in the streams of copies here, by the id of the database: the last, and how often any. */
  readonly #gaps = new Map<string, { from: number; tries: number; count: number }>();
  readonly #scrub: StreamScrub;
  /** Woken when another node has said something: those who wait for copies of what they wrote. */
  readonly #waiting = new Set<() => void>();
  /** Has the last heartbeat said that somebody waits? */
  #isKnownToWait = false;
  /** Has a copy here taken more than the last heartbeat has said? */
  #hasMore = false;
  #beatMs = Number.NEGATIVE_INFINITY;
  #beatTimer: NodeJS.Timeout | null = null;
  #duties: Promise<void> | null = null;
  readonly bootstrap: ClusterBootstrap;
  readonly #adoption: Adoption;
  #bringing: Promise<void> | null = null;
  readonly #trim: StreamTrim;
  #trimmedMs = performance.now();
  #trimming: Promise<void> | null = null;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#nats = new Promise((resolve) => {
      this.#natsFound = resolve;
    });
    this.#trim = new StreamTrim({
      absenceMs: options.trimAfterAbsenceMs,
      log: options.log,
      lastHeartbeat: (tag, id) => {
        const found = this.lastHeartbeat(tag);
        const replica = found?.databases.get(id);
        return found === undefined || replica === undefined
          ? undefined
          : { ageMs: found.ageMs, replica };
      },
    });
    this.#scrub = new StreamScrub({
      nats: () => this.#opened.nats,
      log: options.log,
      cluster: this,
      sharedId: sharedValuesId,
      isFirst: () => this.#membership.present().every(({ tag }) => this.tag < tag),
      purge: (id) => this.#purgeDamaged(id),
      restart: (id) => this.#replicationOf(id)?.restart(),
      nameOf: (id) => (id === sharedValuesId ? sharedName : (this.#registeredOf(id)?.name ?? id)),
    });
    this.#copies = new LocalCopies({
      tag: options.tag,
      standAfterMs: patienceMs,
      databases: () => this.#opened.databases,
      values: () => this.#opened.values,
      stream: (id, generation, mayMake) => this.#streamOf(id, generation, mayMake),
      watcher: (copy) => this.#watcherOf(copy.name, copy.id),
      fetchContent: (id, name) => this.#repairs.content(id, name),
    });
    this.#repairs = new CopyRepairs({
      tag: options.tag,
      log: options.log,
      databases: () => this.#opened.databases,
      shared: () => this.#opened.shared,
      sharedId: sharedValuesId,
      sources: (id) => this.#sourcesOf(id),
    });
    const common = {
      tag: options.tag,
      log: options.log,
      registry: () => this.#known,
      own: () => this.#opened.values,
      change: (changes: readonly ValueChange[]) => this.change(changes),
    };
    this.bootstrap = new ClusterBootstrap({
      ...common,
      shared: { get: (key) => this.value(key), entries: (prefix) => this.values(prefix) },
      ownDatabases: () => this.ownDatabases().map(({ name }) => name),
    });
    this.#adoption = new Adoption({
      ...common,
      index: () => this.index,
      databases: () => this.#opened.databases,
      isCopy: (name) => this.#copies.has(name),
      createStream: (id) => this.#opened.nats.createStream(id),
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
        standAfterMs: patienceMs(),
        // The first to append to an empty stream begins it.
        isSeed: true,
        watcher: this.#watcherOf(sharedName, sharedValuesId),
      },
    };
  }

  /** Opens this node's copy of the shared values. @throws EngineError database-damaged */
  async open(parts: ClusterParts): Promise<void> {
    const { shared, nats } = parts;
    const changes = new SharedChanges({
      tag: this.tag,
      shared,
      leaderTag: () => this.leaderTag,
      isStopped: () => this.#isStopped,
    });
    this.#parts = { ...parts, changes };
    this.#natsFound(nats);
    await shared.open();
    shared.onCommit(() => this.#changed());
  }

  /** Begins to take part: it says that it is there, and makes its copies. */
  serve(service: ClusterService): void {
    this.#service = service;
    this.#servedMs = performance.now();
    this.#opened.changes.peers = service.peers;
    this.#repairs.start(service.peers);
    this.#heartbeats = this.#opened.nats.heartbeats(
      () => this.#status(),
      (tag, status) => this.#heard(tag, status),
    );
    this.#timer = setInterval(() => this.#tick(), tickMs).unref();
    this.#tick();
    this.#scrub.start();
  }

  /** Makes and removes copies no more. Before the databases are closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    for (const wake of [...this.#waiting]) wake();
    await this.#repairs.stop();
    await this.#scrub.stop();
    await this.#trimming;
    while (this.#isReconciling || this.#duties !== null || this.#bringing !== null) {
      await pause(retryMs / 10);
    }
  }

  /** Says a last time how far it is, and leaves. After the databases were closed. */
  async close(): Promise<void> {
    if (this.#beatTimer !== null) clearTimeout(this.#beatTimer);
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
        scrub: this.#scrub.state,
      },
      gaps: (id) => this.#gaps.get(id)?.count ?? 0,
    };
  }

  members(): readonly ClusterMember[] {
    return [...this.#known.members.values()];
  }

  /** Nodes that can be asked: for one that knows of none yet, or no more, those that are heard. */
  reachable(): readonly ClusterMember[] {
    const { members } = this.#known;
    const known = [...members.values()];
    return members.has(this.tag) ? known : [...known, ...this.strangers()];
  }

  lastHeartbeat(tag: string): ReceivedHeartbeat | undefined {
    return this.#membership.of(tag);
  }

  strangers(): readonly ClusterMember[] {
    const { members } = this.#known;
    return this.#membership.present().filter(({ tag }) => !members.has(tag));
  }

  find(name: string): ReplicaState | undefined {
    const registered = this.#known.databases.get(foldedName(name));
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

  answered(place: string): void {
    this.#positions.told(place);
  }

  whenVisible(name: string, sequence: number, ms: number): Promise<boolean> {
    const replication = this.#copies.opened(name)?.replication;
    return replication?.whenVisible(sequence, ms) ?? Promise.resolve(false);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async change(changes: readonly ValueChange[]): Promise<void> {
    await this.#opened.changes.change(changes);
    const wanted = this.#opened.shared.replication.mark?.sequence ?? 0;
    const present = this.#membership.present().map(({ tag }) => tag);
    const others = present.filter((tag) => tag !== this.tag && this.#known.members.has(tag));
    const untilMs = performance.now() + spreadMs;
    await this.#haveCopies(others, sharedValuesId, { wanted, count: others.length, untilMs });
  }

  changeHere(changes: readonly ValueChange[]): Promise<number> {
    return this.#opened.changes.changeHere(changes);
  }

  async addMember(tag: string): Promise<void> {
    const member = this.#membership.present().find((one) => one.tag === tag);
    if (this.#known.members.has(tag)) {
      throw new EngineError("invalid-argument", `The node ${tag} is in the cluster already.`);
    }
    if (member === undefined) {
      throw new EngineError(
        "invalid-argument",
        `No node ${tag} is heard. Start it with --Cluster.NodeTag=${tag} and the same servers of NATS as this one.`,
      );
    }
    await this.change([
      { key: removedKey(tag), value: null },
      { key: memberKey(tag), expected: null, value: JSON.stringify(member) },
    ]);
  }

  removeMember(tag: string): Promise<void> {
    return this.#changeAsOf(({ members, databases }) => {
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
      return changes;
    });
  }

  addCopy(name: string, tag: string): Promise<void> {
    return this.#changeAsOf(({ members }) => {
      const registered = this.#registered(name);
      if (!members.has(tag)) {
        throw new EngineError("invalid-argument", `There is no node ${tag} in the cluster.`);
      }
      if (registered.members.includes(tag)) {
        throw new EngineError(
          "invalid-operation",
          `The node ${tag} has a copy of '${registered.name}'.`,
        );
      }
      return [this.#withMembers(registered, [...registered.members, tag])];
    });
  }

  removeCopy(name: string, tag: string): Promise<void> {
    return this.#changeAsOf(() => {
      const registered = this.#registered(name);
      if (!registered.members.includes(tag)) {
        throw new EngineError(
          "invalid-operation",
          `The node ${tag} has no copy of '${registered.name}'.`,
        );
      }
      return [this.#withoutCopy(registered, tag)];
    });
  }

  /** Makes changes of what is registered, again if that has changed meanwhile. @throws what `make` throws */
  async #changeAsOf(make: (registry: Registry) => readonly ValueChange[]): Promise<void> {
    for (let left = triesMax; ; left--) {
      try {
        const changes = make(this.#known);
        if (changes.length > 0) await this.change(changes);
        return;
      } catch (error) {
        const isStale = error instanceof EngineError && error.code === "concurrency";
        if (!isStale || left === 0) throw error;
      }
      await pause(retryMs);
    }
  }

  async createDatabase(
    name: string,
    record: Readonly<Record<string, unknown>>,
    members: readonly string[],
  ): Promise<Database> {
    checkDatabaseName(name);
    const { databases, nats } = this.#opened;
    const isTaken = databases.has(name) || isImported(this.#known.bootstrap, name, this.tag);
    if (this.find(name) !== undefined || isTaken) {
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
      const exists = error instanceof EngineError && error.code === "concurrency";
      if (exists || wasNotMade(error)) await this.#forgetStream(id, 1);
      if (!exists) throw error;
      throw new EngineError("database-exists", `Database '${name}' already exists!`);
    }
    return await this.#whenReady(registered);
  }

  /** Removes a stream that nobody knows; if it cannot be removed, it stays empty. */
  async #forgetStream(databaseId: string, generation: number): Promise<void> {
    try {
      await this.#opened.nats.removeStream({ databaseId, generation });
    } catch (error) {
      this.#options.log.report(`The stream of ${databaseId}, which has no database, stays`, error);
    }
  }

  ownDatabases(): readonly OwnDatabase[] {
    return this.#adoption.own;
  }

  /** Has the cluster a database of that id, or had it? */
  knows(id: string): boolean {
    return this.#known.deleted.has(id) || this.#registeredOf(id) !== undefined;
  }

  async adoptDatabase(
    name: string,
    members: readonly string[],
    isRestored = false,
  ): Promise<Database> {
    const registered = await this.#adoption.adopt(name, members, isRestored);
    // Its record is there from the beginning: what is waited for is its stream, and that this node leads.
    const hasBegun = () => this.find(name)?.registered.isSeeded === true;
    return await this.#whenReady(registered, hasBegun);
  }

  async deleteDatabase(name: string): Promise<boolean> {
    const id = this.find(name)?.registered.id;
    if (id === undefined) return false;
    await this.#changeAsOf(() => {
      const registered = this.#registeredOf(id);
      if (registered === undefined) return [];
      const deleted = { name: registered.name, generation: registered.generation };
      return [
        { key: databaseKey(name), expected: JSON.stringify(registered), value: null },
        { key: deletedKey(id), value: JSON.stringify(deleted) },
      ];
    });
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
    else await this.#opened.changes.askToStand(tag, registered.name);
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
    return await this.#haveCopies(others, registered.id, { wanted, count, untilMs });
  }

  async #haveCopies(
    others: readonly string[],
    id: string,
    { wanted, count, untilMs }: { wanted: number; count: number; untilMs: number },
  ): Promise<number> {
    for (;;) {
      const have = others.filter((tag) => this.#membership.appliedBy(tag, id) >= wanted).length;
      const leftMs = untilMs - performance.now();
      if (have >= count || leftMs <= 0 || this.#isStopped) return have;
      const heard = this.#whenHeard(leftMs);
      // Who hears that somebody waits says at once when it has more.
      if (!this.#isKnownToWait) this.#beatSoon();
      await heard;
    }
  }

  /** Resolves when another node has said something, after `ms` at the latest. */
  #whenHeard(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#waiting.add(wake);
    });
  }

  // Databases

  /** Are the files of this name, if there are any, a copy of a database of the cluster? */
  isCopy(name: string): boolean {
    return this.#copies.has(name);
  }

  /** The copy of this node of the database of that id; undefined: it has none that is open. */
  openedById(id: string): Database | undefined {
    if (id === sharedValuesId) return this.#opened.shared.database;
    const registered = this.#registeredOf(id);
    const found = registered === undefined ? undefined : this.#copies.opened(registered.name);
    // Until it is replicated, more may be written to its log than others ever learn of.
    return found?.replication === null ? undefined : found;
  }

  #registeredOf(id: string): ClusterDatabase | undefined {
    return [...this.#known.databases.values()].find((one) => one.id === id);
  }

  /** Nodes of which a copy can be taken; of the shared values, all that are heard. */
  #sourcesOf(id: string): readonly string[] {
    if (id === sharedValuesId) {
      const members = [
        ...this.#known.members.keys(),
        ...this.#membership.present().map((one) => one.tag),
      ];
      return copySources(this, { id, members: [...new Set(members)] }, this.leaderTag);
    }
    const registered = this.#registeredOf(id);
    if (registered === undefined) return [];
    return copySources(this, registered, this.#stateOf(registered).leaderTag);
  }

  #stateOf(registered: ClusterDatabase): ReplicaState {
    const { name, members, index } = registered;
    const hasCopy = members.includes(this.tag);
    const replication = hasCopy ? this.#copies.opened(name)?.replication : undefined;
    const own = replication?.heartbeat;
    const epoch = own?.epoch ?? this.#membership.epochOf(registered.id);
    const role = hasCopy ? (own?.role ?? "stopped") : null;
    return {
      registered,
      role,
      epoch,
      leaderTag:
        replication !== null && replication !== undefined
          ? leaderOf(replication, this.tag)
          : this.#membership.leaderOf(registered.id, members),
      applied: own?.applied ?? 0,
      topologyEtag: index + epoch,
      visible: replication?.visible ?? 0,
      mustShow: this.#mustShow(registered, role),
      isComplete: hasCopy && (role === "leader" || this.#copies.isComplete(registered.id)),
      trouble: this.#copies.trouble(name),
    };
  }

  /**
   * The leader shows everything. When no node has led for long, any copy answers. Not as soon as none does: the one that
   * did has answered in its place, and had more.
   */
  #mustShow(registered: ClusterDatabase, role: ReplicaRoleName | null): number {
    if (role === "leader") {
      this.#copies.led(registered.id);
      return 0;
    }
    const ledMs = Math.max(this.#servedMs, this.#copies.ledMs(registered.id));
    return performance.now() - ledMs >= leaderlessMs ? 0 : this.#positions.of(registered);
  }

  /** @throws EngineError database-missing */
  #registered(name: string): ClusterDatabase {
    const found = this.#known.databases.get(foldedName(name));
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
    if (members.length === 0) {
      throw new EngineError(
        "invalid-operation",
        `The node ${tag} has the only copy of '${registered.name}': delete the database, or add a copy elsewhere first.`,
      );
    }
    return this.#withMembers(registered, members);
  }

  /** Waits for a database that was just registered. */
  async #whenReady(registered: ClusterDatabase, hasBegun = () => true): Promise<Database> {
    const { name, id } = registered;
    const ready = () => {
      const database = this.#copies.opened(name);
      return database !== undefined && hasRecord(database) && hasBegun();
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

  // Taking part

  get #opened() {
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
    return this.#membership.isKnown(id);
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
        this.#repairs.need({ name, id });
        // The other node's files may show less.
        const registered = this.#registeredOf(id);
        const visible = this.#replicationOf(id)?.visible ?? 0;
        if (registered !== undefined) this.#positions.shown(registered, visible);
        this.#changed();
      },
      blocked: (reason) => {
        this.#copies.setTrouble(name, `it is blocked: ${reason}`);
        this.#scrub.blocked(id);
        this.#changed();
      },
      progressed: () => {
        this.#hasMore = true;
        if (this.#membership.isWaitedFor) this.#beatSoon();
      },
      // Own logs keep no frames: what the stream has no more comes with the files of another node.
      fetchRange: async (from) => ((await this.#mayCome(id, from)) ? [] : null),
    };
  }

  /**
   * May a frame that did not come be there all the same? A consumer of NATS that was made together with its stream
   * sometimes gets nothing: then following again helps. Own logs keep no frames, so what was removed from the stream, or is
   * not shown for long, comes with the files of another node.
   */
  async #mayCome(id: string, from: number): Promise<boolean> {
    const before = this.#gaps.get(id);
    const tries = before?.from === from ? before.tries + 1 : 1;
    this.#gaps.set(id, { from, tries, count: (before?.count ?? 0) + 1 });
    this.#scrub.soon();
    if (tries > gapTriesMax) return false;
    const generation = this.#registeredOf(id)?.generation ?? sharedGeneration;
    try {
      const { first } = await this.#streamOf(id, generation, false).bounds();
      return first <= from;
    } catch {
      return true; // not known now
    }
  }

  #status(): NodeStatus {
    const { member } = this.#serving;
    const databases = new Map<string, ReplicaReport>();
    databases.set(
      sharedValuesId,
      this.#reportOf(sharedValuesId, this.#opened.shared.replication, sharedGeneration),
    );
    for (const { id, name, members, generation } of this.#known.databases.values()) {
      if (!members.includes(this.tag)) continue;
      const replication = this.#copies.opened(name)?.replication ?? null;
      if (replication !== null) databases.set(id, this.#reportOf(id, replication, generation));
    }
    const { version } = this.#options;
    this.#hasMore = false;
    this.#isKnownToWait = this.#waiting.size > 0;
    return encodeStatus({ member: member(), version, databases, isWaiting: this.#isKnownToWait });
  }

  /** What this node says of its copy; while that is being replaced, the mark is that of the files that come. */
  #reportOf(id: string, replication: Replication, generation: number): ReplicaReport {
    const mark = this.#repairs.markOf(id) ?? replication.mark;
    const isOf = mark !== null && mark.generation === generation;
    return { ...replication.heartbeat, mark: isOf ? mark.sequence : 0 };
  }

  /** The databases that this node leads, and the shared values if it leads those. */
  #ledHere(): TrimmedDatabase[] {
    const { shared } = this.#opened;
    const led: TrimmedDatabase[] = [];
    const add = (
      registered: Pick<ClusterDatabase, "id" | "name" | "generation" | "members">,
      replication: Replication | null,
    ) => {
      const { id, name, generation, members } = registered;
      if (replication?.role !== "leader") return;
      const others = members.filter((tag) => tag !== this.tag);
      led.push({ id, name, replication, others, stream: this.#streamOf(id, generation, false) });
    };
    const common = { id: sharedValuesId, name: sharedName };
    const members = [...this.#known.members.keys()];
    add({ ...common, generation: sharedGeneration, members }, shared.replication);
    for (const registered of this.#known.databases.values()) {
      add(registered, this.#copies.opened(registered.name)?.replication ?? null);
    }
    return led;
  }

  #replicationOf(id: string): Replication | null {
    if (id === sharedValuesId) return this.#opened.shared.replication;
    const registered = this.#registeredOf(id);
    return registered === undefined
      ? null
      : (this.#copies.opened(registered.name)?.replication ?? null);
  }

  async #purgeDamaged(id: string): Promise<boolean> {
    const led = this.#ledHere().find((one) => one.id === id);
    return led !== undefined && (await this.#trim.purgeDamaged(led));
  }

  #trimSometimes(): void {
    if (this.#isStopped || this.#trimming !== null) return;
    if (performance.now() - this.#trimmedMs < trimMs) return;
    this.#trimmedMs = performance.now();
    this.#trimming = this.#trim
      .run(this.#ledHere(), () => this.#isStopped)
      .finally(() => {
        this.#trimming = null;
      });
  }

  /** Says in this moment how far this node is, instead of within half a second; not sooner than `beatMs` after the last. */
  #beatSoon(): void {
    if (this.#beatTimer !== null || this.#heartbeats === null) return;
    const waitMs = Math.max(0, this.#beatMs + beatMs - performance.now());
    this.#beatTimer = setTimeout(() => {
      this.#beatTimer = null;
      this.#beatMs = performance.now();
      this.#heartbeats?.beat();
    }, waitMs).unref();
  }

  get #serving(): ClusterService {
    if (this.#service === null) throw new Error("the cluster does not serve yet");
    return this.#service;
  }

  #heard(tag: string, sent: NodeStatus): void {
    const status = this.#membership.hear(tag, sent);
    if (status === null) return;
    for (const wake of [...this.#waiting]) wake();
    if (status.isWaiting && this.#hasMore) this.#beatSoon();
    const shared = status.databases.get(sharedValuesId);
    if (shared !== undefined) this.#opened.shared.replication.heard(heartbeatOf(tag, shared));
    for (const registered of this.#known.databases.values()) {
      const { id, name, members } = registered;
      const report = status.databases.get(id);
      if (report === undefined || !members.includes(tag)) continue;
      const replication = this.#copies.opened(name)?.replication;
      if (report.role === "leader") {
        this.#copies.led(id);
        const { epoch, mark = 0 } = report;
        const newest = Math.max(this.#membership.epochOf(id), replication?.heartbeat.epoch ?? 0);
        if (epoch >= newest) this.#positions.heard(registered, mark);
      }
      replication?.heard(heartbeatOf(tag, report));
    }
  }

  /** Brings to the cluster what this node had before. */
  #bringSometimes(): void {
    if (this.#bringing !== null || this.#isStopped) return;
    this.#bringing = this.bootstrap
      .work()
      .then(() => this.#adoption.work())
      .catch((error: unknown) => {
        // It is tried again in the next turn.
        if (!(error instanceof EngineError))
          this.#options.log.report("The bootstrap failed", error);
      })
      .finally(() => {
        this.#bringing = null;
      });
  }

  #tick(): void {
    this.#isStale = true;
    this.#reconcileSoon();
    this.#trimSometimes();
    this.#bringSometimes();
    if (this.#duties !== null || this.leaderTag !== this.tag || this.#isStopped) return;
    const present = [this.#serving.member(), ...this.#membership.present()];
    this.#duties = this.#registrar
      .work(this.#known, present)
      .catch((error: unknown) => {
        // Another node leads, or it is tried again in the next turn.
        if (!(error instanceof EngineError)) this.#options.log.report("The registry failed", error);
      })
      .finally(() => {
        this.#duties = null;
      });
  }

  #reconcileSoon(): void {
    if (this.#isReconciling || !this.#isStale || this.#isStopped || this.#service === null) return;
    this.#isReconciling = true;
    void this.#reconcile()
      .catch((error: unknown) => {
        // A full disk, say. The next tick tries again.
        this.#options.log.report("The copies of this node are not as registered", error);
      })
      .finally(() => {
        this.#isReconciling = false;
      });
  }

  async #reconcile(): Promise<void> {
    while (this.#isStale && !this.#isStopped) {
      this.#isStale = false;
      const registry = this.#known;
      this.#opened.shared.replication.abstain(registry.removed.has(this.tag));
      await this.#copies.reconcile(registry);
      this.#positions.keep(registry.databases.values());
      for (const registered of registry.databases.values()) {
        await this.#begin(registered);
        const { id, name } = registered;
        if (!this.#copies.isComplete(id) && this.#hasAll(registered)) {
          await this.#copies.completed(name);
        }
      }
    }
  }

  /** Has the copy of this node all that the leader has, as far as it was heard? */
  #hasAll({ id, name, members }: ClusterDatabase): boolean {
    const replication = this.#copies.opened(name)?.replication;
    if (replication === null || replication === undefined) return false;
    if (replication.role === "leader") return true;
    const { role, applied } = replication.heartbeat;
    const leader = this.#membership.leaderOf(id, members);
    if (role !== "follower" || leader === null || applied === 0) return false;
    return applied >= this.#membership.appliedBy(leader, id);
  }

  /** The node that leads a new database first writes its record; the one that began its stream says that it has begun. */
  async #begin(registered: ClusterDatabase): Promise<void> {
    const { name, generation, initialRecord, isSeeded } = registered;
    const database = this.#copies.opened(name);
    if (database?.replication?.role !== "leader") return;
    const { replication } = database;
    try {
      if (!hasRecord(database)) await database.changeSettings(() => initialRecord);
      if (isSeeded) return;
      // One that was adopted has nothing of its stream yet: others are current when they have this.
      if (replication.mark?.generation !== generation) await replication.noteTrim(0);
      await this.#opened.changes.change([
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

function patienceMs(): number {
  return standAfterMs + Math.random() * standSpreadMs;
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
