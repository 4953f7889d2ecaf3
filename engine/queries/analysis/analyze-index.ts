/**
 * The fields that a query needs in an automatic index, with their options.
 *
 * Invariants:
 * - Each field appears once, with the options of all its uses.
 * - In a query with groups, conditions and order use only keys and aggregates.
 */
import { EngineError } from "../../base/errors.ts";
import { automaticIndexFieldsMax } from "../../base/limits.ts";
import {
  type DefinitionAggregate,
  type DefinitionField,
  type IndexDefinition,
  withWholeValues,
} from "../../indexing/definitions/index-definition.ts";
import { pathOf } from "../functions/arguments.ts";
import { functionNamed, orderUseOf } from "../functions/function-table.ts";
import type { Query } from "../syntax/ast.ts";
import { scriptAggregates } from "../syntax/script-syntax.ts";
import type {
  AnalyzedQuery,
  Condition,
  FieldReference,
  OrderKey,
  ProjectedValue,
} from "./analyzed-query.ts";
import { type MeantFieldCondition, meaningOf, operandsOf } from "./meaning-of.ts";
import { invalid, type QueryScope } from "./query-scope.ts";

type Use = "plain" | "search" | "exact" | "highlight" | "suggest";

/** Returns the minimal definition that serves a dynamic query. @throws query-invalid for fields that groups lack */
export function automaticIndexDefinition(
  scope: QueryScope,
  query: Query,
  checked: Pick<AnalyzedQuery, "where" | "groupBy" | "orderBy" | "projection" | "include">,
): IndexDefinition {
  const { where, groupBy, orderBy, include, projection } = checked;
  const uses = new Map<string, { field: FieldReference; uses: Set<Use> }>();
  const add = (field: FieldReference, use: Use): void => {
    if (field.name === "id()") {
      if (groupBy !== null) throw idOfGroup(scope);
      return;
    }
    const known = uses.get(field.name) ?? { field, uses: new Set<Use>() };
    if (uses.size >= automaticIndexFieldsMax && !uses.has(field.name)) throw tooManyFields();
    known.field = field;
    known.uses.add(use);
    uses.set(field.name, known);
  };
  if (where !== null) visitFields(where, add);
  for (const key of orderBy) {
    const field = orderFieldOf(key);
    if (field !== null) add(field, "plain");
  }
  for (const { field } of include.highlights) {
    if (!uses.has(field.name)) add(field, "search");
    add(field, "highlight");
  }
  if (projection.kind === "suggestions") {
    for (const { field } of projection.suggestions) add(fieldNamed(field), "suggest");
  }
  const collection = query.source.name;
  if (groupBy === null) {
    const fields = [...uses.values()].map((entry) => automaticField(entry.field, entry.uses));
    return { collection, fields, groupBy: null };
  }
  const aggregates = aggregatesOf(scope, query, checked);
  const keys = groupBy.keys.map(({ field, isWholeArray }) => {
    const found = uses.get(field.name)?.uses ?? new Set<Use>();
    return { ...withWholeValues(automaticField(field, found)), isWholeArray };
  });
  const known = new Set([...keys, ...aggregates].map(({ name }) => name));
  for (const name of uses.keys()) {
    if (known.has(name)) continue;
    throw invalid(
      scope,
      `Field '${name}' is neither an aggregation operation nor part of the group by key`,
    );
  }
  const keyNames = new Set(keys.map(({ name }) => name));
  const own = aggregates.filter(({ name }) => !keyNames.has(name));
  if (keys.length + own.length > automaticIndexFieldsMax) throw tooManyFields();
  return { collection, fields: [], groupBy: { keys, aggregates: own } };
}

/** RavenDB 7.2.7 uses the name verbatim: an alias is part of the path. */
function fieldNamed(name: string): FieldReference {
  return { name, path: pathOf(name), isQuoted: false, alias: null };
}

function tooManyFields(): EngineError {
  return new EngineError(
    "work-limit",
    `The query wants an automatic index of more than ${automaticIndexFieldsMax} fields, which is the limit. Query fewer ` +
      "fields in one query, or deploy an index.",
  );
}

function idOfGroup({ text }: QueryScope): EngineError {
  return new EngineError(
    "invalid-argument",
    `The field 'id()' is not indexed in '', cannot query/sort on fields that are not indexed in query: ${text}`,
  );
}

