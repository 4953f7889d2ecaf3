/**
 * Administration of one database's indexes: deploy, replace, lock, pause, and persist across restarts. Definitions are
 * durable; entries are in memory, and in snapshots (index-snapshots.ts).
 *
 * Invariants:
 * - When `deploy` or another change resolves, its effect survives a restart.
 * - Some index has yet to read the tombstones above `lastDeletionEtagNeeded`.
 */

import { foldedName } from "../../base/case-folding.ts";
import type { Clock, Timer } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json/json-object.ts";
import { staticIndexesMax } from "../../base/limits.ts";
import { AutomaticIndex } from "../../indexing/automatic-index.ts";
import { covers, type IndexDefinition } from "../../indexing/definitions/index-definition.ts";
import {
  type DeploymentOptions,
  isCSharp,
  isCSharpIndex,
  isSameIndex,
  parseDeploymentOptions,
  parseStaticDefinition,
  type StaticDefinition,
} from "../../indexing/definitions/static-definition.ts";
import type { IndexProgram } from "../../indexing/index-program.ts";
import { IndexSet, replacementPrefix } from "../../indexing/index-set.ts";
import type { IndexLockMode, IndexPriority, OpenIndex } from "../../indexing/open-index.ts";
import { StaticIndex } from "../../indexing/static-index.ts";
import { automaticIndexName } from "../../queries/analysis/auto-index-name.ts";
import { collectionIdNamed } from "../../queries/rows/query-rows.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { compileIndex } from "./index-compiler.ts";
import { IndexedDocuments } from "./index-documents.ts";
import {
  type Deployer,
  dropRevisions,
  type IndexRevision,
  keepRevision,
  revisionOf,
  revisionsKept,
} from "./index-history.ts";
import { IndexSnapshots, type IndexSnapshotsOptions } from "./index-snapshots.ts";

/** Interval of the check for unused indexes. */
const tidyMs = 60_000;

/** The deployer when there is no server. */
const embeddedDeployer: Deployer = { source: "Jackdaw", commandIndex: 0 };

/** The stored form of an index. */
type StoredIndex = (
  | { readonly kind: "automatic"; readonly definition: IndexDefinition }
  | { readonly kind: "static"; readonly definition: StaticDefinition }
) & {
  readonly priority: IndexPriority;
  readonly lockMode: IndexLockMode;
  readonly isDisabled: boolean;
  /** Missing in records of versions that did not keep it. */
  readonly createdAtMicros?: number;
};

interface Deployment {
  readonly definition: StaticDefinition;
  readonly options: DeploymentOptions;
  readonly program: IndexProgram;
  readonly revision: IndexRevision;
}

export class IndexAdministration {
  readonly indexes: IndexSet;
  readonly documents: IndexedDocuments;
  readonly #database: Store;
  readonly #clock: Clock;
  readonly #snapshots: IndexSnapshots | null;
  #tidyTimer: Timer | null = null;
  readonly #stopListening: () => void;
  /** The last write of a definition, in progress or done. */
  #writing: Promise<void> = Promise.resolve();
  /** Writes of the current change, for its caller to await. */
  #awaited: Promise<unknown>[] | null = null;
  #isRestoring = true;
  #isClosed = false;
  #hasIndexes = false;
  #isPaused = false;

