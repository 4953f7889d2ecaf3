/**
 * Compiles the JavaScript and C# code of deployed indexes and runs it for the stages of indexing/: input comes from
 * stored documents, output is JSON text.
 *
 * Invariants:
 * - Every document that a map loads is in the result's references, whether or not it exists.
 * - The functions of an index keep no state for long: their own variables are reset every `runsPerDeclaration` runs.
 */

import { foldedName, lowerCased } from "../../base/case-folding.ts";
import type { Clock } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { membersOf } from "../../base/json/object-members.ts";
import { indexEntriesPerDocumentMax } from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { type CSharpScript, compileCSharp } from "../../indexing/csharp/csharp-definition.ts";
import {
  fieldIndexings,
  isCSharpIndex,
  type StaticDefinition,
  spaceOf,
  vectorFormOf,
} from "../../indexing/definitions/static-definition.ts";
import type { StoredRow } from "../../indexing/index-host.ts";
import {
  type DynamicFieldOptions,
  type IndexProgram,
  type ItemFailure,
  type MappedEntry,
  type MappedField,
  type MappedItems,
  type MapResult,
  type MapSource,
  RecordNotLoaded,
  type ReducedValue,
  type SummedReduce,
} from "../../indexing/index-program.ts";
import { checkSpatialText, isSpatialText } from "../../indexing/spatial/spatial-values.ts";
import { checkVectorText, isVectorText } from "../../indexing/vectors/vector-terms.ts";
import { QueryRows } from "../../queries/rows/query-rows.ts";
import { ReadingScriptHost } from "../../queries/rows/query-scripts.ts";
import type { AttachmentScriptHost } from "../../scripting/attachment-functions.ts";
import { wholeDecimalText } from "../../scripting/csharp/csharp-numbers.ts";
import { listedText, resultText } from "../../scripting/csharp/csharp-values.ts";
import type { IndexScriptHost } from "../../scripting/index-functions.ts";
import {
  groupedField,
  type IndexMap,
  type IndexReduce,
  indexMapsOf,
  indexReduceOf,
  readIndexText,
} from "../../scripting/index-script.ts";
import { parseBody } from "../../scripting/language/script-parser.ts";
import {
  defaultLimits,
  getOwn,
  isArray,
  isFunction,
  isObject,
  memoryExceeded,
  newObject,
  ownKeys,
  type Run,
  ScriptArray,
  type ScriptFunction,
  type ScriptLimits,
  type ScriptObject,
  ScriptTimeout,
  setOwn,
  type Value,
} from "../../scripting/language/script-values.ts";
import { type CompiledScript, compileScript, type RunInput } from "../../scripting/script.ts";
import { type ReduceLanguage, summedMembersOf } from "../../scripting/summed-reduce.ts";
import { scriptDocumentOf } from "../../scripting/values/record-document.ts";
import { valueText } from "../../scripting/values/script-document.ts";
import { ShapeHint } from "../../scripting/values/shape-hint.ts";
import { valueOfText } from "../../scripting/values/text-source.ts";
import { numberText } from "../../scripting/values/value-text.ts";
import { collectionIdOf, idOf } from "../../state/documents/document-record.ts";
import { type Attachment, attachmentKey } from "../../state/keyspaces/attachments.ts";
import { counterKey } from "../../state/keyspaces/counters.ts";
import type { EntryKeyspace } from "../../state/keyspaces/entry-keyspace.ts";
import {
  ownerOfSegment,
  type SegmentOwner,
  seriesKey,
} from "../../state/keyspaces/time-series/time-series.ts";
import type { Store } from "../../state/store/store.ts";
import { RecordNotResident } from "../../state/store/transaction.ts";
import { ContentNotLoaded, IndexContents } from "./index-contents.ts";
import { csharpForm, type SeriesForm, scriptForm, segmentObject } from "./series-input.ts";

