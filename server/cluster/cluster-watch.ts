/**
 * Checks the state of the cluster once a second: logs changes, tracks how long this node's copies lag, and determines
 * whether the node is ready for requests.
 *
 * Invariants:
 * - A check writes a bounded number of lines, however many databases exist.
 * - Conditions that resolve within `graceMs`, such as a change of leader, cause neither a warning nor unreadiness.
 */
import type { Log } from "../logging/log.ts";
import {
  type ClusterStatus,
  clusterStatus,
  type DatabaseState,
  isHeard,
  type NodeState,
} from "./cluster-status.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { StreamProblem } from "./nats/replica-scrub.ts";
import { streamIdOf } from "./nats/stream-settings.ts";

const lookMs = 1_000;
const graceMs = 10_000;
/** Maximum number of names in one log line. */
const namesMax = 5;

/** The message that this node's copy of a database has to reach, and the time at which that was set. */
interface Goal {
  readonly applied: number;
  readonly sinceMs: number;
}

export class ClusterWatch {
  readonly #view: ClusterView;
  readonly #log: Log;
  readonly #nowMs: () => number;
  #timer: NodeJS.Timeout | undefined;
  #last: ClusterStatus | null = null;
  /** Goals of lagging copies, by database id. */
  readonly #goals = new Map<string, Goal>();
  /** Ids of databases whose copy here has been current since the start. */
  readonly #current = new Set<string>();
  /** Times at which unregistered nodes were first heard, by tag; -Infinity after logging. */
  readonly #strangers = new Map<string, number>();
  /** Conditions that were logged and have not ended. */
  readonly #logged = new Set<string>();
  /** Whether the cluster has had a leader since the start. */
  #wasLed = false;
  /** Last times with a leader and with a connection to NATS; initially the start. */
  #leaderMs: number;
  #natsMs: number;
  #scrubText = "";
  /** Time of the last logged scrub, and the replicas missing in it. */
  #scrub: { readonly atMs: number; readonly missing: ReadonlySet<string> } = {
    atMs: 0,
    missing: new Set(),
  };

  constructor(view: ClusterView, log: Log, nowMs: () => number = () => performance.now()) {
    this.#view = view;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#leaderMs = nowMs();
    this.#natsMs = this.#leaderMs;
  }

  start(): void {
    this.look();
    this.#timer = setInterval(() => this.look(), lookMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Checks the cluster now, and logs changes. */
  look(): ClusterStatus {
    const status = clusterStatus(this.#view);
    const nowMs = this.#nowMs();
    const { health } = this.#view;
    if (status.leaderTag !== null) {
      this.#leaderMs = nowMs;
      this.#wasLed = true;
    }
    if (health === undefined || health.nats.isConnected) this.#natsMs = nowMs;
    this.#trackCopies(status, nowMs);
    this.#logNodes(status, nowMs);
    this.#logLeaders(status, nowMs);
    this.#logCopies(status, nowMs);
    this.#logScrub(status);
    this.#last = status;
    return status;
  }

  /** Returns the minimum time that this node's copy has been lagging, in seconds, or 0 if it is current or does not exist. */
  behindSeconds(id: string): number {
    const goal = this.#goals.get(id);
    return goal === undefined ? 0 : (this.#nowMs() - goal.sinceMs) / 1000;
  }

  /** Returns the reasons why this node should receive no requests, as text, or null if it is ready. */
  notReady(): string | null {
    const status = this.look();
    const nowMs = this.#nowMs();
    const reasons: string[] = [];
    if (nowMs - this.#natsMs >= graceMs) reasons.push("NATS is unreachable");
    if (!this.#wasLed || nowMs - this.#leaderMs >= graceMs) {
      reasons.push(
        status.topologyId === null ? "the cluster was never complete" : "the cluster has no leader",
      );
    }
    if (status.topologyId !== null && !status.nodes.some((one) => one.isHere && one.isRegistered)) {
      reasons.push("this node is not registered in the cluster");
    }
    const own = status.databases.filter((one) => ownCopy(status, one) !== undefined);
    const stopped = own.filter((one) => one.trouble !== null);
    const behind = own.filter(
      ({ id, trouble }) =>
        trouble === null && (!this.#current.has(id) || this.behindSeconds(id) * 1000 >= graceMs),
    );
    if (stopped.length > 0) reasons.push(`local copies have stopped: ${namesOf(stopped)}`);
    if (behind.length > 0) reasons.push(`local copies are lagging: ${namesOf(behind)}`);
    return reasons.length === 0 ? null : reasons.join(", ");
  }

  #trackCopies(status: ClusterStatus, nowMs: number): void {
    const known = new Set(status.databases.map(({ id }) => id));
    for (const id of [...this.#goals.keys(), ...this.#current]) {
      if (known.has(id)) continue;
      this.#goals.delete(id);
      this.#current.delete(id);
    }
    for (const database of status.databases) {
      const own = ownCopy(status, database);
      const { id, leaderTag } = database;
      if (own === undefined || own.behind === null || own.behind === 0) {
        this.#goals.delete(id);
        // Without a leader there is nothing to compare the copy with.
        if (own?.behind === 0 && leaderTag !== null) this.#current.add(id);
        continue;
      }
      const goal = this.#goals.get(id);
      if (goal !== undefined && own.applied < goal.applied) continue;
      // It has reached an earlier goal, so it keeps up at a distance of some messages.
      if (goal !== undefined) this.#current.add(id);
      this.#goals.set(id, { applied: own.applied + own.behind, sinceMs: nowMs });
    }
  }

  #logNodes(status: ClusterStatus, nowMs: number): void {
    const before = this.#last;
    const strangers = new Set<string>();
    for (const node of status.nodes) {
      const earlier = before?.nodes.find(({ tag }) => tag === node.tag);
      if (node.isHere) continue;
      if (!node.isRegistered) {
        strangers.add(node.tag);
        this.#logStranger(node, nowMs);
        continue;
      }
      if (before !== null && earlier?.isRegistered !== true) {
        this.#log.info(`Node ${node.tag} at ${node.url} was added`, { event: "node-added" });
      }
      const wasHeard = earlier !== undefined && isHeard(earlier);
      if (isHeard(node) && !wasHeard) {
        this.#log.info(`Node ${node.tag} sends heartbeats`, { event: "node-heard" });
      } else if (!isHeard(node) && wasHeard) {
        const led = status.databases.filter(({ leaderTag }) => leaderTag === node.tag);
        const what = led.length === 0 ? "" : `; it led ${namesOf(led)}`;
        this.#log.warn(`Node ${node.tag} at ${node.url} has stopped sending heartbeats${what}`, {
          event: "node-silent",
        });
      }
    }
    for (const tag of this.#strangers.keys()) {
      if (!strangers.has(tag)) this.#strangers.delete(tag);
    }
    for (const { tag, isRegistered } of before?.nodes ?? []) {
      if (!isRegistered) continue;
      const now = status.nodes.find((one) => one.tag === tag);
      if (now?.isRegistered !== true) {
        this.#log.warn(`Node ${tag} was removed from the cluster`, { event: "node-removed" });
      }
    }
  }

  /** Logs an unregistered node after `graceMs`. A new node registers within seconds; one that does not was removed. */
  #logStranger({ tag, url }: NodeState, nowMs: number): void {
    const sinceMs = this.#strangers.get(tag) ?? nowMs;
    const isDue = sinceMs !== Number.NEGATIVE_INFINITY && nowMs - sinceMs >= graceMs;
    this.#strangers.set(tag, isDue ? Number.NEGATIVE_INFINITY : sinceMs);
    if (!isDue) return;
    const message = `Node ${tag} at ${url} sends heartbeats but is not registered. To add it: jackdaw cluster add ${tag}`;
    this.#log.info(message, { event: "node-stranger" });
  }

  #logLeaders(status: ClusterStatus, nowMs: number): void {
    const { leaderTag, epoch, databases } = status;
    if (leaderTag !== null && leaderTag !== this.#last?.leaderTag) {
      this.#log.info(`${leaderTag} leads the cluster, epoch ${epoch}`, {
        event: "cluster-leader",
      });
    }
    const isLeaderless = nowMs - this.#leaderMs >= graceMs;
    if (!isLeaderless) this.#logged.delete("leaderless");
    else if (!this.#logged.has("leaderless")) {
      this.#logged.add("leaderless");
      this.#log.warn(
        "The cluster has no leader: databases, nodes and certificates cannot be added or removed until most of its nodes reach each other through NATS",
        { event: "cluster-leader" },
      );
    }
    const before = new Map(this.#last?.databases.map((one) => [one.id, one.leaderTag]));
    const byLeader = new Map<string, DatabaseState[]>();
    for (const database of databases) {
      if (database.leaderTag === null || database.leaderTag === before.get(database.id)) continue;
      byLeader.set(database.leaderTag, [...(byLeader.get(database.leaderTag) ?? []), database]);
    }
    for (const [tag, led] of byLeader) {
      const epochs = led.length === 1 ? `, epoch ${led[0]?.epoch}` : "";
      this.#log.info(`${tag} leads ${namesOf(led)}${epochs}`, { event: "database-leader" });
    }
  }

  #logCopies(status: ClusterStatus, nowMs: number): void {
    const stopped: DatabaseState[] = [];
    const late: DatabaseState[] = [];
    const isHere = new Set<string>();
    for (const database of status.databases) {
      const { id, name, trouble } = database;
      isHere.add(id);
      if (trouble !== null && !this.#logged.has(`stopped ${id}`)) stopped.push(database);
      else if (trouble === null && this.#logged.delete(`stopped ${id}`)) {
        this.#log.info(`The local copy of ${name} has resumed`, { event: "copy-goes-on" });
      }
      const goal = this.#goals.get(id);
      const isLate = goal !== undefined && nowMs - goal.sinceMs >= graceMs;
      if (isLate && !this.#logged.has(`behind ${id}`)) late.push(database);
      else if (!isLate && this.#logged.delete(`behind ${id}`)) {
        this.#log.info(`The local copy of ${name} has caught up`, { event: "copy-current" });
      }
    }
    for (const { id, name, trouble } of stopped.slice(0, namesMax)) {
      this.#logged.add(`stopped ${id}`);
      this.#log.write("Error", `The local copy of ${name} has stopped: ${trouble}`, {
        event: "copy-stopped",
      });
    }
    if (late.length > 0) {
      for (const { id } of late) this.#logged.add(`behind ${id}`);
      const [first] = late;
      const own = first === undefined ? undefined : ownCopy(status, first);
      const far = late.length === 1 ? `: ${own?.behind ?? 0} messages` : "";
      this.#log.warn(`Local copies are catching up${far}, ${namesOf(late)}`, {
        event: "copy-behind",
      });
    }
    for (const key of this.#logged) {
      const [, id] = key.split(" ");
      if (id !== undefined && !isHere.has(id)) this.#logged.delete(key);
    }
  }

  #logScrub(status: ClusterStatus): void {
    const scrub = this.#view.health?.nats.scrub ?? null;
    if (scrub === null) return;
    if (scrub.atMs === this.#scrub.atMs) return;
    const before = this.#scrub.missing;
    const keyOf = ({ stream, server }: StreamProblem) => `${server} ${stream}`;
    const missing = scrub.problems.filter(({ kind }) => kind === "missing").map(keyOf);
    this.#scrub = { atMs: scrub.atMs, missing: new Set(missing) };
    // A server that is restarted is absent for one check.
    const lasting = scrub.problems.filter(
      (one) => one.kind !== "behind" && (one.kind !== "missing" || before.has(keyOf(one))),
    );
    const text = [
      ...lasting.map(({ stream, server, problem }) => {
        const of = status.databases.find(({ id }) => streamIdOf(stream)?.databaseId === id)?.name;
        const where = [server, of ?? stream].filter((one) => one !== "").join(", ");
        return where === "" ? problem : `${where}: ${problem}`;
      }),
      ...(scrub.failure === null ? [] : [scrub.failure]),
    ];
    const shown = text.slice(0, namesMax).join("; ");
    if (shown === this.#scrubText) return;
    this.#scrubText = shown;
    if (shown === "") this.#log.info("All replicas in NATS are intact again", { event: "scrub" });
    else {
      const more = text.length > namesMax ? `, and ${text.length - namesMax} more` : "";
      // Missing or unchecked replicas may return; damage does not resolve by itself.
      const isPassing = lasting.every(({ kind }) => kind === "missing");
      this.#log.write(
        isPassing ? "Warn" : "Error",
        `The scrub of NATS replicas reports: ${shown}${more}`,
        { event: "scrub" },
      );
    }
  }
}

function ownCopy(status: ClusterStatus, { copies }: DatabaseState) {
  return copies.find(({ tag }) => tag === status.tag);
}

function namesOf(databases: readonly DatabaseState[]): string {
  const names = databases.slice(0, namesMax).map(({ name }) => name);
  const more = databases.length - names.length;
  return more > 0 ? `${names.join(", ")} and ${more} more` : names.join(", ");
}
