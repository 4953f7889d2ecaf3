/**
 * The methods of RQL by name: a line for each, and a record in one of the files beside this one. Whatever else
 * depends on a method is a member of its record.
 *
 * Invariants:
 * - Keys are in lower case: method names match in any case.
 * - Each kind of condition, and each kind of sort key, is made by one method.
 */
import { assert } from "../../base/assert.ts";
import { notSupported } from "../analysis/query-scope.ts";
import { boost, exact, intersect } from "./condition-functions.ts";
import { facet } from "./facet-function.ts";
import { fuzzy, lucene, proximity, search } from "./full-text-functions.ts";
import { array, avg, count, key, max, min, sum } from "./group-functions.ts";
import { id } from "./id-function.ts";
import { counters, explanations, highlight, revisions, timings } from "./include-functions.ts";
import { now, today } from "./moment-functions.ts";
import { moreLikeThis } from "./more-like-this-function.ts";
import { custom, random, score } from "./order-functions.ts";
import type { ConditionMeaning, OrderUse, RqlFunction } from "./rql-function.ts";
import { last, timeSeries } from "./series-function.ts";
import {
  spatialCircle,
  spatialContains,
  spatialDisjoint,
  spatialDistance,
  spatialIntersects,
  spatialPoint,
  spatialWithin,
  spatialWkt,
} from "./spatial-functions.ts";
import { suggest } from "./suggest-function.ts";
import { endsWith, exists, regex, startsWith } from "./text-functions.ts";
import { cmpxchg, counter, counterRaw } from "./value-functions.ts";
import { vectorSearch } from "./vector-function.ts";

export const functions = {
  id,
  search,
  cmpxchg,
  boost,
  regex,
  startswith: startsWith,
  endswith: endsWith,
  lucene,
  exists,
  exact,
  intersect,
  count,
  sum,
  avg,
  min,
  max,
  array,
  key,
  highlight,
  explanations,
  timings,
  counters,
  counter,
  counterraw: counterRaw,
  revisions,
  fuzzy,
  proximity,
  timeseries: timeSeries,
  last,
  now,
  today,
  score,
  random,
  custom,
  facet,
  suggest,
  "spatial.within": spatialWithin,
  "spatial.contains": spatialContains,
  "spatial.disjoint": spatialDisjoint,
  "spatial.intersects": spatialIntersects,
  "spatial.circle": spatialCircle,
  "spatial.wkt": spatialWkt,
  "spatial.point": spatialPoint,
  "spatial.distance": spatialDistance,
  morelikethis: moreLikeThis,
  "vector.search": vectorSearch,
} as const;

type Functions = (typeof functions)[keyof typeof functions];
type ConditionOf<Listed> = Listed extends RqlFunction<infer Made, infer _Key> ? Made : never;
type OrderKeyOf<Listed> = Listed extends RqlFunction<infer _Made, infer Key> ? Key : never;

/** A condition that some method makes. */
export type MadeCondition = ConditionOf<Functions>;
/** The part of a sort key that some method makes. */
export type MadeOrderKey = OrderKeyOf<Functions>;

type AnyFunction = RqlFunction<MadeCondition, MadeOrderKey>;

/** A query method that has a name in messages. */
type QueryMethod = AnyFunction & { readonly shownName: string };

const byName: ReadonlyMap<string, AnyFunction> = new Map(
  Object.entries(functions as Readonly<Record<string, AnyFunction>>),
);

/** Returns the record of a method by its name in any case; undefined if the method does not exist. */
export function functionNamed(name: string): AnyFunction | undefined {
  return byName.get(name.toLowerCase());
}

/** @throws not-supported if RavenDB has no query method of this name */
export function requireMethod(name: string): QueryMethod {
  const found = functionNamed(name);
  if (found === undefined || !isQueryMethod(found)) {
    throw notSupported(`Method '${name}' is not supported.`);
  }
  return found;
}

function isQueryMethod(found: AnyFunction): found is QueryMethod {
  return found.shownName !== null;
}

/** The methods that are the whole of `select`. */
export const wholeSelects = [...byName].flatMap(([name, { select }]) =>
  select === null || select.whole === null ? [] : [{ name, use: select.whole }],
);

const meanings = byKind([...byName.values()].map(({ where }) => where?.meaning ?? null));
const orders = byKind([...byName.values()].map(({ orderBy }) => orderBy));

function byKind<Item extends { readonly kind: string }>(
  items: readonly (Item | null)[],
): ReadonlyMap<string, Item> {
  const found = items.filter((item) => item !== null);
  const map = new Map(found.map((item) => [item.kind, item]));
  assert(map.size === found.length, "each kind is made by one method");
  return map;
}

/** How the conditions of a kind that some method makes are evaluated. */
export function madeMeaning(kind: MadeCondition["kind"]): ConditionMeaning<MadeCondition> {
  const meaning = meanings.get(kind);
  assert(meaning !== undefined, "a method made the condition");
  return meaning;
}

/** How entries are ordered by a key that a method made. */
export function orderUseOf(key: MadeOrderKey): OrderUse<MadeOrderKey> {
  const use = orders.get(key.kind);
  assert(use !== undefined, "a method made the key");
  return use;
}
