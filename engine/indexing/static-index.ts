/**
 * One index that somebody deployed: its definition, and the stages that make its entries.
 */
import type { Analyzer } from "./analyzer.ts";
import type { FollowedCollection } from "./collection-follower.ts";
import type { EntryStore, SavedDocuments } from "./entry-store.ts";
import type { FieldColumn } from "./field-column.ts";
import type {
  EntryBoosts,
  FieldForm,
  FollowedIndex,
  GroupOutputs,
  IndexCounters,
  RestoredDocuments,
} from "./followed-index.ts";
import { allDocuments } from "./index-definition.ts";
import { IndexErrors } from "./index-errors.ts";
import type { IndexHost } from "./index-host.ts";
import type { IndexProgram, MapSource } from "./index-program.ts";
import {
  type CollectionProgress,
  type IndexType,
  OpenIndex,
  type StoredFields,
} from "./open-index.ts";
import type { OutputSink } from "./reduce-output.ts";
import type { PartReader, PartWriter } from "./saved-parts.ts";
import {
  type DeploymentOptions,
  type StaticDefinition,
  typeOfDefinition,
} from "./static-definition.ts";
import { StaticEntries } from "./static-entries.ts";
import { StaticMapStage } from "./static-map-stage.ts";
import { StaticReduceStage } from "./static-reduce-stage.ts";

const missingAsNull = "Indexing.IndexMissingFieldsAsNull";
/** Settings of the database that change what is in an index. */
const decidingSettings = [missingAsNull];
/** Documents that may be mapped before what they gave is reduced. */
const unreducedDocumentsMax = 65_536;
/** Attempts after which an index is judged that is not up to date yet. */
const judgedAttemptsMin = 10_000;

/** The entries of a deployed index, kept in step by its stages. */
class StagedIndex implements FollowedIndex {
  readonly entries: StaticEntries;
  readonly maps: StaticMapStage;
  readonly reduce: StaticReduceStage | null;
  readonly errors = new IndexErrors();
  /** Who stores what is reduced; null: nobody. */
  readonly #sink: OutputSink | null;
  #sources: readonly FollowedCollection[];
  #counterEtag: number | undefined;
  /** Its sink has been settled since it was made or read. */
  #isStored: boolean;
  /** What is mapped, where that is no part of documents; null: there is a reduce, or documents are mapped. */
  readonly #mapped: GroupOutputs | null;
  /** What was mapped is being reduced, before more is mapped. */
  #isReducing = false;
  #attemptsReduced = 0;

