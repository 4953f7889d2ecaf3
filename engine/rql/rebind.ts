/**
 * Analyzes a query that was analyzed before with other parameters: of most texts only the values of conditions and the page
 * depend on them, and everything else stays.
 *
 * Invariants:
 * - The result is what `analyzeQuery` returns for the same text and options.
 */
import { type AnalyzeOptions, collectionIds, scopeOf } from "./analyze.ts";
import { analyzePaging } from "./analyze-paging.ts";
import { analyzeCondition } from "./analyze-where.ts";
import type { Access, AnalyzedQuery, Condition } from "./analyzed-query.ts";
import type { Expression, Query } from "./ast.ts";

/** Whether only the conditions on fields and the page of a query may contain parameters. */
export function isRebindable({ where, paging: _, update, ...others }: Query): boolean {
  const { groupBy, load, include, filter, declarations } = others;
  const isPlain = groupBy.length + load.length + include.length + declarations.length === 0;
  if (!isPlain || filter !== null || update !== null || hasParameter(others)) return false;
  return where === null || hasPlainConditions(where);
}

/**
 * `known`: the result for the same text, whose tree is rebindable, and for the same kind.
 * @returns null when more than values has changed: the query must be analyzed in full
 * @throws as `analyzeQuery`
 */
export function rebind(
  known: AnalyzedQuery,
  query: Query,
  options: AnalyzeOptions,
): AnalyzedQuery | null {
  const { parameters, paging = {} } = options;
  const scope = scopeOf(known.text, query, options);
  const condition = query.where === null ? null : analyzeCondition(scope, query.where);
  const where = condition?.kind === "true" ? null : condition;
  const access = accessLike(known, query, condition);
  if (access === null || !isAlike(where, known.where)) return null;
  return {
    ...known,
    where,
    access,
    paging: analyzePaging(scope, query.paging, paging),
    parameters,
  };
}

function accessLike(
  { access }: AnalyzedQuery,
  query: Query,
  condition: Condition | null,
): Access | null {
  if (access.kind !== "collection") return access;
  const ids = collectionIds(query, condition);
  return ids === undefined ? null : { kind: "collection", ids };
}

/** Whether two conditions differ in nothing but values. */
function isAlike(one: Condition | null, other: Condition | null): boolean {
  if (one === null || other === null) return one === other;
  if (one.kind !== other.kind) return false;
  if (one.kind === "and" || one.kind === "or") {
    const { operands } = other as typeof one;
    const areAlike = one.operands.every((operand, i) => isAlike(operand, operands[i] ?? null));
    return areAlike && one.operands.length === operands.length;
  }
  if (one.kind === "not") return isAlike(one.operand, (other as typeof one).operand);
  const isExact = "isExact" in one && one.isExact;
  return isExact === ("isExact" in other && other.isExact);
}

function hasPlainConditions(condition: Expression): boolean {
  switch (condition.kind) {
    case "and":
    case "or":
      return condition.operands.every(hasPlainConditions);
    case "not":
      return hasPlainConditions(condition.operand);
    case "comparison": {
      const { left, right } = condition;
      return !hasParameter(left) && (right.kind === "literal" || right.kind === "parameter");
    }
    case "between":
    case "in":
      return !hasParameter(condition.left);
    default:
      return condition.kind === "true";
  }
}

/** Whether a part of a syntax tree contains a parameter. */
function hasParameter(node: unknown): boolean {
  if (typeof node !== "object" || node === null) return false;
  if ("kind" in node && node.kind === "parameter") return true;
  return Object.values(node).some(hasParameter);
}
