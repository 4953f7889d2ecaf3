/**
 * The sequence methods (LINQ) that C# indexes call, over arrays of scripts.
 *
 * - An array is a sequence, so are the characters of a text and the pairs of an object (`Key` and `Value`).
 * - Measured on RavenDB 7.2.7: for a missing sequence, `Select` and `SelectMany` return an empty list, `Count` 0, all
 *   others a missing value.
 *
 * Invariant: every visited item is charged; every called function charges for itself.
 */

import { newArray } from "../built-ins/built-in.ts";
import {
  ABSENT,
  callFunction,
  isArray,
  isFunction,
  isObject,
  type Native,
  newObject,
  ownKeys,
  type Run,
  type ScriptArray,
  type ScriptObject,
  setOwn,
  type Value,
} from "../language/script-values.ts";
import {
  computedDecimal,
  failed,
  isLong,
  makeDouble,
  numberIn,
  numberKey,
  spelledNumber,
  toDecimal,
  wholeOf,
} from "./csharp-numbers.ts";
import { add, equals, isMissing, order, propertyOf, resultText, textOf } from "./csharp-values.ts";

/** Returns the items of a sequence; null when it is missing. @throws EngineError script-failed for any other value */
export function itemsOf(run: Run, value: Value): Value[] | null {
  if (isMissing(value)) return null;
  if (isArray(value)) {
    run.burn(1 + value.items.length);
    const items = value.items.map((item) => (item === ABSENT ? undefined : (item as Value)));
    if (value.exact !== null) {
      for (const [at, text] of value.exact) items[at] = spelledNumber(run, Number(text), text);
    }
    return items;
  }
  if (typeof value === "string") {
    run.grow(value.length * 8);
    return value.split("");
  }
  if (isObject(value) && numberIn(value) === null) {
    return ownKeys(value)
      .filter((key) => key !== "@metadata")
      .map((key) => pair(run, key, propertyOf(run, value, key)));
  }
  throw failed("The value is no sequence");
}

function pair(run: Run, key: Value, value: Value): ScriptObject {
  run.grow(96);
  const made = newObject();
  setOwn(made, "Key", key);
  setOwn(made, "Value", value);
  return made;
}

function call(run: Run, callback: Value, args: Value[]): Value {
  if (!isFunction(callback)) throw failed("A function is expected");
  return callFunction(run, callback, undefined, args);
}

function empty(): never {
  throw failed("System.InvalidOperationException: Sequence contains no elements");
}

/** Returns a method that returns undefined for a missing sequence. */
function method(work: (run: Run, items: Value[], args: Value[]) => Value): Native {
  return (run, _self, [source, ...args]) => {
    const items = itemsOf(run, source);
    return items === null ? undefined : work(run, items, args);
  };
}

/** Returns a method that returns a list. */
function listMethod(work: (run: Run, items: Value[], args: Value[]) => Value[]): Native {
  return method((run, items, args) => newArray(run, work(run, items, args)));
}

function passing(run: Run, items: Value[], test: Value): Value[] {
  return test === undefined
    ? items
    : items.filter((item, i) => Boolean(call(run, test, [item, i])));
}

function mapped(run: Run, items: Value[], selector: Value): Value[] {
  return selector === undefined ? items : items.map((item) => call(run, selector, [item]));
}

function select(run: Run, _self: Value, [source, selector]: Value[]): Value {
  const items = itemsOf(run, source) ?? [];
  return newArray(
    run,
    items.map((item, i) => call(run, selector, [item, i])),
  );
}

function selectMany(run: Run, _self: Value, [source, selector, result]: Value[]): Value {
  const found: Value[] = [];
  for (const item of itemsOf(run, source) ?? []) {
    for (const inner of itemsOf(run, call(run, selector, [item])) ?? []) {
      found.push(result === undefined ? inner : call(run, result, [item, inner]));
    }
  }
  return newArray(run, found);
}