function automaticField(field: FieldReference, uses: ReadonlySet<Use>): DefinitionField {
  const isWordsOnly = [...uses].every((use) => use === "search" || use === "highlight");
  return {
    name: field.name,
    path: field.path,
    isQuoted: field.isQuoted,
    ...(field.spatial === undefined ? {} : { spatial: field.spatial }),
    ...(field.vector === undefined ? {} : { vector: field.vector }),
    hasSearch: uses.has("search"),
    hasExact: uses.has("exact"),
    hasHighlight: uses.has("highlight"),
    hasSuggest: uses.has("suggest"),
    ...(isWordsOnly && { isWordsOnly }),
  };
}

/** Returns the aggregates that `select` and `order by` require of groups. */
function aggregatesOf(
  scope: QueryScope,
  query: Query,
  { orderBy, projection }: Pick<AnalyzedQuery, "orderBy" | "projection">,
): DefinitionAggregate[] {
  const found = new Map<string, DefinitionAggregate>();
  const addCount = (): void => {
    found.set("Count", { kind: "count", name: "Count" });
  };
  const addSum = ({ name, path, isQuoted }: FieldReference): void => {
    found.set(name, { kind: "sum", name, path, isQuoted });
  };
  const add = (value: ProjectedValue): void => {
    if (value.kind === "count") addCount();
    if (value.kind === "sum") addSum(value.field);
  };
  if (projection.kind === "fields") for (const { value } of projection.fields) add(value);
  if (projection.kind === "script") {
    for (const aggregate of scriptAggregates(projection.script.text)) {
      if (aggregate.kind === "count") addCount();
      else {
        const path = aggregate.path.map((name) => ({ name, arrays: 0 }));
        addSum({ name: aggregate.path.join("."), path, isQuoted: false, alias: null });
      }
    }
  }
  query.orderBy.forEach(({ expression }, i) => {
    if (expression.kind !== "call" || orderBy[i]?.kind !== "field") return;
    const aggregate = functionNamed(expression.name)?.aggregate ?? null;
    if (aggregate !== null) add(aggregate(scope, expression).value);
  });
  return [...found.values()];
}

/** Calls `visit` for each field of a condition, with how it is used. */
export function visitFields(
  condition: Condition,
  visit: (field: FieldReference, use: Use) => void,
): void {
  for (const operand of operandsOf(condition)) visitFields(operand, visit);
  if (!("field" in condition)) return;
  visit(condition.field, condition.kind === "none" ? "plain" : useOf(condition));
}

/**
 * Returns the fields whose values a query by the name of an index needs as a whole, and not only their words; null: it
 * may be any.
 */
export function wholeFieldsOf(query: AnalyzedQuery): Set<string> | null {
  return fieldsOf(query, (use) => use !== "search");
}

/** Returns the fields whose terms a query reads; null: it may be any. */
export function readFieldsOf(query: AnalyzedQuery): Set<string> | null {
  return fieldsOf(query, () => true);
}

function fieldsOf(
  { where, orderBy, projection }: AnalyzedQuery,
  isMeant: (use: Use) => boolean,
): Set<string> | null {
  const isOfRows = projection.kind !== "facets" && projection.kind !== "suggestions";
  if (!isOfRows || (where !== null && findsLikeness(where))) return null;
  const names = new Set<string>();
  if (where !== null) {
    visitFields(where, (field, use) => {
      if (isMeant(use)) names.add(field.name);
    });
  }
  for (const key of orderBy) {
    const field = orderFieldOf(key);
    if (field !== null) names.add(field.name);
  }
  return names;
}

function findsLikeness(condition: Condition): boolean {
  return condition.kind === "more-like-this" || operandsOf(condition).some(findsLikeness);
}

/** Returns the fields of the condition and of the order. */
export function analyzedFieldsOf({ where, orderBy }: AnalyzedQuery): FieldReference[] {
  const fields: FieldReference[] = [];
  if (where !== null) visitFields(where, (field) => fields.push(field));
  for (const key of orderBy) {
    const field = orderFieldOf(key);
    if (field !== null) fields.push(field);
  }
  return fields;
}

function useOf(condition: MeantFieldCondition): Use {
  const isExact = "isExact" in condition && condition.isExact;
  return isExact ? "exact" : meaningOf(condition).indexUse;
}

/** Returns the field that a sort key needs in the index; null: none. */
export function orderFieldOf(key: OrderKey): FieldReference | null {
  return key.kind === "field" ? key.field : orderUseOf(key).fieldOf(key);
}
