/**
 * Syntax tree and parameters -> a checked query with every name resolved. Pure: it reads no index and no document, so
 * the same query with the same parameters and time gives the same result.
 *
 * All semantic errors are reported here, except errors that depend on documents or indexes. Clauses that parse but are
 * not implemented are refused here, by name.
 */
import { EngineError } from "../../base/errors.ts";
import { functionNamed, requireMethod } from "../functions/function-table.ts";
import type { Argument, Expression, Query } from "../syntax/ast.ts";
import { fieldText, printArgument } from "../syntax/print.ts";
import { analyzeSeries, refuseSeries, seriesDeclarations } from "../time-series/analyze-series.ts";
import { analyzeInclude } from "./analyze-include.ts";
import { automaticIndexDefinition } from "./analyze-index.ts";
import { analyzeOrderBy } from "./analyze-order.ts";
import { analyzePaging, type RequestPaging } from "./analyze-paging.ts";
import { analyzeSelect, checkDeclarations, checkUpdate } from "./analyze-select.ts";
import { analyzeCondition } from "./analyze-where.ts";
import type {
  Access,
  AnalyzedGroupBy,
  AnalyzedQuery,
  AnalyzedSource,
  Condition,
  FieldReference,
  IdCondition,
  LoadStep,
  QueryKind,
} from "./analyzed-query.ts";
import { automaticIndexName } from "./auto-index-name.ts";
import { hasNearest, meaningOf } from "./meaning-of.ts";
import type { QueryParameters } from "./query-parameters.ts";
import {
  fieldReference,
  invalid,
  notSupported,
  type QueryScope,
  resolveValue,
} from "./query-scope.ts";

export interface AnalyzeOptions {
  readonly kind: QueryKind;
  /** null if the request had no parameters; messages distinguish this from an empty object. */
  readonly parameters: QueryParameters | null;
  /** Paging of the request, in addition to paging in the text. */
  readonly paging?: RequestPaging | undefined;
  /** The time of the query, microseconds since 1970: the value of `now()` and `today()`. */
  readonly nowMicros?: number;
}

/**
 * Analyzes a query.
 *
 * @param text the query as written, quoted in messages.
 * @throws query-invalid, not-supported, invalid-argument, invalid-operation
 */
export function analyzeQuery(text: string, query: Query, options: AnalyzeOptions): AnalyzedQuery {
  const { kind, parameters } = options;
  const plainScope = scopeOf(text, query, options);
  const source = analyzeSource(query, kind);
  if (kind === "subscription") checkSubscription(query);
  const load = analyzeLoad(plainScope, query, kind);
  checkDeclarations(plainScope, query);
  if (kind !== "read") refuseSeries(query);
  const groupBy = analyzeGroupBy(plainScope, query);
  const scope: QueryScope = { ...plainScope, computed: computedNames(plainScope, query) };
  const condition = query.where === null ? null : whereOf(scope, query.where, kind);
  const orderBy = analyzeOrderBy(scope, query.orderBy, groupBy !== null);
  const projection = analyzeSelect(plainScope, query);
  const hasSuggestions = projection.kind === "suggestions";
  if (kind !== "read" && (hasSuggestions || projection.kind === "facets")) {
    throw invalid(scope, "facet() and suggest() can be used in queries only");
  }
  const ids = hasSuggestions ? undefined : collectionIds(query, condition);
  const isCollectionScan = source.form === "collection" && groupBy === null && ids !== undefined;
  const include = analyzeInclude(plainScope, query.include, isCollectionScan);
  if (groupBy !== null && include.highlights.length > 0) {
    throw invalid(scope, "Dynamic group by queries cannot have highlighting.");
  }
  if (query.update !== null) checkUpdate(scope, query.update);
  const filter = kind === "subscription" ? query.where : query.filter;
  checkFilter(scope, query, kind);
  if (filter !== null && condition !== null && hasNearest(condition)) {
    const complaint = "Cannot use 'filter' when 'vector.search' is used in where statement.";
    throw new EngineError("query-invalid", complaint);
  }
  const where = condition?.kind === "true" ? null : condition;
  const checked = { source, where, groupBy, orderBy, projection, include };
  const access = accessOf(scope, query, checked, isCollectionScan ? (ids ?? null) : undefined);
  return {
    kind,
    text,
    access,
    ...checked,
    load,
    filter,
    isDistinct: query.select?.isDistinct ?? false,
    update: query.update,
    paging: analyzePaging(scope, query.paging, options.paging ?? {}),
    functions: query.declarations.filter(({ form }) => form === "function"),
    series: analyzeSeries(scope, query),
    parameters,
    moments: scope.moments,
  };
}

