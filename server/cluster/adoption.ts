/**
 * Makes a database of this node alone one of the cluster, with all that is in it. Its log goes on as that of the first
 * copy, and the other nodes take its files.
 *
 *     1. it is marked            what is written from here on is written to this log alone, as before
 *     2. its stream is made      of the generation after the mark, so that nobody can begin it but this log
 *     3. it is registered        with this node as the origin; until then it is of this node alone, whatever fails
 *     4. it is noted as a copy, closed, and opened as one (local-copies.ts): it begins the stream, and leads
 *
 * Invariants:
 * - A name, or an id, that the cluster has is never registered again, so nothing is overwritten or mixed.
 * - No node takes files from it before step 4 has ended: what is written until then is in them.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import {
  type Database,
  type Databases,
  EngineError,
  type ReplicatedStream,
} from "../../engine/engine.ts";
import type { Log } from "../logging/log.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { ClusterDatabase, ValueChange } from "./cluster-view.ts";
import { type BootstrapRecord, bootstrapKey, databaseKey, type Registry } from "./registry.ts";

const retryMs = 5_000;

interface StreamId {
  readonly databaseId: string;
  readonly generation: number;
}

export interface AdoptionOptions {
  readonly tag: string;
  readonly registry: () => Registry;
  /** Of the last change of the cluster's values. */
  readonly index: () => number;
  readonly databases: () => Databases;
  readonly isCopy: (name: string) => boolean;
  /** Of this node alone. */
  readonly own: () => ValueStore;
  readonly createStream: (id: StreamId) => Promise<ReplicatedStream>;
  readonly change: (changes: readonly ValueChange[]) => Promise<unknown>;
  readonly log: Log;
}

export class Adoption {
  readonly #options: AdoptionOptions;
  /** Why databases could not be adopted, by names in lower case. */
  readonly #failures = new Map<string, string>();
  #triedMs = Number.NEGATIVE_INFINITY;

  constructor(options: AdoptionOptions) {
    this.#options = options;
  }

