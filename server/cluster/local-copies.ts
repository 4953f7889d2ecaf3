/**
 * The copies of databases on this node. The list is stored in the node's own values, so that a copy is never treated as a
 * standalone database. `reconcile` creates and removes copies until they match the registry of the cluster.
 *
 * Invariants:
 * - A copy is recorded before its folder is created, and the record is removed after the folder.
 * - A copy is removed only if the cluster has deleted its database or removed the copy from this node, and never because
 *   the registry does not contain it.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import {
  type Database,
  type Databases,
  EngineError,
  type ReplicatedStream,
  type ReplicationOptions,
  type ReplicationWatcher,
} from "../../engine/engine.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { ClusterDatabase } from "./cluster-view.ts";
import type { Registry } from "./registry.ts";

/** Key prefix of the records of copies in a node's own values. */
export const copyPrefix = "cluster/copies/";

/** The record of a copy. */
export interface Copy {
  readonly name: string;
  readonly id: string;
  readonly generation: number;
  readonly originTag: string;
  /** Whether this node writes the first message of the stream. */
  readonly isSeed: boolean;
  /** Whether the copy was complete once. */
  readonly isComplete: boolean;
}

interface LocalCopiesOptions {
  readonly tag: string;
  /** Returns the patience before candidacy, in milliseconds. It is random, so that several nodes take over from a lost one. */
  readonly standAfterMs: () => number;
  readonly databases: () => Databases;
  readonly values: () => ValueStore;
  /** Opens the stream of a database; with `mayMake`, creates it if it does not exist. */
  readonly stream: (id: string, generation: number, mayMake: boolean) => ReplicatedStream;
  readonly watcher: (copy: { readonly name: string; readonly id: string }) => ReplicationWatcher;
  /** Fetches a content of an attachment from another node, by its name. */
  readonly fetchContent: (id: string, name: string) => Promise<AsyncIterable<Buffer> | null>;
}

export class LocalCopies {
  readonly #options: LocalCopiesOptions;
  /** Ids of databases whose copies were complete once. */
  readonly #complete = new Set<string>();
  /** Last time at which a node led the database, by id, on the monotonic clock. */
  readonly #led = new Map<string, number>();
  /** Reasons why copies could not be created or removed, by folded name. */
  readonly #failures = new Map<string, string>();
  /** Reasons why copies have stopped, by folded name. */
  readonly #troubles = new Map<string, string>();

  constructor(options: LocalCopiesOptions) {
    this.#options = options;
  }

  /** Returns the replication options for opening the database, or null if it is standalone. */
  replicationOf(name: string): ReplicationOptions | null {
    const copy = this.#noted(name);
    if (copy === null) return null;
    const { tag, standAfterMs, stream, watcher, fetchContent } = this.#options;
    return {
      databaseId: copy.id,
      originTag: copy.originTag,
      stream: stream(copy.id, copy.generation, copy.isSeed),
      generation: copy.generation,
      tag,
      standAfterMs: standAfterMs(),
      isSeed: copy.isSeed,
      watcher: watcher(copy),
      fetchContent: (content) => fetchContent(copy.id, content),
    };
  }

  /** Returns whether the database of this name is a copy. */
  has(name: string): boolean {
    return this.#noted(name) !== null;
  }

  /** Returns whether the copy of that database was complete once. */
  isComplete(id: string): boolean {
    return this.#complete.has(id);
  }

  /** Records that the copy is complete. */
  async completed(name: string): Promise<void> {
    const copy = this.#noted(name);
    if (copy === null) return;
    if (!copy.isComplete) await this.#note({ ...copy, isComplete: true });
    this.#complete.add(copy.id);
  }

  /** Records that a node leads the database now. */
  led(id: string): void {
    this.#led.set(id, performance.now());
  }

  /** Returns the time of the last call of `led`, or -infinity. */
  ledMs(id: string): number {
    return this.#led.get(id) ?? Number.NEGATIVE_INFINITY;
  }

  trouble(name: string): string | null {
    const lower = foldedName(name);
    return this.#troubles.get(lower) ?? this.#failures.get(lower) ?? null;
  }

