/** Helpers for the meanings of conditions: the terms of a field, and sets of entries. */
import type { Work } from "../../base/scheduling/work-budget.ts";
import { EntrySet } from "../../indexing/columns/entry-set.ts";
import type { FieldSearch } from "../../indexing/columns/field-search.ts";
import type { Condition, FieldReference } from "../analysis/analyzed-query.ts";
import type { ScorePart, Scoring, WhereContext } from "./rql-function.ts";

/** Bits of two sets that are joined per unit. */
const bitsPerUnit = 1024;

/** Charges the budget for joining two sets, which may be as large as the index. */
export function spendOnSets({ reader }: WhereContext): void {
  reader.budget.spend(Math.ceil(reader.view.size / bitsPerUnit));
}

/** Returns whether the field is the id of the document. */
export function isId(field: FieldReference): boolean {
  return field.name === "id()";
}

/** Returns the terms of a field; in lower case if the index has no others. */
export function fieldOf(
  field: FieldReference,
  form: "lower" | "exact" | "words",
  context: WhereContext,
): FieldSearch | undefined {
  const found = context.reader.field(field.name, form, context.within ?? null);
  if (found === undefined && form !== "lower") return fieldOf(field, "lower", context);
  return found;
}

export function formOf(isExact: boolean): "lower" | "exact" {
  return isExact ? "exact" : "lower";
}

/** No entries, as work. */
// biome-ignore lint/correctness/useYield: it has nothing to wait for
export function* nothing(): Work<EntrySet> {
  return EntrySet.empty;
}

/** All entries, as work: each has an id. */
// biome-ignore lint/correctness/useYield: it has nothing to wait for
export function* findAllIds(_condition: unknown, { reader }: WhereContext): Work<EntrySet> {
  return reader.all();
}

/** Returns the score of a condition that weighs as a whole. */
export function weighedWhole(
  condition: Condition & { readonly field: FieldReference },
  factor: number,
  scoring: Scoring,
): Work<ScorePart> {
  return scoring.byRarity(condition, factor);
}