  /** `place`: where snapshots are kept; null: none are. */
  constructor(
    database: Store,
    clock: Clock,
    place: ConstructorParameters<typeof IndexSnapshots>[2] | null,
    options: IndexSnapshotsOptions | undefined,
  ) {
    this.#database = database;
    this.#clock = clock;
    this.documents = new IndexedDocuments(database, clock, {
      indexChanged: (index) => this.#added(index),
      indexDropped: (name) => {
        this.#write([[name, null]]);
        this.#snapshots?.prune();
      },
      indexAdvanced: (name) => {
        const index = this.indexes.byName(name);
        if (index !== undefined) this.#snapshots?.advanced(index);
      },
      wake: () => this.indexes.wake(),
      indexReplaced: (name, index) => {
        this.#write([
          [name, null],
          [index.name, index],
        ]);
        this.#snapshots?.prune();
      },
    });
    this.indexes = new IndexSet(this.documents, automaticIndexName);
    this.#snapshots =
      place === null
        ? null
        : new IndexSnapshots(database, this.documents, place, () => this.indexes.all(), options);
    this.#stopListening = database.state.feed.listenToCommits(() => {
      if (this.#hasIndexes) this.indexes.wake();
    });
    this.#restore();
    this.#tidyLater();
  }

  /** Returns the size of an index's newest snapshot in bytes, or 0. */
  snapshotBytesOf(index: OpenIndex): number {
    return this.#snapshots?.bytesOf(index) ?? 0;
  }

  /**
   * The tombstone watermark: every index concerned has processed the deletions up to this etag, so none needs their
   * tombstones.
   */
  get lastDeletionEtagNeeded(): number {
    const { tombstones } = this.#database.state.keyspaces;
    let needed = Number.MAX_SAFE_INTEGER;
    for (const index of this.indexes.all()) {
      // A failed index reads no more: only a rebuild creates a working one.
      if (index.failure !== null || index.invalidity !== null) continue;
      const saved = this.#snapshots?.deletionEtagsOf(index) ?? [];
      for (const { collection, deletionEtag } of [...index.index.sources, ...saved]) {
        const isBehind = tombstones.newestEtagOf(collection) > deletionEtag;
        if (isBehind) needed = Math.min(needed, deletionEtag);
      }
    }
    return needed;
  }

  /** Null when every index is restored. */
  get restored(): Promise<void> | null {
    return this.#snapshots?.restored ?? null;
  }

  /** Whether all indexes are paused, which lasts until they are resumed or the server restarts. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    for (const index of this.indexes.all()) index.isPaused = isPaused;
    this.indexes.wake();
  }

  /**
   * Deploys indexes, all or none: creates new ones, and builds a replacement beside each that differs, which is swapped
   * in when it has caught up. Resolves when the definitions are durable.
   * @param mayBeCSharp false: C# is refused without being parsed
   * @param deployer named in the history of the indexes
   * @returns the names in the order of `definitions`
   * @throws EngineError invalid-argument, invalid-format, index-compilation, index-creation, not-supported,
   * access-refused
   */
  async deploy(
    definitions: readonly JsonObject[],
    mayBeCSharp: boolean,
    deployer: Deployer = embeddedDeployer,
  ): Promise<string[]> {
    const deployments = definitions.map((json) => this.#prepare(json, mayBeCSharp, deployer));
    refuseSameNames(deployments.map(({ definition }) => definition.name));
    for (const { definition } of deployments) this.#requireDeployable(definition);
    for (const deployment of deployments) this.#requireOutput(deployment);
    await this.#durably(() => {
      for (const deployment of deployments) this.#deployOne(deployment);
    });
    return deployments.map(({ definition }) => definition.name);
  }

  /**
   * Returns whether deploying this would change the index of its name. @throws EngineError invalid-argument,
   * invalid-format
   */
  hasChanged(json: JsonObject): boolean {
    const definition = parseStaticDefinition(json);
    const { lockMode, priority } = parseDeploymentOptions(json);
    const known = this.indexes.byName(definition.name);
    if (!(known instanceof StaticIndex)) return true;
    const isSame = isSameIndex(known.definition, definition);
    return !isSame || known.lockMode !== lockMode || known.priority !== priority;
  }

  /**
   * Returns the names of the index's fields; empty if they are known only after its maps have run. @throws EngineError
   * index-compilation, invalid-argument
   */
  fieldsOf(json: JsonObject): string[] {
    const program = compileIndex(parseStaticDefinition(json), this.#database, this.#clock);
    return [...(program.fieldNames ?? [])];
  }

  /** Resolves when durable. @returns false if the index does not exist @throws EngineError index-deletion */
  async delete(name: string): Promise<boolean> {
    const index = this.indexes.byName(name);
    if (index === undefined) return false;
    if (index.lockMode === "LockedIgnore") return true;
    if (index.lockMode === "LockedError") {
      throw new EngineError(
        "index-deletion",
        `Failed to delete index '${index.name}'. Cannot delete existing index ${index.name} with lock mode LockedError`,
      );
    }
    await this.#durably(() => {
      this.indexes.drop(replacementPrefix + name);
      this.indexes.drop(name);
      this.#change((transaction) => dropRevisions(transaction, name));
    });
    return true;
  }

  /** Swaps in the replacement of an index before it has caught up. @throws EngineError index-missing */
  async replace(name: string): Promise<void> {
    const replacement = this.indexes.byName(replacementPrefix + name);
    if (replacement === undefined) {
      const isThere = this.indexes.byName(name) !== undefined;
      throw new EngineError(
        "index-missing",
        isThere
          ? `Could not find side-by-side index for '${name}'.`
          : `Could not find '${name}' and '${replacementPrefix}${name}' indexes.`,
      );
    }
    await this.#durably(() => this.indexes.replace(replacement));
  }

  /** Persists an index's lock mode, priority and state. Resolves when they are durable. */
  async save(index: OpenIndex): Promise<void> {
    await this.#durably(() => this.#write([[index.name, index]]));
  }

  /** Stops the indexes. Definitions being written still are. `withSnapshots`: the contents of the indexes are saved. */
  async close(withSnapshots: boolean): Promise<void> {
    this.#isClosed = true;
    // A pending timer would keep the whole database in memory.
    this.#tidyTimer?.cancel();
    this.#stopListening();
    this.indexes.close();
    await this.indexes.rested();
    await this.#snapshots?.close(withSnapshots);
    await this.#writing;
  }

  #prepare(json: JsonObject, mayBeCSharp: boolean, deployer: Deployer): Deployment {
    const definition = parseStaticDefinition(json);
    const { name, maps } = definition;
    if (!mayBeCSharp && maps.some(isCSharp)) {
      throw new EngineError(
        "access-refused",
        `Index ${name} is a C# index but was sent through a non-admin endpoint using REST api, this is not allowed.`,
      );
    }
    const options = parseDeploymentOptions(json);
    const revision = revisionOf(definition, json, deployer, this.#clock.nowMicros());
    const program = compileIndex(definition, this.#database, this.#clock);
    return { definition, options, program, revision };
  }

  /** @throws EngineError index-creation */
  #requireDeployable({ name }: StaticDefinition): void {
    const refuse = (reason: string): never => {
      throw new EngineError("index-creation", `Failed to create index '${name}'. ${reason}`);
    };
    if (foldedName(name).startsWith(foldedName(replacementPrefix))) {
      throw new EngineError(
        "invalid-argument",
        `Index name must not start with '${replacementPrefix}'. Provided index name: '${name}'`,
      );
    }
    const known = this.indexes.byName(name);
    if (known === undefined) {
      const count = this.indexes.all().filter(({ isStatic }) => isStatic).length;
      if (count >= staticIndexesMax) refuse(`There are ${count} indexes; more are not allowed.`);
      return;
    }
    if (known.name !== name) refuse(`An index '${known.name}' exists, whose name differs in case.`);
    if (known.lockMode === "LockedError") {
      refuse(`Cannot edit existing index ${name} with lock mode LockedError`);
    }
  }

  /** Checks that it may store reduced objects in its output collection. @throws EngineError index-output */
  #requireOutput({ definition, program }: Deployment): void {
    const { name, output = null, reduce } = definition;
    if (output === null || reduce === null) return;
    const known = this.indexes.byName(name);
    const before = known instanceof StaticIndex ? (known.definition.output ?? null) : null;
    const others = this.indexes.all().filter((index) => index !== known);
    refuseOutput(definition, output.collection, program, others);
    if (before !== null && isSameName(before.collection, output.collection)) return;
    const { documents } = this.#database.state;
    const id = collectionIdNamed(this.#database.state, output.collection);
    const count = documents.countOfCollection(id);
    if (count === 0) return;
    throw outputError(
      definition,
      `Index '${name}' is defined to output the Reduce results to documents in Collection '${output.collection}'. ` +
        `This collection currently has ${count} document${count === 1 ? " " : "s"}. ` +
        `All documents in Collection '${output.collection}' must be deleted first.`,
    );
  }

  /** Returns the definition as stored: with the number used in the ids of its output documents. */
  #numbered(definition: StaticDefinition, known: OpenIndex | undefined): StaticDefinition {
    const { output = null } = definition;
    if (output === null) return definition;
    const before = known instanceof StaticIndex ? (known.definition.output ?? null) : null;
    const isElsewhere = before !== null && !isSameName(before.collection, output.collection);
    const formerCollection = isElsewhere ? before.collection : null;
    const number = this.#database.state.lastEtag + 1;
    return { ...definition, output: { ...output, number, formerCollection } };
  }

  #deployOne({ definition, options, program, revision }: Deployment): void {
    const known = this.indexes.byName(definition.name);
    if (known?.lockMode === "LockedIgnore") return;
    const replacementName = replacementPrefix + definition.name;
    if (known instanceof StaticIndex && isSameIndex(known.definition, definition)) {
      this.indexes.drop(replacementName);
      known.setOptions(options);
      this.#write([[known.name, known]]);
      this.#keep({ ...revision, definition: known.definition });
      return;
    }
    const name = known === undefined ? definition.name : replacementName;
    const numbered = this.#numbered(definition, known);
    const index = new StaticIndex({ ...numbered, name }, program, this.documents);
    index.setOptions(options);
    this.indexes.addStatic(index);
    this.#keep({ ...revision, definition: numbered });
  }

  /** Records a deployed definition in the index's history. */
  #keep(revision: IndexRevision): void {
    const countMax = revisionsKept(this.documents.setting("Indexing.History.NumberOfRevisions"));
    this.#change((transaction) => keepRevision(transaction, revision, countMax));
  }

  #restore(): void {
    const { indexDefinitions } = this.#database.state.keyspaces;
    for (const [key, json] of indexDefinitions.withPrefix("")) {
      this.#restoreOne(key, json as unknown as StoredIndex);
    }
    this.#isRestoring = false;
    const indexes = this.indexes.all();
    if (indexes.length > 0) this.#snapshots?.restore(indexes, () => this.indexes.wake());
  }

  #restoreOne(key: string, stored: StoredIndex): void {
    const index =
      stored.kind === "static"
        ? this.#restoreStatic(stored.definition)
        : this.indexes.restore(stored.definition, nameUnder(key, stored.definition));
    setOptions(index, stored);
  }

  /** Applies index definitions that the leader changed, by key. This node builds the indexes itself. */
  follow(keys: readonly string[]): void {
    const { indexDefinitions } = this.#database.state.keyspaces;
    // The definitions are stored already and are not written again.
    this.#isRestoring = true;
    try {
      for (const key of keys) {
        const stored = indexDefinitions.get(key) as unknown as StoredIndex | undefined;
        if (stored !== undefined) this.#followOne(key, stored);
      }
      // Dropped after the loop: a replacement that was swapped in no longer exists under its old name.
      for (const key of keys) if (indexDefinitions.get(key) === undefined) this.indexes.drop(key);
    } finally {
      this.#isRestoring = false;
    }
    this.#snapshots?.prune();
    this.indexes.wake();
  }

  #followOne(key: string, stored: StoredIndex): void {
    const name =
      stored.kind === "static" ? stored.definition.name : nameUnder(key, stored.definition);
    const known = this.indexes.byName(name);
    if (known !== undefined && isOf(known, stored)) {
      setOptions(known, stored);
      return;
    }
    const replacement = this.indexes.byName(replacementPrefix + name);
    if (known !== undefined && replacement !== undefined && isOf(replacement, stored)) {
      this.indexes.replace(replacement);
      setOptions(replacement, stored);
      return;
    }
    if (known !== undefined) this.indexes.drop(name);
    this.#restoreOne(key, stored);
  }

  /** Returns a definition that no longer compiles becomes an index that does not run. */
  #restoreStatic(definition: StaticDefinition): StaticIndex {
    let program = noProgram;
    let failure: Error | null = null;
    try {
      program = compileIndex(definition, this.#database, this.#clock);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      failure = error;
    }
    const index = new StaticIndex(definition, program, this.documents);
    index.failure = failure;
    this.indexes.addStatic(index);
    return index;
  }

  #added(index: OpenIndex): void {
    // It may have replaced an index of the same name.
    if (!this.#isRestoring) this.#snapshots?.prune();
    this.#hasIndexes = true;
    index.isPaused = this.#isPaused;
    this.#write([[index.name, index]]);
  }

  /** Makes changes and waits for their writes. @throws EngineError when they cannot be written */
  async #durably(change: () => void): Promise<void> {
    this.#awaited = [];
    change();
    const writes = this.#awaited;
    this.#awaited = null;
    await Promise.all(writes);
  }

  /** A background write may fail (a full disk); the index is then not persisted, and is created again when needed. */
  #write(changes: readonly (readonly [string, OpenIndex | null])[]): void {
    if (this.#isRestoring || this.#isClosed) return;
    const { indexDefinitions } = this.#database.state.keyspaces;
    this.#change((transaction) => {
      for (const [name, index] of changes) {
        const key = foldedName(name);
        if (index === null && transaction.entry(indexDefinitions, key) === undefined) continue;
        const value = index === null ? undefined : storedOf(index);
        transaction.putEntry(indexDefinitions, key, value as unknown as JsonObject | undefined);
      }
    });
  }

  #change(change: (transaction: Transaction) => void): void {
    const written = this.#database.write(change);
    this.#awaited?.push(written);
    this.#writing = Promise.allSettled([this.#writing, written]).then(() => undefined);
  }

  #tidyLater(): void {
    this.#tidyTimer = this.#clock.setTimer(tidyMs, () => {
      if (this.#isClosed) return;
      this.indexes.tidy();
      this.#tidyLater();
    });
  }
}

