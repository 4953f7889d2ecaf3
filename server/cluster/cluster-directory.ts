/**
 * The databases of a node of a cluster, as the rest of the server sees them: those that the cluster has registered, and
 * those that this node had for itself before.
 */

import { randomBytes } from "node:crypto";
import { foldedName } from "../../engine/base/case-folding.ts";
import {
  type Database,
  type Databases,
  EngineError,
  type ShippedDatabase,
} from "../../engine/engine.ts";
import { type Cluster, hasRecord } from "./cluster.ts";
import type { ClusterDatabase } from "./cluster-view.ts";
import { copiesDefault, placesFor } from "./topology.ts";

export class ClusterDirectory {
  readonly #cluster: Cluster;
  readonly #databases: Databases;

  constructor(cluster: Cluster, databases: Databases) {
    this.#cluster = cluster;
    this.#databases = databases;
  }

  /** The copy of this node; undefined: it has none. @throws EngineError not-leader while a new database is being made */
  find(name: string): Database | undefined | Promise<Database | undefined> {
    const state = this.#cluster.find(name);
    if (state === undefined) {
      // One of this node alone; what is left of a copy is not served.
      return this.#cluster.isCopy(name) ? undefined : this.#databases.find(name);
    }
    if (state.role === null) return undefined;
    const { registered } = state;
    const found = this.#databases.find(name);
    if (found instanceof Promise) return found.then((one) => begun(one, registered));
    return begun(found, registered);
  }

  has(name: string): boolean {
    return this.#cluster.find(name) !== undefined || this.#databases.has(name);
  }

  names(): readonly string[] {
    const names = this.#cluster.databases().map(({ registered }) => registered.name);
    const own = this.#databases.names().filter((name) => !this.#cluster.isCopy(name));
    const all = new Map([...names, ...own].map((name) => [foldedName(name), name]));
    return [...all].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, name]) => name);
  }

  opened(): readonly Database[] {
    return this.#databases.opened();
  }

  failures(): ReadonlyMap<string, Error> {
    const troubles = this.#databases.failures();
    for (const { registered, trouble } of this.#cluster.databases()) {
      if (trouble !== null) troubles.set(registered.name, new Error(trouble));
    }
    return troubles;
  }

  /** On this node, and on others. */
  create(name: string, record: Readonly<Record<string, unknown>>): Promise<Database> {
    return this.#cluster.createDatabase(name, record, this.#membersOf(name));
  }

  /**
   * First one of this node alone, which is then adopted. The cluster may have the database that was shipped: then this is
   * another one, with an id of its own.
   */
  async createFromShipped(
    ...[name, record, throughMicros, add]: Parameters<Databases["createFromShipped"]>
  ): Promise<ShippedDatabase> {
    if (this.has(name)) {
      throw new EngineError("database-exists", `Database '${name}' already exists!`);
    }
    const newId = (shipped: string) => (this.#cluster.knows(shipped) ? randomId : shipped);
    const randomId = randomBytes(16).toString("hex");
    const made = await this.#databases.createFromShipped(name, record, throughMicros, add, newId);
    try {
      const database = await this.#cluster.adoptDatabase(name, this.#membersOf(name), true);
      return { ...made, database };
    } catch (error) {
      if (this.#cluster.find(name) === undefined) await this.#databases.delete(name);
      throw error;
    }
  }

  #membersOf(name: string): readonly string[] {
    const { tag } = this.#cluster;
    const others = placesFor(this.#cluster, name, this.#cluster.members().length);
    return [tag, ...others.filter((one) => one !== tag)].slice(0, copiesDefault);
  }

  async delete(name: string): Promise<boolean> {
    if (this.#cluster.find(name) !== undefined) return await this.#cluster.deleteDatabase(name);
    return this.#cluster.isCopy(name) ? false : await this.#databases.delete(name);
  }
}

/** @throws EngineError not-leader before the database has its record */
function begun(database: Database | undefined, { name }: ClusterDatabase): Database {
  if (database !== undefined && hasRecord(database)) return database;
  throw new EngineError(
    "not-leader",
    `This node has no copy of database '${name}' yet: try again soon.`,
  );
}
