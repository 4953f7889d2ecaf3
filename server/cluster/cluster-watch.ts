/**
 * Looks at the cluster once a second, as this node sees it: tells the log what has changed, since when the own copies are
 * behind, and why the node should get no requests.
 *
 * Invariants:
 * - A look writes a bounded number of lines, however many databases there are.
 * - What passes by itself within `graceMs`, as every change of a leader does, neither makes the node unready nor is warned of.
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
export const graceMs = 10_000;
/** Names in one line of the log. */
const namesMax = 5;

/** What this node's copy of a database was behind, and since when. */
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
  /** By the id of the database. */
  readonly #goals = new Map<string, Goal>();
  /** Databases whose copy here has been current since the start, by id. */
  readonly #current = new Set<string>();
  /** Since when nodes are heard that are not of the cluster; -Infinity: that was told. */
  readonly #strangers = new Map<string, number>();
  /** What has been warned of, so that its end is told as well. */
  readonly #told = new Set<string>();
  /** Was there a leader of the cluster since the start? */
  #wasLed = false;
  /** When there was a leader, and a connection to NATS, last; until then, the start. */
  #leaderMs: number;
  #natsMs: number;
  #scrubText = "";
  /** The last scrub that was told of, and what was missing in it. */
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

  /** Looks now, and tells the log. */
  look(): ClusterStatus {
    const status = clusterStatus(this.#view);
    const nowMs = this.#nowMs();
    const { health } = this.#view;
    if (status.leaderTag !== null) {
      this.#leaderMs = nowMs;
      this.#wasLed = true;
    }
    if (health === undefined || health.nats.isConnected) this.#natsMs = nowMs;
    this.#followCopies(status, nowMs);
    this.#tellNodes(status, nowMs);
    this.#tellLeaders(status, nowMs);
    this.#tellCopies(status, nowMs);
    this.#tellScrub(status);
    this.#last = status;
    return status;
  }

  /** Seconds that this node's copy of a database is behind, at least; 0: it is current, or there is none. */
  behindSeconds(id: string): number {
    const goal = this.#goals.get(id);
    return goal === undefined ? 0 : (this.#nowMs() - goal.sinceMs) / 1000;
  }

  /** Why this node should get no requests, in words; null: nothing speaks against it. */
  notReady(): string | null {
    const status = this.look();
    const nowMs = this.#nowMs();
    const reasons: string[] = [];
    if (nowMs - this.#natsMs >= graceMs) reasons.push("NATS is not reached");
    if (!this.#wasLed || nowMs - this.#leaderMs >= graceMs) {
      reasons.push(
        status.topologyId === null
          ? "the cluster has not been complete yet"
          : "nobody leads the cluster",
      );
    }
    if (status.topologyId !== null && !status.nodes.some((one) => one.isHere && one.isRegistered)) {
      reasons.push("this node is not one of the cluster");
    }
    const own = status.databases.filter((one) => ownCopy(status, one) !== undefined);
    const stopped = own.filter((one) => one.trouble !== null);
    const behind = own.filter(
      ({ id, trouble }) =>
        trouble === null && (!this.#current.has(id) || this.behindSeconds(id) * 1000 >= graceMs),
    );
    if (stopped.length > 0) reasons.push(`the copies here have stopped of ${namesOf(stopped)}`);
    if (behind.length > 0) reasons.push(`the copies here are behind of ${namesOf(behind)}`);
    return reasons.length === 0 ? null : reasons.join(", ");
  }

  #followCopies(status: ClusterStatus, nowMs: number): void {
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
        // What nobody leads has nobody to be compared with.
        if (own?.behind === 0 && leaderTag !== null) this.#current.add(id);
        continue;
      }
      const goal = this.#goals.get(id);
      if (goal !== undefined && own.applied < goal.applied) continue;
      // It has had what was there at an earlier look: it keeps up, some messages behind.
      if (goal !== undefined) this.#current.add(id);
      this.#goals.set(id, { applied: own.applied + own.behind, sinceMs: nowMs });
    }
  }

  #tellNodes(status: ClusterStatus, nowMs: number): void {
    const before = this.#last;
    const strangers = new Set<string>();
    for (const node of status.nodes) {
      const earlier = before?.nodes.find(({ tag }) => tag === node.tag);
      if (node.isHere) continue;
      if (!node.isRegistered) {
        strangers.add(node.tag);
        this.#tellStranger(node, nowMs);
        continue;
      }
      if (before !== null && earlier?.isRegistered !== true) {
        this.#log.info(`Node ${node.tag} at ${node.url} was added`, { event: "node-added" });
      }
      const wasHeard = earlier !== undefined && isHeard(earlier);
      if (isHeard(node) && !wasHeard) {
        this.#log.info(`Node ${node.tag} is heard`, { event: "node-heard" });
      } else if (!isHeard(node) && wasHeard) {
        const led = status.databases.filter(({ leaderTag }) => leaderTag === node.tag);
        const what = led.length === 0 ? "" : `; it led ${namesOf(led)}`;
        this.#log.warn(`Node ${node.tag} at ${node.url} is not heard any more${what}`, {
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

  /** A new one joins by itself within seconds; one that does not was removed. */
  #tellStranger({ tag, url }: NodeState, nowMs: number): void {
    const sinceMs = this.#strangers.get(tag) ?? nowMs;
    const isDue = sinceMs !== Number.NEGATIVE_INFINITY && nowMs - sinceMs >= graceMs;
    this.#strangers.set(tag, isDue ? Number.NEGATIVE_INFINITY : sinceMs);
    if (!isDue) return;
    const told = `Node ${tag} at ${url} is heard and is not of the cluster: 'jackdaw cluster add ${tag}' adds it`;
    this.#log.info(told, { event: "node-stranger" });
  }

  #tellLeaders(status: ClusterStatus, nowMs: number): void {
    const { leaderTag, epoch, databases } = status;
    if (leaderTag !== null && leaderTag !== this.#last?.leaderTag) {
      this.#log.info(`${leaderTag} leads the cluster, epoch ${epoch}`, {
        event: "cluster-leader",
      });
    }
    const isLeaderless = nowMs - this.#leaderMs >= graceMs;
    if (!isLeaderless) this.#told.delete("leaderless");
    else if (!this.#told.has("leaderless")) {
      this.#told.add("leaderless");
      this.#log.warn(
        "Nobody leads the cluster: no database, node or certificate can be added or removed until most of its nodes reach each other through NATS",
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

  #tellCopies(status: ClusterStatus, nowMs: number): void {
    const stopped: DatabaseState[] = [];
    const late: DatabaseState[] = [];
    const isHere = new Set<string>();
    for (const database of status.databases) {
      const { id, name, trouble } = database;
      isHere.add(id);
      if (trouble !== null && !this.#told.has(`stopped ${id}`)) stopped.push(database);
      else if (trouble === null && this.#told.delete(`stopped ${id}`)) {
        this.#log.info(`The copy of ${name} here goes on`, { event: "copy-goes-on" });
      }
      const goal = this.#goals.get(id);
      const isLate = goal !== undefined && nowMs - goal.sinceMs >= graceMs;
      if (isLate && !this.#told.has(`behind ${id}`)) late.push(database);
      else if (!isLate && this.#told.delete(`behind ${id}`)) {
        this.#log.info(`The copy of ${name} here has caught up`, { event: "copy-current" });
      }
    }
    for (const { id, name, trouble } of stopped.slice(0, namesMax)) {
      this.#told.add(`stopped ${id}`);
      this.#log.write("Error", `The copy of ${name} here has stopped: ${trouble}`, {
        event: "copy-stopped",
      });
    }
    if (late.length > 0) {
      for (const { id } of late) this.#told.add(`behind ${id}`);
      const [first] = late;
      const own = first === undefined ? undefined : ownCopy(status, first);
      const far = late.length === 1 ? `: ${own?.behind ?? 0} messages` : "";
      this.#log.warn(`Copies here are behind and catch up${far}, of ${namesOf(late)}`, {
        event: "copy-behind",
      });
    }
    for (const told of this.#told) {
      const [, id] = told.split(" ");
      if (id !== undefined && !isHere.has(id)) this.#told.delete(told);
    }
  }

  #tellScrub(status: ClusterStatus): void {
    const scrub = this.#view.health?.nats.scrub ?? null;
    if (scrub === null) return;
    if (scrub.atMs === this.#scrub.atMs) return;
    const before = this.#scrub.missing;
    const keyOf = ({ stream, server }: StreamProblem) => `${server} ${stream}`;
    const missing = scrub.problems.filter(({ kind }) => kind === "missing").map(keyOf);
    this.#scrub = { atMs: scrub.atMs, missing: new Set(missing) };
    // A server that is started again is away for one look.
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
    if (shown === "") this.#log.info("All replicas of NATS are sound again", { event: "scrub" });
    else {
      const more = text.length > namesMax ? `, and ${text.length - namesMax} more` : "";
      // What is missing, or could not be looked at, may come back; damage does not go by itself.
      const isPassing = lasting.every(({ kind }) => kind === "missing");
      this.#log.write(
        isPassing ? "Warn" : "Error",
        `The scrub of NATS has found: ${shown}${more}`,
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
