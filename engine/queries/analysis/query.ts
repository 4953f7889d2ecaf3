/**
 * From text to a checked query: parse and analyze, with a cache of recent texts. Clients send few texts with many
 * parameters, so each text is parsed once, and for most texts only the parts that depend on the parameters are analyzed
 * again.
 */
import { queryTreeBytesMax } from "../../base/limits.ts";
import { RecentCache } from "../../base/memory/recent-cache.ts";
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { mayUseFastPath } from "../execution/execute-fast-path.ts";
import type { Query } from "../syntax/ast.ts";
import { parsePatchQuery, parseQuery } from "../syntax/parser.ts";
import { analyzeQuery } from "./analyze.ts";
import type { RequestPaging } from "./analyze-paging.ts";
import type { AnalyzedQuery, QueryKind } from "./analyzed-query.ts";
import { flatParameters, type QueryParameters, readQueryParameters } from "./query-parameters.ts";
import { isRebindable, rebind } from "./rebind.ts";

/** Base cost of a query, and cost of parsing and analyzing a character. */
const queryUnits = 1024;
const textUnits = 8;
/**
 * Maximum length of a text whose tree is cached, in characters, and approximate memory of a tree per character
 * (measured).
 */
const keptLengthMax = 16_384;
const bytesPerCharacter = 64;
/**
 * Length of a text with its parameters above which each step uses a time slice of its own, and no analysis is cached,
 * in characters.
 */
const longLengthMin = 4_096;

/** A cached query text, as reported to callers. Times are microseconds since 1970. */
export interface CachedQueryInfo {
  readonly text: string;
  readonly createdMicros: number;
  readonly queriedMicros: number;
  /** Name of the collection or index, as written in the text. */
  readonly sourceName: string;
  readonly isOfIndex: boolean;
  readonly isGroupBy: boolean;
  /** The index that it needs, or `collection/Name`; null: it was never analyzed without a mistake. */
  readonly indexName: string | null;
}

/** Cache entry of a text. */
interface CachedText {
  readonly tree: Query;
  readonly isRebindable: boolean;
  readonly createdMicros: number;
  queriedMicros: number;
  indexName: string | null;
  /** The last analysis of a read, without its parameters. */
  analyzed: AnalyzedQuery | null;
  /** Whether the fast path supports that analysis for some parameter values (execute-fast-path.ts). */
  mayUseFastPath: boolean;
}

export class QueryCompiler {
  readonly #nowMicros: () => number;
  readonly #patches = new RecentCache<CachedText>(queryTreeBytesMax / 2);
  /** Of all other kinds. */
  readonly #reads = new RecentCache<CachedText>(queryTreeBytesMax / 2);
  /** The last large text, between parsing and analysis. */
  #large: { readonly text: string; readonly isPatch: boolean; readonly known: CachedText } | null =
    null;

  constructor(nowMicros: () => number) {
    this.#nowMicros = nowMicros;
  }

  /**
   * @param isLong the text or the parameters are so long that the analysis is not kept for the next time
   * @throws query-syntax, query-invalid, not-supported, invalid-argument, invalid-operation
   */
  compile(
    text: string,
    kind: QueryKind,
    parameters: QueryParameters | null,
    paging?: RequestPaging,
    isLong = true,
  ): AnalyzedQuery {
    const nowMicros = this.#nowMicros();
    const options = { kind, parameters, nowMicros, paging };
    const known = this.#known(text, kind);
    const { tree, analyzed } = known;
    known.queriedMicros = nowMicros;
    if (analyzed !== null && kind === "read") {
      const again = rebind(analyzed, tree, options);
      if (again !== null) return again;
    }
    const query = analyzeQuery(text, tree, options);
    known.indexName ??= sourceNameOf(query);
    const isKept = kind === "read" && known.isRebindable && !isLong;
    if (isKept) {
      known.analyzed = { ...query, parameters: null };
      known.mayUseFastPath = mayUseFastPath(query);
    }
    return query;
  }

  /**
   * As `compile`, for a read of a known text with few values that may be plain; null: it is another. Costs little enough to
   * need no pause; it is charged to the budget. Hot. @throws as `compile`
   */
  compileSimple(
    text: string,
    parametersText: string | null,
    budget: WorkBudget,
    paging: RequestPaging,
  ): AnalyzedQuery | null {
    const known = this.#reads.get(text);
    if (known === undefined || !known.mayUseFastPath || known.analyzed === null) return null;
    budget.tick(queryUnits + text.length * textUnits);
    if (budget.isDue) return null;
    const parameters = parametersText === null ? null : flatParameters(parametersText);
    if (parametersText !== null && parameters === null) return null;
    const nowMicros = this.#nowMicros();
    known.queriedMicros = nowMicros;
    return rebind(known.analyzed, known.tree, { kind: "read", parameters, nowMicros, paging });
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
    // Each query checks the clock once: many small queries may run in one tick of the event loop.
    budget.tick(queryUnits + text.length * textUnits);
    if (budget.isDue) yield;
    this.#known(text, kind);
    const isLong = text.length + (parametersText?.length ?? 0) > longLengthMin;
    if (isLong) yield;
    const analyzed = this.compile(text, kind, parameters, paging, isLong);
    if (isLong) yield;
    return analyzed;
  }

  /** A read was answered without its analysis, because nothing has changed. */
  noteUse(text: string): void {
    const known = this.#reads.get(text);
    if (known !== undefined) known.queriedMicros = this.#nowMicros();
  }

  /** Lists the cached texts of queries, the least recently used first. Patches are excluded. */
  *known(): Generator<CachedQueryInfo> {
    for (const [text, known] of this.#reads.entries()) {
      const { tree, createdMicros, queriedMicros, indexName } = known;
      yield {
        text,
        createdMicros,
        queriedMicros,
        sourceName: tree.source.name,
        isOfIndex: tree.source.form === "index",
        isGroupBy: tree.groupBy.length > 0,
        indexName,
      };
    }
  }

  /** Returns a text and its syntax tree. @throws query-syntax */
  #known(text: string, kind: QueryKind): CachedText {
    const isPatch = kind === "patch";
    const large = this.#large;
    if (large !== null && large.text === text && large.isPatch === isPatch) {
      this.#large = null;
      return large.known;
    }
    const texts = isPatch ? this.#patches : this.#reads;
    const kept = texts.get(text);
    if (kept !== undefined) return kept;
    const tree = isPatch ? parsePatchQuery(text) : parseQuery(text);
    const isLarge = text.length > keptLengthMax;
    const nowMicros = this.#nowMicros();
    const known = {
      tree,
      isRebindable: !isLarge && isRebindable(tree),
      createdMicros: nowMicros,
      queriedMicros: nowMicros,
      indexName: null,
      analyzed: null,
      mayUseFastPath: false,
    };
    this.#large = isLarge ? { text, isPatch, known } : null;
    if (!isLarge) texts.set(text, known, bytesPerCharacter * text.length);
    return known;
  }
}

/** Returns the source of a query's results, as far as its text determines it: an index, or `collection/Name`. */
export function sourceNameOf({ access, source }: AnalyzedQuery): string {
  return access.kind === "collection" ? `collection/${source.name}` : access.name;
}
