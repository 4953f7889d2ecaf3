/** Indexes of a database: deployed by definition, or made for queries. Names are found in any letter case. */
import { foldedName } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import type { JsonObject } from "../base/json/json-object.ts";
import { newIndexWaitMs } from "../base/limits.ts";
import { runSteps } from "../base/scheduling/steps.ts";
import { WorkBudget } from "../base/scheduling/work-budget.ts";
import { definitionJson, recordedDefinitionJson } from "../indexing/definitions/definition-json.ts";
import {
  lockModes,
  parseStaticDefinition,
  priorities,
  sourceOfDefinition,
  typeOfDefinition,
} from "../indexing/definitions/static-definition.ts";
import type { IndexBatch } from "../indexing/index-batches.ts";
import { fieldOfColumn } from "../indexing/map-index.ts";
import type { OpenIndex } from "../indexing/open-index.ts";
import { StaticIndex } from "../indexing/static-index.ts";
import { onIndex } from "../queries/execution/execute-find.ts";
import { safeHash } from "../queries/rows/query-rows.ts";
import { type Deployer, historiesOf } from "../services/index-hosting/index-history.ts";
import {
  type IndexTrial,
  type TrialRequest,
  tryIndex,
} from "../services/index-hosting/index-trial.ts";
import type { OpenDatabase } from "./database/open-database.ts";
import {
  type AutomaticIndexInfo,
  automaticIndexes,
  type IndexDetails,
  type IndexInfo,
  type IndexLockMode,
  type IndexPriority,
  indexDetails,
  indexInfo,
} from "./index-info.ts";

export type { IndexTrial };
export { lockModes as indexLockModes, priorities as indexPriorities };

/** Selection of indexes: one, those with or without a reduce, or, with neither given, all. */
interface IndexSelection {
  readonly name?: string | undefined;
  readonly isReduce?: boolean | undefined;
}

/** The indexes that were awaited. */
interface AwaitedIndexes {
  readonly count: number;
  /** Names of the indexes that were still stale in the end, and of the paused ones among them. */
  readonly stale: readonly string[];
  readonly paused: readonly string[];
}

interface TermsRequest {
  readonly field: string;
  /** The term after which the page begins; "": the first term. */
  readonly after: string;
  readonly countMax: number;
  readonly signal?: AbortSignal | undefined;
}

interface IndexTerms {
  /** Name of the index, in the case of its creation. */
  readonly name: string;
  /** In byte order. */
  readonly terms: readonly string[];
  /** Changes when the index does. */
  readonly resultEtag: number;
}

/** A definition that was deployed under some name. */
export interface DeployedDefinition {
  /** As in a database record, with the options as sent. */
  readonly definition: JsonObject;
  /** Name of the user who deployed it. */
  readonly source: string;
  /** Microseconds since 1970. */
  readonly createdAtMicros: number;
}

export class Indexes {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  // Reading

  /** Returns all names, in order. */
  names(): string[] {
    return this.#all().map(({ name }) => name);
  }

