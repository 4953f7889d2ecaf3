/** An analysed query as a few lines of readable text, for cases. */
import type {
  AnalyzedQuery,
  Bound,
  ComparisonValue,
  Condition,
  OrderKey,
  ProjectedValue,
  Projection,
} from "../../../../engine/queries/analysis/analyzed-query.ts";
import { jsonText } from "../../../../engine/queries/analysis/query-parameters.ts";
import { pathText, printExpression } from "../../../../engine/queries/syntax/print.ts";

/** One line for each clause of the query. */
export function summarize(query: AnalyzedQuery): string {
  const { access, paging, include } = query;
  const lines = [accessText(access)];
  if (query.where !== null) lines.push(`where ${conditionText(query.where)}`);
  if (query.filter !== null) lines.push(`filter ${printExpression(query.filter)}`);
  if (query.groupBy !== null) {
    const keys = query.groupBy.keys.map(({ field, isWholeArray, alias }) => {
      const key = isWholeArray ? `whole ${field.name}` : field.name;
      return alias === null ? key : `${key} as ${alias}`;
    });
    lines.push(`group by ${keys.join(", ")}`);
  }
  if (query.orderBy.length > 0) lines.push(`order by ${query.orderBy.map(orderText).join(", ")}`);
  for (const { alias, isArray, source } of query.load) {
    const from =
      source.kind === "constant"
        ? jsonText(source.value)
        : `${source.root ?? "document"}: ${pathText(source.path)}`;
    lines.push(`load ${alias}${isArray ? "[]" : ""} from ${from}`);
  }
  const projection = projectionText(query.projection);
  if (projection !== "") lines.push(`select ${query.isDistinct ? "distinct " : ""}${projection}`);
  for (const { text } of include.paths) lines.push(`include ${text}`);
  for (const { of, names } of include.counters) {
    lines.push(`include counters ${names.join(", ") || "*"} of ${of?.name ?? "document"}`);
  }
  for (const { field, fragmentLength, fragmentCount } of include.highlights) {
    lines.push(`include highlight ${field.name} ${fragmentLength} ${fragmentCount}`);
  }
  for (const path of include.compareExchange) lines.push(`include cmpxchg ${pathText(path)}`);
  if (include.revisions.length > 0) lines.push(`include revisions ${include.revisions.join(", ")}`);
  for (const { of, wanted } of include.series) {
    const { name, ...amount } = wanted;
    lines.push(`include series ${name} of ${of?.name ?? "document"} ${JSON.stringify(amount)}`);
  }
  if (include.hasTimings) lines.push("include timings");
  if (query.source.hasRevisions) lines.push("revisions");
  if (paging.inText !== null || paging.skip > 0 || paging.take < Number.MAX_SAFE_INTEGER) {
    lines.push(`page skip ${paging.skip} take ${paging.take}`);
  }
  if (paging.filterTake !== null) lines.push(`filter takes ${paging.filterTake}`);
  return lines.join("\n");
}

function accessText(access: AnalyzedQuery["access"]): string {
  if (access.kind !== "collection") return `${access.kind} ${access.name}`;
  if (access.ids === null) return "collection scan";
  return access.ids.kind === "ids"
    ? `collection ids ${JSON.stringify(access.ids.ids)}`
    : `collection prefix ${JSON.stringify(access.ids.prefix)}`;
}

