/**
 * Syntax tree -> canonical RQL: keywords in lower case, one space, strings in single quotes.
 *
 * Scripts are copied as written: this file does not parse JavaScript.
 *
 * Invariants:
 * - Parsing the printed text returns the same tree, except for positions.
 * - Printing is a fixed point: print(parse(print(tree))) is print(tree).
 */
import { unreachable } from "../../base/assert.ts";
import type {
  Argument,
  Declaration,
  Expression,
  Field,
  In,
  Literal,
  LoadItem,
  Logical,
  OrderItem,
  OrderType,
  Paging,
  PathPart,
  Query,
  Select,
  SelectItem,
  Source,
  Value,
} from "./ast.ts";
import { reservedWords } from "./token.ts";

const wordPattern = /^(?:[\p{L}_][\p{L}\p{N}_-]*|@[\p{L}\p{N}_-]+)$/u;
const pathPartPattern = /^[\p{L}\p{N}@][\p{L}\p{N}_-]*$/u;

/** The canonical spelling. A subclass (print-server-side.ts) overrides the constructs that it spells differently. */
export class QueryPrinter {
  /** Returns a whole query as one line of text, except for line breaks in scripts and strings. */
  query(query: Query): string {
    const { declarations, source, groupBy, where, orderBy, load, filter } = query;
    const clauses = [
      ...declarations.map((one) => this.declaration(one)),
      this.source(source),
      this.list("group by", groupBy, (one) => this.aliased(one)),
      where === null ? "" : `where ${this.expression(where)}`,
      this.list("order by", orderBy, (one) => this.orderItem(one)),
      this.list("load", load, (one) => this.loadItem(one)),
      filter === null ? "" : `filter ${this.expression(filter)}`,
      query.select === null ? "" : this.select(query.select),
      query.update === null ? "" : `update ${query.update.text}`,
      this.list("include", query.include, (one) => this.argument(one)),
      ...this.paging(query.paging),
    ];
    return clauses.filter((clause) => clause !== "").join(" ");
  }

  protected keyword(word: string): string {
    return word;
  }

  /** Prints a clause of items; empty if the clause has no items. */
  protected list<Item>(
    keyword: string,
    items: readonly Item[],
    print: (item: Item) => string,
  ): string {
    return items.length === 0 ? "" : `${this.keyword(keyword)} ${items.map(print).join(", ")}`;
  }

  protected declaration({ form, name, parameters, body }: Declaration): string {
    return `${this.keyword("declare")} ${form} ${name}(${parameters}) ${body.text}`;
  }

  protected source({ form, name, filter, alias }: Source): string {
    const index = form === "index" ? "index " : "";
    const condition = filter === null ? "" : ` (${this.expression(filter)})`;
    return `from ${index}${this.name(name, form === "collection")}${condition}${this.alias(alias)}`;
  }

  protected orderItem({ expression, type, isDescending, nulls }: OrderItem): string {
    const parts = [this.argument(expression)];
    if (type !== null) parts.push(`${this.keyword("as")} ${this.orderType(type)}`);
    if (isDescending) parts.push(this.keyword("desc"));
    if (nulls !== null) parts.push(this.keyword(`nulls ${nulls}`));
    return parts.join(" ");
  }

  protected orderType(type: OrderType): string {
    return type;
  }

  protected loadItem(item: LoadItem): string {
    return this.aliased(item) + (item.isArray ? "[]" : "");
  }

  protected select({ isDistinct, body }: Select): string {
    const prefix = isDistinct ? "select distinct" : "select";
    if (body === null) return `${prefix} *`;
    if ("kind" in body) return `${prefix} ${body.text}`;
    return this.list(prefix, body, (one) => this.selectItem(one));
  }

  protected selectItem({ expression, alias }: SelectItem): string {
    if (expression.kind !== "time-series") return this.aliased({ expression, alias });
    return `timeseries${expression.body.text}${this.alias(alias)}`;
  }

  protected paging({ skip, take, filterTake }: Paging): string[] {
    const part = (keyword: string, value: Value | null) =>
      value === null ? "" : `${this.keyword(keyword)} ${this.argument(value)}`;
    return [part("limit", take), part("offset", skip), part("filter_limit", filterTake)];
  }

