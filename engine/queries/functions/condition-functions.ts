/** Methods whose arguments are conditions: `exact`, `boost`, `intersect`. */
import type { Work } from "../../base/scheduling/work-budget.ts";
import type { EntrySet } from "../../indexing/columns/entry-set.ts";
import type { Condition } from "../analysis/analyzed-query.ts";
import { plainText } from "../analysis/query-parameters.ts";
import { invalid, notSupported, resolveValue } from "../analysis/query-scope.ts";
import type { Expression } from "../syntax/ast.ts";
import { describeArgument } from "../syntax/print.ts";
import { conditionArgument, numberLiteral } from "./arguments.ts";
import { needsIndex, onlyInWhere } from "./places.ts";
import type { FindEntries, RqlFunction, WhereContext } from "./rql-function.ts";

/** It becomes a flag on the conditions inside it. */
export const exact: RqlFunction = {
  ...onlyInWhere,
  shownName: "Exact",
  where: {
    analyze: (scope, call, clause) => {
      if (call.args.length !== 1) {
        throw invalid(scope, `Method exact() expects one argument, got ${call.args.length}`);
      }
      return conditionArgument(scope, call, 0, clause, true);
    },
    meaning: null,
  },
  filter: needsIndex,
};

interface BoostCondition {
  readonly kind: "boost";
  readonly operand: Condition;
  readonly factor: number;
}

export const boost: RqlFunction<BoostCondition> = {
  ...onlyInWhere,
  shownName: "Boost",
  where: {
    analyze: (scope, call, clause) => {
      const [, factor] = call.args;
      if (call.args.length !== 2 || factor === undefined) {
        throw invalid(
          scope,
          `Boost(expression, boostVal) requires two arguments, but was called with ${call.args.length}`,
        );
      }
      const operand = conditionArgument(scope, call, 0, clause, clause.isExact);
      if (operand.kind === "vector.search") {
        throw notSupported("Boosting the VectorSearchMatch is not supported yet.");
      }
      if (factor.kind === "parameter") {
        const value = resolveValue(scope, factor);
        if (value.type === "long" || value.type === "double") {
          return { kind: "boost", operand, factor: Number(value.value) };
        }
        const shown = plainText(value);
        throw invalid(scope, `The boost value must be a valid float, but was called with ${shown}`);
      }
      const value = numberLiteral(factor);
      if (value !== null) return { kind: "boost", operand, factor: value };
      throw invalid(scope, `Unable to find boost value: ${describeArgument(factor)}`);
    },
    meaning: {
      kind: "boost",
      of: "operands",
      boosts: () => true,
      find: ({ operand }, context, findEntries) => findEntries(operand, context),
      *score(condition, factor, scoring) {
        const inner = yield* scoring.scored(condition.operand, factor * condition.factor);
        const label = `boosted ${condition.factor} times`;
        return { label, scores: inner.scores, parts: [inner] };
      },
      best: (condition, factor, count, context, bestEntries) =>
        bestEntries(condition.operand, factor * condition.factor, count, context),
    },
  },
  filter: needsIndex,
};

/** Each operand matches some entry of the same document. */
interface IntersectCondition {
  readonly kind: "intersect";
  readonly operands: readonly Condition[];
}

export const intersect: RqlFunction<IntersectCondition> = {
  ...onlyInWhere,
  shownName: "Intersect",
  where: {
    analyze: (scope, call, clause) => {
      const operandAt = (i: number) => conditionArgument(scope, call, i, clause, clause.isExact);
      return { kind: "intersect", operands: call.args.map((_, i) => operandAt(i)) };
    },
    meaning: {
      kind: "intersect",
      of: "operands",
      boosts: () => false,
      find: intersectDocuments,
      score: ({ operands }, factor, scoring) => scoring.sumOf("intersect", operands, factor),
    },
  },
  filter: {
    refusal: needsIndex.refusal,
    compiled: {
      read: null,
      test: ({ args }, clause) => {
        const tests = args.map((argument) => clause.filter(argument as Expression));
        return (row, body) => tests.every((test) => test(row, body));
      },
    },
  },
};

/** Cost of adding a document to a set, and its bytes there. */
const documentUnits = 8;
const documentBytes = 32;

function* intersectDocuments(
  { operands }: IntersectCondition,
  context: WhereContext,
  findEntries: FindEntries,
): Work<EntrySet> {
  const { reader } = context;
  let documents: Set<number> | null = null;
  let heldBytes = 0;
  for (const operand of operands) {
    const found = new Set<number>();
    const entries: EntrySet = yield* findEntries(operand, context);
    const bytes = Math.min(entries.count, documents?.size ?? entries.count) * documentBytes;
    reader.budget.hold(bytes);
    for (const entry of entries.toList()) {
      const document = reader.view.documents[entry] as number;
      if (documents === null || documents.has(document)) found.add(document);
      reader.budget.spend(documentUnits);
      if (reader.budget.isDue) yield;
    }
    documents = found;
    reader.budget.release(heldBytes);
    heldBytes = bytes;
  }
  return yield* reader.ofDocuments(documents ?? []);
}
