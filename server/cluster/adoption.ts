/**
 * Moves a standalone database of this node into the cluster with its whole log, which becomes the log of the first copy.
 * The other nodes fetch its files.
 *
 *     1. mark the log            later writes still go to this log alone
 *     2. create the stream       its generation follows the mark, so only this log can write the first message
 *     3. register the database   with this node as the origin; if any step fails before this, it remains standalone
 *     4. record it as a copy, close it, and open it as a copy (local-copies.ts): it writes the first message and leads
 *
 * Invariants:
 * - A name or an id that the cluster uses is never registered again, so no data is overwritten or mixed.
 * - No node fetches its files before step 4 is complete, so the files contain every earlier write.
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

interface AdoptionOptions {
  readonly tag: string;
  readonly registry: () => Registry;
  /** Returns the index of the last change of the cluster's values. */
  readonly index: () => number;
  readonly databases: () => Databases;
  readonly isCopy: (name: string) => boolean;
  /** Values of this node alone. */
  readonly own: () => ValueStore;
  readonly createStream: (id: StreamId) => Promise<ReplicatedStream>;
  readonly change: (changes: readonly ValueChange[]) => Promise<unknown>;
  readonly log: Log;
}

export class Adoption {
  readonly #options: AdoptionOptions;
  /** Reasons of failed adoptions, by folded database name. */
  readonly #failures = new Map<string, string>();
  #triedMs = Number.NEGATIVE_INFINITY;

  constructor(options: AdoptionOptions) {
    this.#options = options;
  }

  /** Standalone databases of this node, each with the reason of its last failed adoption. */
  get own(): { readonly name: string; readonly failure: string | null }[] {
    const { databases, isCopy } = this.#options;
    return databases()
      .names()
      .filter((name) => !isCopy(name))
      .map((name) => ({ name, failure: this.#failures.get(foldedName(name)) ?? null }));
  }

  /** Adopts the databases of the bootstrap record one by one, and retries failures after `retryMs`. */
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
            `Database '${name}' is not adopted yet and remains standalone. The next attempt follows: ${message}`,
          );
        }
        this.#failures.set(foldedName(name), message);
        this.#triedMs = performance.now();
      }
    }
  }

  /**
   * Registers a standalone database with copies on `members`, which must include this node.
   * @param isRestored whether the database was just restored from a backup for the cluster
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
      throw refused(`Database '${name}' is being restored. Wait until the restore has finished.`);
    }
    const mark = await databases().markAsSeed(name);
    const generation = mark.generation + 1;
    const stream = await createStream({ databaseId: id, generation });
    if ((await stream.bounds()).last > 0) {
      throw refused(
        `NATS already has a stream of the database '${name}' (${id}), from another cluster. Export the database, and import it into a new one.`,
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
      // The stream is retained: an earlier attempt with an unknown outcome may have registered it, and the next one uses it.
      throw new EngineError(
        "concurrency",
        `The cluster was changed during the adoption of '${name}', which remains a database of node ${tag} alone. Try again.`,
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
      throw refused(`The database '${registered.name}' already belongs to the cluster.`);
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
        `The cluster already has another database '${name}'. The database of node ${tag} is unchanged: start the node without its Cluster settings, export it there, and import it under another name.`,
      );
    }
    const same = [...databases.values()].find((one) => one.id === id);
    if (same === undefined && !deleted.has(id)) return;
    const what = same === undefined ? "a deleted database" : `the database '${same.name}'`;
    throw refused(
      `'${name}' of node ${tag} was created from the same files as ${what} of the cluster, and both have the id ${id}. Export the database, and import it into a new one.`,
    );
  }

  /** Returns the changes that copy the server's values for periodic backups of the database. */
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

/** Returns whether another node is about to import a database of that name, so that the name is taken. */
export function isImported(bootstrap: BootstrapRecord | null, name: string, own: string): boolean {
  if (bootstrap === null || bootstrap.tag === own) return false;
  return bootstrap.databases.some((one) => foldedName(one) === foldedName(name));
}

/** Returns the change that removes the name from the bootstrap record, if the record contains it. */
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
