/**
 * A fake cluster for one real server: the state of its nodes and databases, and the requests that
 * the server sent to it and to other nodes.
 */
import { Readable } from "node:stream";
import { type Database, EngineError } from "../../engine/engine.ts";
import { ClusterHistory } from "../../server/cluster/cluster-history.ts";
import type {
  ClusterDatabase,
  ClusterMember,
  ClusterView,
  OwnDatabase,
  ReceivedHeartbeat,
  ReplicaState,
  ValueChange,
} from "../../server/cluster/cluster-view.ts";
import type { PeerLink, PeerReply, PeerRequest } from "../../server/cluster/peer-link.ts";
import { databaseKey } from "../../server/cluster/registry.ts";
import type { DatabaseDirectory, ServerServices } from "../../server/routing/services.ts";
import { fakeDatabase, fakeMember } from "./seen-cluster.ts";

interface SentRequest extends PeerRequest {
  readonly tag: string;
}

export class FakeCluster implements ClusterView, PeerLink {
  readonly tag = "A";
  topologyId: string | null = "6e2d3b9a-0000-4000-8000-000000000001";
  index = 10;
  leaderTag: string | null = "A";
  epoch = 3;
  readonly nodes: ClusterMember[];
  readonly unknown: ClusterMember[] = [];
  readonly heartbeats = new Map<string, ReceivedHeartbeat>();
  readonly states = new Map<string, ReplicaState>();
  readonly kept = new Map<string, string>();
  /** Databases that only this node has. */
  readonly own: OwnDatabase[] = [];
  /** Calls that change something, as `name argument argument`. */
  readonly calls: string[] = [];
  /** Requests to other nodes, with their bodies as text, and the replies. */
  readonly sent: { readonly tag: string; readonly what: string; readonly body: string }[] = [];
  readonly headers: Readonly<Record<string, string>>[] = [];
  answer: (request: SentRequest, body: string) => { status: number; json?: unknown } = () => {
    throw new EngineError("node-unreachable", "The node does not answer.");
  };
  /** Number of copies that `waitForCopies` reports for a write. */
  copies = 0;
  readonly #services: ServerServices;
  readonly #listeners = new Set<() => void>();

  /** Configures the server as node A of a cluster with the nodes `tags`. */
  constructor(services: ServerServices, tags: readonly string[] = ["A", "B", "C"]) {
    this.#services = services;
    this.nodes = tags.map(fakeMember);
    for (const tag of tags) if (tag !== this.tag) this.hear(tag);
    const clusterHistory = new ClusterHistory(this);
    const databases = this.#directoryOf(services.databases);
    Object.assign(services, { cluster: this, peers: this, clusterHistory, databases });
  }