function count(run: Run, _self: Value, [source, test]: Value[]): Value {
  return passing(run, itemsOf(run, source) ?? [], test).length;
}

/** Returns the sum of longs. Missing values count as 0. @throws EngineError script-failed if it exceeds a long */
function sum(run: Run, items: Value[], selector: Value): Value {
  let found: Value = 0;
  for (const value of mapped(run, items, selector)) {
    if (isMissing(value)) continue;
    const next = add(run, found, value);
    // Two safe integers have no sum beyond 64 bits.
    const isSafe = typeof found === "number" && typeof value === "number";
    if (!isSafe && isLong(next) && wholeOf(found) + wholeOf(value) !== wholeOf(next)) {
      throw overflow();
    }
    found = next;
  }
  return found;
}

function overflow() {
  return failed("System.OverflowException: Arithmetic operation resulted in an overflow.");
}

/** Returns the sum of numbers other than integers by their type: a decimal, unless doubles are added. */
function total(run: Run, items: Value[], selector: Value): Value {
  let found: Value = 0;
  for (const value of mapped(run, items, selector)) {
    if (isMissing(value)) continue;
    found = computedDecimal(run, found, value, "+") ?? add(run, found, value);
  }
  return isLong(found) ? toDecimal(run, found) : found;
}

function average(run: Run, items: Value[], selector: Value): Value {
  if (items.length === 0) return empty();
  const found = total(run, items, selector);
  return numberIn(found) === null
    ? undefined
    : (computedDecimal(run, found, items.length, "/") ?? undefined);
}

/** Returns the average of longs: a double. */
function mean(run: Run, items: Value[], selector: Value): Value {
  if (items.length === 0) return empty();
  const number = numberIn(sum(run, items, selector));
  return number === null ? undefined : makeDouble(run, number / items.length);
}

/** Returns the smallest item for `sign` -1, the largest for 1; null when all are missing. */
function extreme(run: Run, items: Value[], selector: Value, sign: number): Value {
  const values = mapped(run, items, selector);
  let found: Value = items.length === 0 ? undefined : null;
  for (const value of values) {
    if (isMissing(value)) continue;
    if (isMissing(found) || order(run, value, found) * sign > 0) found = value;
  }
  return found;
}

interface Sorting {
  readonly items: readonly Value[];
  readonly keys: readonly { readonly selector: Value; readonly sign: number }[];
}

const sortings = new WeakMap<ScriptArray, Sorting>();

function sorted(run: Run, { items, keys }: Sorting): Value {
  const rows = items.map((item) => ({
    item,
    values: keys.map(({ selector }) => call(run, selector, [item])),
  }));
  run.burn(rows.length * (4 + Math.ceil(Math.log2(rows.length + 1))));
  rows.sort((left, right) => {
    for (const [i, { sign }] of keys.entries()) {
      const found = order(run, left.values[i], right.values[i]);
      if (found !== 0) return found * sign;
    }
    return 0;
  });
  const array = newArray(
    run,
    rows.map(({ item }) => item),
  );
  sortings.set(array, { items, keys });
  return array;
}

function orderBy(sign: number): Native {
  return method((run, items, [selector]) => sorted(run, { items, keys: [{ selector, sign }] }));
}

function thenBy(sign: number): Native {
  return (run, _self, [source, selector]) => {
    if (isMissing(source)) return undefined;
    const sorting = isArray(source) ? sortings.get(source) : undefined;
    if (sorting === undefined) throw failed("ThenBy must be called after OrderBy");
    return sorted(run, { items: sorting.items, keys: [...sorting.keys, { selector, sign }] });
  };
}

/** Returns a text that is equal for equal values. */
function keyOf(run: Run, value: Value): string {
  if (typeof value === "number") return `n${value}`;
  if (numberIn(value) !== null) return `n${numberKey(value)}`;
  const text = typeof value === "string" ? `s${value}` : `j${resultText(run, value)}`;
  run.grow(text.length);
  return text;
}