/** Returns the names of a query, without the aggregates that its groups compute. */
export function scopeOf(text: string, query: Query, options: AnalyzeOptions): QueryScope {
  const { source, load, declarations } = query;
  const hasNone = source.alias === null && load.length === 0;
  return {
    text,
    parameters: options.parameters,
    aliases: hasNone
      ? noNames
      : [source.alias, ...load.map(({ alias }) => alias)].filter((name) => name !== null),
    functions:
      declarations.length === 0 ? noSuchNames : new Set(declarations.map(({ name }) => name)),
    series:
      declarations.length === 0
        ? noSuchNames
        : new Set(seriesDeclarations(query).map(({ name }) => name)),
    isDynamic: source.form === "collection",
    computed: nothingComputed,
    nowMicros: options.nowMicros ?? 0,
    moments: [],
  };
}

const noNames: readonly string[] = [];
const noSuchNames: ReadonlySet<string> = new Set();
const nothingComputed: QueryScope["computed"] = new Map();

function analyzeSource({ source }: Query, kind: QueryKind): AnalyzedSource {
  const { form, name, alias, filter } = source;
  const isAllDocuments = form === "collection" && name.toLowerCase() === "@all_docs";
  if (kind === "subscription" && form === "index") {
    throw notSupported("Subscription must specify a collection to use");
  }
  const hasRevisions = kind === "subscription" && filter !== null && isRevisionsFilter(filter);
  return { form, name, isAllDocuments, alias, hasRevisions };
}

/**
 * Returns whether the filter is `Revisions = true`; false for `Revisions = false`. @throws not-supported for any other
 * condition after a collection
 */
function isRevisionsFilter(filter: Expression): boolean {
  if (filter.kind === "comparison" && filter.left.kind === "field" && filter.operator === "=") {
    const { left, right } = filter;
    const isNamed = fieldText(left).toLowerCase() === "revisions";
    if (isNamed && right.kind === "literal" && right.type === "boolean")
      return right.text === "true";
  }
  throw notSupported("Subscription collection filter can only specify 'Revisions = true'");
}

/** Refuses clauses that subscriptions do not support. */
function checkSubscription(query: Query): void {
  const { select, include, source } = query;
  if (query.groupBy.length > 0) {
    throw notSupported("Subscription cannot specify a group by clause");
  }
  if (query.orderBy.length > 0) {
    throw notSupported("Subscription cannot specify an order by clause");
  }
  if (select?.isDistinct === true) {
    throw notSupported("Subscription does not support distinct queries");
  }
  const hasAlias = source.alias !== null;
  const needsAlias = (select !== null && select.body !== null) || query.load.length > 0;
  if (needsAlias && !hasAlias) {
    throw new EngineError(
      "invalid-operation",
      "Cannot specify a select or load clauses without an alias on the query",
    );
  }
  if (select !== null && select.body !== null && !("kind" in select.body)) {
    const [item, ...more] = select.body;
    const isCall = item?.expression.kind === "call" && more.length === 0;
    if (!isCall) throw notSupported("Subscription select clause must specify an object literal");
  }
  for (const item of include) {
    const method = item.kind === "call" ? functionNamed(item.name) : undefined;
    const name = method?.shownName ?? null;
    if (name === null || method?.include?.isForSubscriptions === true) continue;
    const complaint = "Subscription include expected to get Counters or TimeSeries but got";
    throw notSupported(`${complaint} ${name}`);
  }
}

function analyzeLoad(scope: QueryScope, query: Query, kind: QueryKind): LoadStep[] {
  const known = new Set<string>(query.source.alias === null ? [] : [query.source.alias]);
  return query.load.map(({ expression, alias, isArray }) => {
    if (alias === null) {
      throw invalid(scope, `LOAD clause requires an alias but got: ${printArgument(expression)}`);
    }
    if (known.has(alias)) {
      throw invalid(scope, `LOAD clause duplicate alias detected: ${printArgument(expression)}`);
    }
    if (kind === "patch" && query.source.alias === null) {
      throw invalid(scope, "When using LOAD, a from alias is required");
    }
    if (expression.kind === "call") {
      const complaint = "LOAD clause require a field or value references";
      throw invalid(scope, `${complaint} ${printArgument(expression)}`);
    }
    const aliases = [...known];
    known.add(alias);
    if (expression.kind !== "field") {
      const value = resolveValue(scope, expression);
      return { alias, isArray, source: { kind: "constant", value } };
    }
    const field = fieldReference({ ...scope, aliases }, expression);
    const root = field.alias === query.source.alias ? null : field.alias;
    return { alias, isArray, source: { kind: "path", root, path: field.path } };
  });
}

