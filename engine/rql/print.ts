/**
 * Syntax tree -> canonical RQL: keywords in lower case, one space, strings in single quotes.
 *
 * Scripts are copied as written: this file does not parse JavaScript.
 *
 * Invariants:
 * - Parsing the printed text gives the same tree, except for positions.
 * - Printing is a fixed point: print(parse(print(tree))) is print(tree).
 */
import { unreachable } from "../base/assert.ts";
import type {
  Argument,
  Declaration,
  Expression,
  Field,
  GroupKey,
  Literal,
  LoadItem,
  Logical,
  OrderItem,
  Paging,
  PathPart,
  Query,
  Select,
  SelectItem,
  Source,
} from "./ast.ts";
import { reservedWords } from "./token.ts";

const wordPattern = /^(?:[\p{L}_][\p{L}\p{N}_-]*|@[\p{L}\p{N}_-]+)$/u;
const pathPartPattern = /^[\p{L}\p{N}@][\p{L}\p{N}_-]*$/u;

/** A whole query as one line of text, except for line breaks in scripts and strings. */
export function printQuery(query: Query): string {
  const clauses = [
    ...query.declarations.map(printDeclaration),
    printSource(query.source),
    list("group by", query.groupBy.map(printGroupKey)),
    query.where === null ? "" : `where ${printExpression(query.where)}`,
    list("order by", query.orderBy.map(printOrderItem)),
    list("load", query.load.map(printLoadItem)),
    query.filter === null ? "" : `filter ${printExpression(query.filter)}`,
    query.select === null ? "" : printSelect(query.select),
    query.update === null ? "" : `update ${query.update.text}`,
    list("include", query.include.map(printArgument)),
    printPaging(query.paging),
  ];
  return clauses.filter((clause) => clause !== "").join(" ");
}

function list(keyword: string, items: readonly string[]): string {
  return items.length === 0 ? "" : `${keyword} ${items.join(", ")}`;
}

function printDeclaration({ form, name, parameters, body }: Declaration): string {
  return `declare ${form} ${name}(${parameters}) ${body.text}`;
}

function printSource({ form, name, filter, alias }: Source): string {
  const index = form === "index" ? "index " : "";
  const condition = filter === null ? "" : ` (${printExpression(filter)})`;
  return `from ${index}${printName(name, form === "collection")}${condition}${printAlias(alias)}`;
}

function printGroupKey({ expression, alias }: GroupKey): string {
  return printArgument(expression) + printAlias(alias);
}

function printOrderItem(item: OrderItem): string {
  const type = item.type === null ? "" : ` as ${item.type}`;
  const direction = item.isDescending ? " desc" : "";
  const nulls = item.nulls === null ? "" : ` nulls ${item.nulls}`;
  return printArgument(item.expression) + type + direction + nulls;
}

function printLoadItem({ expression, alias, isArray }: LoadItem): string {
  return printArgument(expression) + printAlias(alias) + (isArray ? "[]" : "");
}

function printSelect({ isDistinct, body }: Select): string {
  const prefix = isDistinct ? "select distinct " : "select ";
  if (body === null) return `${prefix}*`;
  if ("kind" in body) return prefix + body.text;
  return prefix + body.map(printSelectItem).join(", ");
}

function printSelectItem({ expression, alias }: SelectItem): string {
  const text =
    expression.kind === "time-series"
      ? `timeseries${expression.body.text}`
      : printArgument(expression);
  return text + printAlias(alias);
}

function printPaging({ skip, take, filterTake }: Paging): string {
  const parts: string[] = [];
  if (take !== null) parts.push(`limit ${printArgument(take)}`);
  if (skip !== null) parts.push(`offset ${printArgument(skip)}`);
  if (filterTake !== null) parts.push(`filter_limit ${printArgument(filterTake)}`);
  return parts.join(" ");
}

/** A condition. One nested in another connective gets parentheses where needed. */
export function printExpression(expression: Expression): string {
  switch (expression.kind) {
    case "and":
    case "or":
      return printLogical(expression);
    case "not":
      return `not ${printNested(expression.operand)}`;
    case "true":
      return "true";
    case "comparison": {
      const { left, operator, right } = expression;
      return `${printArgument(left)} ${operator} ${printArgument(right)}`;
    }
    case "between": {
      const { left, low, high } = expression;
      return `${printArgument(left)} between ${printArgument(low)} and ${printArgument(high)}`;
    }
    case "in": {
      const values = expression.values.map(printArgument).join(", ");
      return `${printArgument(expression.left)} ${expression.isAll ? "all in" : "in"} (${values})`;
    }
    case "call":
      return `${expression.name}(${expression.args.map(printArgument).join(", ")})`;
    default:
      return unreachable(expression);
  }
}

/** `and` inside `or` needs no parentheses, and must not have any when it begins with `not`. */
function printLogical({ kind, operands }: Logical): string {
  return operands
    .map((operand) =>
      kind === "or" && operand.kind === "and" ? printLogical(operand) : printNested(operand),
    )
    .join(` ${kind} `);
}

function printNested(expression: Expression): string {
  const isLogical = expression.kind === "and" || expression.kind === "or";
  return isLogical ? `(${printLogical(expression)})` : printExpression(expression);
}

/** A field, a value, a call or a condition, as an argument or operand. */
export function printArgument(argument: Argument): string {
  switch (argument.kind) {
    case "field":
      return printField(argument);
    case "literal":
      return argument.type === "string" ? quote(argument.text) : argument.text;
    case "parameter":
      return `$${argument.name}`;
    default:
      return printExpression(argument);
  }
}

export function printField({ path, isQuoted }: Field): string {
  const [first, ...rest] = path;
  if (first === undefined) return "";
  const start = isQuoted ? quote(first.name) : first.name;
  return start + "[]".repeat(first.arrays) + rest.map(printPathPart).join("");
}

function printPathPart({ name, arrays }: PathPart): string {
  return `.${pathPartPattern.test(name) ? name : quote(name)}${"[]".repeat(arrays)}`;
}

function printAlias(alias: string | null): string {
  return alias === null ? "" : ` as ${printName(alias, true)}`;
}

/** A name as a word where possible, otherwise quoted. `isPath`: it may be words separated by points. */
function printName(name: string, isPath: boolean): string {
  const isWord = wordPattern.test(name) && !reservedWords.has(name.toLowerCase());
  return isPath && isWord ? name : quote(name);
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** An operand as messages show it: `<Field>: Name`, `x (String)`, `spatial.point(<Field>: A, 5 (Long))`. */
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

/** The name of a literal's type in messages. */
export function literalTypeName({ type, text }: Literal): string {
  if (type === "boolean") return text === "true" ? "True" : "False";
  return type.charAt(0).toUpperCase() + type.slice(1);
}

/** A path as one text: `Lines[].Product`, `Lines.0`. Quotes are dropped. */
export function pathText(path: readonly PathPart[]): string {
  return path.map((part) => part.name + "[]".repeat(part.arrays)).join(".");
}

export function fieldText(field: Field): string {
  return pathText(field.path);
}