function distinct(run: Run, items: Value[]): Value[] {
  const known = new Set<string>();
  return items.filter((item) => {
    const key = keyOf(run, item);
    if (known.has(key)) return false;
    known.add(key);
    return true;
  });
}

function keysOf(run: Run, value: Value): Set<string> {
  return new Set((itemsOf(run, value) ?? []).map((item) => keyOf(run, item)));
}

/** Items with their key: an array that has a `Key`. */
function group(run: Run, key: Value, items: Value[]): ScriptArray {
  const made = newArray(run, items);
  made.extra = newObject();
  setOwn(made.extra, "Key", key);
  return made;
}

function grouped(run: Run, pairs: readonly (readonly [Value, Value])[]): Value[] {
  const found = new Map<string, { readonly key: Value; readonly items: Value[] }>();
  for (const [key, item] of pairs) {
    const text = keyOf(run, key);
    const known = found.get(text);
    if (known === undefined) found.set(text, { key, items: [item] });
    else known.items.push(item);
  }
  return [...found.values()].map(({ key, items }) => group(run, key, items));
}

function groupBy(run: Run, items: Value[], [key, element]: Value[]): Value[] {
  return grouped(
    run,
    items.map((item) => [
      call(run, key, [item]),
      element === undefined ? item : call(run, element, [item]),
    ]),
  );
}

/** Returns the group of one key for a reduce. */
function groupOf(run: Run, _self: Value, [given, element]: Value[]): Value {
  if (!isObject(given)) throw failed("A group is expected");
  const items = itemsOf(run, propertyOf(run, given, "values")) ?? [];
  return group(run, propertyOf(run, given, "key"), mapped(run, items, element));
}

/** Returns the items of each key, of a sequence that is joined. Missing keys join nothing. */
function byKey(run: Run, items: readonly Value[], selector: Value): Map<string, Value[]> {
  const found = new Map<string, Value[]>();
  for (const item of items) {
    const key = call(run, selector, [item]);
    if (isMissing(key)) continue;
    const text = keyOf(run, key);
    const known = found.get(text);
    if (known === undefined) found.set(text, [item]);
    else known.push(item);
  }
  return found;
}

/** `Join(inner, outerKey, innerKey, result)`; `isGrouped`: `GroupJoin`. */
function joinItems(isGrouped: boolean): Native {
  return method((run, items, [inner, outerKey, innerKey, result]) => {
    const others = byKey(run, itemsOf(run, inner) ?? [], innerKey);
    const made: Value[] = [];
    for (const item of items) {
      const key = call(run, outerKey, [item]);
      const found = isMissing(key) ? [] : (others.get(keyOf(run, key)) ?? []);
      if (isGrouped) made.push(call(run, result, [item, newArray(run, found)]));
      else for (const other of found) made.push(call(run, result, [item, other]));
    }
    return newArray(run, made);
  });
}

/** Returns the items of a joined sequence whose key equals `key`: a clause `join`. */
function joined(run: Run, _self: Value, [source, key, selector]: Value[]): Value {
  const items = isMissing(key) ? [] : (itemsOf(run, source) ?? []);
  const found = items.filter((item) => equals(run, call(run, selector, [item]), key));
  return newArray(run, found);
}

/** Rows `[key, …, values]` ordered by their keys, by the signs of the second list: a clause `orderby`. */
function ordered(run: Run, items: Value[], [signs]: Value[]): Value {
  const keys = (itemsOf(run, signs) ?? []).map((sign, at) => ({
    selector: at,
    sign: numberIn(sign) ?? 1,
  }));
  run.burn(items.length * (4 + Math.ceil(Math.log2(items.length + 1))));
  const at = (row: Value, position: number) =>
    isArray(row) ? (row.items[position] as Value) : null;
  const rows = items.toSorted((left, right) => {
    for (const { selector, sign } of keys) {
      const found = order(run, at(left, selector), at(right, selector));
      if (found !== 0) return found * sign;
    }
    return 0;
  });
  return newArray(run, rows);
}