  /** Returns a condition. One nested in another connective gets parentheses where needed. */
  expression(expression: Expression): string {
    switch (expression.kind) {
      case "and":
      case "or":
        return this.logical(expression);
      case "not":
        return this.not(expression.operand);
      case "true":
        return "true";
      case "comparison": {
        const { left, operator, right } = expression;
        return `${this.argument(left)} ${operator} ${this.argument(right)}`;
      }
      case "between": {
        const bounds = `${this.argument(expression.low)} ${this.keyword("and")} ${this.argument(expression.high)}`;
        return `${this.argument(expression.left)} ${this.keyword("between")} ${bounds}`;
      }
      case "in": {
        const values = expression.values.map((value) => this.argument(value)).join(", ");
        return `${this.argument(expression.left)} ${this.inOperator(expression)} (${values})`;
      }
      case "call":
        return `${expression.name}(${expression.args.map((one) => this.argument(one)).join(", ")})`;
      default:
        return unreachable(expression);
    }
  }

  protected inOperator({ isAll }: In): string {
    return isAll ? "all in" : "in";
  }

  protected not(operand: Expression): string {
    return `not ${this.#nested(operand)}`;
  }

  /** `and` inside `or` needs no parentheses, and must not have any when it begins with `not`. */
  protected logical({ kind, operands }: Logical): string {
    return operands
      .map((operand) =>
        kind === "or" && operand.kind === "and" ? this.logical(operand) : this.#nested(operand),
      )
      .join(` ${kind} `);
  }

  #nested(expression: Expression): string {
    const isLogical = expression.kind === "and" || expression.kind === "or";
    return isLogical ? `(${this.logical(expression)})` : this.expression(expression);
  }

  /** Returns a field, a value, a call or a condition, as an argument or operand. */
  argument(argument: Argument): string {
    switch (argument.kind) {
      case "field":
        return this.field(argument);
      case "call":
        return this.expression(argument) + this.alias(argument.alias ?? null);
      case "literal":
        return argument.type === "string" ? this.quote(argument.text) : argument.text;
      case "parameter":
        return `$${argument.name}`;
      default:
        return this.expression(argument);
    }
  }

  protected field({ path, isQuoted }: Field): string {
    const [first, ...rest] = path;
    if (first === undefined) return "";
    const start = isQuoted ? this.quote(first.name) : first.name;
    return start + "[]".repeat(first.arrays) + rest.map((part) => this.#pathPart(part)).join("");
  }

  #pathPart({ name, arrays }: PathPart): string {
    return `.${pathPartPattern.test(name) ? name : this.quote(name)}${"[]".repeat(arrays)}`;
  }

  protected aliased({
    expression,
    alias,
  }: {
    readonly expression: Argument;
    readonly alias: string | null;
  }): string {
    return this.argument(expression) + this.alias(alias);
  }

  protected alias(alias: string | null): string {
    return alias === null ? "" : ` ${this.keyword("as")} ${this.name(alias, true)}`;
  }

  /** Returns a name as a word where possible, otherwise quoted. `isPath`: it may be words separated by points. */
  protected name(name: string, isPath: boolean): string {
    const isWord = wordPattern.test(name) && !reservedWords.has(name.toLowerCase());
    return isPath && isWord ? name : this.quote(name);
  }

  protected quote(text: string): string {
    return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  }
}

const canonical = new QueryPrinter();

export function printQuery(query: Query): string {
  return canonical.query(query);
}

export function printExpression(expression: Expression): string {
  return canonical.expression(expression);
}

export function printArgument(argument: Argument): string {
  return canonical.argument(argument);
}

/** Returns an operand as messages show it: `<Field>: Name`, `x (String)`, `spatial.point(<Field>: A, 5 (Long))`. */
export function describeArgument(argument: Argument): string {
  switch (argument.kind) {
    case "field":
      return `<Field>: ${fieldText(argument)}`;
    case "literal":
      return `${argument.type === "null" ? "" : argument.text} (${literalTypeName(argument)})`;
    case "parameter":
      return `${argument.name} (Parameter)`;
    case "call":
      return `${argument.name}(${argument.args.map(describeArgument).join(", ")})`;
    default:
      return printExpression(argument);
  }
}

/** Returns the name of a literal's type in messages. */
export function literalTypeName({ type, text }: Literal): string {
  if (type === "boolean") return text === "true" ? "True" : "False";
  return type.charAt(0).toUpperCase() + type.slice(1);
}

/** Returns a path as one text: `Lines[].Product`, `Lines.0`. Quotes are dropped. */
export function pathText(path: readonly PathPart[]): string {
  return path.map((part) => part.name + "[]".repeat(part.arrays)).join(".");
}

export function fieldText(field: Field): string {
  return pathText(field.path);
}
