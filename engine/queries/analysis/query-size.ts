/** Size limits of queries. A query is parsed and checked in one tick of the event loop, so it must be small. */
import { EngineError } from "../../base/errors.ts";
import { workLimits } from "../../base/scheduling/work-budget.ts";

/** Tokens allowed for each permitted condition: `a = 1 or`. */
const tokensPerClause = 4;

/** Maximum number of tokens of a text. */
export function tokensMax(): number {
  return workLimits.clausesMax * tokensPerClause;
}

/** @throws EngineError work-limit */
export function checkTextLength(text: string): void {
  if (text.length <= workLimits.textLengthMax) return;
  throw new EngineError(
    "work-limit",
    `The query's text has ${text.length} characters, more than the limit of ${workLimits.textLengthMax}. Put long values ` +
      "and lists into parameters, or raise the setting Query.MaxTextLengthInKb.",
  );
}

export function tooManyClauses(): EngineError {
  const { clausesMax } = workLimits;
  return new EngineError(
    "work-limit",
    `The query's text is too long: it may have ${clausesMax} clauses and ${tokensMax()} words, values and signs, which is ` +
      "the limit. Put lists of values into parameters, request less in one query, or raise the setting Query.MaxClauseCount.",
  );
}

export function tooManyItems(clause: string, countMax: number): EngineError {
  return new EngineError(
    "work-limit",
    `The query has more than ${countMax} items in ${clause}, which is the limit. Request less in one query.`,
  );
}
