/**
 * From text to a checked query: parse and analyze, with a cache of the syntax trees of recent texts. Clients send few
 * texts with many parameters, so each text is parsed once; analysis, which needs the parameters, runs each time.
 */
import { queryTreeBytesMax } from "../base/limits.ts";
import { RecentCache } from "../base/recent-cache.ts";
import type { Work, WorkBudget } from "../base/work-budget.ts";
import { analyzeQuery } from "./analyze.ts";
import type { RequestPaging } from "./analyze-paging.ts";
import type { AnalyzedQuery, QueryKind } from "./analyzed-query.ts";
import type { Query } from "./ast.ts";
import { parsePatchQuery, parseQuery } from "./parser.ts";
import { type QueryParameters, readQueryParameters } from "./query-parameters.ts";

/** Base cost of a query, and cost of parsing and analyzing a character. */
const queryUnits = 1024;
const textUnits = 8;
/** Maximum characters of a text whose tree is cached, and about what a tree takes for each, measured. */
const keptLengthMax = 16_384;
const bytesPerCharacter = 64;
/** Characters of a text with its parameters above which each step gets a turn of its own. */
const longLengthMin = 4_096;

export class QueryCompiler {
  readonly #nowMicros: () => number;
  /** By kind and text. */
  readonly #trees = new RecentCache<Query>(queryTreeBytesMax);
  /** The last large text, between parsing and analysis. */
  #large: { readonly key: string; readonly tree: Query } | null = null;

  constructor(nowMicros: () => number) {
    this.#nowMicros = nowMicros;
  }

  /** @throws query-syntax, query-invalid, not-supported, invalid-argument, invalid-operation */
  compile(
    text: string,
    kind: QueryKind,
    parameters: QueryParameters | null,
    paging?: RequestPaging,
  ): AnalyzedQuery {
    const nowMicros = this.#nowMicros();
    const options = { kind, parameters, nowMicros, ...(paging === undefined ? {} : { paging }) };
    return analyzeQuery(text, this.#parse(text, kind), options);
  }

  /** As `compile`, as work that pauses between its steps. */
  *compileInSlices(
    text: string,
    kind: QueryKind,
    parametersText: string | null,
    budget: WorkBudget,
    paging?: RequestPaging,
  ): Work<AnalyzedQuery> {
    const parameters =
      parametersText === null ? null : yield* readQueryParameters(parametersText, budget);
    // Each query checks the clock once: many small ones may run in one turn of the event loop.
    budget.tick(queryUnits + text.length * textUnits);
    if (budget.isDue) yield;
    this.#parse(text, kind);
    const isLong = text.length + (parametersText?.length ?? 0) > longLengthMin;
    if (isLong) yield;
    const analyzed = this.compile(text, kind, parameters, paging);
    if (isLong) yield;
    return analyzed;
  }

  #parse(text: string, kind: QueryKind): Query {
    const isPatch = kind === "patch";
    const key = `${isPatch ? "patch" : "read"}:${text}`;
    if (this.#large?.key === key) {
      const { tree } = this.#large;
      this.#large = null;
      return tree;
    }
    const known = this.#trees.get(key);
    if (known !== undefined) return known;
    const tree = isPatch ? parsePatchQuery(text) : parseQuery(text);
    this.#large = text.length > keptLengthMax ? { key, tree } : null;
    if (this.#large === null) this.#trees.set(key, tree, bytesPerCharacter * text.length);
    return tree;
  }
}