/** Number of runs after which the script's functions are declared again, which resets their variables. */
const runsPerDeclaration = 1_024;
/** C# maps have no statement limit; this bounds their work instead. */
const csharpStepsMax = 1_000_000;
/** See `ScriptLimits`: smaller than for patches, because a map that timed out runs again. */
const mapLateFactor = 2;
/** Timed-out runs of a map before its document counts as failed. */
const lateRunsMax = 4;
/** Cost of an index entry, and of each of its fields: terms are extracted, looked up and counted. */
const entryUnits = 60;
const fieldUnits = 60;
/**
 * Maximum share of a script's memory that the input values of one reduce may use, as JSON texts that are not parsed
 * yet.
 */
const reducedShare = 1 / 8;
/** Steps allowed for each further value of a reduce. */
const stepsPerValue = 200;

/**
 * Compiles a definition.
 * @throws EngineError index-compilation, index-creation, not-supported, invalid-operation
 */
export function compileIndex(
  definition: StaticDefinition,
  database: Store,
  clock: Clock,
): IndexProgram {
  return new ScriptProgram(definition, database, clock);
}

/** The version of the input that is being mapped. */
type InputVersion = Pick<StoredRow, "docNum" | "etag">;

/** A compiled script with its declarations, which are renewed periodically. */
class Declared<Declaration> {
  readonly script: CompiledScript;
  readonly #read: (script: CompiledScript) => Declaration;
  #declaration: Declaration;
  #runCount = 0;

  constructor(script: CompiledScript, read: (script: CompiledScript) => Declaration) {
    this.script = script;
    this.#read = read;
    this.#declaration = read(script);
  }

  get current(): Declaration {
    if (++this.#runCount % runsPerDeclaration === 0) this.#declaration = this.#read(this.script);
    return this.#declaration;
  }
}

class ScriptProgram implements IndexProgram {
  readonly collections: readonly (string | null)[];
  readonly referencedCollections: readonly (string | null)[];
  readonly fieldNames: ReadonlySet<string> | null;
  readonly isReduce: boolean;
  readonly keyName: string | null;
  readonly sums: SummedReduce | null;
  readonly source: MapSource;
  readonly #definition: StaticDefinition;
  readonly #database: Store;
  readonly #host: MapScriptHost;
  readonly #maps: readonly Declared<readonly IndexMap[]>[];
  readonly #reduce: Declared<IndexReduce> | null;
  readonly #hint = new ShapeHint();
  /** Writes the results of functions; in C# a missing value differs from null. */
  readonly #writer: ValueWriter;
  readonly #limits: ScriptLimits;
  readonly #mapLimits: ScriptLimits;
  readonly #seriesForm: SeriesForm;
  /** Of the document being mapped: its maps, and the keys of their results, share one account. */
  #account: Run | null = null;
  /** The last row whose maps timed out, and how often. */
  #late = { docNum: -1, etag: 0, count: 0 };
  /** Whether missing values are found as null; an entry without fields is then kept. */
  readonly #keepsEmpty: boolean;

