/**
 * One node of a cluster: its replica of the shared values, its heartbeats, and its copies of databases. The rest of the
 * server uses the `ClusterView` interface.
 *
 *     const cluster = new Cluster({ tag, version, log, trimAfterAbsenceMs });
 *     const storage = await openStorage(config, cluster.replication);   // knows which databases are copies
 *     await cluster.open({ nats, databases, shared, values });
 *     cluster.serve({ peers, member });                                 // when the server listens
 *     await cluster.stop(); await storage.close(); await cluster.close();
 *
 * Invariants:
 * - Shared values change only through `change`, on the node that leads them.
 * - The replication of a database receives a node's heartbeats only if that node has a copy.
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
import { ClusterDuties, hasRecord } from "./cluster-duties.ts";
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
import type { NodeStatus } from "./heartbeats.ts";
import { LazyStream } from "./lazy-stream.ts";
import { LocalCopies } from "./local-copies.ts";
import { MembershipTable } from "./membership-table.ts";
import type { Nats } from "./nats/nats.ts";
import { encodeStatus, heartbeatOf } from "./node-status.ts";
import type { PeerLink } from "./peer-link.ts";
import { ProgressReports } from "./progress-reports.ts";
import { databaseKey, Registry, sharedValuesId } from "./registry.ts";
import {
  addingCopy,
  addingMember,
  deletingDatabase,
  registeredDatabase,
  removingCopy,
  removingMember,
} from "./registry-changes.ts";
import { ReplicaPositions } from "./replica-positions.ts";
import { SharedChanges, wasNotMade } from "./shared-changes.ts";
import { StreamScrub } from "./stream-scrub.ts";
import { StreamTrim, type TrimmedDatabase } from "./stream-trim.ts";

const sharedGeneration = 1;
const sharedName = "the cluster's values";
/** Minimum time without a leader after which a node becomes a candidate, in milliseconds; `standSpreadMs` is a random addition. */
const standAfterMs = 3000;
const standSpreadMs = 2000;
const creationMs = 30_000;
const retryMs = 100;
/** Maximum number of retries of a change that conflicts with another change of the registry. */
const triesMax = 10;
/** Maximum number of attempts to follow a stream from a frame that does not arrive. */
const gapTriesMax = 5;
const transferMs = 10_000;
/**
 * Time without a leader after which reads no longer wait for one, in milliseconds. Longer than nodes take to receive each
 * other's heartbeats after a start, or to elect a leader.
 */
const leaderlessMs = 15_000;
/** Maximum time that a change waits for slow nodes, in milliseconds. They apply it later. */
const spreadMs = 1000;

interface ClusterOptions {
  readonly tag: string;
  readonly version: string;
  readonly log: Log;
  /** Maximum absence of a node for which the streams retain messages, in milliseconds. */
  readonly trimAfterAbsenceMs: number;
}

/** The parts that are available once the data folder is open. */
interface ClusterParts {
  readonly nats: Nats;
  readonly databases: Databases;
  readonly shared: SharedValues;
  /** Values of this node alone. */
  readonly values: ValueStore;
}

