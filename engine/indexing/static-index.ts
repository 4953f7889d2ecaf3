/** A deployed index: its definition, and the stages that produce its entries. */
import type { Work, WorkBudget } from "../base/scheduling/work-budget.ts";
import { type FollowedCollection, followedCollections } from "./collection-follower.ts";
import type { EntryStore, SavedDocuments } from "./columns/entry-store.ts";
import type { FieldColumn } from "./columns/field-column.ts";
import { allDocuments } from "./definitions/index-definition.ts";
import {
  type DeploymentOptions,
  hasSuggestions,
  isCSharp,
  type StaticDefinition,
  spaceOf,
  typeOfDefinition,
  vectorFormOf,
} from "./definitions/static-definition.ts";
import type {
  EntryBoosts,
  FieldForm,
  FollowedIndex,
  GroupOutputs,
  IndexCounters,
  ItemProgress,
  RestoredDocuments,
} from "./followed-index.ts";
import type { IndexCounts } from "./index-batches.ts";
import { IndexErrors } from "./index-errors.ts";
import type { IndexHost } from "./index-host.ts";
import type { IndexProgram, MapSource } from "./index-program.ts";
import {
  type CollectionProgress,
  type IndexType,
  OpenIndex,
  type StoredFields,
} from "./open-index.ts";
import type { OutputSink } from "./reduce/reduce-output.ts";
import { StaticReduceStage } from "./reduce/static-reduce-stage.ts";
import type { PartReader, PartWriter } from "./saved/saved-parts.ts";
import { SeriesMapStage } from "./series-map-stage.ts";
import type { Space } from "./spatial/space.ts";
import { StaticEntries } from "./static-entries.ts";
import { type MapStage, StaticMapStage } from "./static-map-stage.ts";
import type { Analyzer } from "./text/analyzer.ts";
import type { VectorForm } from "./vectors/vector-form.ts";

const engineName = "Indexing.Static.SearchEngineType";
const missingAsNull = "Indexing.IndexMissingFieldsAsNull";
/** Database settings that affect the contents of an index. */
const decidingSettings = [missingAsNull];
/** Maximum number of documents mapped before their results are reduced. */
const unreducedDocumentsMax = 65_536;
/** Attempts after which the failure rate of a stale index is checked. */
const judgedAttemptsMin = 10_000;

/** The entries of a deployed index, updated by its stages. */
class StagedIndex implements FollowedIndex {
  readonly entries: StaticEntries;
  readonly maps: MapStage;
  readonly reduce: StaticReduceStage | null;
  readonly errors = new IndexErrors();
  /** Milliseconds of reducing. */
  reduceMs = 0;
  /** Stores reduced objects as documents; null: they are not stored. */
  readonly #sink: OutputSink | null;
  readonly #definition: StaticDefinition;
  readonly #host: IndexHost;
  #sources: readonly FollowedCollection[];
  #items: ItemProgress | undefined;
  /** Whether its sink has been settled since it was created or restored. */
  #isStored: boolean;
  /** The mapped objects, when the input is no documents; null: there is a reduce, or documents are mapped. */
  readonly #mapped: GroupOutputs | null;
  /** Mapped values are being reduced before more documents are mapped. */
  #isReducing = false;
  #attemptsReduced = 0;

  constructor(definition: StaticDefinition, program: IndexProgram, host: IndexHost) {
    const { errors } = this;
    this.#definition = definition;
    this.#host = host;
    this.entries = new StaticEntries(
      definition,
      program.fieldNames ?? [],
      isSet(definition, host, missingAsNull),
    );
    this.entries.store.keepsPlaces = !this.isLucene;
    const { output = null } = definition;
    const isScript = !isCSharp(definition.maps[0] ?? "");
    const hasSink = output !== null && program.isReduce;
    this.#sink = hasSink ? (host.outputSink?.(output, isScript) ?? null) : null;
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
    const { segments } = host;
    const isOfSeries = program.source === "TimeSeries" && segments !== undefined;
    this.maps = isOfSeries
      ? new SeriesMapStage(program, target, errors, host, segments)
      : new StaticMapStage(program, target, errors, host);
    this.#mapped =
      program.source !== undefined && program.source !== "Documents" && !program.isReduce
        ? { keyNames: [], textOf: (entry) => entries.objectText(entry) }
        : null;
    this.#sources = copied(this.maps.sources);
    this.#items = this.maps.items;
  }

  get store(): EntryStore {
    return this.entries.store;
  }

  get counters(): IndexCounters {
    return this.errors;
  }

