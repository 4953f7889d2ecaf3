/**
 * Copies of databases that other nodes are fetching from this one. Each begins with a base. While the copy is open, the
 * contents of attachments that belong to its base stay on the disk.
 *
 * Invariants:
 * - A copy without requests for `idleMs` is closed, so a node that vanished retains nothing here.
 * - A node has at most one open copy of a database: opening another one closes the first.
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
/** Maximum number of open copies. Each retains segments of a log, and contents, that are otherwise not needed. */
export const openCopiesMax = 8;

/** A copy that another node is fetching. */
export interface OpenCopy {
  /** Identifies the copy in requests. */
  readonly key: string;
  readonly database: Database;
  readonly base: ShippedFile;
  /** Position of the base in the stream, or null if it contains no message of it or the database is not replicated. */
  readonly mark: ReplicationMark | null;
}

interface Kept extends OpenCopy {
  /** Tag of the node that fetches the copy. */
  readonly tag: string;
  readonly shipment: Shipment;
  readonly guest: Guest;
  /** Number of requests in progress. */
  users: number;
  isBaseSent: boolean;
  timer: NodeJS.Timeout | undefined;
}

export class OpenCopies {
  readonly #find: (id: string) => Database | undefined;
  readonly #idleMs: number;
  readonly #open = new Map<string, Kept>();

  /** @param find returns the database of that id if this node has it open */
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
      throw new EngineError(
        "database-missing",
        `This node has no open database with the id ${id}.`,
      );
    }
    database.assertServing();
    return database;
  }

  /**
   * Opens a copy for the node `tag`. The copy is in use until the returned `release` is called.
   * @throws EngineError as `database`, overloaded, not-supported for a database in memory
   */
  begin(id: string, tag: string): { readonly copy: OpenCopy; release(): void } {
    const database = this.database(id);
    for (const one of this.#open.values()) {
      if (one.tag === tag && one.database.id === id) this.#end(one);
    }
    if (this.#open.size >= openCopiesMax) {
      const message = `Other nodes are already fetching ${openCopiesMax} copies from this one. Try again later.`;
      throw new EngineError("overloaded", message);
    }
    // Taken in the same event-loop tick, so that the mark is not ahead of the base.
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

  /** Marks the copy as in use until `release` is called. Returns undefined if the copy is closed. */
  use(key: string): { readonly copy: OpenCopy; release(): void } | undefined {
    const kept = this.#open.get(key);
    return kept === undefined ? undefined : { copy: kept, release: this.#use(kept) };
  }

  /** Ends reading of the base, so that the log need not retain its old segments. */
  baseEnded(key: string): void {
    const kept = this.#open.get(key);
    if (kept !== undefined) this.#endBase(kept);
  }

  /** Closes a copy that is complete or was aborted. @returns false if it was closed already */
  end(key: string): boolean {
    const kept = this.#open.get(key);
    if (kept === undefined) return false;
    this.#end(kept);
    return true;
  }

  /** Closes all copies. */
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