  /** Like `ClusterDirectory`: it also contains the names of databases without a local copy. */
  #directoryOf(own: DatabaseDirectory | undefined): DatabaseDirectory | undefined {
    if (own === undefined) return undefined;
    const names = () => {
      const registered = [...this.states.values()].map((state) => state.registered.name);
      return [...new Set([...own.names(), ...registered])].sort();
    };
    return {
      names,
      has: (name) => this.find(name) !== undefined || own.has(name),
      find: (name) => (this.find(name)?.role === null ? undefined : own.find(name)),
      opened: () => own.opened(),
      uses: () => own.uses(),
      failures: () => own.failures(),
      create: (name, record) => own.create(name, record),
      createFromShipped: (...given) => own.createFromShipped(...given),
      delete: (name) => own.delete(name),
    };
  }

  /** Simulates a heartbeat: the progress of a node's copies, by database id. */
  hear(tag: string, applied: Readonly<Record<string, number>> = {}, ageMs = 0): void {
    const copies = Object.entries(applied).map(
      ([id, last]) => [id, { role: "follower", epoch: 1, applied: last }] as const,
    );
    this.heartbeats.set(tag, { ageMs, version: "1.0.0", databases: new Map(copies) });
  }

  /** Registers a database; this node has a copy if it is a member. */
  register(name: string, members: readonly string[], more: Partial<ReplicaState> = {}): void {
    const isMember = members.includes(this.tag);
    const state = fakeDatabase(name, members, {
      role: isMember ? "leader" : null,
      epoch: 2,
      leaderTag: isMember ? this.tag : (members[0] ?? null),
      applied: isMember ? 5 : 0,
      topologyEtag: ++this.index,
      visible: 1,
      ...more,
    });
    const registered: ClusterDatabase = {
      ...state.registered,
      initialRecord: { DatabaseName: name },
      index: this.index,
    };
    this.states.set(name.toLowerCase(), { ...state, registered });
    this.kept.set(databaseKey(name), JSON.stringify(registered));
    for (const member of members) {
      const known = this.heartbeats.get(member)?.databases ?? new Map();
      const applied = [...known].map(([id, copy]) => [id, copy.applied] as const);
      if (member !== this.tag) {
        this.hear(member, Object.fromEntries([...applied, [registered.id, 5]]));
      }
    }
    this.changed();
  }

  /** Notifies watchers of a change. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  members(): readonly ClusterMember[] {
    return this.nodes;
  }

  lastHeartbeat(tag: string): ReceivedHeartbeat | undefined {
    return this.heartbeats.get(tag);
  }

  strangers(): readonly ClusterMember[] {
    return this.unknown;
  }

  find(name: string): ReplicaState | undefined {
    return this.states.get(name.toLowerCase());
  }

  databases(): readonly ReplicaState[] {
    return [...this.states.values()];
  }

  async change(changes: readonly ValueChange[]): Promise<void> {
    for (const { key, expected } of changes) {
      if (expected !== undefined && (this.kept.get(key) ?? null) !== expected) {
        throw new EngineError("concurrency", `The value '${key}' is not the expected one.`);
      }
    }
    this.index += 1;
    for (const { key, value } of changes) {
      this.calls.push(`change ${key}`);
      if (value === null) this.kept.delete(key);
      else this.kept.set(key, value);
      this.#adopt(key, value);
    }
    this.changed();
  }

  #adopt(key: string, value: string | null): void {
    const name = /^cluster\/databases\/(.+)$/.exec(key)?.[1];
    const state = name === undefined ? undefined : this.states.get(name);
    if (name === undefined || state === undefined || value === null) return;
    this.states.set(name, { ...state, registered: JSON.parse(value) as ClusterDatabase });
  }

  async changeHere(changes: readonly ValueChange[]): Promise<number> {
    await this.change(changes);
    return this.index;
  }

  standFor(name: string): void {
    this.calls.push(`standFor ${name}`);
  }

  value(key: string): string | undefined {
    return this.kept.get(key);
  }

  *values(prefix: string): Iterable<readonly [string, string]> {
    for (const key of [...this.kept.keys()].sort()) {
      if (key.startsWith(prefix)) yield [key, this.kept.get(key) as string];
    }
  }

  answered(): void {}

  whenVisible(): Promise<boolean> {
    return Promise.resolve(true);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async addMember(tag: string): Promise<void> {
    this.calls.push(`addMember ${tag}`);
    this.nodes.push(fakeMember(tag));
  }

  async removeMember(tag: string): Promise<void> {
    this.calls.push(`removeMember ${tag}`);
    this.nodes.splice(
      this.nodes.findIndex((one) => one.tag === tag),
      1,
    );
  }

  async addCopy(name: string, tag: string): Promise<void> {
    this.calls.push(`addCopy ${name} ${tag}`);
    const state = this.find(name) as ReplicaState;
    this.register(state.registered.name, [...state.registered.members, tag], {
      leaderTag: state.leaderTag,
      role: state.role,
    });
  }

  async removeCopy(name: string, tag: string): Promise<void> {
    this.calls.push(`removeCopy ${name} ${tag}`);
    const state = this.find(name) as ReplicaState;
    const members = state.registered.members.filter((one) => one !== tag);
    this.register(state.registered.name, members, { leaderTag: state.leaderTag });
  }

  async createDatabase(
    name: string,
    record: Readonly<Record<string, unknown>>,
    members: readonly string[],
  ) {
    this.calls.push(`createDatabase ${name} ${members}`);
    const created = await this.#services.databases.create(name, record);
    this.register(name, members);
    return created;
  }

  ownDatabases(): readonly OwnDatabase[] {
    return this.own;
  }

  async adoptDatabase(name: string, members: readonly string[]): Promise<Database> {
    this.calls.push(`adoptDatabase ${name} ${members}`);
    const found = await this.#services.databases.find(name);
    if (found === undefined) throw new EngineError("database-missing", `There is no '${name}'.`);
    this.register(name, members);
    return found;
  }

  async deleteDatabase(name: string): Promise<boolean> {
    this.calls.push(`deleteDatabase ${name}`);
    this.kept.delete(databaseKey(name));
    const wasThere = this.states.delete(name.toLowerCase());
    await this.#services.databases.delete(name);
    return wasThere;
  }

  async transfer(name: string, tag: string): Promise<void> {
    this.calls.push(`transfer ${name} ${tag}`);
    const state = this.find(name) as ReplicaState;
    this.states.set(name.toLowerCase(), {
      ...state,
      role: tag === this.tag ? "leader" : "follower",
      leaderTag: tag,
      topologyEtag: state.topologyEtag + 1,
    });
  }

  async waitForCopies(name: string, count: number, timeoutMs: number): Promise<number> {
    this.calls.push(`waitForCopies ${name} ${count} ${timeoutMs}`);
    return Math.min(this.copies, count);
  }

  async upgrade(): Promise<never> {
    throw new EngineError("node-unreachable", "There are no sockets between these nodes.");
  }

  async send(tag: string, request: PeerRequest): Promise<PeerReply> {
    const body = request.body === undefined ? "" : String(request.body);
    this.sent.push({ tag, what: `${request.method} ${request.target}`, body });
    this.headers.push(request.headers ?? {});
    const { status, json } = this.answer({ ...request, tag }, body);
    const text = json === undefined ? "" : JSON.stringify(json);
    return {
      status,
      headers: { "content-type": "application/json; charset=utf-8" },
      body: Readable.from(text === "" ? [] : [Buffer.from(text)]),
    };
  }
}