  /** The progress up to which the entries are complete. */
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
    return this.#sink?.isStoring === true || this.maps.isBusy;
  }

  get columnNames(): readonly string[] {
    return this.entries.columnNames;
  }

  get outputs(): GroupOutputs | null {
    return this.reduce ?? this.#mapped;
  }

  get items(): ItemProgress | undefined {
    return this.#items;
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

  spaceOf(name: string): Space {
    return spaceOf(this.#definition, name);
  }

  vectorFormOf(name: string): VectorForm {
    return vectorFormOf(this.#definition, name);
  }

  get isLucene(): boolean {
    const own = this.#definition.configuration[engineName];
    return String(own ?? this.#host.setting(engineName)).toLowerCase() === "lucene";
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
    // Finish the rest of the last slice first, so that it ends even under constant writes.
    if (this.#isReducing && !this.#reduceAll(isTimeUp)) return null;
    // If nothing remains to be mapped, the progress is noted below: the index is then not stale, and this is not called
    // again.
    if (this.maps.isStale && isTimeUp()) return null;
    const pending = this.maps.catchUp(isTimeUp);
    // A build reduces a group once for all of its documents, not again after each slice.
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
    this.#items = this.maps.items;
    return pending;
  }

  refresh(fields: ReadonlySet<string> | null, budget: WorkBudget): Work<void> | null {
    return this.reduce?.refresh(fields, budget) ?? null;
  }

  save(parts: PartWriter): readonly SavedDocuments[] {
    const mapped = this.maps.save(parts.under("maps"));
    const named = [...mapped];
    const entries = this.entries.save(parts.under("entries"));
    // With a reduce, entries belong to groups.
    named.push(...(this.reduce?.save(parts.under("reduce")) ?? [entries]));
    this.#sink?.save(parts.under("outputs"));
    parts.set("errors", this.errors.saved());
    // Otherwise the mapped items have numbers of their own.
    return this.maps.mapped === undefined ? named : mapped;
  }

  *restore(parts: PartReader, given: RestoredDocuments): Generator<void> {
    const isOfDocuments = this.maps.mapped === undefined;
    const documents = isOfDocuments ? given : { ...given, documentOf: (number: number) => number };
    const { documentOf } = documents;
    const isReduce = this.reduce !== null;
    yield* this.entries.restore(parts.under("entries"), isReduce ? (group) => group : documentOf);
    if (this.reduce !== null) yield* this.reduce.restore(parts.under("reduce"), documents);
    yield* this.maps.restore(parts.under("maps"), documents);
    if (this.#sink !== null) {
      yield* this.#sink.restore(parts.under("outputs"));
      if (this.#sink.hasDoubts) yield* this.reduce?.resend(this.#sink) ?? [];
    }
    this.errors.restore(parts.get("errors"));
    this.#isReducing = this.reduce?.isSettled === false;
    this.#attemptsReduced = this.errors.mapAttempts;
    this.#sources = copied(this.maps.sources);
    this.#items = this.maps.items;
  }

  async #store(sink: OutputSink): Promise<void> {
    const sources = copied(this.maps.sources);
    const { items } = this.maps;
    await sink.store(!this.maps.isStale);
    if (!sink.isSettled) return;
    this.#isStored = true;
    this.#sources = sources;
    this.#items = items;
  }

  /** @returns false when groups remain to be reduced */
  #reduceAll(isTimeUp: () => boolean): boolean {
    if (this.reduce === null || this.reduce.isSettled) return true;
    if (!this.#isReducing) return false;
    const startMs = this.#host.monotonicMs();
    this.reduce.settle(isTimeUp);
    this.reduceMs += this.#host.monotonicMs() - startMs;
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

  /** Everything that determines the contents of its entries. */
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

  override counts(): IndexCounts {
    const { errors, reduceMs } = this.index;
    return { ...super.counts(), reduceAttempts: errors.reduceAttempts, reduceMs };
  }

  get stored(): StoredFields | null {
    const { entries } = this.index;
    return entries.hasStored ? entries : null;
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

  /** The first documents are not representative: the failure rate is checked after all, or very many, of them. */
  override judge(): void {
    if (this.#invalidity !== null) return;
    if (this.isStale && this.errors.mapAttempts < judgedAttemptsMin) return;
    this.#invalidity = this.errors.invalidity(this.name, this.program.isReduce);
  }

  /** When maps compute field names, any name may occur. */
  isKnownField(name: string): boolean {
    const { fieldNames } = this.program;
    if (name === "id()") return !this.program.isReduce;
    if (fieldNames === null || fieldNames.has(name)) return true;
    return this.index.entries.column(name) !== undefined;
  }

  suggestionAnalyzer(name: string): Analyzer | null | undefined {
    const { index, definition } = this;
    if (index.column(name) === undefined && !this.isKnownField(name)) return undefined;
    return hasSuggestions(definition, name) ? index.analyzerOf(name) : null;
  }

  override hasArrays(name: string): boolean {
    return this.index.entries.hasArrays(name);
  }

  setOptions({ lockMode, priority, isDisabled }: DeploymentOptions): void {
    this.lockMode = lockMode;
    this.priority = priority;
    this.isDisabled = isDisabled;
  }

  /** Returns the same index without entries, for a rebuild. */
  renewed(): StaticIndex {
    const { name } = this;
    const made = new StaticIndex({ ...this.definition, name }, this.program, this.host);
    made.setOptions(this);
    made.isPaused = this.isPaused;
    return made;
  }

  protected progress(): readonly CollectionProgress[] {
    const { mapped } = this.index.maps;
    if (mapped !== undefined) {
      return followedCollections(this.program.collections).map((collection) => ({
        name: collection ?? allDocuments,
        lastDocumentEtag: mapped.lastEtag,
        lastDeletionEtag: 0,
        documentLag: mapped.lag,
      }));
    }
    return this.index.maps.mappedSources.map(({ collection, documentEtag, deletionEtag }) => ({
      name: collection ?? allDocuments,
      lastDocumentEtag: documentEtag,
      lastDeletionEtag: deletionEtag,
      documentLag: this.host.countSince(collection, documentEtag),
    }));
  }
}

/** Returns whether a switch is on, by the index's own configuration or else by the database settings. */
function isSet({ configuration }: StaticDefinition, host: IndexHost, name: string): boolean {
  return String(configuration[name] ?? host.setting(name)).toLowerCase() === "true";
}