  /** Sets or removes the reason why a copy has stopped. */
  setTrouble(name: string, reason: string | null): void {
    if (reason === null) this.#troubles.delete(foldedName(name));
    else this.#troubles.set(foldedName(name), reason);
  }

  /** Returns the open copy, or undefined. */
  opened(name: string): Database | undefined {
    return this.#options.databases().peek(name);
  }

  /** Creates and removes copies according to the registry. Calls must not overlap. */
  async reconcile(registry: Registry): Promise<void> {
    for (const copy of [...this.#all()]) {
      if (copy.isComplete) this.#complete.add(copy.id);
      const registered = registry.databases.get(foldedName(copy.name));
      const isOther = registered === undefined || registered.id !== copy.id;
      if (isOther ? registry.deleted.has(copy.id) : this.#wasTaken(registered, registry)) {
        await this.#attempt(copy.name, () => this.#remove(copy));
      }
    }
    if (registry.removed.has(this.#options.tag)) {
      await this.#closeAll();
      return;
    }
    for (const registered of registry.databases.values()) {
      if (!registered.members.includes(this.#options.tag)) continue;
      await this.#attempt(registered.name, () => this.#make(registered));
    }
  }

  /** Returns whether this node is a member of the cluster and no longer has a copy. A node that left keeps its files. */
  #wasTaken({ members }: ClusterDatabase, registry: Registry): boolean {
    const { tag } = this.#options;
    return registry.members.has(tag) && !members.includes(tag);
  }

  /** Closes all copies. A node that left the cluster keeps its files. */
  async #closeAll(): Promise<void> {
    const databases = this.#options.databases();
    for (const { name } of [...this.#all()]) {
      if (databases.peek(name) === undefined) continue;
      await this.#attempt(name, () => databases.unload(name));
    }
  }

  async #attempt(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failures.delete(foldedName(name));
    } catch (error) {
      this.#failures.set(foldedName(name), (error as Error).message);
    }
  }

  async #make(registered: ClusterDatabase): Promise<void> {
    const { name, id, generation, originTag, isSeeded } = registered;
    const databases = this.#options.databases();
    const noted = this.#noted(name);
    if (noted !== null && noted.id !== id) return; // removed first
    const isSeed = !isSeeded && originTag === this.#options.tag;
    const isOwn = noted === null && databases.has(name);
    if (isOwn && !(isSeed && (await databases.find(name))?.id === id)) {
      throw new EngineError(
        "database-exists",
        `This node has a standalone database '${name}', which is not the cluster's. It is unchanged, and no copy is created here. Start the node without its Cluster settings, export the database, and delete it.`,
      );
    }
    if (isSeed && generation > 1 && noted === null && !isOwn) {
      throw new EngineError(
        "database-damaged",
        "This node no longer has the files of the database, and no other node has fetched them: they were lost while the database was being adopted.",
      );
    }
    if (noted?.generation !== generation || noted.isSeed !== isSeed) {
      // An adopted database is complete.
      const isComplete = isOwn || noted?.isComplete === true;
      await this.#note({ name, id, generation, originTag, isSeed, isComplete });
      if (noted !== null && noted.generation !== generation) await databases.unload(name);
    }
    // It was opened before it was recorded as a copy.
    if (databases.peek(name)?.replication === null) await databases.unload(name);
    if (!databases.has(name)) await databases.createCopy(name);
    else await databases.find(name);
  }

  async #note(copy: Copy): Promise<void> {
    await this.#options.values().put(keyOf(copy.name), JSON.stringify(copy));
  }

  async #remove({ name, id }: Copy): Promise<void> {
    this.#complete.delete(id);
    this.#led.delete(id);
    await this.#options.databases().delete(name);
    await this.#options.values().delete(keyOf(name));
    this.setTrouble(name, null);
  }

  *#all(): Generator<Copy> {
    for (const [, text] of this.#options.values().entries(copyPrefix))
      yield JSON.parse(text) as Copy;
  }

  #noted(name: string): Copy | null {
    const text = this.#options.values().get(keyOf(name));
    return text === undefined ? null : (JSON.parse(text) as Copy);
  }
}

function keyOf(name: string): string {
  return copyPrefix + foldedName(name);
}
