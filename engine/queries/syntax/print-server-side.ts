/**
 * Syntax tree -> the text that `debug=serverSideQuery` shows, in the style of RavenDB 7.2.7: keywords in capitals, a
 * line for each clause, every connective in parentheses.
 *
 * Unlike the canonical text, for people only: a text column loses its quotes, `all in` its `all`.
 *
 * Invariants:
 * - Each clause begins on a new line, except `WHERE` and a first `FILTER`, which follow the source.
 */

import { inlineSeriesName } from "../time-series/analyze-series.ts";
import type {
  Declaration,
  Expression,
  Field,
  LoadItem,
  Logical,
  OrderType,
  Query,
  Script,
  SelectItem,
} from "./ast.ts";
import { QueryPrinter } from "./print.ts";

const namePattern = /^\p{L}[\p{L}\p{N}]*$/u;

/** Returns the query as the server understands it. */
export function printServerSide(query: Query): string {
  return printer.query(query);
}

class ServerSidePrinter extends QueryPrinter {
  override query(query: Query): string {
    const { select, source, where, filter, paging } = query;
    const body = select?.body ?? null;
    const script = body !== null && "kind" in body ? body : null;
    const [items, series] = withSeriesNamed(
      script === null && body !== null ? (body as readonly SelectItem[]) : [],
    );
    let text = query.declarations.map((one) => this.declaration(one)).join("");
    for (const one of series) text += seriesDeclaration(one);
    if (script !== null) text += projectionFunction(query, script);
    const index = source.form === "index" ? "INDEX " : "";
    text += `FROM ${index}${this.name(source.name)}${this.alias(source.alias)}`;
    text = line(
      text,
      this.list("group by", query.groupBy, (one) => this.aliased(one)),
    );
    if (where !== null) text += ` WHERE ${this.expression(where)}\n`;
    if (filter !== null) {
      text += `${text.endsWith("\n") ? "" : " "}FILTER ${this.expression(filter)}\n`;
    }
    text = line(
      text,
      this.list("order by", query.orderBy, (one) => this.orderItem(one)),
    );
    text = line(
      text,
      this.list("load", query.load, (one) => this.loadItem(one)),
      "\n",
    );
    const prefix = select?.isDistinct === true ? "SELECT DISTINCT" : "SELECT";
    if (script !== null) text = line(text, `${prefix} { \n${script.text.slice(1, -1)}\n}`, "\n");
    else if (body !== null) {
      text = line(
        text,
        this.list(prefix, items, (one) => this.selectItem(one)),
        "\n",
      );
    }
    text = line(
      text,
      this.list("include", query.include, (one) => this.argument(one)),
      "\n",
    );
    for (const part of this.paging({ ...paging, filterTake: null })) text = line(text, part);
    return text;
  }

  protected override keyword(word: string): string {
    return word.toUpperCase();
  }

  protected override declaration(declaration: Declaration): string {
    return declaration.form === "timeseries"
      ? seriesDeclaration(declaration.body)
      : `${super.declaration(declaration)}\n\n`;
  }

  protected override orderType(type: OrderType): string {
    return type.toLowerCase();
  }

  protected override loadItem({ expression, alias, isArray }: LoadItem): string {
    return this.argument(expression) + this.alias(isArray ? `${alias}[]` : alias);
  }

  protected override selectItem(item: SelectItem): string {
    const { expression, alias } = item;
    const isText = expression.kind === "literal" && expression.type === "string";
    return isText ? expression.text + this.alias(alias) : super.selectItem(item);
  }

  protected override inOperator(): string {
    return "IN";
  }

  protected override not(operand: Expression): string {
    return `NOT (${this.expression(operand)})`;
  }

  /** `and` groups to the left, `or` to the right. */
  protected override logical({ kind, operands }: Logical): string {
    const texts = operands.map((operand) => this.expression(operand));
    if (kind === "and") return texts.reduce((left, right) => `(${left} AND ${right})`);
    return texts.reduceRight((right, left) => `(${left} OR ${right})`);
  }

  protected override field({ path }: Field): string {
    const parts = path.flatMap(({ name, arrays }) => [
      this.name(name),
      ...Array.from({ length: arrays }, () => "'[]'"),
    ]);
    return parts.join(".");
  }

  protected override name(name: string): string {
    return namePattern.test(name) ? name : this.quote(name);
  }

  protected override quote(text: string): string {
    return `'${text.replaceAll("'", "\\'")}'`;
  }
}

const printer = new ServerSidePrinter();

/** `text` with a clause on a new line, unless the clause is empty. */
function line(text: string, clause: string, end = ""): string {
  if (clause === "") return text;
  return `${text}${text.endsWith("\n") ? "" : "\n"}${clause}${end}`;
}

/** A series query is shown without its name and parameters. */
function seriesDeclaration({ text }: Script): string {
  return `DECLARE ${text}\n\n`;
}

/** Replaces the series queries in columns by calls. @returns the columns and the series queries */
function withSeriesNamed(items: readonly SelectItem[]): [SelectItem[], Script[]] {
  const series: Script[] = [];
  const named = items.map((item): SelectItem => {
    const { expression } = item;
    if (expression.kind !== "time-series") return item;
    const name = inlineSeriesName(series.push(expression.body) - 1);
    return { ...item, expression: { kind: "call", offset: expression.offset, name, args: [] } };
  });
  return [named, series];
}

/** Returns the function that a `select { … }` is converted to. */
function projectionFunction({ source, load }: Query, { text }: Script): string {
  const aliases = [source.alias, ...load.map(({ alias }) => alias), "rvnQueryArgs"];
  const parameters = aliases.filter((alias) => alias !== null).join(", ");
  return `DECLARE function __selectOutput(${parameters}) { \n    return ${text};\n}\n\n\n`;
}