function analyzeGroupBy(scope: QueryScope, query: Query): AnalyzedGroupBy | null {
  if (query.groupBy.length === 0) return null;
  if (query.source.form === "index") {
    throw new EngineError(
      "invalid-argument",
      "Can't use 'group by' when querying on an Index. 'group by' can be used only when querying " +
        "on collections.",
    );
  }
  const keys = query.groupBy.map(({ expression, alias }) => {
    if (expression.kind === "field") {
      return { field: fieldReference(scope, expression), isWholeArray: false, alias };
    }
    if (expression.kind !== "call") {
      throw invalid(scope, `GROUP BY expects a field but got ${printArgument(expression)}`);
    }
    const { groupKey } = requireMethod(expression.name);
    if (groupKey !== null) {
      return { field: groupKey(scope, expression), isWholeArray: true, alias };
    }
    throw invalid(scope, `Unsupported method '${expression.name}' in GROUP BY`);
  });
  return { keys };
}

/** Returns the aliases that `select` assigns to aggregates of groups, which conditions and order may use. */
function computedNames(scope: QueryScope, query: Query): Map<string, FieldReference> {
  const names = new Map<string, FieldReference>();
  const body = query.select?.body ?? null;
  if (query.groupBy.length === 0 || body === null || "kind" in body) return names;
  for (const { expression, alias } of body) {
    if (expression.kind !== "call" || alias === null) continue;
    const aggregate = functionNamed(expression.name)?.aggregate ?? null;
    if (aggregate !== null) names.set(alias, aggregate(scope, expression).field);
  }
  return names;
}

/** Returns the condition for an index; a subscription evaluates its condition on each document instead. */
function whereOf(scope: QueryScope, where: Expression, kind: QueryKind): Condition | null {
  return kind === "subscription" ? null : analyzeCondition(scope, where);
}

/**
 * How a query that needs no index finds documents; null: all of them.
 *
 * @returns undefined when it needs an index (RavenDB's rule: an order, or any condition other than one on ids).
 */
export function collectionIds(
  query: Query,
  condition: Condition | null,
): IdCondition | null | undefined {
  if (query.orderBy.length > 0) return undefined;
  if (condition === null || condition.kind === "true") return null;
  if (!("field" in condition) || condition.field.name !== "id()") return undefined;
  if ("isExact" in condition && condition.isExact) return undefined;
  return condition.kind === "none"
    ? { kind: "ids", ids: [] }
    : meaningOf(condition).idsOf(condition);
}

function accessOf(
  scope: QueryScope,
  query: Query,
  checked: Pick<
    AnalyzedQuery,
    "source" | "where" | "groupBy" | "orderBy" | "projection" | "include"
  >,
  ids: IdCondition | null | undefined,
): Access {
  const { source } = checked;
  if (source.form === "index") return { kind: "index", name: source.name };
  if (ids !== undefined) return { kind: "collection", ids };
  const definition = automaticIndexDefinition(scope, query, checked);
  return { kind: "automatic-index", name: automaticIndexName(definition), definition };
}

/** Conditions evaluated on documents support fewer methods, but also functions declared in the query. */
function checkFilter(scope: QueryScope, query: Query, kind: QueryKind): void {
  if (query.filter !== null && (kind === "patch" || kind === "delete")) {
    throw notSupported(
      "Filter clause is not supported for PATCH/DELETE by query operation. " +
        "Please use WHERE clause instead.",
    );
  }
  const filter = kind === "subscription" ? query.where : query.filter;
  const open: (Argument | null)[] = [filter];
  while (open.length > 0) {
    const node = open.pop() ?? null;
    if (node === null) continue;
    if (node.kind === "and" || node.kind === "or") open.push(...node.operands);
    else if (node.kind === "not") open.push(node.operand);
    else if (node.kind === "comparison") open.push(node.left, node.right);
    else if (node.kind === "between" || node.kind === "in") open.push(node.left);
    else if (node.kind === "call") {
      checkFilterMethod(scope, node.name);
      open.push(...node.args);
    }
  }
}

function checkFilterMethod(scope: QueryScope, name: string): void {
  // An unknown name is left to the script, which skips calls of undefined names.
  const refusal = functionNamed(name)?.filter.refusal ?? null;
  if (refusal !== null && !scope.functions.has(name)) throw notSupported(refusal(name));
}