  constructor(definition: StaticDefinition, database: Store, clock: Clock) {
    const { name, reduce } = definition;
    this.#definition = definition;
    this.#database = database;
    this.#host = new MapScriptHost(database, clock);
    const isCSharp = isCSharpIndex(definition);
    const texts = isCSharp ? csharpTexts(definition) : scriptTexts(definition);
    this.#writer = isCSharp ? csharpWriter : scriptWriter;
    this.#seriesForm = isCSharp ? csharpForm : scriptForm;
    this.#limits = isCSharp ? { ...defaultLimits, stepsMax: csharpStepsMax } : defaultLimits;
    this.#mapLimits = { ...this.#limits, lateFactor: mapLateFactor };
    this.#keepsEmpty = keepsEmpty(definition, database);
    this.#maps = texts.maps.map(
      (script, number) => new Declared(script, (one) => this.#declaredMaps(one, number)),
    );
    this.isReduce = reduce !== null;
    const reduceTree = texts.reduce?.tree ?? null;
    this.keyName = isCSharp || reduceTree === null ? null : groupedField(reduceTree);
    this.sums = summedReduceOf(texts.reduce, isCSharp ? "csharp" : "script");
    this.#reduce =
      texts.reduce === null
        ? null
        : new Declared(texts.reduce, (one) => indexReduceOf(name, one, this.#host));
    const declared = this.#maps.flatMap(({ current }) => current);
    this.collections = declared.map(({ collection }) => collection);
    this.source = declared[0]?.source ?? "Documents";
    if (declared.some(({ source }) => source !== this.source)) {
      throw new EngineError(
        "invalid-operation",
        "Index definition cannot contain Maps with different source types.",
      );
    }
    this.referencedCollections = [...texts.loads];
    this.fieldNames = texts.fields;
  }

  #declaredMaps(script: CompiledScript, number: number): IndexMap[] {
    const { name, maps } = this.#definition;
    return explained(name, "Maps", maps[number] as string, () =>
      indexMapsOf(name, number, script, this.#host),
    );
  }

  map(row: StoredRow): MapResult {
    const { keyspaces } = this.#database.state;
    const collection = keyspaces.collections.nameOf(collectionIdOf(row.bytes, row.start));
    return this.#mapped(row, (entries, values) => {
      if (this.source === "Counters") return this.#mapCounters(row, collection, entries, values);
      for (const declared of this.#maps) {
        for (const map of declared.current) {
          if (map.collection !== null && !isSameName(map.collection, collection)) continue;
          this.#runMap(declared.script, map.map, this.#documentInput(row), entries, values);
        }
      }
      return undefined;
    });
  }

  wantsSegment(key: string): boolean {
    const owner = ownerOfSegment(key);
    const collection = this.#collectionOf(owner);
    return collection !== null && this.#takers(owner, collection).next().done !== true;
  }

  mapSegment(key: string): MapResult {
    const { timeSeries, timeSeriesSegments } = this.#database.state.keyspaces;
    const segment = timeSeriesSegments.entry(key);
    const owner = ownerOfSegment(key);
    const { documentId, name } = owner;
    const collection = this.#collectionOf(owner);
    // The segment's etag identifies its version, as a document's etag does.
    return this.#mapped({ docNum: -1, etag: segment?.etag ?? 0 }, (entries, values) => {
      if (segment === undefined || collection === null) return undefined;
      const named = timeSeries.get(seriesKey(documentId, name))?.name ?? name;
      const input: RunInput = {
        host: this.#host,
        args: [segmentObject(segment.value, documentId, named, this.#seriesForm)],
        limits: limitsFor(this.#mapLimits, segment.value.count),
      };
      for (const { script, map } of this.#takers(owner, collection)) {
        this.#runMap(script, map, input, entries, values);
      }
      return undefined;
    });
  }

  /** Returns the collection of the document that owns a segment; null if the document does not exist. */
  #collectionOf({ documentId }: SegmentOwner): string | null {
    const { documents, keyspaces } = this.#database.state;
    const docNum = documents.lookup(documentId);
    if (docNum < 0 || documents.etagOf(docNum) === 0) return null;
    return keyspaces.collections.nameOf(documents.collectionOf(docNum));
  }

  /** Yields the maps of a segment. */
  *#takers(
    { name }: SegmentOwner,
    collection: string,
  ): Generator<{ readonly script: CompiledScript; readonly map: ScriptFunction }> {
    for (const { script, current } of this.#maps) {
      for (const { collection: mapped, item, map } of current) {
        if (mapped !== null && !isSameName(mapped, collection)) continue;
        if (item === null || isSameName(item, name)) yield { script, map };
      }
    }
  }

