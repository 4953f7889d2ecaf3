/**
 * The page of a query in the order of scores, without sorting all that it finds: a condition may find its best entries
 * itself, and else the best of all scores are selected.
 *
 * Hot: bench/text.bench.ts.
 */
import type { Work } from "../../base/scheduling/work-budget.ts";
import { BestEntries } from "../../indexing/columns/best-entries.ts";
import type { BestFound } from "../../indexing/text/best-words.ts";
import type { AnalyzedQuery, Condition } from "../analysis/analyzed-query.ts";
import { compositeMeaningOf, meaningOf } from "../analysis/meaning-of.ts";
import type { WhereContext } from "../functions/rql-function.ts";

/** Entries between two checks of the budget. */
const stride = 8192;

/** Returns whether results are in the order of scores, best first, and in no other. */
export function isByScore({ orderBy }: AnalyzedQuery): boolean {
  const [key, ...others] = orderBy;
  return key === undefined || (key.kind === "score" && !key.isDescending && others.length === 0);
}

/** Returns the `count` best entries of a query that is ordered by score; null if all entries must be scored. */
export function* bestEntries(
  { where }: AnalyzedQuery,
  count: number,
  context: WhereContext,
): Work<BestFound | null> {
  const { store, boosts } = context.reader;
  if (where === null || count === 0 || store.hasSeveral || boosts !== undefined) return null;
  return yield* bestOf(where, 1, count, context);
}

function* bestOf(
  condition: Condition,
  factor: number,
  count: number,
  context: WhereContext,
): Work<BestFound | null> {
  switch (condition.kind) {
    case "true":
    case "none":
    case "not":
    case "and":
    case "or":
      return null;
    default: {
      const found =
        "field" in condition
          ? meaningOf(condition).best?.(condition, factor, count, context, bestOf)
          : compositeMeaningOf(condition).best?.(condition, factor, count, context, bestOf);
      return found === undefined ? null : yield* found;
    }
  }
}

/** Returns the `count` best of entries, best first. `scores`: by position; null when one is no number. */
export function* selectBest(
  entries: Uint32Array,
  scores: Float64Array,
  count: number,
  { reader: { budget, view } }: WhereContext,
): Work<Uint32Array | null> {
  if (count === 0) return null;
  const best = new BestEntries(count, view.places);
  for (let from = 0; from < entries.length; from += stride) {
    const to = Math.min(entries.length, from + stride);
    for (let i = from; i < to; i++) {
      const score = scores[i] as number;
      if (Number.isNaN(score)) return null;
      best.offer(entries[i] as number, score);
    }
    budget.spend(to - from);
    if (budget.isDue) yield;
  }
  return best.take();
}
