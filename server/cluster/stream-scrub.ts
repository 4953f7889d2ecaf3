/**
 * Looks at the replicas of the streams on all servers of NATS, at the start and every minute, and mends what it finds: see
 * nats/stream-remedies.ts. Every node looks, not only the one that leads the cluster: each tells its own operator, it must
 * work while nobody leads, and only a node itself can stop its nats-server.
 *
 * Invariants:
 * - One node at a time wipes a replica: it claims that in the cluster's values before. Only the replica of these values
 *   themselves is wiped without, when nobody can write them.
 * - What a look does not show is not acted on: a failed look changes nothing.
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

/** Before the first look: the servers of a cluster that is started find each other first. */
const firstMs = 5_000;
const intervalMs = 60_000;
/** Until the next look while something is wrong. */
const troubledMs = 10_000;
/** The least between two looks. */
const pauseMs = 3_000;

export interface StreamScrubOptions {
  readonly nats: () => Pick<Nats, "look" | "lead" | "repair" | "ownServer">;
  readonly log: Log;
  /** Of this node, and the values that all nodes share. */
  readonly cluster: Pick<ClusterView, "tag" | "value" | "change">;
  /** The id of these values. */
  readonly sharedId: string;
  /** Is this the node that says who leads streams? One of those that are heard. */
  readonly isFirst: () => boolean;
  /** Removes from the stream of a database, by its id, what the nodes have in their logs. false: it is not led here */
  readonly purge: (id: string) => Promise<boolean>;
  /** Opens the copy of a database again, which did not go on. */
  readonly restart: (id: string) => void;
  /** The name of a database, for the operator. */
  readonly nameOf: (id: string) => string;
}

export class StreamScrub {
  readonly #options: StreamScrubOptions;
  readonly #claim: RepairClaim;
  readonly #blocked = new Set<string>();
  readonly #told = new Set<string>();
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

  /** The last look; null: there was none yet. */
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

  /** Looks soon: a node has met something that should not be. */
  soon(): void {
    if (this.#state !== null) this.#schedule(pauseMs);
  }

  /** Notes that the copy of a database does not go on for what its stream shows. It is tried again when that is sound. */
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
            `${remedy.server} is to lead the stream of ${name}: the replica that does is damaged`,
            {
              event: "replica-repair",
            },
          );
          await nats().lead(remedy.stream, remedy.server);
          return;
        case "wipe":
          if (remedy.server === nats().ownServer) await this.#wipe(remedy.stream, name);
          else if (nats().ownServer === undefined) this.#tellHow(remedy, name);
          return;
        case "purge":
          if (!(await purge(idOf(remedy.stream)))) return;
          log.warn(
            `Most replicas of the stream of ${name} are damaged: what the nodes have in their own logs was removed from it`,
            { event: "replica-repair" },
          );
          return;
        default:
          return;
      }
    } catch (error) {
      // It is tried again after the next look.
      const told = `The stream of ${name} could not be mended: ${(error as Error).message}`;
      log.warn(told, { event: "replica-repair" });
    }
  }

  async #wipe(stream: string, name: string): Promise<void> {
    const { nats, log, sharedId } = this.#options;
    const isClaimed = await this.#claim.take(stream).catch((error: unknown) => {
      // Nobody can write the values of which the stream itself is damaged.
      if (error instanceof EngineError && idOf(stream) === sharedId) return true;
      throw error;
    });
    if (!isClaimed) return;
    try {
      const outcome = await nats().repair(stream);
      if (outcome.kind === "refused") {
        log.info(`The replica of ${name} here is not wiped: ${outcome.reason}`);
        return;
      }
      const isWhole = outcome.kind === "repaired";
      const how = isWhole ? "is whole again" : "was wiped, and comes back from the others";
      log.info(`The replica of the stream of ${name} here ${how}`, { event: "replica-repaired" });
    } finally {
      await this.#claim.release();
    }
  }

  /** What an operator can do where no node may stop the server. Once. */
  #tellHow({ stream, server }: Remedy & { kind: "wipe" }, name: string): void {
    const key = `${server} ${stream}`;
    if (this.#told.has(key) || !this.#options.isFirst()) return;
    this.#told.add(key);
    this.#options.log.write(
      "Error",
      `The replica of the stream of ${name} on ${server} is damaged. The others are sound: stop ${server}, remove the folder ${stream} of its store (jetstream/ACCOUNT/streams/${stream}), and start it`,
      { event: "replica-repair" },
    );
  }

  /** Copies that did not go on for what their stream showed, which is sound now. */
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