function toDictionary(run: Run, items: Value[], [key, element]: Value[]): Value {
  const made = newObject();
  for (const item of items) {
    const name = call(run, key, [item]);
    const isKey = typeof name === "string" || numberIn(name) !== null;
    const text = typeof name === "string" ? name : isKey ? textOf(name) : "null";
    run.grow(64 + text.length);
    setOwn(made, text, element === undefined ? item : call(run, element, [item]));
  }
  return made;
}

function aggregate(run: Run, items: Value[], args: Value[]): Value {
  const [seed, step] = args.length > 1 ? args : [items[0], args[0]];
  if (args.length < 2 && items.length === 0) return empty();
  const rest = args.length > 1 ? items : items.slice(1);
  const found = rest.reduce((so: Value, item) => call(run, step, [so, item]), seed);
  return args.length > 2 ? call(run, args[2], [found]) : found;
}

function firstOf(isNeeded: boolean, isLast: boolean): Native {
  return method((run, items, [test]) => {
    const found = passing(run, items, test);
    if (found.length === 0) return isNeeded ? empty() : undefined;
    return found[isLast ? found.length - 1 : 0];
  });
}

function single(isNeeded: boolean): Native {
  return method((run, items, [test]) => {
    const found = passing(run, items, test);
    if (found.length > 1) {
      throw failed("System.InvalidOperationException: Sequence contains more than one element");
    }
    return found.length === 0 && isNeeded ? empty() : found[0];
  });
}

function positionIn(items: Value[], test: (item: Value) => boolean): number {
  const found = items.findIndex((item) => !test(item));
  return found < 0 ? items.length : found;
}

export function elementAt(items: readonly Value[], index: Value): Value {
  const at = numberIn(index);
  if (at === null || !Number.isInteger(at) || at < 0 || at >= items.length) {
    throw failed(
      "System.ArgumentOutOfRangeException: Specified argument was out of the range of valid values. (Parameter 'index')",
    );
  }
  return items[at];
}

function range(run: Run, _self: Value, [start, length]: Value[]): Value {
  const [first, size] = [numberIn(start), numberIn(length)];
  if (first === null || size === null || size < 0)
    throw failed("Enumerable.Range needs two numbers");
  run.grow(size * 8);
  return newArray(
    run,
    Array.from({ length: size }, (_, i) => first + i),
  );
}

function repeat(run: Run, _self: Value, [value, length]: Value[]): Value {
  const size = Math.trunc(numberIn(length) ?? -1);
  if (size < 0) throw failed("Enumerable.Repeat needs a number");
  run.grow(size * 8);
  return newArray(run, new Array<Value>(size).fill(value));
}

/** Calls a function for each item; the building block of query clauses. */
function each(run: Run, _self: Value, [source, callback]: Value[]): Value {
  for (const item of itemsOf(run, source) ?? []) call(run, callback, [item]);
  return undefined;
}

function query(run: Run, _self: Value, [fill]: Value[]): Value {
  const list = newArray(run, []);
  call(run, fill, [list]);
  return list;
}

/**
 * Charged for an item that a query adds to its result. Objects that stay occupy more memory than making them is charged
 * for, and the garbage collector takes about as long to copy them as the script to make them.
 */
const keptItemBytes = 400;

function push(run: Run, _self: Value, [list, value]: Value[]): Value {
  run.grow(keptItemBytes);
  if (isArray(list)) list.items.push(value);
  return undefined;
}

const same = listMethod((_run, items) => items);

/**
 * By name without `cs`. Functions that also apply to texts, such as `Contains`, `Concat` and `IndexOf`, are in
 * csharp-functions.ts.
 */
