/**
 * The methods of arrays and of `Array`. Each charges for the items that it visits or creates.
 *
 * Invariant: a callback may modify the array during a method; every method bounds its loop by the length at the start
 * and reads each item when it reaches it.
 */

import {
  joinItems,
  strictEquals,
  toInteger,
  toNumber,
  toText,
  truthy,
} from "../language/script-operators.ts";
import { elementsOf, getProperty, methodTables, setLength } from "../language/script-properties.ts";
import {
  ABSENT,
  callFunction,
  isArray,
  isFunction,
  isReference,
  kinds,
  type Native,
  type Run,
  ScriptArray,
  type ScriptFunction,
  type Slot,
  symbolOf,
  throwError,
  type Value,
  wellKnown,
} from "../language/script-values.ts";
import {
  arraySelf,
  builtIn,
  defineAll,
  functionArgument,
  namespaceOf,
  newArray,
} from "./built-in.ts";

function itemAt(array: ScriptArray, position: number): Value {
  const slot = position < array.items.length ? array.items[position] : undefined;
  return slot === ABSENT ? undefined : (slot as Value);
}

/** Returns a start or end as in `slice`: negative values count from the end; clamped to the length. */
export function bounded(run: Run, value: Value, length: number, fallback: number): number {
  if (value === undefined) return fallback;
  const position = toInteger(run, value);
  return position < 0 ? Math.max(0, length + position) : Math.min(position, length);
}

function writable(self: Value): ScriptArray {
  const array = arraySelf(self);
  if (array.frozen) throwError("TypeError", "Cannot change a frozen array");
  array.written = true;
  return array;
}

type Visit = (result: Value, item: Value, position: number) => boolean;

/** Calls back for each existing item, until `visit` returns false. */
function each(run: Run, self: Value, callback: Value, visit: Visit, holes = false): void {
  const array = arraySelf(self);
  const callee = functionArgument(callback);
  const { length } = array.items;
  for (let i = 0; i < length; i += 1) {
    run.burn(4);
    if (!holes && (i >= array.items.length || array.items[i] === ABSENT)) continue;
    const item = itemAt(array, i);
    if (!visit(callFunction(run, callee, undefined, [item, i, array]), item, i)) return;
  }
}

/** As `each`, from the end. */
function eachBackward(run: Run, self: Value, callback: Value, visit: Visit): void {
  const array = arraySelf(self);
  const callee = functionArgument(callback);
  for (let i = array.items.length - 1; i >= 0; i -= 1) {
    run.burn(4);
    const item = itemAt(array, i);
    if (!visit(callFunction(run, callee, undefined, [item, i, array]), item, i)) return;
  }
}

const iteration: Record<string, Native> = {
  forEach(run, self, [callback]) {
    each(run, self, callback, () => true);
    return undefined;
  },
  map(run, self, [callback]) {
    const array = arraySelf(self);
    const items: Slot[] = [];
    run.grow(64 + array.items.length * 8);
    const { length } = array.items;
    each(run, self, callback, (result, _item, position) => {
      while (items.length < position) items.push(ABSENT);
      items.push(result);
      return true;
    });
    while (items.length < length) items.push(ABSENT);
    return new ScriptArray(items);
  },
  filter(run, self, [callback]) {
    const items: Slot[] = [];
    each(run, self, callback, (result, item) => {
      if (truthy(result)) items.push(item);
      return true;
    });
    return newArray(run, items);
  },
  find(run, self, [callback]) {
    let found: Value;
    each(
      run,
      self,
      callback,
      (result, item) => {
        if (truthy(result)) found = item;
        return !truthy(result);
      },
      true,
    );
    return found;
  },
  findIndex(run, self, [callback]) {
    let found = -1;
    each(
      run,
      self,
      callback,
      (result, _item, position) => {
        if (truthy(result)) found = position;
        return !truthy(result);
      },
      true,
    );
    return found;
  },
  findLast(run, self, [callback]) {
    let found: Value;
    eachBackward(run, self, callback, (result, item) => {
      if (truthy(result)) found = item;
      return !truthy(result);
    });
    return found;
  },
  findLastIndex(run, self, [callback]) {
    let found = -1;
    eachBackward(run, self, callback, (result, _item, position) => {
      if (truthy(result)) found = position;
      return !truthy(result);
    });
    return found;
  },
  some(run, self, [callback]) {
    let found = false;
    each(run, self, callback, (result) => {
      found = truthy(result);
      return !found;
    });
    return found;
  },
  every(run, self, [callback]) {
    let all = true;
    each(run, self, callback, (result) => {
      all = truthy(result);
      return all;
    });
    return all;
  },
  flatMap(run, self, [callback]) {
    const items: Slot[] = [];
    each(run, self, callback, (result) => {
      if (isArray(result)) appendAll(run, items, result);
      else items.push(result);
      return true;
    });
    return newArray(run, items);
  },
};

