/** Methods of `order by`: `score`, `random`, `custom`. */
import { createHash } from "node:crypto";
import { EngineError } from "../../base/errors.ts";
import type { Work } from "../../base/scheduling/work-budget.ts";
import { numberSortKeys } from "../../indexing/columns/entry-order.ts";
import type { FieldReference } from "../analysis/analyzed-query.ts";
import { plainText } from "../analysis/query-parameters.ts";
import { fieldReference, invalid, resolveValue } from "../analysis/query-scope.ts";
import { onlyInOrderBy } from "./places.ts";
import type { OrderContext, RqlFunction } from "./rql-function.ts";

interface ScoreKey {
  readonly kind: "score";
}

export const score: RqlFunction<never, ScoreKey> = {
  ...onlyInOrderBy,
  orderBy: {
    kind: "score",
    analyze: (scope, { args }) => {
      if (args.length > 0) {
        throw invalid(
          scope,
          `Invalid ORDER BY 'score()' call, expected zero arguments, got ${args.length}`,
        );
      }
      return { kind: "score" };
    },
    fieldOf: () => null,
    check: () => {},
    sortKeys: (entries, { isDescending }, { scores, reader }) =>
      // Best first, unless reversed.
      numberSortKeys(scores ?? new Float64Array(entries.length), !isDescending, reader.budget),
    needsScores: true,
    isRandom: false,
  },
};

interface RandomKey {
  readonly kind: "random";
  readonly seed: string | null;
}

export const random: RqlFunction<never, RandomKey> = {
  ...onlyInOrderBy,
  orderBy: {
    kind: "random",
    analyze: (scope, { args }) => {
      const [seed] = args;
      if (args.length > 1) {
        throw invalid(
          scope,
          `Invalid ORDER BY 'random()' call, expected zero to one arguments, got ${args.length}`,
        );
      }
      if (seed === undefined) return { kind: "random", seed: null };
      if (seed.kind !== "literal" && seed.kind !== "parameter") {
        throw invalid(scope, "Invalid ORDER BY 'random()' call, expected value argument");
      }
      return { kind: "random", seed: plainText(resolveValue(scope, seed)) };
    },
    fieldOf: () => null,
    check: () => {},
    sortKeys: randomSortKeys,
    needsScores: false,
    isRandom: true,
  },
};

/** The same seed gives the same order, as long as documents keep their numbers. */
// biome-ignore lint/correctness/useYield: it has nothing to wait for
function* randomSortKeys(
  entries: Uint32Array,
  key: RandomKey,
  context: OrderContext,
): Work<Uint32Array> {
  const seed = key.seed ?? context.newSeed();
  const start = createHash("sha256").update(seed).digest().readUInt32LE(0);
  const keys = new Uint32Array(entries.length);
  for (let i = 0; i < entries.length; i++) {
    let hash =
      start ^
      Math.imul((context.reader.view.documents[entries[i] as number] as number) + 1, 0x9e3779b1);
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    keys[i] = (hash ^ (hash >>> 16)) >>> 0;
  }
  return keys;
}

interface CustomKey {
  readonly kind: "custom";
  readonly field: FieldReference;
  readonly sorter: string;
}

/** Custom sorters are not supported, so none exists under any name. */
export const custom: RqlFunction<never, CustomKey> = {
  ...onlyInOrderBy,
  orderBy: {
    kind: "custom",
    analyze: (scope, { args }) => {
      const [field, sorter] = args;
      if (args.length !== 2 || field === undefined || sorter === undefined) {
        throw invalid(
          scope,
          `Invalid ORDER BY 'custom()' call, expected two arguments, got ${args.length}`,
        );
      }
      if (field.kind !== "field" || (sorter.kind !== "literal" && sorter.kind !== "parameter")) {
        throw invalid(
          scope,
          "Invalid ORDER BY 'custom()' call, expected a field and a sorter's name",
        );
      }
      return {
        kind: "custom",
        field: fieldReference(scope, field),
        sorter: plainText(resolveValue(scope, sorter)),
      };
    },
    fieldOf: ({ field }) => field,
    check: (key) => {
      throw sorterMissing(key);
    },
    sortKeys: (_entries, key) => {
      throw sorterMissing(key);
    },
    needsScores: false,
    isRandom: false,
  },
};

function sorterMissing({ sorter }: CustomKey): EngineError {
  return new EngineError("sorter-missing", `There is no sorter with '${sorter}' name.`);
}
