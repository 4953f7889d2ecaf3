/**
 * The body of `timeseries( … )` and of `declare timeseries name(…) { … }`: text -> syntax tree.
 *
 * Columns in messages count within the body. Error texts equal those of RavenDB 7.2.7.
 *
 * Invariants:
 * - Nothing here is resolved: names are as written.
 */
import type { EngineError } from "../../base/errors.ts";
import type { Call, Expression, Field, Operand, Script, Value } from "../syntax/ast.ts";
import { Parser } from "../syntax/parser.ts";
import { fieldText } from "../syntax/print.ts";
import { invalidQuery } from "../syntax/syntax-error.ts";

export interface SeriesSyntax {
  /** The series: after a parameter, after an alias, or alone. */
  readonly source: Field;
  readonly range:
    | { readonly kind: "between"; readonly from: Value | Field; readonly to: Value | Field }
    | { readonly kind: "first" | "last"; readonly period: PeriodSyntax }
    | null;
  /** `load Tag as name`; null without an alias too. */
  readonly loadAlias: string | null;
  readonly where: Expression | null;
  readonly groupBy: {
    readonly period: PeriodSyntax;
    /** The second key: `tag`, or a path in the loaded document. */
    readonly key: Field | null;
    readonly interpolation: Call | null;
  } | null;
  readonly select: readonly SeriesSelectItem[];
  readonly scale: Value | null;
  readonly offset: Value | null;
}

export interface SeriesSelectItem {
  readonly expression: Operand;
  readonly alias: string | null;
}

/** A duration as written, `1 day`, or a value that has it. */
export type PeriodSyntax = { readonly kind: "text"; readonly text: string } | Value;

/** Name of a series query in `select`, in messages. */
const inlineName = "time series select function";

/** @param name of the declared function; null: it is in `select`. @throws query-syntax, query-invalid */
export function parseSeries(body: Script, name: string | null): SeriesSyntax {
  return new SeriesParser(body.text).series(name ?? inlineName, name === null ? ")" : "}");
}

class SeriesParser extends Parser {
  /**
   * bracket 'from' path range? load? where? group? select? ('scale' value)? ('offset' value)? bracket
   * load := 'load' 'tag' ('as' name)?
   */
  series(name: string, closing: string): SeriesSyntax {
    this.lexer.next();
    const source = this.tryWord("from") ? this.field() : null;
    if (source === null) {
      throw this.unexpected(`Unable to parse time series query for ${name}, missing FROM`);
    }
    const range = this.#range(name);
    const loadAlias = this.#load(name);
    const where = this.#where(name);
    const groupBy = this.#grouping(name, loadAlias);
    const select = this.#selected();
    const scale = this.#number("scale", name);
    const offset = this.#number("offset", name);
    if (!this.tryPunctuation(closing)) {
      const bracket = closing === ")" ? "closing parentheses )" : "opening parentheses }";
      throw this.unexpected(`Failed to find ${bracket} for ${name}`);
    }
    return { source, range, loadAlias, where, groupBy, select, scale, offset };
  }

  /** 'between' bound 'and' bound | ('first' | 'last') period */
  #range(name: string): SeriesSyntax["range"] {
    if (this.tryWord("between")) {
      const from = this.value() ?? this.field();
      if (from === null) throw this.unexpected("parsing Between, expected value or field (1st)");
      if (!this.tryWord("and")) throw this.unexpected("parsing Between, expected AND");
      const to = this.value() ?? this.field();
      if (to === null) throw this.unexpected("parsing Between, expected value or field (2nd)");
      for (const word of ["First", "Last"]) {
        if (!this.tryWord(word.toLowerCase())) continue;
        const complaint = `Cannot have both '${word}' and 'Between' in the same Time Series query function`;
        throw this.#invalid(`${complaint} '${name}'`);
      }
      return { kind: "between", from, to };
    }
    const kind = this.tryWord("last") ? "last" : this.tryWord("first") ? "first" : null;
    if (kind === null) return null;
    const period = this.#period();
    if (period !== null) return { kind, period };
    throw this.unexpected(`Could not parse '${kind}' argument for '${name}`);
  }

  /** string | number word | parameter */
  #period(): PeriodSyntax | null {
    const value = this.value();
    if (value?.kind !== "literal") return value;
    if (value.type === "string") return { kind: "text", text: value.text };
    const { kind, text } = this.peek();
    const hasUnit =
      kind === "word" && value.type === "long" && !clauseWords.has(text.toLowerCase());
    if (hasUnit) this.lexer.next();
    return { kind: "text", text: hasUnit ? `${value.text} ${text}` : value.text };
  }

  #load(name: string): string | null {
    if (!this.tryWord("load")) return null;
    const field = this.field();
    const found = field === null ? "" : fieldText(field);
    if (found.toLowerCase() === "tag") return this.alias();
    throw this.#invalid(
      `Expected to find 'Tag' after LOAD in time series function '${name}', but got '${found}'.In time series ` +
        "functions you can only use LOAD in order to load by the 'Tag' property of a time series entry. You can use " +
        "the root RQL in order to load any other documents, and can pass them as arguments to the time series function",
    );
  }

  #where(name: string): Expression | null {
    if (!this.tryWord("where")) return null;
    const where = this.expression();
    if (where !== null) return where;
    throw this.#invalid(
      `Failed to parse filter expression after WHERE in time series function '${name}'`,
    );
  }

  /** 'group' 'by' period (',' path)? ('with' call)? */
  #grouping(name: string, loadAlias: string | null): SeriesSyntax["groupBy"] {
    if (!this.tryTwoWords("group", "by", "GROUP BY")) return null;
    const period = this.#period();
    if (period === null) {
      const { text } = this.lexer.next();
      throw this.unexpected(
        `Could not parse 'GROUP BY' argument for '${name}.  Expected to get time period value but got '${text}'. ` +
          "\nGrouping by 'Tag' or Field is supported only as a second grouping-argument.'",
      );
    }
    const key = this.tryPunctuation(",") ? this.field() : null;
    const isTag = key !== null && fieldText(key).toLowerCase() === "tag";
    if (key !== null && !isTag && (loadAlias === null || key.path[0]?.name !== loadAlias)) {
      throw this.#invalid(
        "Group by field expression, is expected to be used with 'Load' document by tag.",
      );
    }
    let interpolation: Call | null = null;
    if (this.tryWord("with")) {
      const call = this.operand();
      if (call?.kind !== "call") {
        throw this.unexpected(`Unable to parse WITH clause in time series function '${name}'`);
      }
      interpolation = call;
    }
    return { period, key, interpolation };
  }

  /** ('select' (operand ('as' name)?) list)? */
  #selected(): SeriesSelectItem[] {
    const items: SeriesSelectItem[] = [];
    if (!this.tryWord("select")) return items;
    do {
      this.refuseLong(items, "'select'");
      const expression = this.operand();
      if (expression === null) throw this.unexpected("Unable to get field for SELECT");
      items.push({ expression, alias: this.alias() });
    } while (this.tryPunctuation(","));
    return items;
  }

  #number(word: "scale" | "offset", name: string): Value | null {
    if (!this.tryWord(word)) return null;
    const value = this.value();
    if (value !== null) return value;
    const clause = word.toUpperCase();
    throw this.#invalid(
      `Failed to parse a value expression after ${clause} in time series function '${name}'`,
    );
  }

  #invalid(complaint: string): EngineError {
    return invalidQuery(complaint, this.text);
  }
}

/** Words that may follow a number without a unit. */
const clauseWords = new Set(["load", "where", "group", "with", "select", "scale", "offset"]);