/** The parts that are available once the server listens. */
interface ClusterService {
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
  readonly #listeners = new Set<() => void>();
  #registry: Registry | null = null;
  readonly #membership = new MembershipTable();
  readonly #progress = new ProgressReports(this.#membership);
  readonly #positions = new ReplicaPositions();
  readonly #repairs: CopyRepairs;
  readonly #duties: ClusterDuties;
  #isStopped = false;
  #isNotifying = false;
  /** Gaps in the streams of local copies, by database id: the last missing frame, attempts to get it, and number of gaps. */
  readonly #gaps = new Map<string, { from: number; tries: number; count: number }>();
  readonly #scrub: StreamScrub;
  readonly bootstrap: ClusterBootstrap;
  readonly #adoption: Adoption;
  readonly #trim: StreamTrim;

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
    this.#duties = new ClusterDuties({
      tag: options.tag,
      log: options.log,
      registry: () => this.#known,
      shared: () => this.#opened.shared,
      changes: () => this.#opened.changes,
      removeStream: (databaseId, generation) =>
        this.#opened.nats.removeStream({ databaseId, generation }),
      leads: () => this.leaderTag === this.tag,
      member: () => this.#serving.member(),
      copies: this.#copies,
      membership: this.#membership,
      positions: this.#positions,
      bootstrap: this.bootstrap,
      adoption: this.#adoption,
      trim: () => this.#trim.run(this.#ledHere(), () => this.#isStopped),
    });
  }

  /** Replication options of the databases in the data folder. */
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
        // The first node that appends to the empty stream begins it.
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

  /** Starts heartbeats, and creates and removes copies from then on. */
  serve(service: ClusterService): void {
    this.#service = service;
    this.#servedMs = performance.now();
    this.#opened.changes.peers = service.peers;
    this.#repairs.start(service.peers);
    this.#progress.start(
      this.#opened.nats.heartbeats(
        () => this.#status(),
        (tag, status) => this.#heard(tag, status),
      ),
    );
    this.#duties.start();
    this.#scrub.start();
  }

  /** Stops creating and removing copies. Must be called before the databases are closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const duties = this.#duties.stop();
    this.#progress.stop();
    await this.#repairs.stop();
    await this.#scrub.stop();
    await duties;
  }

  /** Sends a last heartbeat and disconnects. Must be called after the databases are closed. */
  async close(): Promise<void> {
    this.#progress.close();
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

  /** Nodes that this one can call: the members, and while this node is not a member, also other nodes with heartbeats. */
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
    this.#positions.recordReply(place);
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
    await this.#progress.haveCopies(others, sharedValuesId, {
      wanted,
      count: others.length,
      untilMs,
    });
  }

  changeHere(changes: readonly ValueChange[]): Promise<number> {
    return this.#opened.changes.changeHere(changes);
  }

  async addMember(tag: string): Promise<void> {
    const member = this.#membership.present().find((one) => one.tag === tag);
    await this.change(addingMember(this.#known, tag, member));
  }

  removeMember(tag: string): Promise<void> {
    return this.#changeAsOf((registry) => removingMember(registry, tag, this.index));
  }

  addCopy(name: string, tag: string): Promise<void> {
    return this.#changeAsOf((registry) => addingCopy(registry, name, tag, this.index));
  }

  removeCopy(name: string, tag: string): Promise<void> {
    return this.#changeAsOf((registry) => removingCopy(registry, name, tag, this.index));
  }

  /** Makes changes computed from the registry, and retries them if it has changed meanwhile. @throws errors of `make` */
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

  /** Removes a stream without a database. If this fails, the stream remains empty. */
  async #forgetStream(databaseId: string, generation: number): Promise<void> {
    try {
      await this.#opened.nats.removeStream({ databaseId, generation });
    } catch (error) {
      this.#options.log.report(
        `The stream of ${databaseId}, which has no database, was not removed`,
        error,
      );
    }
  }

  ownDatabases(): readonly OwnDatabase[] {
    return this.#adoption.own;
  }

  /** Returns whether the cluster has, or had, a database of that id. */
  knows(id: string): boolean {
    return this.#known.deleted.has(id) || this.#registeredOf(id) !== undefined;
  }

  async adoptDatabase(
    name: string,
    members: readonly string[],
    isRestored = false,
  ): Promise<Database> {
    const registered = await this.#adoption.adopt(name, members, isRestored);
    // The record already exists. The stream must begin, with this node as its leader.
    const hasBegun = () => this.find(name)?.registered.isSeeded === true;
    return await this.#whenReady(registered, hasBegun);
  }

  async deleteDatabase(name: string): Promise<boolean> {
    const id = this.find(name)?.registered.id;
    if (id === undefined) return false;
    await this.#changeAsOf(() => {
      const registered = this.#registeredOf(id);
      return registered === undefined ? [] : deletingDatabase(registered);
    });
    await this.#reconciled(() => !this.#opened.databases.has(name) || !this.#copies.has(name));
    return true;
  }

  async transfer(name: string, tag: string): Promise<void> {
    const { registered, leaderTag } = this.#stateOf(registeredDatabase(this.#known, name));
    if (!registered.members.includes(tag)) {
      throw new EngineError("invalid-operation", `The node ${tag} has no copy of '${name}'.`);
    }
    if (leaderTag === tag) return;
    if (tag === this.tag) this.standFor(registered.name);
    else await this.#opened.changes.requestCandidacy(tag, registered.name);
    const isDone = () => this.find(name)?.leaderTag === tag;
    if (await this.#reconciled(isDone, transferMs)) return;
    throw new EngineError(
      "timeout",
      `The node ${tag} does not lead '${registered.name}' after ${transferMs} ms. It may be lagging or unreachable.`,
    );
  }

  standFor(name: string): void {
    this.#copies.opened(name)?.replication?.stand();
  }

  async waitForCopies(name: string, count: number, timeoutMs: number): Promise<number> {
    const { registered } = this.#stateOf(registeredDatabase(this.#known, name));
    const wanted = this.#copies.opened(name)?.replication?.mark?.sequence ?? 0;
    const others = registered.members.filter((tag) => tag !== this.tag);
    const untilMs = performance.now() + timeoutMs;
    return await this.#progress.haveCopies(others, registered.id, { wanted, count, untilMs });
  }

  // Databases

  /** Returns whether the files of this name are a copy of a database of the cluster. */
  isCopy(name: string): boolean {
    return this.#copies.has(name);
  }

  /** Returns this node's open copy of the database with that id, or undefined. */
  openedById(id: string): Database | undefined {
    if (id === sharedValuesId) return this.#opened.shared.database;
    const registered = this.#registeredOf(id);
    const found = registered === undefined ? undefined : this.#copies.opened(registered.name);
    // Before it is replicated, its log may contain writes that no other node will receive.
    return found?.replication === null ? undefined : found;
  }

  #registeredOf(id: string): ClusterDatabase | undefined {
    return [...this.#known.databases.values()].find((one) => one.id === id);
  }

  /** Returns the nodes from which a copy can be fetched. For the shared values, these are all nodes with heartbeats. */
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
   * Returns the minimum position of copies for reads. The leader may always answer. Any copy may answer after a long time
   * without a leader, but not immediately: the last leader may have shown later messages.
   */
  #mustShow(registered: ClusterDatabase, role: ReplicaRoleName | null): number {
    if (role === "leader") {
      this.#copies.led(registered.id);
      return 0;
    }
    const ledMs = Math.max(this.#servedMs, this.#copies.ledMs(registered.id));
    return performance.now() - ledMs >= leaderlessMs ? 0 : this.#positions.of(registered);
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

  /** Waits for a condition. @returns false if it is not met after `withinMs` */
  async #reconciled(isWanted: () => boolean, withinMs = creationMs): Promise<boolean> {
    const untilMs = performance.now() + withinMs;
    while (!isWanted()) {
      if (performance.now() > untilMs || this.#isStopped) return false;
      this.#duties.reconcileSoon();
      await pause(retryMs / 10);
    }
    return true;
  }

  // Taking part

  get #opened() {
    if (this.#parts === null) throw new Error("the cluster is not open yet");
    return this.#parts;
  }

  /** The current registry. */
  get #known(): Registry {
    this.#registry ??= new Registry(this.#opened.shared);
    return this.#registry;
  }

  /** Invalidates the registry, and notifies listeners once per event-loop tick. */
  #changed(): void {
    this.#registry = null;
    this.#duties.changed();
    if (this.#isNotifying || this.#isStopped) return;
    this.#isNotifying = true;
    setImmediate(() => {
      this.#isNotifying = false;
      for (const listener of this.#listeners) listener();
      this.#duties.reconcileSoon();
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
        `NATS no longer has a stream of generation ${generation} of the database ${id}.`,
      );
    });
  }

  /** Returns whether any node has data of this database, so that its stream is not new and must not be begun again. */
  #isKnownElsewhere(id: string): boolean {
    if (id === sharedValuesId && this.#parts !== null && this.index > 0) return true;
    return this.#membership.isKnown(id);
  }

  #watcherOf(name: string, id: string): ReplicationWatcher {
    return {
      roleChanged: () => {
        this.#copies.setTrouble(name, null);
        this.#changed();
        setImmediate(() => this.#progress.beat());
      },
      needSnapshot: (reason) => {
        this.#copies.setTrouble(name, `it needs the files of another node: ${reason}`);
        this.#repairs.need({ name, id });
        // The other node's files may be older.
        const registered = this.#registeredOf(id);
        const visible = this.#replicationOf(id)?.visible ?? 0;
        if (registered !== undefined) this.#positions.record(registered, visible);
        this.#changed();
      },
      blocked: (reason) => {
        this.#copies.setTrouble(name, `it is blocked: ${reason}`);
        this.#scrub.blocked(id);
        this.#changed();
      },
      progressed: () => this.#progress.progressed(),
      // Logs retain no frames. Missing messages arrive with the files of another node.
      fetchRange: async (from) => ((await this.#mayCome(id, from)) ? [] : null),
    };
  }

  /**
   * Returns whether a frame that did not arrive may still exist. A NATS consumer that is created together with its stream
   * sometimes delivers nothing, and following again helps. Logs retain no frames, so messages that were removed from the
   * stream, or stay missing, arrive with the files of another node.
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
      return true; // unknown
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
    const isWaiting = this.#progress.reported();
    return encodeStatus({ member: member(), version, databases, isWaiting });
  }

  /** Returns the report of a local copy. While its files are being replaced, the mark is that of the new files. */
  #reportOf(id: string, replication: Replication, generation: number): ReplicaReport {
    const mark = this.#repairs.markOf(id) ?? replication.mark;
    const isOf = mark !== null && mark.generation === generation;
    return { ...replication.heartbeat, mark: isOf ? mark.sequence : 0 };
  }

  /** Returns the databases that this node leads, including the shared values. */
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

  get #serving(): ClusterService {
    if (this.#service === null) throw new Error("the cluster does not serve yet");
    return this.#service;
  }

  #heard(tag: string, sent: NodeStatus): void {
    const status = this.#membership.record(tag, sent);
    if (status === null) return;
    this.#progress.heard(status.isWaiting);
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
        if (epoch >= newest) this.#positions.recordLeader(registered, mark);
      }
      replication?.heard(heartbeatOf(tag, report));
    }
  }
}

function patienceMs(): number {
  return standAfterMs + Math.random() * standSpreadMs;
}

function leaderOf(
  { role, leaderTag }: { readonly role: string; readonly leaderTag: string | null },
  own: string,
): string | null {
  if (role === "leader") return own;
  // A node that lost the leadership, or has not been fenced yet.
  return leaderTag === own ? null : leaderTag;
}
