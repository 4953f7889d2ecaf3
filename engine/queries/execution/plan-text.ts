/**
 * Describes how a query is answered, in one line for the log: the index, the cost of each condition, and how the rows
 * are ordered.
 *
 *   index Auto/Users/ByAge: Age >= ?; filter on each document; order: sort by Age desc; rows by script
 *
 * Invariants:
 * - Names of fields, methods and indexes are shown, values never are.
 * - The line is bounded, however large the query is.
 */
import type { AnalyzedQuery, Condition, OrderKey, Projection } from "../analysis/analyzed-query.ts";
import { operandsOf } from "../analysis/meaning-of.ts";
import { pageEndOf } from "./execute-order.ts";

const lengthMax = 1_000;
/** Conditions that are shown; the others are counted. */
const conditionsMax = 24;

/** Returns the plan of a query, as far as its text and parameters decide it. Cost: O(shown conditions). */
export function planText(query: AnalyzedQuery): string {
  const parts = [sourceText(query)];
  if (query.filter !== null) parts.push("filter on each document");
  const order = orderText(query);
  if (order !== null) parts.push(order);
  if (query.isDistinct) parts.push("distinct");
  if (query.load.length > 0) parts.push(`${query.load.length} loaded for each`);
  const rows = rowsText[query.projection.kind];
  if (rows !== null) parts.push(rows);
  const text = parts.join("; ");
  return text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
}

function sourceText({ access, source, where, groupBy }: AnalyzedQuery): string {
  if (access.kind === "collection") {
    const walked = `collection ${source.name}`;
    if (access.ids === null) return `${walked}: all of it`;
    return access.ids.kind === "prefix"
      ? `${walked}: ids by prefix`
      : `${walked}: ${access.ids.ids.length} ids`;
  }
  const grouped = groupBy === null ? "" : " (groups)";
  return `index ${access.name}${grouped}: ${where === null ? "all of it" : conditionsText(where)}`;
}

/** Returns a condition without its values; many of them are cut. */
export function conditionsText(condition: Condition): string {
  let left = conditionsMax;
  const textOf = (one: Condition): string => {
    if (left === 0) return "…";
    const operands = operandsOf(one);
    if (operands.length === 0) {
      left--;
      return leafText(one);
    }
    const shown: string[] = [];
    for (const operand of operands) {
      if (left > 0) shown.push(textOf(operand));
    }
    if (shown.length < operands.length) shown.push(`${operands.length - shown.length} more`);
    const isJoined = one.kind === "and" || one.kind === "or";
    return isJoined ? `(${shown.join(` ${one.kind} `)})` : `${one.kind}(${shown.join(", ")})`;
  };
  return textOf(condition);
}

function leafText(condition: Condition): string {
  if (condition.kind === "true") return "everything";
  const name = "field" in condition ? condition.field.name : "";
  switch (condition.kind) {
    case "none":
      return `${name}: nothing`;
    case "comparison":
      return `${name} ${condition.operator} ?`;
    case "between":
      return `${name} between ? and ?`;
    case "in":
      return `${name} in ${condition.values.length} values`;
    default:
      return `${condition.kind}(${name})`;
  }
}

/** null: as the rows are found. */
function orderText(query: AnalyzedQuery): string | null {
  const { orderBy, access } = query;
  const [first] = orderBy;
  if (first === undefined || access.kind === "collection") return null;
  const keys = orderBy.map(keyText).join(", ");
  // As `firstEntries` decides, which also knows how many are found.
  const mayWalk = first.kind === "field" || first.kind === "spatial.distance";
  return mayWalk && pageEndOf(query) !== null
    ? `order: walk of ${keys} until the page is full, or sort where few are found`
    : `order: sort by ${keys}`;
}

export function keyText(key: OrderKey): string {
  const name = key.kind === "field" ? key.field.name : `${key.kind}()`;
  return key.isDescending ? `${name} desc` : name;
}

const rowsText: Readonly<Record<Projection["kind"], string | null>> = {
  document: null,
  fields: "rows of fields",
  script: "rows by script",
  call: "rows by script",
  facets: "facets",
  suggestions: "suggestions",
};

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** `41,208` */
export function numberText(value: number): string {
  return whole.format(value);
}

/** `1 entry`, `2 entries` */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${numberText(value)} ${value === 1 ? one : many}`;
}