  /** Databases of this node alone, and why they still are, as far as they were tried. */
  get own(): { readonly name: string; readonly failure: string | null }[] {
    const { databases, isCopy } = this.#options;
    return databases()
      .names()
      .filter((name) => !isCopy(name))
      .map((name) => ({ name, failure: this.#failures.get(foldedName(name)) ?? null }));
  }

  /** Adopts what this node founded the cluster with, one database after another, again until that has succeeded. */
  async work(): Promise<void> {
    const { tag, registry, databases, isCopy, change, log } = this.#options;
    const { bootstrap } = registry();
    if (bootstrap?.tag !== tag || bootstrap.databases.length === 0) return;
    if (performance.now() - this.#triedMs < retryMs) return;
    for (const name of bootstrap.databases) {
      const isGone = !databases().has(name) || isCopy(name);
      try {
        if (isGone) await change(without(registry().bootstrap, name));
        else await this.adopt(name, [tag]);
        this.#failures.delete(foldedName(name));
      } catch (error) {
        const { message } = error as Error;
        if (this.#failures.get(foldedName(name)) !== message) {
          log.warn(
            `Database '${name}' stays one of this node alone, until another try: ${message}`,
          );
        }
        this.#failures.set(foldedName(name), message);
        this.#triedMs = performance.now();
      }
    }
  }

  /**
   * Registers a database of this node alone with copies on `members`, of which this node must be one.
   * @param isRestored it was made of a backup just now, for the cluster
   * @throws EngineError database-missing, database-exists, invalid-operation, stream-unavailable, outcome-unknown
   */
  async adopt(
    wanted: string,
    members: readonly string[],
    isRestored = false,
  ): Promise<ClusterDatabase> {
    const { tag, databases, createStream, index, change, registry } = this.#options;
    const database = await this.#found(wanted);
    const { name, id, settings } = database;
    this.#check(name, id);
    if (!isRestored && settings["DatabaseState"] !== undefined) {
      throw refused(`'${name}' is being restored: wait until that has ended.`);
    }
    const mark = await databases().markAsSeed(name);
    const generation = mark.generation + 1;
    const stream = await createStream({ databaseId: id, generation });
    if ((await stream.bounds()).last > 0) {
      throw refused(
        `NATS has a stream of the database '${name}' (${id}) already, of another cluster that it was in: export it, and import it into a new database.`,
      );
    }
    const registered: ClusterDatabase = {
      name,
      id,
      generation,
      members,
      originTag: tag,
      isSeeded: false,
      initialRecord: settings,
      index: index() + 1,
    };
    try {
      await change([
        { key: databaseKey(name), expected: null, value: JSON.stringify(registered) },
        ...without(registry().bootstrap, name),
        ...this.#valuesOf(name),
      ]);
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "concurrency") throw error;
      // The stream stays: an earlier try whose outcome was unknown may have registered it, and the next one uses it.
      throw new EngineError(
        "concurrency",
        `The cluster was changed while '${name}' was being adopted: it is one of node ${tag} alone, try again.`,
      );
    }
    return registered;
  }

  async #found(name: string): Promise<Database> {
    const { databases, isCopy, tag, registry } = this.#options;
    const registered = registry().databases.get(foldedName(name));
    const database = isCopy(name) ? undefined : await databases().find(name);
    if (database !== undefined) return database;
    if (registered !== undefined) {
      throw refused(`The database '${registered.name}' is one of the cluster already.`);
    }
    throw new EngineError("database-missing", `Node ${tag} has no database '${name}' of its own.`);
  }

  /** @throws EngineError database-exists, invalid-operation */
  #check(name: string, id: string): void {
    const { tag, registry } = this.#options;
    const { databases, deleted, bootstrap } = registry();
    if (databases.has(foldedName(name)) || isImported(bootstrap, name, tag)) {
      throw new EngineError(
        "database-exists",
        `The cluster has another database '${name}' already. That of node ${tag} is left as it is: start the node without its Cluster settings, export it there, and import it under another name.`,
      );
    }
    const same = [...databases.values()].find((one) => one.id === id);
    if (same === undefined && !deleted.has(id)) return;
    const what = same === undefined ? "a database that was deleted" : `the database '${same.name}'`;
    throw refused(
      `'${name}' of node ${tag} was made of the same files as ${what} of the cluster, and both have the id ${id}: export it, and import it into a new database.`,
    );
  }

  /** What the server keeps for its periodic backups. */
  #valuesOf(name: string): ValueChange[] {
    const own = this.#options.own();
    const lower = foldedName(name);
    const task = own.get(`server/periodic-backups/${lower}`);
    return [
      ...(task === undefined ? [] : [{ key: `server/periodic-backups/${lower}`, value: task }]),
      ...[...own.entries(`server/backup-secrets/${lower}/`)].map(([key, value]) => ({
        key,
        value,
      })),
    ];
  }
}

/** Has another node founded the cluster with a database of that name, which is not adopted yet? */
export function isImported(bootstrap: BootstrapRecord | null, name: string, own: string): boolean {
  if (bootstrap === null || bootstrap.tag === own) return false;
  return bootstrap.databases.some((one) => foldedName(one) === foldedName(name));
}

/** Takes the name from those that are brought, if it is one. */
function without(bootstrap: BootstrapRecord | null, name: string): ValueChange[] {
  if (bootstrap === null) return [];
  const databases = bootstrap.databases.filter((one) => foldedName(one) !== foldedName(name));
  if (databases.length === bootstrap.databases.length) return [];
  const after: BootstrapRecord = { ...bootstrap, databases };
  return [{ key: bootstrapKey, expected: JSON.stringify(bootstrap), value: JSON.stringify(after) }];
}

function refused(message: string): EngineError {
  return new EngineError("invalid-operation", message);
}
