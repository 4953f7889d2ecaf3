/**
 * Events of the cluster that this node has observed since its start: leaders, changed values, and leaders of databases.
 * For display only; no decision depends on it.
 *
 * Invariants:
 * - Each list is bounded and drops its oldest entries.
 * - Only the keys of values are recorded, because some values are secrets.
 */
import type { ClusterView, ReplicaState } from "./cluster-view.ts";
import { type NodeState, ownState } from "./topology.ts";

/** Maximum number of entries of each list. */
const entriesMax = 256;

interface StateSeen {
  readonly state: NodeState;
  readonly previous: NodeState;
  readonly term: number;
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
  readonly reason: string;
}

interface CommandSeen {
  /** Index of the cluster's values when the change was observed. Several changes may share it. */
  readonly index: number;
  readonly term: number;
  readonly atMs: number;
  /** `Put members/B`, `Delete databases/orders`. */
  readonly command: string;
  readonly bytes: number;
}

interface DecisionSeen {
  readonly atMs: number;
  readonly index: number;
  readonly database: string;
  readonly message: string;
}

export class ClusterHistory {
  readonly #cluster: ClusterView;
  readonly #nowMs: () => number;
  readonly #states: StateSeen[] = [];
  readonly #commands: CommandSeen[] = [];
  readonly #decisions: DecisionSeen[] = [];
  #current: StateSeen;
  #index: number;
  #values: Map<string, string>;
  #leaders: Map<string, string>;
  readonly #stop: () => void;

  constructor(cluster: ClusterView, nowMs: () => number = Date.now) {
    this.#cluster = cluster;
    this.#nowMs = nowMs;
    this.#index = cluster.index;
    this.#values = new Map(cluster.values(""));
    this.#leaders = placesOf(cluster.databases());
    this.#current = this.#seen("Passive");
    this.#states.push(this.#current);
    this.#stop = cluster.onChange(() => this.#look());
  }

  /** Current state of this node in the ordering of the cluster's values, and the time it began. */
  get current(): StateSeen {
    return this.#current;
  }

  /** Milliseconds for which this node has led the cluster's values, or null if it does not. */
  get leadingMs(): number | null {
    return this.#current.state === "Leader" ? this.#nowMs() - this.#current.atMs : null;
  }

  /** Oldest first, as in the other lists. */
  get states(): readonly StateSeen[] {
    return this.#states;
  }

  get commands(): readonly CommandSeen[] {
    return this.#commands;
  }

  get decisions(): readonly DecisionSeen[] {
    return this.#decisions;
  }

  close(): void {
    this.#stop();
  }

  #look(): void {
    const seen = this.#seen(this.#current.state);
    const { state, term, reason } = this.#current;
    if (seen.state !== state || seen.term !== term || seen.reason !== reason) {
      this.#current = seen;
      keep(this.#states, seen);
    }
    if (this.#cluster.index !== this.#index) this.#compareValues();
    this.#compareLeaders();
  }

  #seen(previous: NodeState): StateSeen {
    const { leaderTag, epoch } = this.#cluster;
    const state = ownState(this.#cluster);
    return {
      state,
      previous,
      term: epoch,
      atMs: this.#nowMs(),
      reason: reasonOf(state, leaderTag),
    };
  }

  #compareValues(): void {
    const { index, epoch: term } = this.#cluster;
    const atMs = this.#nowMs();
    const values = new Map(this.#cluster.values(""));
    for (const [key, value] of values) {
      if (this.#values.get(key) === value) continue;
      const bytes = Buffer.byteLength(value);
      keep(this.#commands, { index, term, atMs, command: `Put ${key}`, bytes });
    }
    for (const key of this.#values.keys()) {
      if (values.has(key)) continue;
      keep(this.#commands, { index, term, atMs, command: `Delete ${key}`, bytes: 0 });
    }
    this.#index = index;
    this.#values = values;
  }

  #compareLeaders(): void {
    const leaders = placesOf(this.#cluster.databases());
    const { index } = this.#cluster;
    const atMs = this.#nowMs();
    for (const [database, place] of leaders) {
      const before = this.#leaders.get(database);
      if (before === place) continue;
      const message = before === undefined ? place : `${place} (before: ${before})`;
      keep(this.#decisions, { atMs, index, database, message });
    }
    for (const database of this.#leaders.keys()) {
      if (leaders.has(database)) continue;
      keep(this.#decisions, { atMs, index, database, message: "It was deleted." });
    }
    this.#leaders = leaders;
  }
}

function reasonOf(state: NodeState, leaderTag: string | null): string {
  switch (state) {
    case "Leader":
      return "This node orders the changes of the cluster";
    case "Follower":
      return `Node ${leaderTag} orders the changes of the cluster`;
    case "Candidate":
      return "The node that orders the changes of the cluster is not known";
    case "Passive":
      return "This node is not registered in the cluster";
  }
}

function placesOf(states: readonly ReplicaState[]): Map<string, string> {
  return new Map(
    states.map(({ registered, leaderTag, epoch }) => [
      registered.name,
      leaderTag === null
        ? `No node leads it; copies are on ${registered.members.join(", ")}.`
        : `Node ${leaderTag} leads it in epoch ${epoch}; copies are on ${registered.members.join(", ")}.`,
    ]),
  );
}

function keep<T>(list: T[], entry: T): void {
  list.push(entry);
  if (list.length > entriesMax) list.shift();
}
