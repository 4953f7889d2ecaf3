/** `order by`: sorts a list of entries. */
import type { Work } from "../base/work-budget.ts";
import { fieldSortKeys, sortPositions } from "../indexing/entry-order.ts";
import type { OrderKey } from "./analyzed-query.ts";
import { orderUseOf } from "./functions/function-table.ts";
import type { OrderContext } from "./functions/rql-function.ts";

/** `isAll`: these are all entries of the index. @throws EngineError sorter-missing */
export function* orderEntries(
  entries: Uint32Array,
  orderBy: readonly OrderKey[],
  context: OrderContext,
  isAll: boolean,
): Work<Uint32Array> {
  for (const key of orderBy) if (key.kind !== "field") orderUseOf(key).check(key);
  if (orderBy.length === 0 || entries.length < 2) return entries;
  const { budget } = context.reader;
  const isOnly = isAll && orderBy.length === 1;
  const keys: Uint32Array[] = [];
  // Includes the arrays that sorting needs besides the keys.
  budget.hold((orderBy.length + 3) * entries.byteLength);
  for (const key of orderBy) {
    keys.push(yield* sortKeysOf(entries, key, isOnly, context));
    if (budget.isDue) yield;
  }
  const positions = yield* sortPositions(entries.length, keys, budget);
  budget.release((orderBy.length + 3) * entries.byteLength);
  return positions.map((position) => entries[position] as number);
}

function sortKeysOf(
  entries: Uint32Array,
  key: OrderKey,
  isOnly: boolean,
  context: OrderContext,
): Work<Uint32Array> {
  if (key.kind !== "field") return orderUseOf(key).sortKeys(entries, key, context);
  const { reader } = context;
  const { isDescending, nulls, type: form } = key;
  const column = reader.column(key.field.name, "lower");
  return fieldSortKeys(column, entries, { form, isDescending, nulls, isOnly }, reader.budget);
}

/** Whether the same query may give another order the next time. */
export function isRandomOrder(orderBy: readonly OrderKey[]): boolean {
  return orderBy.some((key) => key.kind !== "field" && orderUseOf(key).isRandom);
}