export const sequenceFunctions: Readonly<Record<string, Native>> = {
  Aggregate: method(aggregate),
  All: method((run, items, [test]) => items.every((item) => Boolean(call(run, test, [item])))),
  Any: method((run, items, [test]) =>
    test === undefined ? items.length > 0 : items.some((item) => Boolean(call(run, test, [item]))),
  ),
  Append: listMethod((_run, items, [item]) => [...items, item]),
  AsEnumerable: same,
  Average: method((run, items, [selector]) => average(run, items, selector)),
  Cast: same,
  Count: count,
  DefaultIfEmpty: listMethod((_run, items, [value]) => (items.length === 0 ? [value] : items)),
  Distinct: listMethod(distinct),
  Each: each,
  ElementAt: method((_run, items, [index]) => elementAt(items, index)),
  ElementAtOrDefault: method((_run, items, [index]) => items[numberIn(index) ?? -1]),
  Empty: (run) => newArray(run, []),
  Except: listMethod((run, items, [other]) => {
    const known = keysOf(run, other);
    return distinct(run, items).filter((item) => !known.has(keyOf(run, item)));
  }),
  First: firstOf(true, false),
  FirstOrDefault: firstOf(false, false),
  GroupBy: listMethod(groupBy),
  GroupJoin: joinItems(true),
  GroupOf: groupOf,
  Groups: listMethod((run, items) =>
    grouped(
      run,
      items.map((item) => (isArray(item) ? item.items : []) as unknown as [Value, Value]),
    ),
  ),
  Intersect: listMethod((run, items, [other]) => {
    const known = keysOf(run, other);
    return distinct(run, items).filter((item) => known.has(keyOf(run, item)));
  }),
  JoinItems: joinItems(false),
  Joined: joined,
  Last: firstOf(true, true),
  LastOrDefault: firstOf(false, true),
  LongCount: count,
  Mean: method((run, items, [selector]) => mean(run, items, selector)),
  Max: method((run, items, [selector]) => extreme(run, items, selector, 1)),
  Min: method((run, items, [selector]) => extreme(run, items, selector, -1)),
  OfType: same,
  Ordered: method(ordered),
  OrderBy: orderBy(1),
  OrderByDescending: orderBy(-1),
  Prepend: listMethod((_run, items, [item]) => [item, ...items]),
  Push: push,
  Query: query,
  Range: range,
  Repeat: repeat,
  Reverse: listMethod((_run, items) => items.reverse()),
  Select: select,
  SelectMany: selectMany,
  Single: single(true),
  SingleOrDefault: single(false),
  Skip: listMethod((_run, items, [size]) => items.slice(Math.max(0, numberIn(size) ?? 0))),
  SkipWhile: listMethod((run, items, [test]) =>
    items.slice(positionIn(items, (item) => Boolean(call(run, test, [item])))),
  ),
  Sum: method((run, items, [selector]) => sum(run, items, selector)),
  Total: method((run, items, [selector]) => total(run, items, selector)),
  Take: listMethod((_run, items, [size]) => items.slice(0, Math.max(0, numberIn(size) ?? 0))),
  TakeWhile: listMethod((run, items, [test]) =>
    items.slice(
      0,
      positionIn(items, (item) => Boolean(call(run, test, [item]))),
    ),
  ),
  ThenBy: thenBy(1),
  ThenByDescending: thenBy(-1),
  ToArray: same,
  ToDictionary: method(toDictionary),
  ToHashSet: listMethod(distinct),
  ToList: same,
  Union: listMethod((run, items, [other]) =>
    distinct(run, [...items, ...(itemsOf(run, other) ?? [])]),
  ),
  Where: listMethod((run, items, [test]) => passing(run, items, test)),
  Zip: listMethod((run, items, [other, result]) => {
    const others = itemsOf(run, other) ?? [];
    return items
      .slice(0, others.length)
      .map((item, i) =>
        result === undefined
          ? newArray(run, [item, others[i]])
          : call(run, result, [item, others[i]]),
      );
  }),
};
