/**
 * The periodic work of a node: it makes its copies of databases agree with the registry, trims the streams that it leads,
 * and registers nodes, as the leader of the shared values. It also runs the cluster bootstrap.
 *
 * Invariants:
 * - The runs of one kind of work do not overlap.
 * - After `stop` no work begins; once that has resolved, none is in progress.
 */

import { type Database, EngineError, type SharedValues } from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { Adoption } from "./adoption.ts";
import type { ClusterBootstrap } from "./cluster-bootstrap.ts";
import type { ClusterDatabase, ClusterMember } from "./cluster-view.ts";
import type { LocalCopies } from "./local-copies.ts";
import type { MembershipTable } from "./membership-table.ts";
import { Registrar } from "./registrar.ts";
import { databaseKey, type Registry } from "./registry.ts";
import type { ReplicaPositions } from "./replica-positions.ts";
import type { SharedChanges } from "./shared-changes.ts";

const tickMs = 500;
/** Interval of trims of the streams, in milliseconds. */
const trimMs = 60_000;

interface DutyOptions {
  readonly tag: string;
  readonly log: Log;
  readonly registry: () => Registry;
  readonly shared: () => SharedValues;
  readonly changes: () => SharedChanges;
  readonly removeStream: (id: string, generation: number) => Promise<unknown>;
  /** Whether this node leads the shared values. */
  readonly leads: () => boolean;
  /** This node. */
  readonly member: () => ClusterMember;
  readonly copies: LocalCopies;
  readonly membership: MembershipTable;
  readonly positions: ReplicaPositions;
  readonly bootstrap: ClusterBootstrap;
  readonly adoption: Adoption;
  /** Trims the streams that this node leads. */
  readonly trim: () => Promise<void>;
}

export class ClusterDuties {
  readonly #options: DutyOptions;
  readonly #registrar: Registrar;
  /** The work in progress, by the message for its failure. */
  readonly #running = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  /** Whether the registry has changed, or some time has passed, since the copies were last reconciled. */
  #isStale = true;
  #isStopped = false;
  #trimmedMs = performance.now();

  constructor(options: DutyOptions) {
    this.#options = options;
    this.#registrar = new Registrar({
      change: (changes) => options.changes().changeHere(changes),
      removeStream: options.removeStream,
    });
  }

  start(): void {
    this.#timer = setInterval(() => this.#tick(), tickMs).unref();
    this.#tick();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    await Promise.all(this.#running.values());
  }

  /** The registry has changed. */
  changed(): void {
    this.#isStale = true;
  }

  reconcileSoon(): void {
    if (!this.#isStale || this.#timer === null) return;
    const failure = "The copies of this node could not be reconciled with the registry";
    // Also reports an EngineError: for example, the disk is full.
    this.#begin(failure, () =>
      this.#reconcile().catch((error: unknown) => this.#options.log.report(failure, error)),
    );
  }

  #tick(): void {
    const { bootstrap, adoption, trim, leads, member, membership, registry } = this.#options;
    this.#isStale = true;
    this.reconcileSoon();
    if (performance.now() - this.#trimmedMs >= trimMs) {
      this.#begin("The streams were not trimmed", () => {
        this.#trimmedMs = performance.now();
        return trim();
      });
    }
    this.#begin("The bootstrap failed", async () => {
      await bootstrap.work();
      await adoption.work();
    });
    if (!leads()) return;
    const present = [member(), ...membership.present()];
    this.#begin("The registry failed", () => this.#registrar.work(registry(), present));
  }

  /** Begins work, unless the same is in progress. The next tick retries after an EngineError; others are reported. */
  #begin(failure: string, work: () => Promise<void>): void {
    if (this.#isStopped || this.#running.has(failure)) return;
    const run = work()
      .catch((error: unknown) => {
        if (!(error instanceof EngineError)) this.#options.log.report(failure, error);
      })
      .finally(() => this.#running.delete(failure));
    this.#running.set(failure, run);
  }

  async #reconcile(): Promise<void> {
    const { tag, registry: known, shared, copies, positions } = this.#options;
    while (this.#isStale && !this.#isStopped) {
      this.#isStale = false;
      const registry = known();
      shared().replication.abstain(registry.removed.has(tag));
      await copies.reconcile(registry);
      positions.keep(registry.databases.values());
      for (const registered of registry.databases.values()) {
        await this.#beginStream(registered);
        const { id, name } = registered;
        if (!copies.isComplete(id) && this.#hasAll(registered)) await copies.completed(name);
      }
    }
  }

  /** Returns whether this node's copy has everything that the leader last reported. */
  #hasAll({ id, name, members }: ClusterDatabase): boolean {
    const { copies, membership } = this.#options;
    const replication = copies.opened(name)?.replication;
    if (replication === null || replication === undefined) return false;
    if (replication.role === "leader") return true;
    const { role, applied } = replication.heartbeat;
    const leader = membership.leaderOf(id, members);
    if (role !== "follower" || leader === null || applied === 0) return false;
    return applied >= membership.appliedBy(leader, id);
  }

  /** Writes the record of a new database as its first leader, and registers that its stream has begun. */
  async #beginStream(registered: ClusterDatabase): Promise<void> {
    const { name, generation, initialRecord, isSeeded } = registered;
    const database = this.#options.copies.opened(name);
    if (database?.replication?.role !== "leader") return;
    const { replication } = database;
    try {
      if (!hasRecord(database)) await database.changeSettings(() => initialRecord);
      if (isSeeded) return;
      // An adopted database has no message in its stream yet. With this one, other copies can become current.
      if (replication.mark?.generation !== generation) await replication.noteTrim(0);
      await this.#options.changes().change([
        {
          key: databaseKey(name),
          expected: JSON.stringify(registered),
          value: JSON.stringify({ ...registered, isSeeded: true }),
        },
      ]);
    } catch (error) {
      // The next leader retries, or this node in the next tick.
      if (!(error instanceof EngineError)) throw error;
    }
  }
}

/** Returns whether the database has the record that its creator gave it. */
export function hasRecord(database: Database): boolean {
  return Object.keys(database.settings).length > 0;
}
