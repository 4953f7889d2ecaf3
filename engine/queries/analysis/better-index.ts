/**
 * Proposes an index with which a query would read clearly fewer entries: an index with the fields that its `filter`
 * tests on each document.
 *
 * The proposal is a deployable definition in JavaScript, and the query rewritten for it. The rewritten query retains
 * its `filter`, because the comparisons of `where` ignore the case of texts: the index finds a superset of the matches
 * of `filter`. Filters that a condition of an index cannot express (functions, ranges of texts, null, arrays) have no
 * proposal.
 */
import type { DefinitionField } from "../../indexing/definitions/index-definition.ts";
import { counted, numberText } from "../execution/plan-text.ts";
import type { QueryTrace } from "../execution/query-trace.ts";
import type { Comparison, Expression, Field, In, Query, Value } from "../syntax/ast.ts";
import { printQuery } from "../syntax/print.ts";
import type { AnalyzedQuery } from "./analyzed-query.ts";

export interface BetterIndex {
  readonly name: string;
  /** The text of its only map. */
  readonly map: string;
  /** The query that uses it. */
  readonly query: string;
  /** How many entries would be read for the same page, and how many documents were. */
  readonly reads: number;
  readonly insteadOf: number;
  /** A sentence. */
  readonly text: string;
  /** An index with this name and map exists already, but the query does not use it. */
  readonly isThere: boolean;
}

/**
 * Returns the map of the deployed index with this name, in any case; undefined if the index does not exist; null if it
 * has other maps.
 */
type KnownMap = (name: string) => string | null | undefined;

/** Fewer documents that fail a filter are not worth an index. */
const wastedMin = 32;
/** Of the documents read, the share that passes is at most this. */
const passedShareMax = 0.5;
const nameLengthMax = 120;
const namesMax = 64;
/** Names that need no quoting as members of JavaScript objects. */
const plainName = /^[A-Za-z_$][\w$]*$/;
const rangeOperators = new Set(["<", "<=", ">", ">="]);

/** @param tree of the same text. Null: the index would not read clearly less, or is not known. */
export function betterIndex(
  query: AnalyzedQuery,
  tree: Query,
  trace: QueryTrace,
  known: KnownMap,
): BetterIndex | null {
  const { testedCount, passedCount } = trace;
  if (testedCount - passedCount < wastedMin) return null;
  if (passedCount > testedCount * passedShareMax) return null;
  const given = fieldsInUse(query);
  if (given === null || tree.filter === null) return null;
  const conditions = tree.filter.kind === "and" ? tree.filter.operands : [tree.filter];
  const paths = new Map(given.map((path): [string, readonly string[]] => [path.join("."), path]));
  for (const condition of conditions) {
    const path = indexablePath(condition, query);
    if (path === null) return null;
    paths.set(path.join("."), path);
  }
  const map = mapText(query.source.name, [...paths.values()]);
  const named = freeName(query.source.name, [...paths.keys()], map, known);
  if (named === null) return null;
  const reads = passedCount;
  return {
    ...named,
    map,
    query: queryText(tree, named.name, conditions),
    reads,
    insteadOf: testedCount,
    text: `An index with ${[...paths.keys()].join(", ")} would read ${counted(reads, "entry", "entries")}, not ${numberText(testedCount)} documents.`,
  };
}

/** Returns the paths that `where` and `order by` use; null: an index in JavaScript cannot stand for them. */
function fieldsInUse(query: AnalyzedQuery): readonly (readonly string[])[] | null {
  const { access, source, orderBy, groupBy, projection } = query;
  if (source.isAllDocuments || groupBy !== null || projection.kind === "facets") return null;
  if (access.kind === "collection") {
    return access.ids === null && orderBy.length === 0 ? [] : null;
  }
  if (access.kind !== "automatic-index" || orderBy.some(({ kind }) => kind !== "field"))
    return null;
  const { fields } = access.definition;
  return fields.every(isPlain) ? fields.map(({ path }) => path.map(({ name }) => name)) : null;
}

function isPlain(field: DefinitionField): boolean {
  const { spatial, vector, isQuoted, path } = field;
  const hasOptions = field.hasExact || field.hasSearch || field.hasHighlight || field.hasSuggest;
  const isMade = spatial !== undefined || vector !== undefined;
  const names = path.map(({ name }) => name);
  return (
    !hasOptions && !isMade && !isQuoted && isMember(names) && path.every((one) => one.arrays === 0)
  );
}

function isMember(names: readonly string[]): boolean {
  return names.length > 0 && names.every((name) => plainName.test(name) && name !== "length");
}

/** Returns the path of a condition that an index answers with at least the documents that pass it; null: it may not. */
function indexablePath(condition: Expression, query: AnalyzedQuery): readonly string[] | null {
  if (condition.kind !== "comparison" && condition.kind !== "in") return null;
  if (condition.left.kind !== "field" || !hasIndexableValues(condition, query)) return null;
  return pathOf(condition.left, query);
}

function pathOf({ path, isQuoted }: Field, { source, load }: AnalyzedQuery) {
  const [first] = path;
  if (isQuoted || path.some(({ arrays }) => arrays > 0)) return null;
  if (load.some(({ alias }) => alias === first?.name)) return null;
  const own = source.alias !== null && first?.name === source.alias ? path.slice(1) : path;
  const names = own.map(({ name }) => name);
  return isMember(names) ? names : null;
}

function hasIndexableValues(condition: Comparison | In, query: AnalyzedQuery): boolean {
  if (condition.kind === "in") {
    if (condition.isAll) return false;
    return condition.values.every((value) => ["string", "number"].includes(typeOf(value, query)));
  }
  const { operator, right } = condition;
  if (right.kind === "field" || right.kind === "call") return false;
  const type = typeOf(right, query);
  if (operator === "=") return type !== "other";
  return rangeOperators.has(operator) && type === "number";
}

function typeOf(value: Value, { parameters }: AnalyzedQuery) {
  const type = value.kind === "literal" ? value.type : parameters?.values.get(value.name)?.type;
  if (type === "long" || type === "double") return "number";
  return type === "string" || type === "boolean" ? type : "other";
}

function mapText(collection: string, paths: readonly (readonly string[])[]): string {
  const members = paths.map(
    (path) => `    ${JSON.stringify(path.join("."))}: doc.${path.join(".")}`,
  );
  return `map(${JSON.stringify(collection)}, doc => ({\n${members.join(",\n")}\n}))`;
}

/** A name that no other index has. */
function freeName(collection: string, fields: readonly string[], map: string, known: KnownMap) {
  const base = `${collection}/By${fields.join("And").replaceAll(".", "_")}`.slice(0, nameLengthMax);
  for (let n = 1; n < namesMax; n++) {
    const name = n === 1 ? base : `${base}${n}`;
    const there = known(name);
    if (there === undefined || there === map) return { name, isThere: there !== undefined };
  }
  return null;
}

function queryText(tree: Query, name: string, added: readonly Expression[]): string {
  const { where, source, offset } = tree;
  const first = where === null ? [] : where.kind === "and" ? where.operands : [where];
  const operands = [...first, ...added];
  const [only] = operands;
  const condition: Expression | null =
    operands.length === 1 && only !== undefined ? only : { kind: "and", offset, operands };
  return printQuery({ ...tree, where: condition, source: { ...source, form: "index", name } });
}