/** Applies the options that are stored with the definition. */
function setOptions(index: OpenIndex, stored: StoredIndex): void {
  index.priority = stored.priority;
  index.lockMode = stored.lockMode;
  index.isDisabled = stored.isDisabled;
  index.createdAtMicros = stored.createdAtMicros ?? index.openedAtMicros;
}

/** Returns the name of an automatic index that is stored under a key, which is in lower case. */
function nameUnder(key: string, definition: IndexDefinition): string {
  const name = automaticIndexName(definition);
  return key.startsWith(foldedName(replacementPrefix)) ? replacementPrefix + name : name;
}

/** Returns whether the index has this definition or, for an automatic index, covers it, regardless of its options. */
function isOf(index: OpenIndex, stored: StoredIndex): boolean {
  if (stored.kind === "static") {
    return index instanceof StaticIndex && isSameIndex(index.definition, stored.definition);
  }
  return index instanceof AutomaticIndex && covers(index.definition, stored.definition);
}

/** RavenDB 7.2.7 reports the reason for an index in C#, and an AggregateException of it for one in JavaScript. */
function outputError(definition: StaticDefinition, reason: string): EngineError {
  return isCSharpIndex(definition)
    ? new EngineError("index-invalid", reason)
    : new EngineError("index-output", `One or more errors occurred. (${reason})`);
}