function appendAll(run: Run, items: Slot[], source: ScriptArray): void {
  run.grow(source.items.length * 8);
  run.burn(source.items.length);
  for (const item of source.items) items.push(item);
}

function reduce(run: Run, self: Value, args: Value[], backward: boolean): Value {
  const array = arraySelf(self);
  const callee = functionArgument(args[0]);
  const { length } = array.items;
  let result = args[1];
  let empty = args.length < 2;
  for (let step = 0; step < length; step += 1) {
    const i = backward ? length - 1 - step : step;
    run.burn(4);
    if (i >= array.items.length || array.items[i] === ABSENT) continue;
    const item = itemAt(array, i);
    if (empty) {
      result = item;
      empty = false;
    } else result = callFunction(run, callee, undefined, [result, item, i, array]);
  }
  if (empty) throwError("TypeError", "Reduce of empty array with no initial value");
  return result;
}

const changing: Record<string, Native> = {
  push(run, self, args) {
    const array = writable(self);
    run.grow(args.length * 8);
    run.burn(args.length);
    for (const item of args) array.items.push(item);
    return array.items.length;
  },
  pop(_run, self) {
    const array = writable(self);
    const item = array.items.pop();
    return item === ABSENT ? undefined : (item as Value);
  },
  shift(run, self) {
    const array = writable(self);
    run.burn(array.items.length >> 4);
    forgetExact(array);
    const item = array.items.shift();
    return item === ABSENT ? undefined : (item as Value);
  },
  unshift(run, self, args) {
    const array = writable(self);
    run.grow(args.length * 8);
    run.burn(args.length * 2 + (array.items.length >> 1));
    forgetExact(array);
    array.items = [...args, ...array.items];
    return array.items.length;
  },
  splice(run, self, args) {
    const array = writable(self);
    const { length } = array.items;
    const start = bounded(run, args[0], length, 0);
    const most = length - start;
    const asked = args.length === 0 ? 0 : args.length === 1 ? most : toInteger(run, args[1]);
    const count = Math.min(Math.max(0, asked), most);
    run.grow((args.length + count) * 8);
    run.burn(args.length * 2 + length);
    forgetExact(array);
    const tail = array.items.slice(start + count);
    const removed = array.items.slice(start, start + count);
    array.items = [...array.items.slice(0, start), ...args.slice(2), ...tail];
    return new ScriptArray(removed);
  },
  reverse(run, self) {
    const array = writable(self);
    run.burn(array.items.length >> 4);
    forgetExact(array);
    array.items.reverse();
    return array;
  },
  sort(run, self, [comparer]) {
    const array = writable(self);
    forgetExact(array);
    const sorted = sortedItems(run, array, comparer);
    array.items = sorted;
    return array;
  },
  fill(run, self, args) {
    const array = writable(self);
    const { length } = array.items;
    const start = bounded(run, args[1], length, 0);
    const end = bounded(run, args[2], length, length);
    run.burn(Math.max(0, end - start) >> 3);
    array.items.fill(args[0], start, end);
    return array;
  },
};

/** Exact spellings are by position: moving items invalidates them. */
function forgetExact(array: ScriptArray): void {
  array.exact = null;
}

/** Returns the items in order: undefined after the others, then holes. */
function sortedItems(run: Run, array: ScriptArray, comparer: Value): Slot[] {
  const { length } = array.items;
  run.burn(length * Math.ceil(Math.log2(length + 2)));
  run.grow(length * 16);
  const items = array.items.filter((item) => item !== ABSENT && item !== undefined) as Value[];
  const undefinedCount = array.items.filter((item) => item === undefined).length;
  let sorted: Value[];
  if (comparer === undefined) {
    const keyed = items.map((item) => ({ item, text: sortText(run, item) }));
    keyed.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
    sorted = keyed.map(({ item }) => item);
  } else {
    const callee = functionArgument(comparer);
    sorted = items.sort((a, b) => {
      run.burn(4);
      return toNumber(run, callFunction(run, callee, undefined, [a, b])) || 0;
    });
  }
  const result: Slot[] = sorted;
  for (let i = 0; i < undefinedCount; i += 1) result.push(undefined);
  while (result.length < length) result.push(ABSENT);
  return result;
}

/** Returns the sort text of an item; charges immediately for comparing long texts with a common prefix. */
function sortText(run: Run, item: Value): string {
  const text = toText(run, item);
  run.burn(text.length >> 2);
  return text;
}