  /** Runs the maps of one input. */
  #mapped(
    version: InputVersion,
    run: (entries: MappedEntry[], values: ReducedValue[]) => MappedItems | undefined,
  ): MapResult {
    const host = this.#host;
    host.begin();
    this.#account = null;
    const entries: MappedEntry[] = [];
    const values: ReducedValue[] = [];
    let failure: EngineError | null = null;
    let items: MappedItems | undefined;
    try {
      items = run(entries, values);
    } catch (error) {
      if (error instanceof RecordNotResident) throw this.#awaited(error);
      if (error instanceof ContentNotLoaded)
        throw new RecordNotLoaded(() => host.contents.load(error));
      if (!(error instanceof EngineError)) throw error;
      if (error instanceof ScriptTimeout && this.#mayTryAgain(version))
        throw new RecordNotLoaded(nextSlice);
      failure = error;
    }
    host.contents.clear();
    host.fetched.clear();
    this.#account = null;
    const { references, compareExchangeKeys } = host;
    if (failure !== null)
      return { entries: [], values: [], references, compareExchangeKeys, failure };
    const result = { entries, values, references, compareExchangeKeys, failure };
    return items === undefined ? result : { ...result, items };
  }

  /** Returns whether a timed-out map may be retried in a later tick of the event loop. */
  #mayTryAgain({ docNum, etag }: InputVersion): boolean {
    const late = this.#late;
    if (late.docNum !== docNum || late.etag !== etag) this.#late = { docNum, etag, count: 1 };
    else late.count++;
    return this.#late.count < lateRunsMax;
  }

  /** Maps each counter of a document; a failing one does not affect the others. */
  #mapCounters(
    row: StoredRow,
    collection: string,
    entries: MappedEntry[],
    values: ReducedValue[],
  ): MappedItems {
    const id = lowerCased(idOf(row.bytes, row.start));
    const { counters } = this.#database.state.keyspaces;
    const maps = this.#maps.flatMap(({ script, current }) =>
      current
        .filter((map) => map.collection === null || isSameName(map.collection, collection))
        .map((map) => ({ ...map, script })),
    );
    const failures: ItemFailure[] = [];
    let attempts = 0;
    let outputsMax = 0;
    if (maps.length === 0) return { attempts, failures, outputsMax };
    for (const [, { name, value }] of counters.withPrefix(counterKey(id, ""))) {
      const found = maps.filter(({ item }) => item === null || isSameName(item, name));
      if (found.length === 0) continue;
      attempts++;
      const [entryCount, valueCount] = [entries.length, values.length];
      try {
        for (const { map, script } of found) {
          const input = {
            host: this.#host,
            args: [counterObject(id, name, value, this.#seriesForm)],
          };
          this.#runMap(script, map, input, entries, values);
        }
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        entries.length = entryCount;
        values.length = valueCount;
        failures.push({ item: lowerCased(name), error });
      }
      const count = entries.length - entryCount + values.length - valueCount;
      outputsMax = Math.max(outputsMax, count);
    }
    return { attempts, failures, outputsMax };
  }

  reduce(key: string, values: readonly string[]): string | null {
    const declared = this.#reduce as Declared<IndexReduce>;
    const length = values.reduce((sum, text) => sum + text.length, 0);
    if (length > this.#limits.bytesMax * reducedShare) throw memoryExceeded(this.#limits);
    // Read from a text, numbers keep their spelling.
    const group = valueOfText(`{"key":${key}}`) as ScriptObject;
    setOwn(group, "values", new ScriptArray(values.map(valueOfText)));
    const limits = limitsFor(this.#limits, values.length);
    const input: RunInput = { host: this.#host, args: [group], limits };
    const { value, run } = declared.script.call(declared.current.aggregate, input);
    const isMissing = value === null || value === undefined;
    if (isMissing && this.#writer === csharpWriter) return null;
    if (isObject(value)) return this.#writer.objectText(run, value);
    throw new EngineError("script-failed", "The reduce must return an object.");
  }

  fieldsOf(text: string): readonly MappedField[] {
    const bytes = Buffer.from(text);
    const fields: MappedField[] = [];
    for (const member of membersOf(bytes, 0)) {
      if (member === null) continue;
      const name = JSON.parse(bytes.utf8Slice(member.keyFrom, member.keyTo)) as string;
      fields.push({ name, text: bytes.utf8Slice(member.from, member.to), dynamic: null });
    }
    return fields;
  }

  #runMap(
    script: CompiledScript,
    map: ScriptFunction,
    input: RunInput,
    entries: MappedEntry[],
    values: ReducedValue[],
  ): void {
    const { limits = this.#mapLimits } = input;
    const { value, run } = script.call(map, { ...input, limits, after: this.#account });
    this.#account = run;
    const outputs = isArray(value) ? value.items : [value];
    if (entries.length + values.length + outputs.length > indexEntriesPerDocumentMax) {
      throw new EngineError(
        "too-large",
        `The map gives more than ${indexEntriesPerDocumentMax} entries of one document.`,
      );
    }
    for (const output of outputs as Value[]) {
      run.burn(entryUnits);
      if (output === null || output === undefined) continue;
      if (isArray(output) || isFunction(output)) {
        throw new EngineError(
          "script-failed",
          "The map must return an object, or a list of objects.",
        );
      }
      // Like RavenDB 7.2.7: other values are no entries.
      if (!isObject(output)) continue;
      const { value: object, factor } = unboosted(output);
      if (!isObject(object)) continue;
      if (this.#reduce === null) {
        const entry = mappedEntry(run, object, factor, this.#writer);
        this.#checkValues(entry.fields);
        if (entry.fields.length === 0 && !this.#keepsEmpty) continue;
        const isWhole = this.source !== "Documents";
        entries.push(isWhole ? { ...entry, text: shownText(run, object, this.#writer) } : entry);
      } else values.push(this.#keyed(run, object));
    }
  }

  #documentInput(row: StoredRow): RunInput {
    const document = scriptDocumentOf(this.#database.state, row.bytes, row.start, this.#hint);
    return { host: this.#host, document, args: [document.root] };
  }

  #keyed(run: Run, output: ScriptObject): ReducedValue {
    const { script, current } = this.#reduce as Declared<IndexReduce>;
    const value = script.continue(run, current.groupBy, [output]);
    // A missing key counts as null.
    const { plainText, objectText } = this.#writer;
    const key = isObject(value) ? objectText(run, value) : plainText(run, value);
    return { key, text: objectText(run, output) };
  }

  /** @throws EngineError shape-invalid, json-invalid */
  #checkValues(fields: readonly MappedField[]): void {
    for (const { name, text } of fields) {
      if (isSpatialText(text)) checkSpatialText(text, spaceOf(this.#definition, name));
      if (!isVectorText(text)) continue;
      const dimensions = this.#definition.fields[name]?.vector?.dimensions ?? null;
      checkVectorText(text, name, vectorFormOf(this.#definition, name), dimensions);
    }
  }

  #awaited(error: RecordNotResident): RecordNotLoaded {
    const { fetched } = this.#host;
    return new RecordNotLoaded(async () => {
      fetched.set(error.position, await this.#database.fetchRecord(error));
    });
  }
}

/** The host of index functions; records the documents that they read. */
class MapScriptHost extends ReadingScriptHost implements IndexScriptHost, AttachmentScriptHost {
  isTracking = true;
  references = new Set<string>();
  compareExchangeKeys = new Set<string>();
  readonly contents: IndexContents;
  readonly #attachments: EntryKeyspace<Attachment>;

  constructor(database: Store, clock: Clock) {
    super(database.state, new QueryRows(database, clock));
    this.contents = new IndexContents(database.blobs);
    this.#attachments = database.state.keyspaces.attachments;
  }

  /** Entries of series change without their documents, so maps of documents do not read them. */
  override timeSeries(): never {
    throw new EngineError("not-supported", "Maps of documents cannot read time series.");
  }

  begin(): void {
    this.references = new Set();
    this.compareExchangeKeys = new Set();
    this.isTracking = true;
  }

  override load(id: string, hint?: ShapeHint): ReturnType<ReadingScriptHost["load"]> {
    if (this.isTracking) this.references.add(lowerCased(id));
    return super.load(id, hint);
  }

  attachmentsOf(id: string): readonly Attachment[] {
    return [...this.#attachments.withPrefix(attachmentKey(id, ""))].map(([, one]) => one);
  }

  contentOf(hash: string, size: number): Buffer {
    return this.contents.get(hash, size);
  }

  override compareExchange(key: string): string | null {
    this.compareExchangeKeys.add(lowerCased(key));
    return super.compareExchange(key);
  }
}

function keepsEmpty({ configuration }: StaticDefinition, { settings }: Store): boolean {
  const name = "Indexing.IndexMissingFieldsAsNull";
  const shared = (settings["Settings"] ?? {}) as Record<string, unknown>;
  return String(configuration[name] ?? shared[name]).toLowerCase() === "true";
}

function isSameName(left: string, right: string): boolean {
  return left === right || foldedName(left) === foldedName(right);
}

function limitsFor(base: ScriptLimits, count: number): ScriptLimits {
  return { ...base, stepsMax: base.stepsMax + count * stepsPerValue };
}

function scriptSumText(sum: number | bigint): string {
  return numberText(Number(sum));
}

/** Returns null if the reduce is not recognized as a sum. */
function summedReduceOf(
  script: CompiledScript | null,
  language: ReduceLanguage,
): SummedReduce | null {
  const tree = script?.tree ?? null;
  const members = tree === null ? null : summedMembersOf(tree, language);
  if (members === null) return null;
  // Sums of C# are decimals: fractions have their own rules.
  const isOfIntegers = language === "csharp";
  return { members, isOfIntegers, textOf: isOfIntegers ? wholeDecimalText : scriptSumText };
}

type Property = "Maps" | "Reduce" | "AdditionalSources";

/** The compiled texts of a definition, and their static properties. */
interface IndexTexts {
  readonly maps: readonly CompiledScript[];
  readonly reduce: CompiledScript | null;
  /** Collections whose documents they load; null as a member: any. */
  readonly loads: ReadonlySet<string | null>;
  /** Null: known only at run time. */
  readonly fields: ReadonlySet<string> | null;
}

/** @throws EngineError index-compilation, not-supported, invalid-operation */
function scriptTexts({ name, maps, reduce, additionalSources }: StaticDefinition): IndexTexts {
  const functions = Object.values(additionalSources);
  const loads = new Set<string | null>();
  let fields: Set<string> | null = new Set();
  const compiled = (property: Property, text: string, method: "map" | "aggregate") =>
    explained(name, property, text, () => {
      const script = compileScript(text, { kind: "index", functions });
      if (script.tree === null) return script;
      const reading = readIndexText(name, script.tree, method);
      for (const collection of reading.loads) loads.add(collection);
      const isOutput = method === "aggregate" || reduce === null;
      if (!isOutput) return script;
      const known: ReadonlySet<string> | null = fields;
      fields =
        reading.fields === null || known === null ? null : new Set([...known, ...reading.fields]);
      return script;
    });
  readFunctions(name, functions, loads);
  return {
    maps: maps.map((map) => compiled("Maps", map, "map")),
    reduce: reduce === null ? null : compiled("Reduce", reduce, "aggregate"),
    loads,
    fields,
  };
}

/** @throws EngineError index-compilation, not-supported */
function csharpTexts(definition: StaticDefinition): IndexTexts {
  const { maps, reduce, isDynamic, loads } = compileCSharp(definition);
  const compiled = ({ script }: CSharpScript) => {
    try {
      return compileScript(script, { kind: "csharp-index" });
    } catch (cause) {
      // The C# itself is valid; only its nesting is limited.
      if (!(cause instanceof EngineError) || cause.code !== "script-syntax") throw cause;
      const message = `Failed to compile index '${definition.name}': It is too long or nested too deeply`;
      throw new EngineError("index-compilation", message, { cause });
    }
  };
  const names = reduce === null ? maps.flatMap((map) => map.names) : reduce.names;
  return {
    maps: maps.map(compiled),
    reduce: reduce === null ? null : compiled(reduce),
    loads,
    fields: isDynamic ? null : new Set(names),
  };
}

/** Errors of a text itself: of its syntax, or thrown when it runs to declare its maps. */
const faultCodes: ReadonlySet<string> = new Set([
  "script-syntax",
  "script-failed",
  "index-compilation",
]);

/** Reports an error in a text as the index's, with the text. */
function explained<Result>(
  name: string,
  property: Property,
  text: string,
  work: () => Result,
): Result {
  try {
    return work();
  } catch (error) {
    const isText = error instanceof EngineError && faultCodes.has(error.code);
    if (!isText) throw error;
    const place = faultText(text, error);
    const hint =
      property === "Maps"
        ? " The map was compiled as JavaScript because it does not start with 'from', 'docs', 'timeSeries' or 'counters'; a C# map must start its enumeration from one of these sources."
        : "";
    throw new EngineError(
      "index-compilation",
      `Failed to compile index '${name}': ${place}${hint}`,
      {
        cause: error,
        details: { IndexDefinitionProperty: property, ProblematicText: text },
      },
    );
  }
}

/** Describes an error in a script and its position, in the wording of RavenDB 7.2.7's script engine. */
function faultText(text: string, { message, details }: EngineError): string {
  const { line, column, reason } = details ?? {};
  if (typeof reason !== "string" || typeof line !== "number" || typeof column !== "number") {
    return message;
  }
  const rest = text
    .split("\n")
    .slice(line - 1)
    .join("\n")
    .slice(column - 1);
  const token = /^[\p{L}\p{N}_$]+|^./u.exec(rest)?.[0];
  const isToken = reason === "Unexpected token";
  const what = token === undefined ? "Unexpected end of input" : `${reason} '${token}'`;
  return `${isToken ? what : reason} (<anonymous>:${line}:${column})`;
}

/** Scans the additional functions: documents they load are tracked, too. */
function readFunctions(
  name: string,
  functions: readonly string[],
  loads: Set<string | null>,
): void {
  for (const text of functions) {
    explained(name, "AdditionalSources", text, () => {
      for (const collection of readIndexText(name, parseBody(text), "map").loads) {
        loads.add(collection);
      }
    });
  }
}

/** Undoes `boost(value, factor)`; factor 1: there was none. */
function unboosted(value: Value): { readonly value: Value; readonly factor: number } {
  const factor = isObject(value) ? getOwn(value, "$boost") : undefined;
  if (typeof factor !== "number" || !isObject(value)) return { value, factor: 1 };
  return { value: getOwn(value, "$value"), factor };
}

/** One entry. An undefined value is no field; a value with `$name` is a field of that name. */
function mappedEntry(
  run: Run,
  output: ScriptObject,
  entryFactor: number,
  writer: ValueWriter,
): MappedEntry {
  const fields: MappedField[] = [];
  const boosts = new Map<string, number>();
  if (entryFactor !== 1) boosts.set("", entryFactor);
  for (const key of ownKeys(output)) {
    const { value, factor } = unboosted(getOwn(output, key));
    if (factor !== 1) boosts.set(key, factor);
    const dynamic = dynamicFields(value);
    if (dynamic !== null) {
      for (const one of dynamic) addDynamic(run, one, fields, writer);
    } else if (value !== undefined && !isFunction(value)) {
      run.burn(fieldUnits);
      fields.push({ name: key, text: writer.fieldText(run, value), dynamic: null });
    }
  }
  return { fields, boosts: boosts.size === 0 ? null : boosts };
}

/** Returns the dynamically named values that a value is or lists, or null when it is neither. */
function dynamicFields(value: Value): ScriptObject[] | null {
  if (isDynamic(value)) return [value];
  if (!isArray(value) || value.items.length === 0) return null;
  const items = value.items as Value[];
  return items.every(isDynamic) ? (items as ScriptObject[]) : null;
}

/** @throws EngineError script-failed when the name is not a string */
function isDynamic(value: Value): value is ScriptObject {
  if (!isObject(value)) return false;
  const name = getOwn(value, "$name");
  if (name === undefined || typeof name === "string") return name !== undefined;
  if (getOwn(value, "$value") === undefined) return false;
  throw new EngineError("script-failed", "The $name of a dynamic field must be a string.");
}

function addDynamic(
  run: Run,
  field: ScriptObject,
  fields: MappedField[],
  writer: ValueWriter,
): void {
  const value = getOwn(field, "$value");
  if (value === undefined) return;
  run.burn(fieldUnits);
  fields.push({
    name: String(getOwn(field, "$name")),
    text: writer.fieldText(run, value),
    dynamic: dynamicOptions(getOwn(field, "$options")),
  });
}

/** @throws EngineError script-failed */
function dynamicOptions(options: Value): DynamicFieldOptions {
  if (!isObject(options)) return { indexing: null, isStored: false };
  const storage = getOwn(options, "storage");
  const isStored =
    typeof storage === "boolean" ? storage : optionOf("storage", storage, ["Yes", "No"]) === "Yes";
  return { indexing: optionOf("indexing", getOwn(options, "indexing"), fieldIndexings), isStored };
}

/** One of the permitted texts, without regard to case; null when it is missing. @throws EngineError script-failed */
function optionOf<Text extends string>(
  name: string,
  value: Value,
  permitted: readonly Text[],
): Text | null {
  if (value === undefined || value === null) return null;
  const found =
    typeof value === "string"
      ? permitted.find((one) => one.toLowerCase() === value.toLowerCase())
      : undefined;
  if (found !== undefined) return found;
  const given = typeof value === "string" ? `'${value}'` : `a value of type ${typeof value}`;
  throw new EngineError(
    "script-failed",
    `The option '${name}' of a dynamic field must be one of ${permitted.join(", ")}, not ${given}.`,
  );
}

/** Returns the argument of a counter map. */
function counterObject(
  documentId: string,
  name: string,
  value: string,
  form: SeriesForm,
): ScriptObject {
  const counter = newObject();
  setOwn(counter, "Value", form.integer(value));
  setOwn(counter, "Name", name);
  setOwn(counter, "DocumentId", documentId);
  return counter;
}

/** Returns the result of a map as rows show it: values only, without their indexing options. */
function shownText(run: Run, object: ScriptObject, writer: ValueWriter): string {
  const shown = newObject();
  for (const key of ownKeys(object)) {
    const { value } = unboosted(getOwn(object, key));
    const isShape = isObject(value) && getOwn(value, "$spatial") !== undefined;
    const isVector = isObject(value) && getOwn(value, "$vector") !== undefined;
    if (value === undefined && !writer.showsMissing) continue;
    if (dynamicFields(value) === null && !isShape && !isVector) setOwn(shown, key, value);
  }
  return writer.objectText(run, shown);
}

/** Returns an object with all members: undefined is written as null. */
function objectText(run: Run, object: ScriptObject): string {
  const members = ownKeys(object).map(
    (key) => `${JSON.stringify(key)}:${plainText(run, getOwn(object, key))}`,
  );
  return `{${members.join(",")}}`;
}

function plainText(run: Run, value: Value): string {
  return value === undefined || isFunction(value) ? "null" : valueText(run, value);
}

/** Writes the results of functions as JSON texts. */
interface ValueWriter {
  /** Returns the value of one field of an entry. */
  fieldText(run: Run, value: Value): string;
  objectText(run: Run, object: ScriptObject): string;
  plainText(run: Run, value: Value): string;
  /** Whether rows have missing values as null. */
  readonly showsMissing: boolean;
}

const scriptWriter: ValueWriter = {
  fieldText: valueText,
  objectText,
  plainText,
  showsMissing: true,
};
const csharpWriter: ValueWriter = {
  fieldText: listedText,
  objectText: resultText,
  plainText: resultText,
  showsMissing: false,
};
