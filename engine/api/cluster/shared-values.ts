/**
 * The durable values that all nodes of a cluster share: a database of values of its own, replicated like any other. One
 * node at a time may change them; every node reads its own copy.
 */
import type { DatabaseCatalog } from "../database/database-catalog.ts";
import type { OpenDatabase } from "../database/open-database.ts";
import { Database } from "../database.ts";
import { type AddFiles, replaceFiles } from "./replaced-files.ts";
import { Replication } from "./replication.ts";
import { SystemValues } from "./system-values.ts";

const name = "values";

export class SharedValues {
  readonly #catalog: DatabaseCatalog;
  readonly #listeners = new Set<() => void>();
  /** The open database, or the last one before it stopped: it is read until another is open. */
  #current: OpenDatabase | null = null;
  #replication: Replication | null = null;
  readonly #values: SystemValues;

  constructor(catalog: DatabaseCatalog) {
    this.#catalog = catalog;
    this.#values = new SystemValues(() => this.#opened());
  }

  /** Opens the copy of this node, or makes an empty one. Before everything else. @throws EngineError database-damaged */
  async open(): Promise<void> {
    const found = await this.#catalog.find(name);
    this.#current = found ?? (await this.#catalog.createCopy(name));
    this.#listen(this.#current);
  }

  /** This node's copy as a database, to be shipped to other nodes. */
  get database(): Database {
    return Database.of(this.#opened());
  }

  /** See `replaceFiles`. */
  async replaceFiles(add: AddFiles): Promise<void> {
    await replaceFiles(this.#catalog, name, add);
  }

  /** Of this node's copy. */
  get replication(): Replication {
    const { replication } = this.#opened();
    if (replication === null) throw new Error("the values of a cluster are replicated");
    this.#replication ??= new Replication(replication);
    return this.#replication;
  }

  /** A number that grows with each change that this node has. */
  get index(): number {
    return this.replication.mark?.sequence ?? 0;
  }

  /** Returns a value of JSON; undefined: none. */
  get(key: string): unknown {
    return this.#values.get(key);
  }

  /**
   * Returns the keys that begin with `prefix` and their values, in order. Nothing may be changed during the iteration.
   */
  entries(prefix: string): Iterable<readonly [string, unknown]> {
    return this.#values.entries(prefix);
  }

  /** As `SystemValues.change`, on the node that leads. @throws EngineError concurrency, not-leader, outcome-unknown */
  change(...changes: Parameters<SystemValues["change"]>): Promise<void> {
    return this.#values.change(...changes);
  }

  /** Calls `listener` after each commit, of whatever node. @returns a function that removes it */
  onCommit(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the current copy: after a stop it is another one. */
  #opened(): OpenDatabase {
    const [open] = this.#catalog.opened();
    if (open !== undefined && open !== this.#current) {
      this.#current = open;
      this.#replication = null;
      this.#listen(open);
    }
    if (this.#current === null) throw new Error("the values of the cluster are not open yet");
    return this.#current;
  }

  #listen(database: OpenDatabase): void {
    database.feed.listenToCommits(() => {
      for (const listener of this.#listeners) listener();
    });
  }
}
