/**
 * The databases of a cluster node, as the rest of the server sees them: databases registered in the cluster, and
 * standalone databases of this node.
 */

import { randomBytes } from "node:crypto";
import { foldedName } from "../../engine/base/case-folding.ts";
import {
  type Database,
  type Databases,
  EngineError,
  type ShippedDatabase,
} from "../../engine/engine.ts";
import type { Cluster } from "./cluster.ts";
import { hasRecord } from "./cluster-duties.ts";
import type { ClusterDatabase } from "./cluster-view.ts";
import { copiesDefault, placesFor } from "./topology.ts";

export class ClusterDirectory {
  readonly #cluster: Cluster;
  readonly #databases: Databases;

  constructor(cluster: Cluster, databases: Databases) {
    this.#cluster = cluster;
    this.#databases = databases;
  }

  /** Returns this node's copy, or undefined if it has none. @throws EngineError not-leader while a new database is being created */
  find(name: string): Database | undefined | Promise<Database | undefined> {
    const state = this.#cluster.find(name);
    if (state === undefined) {
      // A standalone database. Files of a removed copy are not served.
      return this.#cluster.isCopy(name) ? undefined : this.#databases.find(name);
    }
    if (state.role === null) return undefined;
    const { registered } = state;
    const found = this.#databases.find(name);
    if (found instanceof Promise) return found.then((one) => whenBegun(one, registered));
    return whenBegun(found, registered);
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

  uses(): ReturnType<Databases["uses"]> {
    return this.#databases.uses();
  }

  failures(): ReadonlyMap<string, Error> {
    const troubles = this.#databases.failures();
    for (const { registered, trouble } of this.#cluster.databases()) {
      if (trouble !== null) troubles.set(registered.name, new Error(trouble));
    }
    return troubles;
  }

  /** Creates a database with copies on this node and others. */
  create(name: string, record: Readonly<Record<string, unknown>>): Promise<Database> {
    return this.#cluster.createDatabase(name, record, this.#membersOf(name));
  }

  /**
   * Creates a standalone database from shipped files, then adopts it. If the cluster already has the shipped database, the
   * new one gets its own id.
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

/** Returns the database once it has its record. @throws EngineError not-leader before that */
function whenBegun(database: Database | undefined, { name }: ClusterDatabase): Database {
  if (database !== undefined && hasRecord(database)) return database;
  throw new EngineError(
    "not-leader",
    `This node has no copy of database '${name}' yet. Try again soon.`,
  );
}
