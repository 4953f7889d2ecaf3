/** Regular expressions on one field, joined by `or`: they are tested in a few walks over its terms, not in one each. */
import type { Work } from "../../base/scheduling/work-budget.ts";
import { type EntrySet, EntrySetBuilder } from "../../indexing/columns/entry-set.ts";
import type { FieldReference } from "../analysis/analyzed-query.ts";
import { fieldOf } from "./finding.ts";
import type { WhereContext } from "./rql-function.ts";

/** Regular expressions tested in one walk, and the limit of their total instructions. */
const testsPerWalk = 64;
const sizePerWalk = 1024;

/** @param conditions one or more, all on one field */
export function* findMatching(
  conditions: readonly { readonly field: FieldReference; readonly text: string }[],
  context: WhereContext,
): Work<EntrySet> {
  const { reader } = context;
  const builder = new EntrySetBuilder(reader.view.size);
  const [first] = conditions;
  const search = first === undefined ? undefined : fieldOf(first.field, "lower", context);
  let tests: ((text: string) => boolean)[] = [];
  let size = 0;
  for (const [i, { text }] of conditions.entries()) {
    // The cost of compiling equals the number of instructions.
    const before = reader.budget.units;
    tests.push(context.textTest(text));
    size += reader.budget.units - before;
    if (reader.budget.isDue) yield;
    if (i + 1 < conditions.length && tests.length < testsPerWalk && size < sizePerWalk) continue;
    if (search !== undefined) builder.addSet(yield* search.matching(...tests));
    tests = [];
    size = 0;
  }
  return builder.finish();
}