  /** Returns all indexes, ordered by name. */
  list(): IndexInfo[] {
    return this.#all().map(indexInfo);
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  /** @throws EngineError index-missing */
  get(name: string): IndexInfo {
    return indexInfo(this.#require(name));
  }

  /** Returns all indexes with details that are more expensive to compute. Cost: O(documents still to be processed). */
  listDetails(): IndexDetails[] {
    const { settings } = this.#database;
    const nowMicros = this.#database.clock.nowMicros();
    return this.#all().map((index) => indexDetails(index, settings, nowMicros));
  }

  /** @throws EngineError index-missing. Cost: as `listDetails` */
  details(name: string): IndexDetails {
    const { settings, clock } = this.#database;
    return indexDetails(this.#require(name), settings, clock.nowMicros());
  }

  /** Returns the last batches of each index, oldest first. */
  batches(): { readonly name: string; readonly batches: readonly IndexBatch[] }[] {
    return this.#all().map(({ name, batches }) => ({ name, batches: batches.list }));
  }

  /** Returns the automatic indexes, ordered by name. */
  listAutomatic(): AutomaticIndexInfo[] {
    return automaticIndexes(this.#all());
  }

  /** Returns the definition in the JSON form of the interface. @throws EngineError index-missing */
  definition(name: string): JsonObject {
    return definitionJson(this.#require(name));
  }

  /** Returns the definitions that were deployed under each name, newest first. */
  histories(): Map<string, DeployedDefinition[]> {
    const histories = new Map<string, DeployedDefinition[]>();
    for (const [name, revisions] of historiesOf(this.#database.state)) {
      const deployed = revisions.map(
        ({ definition, options, commandIndex, source, createdAtMicros }) => ({
          definition: recordedDefinitionJson(definition, options, commandIndex),
          source,
          createdAtMicros,
        }),
      );
      histories.set(name, deployed);
    }
    return histories;
  }

  /** How many definitions are stored. */
  get definitionCount(): number {
    return this.#database.state.keyspaces.indexDefinitions.count;
  }

  /** Returns the etag of an index's newest definition; undefined when none is stored. */
  definitionEtag(name: string): number | undefined {
    const { indexDefinitions } = this.#database.state.keyspaces;
    return indexDefinitions.newestEntry(foldedName(name))?.etag;
  }

  /**
   * Returns whether deploying this definition would change the index of its name. @throws EngineError invalid-argument,
   * invalid-format
   */
  hasChanged(definition: JsonObject): boolean {
    return this.#administration.hasChanged(definition);
  }

  /** @throws EngineError index-missing */
  fieldNames(name: string): string[] {
    const { index, outputs, wordsOnly } = this.#require(name);
    const names = index.columnNames.flatMap((column) => {
      const field = fieldOfColumn(column);
      return wordsOnly.has(field) ? [field, column] : [column];
    });
    return [...names, ...(outputs === null ? ["id()"] : [])];
  }

  /**
   * Returns the fields that this definition would index, as far as its text determines them. @throws EngineError
   * index-compilation, invalid-argument
   */
  fieldsOf(definition: JsonObject): string[] {
    return this.#administration.fieldsOf(definition);
  }

  /**
   * Returns the type and source of an index of this definition, as named in the protocol. @throws EngineError
   * invalid-argument
   */
  kindOf(definition: JsonObject): { readonly type: string; readonly source: string } {
    const parsed = parseStaticDefinition(definition);
    return { type: typeOfDefinition(parsed), source: sourceOfDefinition(parsed) };
  }

  /**
   * Returns the terms of a field, in slices. @throws EngineError index-missing, invalid-operation for an invalid index
   */
  async terms(name: string, request: TermsRequest): Promise<IndexTerms> {
    const { field, after, countMax, signal } = request;
    const index = await this.#withWhole(name, field);
    if (index.invalidity !== null) {
      const message = `Index '${index.name}' is marked as errored. ${index.invalidity}`;
      throw new EngineError("invalid-operation", message);
    }
    const budget = new WorkBudget(signal);
    const finding = onIndex(budget, index, new Set([field]), (reader) =>
      reader.termsOf(field, after, countMax),
    );
    let found: string[] | undefined;
    try {
      found = await runSteps(finding);
    } finally {
      budget.close();
    }
    const terms = found ?? listTerms(index, field, after);
    const resultEtag = safeHash(index.lastEtag, index.index.store.liveCount);
    return { name: index.name, terms, resultEtag };
  }

  /**
   * Returns the index, once it has the values of a field as a whole, and not only their words. @throws EngineError
   * index-missing
   */
  async #withWhole(name: string, field: string): Promise<OpenIndex> {
    const known = this.#require(name);
    const { indexes } = this.#database.queries;
    const index = indexes.withWholeFields(name, () => new Set([field])) ?? known;
    if (index !== known) await indexes.waitForNonStale(index.name, newIndexWaitMs);
    return index;
  }

  /**
   * Waits until indexes have processed all current data, at most `timeoutMs`.
   * @param names unknown names are ignored; empty: all indexes
   */
  async waitForNonStale(names: readonly string[], timeoutMs: number): Promise<AwaitedIndexes> {
    const { indexes } = this.#database.queries;
    const wanted = names.map((name) => foldedName(name));
    const awaited = this.#all().filter(
      ({ name }) => wanted.length === 0 || wanted.includes(foldedName(name)),
    );
    const stale: string[] = [];
    await Promise.all(
      awaited.map(async ({ name }) => {
        if (!(await indexes.waitForNonStale(name, timeoutMs))) stale.push(name);
      }),
    );
    const paused = stale.filter((name) => indexes.byName(name)?.isPaused === true);
    return { count: awaited.length, stale, paused };
  }

  // Changing

  /**
   * Deploys indexes, all or none: creates new ones, and builds a replacement beside each that differs, which is swapped
   * in when it has caught up. Resolves when the definitions are durable.
   * @param mayBeCSharp false: C# is refused without being parsed
   * @param deployer named in the history of the indexes; undefined: the program itself
   * @returns the names in the order of `definitions`
   * @throws EngineError invalid-argument, invalid-format, index-compilation, index-creation, not-supported,
   * access-refused
   */
  deploy(
    definitions: readonly JsonObject[],
    mayBeCSharp: boolean,
    deployer?: Deployer,
  ): Promise<string[]> {
    return this.#administration.deploy(definitions, mayBeCSharp, deployer);
  }

  /**
   * Tries a definition on a few documents; no index is created.
   * @throws EngineError as `deploy`, and document-missing
   */
  tryOut(definition: JsonObject, request: TrialRequest): Promise<IndexTrial> {
    return tryIndex(definition, request, this.#database, this.#database.clock);
  }

  /** Resolves when durable. @returns false if the index does not exist @throws EngineError index-deletion */
  delete(name: string): Promise<boolean> {
    return this.#administration.delete(name);
  }

  /** Rebuilds an index. @throws EngineError index-missing */
  reset(name: string): void {
    this.#database.queries.indexes.reset(this.#require(name).name);
  }

  /** Swaps in the replacement of an index before it has caught up. @throws EngineError index-missing */
  replace(name: string): Promise<void> {
    return this.#administration.replace(name);
  }

  /** Resolves when durable. @throws EngineError index-missing, invalid-operation for an automatic index */
  async setLockMode(name: string, mode: IndexLockMode): Promise<void> {
    const index = this.#require(name);
    if (!index.isStatic) {
      throw new EngineError(
        "invalid-operation",
        "'Indexes list contains Auto-Indexes. Lock Mode' is not set for Auto-Indexes.",
      );
    }
    index.lockMode = mode;
    await this.#administration.save(index);
    this.#database.feed.notifyIndex("LockModeChanged", index.name);
  }

  /** Resolves when durable. @throws EngineError index-missing */
  async setPriority(name: string, priority: IndexPriority): Promise<void> {
    const index = this.#require(name);
    index.priority = priority;
    await this.#administration.save(index);
    this.#database.feed.notifyIndex("PriorityChanged", index.name);
  }

  /** Resolves when durable. @throws EngineError index-missing */
  async setDisabled(name: string, isDisabled: boolean): Promise<void> {
    const index = this.#require(name);
    index.isDisabled = isDisabled;
    await this.#administration.save(index);
    const event = isDisabled ? "IndexDemotedToDisabled" : "BatchCompleted";
    this.#database.feed.notifyIndex(event, index.name);
    this.#database.queries.indexes.wake();
  }

  /** Whether all indexes are paused, including indexes that will be created. */
  get isPaused(): boolean {
    return this.#administration.isPaused;
  }

  /** Pauses indexes until they are resumed or the database is opened again. @throws EngineError index-missing */
  setPaused(isPaused: boolean, { name, isReduce }: IndexSelection = {}): void {
    const { indexes } = this.#database.queries;
    let changed: readonly OpenIndex[] = this.#all();
    if (name !== undefined) changed = [this.#require(name)];
    else if (isReduce === undefined) this.#administration.setPaused(isPaused);
    else changed = changed.filter(({ outputs }) => (outputs !== null) === isReduce);
    const event = isPaused ? "IndexPaused" : "BatchCompleted";
    for (const index of changed) {
      index.isPaused = isPaused;
      this.#database.feed.notifyIndex(event, index.name);
    }
    indexes.wake();
  }

  /** Forgets the errors of an index; its counts remain. @throws EngineError index-missing */
  clearErrors(name: string): void {
    const index = this.#require(name);
    if (index instanceof StaticIndex) index.errors.clear();
  }

  get #administration() {
    return this.#database.queries.administration;
  }

  #all(): OpenIndex[] {
    return this.#database.queries.indexes.all();
  }

  #find(name: string): OpenIndex | undefined {
    return this.#database.queries.indexes.byName(name);
  }

  #require(name: string): OpenIndex {
    const index = this.#find(name);
    if (index !== undefined) return index;
    throw new EngineError("index-missing", `There is no index with '${name}' name.`);
  }
}

/** `<field>_IsArray` has one term while an entry holds an array in the field: clients detect arrays this way. */
function listTerms(index: OpenIndex, field: string, after: string): string[] {
  const suffix = "_IsArray";
  const isList = field.endsWith(suffix) && index.hasArrays(field.slice(0, -suffix.length));
  return isList && after < "true" ? ["true"] : [];
}