const reading: Record<string, Native> = {
  at(run, self, [position]) {
    const array = arraySelf(self);
    const at = toInteger(run, position);
    return itemAt(array, at < 0 ? array.items.length + at : at);
  },
  slice(run, self, args) {
    const array = arraySelf(self);
    const { length } = array.items;
    const start = bounded(run, args[0], length, 0);
    return newArray(run, array.items.slice(start, bounded(run, args[1], length, length)));
  },
  concat(run, self, args) {
    const items = arraySelf(self).items.slice();
    for (const arg of args) {
      if (isArray(arg)) appendAll(run, items, arg);
      else items.push(arg);
    }
    return newArray(run, items);
  },
  join(run, self, [separator]) {
    return joinItems(run, arraySelf(self), separator === undefined ? "," : toText(run, separator));
  },
  toString(run: Run, self: Value) {
    return joinItems(run, arraySelf(self), ",");
  },
  toLocaleString(run: Run, self: Value) {
    return joinItems(run, arraySelf(self), ",");
  },
  indexOf(run, self, [wanted, from]) {
    const array = arraySelf(self);
    for (let i = bounded(run, from, array.items.length, 0); i < array.items.length; i += 1) {
      run.burn(1);
      if (array.items[i] !== ABSENT && strictEquals(run, itemAt(array, i), wanted)) return i;
    }
    return -1;
  },
  lastIndexOf(run, self, [wanted]) {
    const array = arraySelf(self);
    for (let i = array.items.length - 1; i >= 0; i -= 1) {
      run.burn(1);
      if (array.items[i] !== ABSENT && strictEquals(run, itemAt(array, i), wanted)) return i;
    }
    return -1;
  },
  includes(run, self, [wanted]) {
    const array = arraySelf(self);
    const nan = typeof wanted === "number" && Number.isNaN(wanted);
    for (let i = 0; i < array.items.length; i += 1) {
      run.burn(1);
      const item = itemAt(array, i);
      if (strictEquals(run, item, wanted) || (nan && Number.isNaN(item))) return true;
    }
    return false;
  },
  flat(run, self, [depth]) {
    const items: Slot[] = [];
    const levels = depth === undefined ? 1 : toInteger(run, depth);
    flatten(run, arraySelf(self), Math.min(levels, 100), items);
    return newArray(run, items);
  },
  keys(run, self) {
    return newArray(run, [...arraySelf(self).items.keys()]);
  },
  values(run, self) {
    return newArray(run, elementsOf(run, self));
  },
  entries(run, self) {
    run.grow(arraySelf(self).items.length * 80);
    return newArray(
      run,
      elementsOf(run, self).map((item, i) => new ScriptArray([i, item])),
    );
  },
  toSorted(run, self, [comparer]) {
    return new ScriptArray(sortedItems(run, arraySelf(self), comparer));
  },
  toReversed(run, self) {
    return newArray(run, elementsOf(run, self).reverse());
  },
};

function flatten(run: Run, array: ScriptArray, levels: number, items: Slot[]): void {
  for (const item of array.items) {
    run.burn(2);
    if (item === ABSENT) continue;
    if (levels > 0 && isArray(item as Value)) flatten(run, item as ScriptArray, levels - 1, items);
    else {
      run.grow(8);
      items.push(item);
    }
  }
}

/** Returns the elements for `Array.from`: of an iterable, or of an object with a length. */
function listOf(run: Run, source: Value): Value[] {
  if (!isReference(source) || (source.kind !== kinds.object && source.kind !== kinds.function)) {
    return elementsOf(run, source);
  }
  const isIterable = source.kind === kinds.object && symbolOf(source, wellKnown.iterator);
  if (isIterable) return elementsOf(run, source);
  const length = toInteger(run, getProperty(run, source, "length"));
  const list = new ScriptArray([]);
  setLength(run, list, Math.max(0, length));
  run.burn(list.items.length * 3);
  return list.items.map((_, i) => getProperty(run, source, i));
}

function constructArray(run: Run, args: Value[]): Value {
  const [length] = args;
  if (args.length !== 1 || typeof length !== "number") return newArray(run, args.slice());
  if (!Number.isInteger(length) || length < 0 || length >= 2 ** 32) {
    throwError("RangeError", "Invalid array length");
  }
  const array = newArray(run, []);
  setLength(run, array, length);
  return array;
}

const statics: Record<string, Native> = {
  isArray: (_run, _self, [value]) => isArray(value),
  of: (run, _self, args) => newArray(run, args.slice()),
  from(run, _self, [source, callback]) {
    const list = listOf(run, source);
    if (!isFunction(callback)) return newArray(run, list);
    const items = list.map((item, i) => {
      run.burn(4);
      return callFunction(run, callback, undefined, [item, i]);
    });
    return newArray(run, items);
  },
};

/** Fills the method table of arrays. @returns the constructor `Array` */
export function defineArrays(): ScriptFunction {
  const table = methodTables.array;
  for (const group of [iteration, changing, reading]) defineAll(table, 1, group);
  table.set(
    "reduce",
    builtIn("reduce", 1, (run, self, args) => reduce(run, self, args, false)),
  );
  table.set(
    "reduceRight",
    builtIn("reduceRight", 1, (run, self, args) => reduce(run, self, args, true)),
  );
  const maker = builtIn("Array", 1, (run, _self, args) => constructArray(run, args));
  maker.construct = (run, _self, args) => constructArray(run, args);
  maker.properties = namespaceOf(statics);
  return maker;
}