/** Refuses names in one request that differ in nothing but case. @throws EngineError index-creation */
function refuseSameNames(names: readonly string[]): void {
  const known = new Map<string, string>();
  for (const name of names) {
    const other = known.get(name.toLowerCase());
    if (other !== undefined && other !== name) {
      throw new EngineError(
        "index-creation",
        `The names of the indexes '${other}' and '${name}' differ in nothing but case.`,
      );
    }
    known.set(name.toLowerCase(), name);
  }
}

/**
 * Refuses an index that would read its own output, directly or through other indexes.
 * @throws EngineError index-output, index-invalid
 */
function refuseOutput(
  definition: StaticDefinition,
  collection: string,
  program: IndexProgram,
  others: readonly OpenIndex[],
): void {
  const refuse = (reason: string): never => {
    throw outputError(
      definition,
      `It is forbidden to create the '${definition.name}' index which would output reduce results to documents in the ` +
        `'${collection}' collection, as ${reason}`,
    );
  };
  const reads = (sources: readonly (string | null)[], wanted: string) =>
    sources.some((one) => one === null || isSameName(one, wanted));
  if (reads([...program.collections, ...program.referencedCollections], collection)) {
    refuse(
      `this index is mapping or referencing the '${collection}' collection and this will result in an infinite loop.`,
    );
  }
  const outputs = others.flatMap((index) =>
    index instanceof StaticIndex && index.definition.output ? [index] : [],
  );
  const same = outputs.find(({ definition }) =>
    isSameName(definition.output?.collection ?? "", collection),
  );
  if (same !== undefined) {
    refuse(
      `there is another index named '${same.name}' which also output reduce results to documents in the same ` +
        `'${collection}' collection. OutputReduceToCollection must by set to unique value for each index or be null`,
    );
  }
  const open = [collection];
  const seen = new Set<StaticIndex>();
  for (let source = open.pop(); source !== undefined; source = open.pop()) {
    for (const index of outputs) {
      const { program: other, definition: known } = index;
      const from = source;
      if (seen.has(index) || !reads([...other.collections, ...other.referencedCollections], from)) {
        continue;
      }
      seen.add(index);
      const next = known.output?.collection ?? "";
      if (reads([...program.collections, ...program.referencedCollections], next)) {
        refuse(
          `'${collection}' collection is consumed by other index in a way that would lead to an infinite loop: ` +
            `'${index.name}' makes '${next}' of it.`,
        );
      }
      open.push(next);
    }
  }
}

function isSameName(left: string, right: string): boolean {
  return foldedName(left) === foldedName(right);
}

function storedOf(index: OpenIndex): StoredIndex | undefined {
  const { priority, lockMode, isDisabled, createdAtMicros } = index;
  const kept = { priority, lockMode, isDisabled, createdAtMicros };
  if (index instanceof AutomaticIndex) {
    return { kind: "automatic", definition: index.definition, ...kept };
  }
  if (!(index instanceof StaticIndex)) return undefined;
  return { kind: "static", definition: { ...index.definition, name: index.name }, ...kept };
}

/** Placeholder for definitions that do not compile. */
const noProgram: IndexProgram = {
  collections: [],
  referencedCollections: [],
  fieldNames: null,
  isReduce: false,
  map: () => ({
    entries: [],
    values: [],
    references: new Set(),
    compareExchangeKeys: new Set(),
    failure: null,
  }),
  reduce: () => null,
  fieldsOf: () => [],
};