  constructor(definition: StaticDefinition, program: IndexProgram, host: IndexHost) {
    const { errors } = this;
    this.entries = new StaticEntries(
      definition,
      program.fieldNames ?? [],
      isSet(definition, host, missingAsNull),
    );
    const { output = null } = definition;
    this.#sink = output === null || !program.isReduce ? null : (host.outputSink?.(output) ?? null);
    this.#isStored = this.#sink === null;
    this.reduce = program.isReduce
      ? new StaticReduceStage(definition.name, program, this.entries, errors, host, this.#sink)
      : null;
    const { entries } = this;
    const target = this.reduce ?? {
      set: (docNum: number, result: Parameters<StaticReduceStage["set"]>[1]) =>
        entries.set(docNum, result.entries),
      remove: (docNum: number) => entries.remove(docNum),
    };
    this.maps = new StaticMapStage(program, target, errors, host);
    this.#mapped =
      program.source === "Counters" && !program.isReduce
        ? { keyNames: [], textOf: (entry) => entries.objectText(entry) }
        : null;
    this.#sources = copied(this.maps.sources);
    this.#counterEtag = this.maps.counterEtag;
  }

  get store(): EntryStore {
    return this.entries.store;
  }

  get counters(): IndexCounters {
    return this.errors;
  }

  /** As they were when everything of them was in the entries. */
  get sources(): readonly FollowedCollection[] {
    return this.#sources;
  }

  get followed(): readonly FollowedCollection[] {
    return this.maps.mappedSources;
  }

  get changeCount(): number {
    return this.maps.changeCount;
  }

  get isStored(): boolean {
    return this.#isStored;
  }

  get isBusy(): boolean {
    return this.#sink?.isStoring === true;
  }

  get columnNames(): readonly string[] {
    return this.entries.columnNames;
  }

  get outputs(): GroupOutputs | null {
    return this.reduce ?? this.#mapped;
  }

  get counterEtag(): number | undefined {
    return this.#counterEtag;
  }

  get boosts(): EntryBoosts | undefined {
    return this.entries.hasBoosts ? this.entries : undefined;
  }

  get isStale(): boolean {
    return this.maps.isStale || this.reduce?.isSettled === false || this.#sink?.isSettled === false;
  }

  get isResting(): boolean {
    return this.#sink?.isResting === true;
  }

  column(name: string): FieldColumn | undefined {
    return this.entries.column(name);
  }

  formColumn(name: string): FieldColumn | undefined {
    return this.entries.column(name);
  }

  keepsCase(name: string, form: FieldForm): boolean {
    return form === "exact" || this.entries.keepsCase(name);
  }

  analyzerOf(name: string): Analyzer {
    return this.entries.analyzerOf(name);
  }

  catchUp(isTimeUp: () => boolean): Promise<void> | null {
    // First what is left of the last slice, so that there is an end to it under constant writes.
    if (this.#isReducing && !this.#reduceAll(isTimeUp)) return null;
    if (isTimeUp()) return null;
    const pending = this.maps.catchUp(isTimeUp);
    // A group is reduced once for all of its documents of one build, not again after each slice of them.
    const unreduced = this.errors.mapAttempts - this.#attemptsReduced;
    if (!this.maps.isStale || unreduced >= unreducedDocumentsMax) this.#isReducing = true;
    const isReduced = this.#reduceAll(isTimeUp) && this.maps.isSettled;
    this.entries.compact(isTimeUp);
    this.maps.compact(isTimeUp);
    this.reduce?.compact(isTimeUp);
    if (!isReduced) return pending;
    if (this.#sink !== null && !this.#sink.isSettled && pending === null) {
      return this.#store(this.#sink);
    }
    this.#sources = copied(this.maps.sources);
    this.#counterEtag = this.maps.counterEtag;
    return pending;
  }

  save(parts: PartWriter): readonly SavedDocuments[] {
    const named = [...this.maps.save(parts.under("maps"))];
    const entries = this.entries.save(parts.under("entries"));
    // The entries of a reduce are of groups.
    named.push(...(this.reduce?.save(parts.under("reduce")) ?? [entries]));
    this.#sink?.save(parts.under("outputs"));
    parts.set("errors", this.errors.saved());
    return named;
  }

  *restore(parts: PartReader, documents: RestoredDocuments): Generator<void> {
    const { documentOf } = documents;
    const isReduce = this.reduce !== null;
    yield* this.entries.restore(parts.under("entries"), isReduce ? (group) => group : documentOf);
    if (this.reduce !== null) yield* this.reduce.restore(parts.under("reduce"), documents);
    yield* this.maps.restore(parts.under("maps"), documents);
    if (this.#sink !== null) {
      yield* this.#sink.restore(parts.under("outputs"));
      if (this.#sink.hasDoubts) yield* this.reduce?.tellAgain(this.#sink) ?? [];
    }
    this.errors.restore(parts.get("errors"));
    this.#isReducing = this.reduce?.isSettled === false;
    this.#attemptsReduced = this.errors.mapAttempts;
    this.#sources = copied(this.maps.sources);
    this.#counterEtag = this.maps.counterEtag;
  }

  async #store(sink: OutputSink): Promise<void> {
    const sources = copied(this.maps.sources);
    const { counterEtag } = this.maps;
    await sink.store(!this.maps.isStale);
    if (!sink.isSettled) return;
    this.#isStored = true;
    this.#sources = sources;
    this.#counterEtag = counterEtag;
  }

  /** @returns false when groups are left to be reduced */
  #reduceAll(isTimeUp: () => boolean): boolean {
    if (this.reduce === null || this.reduce.isSettled) return true;
    if (!this.#isReducing) return false;
    this.reduce.settle(isTimeUp);
    if (!this.reduce.isSettled) return false;
    this.#isReducing = false;
    this.#attemptsReduced = this.errors.mapAttempts;
    return true;
  }
}

function copied(sources: readonly FollowedCollection[]): readonly FollowedCollection[] {
  return sources.map((source) => ({ ...source }));
}

export class StaticIndex extends OpenIndex {
  readonly definition: StaticDefinition;
  readonly program: IndexProgram;
  index: StagedIndex;
  readonly isStatic = true;
  readonly isNew = false;
  #invalidity: string | null = null;

  constructor(definition: StaticDefinition, program: IndexProgram, host: IndexHost) {
    super(definition.name, host);
    this.definition = definition;
    this.program = program;
    this.index = this.blank();
  }

  blank(): StagedIndex {
    return new StagedIndex(this.definition, this.program, this.host);
  }

  /** All that decides what is in its entries. */
  get fingerprint(): string {
    const { name: _, ...definition } = this.definition;
    const settings = decidingSettings.map((name) => isSet(this.definition, this.host, name));
    return JSON.stringify([definition, settings]);
  }

  get type(): IndexType {
    return typeOfDefinition(this.definition);
  }

  override get source(): MapSource {
    return this.program.source ?? "Documents";
  }

  get errors(): IndexErrors {
    return this.index.errors;
  }

  get stored(): StoredFields | null {
    const { entries } = this.index;
    const isDocuments = !this.program.isReduce && this.source === "Documents";
    return isDocuments && entries.hasStored ? entries : null;
  }

  get hasDynamicFields(): boolean {
    return this.index.entries.hasDynamicFields;
  }

  get outputsPerDocumentMax(): number {
    return this.index.maps.outputsPerDocumentMax;
  }

  get invalidity(): string | null {
    return this.#invalidity;
  }

  /** The first documents do not speak for all: it is judged when it has seen them, or very many. */
  override judge(): void {
    if (this.#invalidity !== null) return;
    if (this.isStale && this.errors.mapAttempts < judgedAttemptsMin) return;
    this.#invalidity = this.errors.invalidity(this.name, this.program.isReduce);
  }

  /** Maps that compute the names of fields make every name one that may come. */
  isKnownField(name: string): boolean {
    const { fieldNames } = this.program;
    if (name === "id()") return !this.program.isReduce;
    if (fieldNames === null || fieldNames.has(name)) return true;
    return this.index.entries.column(name) !== undefined;
  }

  override hasArrays(name: string): boolean {
    return this.index.entries.hasArrays(name);
  }

  setOptions({ lockMode, priority, isDisabled }: DeploymentOptions): void {
    this.lockMode = lockMode;
    this.priority = priority;
    this.isDisabled = isDisabled;
  }

  /** The same index without entries, to be built again. */
  renewed(): StaticIndex {
    const { name } = this;
    const made = new StaticIndex({ ...this.definition, name }, this.program, this.host);
    made.setOptions(this);
    made.isPaused = this.isPaused;
    return made;
  }

  protected progress(): readonly CollectionProgress[] {
    return this.index.maps.mappedSources.map(({ collection, documentEtag, deletionEtag }) => ({
      name: collection ?? allDocuments,
      lastDocumentEtag: documentEtag,
      lastDeletionEtag: deletionEtag,
      documentLag: this.host.countSince(collection, documentEtag),
    }));
  }
}

/** Is a switch on, by the index's own configuration or else by the settings of its database? */
function isSet({ configuration }: StaticDefinition, host: IndexHost, name: string): boolean {
  return String(configuration[name] ?? host.setting(name)).toLowerCase() === "true";
}
