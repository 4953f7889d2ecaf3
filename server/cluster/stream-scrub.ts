/**
 * Checks the replicas of the streams on all NATS servers at the start and every minute, and repairs damage: see
 * nats/stream-remedies.ts. Every node does this, not only the leader of the cluster: each reports to its own operator, the
 * scrub must work without a leader, and only a node itself can stop its nats-server.
 *
 * Invariants:
 * - One node at a time wipes a replica, under a claim in the shared values. Only the replica of the shared values
 *   themselves is wiped without a claim, when no node can write them.
 * - A failed check causes no action.
 */
import { EngineError } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ScrubState } from "./cluster-health.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { Nats } from "./nats/nats.ts";
import type { StreamProblem } from "./nats/replica-scrub.ts";
import { type Remedy, remediesOf } from "./nats/stream-remedies.ts";
import { streamIdOf } from "./nats/stream-settings.ts";
import { RepairClaim } from "./repair-claim.ts";

/** Delay of the first check, in milliseconds, so that the servers of a starting cluster can find each other. */
const firstMs = 5_000;
const intervalMs = 60_000;
/** Interval of the checks while a problem exists, in milliseconds. */
const troubledMs = 10_000;
/** Minimum time between two checks, in milliseconds. */
const pauseMs = 3_000;

interface StreamScrubOptions {
  readonly nats: () => Pick<Nats, "look" | "lead" | "repair" | "ownServer">;
  readonly log: Log;
  /** This node and the shared values. */
  readonly cluster: Pick<ClusterView, "tag" | "value" | "change">;
  /** Database id of the shared values. */
  readonly sharedId: string;
  /** Returns whether this node is the one, among those with heartbeats, that transfers the leadership of streams. */
  readonly isFirst: () => boolean;
  /** Removes the messages from a database's stream that the logs of the nodes contain. Resolves to false if this node does not lead it. */
  readonly purge: (id: string) => Promise<boolean>;
  /** Reopens the stopped copy of a database. */
  readonly restart: (id: string) => void;
  /** Returns the name of a database for log messages. */
  readonly nameOf: (id: string) => string;
}

export class StreamScrub {
  readonly #options: StreamScrubOptions;
  readonly #claim: RepairClaim;
  readonly #blocked = new Set<string>();
  readonly #logged = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #dueMs = Number.POSITIVE_INFINITY;
  #running: Promise<void> | null = null;
  #isStopped = false;
  #problems: readonly StreamProblem[] = [];
  #state: ScrubState | null = null;

  constructor(options: StreamScrubOptions) {
    this.#options = options;
    this.#claim = new RepairClaim(options.cluster);
  }

  /** Result of the last check, or null before the first one. */
  get state(): ScrubState | null {
    return this.#state;
  }

  start(): void {
    this.#schedule(firstMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#running;
  }

  /** Schedules a check soon, because the node has found an inconsistency. */
  soon(): void {
    if (this.#state !== null) this.#schedule(pauseMs);
  }

  /** Records that the copy of a database has stopped because of its stream. It is reopened when the stream is intact. */
  blocked(id: string): void {
    this.#blocked.add(id);
    this.soon();
  }

  #schedule(ms: number): void {
    const dueMs = performance.now() + ms;
    if (this.#isStopped || (this.#timer !== null && this.#dueMs <= dueMs)) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#running !== null) return;
      this.#running = this.#run().finally(() => {
        this.#running = null;
        this.#schedule(this.#isTroubled ? troubledMs : intervalMs);
      });
    }, ms).unref();
  }

  get #isTroubled(): boolean {
    return this.#problems.length > 0 || this.#blocked.size > 0;
  }

  async #run(): Promise<void> {
    const { nats, log } = this.#options;
    const atMs = Date.now();
    try {
      const look = await nats().look();
      const before = this.#problems;
      this.#problems = look.problems;
      this.#state = { atMs, problems: look.problems, failure: null };
      await this.#claim.releaseLeft();
      for (const remedy of remediesOf(look, before)) {
        if (this.#isStopped) return;
        await this.#apply(remedy);
      }
      this.#restartBlocked();
    } catch (error) {
      if (!(error instanceof EngineError)) log.report("The scrub of NATS failed", error);
      this.#problems = [];
      this.#state = { atMs, problems: [], failure: (error as Error).message };
    }
  }

  async #apply(remedy: Remedy): Promise<void> {
    const { nats, log, isFirst, purge } = this.#options;
    const name = this.#nameOf(remedy.stream);
    try {
      switch (remedy.kind) {
        case "lead":
          if (!isFirst()) return;
          log.warn(
            `${remedy.server} takes over the stream of ${name}: the leading replica is damaged`,
            {
              event: "replica-repair",
            },
          );
          await nats().lead(remedy.stream, remedy.server);
          return;
        case "wipe":
          if (remedy.server === nats().ownServer) await this.#wipe(remedy.stream, name);
          else if (nats().ownServer === undefined) this.#logAdvice(remedy, name);
          return;
        case "purge":
          if (!(await purge(idOf(remedy.stream)))) return;
          log.warn(
            `Most replicas of the stream of ${name} are damaged. The messages that the logs of the nodes contain were removed from it`,
            { event: "replica-repair" },
          );
          return;
        default:
          return;
      }
    } catch (error) {
      // Retried after the next check.
      const failure = `The stream of ${name} could not be repaired: ${(error as Error).message}`;
      log.warn(failure, { event: "replica-repair" });
    }
  }

  async #wipe(stream: string, name: string): Promise<void> {
    const { nats, log, sharedId } = this.#options;
    const isClaimed = await this.#claim.take(stream).catch((error: unknown) => {
      // The damaged stream is that of the shared values, so no claim can be written.
      if (error instanceof EngineError && idOf(stream) === sharedId) return true;
      throw error;
    });
    if (!isClaimed) return;
    try {
      const outcome = await nats().repair(stream);
      if (outcome.kind === "refused") {
        log.info(`The local replica of ${name} is not wiped: ${outcome.reason}`);
        return;
      }
      const isWhole = outcome.kind === "repaired";
      const how = isWhole ? "is intact again" : "was wiped, and is copied from the others";
      log.info(`The local replica of the stream of ${name} ${how}`, { event: "replica-repaired" });
    } finally {
      await this.#claim.release();
    }
  }

  /** Logs once what an operator can do where no node may stop the server. */
  #logAdvice({ stream, server }: Remedy & { kind: "wipe" }, name: string): void {
    const key = `${server} ${stream}`;
    if (this.#logged.has(key) || !this.#options.isFirst()) return;
    this.#logged.add(key);
    this.#options.log.write(
      "Error",
      `The replica of the stream of ${name} on ${server} is damaged; the others are intact. Stop ${server}, remove the folder ${stream} of its store (jetstream/ACCOUNT/streams/${stream}), and start it`,
      { event: "replica-repair" },
    );
  }

  /** Reopens copies that had stopped because of a stream that is intact now. */
  #restartBlocked(): void {
    const bad = new Set(
      this.#problems.filter(({ kind }) => kind !== "unsafe").map(({ stream }) => idOf(stream)),
    );
    for (const id of this.#blocked) {
      if (bad.has(id)) continue;
      this.#blocked.delete(id);
      this.#options.restart(id);
    }
  }

  #nameOf(stream: string): string {
    return this.#options.nameOf(idOf(stream));
  }
}

function idOf(stream: string): string {
  return streamIdOf(stream)?.databaseId ?? "";
}
