/**
 * The copies of databases on this node: which there are is kept in its own values, so that a copy is never taken for a
 * database of this node alone. `reconcile` makes and removes copies until they are those that the cluster has registered.
 *
 * Invariants:
 * - A copy is noted before its folder is made, and forgotten after that is gone.
 * - A copy is removed only when the cluster says that its database was deleted, or has no copy here any more; not because
 *   the registry is silent about it.
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

/** Of the keys of the notes in a node's own values. */
export const copyPrefix = "cluster/copies/";

/** A copy, as noted. */
export interface Copy {
  readonly name: string;
  readonly id: string;
  readonly generation: number;
  readonly originTag: string;
  /** Does this node begin the stream? */
  readonly isSeed: boolean;
  /** Had it ever all that there was? */
  readonly isComplete: boolean;
}

export interface LocalCopiesOptions {
  readonly tag: string;
  /** Drawn for each opening: what a lost node led is led by one node or another then, and not all by the least patient. */
  readonly standAfterMs: () => number;
  readonly databases: () => Databases;
  readonly values: () => ValueStore;
  /** The stream of a database; `mayMake`: it is made when it is not there. */
  readonly stream: (id: string, generation: number, mayMake: boolean) => ReplicatedStream;
  readonly watcher: (copy: { readonly name: string; readonly id: string }) => ReplicationWatcher;
  /** Gets a content of an attachment from another node, by its name. */
  readonly fetchContent: (id: string, name: string) => Promise<AsyncIterable<Buffer> | null>;
}

export class LocalCopies {
  readonly #options: LocalCopiesOptions;
  /** Ids of databases whose copies had all that there was, once. */
  readonly #complete = new Set<string>();
  /** When a node was last known to lead them, by ids; by the clock that never jumps. */
  readonly #led = new Map<string, number>();
  /** Why copies could not be made or removed, by names in lower case. */
  readonly #failures = new Map<string, string>();
  /** Why copies do not go on, likewise. */
  readonly #troubles = new Map<string, string>();

  constructor(options: LocalCopiesOptions) {
    this.#options = options;
  }

  /** How the database of this name is replicated, for its opening; null: it is of this node alone. */
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

  /** Is the database of this name a copy? */
  has(name: string): boolean {
    return this.#noted(name) !== null;
  }

  /** Had the copy of that database all that there was, once? */
  isComplete(id: string): boolean {
    return this.#complete.has(id);
  }

  /** Notes that the copy has all that there is. */
  async completed(name: string): Promise<void> {
    const copy = this.#noted(name);
    if (copy === null) return;
    if (!copy.isComplete) await this.#note({ ...copy, isComplete: true });
    this.#complete.add(copy.id);
  }

  /** Notes that a node leads the database. */
  led(id: string): void {
    this.#led.set(id, performance.now());
  }

  /** When that was noted last; -infinity: never. */
  ledMs(id: string): number {
    return this.#led.get(id) ?? Number.NEGATIVE_INFINITY;
  }

  trouble(name: string): string | null {
    const lower = foldedName(name);
    return this.#troubles.get(lower) ?? this.#failures.get(lower) ?? null;
  }

  /** Sets or removes the reason why a copy does not go on. */
  setTrouble(name: string, reason: string | null): void {
    if (reason === null) this.#troubles.delete(foldedName(name));
    else this.#troubles.set(foldedName(name), reason);
  }

  /** The copy that is open; undefined: there is none now. */
  opened(name: string): Database | undefined {
    return this.#options.databases().peek(name);
  }

  /** Makes the copies those that are registered. Calls must not overlap. */
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

  /** Has this node, which is one of the cluster, no copy any more? One that left the cluster keeps its files. */
  #wasTaken({ members }: ClusterDatabase, registry: Registry): boolean {
    const { tag } = this.#options;
    return registry.members.has(tag) && !members.includes(tag);
  }

  /** A node that left the cluster takes no part in anything, and keeps its files. */
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
        `This node has a database '${name}' of its own, which is not the cluster's: it is left as it is, and there is no copy here. Start the node without its Cluster settings, export it, and delete it.`,
      );
    }
    if (isSeed && generation > 1 && noted === null && !isOwn) {
      throw new EngineError(
        "database-damaged",
        "This node has no files of it any more, and no other node has taken them: it was lost while it was becoming one of the cluster.",
      );
    }
    if (noted?.generation !== generation || noted.isSeed !== isSeed) {
      // One that was adopted has all that there is.
      const isComplete = isOwn || noted?.isComplete === true;
      await this.#note({ name, id, generation, originTag, isSeed, isComplete });
      if (noted !== null && noted.generation !== generation) await databases.unload(name);
    }
    // It was opened before it was noted as a copy.
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