/** Prefix form: `(and (= Name "x") (exact >= Age 18))`. */
export function conditionText(condition: Condition): string {
  switch (condition.kind) {
    case "true":
      return "true";
    case "none":
      return `(none ${condition.field.name})`;
    case "and":
    case "or":
    case "intersect":
      return `(${[condition.kind, ...condition.operands.map(conditionText)].join(" ")})`;
    case "not":
      return `(not ${conditionText(condition.operand)})`;
    case "boost":
      return `(boost ${condition.factor} ${conditionText(condition.operand)})`;
    case "between":
      return `(${exactly(condition)}between ${condition.field.name} ${boundText(condition.low)} ${boundText(condition.high)})`;
    case "comparison":
      return `(${exactly(condition)}${condition.operator} ${condition.field.name} ${valueText(condition.value)})`;
    case "in": {
      const operator = condition.isAll ? "all-in" : "in";
      const values = condition.values.map(valueText).join(" ");
      return `(${exactly(condition)}${operator} ${condition.field.name} [${values}])`;
    }
    case "startsWith":
    case "endsWith":
      return `(${exactly(condition)}${condition.kind} ${condition.field.name} ${JSON.stringify(condition.text)})`;
    case "search":
      return `(search${condition.isAll ? "-all" : ""} ${condition.field.name} ${JSON.stringify(condition.text)})`;
    case "exists":
      return `(exists ${condition.field.name})`;
    case "fuzzy":
      return `(fuzzy ${condition.similarity} ${condition.field.name} ${JSON.stringify(condition.text)})`;
    case "proximity":
      return `(proximity ${condition.distance} ${condition.field.name} ${JSON.stringify(condition.text)})`;
    case "more-like-this": {
      const base = [...condition.operands.map(conditionText), ...condition.values];
      return `(more-like-this ${base.join(" ")} fields ${JSON.stringify([...(condition.fields ?? [])])})`;
    }
    case "regex":
    case "lucene":
      return `(${condition.kind} ${condition.field.name} ${JSON.stringify(condition.text)})`;
    case "vector.search":
      return `(${condition.kind} ${condition.field.name} ${JSON.stringify(condition.sought)})`;
    default:
      return `(${condition.kind} ${condition.field.name} ${JSON.stringify(condition.shape)})`;
  }
}

function exactly({ isExact }: { readonly isExact: boolean }): string {
  return isExact ? "exact " : "";
}

function boundText({ value, isInclusive }: Bound): string {
  return valueText(value) + (isInclusive ? "" : " excluded");
}

function valueText(value: ComparisonValue): string {
  return value.type === "compare-exchange" ? `cmpxchg:${value.key}` : jsonText(value);
}

function orderText(key: OrderKey): string {
  const direction = (key.isDescending ? " desc" : "") + (key.nulls ? ` nulls ${key.nulls}` : "");
  switch (key.kind) {
    case "field":
      return `${key.field.name} as ${key.type ?? "string"}${direction}`;
    case "id":
      return `id() as ${key.type}${direction}`;
    case "random":
      return `random(${key.seed ?? ""})${direction}`;
    case "custom":
      return `${key.field.name} by ${key.sorter}${direction}`;
    case "spatial.distance":
      return `distance of ${key.field.name} from ${JSON.stringify(key.place)} by ${key.roundTo}${direction}`;
    default:
      return `score()${direction}`;
  }
}

function projectionText(projection: Projection): string {
  switch (projection.kind) {
    case "document":
      return projection.alias === null ? "" : `document ${projection.alias}`;
    case "script":
      return "script";
    case "call":
      return `what ${projectedText(projection.call)} returns`;
    case "fields":
      return projection.fields
        .map(({ key, value }) => `${key}: ${projectedText(value)}`)
        .join(", ");
    default:
      return JSON.stringify(projection, (_key, value) =>
        value instanceof Set ? [...value] : typeof value === "bigint" ? Number(value) : value,
      );
  }
}

function projectedText(value: ProjectedValue): string {
  switch (value.kind) {
    case "path":
      return value.root === null ? value.name : `${value.root}->${value.name}`;
    case "whole":
      return `whole ${value.alias}`;
    case "constant":
      return jsonText(value.value);
    case "sum":
      return `sum(${value.field.name})`;
    case "counter":
      return `counter${value.isRaw ? "Raw" : ""} ${value.name} of ${value.of?.name ?? "document"}`;
    case "compare-exchange":
      return `cmpxchg(${projectedText(value.key)})`;
    case "call":
      return `${value.name}(${value.args.map(projectedText).join(", ")})`;
    default:
      return `${value.kind}()`;
  }
}
