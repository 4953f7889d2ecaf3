/**
 * Scripts inside queries: `select { … }`, calls of declared functions, and conditions of `filter` that call functions
 * only scripts have. They read documents in their current version and change nothing.
 */

import { assert } from "../../base/assert.ts";
import { EngineError } from "../../base/errors.ts";
import type { OwnedBytes } from "../../base/memory/borrowed-bytes.ts";
import type { WorkBudget } from "../../base/scheduling/work-budget.ts";
import { compileTextTest } from "../../scripting/built-ins/regular-expression.ts";
import { AutomatonSpace } from "../../scripting/built-ins/text-automaton.ts";
import { truthy } from "../../scripting/language/script-operators.ts";
import {
  getOwn,
  isArray,
  isObject,
  ownKeys,
  ScriptArray,
  setOwn,
  type Value,
} from "../../scripting/language/script-values.ts";
import {
  type CompiledScript,
  type Outcome,
  resultTexts,
  ScriptParameters,
} from "../../scripting/script.ts";
import { scriptCache } from "../../scripting/script-cache.ts";
import type { ScriptHost, ScriptTimeSeries } from "../../scripting/script-host.ts";
import { scriptDocumentOf } from "../../scripting/values/record-document.ts";
import { ScriptDocument } from "../../scripting/values/script-document.ts";
import type { ShapeHint } from "../../scripting/values/shape-hint.ts";
import { valueOfText } from "../../scripting/values/text-source.ts";
import type { DatabaseState } from "../../state/store/database-state.ts";
import { RecordNotResident } from "../../state/store/transaction.ts";
import type { Position } from "../../storage/log/log.ts";
import type {
  AnalyzedQuery,
  ProjectedCall,
  ProjectedField,
  ProjectedSeries,
  ProjectedValue,
} from "../analysis/analyzed-query.ts";
import { jsonText, scalarOf } from "../analysis/query-parameters.ts";
import { severalValues } from "../execution/results-projection.ts";
import type {
  LoadedValue,
  ProjectedText,
  QueryScripts,
  RowSource,
  ScriptIncludes,
  ScriptInput,
  ScriptProvider,
  SeriesCalls,
} from "../execution/row-source.ts";
import type { Argument, Declaration, Expression, Field, PathPart } from "../syntax/ast.ts";
import {
  readOnly,
  SeriesPending,
  SeriesResults,
  StoredScriptSeries,
  seriesFunctionText,
} from "./script-series.ts";

/** The name of the document in scripts of queries without an alias; queries cannot use it. */
const rowName = "__document";

/** Reads the record that a script missed, into its own buffer. */
type FetchRecord = (missing: RecordNotResident) => Promise<OwnedBytes>;

/** Fetched records that scripts keep from row to row. */
const fetchedMax = 64;

export class DatabaseScripts implements ScriptProvider {
  readonly #host: ReadingScriptHost;
  readonly #state: DatabaseState;
  readonly #space = new AutomatonSpace();

  readonly #fetch: FetchRecord;

  constructor(state: DatabaseState, source: RowSource, fetch: FetchRecord) {
    this.#state = state;
    this.#host = new ReadingScriptHost(state, source);
    this.#fetch = fetch;
  }

  forQuery(query: AnalyzedQuery, budget: WorkBudget, series: SeriesCalls | null): QueryScripts {
    return new ScriptsOfQuery(query, budget, this.#host, this.#state, this.#fetch, series);
  }

  textTest(pattern: string, budget?: WorkBudget): (text: string) => boolean {
    return compileTextTest(pattern, budget, this.#space);
  }
}

class ScriptsOfQuery implements QueryScripts {
  readonly #query: AnalyzedQuery;
  readonly #budget: WorkBudget;
  readonly #host: ReadingScriptHost;
  readonly #state: DatabaseState;
  readonly #parameters: ScriptParameters;
  readonly #names: readonly string[];
  #projection: CompiledScript | null = null;
  #filter: CompiledScript | null = null;

  readonly #fetch: FetchRecord;
  readonly #series: SeriesCalls | null;

  constructor(
    query: AnalyzedQuery,
    budget: WorkBudget,
    host: ReadingScriptHost,
    state: DatabaseState,
    fetch: FetchRecord,
    series: SeriesCalls | null,
  ) {
    this.#query = query;
    this.#budget = budget;
    this.#series = series;
    if (series !== null) host.series.names = query.series;
    this.#host = host;
    this.#fetch = fetch;
    this.#state = state;
    this.#parameters = new ScriptParameters(query.parameters?.text ?? "{}");
    this.#names = [query.source.alias ?? rowName, ...query.load.map(({ alias }) => alias)];
  }

  get included(): ScriptIncludes {
    return this.#host.included;
  }

  missing(error: unknown): Promise<void> | null {
    if (error instanceof SeriesPending) {
      return this.#series === null ? null : this.#host.series.compute(error, this.#series);
    }
    if (!(error instanceof RecordNotResident)) return null;
    return this.#fetch(error).then((bytes) => {
      this.#host.fetched.set(error.position, bytes);
    });
  }

