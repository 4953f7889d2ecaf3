/** `order by`: sorts a list of entries. */
import { createHash } from "node:crypto";
import { unreachable } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import type { Work } from "../base/work-budget.ts";
import {
  compareAlphaNumeric,
  fieldSortKeys,
  mirrored,
  numberSortKeys,
  positionsOf,
  sortPositions,
} from "../indexing/entry-order.ts";
import type { IndexReader } from "../indexing/index-reader.ts";
import { slicedSort } from "../indexing/sliced-sort.ts";
import type { OrderKey } from "./analyzed-query.ts";
import type { RowSource } from "./row-source.ts";

/** Cost of comparing two ids. */
const comparedUnits = 32;

/** What ordering needs besides the entries. */
export interface OrderContext {
  readonly reader: IndexReader;
  readonly source: Pick<RowSource, "compareIds" | "lowerIdOf">;
  /** By position in the list of entries; null when scores are not needed. */
  readonly scores: Float64Array | null;
  /** For `random()` without a seed. */
  readonly seed: string;
}

/** @throws EngineError sorter-missing: custom sorters are not supported, so none exists under any name. */
export function* orderEntries(
  entries: Uint32Array,
  orderBy: readonly OrderKey[],
  context: OrderContext,
): Work<Uint32Array> {
  for (const key of orderBy) if (key.kind === "custom") throw sorterMissing(key.sorter);
  if (orderBy.length === 0 || entries.length < 2) return entries;
  const { budget } = context.reader;
  const isOnly = orderBy.length === 1;
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

function* sortKeysOf(
  entries: Uint32Array,
  key: OrderKey,
  isOnly: boolean,
  context: OrderContext,
): Work<Uint32Array> {
  const { reader } = context;
  switch (key.kind) {
    case "field": {
      const column = reader.column(key.field.name, "lower");
      const { isDescending, nulls } = key;
      const sort = { form: key.type, isDescending, nulls, isOnly };
      return yield* fieldSortKeys(column, entries, sort, reader.budget);
    }
    case "id":
      return yield* idSortKeys(entries, key, context);
    case "score": {
      const scores = context.scores ?? new Float64Array(entries.length);
      // Best first, unless reversed.
      return yield* numberSortKeys(scores, !key.isDescending, reader.budget);
    }
    case "random":
      return randomSortKeys(entries, key.seed ?? context.seed, context);
    case "custom":
      throw sorterMissing(key.sorter);
    default:
      return unreachable(key);
  }
}

function sorterMissing(name: string): EngineError {
  return new EngineError("sorter-missing", `There is no sorter with '${name}' name.`);
}

function* idSortKeys(
  entries: Uint32Array,
  key: Extract<OrderKey, { kind: "id" }>,
  { reader, source }: OrderContext,
): Work<Uint32Array> {
  const { documents } = reader.view;
  const { budget } = reader;
  const documentOf = (position: number) => documents[entries[position] as number] as number;
  const isAlphaNumeric = key.type === "alphaNumeric";
  const compare = (left: number, right: number) => {
    budget.spend(comparedUnits);
    return isAlphaNumeric
      ? compareAlphaNumeric(source.lowerIdOf(documentOf(left)), source.lowerIdOf(documentOf(right)))
      : source.compareIds(documentOf(left), documentOf(right));
  };
  const positions = yield* slicedSort(positionsOf(entries.length), compare, budget);
  const keys = new Uint32Array(entries.length);
  for (let rank = 0; rank < positions.length; rank++) keys[positions[rank] as number] = rank;
  return key.isDescending ? mirrored(keys) : keys;
}

/** The same seed gives the same order, as long as documents keep their numbers. */
function randomSortKeys(entries: Uint32Array, seed: string, context: OrderContext): Uint32Array {
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
