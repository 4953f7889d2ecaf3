/**
 * From text to a checked query: parse and analyse, with the parsed trees of recent texts kept. Clients send few texts with
 * many parameters, so parsing is done once for each text and analysis, which needs the parameters, each time.
 */
import { analyzeQuery } from "./analyze.ts";
import type { RequestPaging } from "./analyze-paging.ts";
import type { AnalyzedQuery, QueryKind } from "./analyzed-query.ts";
import type { Query } from "./ast.ts";
import { parsePatchQuery, parseQuery } from "./parser.ts";
import type { QueryParameters } from "./query-parameters.ts";

/** Trees kept, and characters of a text that is kept at all. */
const keptMax = 512;
const keptLengthMax = 16_384;

export class QueryCompiler {
  readonly #nowMicros: () => number;
  /** By kind and text; the least recently used first. */
  readonly #trees = new Map<string, Query>();

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

  #parse(text: string, kind: QueryKind): Query {
    const isPatch = kind === "patch";
    const key = `${isPatch ? "patch" : "read"}:${text}`;
    const known = this.#trees.get(key);
    if (known !== undefined) {
      this.#trees.delete(key);
      this.#trees.set(key, known);
      return known;
    }
    const tree = isPatch ? parsePatchQuery(text) : parseQuery(text);
    if (text.length > keptLengthMax) return tree;
    this.#trees.set(key, tree);
    if (this.#trees.size > keptMax) {
      const oldest = this.#trees.keys().next();
      if (!oldest.done) this.#trees.delete(oldest.value);
    }
    return tree;
  }
}
