/**
 * Syntax tree -> the text that `debug=serverSideQuery` shows, in the style of RavenDB 7.2.7: keywords in capitals, a
 * line for each clause, every connective in parentheses.
 *
 * Unlike print.ts, for people only: a text column loses its quotes, `all in` its `all`.
 *
 * Invariants:
 * - Each clause begins on a new line, except `WHERE` and a first `FILTER`, which follow the source.
 */
import { unreachable } from "../base/assert.ts";
import type {
  Argument,
  Declaration,
  Expression,
  Field,
  Logical,
  OrderItem,
  Query,
  Script,
  SelectItem,
} from "./ast.ts";

const namePattern = /^\p{L}[\p{L}\p{N}]*$/u;

/** The query as the server understands it. */
export function printServerSide(query: Query): string {
  const { select, source, where, filter, paging } = query;
  const script = select !== null && select.body !== null && "kind" in select.body;
  let text = query.declarations.map(printDeclaration).join("");
  if (script) text += printProjection(query, select.body as Script);
  const index = source.form === "index" ? "INDEX " : "";
  text += `FROM ${index}${printName(source.name)}${printAlias(source.alias)}`;
  text = line(text, list("GROUP BY", query.groupBy.map(printAliased)));
  if (where !== null) text += ` WHERE ${printExpression(where)}\n`;
  if (filter !== null) {
    text += `${text.endsWith("\n") ? "" : " "}FILTER ${printExpression(filter)}\n`;
  }
  text = line(text, list("ORDER BY", query.orderBy.map(printOrderItem)));
  text = line(text, list("LOAD", query.load.map(printLoadItem)), "\n");
  if (select !== null && select.body !== null) {
    const prefix = select.isDistinct ? "SELECT DISTINCT" : "SELECT";
    const body = script
      ? `${prefix} { \n${(select.body as Script).text.slice(1, -1)}\n}`
      : list(prefix, (select.body as readonly SelectItem[]).map(printSelectItem));
    text = line(text, body, "\n");
  }
  text = line(text, list("INCLUDE", query.include.map(printArgument)), "\n");
  if (paging.take !== null) text = line(text, `LIMIT ${printArgument(paging.take)}`);
  if (paging.skip !== null) text = line(text, `OFFSET ${printArgument(paging.skip)}`);
  return text;
}

/** `text` with a clause on a new line, unless the clause is empty. */
function line(text: string, clause: string, end = ""): string {
  if (clause === "") return text;
  return `${text}${text.endsWith("\n") ? "" : "\n"}${clause}${end}`;
}

function list(keyword: string, items: readonly string[]): string {
  return items.length === 0 ? "" : `${keyword} ${items.join(", ")}`;
}

function printDeclaration({ form, name, parameters, body }: Declaration): string {
  return `DECLARE ${form} ${name}(${parameters}) ${body.text}\n\n`;
}

/** The function that a `select { … }` is converted to. */
function printProjection({ source, load }: Query, { text }: Script): string {
  const aliases = [source.alias, ...load.map(({ alias }) => alias), "rvnQueryArgs"];
  const parameters = aliases.filter((alias) => alias !== null).join(", ");
  return `DECLARE function __selectOutput(${parameters}) { \n    return ${text};\n}\n\n\n`;
}

function printOrderItem({ expression, type, isDescending, nulls }: OrderItem): string {
  const typeText = type === null ? "" : ` AS ${type.toLowerCase()}`;
  const nullsText = nulls === null ? "" : ` NULLS ${nulls.toUpperCase()}`;
  return printArgument(expression) + typeText + (isDescending ? " DESC" : "") + nullsText;
}

function printLoadItem({ expression, alias, isArray }: Query["load"][number]): string {
  return printArgument(expression) + printAlias(isArray ? `${alias}[]` : alias);
}

function printSelectItem({ expression, alias }: SelectItem): string {
  if (expression.kind === "time-series") {
    return `timeseries${expression.body.text}${printAlias(alias)}`;
  }
  const isText = expression.kind === "literal" && expression.type === "string";
  return (isText ? expression.text : printArgument(expression)) + printAlias(alias);
}

function printAliased({ expression, alias }: Query["groupBy"][number]): string {
  return printArgument(expression) + printAlias(alias);
}

function printExpression(expression: Expression): string {
  switch (expression.kind) {
    case "and":
    case "or":
      return printLogical(expression);
    case "not":
      return `NOT (${printExpression(expression.operand)})`;
    case "true":
      return "true";
    case "comparison":
      return `${printArgument(expression.left)} ${expression.operator} ${printArgument(expression.right)}`;
    case "between": {
      const bounds = `${printArgument(expression.low)} AND ${printArgument(expression.high)}`;
      return `${printArgument(expression.left)} BETWEEN ${bounds}`;
    }
    case "in":
      return `${printArgument(expression.left)} IN (${expression.values.map(printArgument).join(", ")})`;
    case "call":
      return `${expression.name}(${expression.args.map(printArgument).join(", ")})`;
    default:
      return unreachable(expression);
  }
}

/** `and` groups to the left, `or` to the right. */
function printLogical({ kind, operands }: Logical): string {
  const texts = operands.map(printExpression);
  if (kind === "and") return texts.reduce((left, right) => `(${left} AND ${right})`);
  return texts.reduceRight((right, left) => `(${left} OR ${right})`);
}

function printArgument(argument: Argument): string {
  switch (argument.kind) {
    case "field":
      return printField(argument);
    case "literal":
      return argument.type === "string"
        ? `'${argument.text.replaceAll("'", "\\'")}'`
        : argument.text;
    case "parameter":
      return `$${argument.name}`;
    default:
      return printExpression(argument);
  }
}

function printField({ path }: Field): string {
  const parts = path.flatMap(({ name, arrays }) => [
    printName(name),
    ...Array.from({ length: arrays }, () => "'[]'"),
  ]);
  return parts.join(".");
}

function printAlias(alias: string | null): string {
  return alias === null ? "" : ` AS ${printName(alias)}`;
}

function printName(name: string): string {
  return namePattern.test(name) ? name : `'${name.replaceAll("'", "\\'")}'`;
}
