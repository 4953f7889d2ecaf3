/**
 * Describes how a query ran, as steps with counts, times and sentences, from its trace (query-trace.ts). Contains no
 * values of the query, as in plan-text.ts.
 */
import type { AnalyzedQuery, Projection } from "../analysis/analyzed-query.ts";
import type { BetterIndex } from "../analysis/better-index.ts";
import { conditionsText, counted, keyText, numberText } from "./plan-text.ts";
import type { QueryTrace, TracedCondition } from "./query-trace.ts";
import type { QueryOutcome } from "./results.ts";

type PlanStepKind = "wait" | "find" | "order" | "read" | "include" | "return";

interface PlanStep {
  readonly kind: PlanStepKind;
  /** A sentence. */
  readonly text: string;
  /** How many entries, documents or rows it looked at; null: not known. */
  readonly read: number | null;
  /** How many of them it kept; null: not known. */
  readonly kept: number | null;
  /** Milliseconds; null: they are in another step. */
  readonly ms: number | null;
  /** The operands of the condition of `find`, evaluated separately. */
  readonly conditions: readonly TracedCondition[];
}

export interface QueryPlan {
  /** The steps in one line, as in the log. */
  readonly line: string;
  readonly steps: readonly PlanStep[];
  /** An index with which clearly less would be read; null: none is known. */
  readonly betterIndex: BetterIndex | null;
  readonly outcome: QueryOutcome;
}

const none: readonly TracedCondition[] = [];
/** Milliseconds of waiting that are worth a sentence. */
const shownWaitMs = 1;

/** Returns the steps of a query that has run. */
export function planSteps(
  query: AnalyzedQuery,
  trace: QueryTrace,
  outcome: QueryOutcome,
): PlanStep[] {
  const steps = [waitStep(trace, outcome), findStep(query, trace, outcome)];
  if (!outcome.isSummary) steps.push(orderStep(query, trace), readStep(query, trace));
  steps.push(includeStep(trace), returnStep(query, trace, outcome));
  return steps.filter((step) => step !== null);
}

function waitStep({ waitMs }: QueryTrace, { isStale, indexName }: QueryOutcome): PlanStep | null {
  if (waitMs < shownWaitMs && !isStale) return null;
  const text = isStale
    ? `The index ${indexName} was stale: results may miss the newest documents.`
    : `Waited until the index ${indexName} had caught up.`;
  return { kind: "wait", text, read: null, kept: null, ms: waitMs, conditions: none };
}

function findStep(query: AnalyzedQuery, trace: QueryTrace, outcome: QueryOutcome): PlanStep {
  const { access, source, where } = query;
  const { entryCount, conditions, found, findMs } = trace;
  const step = { kind: "find", ms: findMs, conditions } as const;
  if (outcome.isSummary) {
    const text = `Counted the terms of the index ${outcome.indexName}, without reading documents.`;
    return { ...step, text, read: null, kept: outcome.totalResults, ms: outcome.durationMs };
  }
  if (access.kind !== "collection") {
    const { indexName } = outcome;
    const text =
      where === null
        ? `Took all ${counted(found, "entry", "entries")} of the index ${indexName}.`
        : `Found ${numberText(found)} of the ${counted(entryCount ?? 0, "entry", "entries")} of the index ${indexName} by ${conditionsText(where)}.`;
    return { ...step, text, read: found, kept: found };
  }
  const name = source.isAllDocuments ? "all collections" : `the collection ${source.name}`;
  if (access.ids === null) {
    const text = `Went through ${name}, which has ${counted(found, "document")}, without an index.`;
    return { ...step, text, read: found, kept: found };
  }
  if (access.ids.kind === "prefix") {
    const text = "Went through the ids with the prefix, in their order, without an index.";
    return { ...step, text, read: null, kept: null };
  }
  const asked = access.ids.ids.length;
  const text = `Looked up ${counted(asked, "id")}: ${counted(found, "document")} of ${name}.`;
  return { ...step, text, read: asked, kept: found };
}

function orderStep({ orderBy }: AnalyzedQuery, trace: QueryTrace): PlanStep | null {
  const { way, orderedCount, entryCount } = trace;
  if (way === "none" || entryCount === null) return null;
  const keys = orderBy.length === 0 ? "score" : orderBy.map(keyText).join(", ");
  const entries = counted(orderedCount, "entry", "entries");
  const texts = {
    walk: `Walked the index in the order of ${keys} until the page was full: ${entries}.`,
    sort: `Sorted ${entries} by ${keys}.`,
    best: `Took the ${entries} with the best scores, without scoring the others.`,
  };
  const step = { kind: "order", read: orderedCount, kept: null, ms: null } as const;
  return { ...step, text: texts[way], conditions: none };
}

function readStep(query: AnalyzedQuery, trace: QueryTrace): PlanStep | null {
  const { readCount, testedCount, passedCount, readMs } = trace;
  const read =
    query.groupBy === null ? counted(readCount, "document") : counted(readCount, "group");
  const step = { kind: "read", read: readCount, ms: readMs, conditions: none } as const;
  if (query.filter === null) return { ...step, text: `Read ${read}.`, kept: readCount };
  const text = `Read ${read} and tested filter on ${numberText(testedCount)}: ${numberText(passedCount)} passed.`;
  return { ...step, text, kept: passedCount };
}

function includeStep({ includedCount, includeMs }: QueryTrace): PlanStep | null {
  if (includedCount === 0) return null;
  const text = `Included ${counted(includedCount, "document")}.`;
  const step = { kind: "include", text, read: includedCount, kept: includedCount } as const;
  return { ...step, ms: includeMs, conditions: none };
}

function returnStep(
  query: AnalyzedQuery,
  trace: QueryTrace,
  { isSummary, totalResults }: QueryOutcome,
): PlanStep {
  const rows = isSummary ? totalResults : trace.rowCount;
  const how = rowsText[query.projection.kind];
  const distinct = query.isDistinct ? ", each once" : "";
  const text = `Returned ${counted(rows, "row")}${how}${distinct}.`;
  return { kind: "return", text, read: null, kept: rows, ms: null, conditions: none };
}

const rowsText: Readonly<Record<Projection["kind"], string>> = {
  document: "",
  fields: " of fields",
  script: " made by a script",
  call: " made by a script",
  facets: " of facets",
  suggestions: " of suggestions",
};
