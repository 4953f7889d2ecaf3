/**
 * The copies of databases that other nodes are taking from this one. Each begins with a base; while it is open, the
 * contents of attachments that belong to the base stay on the disk.
 *
 * Invariants:
 * - A copy that nobody asks about for `idleMs` ends: a node that vanished keeps nothing here.
 * - A node has one copy of a database open: the next one that it begins ends the one before.
 */
import { randomBytes } from "node:crypto";
import { EngineError } from "../../engine/base/errors.ts";
import type {
  Database,
  Guest,
  ReplicationMark,
  Shipment,
  ShippedFile,
} from "../../engine/engine.ts";

const usualIdleMs = 60_000;
/** Each keeps segments of a log, and contents, that are no longer needed. */
export const openCopiesMax = 8;

/** A copy that a node is taking. */
export interface OpenCopy {
  /** By which it is asked for. */
  readonly key: string;
  readonly database: Database;
  readonly base: ShippedFile;
  /** How far the base is a copy of the stream; null: it has nothing of it, or the database is not replicated. */
  readonly mark: ReplicationMark | null;
}

interface Kept extends OpenCopy {
  /** Of the node that takes it. */
  readonly tag: string;
  readonly shipment: Shipment;
  readonly guest: Guest;
  /** Requests in progress. */
  users: number;
  isBaseSent: boolean;
  timer: NodeJS.Timeout | undefined;
}

export class OpenCopies {
  readonly #find: (id: string) => Database | undefined;
  readonly #idleMs: number;
  readonly #open = new Map<string, Kept>();

  /** @param find the database of that id, when this node has it and it is open */
  constructor(find: (id: string) => Database | undefined, idleMs: number = usualIdleMs) {
    this.#find = find;
    this.#idleMs = idleMs;
  }

  get count(): number {
    return this.#open.size;
  }

  /** @throws EngineError database-missing, database-stopped */
  database(id: string): Database {
    const database = this.#find(id);
    if (database === undefined) {
      throw new EngineError("database-missing", `This node has no open database of the id ${id}.`);
    }
    database.assertServing();
    return database;
  }

  /**
   * Begins a copy for the node `tag`. It is in use until the returned `release` is called.
   * @throws EngineError as `database`, overloaded, not-supported for a database in memory
   */
  begin(id: string, tag: string): { readonly copy: OpenCopy; release(): void } {
    const database = this.database(id);
    for (const one of this.#open.values()) {
      if (one.tag === tag && one.database.id === id) this.#end(one);
    }
    if (this.#open.size >= openCopiesMax) {
      const message = `Other nodes take ${openCopiesMax} copies from this one at the moment. Try again later.`;
      throw new EngineError("overloaded", message);
    }
    // In one turn: the mark is not ahead of the base.
    const mark = database.replication?.mark ?? null;
    const { base, shipment } = database.shipping.begin();
    const key = randomBytes(16).toString("hex");
    const guest = database.enter(true);
    const copy = { key, database, base, mark };
    const kept: Kept = {
      ...copy,
      tag,
      shipment,
      guest,
      users: 0,
      isBaseSent: false,
      timer: undefined,
    };
    this.#open.set(key, kept);
    return { copy: kept, release: this.#use(kept) };
  }

  /** Marks the copy as in use until the returned function is called; undefined: it has ended. */
  use(key: string): { readonly copy: OpenCopy; release(): void } | undefined {
    const kept = this.#open.get(key);
    return kept === undefined ? undefined : { copy: kept, release: this.#use(kept) };
  }

  /** Nothing more is read of its base: the log keeps no old segments for that. */
  baseEnded(key: string): void {
    const kept = this.#open.get(key);
    if (kept !== undefined) this.#endBase(kept);
  }

  /** Ends it: the other node has everything, or gave up. @returns false: it had ended */
  end(key: string): boolean {
    const kept = this.#open.get(key);
    if (kept === undefined) return false;
    this.#end(kept);
    return true;
  }

  /** Ends all. */
  close(): void {
    for (const kept of this.#open.values()) this.#end(kept);
  }

  #use(kept: Kept): () => void {
    kept.users++;
    clearTimeout(kept.timer);
    let isUsed = true;
    return () => {
      if (!isUsed) return;
      isUsed = false;
      kept.users--;
      if (kept.users > 0 || this.#open.get(kept.key) !== kept) return;
      kept.timer = setTimeout(() => this.#end(kept), this.#idleMs).unref();
    };
  }

  #end(kept: Kept): void {
    clearTimeout(kept.timer);
    this.#open.delete(kept.key);
    this.#endBase(kept);
    kept.shipment.close();
    kept.guest.release();
  }

  #endBase(kept: Kept): void {
    if (!kept.isBaseSent) kept.base.release();
    kept.isBaseSent = true;
  }
}
