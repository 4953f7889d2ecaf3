/** One copy of a database that several nodes have: its replication state, and requests to it. */

import type { ReplicationMark } from "../../state/keyspaces/replication-marks.ts";
import type { Heartbeat, ReplicaRole } from "../../storage/replication/replica-types.ts";
import type { DatabaseReplication, ReplicationWatcher } from "../database/database-replication.ts";

export type { Heartbeat as ReplicaHeartbeat, ReplicationMark, ReplicationWatcher };

export class Replication {
  readonly #replication: DatabaseReplication;

  constructor(replication: DatabaseReplication) {
    this.#replication = replication;
  }

  get role(): ReplicaRole {
    return this.#replication.role;
  }

  /** The tag of the node that leads; null: not known. */
  get leaderTag(): string | null {
    return this.#replication.leaderTag;
  }

  /** Position of this copy's log in the stream; null if it has no frame of it. */
  get mark(): ReplicationMark | null {
    return this.#replication.mark;
  }

  /** The last message of the stream that readers of this copy see; 0: none of the present generation. */
  get visible(): number {
    return this.#replication.visible;
  }

  /** Resolves when `visible` is at least `sequence`; false: it was not for `ms`, or this copy has stopped. */
  whenVisible(sequence: number, ms: number): Promise<boolean> {
    return this.#replication.whenVisible(sequence, ms);
  }

  /** Contents of attachments that are missing on this node, as far as it knows: they are being fetched. */
  get missingContents(): number {
    return this.#replication.missingContents;
  }

  /** See `DatabaseReplication.noteTrim`. */
  noteTrim(below: number): Promise<void> {
    return this.#replication.noteTrim(below);
  }

  /** The heartbeat that this node sends to the others. */
  get heartbeat(): Heartbeat {
    return this.#replication.heartbeat;
  }

  /** Processes a heartbeat of another node. */
  heard(heartbeat: Heartbeat): void {
    this.#replication.heard(heartbeat);
  }

  /** Tries to lead in place of the node that does, whose open writes then fail as not written. */
  stand(): void {
    this.#replication.stand();
  }

  /** Excludes this node from leading until called with false. */
  abstain(isAbstaining: boolean): void {
    this.#replication.abstain(isAbstaining);
  }

  /** Restarts replication from its files, if it has stopped: the cause may no longer exist. */
  restart(): void {
    this.#replication.restart();
  }

  /** Lets another node lead. Writes in flight fail with an unknown outcome. */
  resign(): void {
    this.#replication.resign();
  }

  /**
   * Resolves when it is certain that this node led after the call: whatever any node acknowledged before is then visible
   * here. @throws EngineError not-leader, outcome-unknown
   */
  confirm(): Promise<void> {
    return this.#replication.confirm();
  }
}