  /** Called after a row: its fetched records are usually in the cache as well. */
  #dropFetched(): void {
    this.#host.series.clear();
    if (this.#host.fetched.size > fetchedMax) this.#host.fetched.clear();
  }

  project(input: ScriptInput): readonly ProjectedText[] {
    this.#projection ??= this.#compile(projectionText(this.#query.projection, rowName));
    const outcome = this.#run(this.#projection, input);
    this.#dropFetched();
    try {
      return this.#rowsOf(outcome);
    } finally {
      this.#budget.tick(outcome.run.spentWork);
    }
  }

  #rowsOf(outcome: Outcome): readonly ProjectedText[] {
    const isNothing = outcome.value === null || outcome.value === undefined;
    if (isNothing && this.#query.projection.kind === "call") {
      throw new EngineError(
        "invalid-operation",
        `Query returning a single function call result must return an object, but got: ${outcome.value}`,
      );
    }
    return resultsOf(outcome);
  }

  passes(input: ScriptInput): boolean {
    const { filter } = this.#query;
    assert(filter !== null, "there is a filter");
    this.#filter ??= this.#compile(`!!${this.#filterText(filter)}`);
    const { value, run } = this.#run(this.#filter, input, true);
    this.#budget.tick(run.spentWork);
    this.#dropFetched();
    return truthy(value);
  }

  /** A filter sees a missing document as undefined, or as null where its id is null. */
  #filterText(filter: Expression): string {
    const [root = rowName] = this.#names;
    let text = `(${conditionText(filter, new Set(this.#names))})`;
    for (const { alias, source } of this.#query.load.toReversed()) {
      if (source.kind === "constant") continue;
      const id = `${source.root ?? root}${membersText(source.path)}`;
      text = `((${alias}) => ${text})(${alias} ?? (${id} === null ? null : undefined))`;
    }
    return text;
  }

  #compile(text: string): CompiledScript {
    const functions = this.#query.functions.map(functionText);
    for (const name of this.#query.series.keys()) functions.push(seriesFunctionText(name));
    const { groupBy } = this.#query;
    if (groupBy !== null) {
      const keys = groupBy.keys.map(({ field }) => field.name);
      functions.push(...groupFunctions(this.#names[0] ?? rowName, keys));
    }
    return scriptCache.get(text, { kind: "projection", parameters: this.#names, functions });
  }

  /** `takesLists`: several documents under a plain alias are a list, not an error. */
  #run(script: CompiledScript, input: ScriptInput, takesLists = false) {
    this.#host.series.input = input;
    const args: Value[] = [this.#documentOf(input, script.hint).root];
    for (const { alias, isArray: isList } of this.#query.load) {
      args.push(loadedValue(input.loaded.get(alias), alias, isList || takesLists));
    }
    return script.run({ host: this.#host, args, parameters: this.#parameters });
  }

  #documentOf({ row, text, stored }: ScriptInput, hint: ShapeHint): ScriptDocument {
    if (row === null) return ScriptDocument.fromText(text ?? "{}", null, null, hint);
    const document = scriptDocumentOf(this.#state, row.bytes, row.start, hint);
    if (stored !== null) showStored(document, stored);
    return document;
  }
}

/** Stored fields take precedence over the document's; booleans become strings, as in RavenDB 7.2.7. */
function showStored({ root }: ScriptDocument, stored: string): void {
  const kept = valueOfText(stored);
  if (!isObject(kept)) return;
  for (const key of ownKeys(kept)) {
    const value = getOwn(kept, key);
    setOwn(root, key, typeof value === "boolean" ? String(value) : value);
  }
}

/**
 * Returns the functions `key()`, `count()` and `sum(x => x.F)` for a script over groups: they read members of the
 * reduced object.
 */
function groupFunctions(name: string, keys: readonly string[]): string[] {
  const members = keys.map((key) => `${JSON.stringify(key)}: ${name}[${JSON.stringify(key)}]`);
  const [only] = keys;
  const key =
    keys.length === 1 ? `${name}[${JSON.stringify(only)}]` : `({ ${members.join(", ")} })`;
  return [
    `function key() { return ${key}; }`,
    `function count() { return ${name}.Count; }`,
    `function sum(field) { return field(${name}); }`,
  ];
}

function functionText({ name, parameters, body }: Declaration): string {
  return `function ${name}(${parameters}) ${body.text}`;
}

/** Returns the rows of a projection's result: an unchanged document stays a document. */
function resultsOf({ value, run }: Outcome): readonly ProjectedText[] {
  if (isArray(value)) {
    return value.items.flatMap((item) => resultsOf({ value: (item ?? null) as Value, run }));
  }
  const document = ScriptDocument.of(value);
  const composed = document?.composedMetadata ?? null;
  if (document !== null && composed !== null && !document.changed()) {
    const body = document.bodyText();
    const metadata = `"@metadata":${composed}}`;
    const text = body === "{}" ? `{${metadata}` : `${body.slice(0, -1)},${metadata}`;
    return [{ text, isDocument: true }];
  }
  return resultTexts({ value, run }).map((text) => ({ text, isDocument: false }));
}

/** Returns a loaded document's text: body and metadata, as one value of the script. */
function loadedValue(loaded: LoadedValue | undefined, alias: string, isList: boolean): Value {
  if (loaded === null || loaded === undefined) return null;
  if (typeof loaded !== "string") {
    if (!isList) throw severalValues(alias);
    const present = loaded.filter((text) => text !== null);
    return new ScriptArray(present.map((text) => loadedValue(text, alias, false)));
  }
  const { "@metadata": metadata } = JSON.parse(loaded) as { "@metadata"?: { "@id"?: string } };
  // The server composed the text: `@metadata` is the last member.
  const at = loaded.lastIndexOf(',"@metadata":{');
  const open = at < 0 ? loaded.indexOf('"@metadata":{') : at + 1;
  const body = at < 0 ? "{}" : `${loaded.slice(0, at)}}`;
  const metadataText = loaded.slice(open + '"@metadata":'.length, -1);
  return ScriptDocument.fromText(body, metadataText, metadata?.["@id"] ?? null).root;
}

/** Returns the expression that computes the row. */
function projectionText(projection: AnalyzedQuery["projection"], root: string): string {
  if (projection.kind === "script") return projection.script.text;
  assert(projection.kind === "call", "a script makes the rows");
  return callText(projection.call, root);
}

function callText(call: ProjectedCall | ProjectedSeries, root: string): string {
  return `${call.name}(${call.args.map((argument) => valueText(argument, root)).join(", ")})`;
}

function valueText(value: ProjectedValue, root: string): string {
  switch (value.kind) {
    case "call":
    case "series":
      return callText(value, root);
    case "whole":
      return value.alias;
    case "path":
      return `${value.root ?? root}${membersText(value.path)}`;
    case "constant":
      return jsonText(value.value);
    case "id":
      return `id(${root})`;
    case "counter": {
      const of =
        value.of === null ? root : `${value.of.alias ?? root}${membersText(value.of.path)}`;
      return `${value.isRaw ? "counterRaw" : "counter"}(${of}, ${JSON.stringify(value.name)})`;
    }
    case "compare-exchange":
      return `cmpxchg(${valueText(value.key, root)})`;
    case "group-key":
      return "key()";
    case "count":
      return "count()";
    case "sum":
      return `sum(x => x${membersText(value.field.path)})`;
  }
}

/** `["A"]["B"]`; each `[]` becomes a `map` over the elements. */
function membersText(path: readonly PathPart[]): string {
  let text = "";
  for (const [at, { name, arrays }] of path.entries()) {
    text += `[${JSON.stringify(name)}]`;
    const rest = membersText(path.slice(at + 1));
    if (arrays > 0) return `${text}.map(x => x${rest})`;
  }
  return text;
}

/** Rewrites a projection that is a call as a script that returns its result; null is then no row. */
export function callAsScript(query: AnalyzedQuery): AnalyzedQuery {
  const { projection, source } = query;
  if (projection.kind !== "call") return query;
  const text = callText(projection.call, source.alias ?? rowName);
  return { ...query, projection: { kind: "script", script: { kind: "script", offset: 0, text } } };
}

/** Rewrites columns that call declared functions as one script that computes all columns. */
export function withCallsAsScript(query: AnalyzedQuery): AnalyzedQuery {
  const { projection, source } = query;
  if (projection.kind !== "fields") return query;
  if (!projection.fields.some(({ value }) => hasCall(value))) return query;
  const root = source.alias ?? rowName;
  const member = ({ key, value }: ProjectedField) =>
    `${JSON.stringify(key)}: ${valueText(value, root)}`;
  const text = `{ ${projection.fields.map(member).join(", ")} }`;
  return { ...query, projection: { kind: "script", script: { kind: "script", offset: 0, text } } };
}

function hasCall(value: ProjectedValue): boolean {
  return value.kind === "call" || (value.kind === "series" && value.args.some(hasCall));
}

/** `filter` as a script expression. */
function conditionText(node: Argument, roots: ReadonlySet<string>): string {
  const text = (operand: Argument) => conditionText(operand, roots);
  switch (node.kind) {
    case "and":
      return `(${node.operands.map(text).join(" && ")})`;
    case "or":
      return `(${node.operands.map(text).join(" || ")})`;
    case "not":
      return `!(${text(node.operand)})`;
    case "true":
      return "true";
    case "comparison": {
      const operators = { "=": "===", "!=": "!==", "<": "<", "<=": "<=", ">": ">", ">=": ">=" };
      return `(${text(node.left)} ${operators[node.operator]} ${text(node.right)})`;
    }
    case "between":
      return "false";
    case "in":
      return `[${node.values.map(text).join(", ")}].includes(${text(node.left)})`;
    case "call":
      return `${node.name}(${node.args.map(text).join(", ")})`;
    case "literal":
      return jsonText(scalarOf(node));
    case "parameter":
      return `$${node.name}`;
    case "field":
      return fieldText(node, roots);
  }
}

function fieldText({ path }: Field, roots: ReadonlySet<string>): string {
  const [first, ...rest] = path;
  if (first !== undefined && roots.has(first.name) && first.arrays === 0) {
    return `${first.name}${membersText(rest)}`;
  }
  return `${rowName}${membersText(path)}`;
}

/** The read-only host of query scripts. */
export class ReadingScriptHost implements ScriptHost {
  readonly readOnly = true;
  readonly included = { documents: new Set<string>(), compareExchange: new Set<string>() };
  readonly #state: DatabaseState;
  readonly #source: RowSource;
  readonly series = new SeriesResults();
  /** Records that a run missed, fetched for the next run, by position. */
  readonly fetched = new Map<Position, OwnedBytes>();

  constructor(state: DatabaseState, source: RowSource) {
    this.#state = state;
    this.#source = source;
  }

  now(): number {
    return Math.floor(this.#state.nowMicros() / 1000);
  }

  random(): number {
    return Math.random();
  }

  load(id: string, hint?: ShapeHint): ScriptDocument | null {
    const { documents, log } = this.#state;
    const docNum = documents.find(id);
    if (docNum < 0) return null;
    const position = documents.positionOf(docNum);
    const length = documents.lengthOf(docNum);
    const record = log.peek(position, length) ?? this.fetched.get(position) ?? null;
    if (record === null) throw new RecordNotResident(docNum, position, length);
    return scriptDocumentOf(this.#state, record, 0, hint);
  }

  put(): string {
    throw readOnly();
  }

  delete(): boolean {
    throw readOnly();
  }

  counter(id: string, name: string): number | null {
    const value = this.#source.counterOf(id, name);
    return value === null ? null : Number(value);
  }

  counterParts(id: string, name: string): Readonly<Record<string, number>> | null {
    const text = this.#source.rawCounterOf(id, name);
    return text === null ? null : (JSON.parse(text) as Record<string, number>);
  }

  incrementCounter(): void {
    throw readOnly();
  }

  deleteCounter(): void {
    throw readOnly();
  }

  timeSeries(id: string, name: string): ScriptTimeSeries {
    return new StoredScriptSeries(this.#source.seriesOf(id, name));
  }

  seriesQuery(name: string, values: readonly Value[]): string {
    return this.series.textOf(name, values);
  }

  compareExchange(key: string): string | null {
    return this.#source.compareExchangeOf(key);
  }

  include(id: string): void {
    this.included.documents.add(id);
  }

  includeCompareExchange(key: string): void {
    this.included.compareExchange.add(key);
  }

  output(): void {}
}
