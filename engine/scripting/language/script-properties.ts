/**
 * The only access to properties: reading, writing, deleting, calling and iterating by names from a script.
 *
 * Reads follow the reference's lenient rules: a property of undefined or null is null, and so on. Methods are found in
 * tables by the type of value (`methodTables`), never in host prototypes.
 *
 * Invariants:
 * - no host object is indexed by a name from a script: names go to `positionOf`, to a `Map`, or are checked to be array
 *   positions;
 * - `__proto__`, `constructor` and `prototype` of objects are plain keys.
 */

import { toInteger, toKey, toText, truthy } from "./script-operators.ts";
import {
  ABSENT,
  addOwn,
  callFunction,
  deleteOwn,
  getOwn,
  isArray,
  isFunction,
  isReference,
  kinds,
  markSet,
  newObject,
  ownKeys,
  positionOf,
  type Reference,
  type Run,
  ScriptArray,
  type ScriptFunction,
  ScriptObject,
  type ScriptSymbol,
  type Slot,
  slotAt,
  symbolOf,
  throwError,
  traitsOf,
  type Value,
  wellKnown,
} from "./script-values.ts";

/** Method tables by kind of value; built-ins.ts fills them. */
export const methodTables: Record<
  | "string"
  | "number"
  | "boolean"
  | "object"
  | "array"
  | "function"
  | "date"
  | "map"
  | "set"
  | "pattern"
  | "symbol"
  // The method of lists under `Symbol.iterator`.
  | "iterable",
  Map<string, ScriptFunction>
> = {
  string: new Map(),
  number: new Map(),
  boolean: new Map(),
  object: new Map(),
  array: new Map(),
  function: new Map(),
  date: new Map(),
  map: new Map(),
  set: new Map(),
  pattern: new Map(),
  symbol: new Map(),
  iterable: new Map(),
};

/** Maximum items of an array. */
const arrayLengthMax = 2_000_000;

const cannotConvert = "Cannot convert undefined or null to object";

/** Returns the array position of a key, or -1: `"0"`, `"17"`, not `"01"` or `"-1"`. */
export function arrayPosition(key: Value): number {
  if (typeof key === "number") return Number.isInteger(key) && key >= 0 && key < 2 ** 32 ? key : -1;
  if (typeof key !== "string" || key.length === 0 || key.length > 10) return -1;
  const first = key.charCodeAt(0);
  if (first < 48 || first > 57) return -1;
  const position = Number(key);
  return String(position) === key && position < 2 ** 32 ? position : -1;
}

/** Reads `base[key]`. Never fails for undefined and null. */
export function getProperty(run: Run, base: Value, key: Value): Value {
  if (typeof key === "object" && isSymbol(key)) return symbolProperty(base, key);
  switch (typeof base) {
    case "string":
      return stringProperty(run, base, key);
    case "number":
      return methodTables.number.get(toKey(run, key));
    case "boolean":
      return methodTables.boolean.get(toKey(run, key));
    case "undefined":
      return key === "length" ? 0 : null;
    default:
      return base === null ? null : referenceProperty(run, base, key);
  }
}

function isSymbol(key: Value): key is ScriptSymbol {
  return isReference(key) && key.kind === kinds.symbol;
}

/** Returns the value under a symbol: the object's own property, or the iterator of a list. */
function symbolProperty(base: Value, symbol: ScriptSymbol): Value {
  if (base === undefined || base === null) return null;
  const holder = symbolHolder(base);
  const found = holder === null ? undefined : symbolOf(holder, symbol);
  if (found !== undefined || symbol !== wellKnown.iterator) return found;
  const isListed =
    typeof base === "string" ||
    (isReference(base) &&
      (base.kind === kinds.array || base.kind === kinds.map || base.kind === kinds.set));
  return isListed ? methodTables.iterable.get("iterator") : undefined;
}

/** Returns the object that holds a value's properties under symbols; null if it does not exist. */
function symbolHolder(base: Value): ScriptObject | null {
  if (!isReference(base)) return null;
  if (base.kind === kinds.object) return base;
  if (base.kind === kinds.array) return base.extra;
  return base.kind === kinds.function ? base.properties : null;
}

/** `base[symbol] = value`. @throws ScriptThrow for primitives, and for frozen and built-in values */
function setSymbol(run: Run, base: Value, symbol: ScriptSymbol, value: Value): void {
  const name = symbol.description ?? "";
  if (!isReference(base)) readOnly(name);
  if (base.kind === kinds.array) {
    if (base.frozen) readOnly(name);
    base.written = true;
    base.extra ??= newObject();
  } else if (base.kind === kinds.function) {
    if (base.builtIn) readOnly(name);
    base.properties ??= newObject();
  }
  const holder = symbolHolder(base);
  if (holder === null || holder.frozen) readOnly(name);
  run.grow(96);
  const traits = traitsOf(holder);
  traits.symbols ??= new Map();
  traits.symbols.set(symbol, value);
  holder.written = true;
}

function deleteSymbol(base: Reference, symbol: ScriptSymbol): void {
  const holder = symbolHolder(base);
  const isFixed = base.kind === kinds.function && base.builtIn;
  if (holder === null) return;
  if (isFixed || holder.frozen) readOnly(symbol.description ?? "");
  holder.traits?.symbols?.delete(symbol);
}

function stringProperty(run: Run, base: string, key: Value): Value {
  if (key === "length") return base.length;
  const position = arrayPosition(key);
  if (position >= 0) {
    run.burn(base.length >> 7);
    return position < base.length ? base.charAt(position) : undefined;
  }
  return methodTables.string.get(toKey(run, key));
}

function referenceProperty(run: Run, base: Exclude<Value, null | undefined>, key: Value): Value {
  if (!isReference(base)) return undefined;
  switch (base.kind) {
    case kinds.object:
      return objectProperty(run, base, toKey(run, key));
    case kinds.array:
      return arrayProperty(run, base, key);
    case kinds.function:
      return functionProperty(base, toKey(run, key));
    case kinds.date:
      return methodTables.date.get(toKey(run, key));
    case kinds.map:
      return key === "size" ? base.entries.size : methodTables.map.get(toKey(run, key));
    case kinds.set:
      return key === "size" ? base.items.size : methodTables.set.get(toKey(run, key));
    case kinds.symbol: {
      const name = toKey(run, key);
      return name === "description" ? base.description : methodTables.symbol.get(name);
    }
    case kinds.pattern: {
      const name = toKey(run, key);
      if (name === "lastIndex") return base.lastIndex;
      if (name === "source") return base.matcher.source;
      if (name === "flags") return base.matcher.flags;
      if (name === "global") return base.matcher.flags.includes("g");
      return methodTables.pattern.get(name);
    }
  }
}

function objectProperty(run: Run, base: ScriptObject, key: string): Value {
  const position = positionOf(base, key);
  if (position >= 0) {
    const slot = slotAt(base, position);
    if (slot !== ABSENT) return slot;
  }
  // As in the reference, values parsed from a document have no methods.
  if (base.source !== null) return undefined;
  const { maker } = base;
  if (maker !== null && maker.methods !== null) {
    const method = getOwn(maker.methods, key);
    if (method !== undefined) return method;
  }
  if (base.className !== "Object") {
    if (base.className === "String" && typeof base.boxed === "string") {
      return stringProperty(run, base.boxed, key);
    }
    if (base.className === "Number") return methodTables.number.get(key);
    if (base.className.endsWith("Error")) {
      if (key === "name") return base.className;
      if (key === "message" || key === "stack") return "";
    }
  }
  return methodTables.object.get(key);
}

function arrayProperty(run: Run, base: ScriptArray, key: Value): Value {
  if (typeof key === "number" || typeof key === "string") {
    if (key === "length") return base.items.length;
    const position = arrayPosition(key);
    if (position >= 0) {
      const slot = position < base.items.length ? base.items[position] : undefined;
      return slot === ABSENT ? undefined : (slot as Value);
    }
  }
  const name = toKey(run, key);
  if (name === "length") return base.items.length;
  if (base.extra !== null) {
    const own = getOwn(base.extra, name);
    if (own !== undefined) return own;
  }
  return methodTables.array.get(name);
}

function functionProperty(base: ScriptFunction, key: string): Value {
  if (base.properties !== null) {
    const own = getOwn(base.properties, key);
    if (own !== undefined) return own;
  }
  if (key === "name") return base.name;
  if (key === "length") return base.length;
  if (key === "prototype" && !base.builtIn && base.construct !== null) {
    base.methods ??= newObject();
    return base.methods;
  }
  return methodTables.function.get(key);
}

/** `base[key] = value`. @throws ScriptThrow for undefined, null, primitives and frozen values */
export function setProperty(run: Run, base: Value, key: Value, value: Value): void {
  if (base === undefined || base === null) throwError("TypeError", cannotConvert);
  if (typeof key === "object" && isSymbol(key)) {
    setSymbol(run, base, key, value);
    return;
  }
  if (isReference(base)) {
    switch (base.kind) {
      case kinds.object: {
        const name = toKey(run, key);
        if (base.frozen) readOnly(name);
        setObjectProperty(run, base, name, value);
        return;
      }
      case kinds.array:
        setArrayProperty(run, base, key, value);
        return;
      case kinds.function: {
        const name = toKey(run, key);
        if (base.builtIn) readOnly(name);
        if (name === "prototype") {
          if (!isReference(value) || value.kind !== kinds.object) readOnly(name);
          base.methods = value;
          return;
        }
        base.properties ??= newObject();
        setObjectProperty(run, base.properties, name, value);
        return;
      }
      case kinds.pattern:
        if (key !== "lastIndex") break;
        base.lastIndex = toInteger(run, value);
        return;
      default:
    }
  }
  readOnly(toKey(run, key));
}

function readOnly(name: string): never {
  return throwError("TypeError", `Cannot assign to read only property '${name}' of Object`);
}

function setObjectProperty(run: Run, base: ScriptObject, key: string, value: Value): void {
  const position = positionOf(base, key);
  if (position >= 0) {
    markSet(base, position);
    base.values[position] = value;
    return;
  }
  // A shared key list is copied once.
  run.grow(base.keysShared ? 64 + key.length + base.keys.length * 8 : 48 + key.length);
  addOwn(base, key, value);
}

function setArrayProperty(run: Run, base: ScriptArray, key: Value, value: Value): void {
  if (base.frozen) readOnly(toKey(run, key));
  if (key === "length") {
    const length = toInteger(run, value);
    if (length < 0 || length >= 2 ** 32) throwError("RangeError", "Invalid array length");
    base.written = true;
    setLength(run, base, length);
    return;
  }
  const position = arrayPosition(key);
  if (position >= 0) {
    base.written = true;
    if (position >= base.items.length) {
      if (position > base.items.length) setLength(run, base, position);
      run.grow(8);
      base.items.push(value);
    } else base.items[position] = value;
    return;
  }
  base.extra ??= newObject();
  setObjectProperty(run, base.extra, toKey(run, key), value);
}

/** Shortens an array, or fills it with holes. */
export function setLength(run: Run, array: ScriptArray, length: number): void {
  const { items } = array;
  if (length <= items.length) {
    items.length = length;
    return;
  }
  // Charged before allocating: a length of billions must fail here.
  run.grow((length - items.length) * 8);
  if (length > arrayLengthMax) throwError("RangeError", "Invalid array length");
  run.burn(length - items.length);
  // In one call: pushing one by one, the host would copy the list repeatedly.
  const holes = new Array<typeof ABSENT>(length - items.length).fill(ABSENT);
  array.items = items.length === 0 ? holes : items.concat(holes);
}

/** `delete base[key]`. @throws ScriptThrow as `setProperty` */
export function deleteProperty(run: Run, base: Value, key: Value): boolean {
  if (base === undefined || base === null) throwError("TypeError", cannotConvert);
  if (!isReference(base)) return true;
  if (isSymbol(key)) {
    deleteSymbol(base, key);
    return true;
  }
  if (base.kind === kinds.object) {
    const name = toKey(run, key);
    if (base.frozen) readOnly(name);
    // With many properties, the lookup table is rebuilt.
    run.burn(base.keys.length * (base.keys.length > 8 ? 10 : 1));
    deleteOwn(base, name);
  } else if (base.kind === kinds.array) {
    if (base.frozen) readOnly(toKey(run, key));
    const position = arrayPosition(key);
    if (position >= 0 && position < base.items.length) {
      base.written = true;
      base.items[position] = ABSENT;
    }
  } else if (base.kind === kinds.function && base.properties !== null && !base.builtIn) {
    deleteOwn(base.properties, toKey(run, key));
  }
  return true;
}

/** `key in base`. @throws ScriptThrow when base is not an object */
export function hasProperty(run: Run, key: Value, base: Value): boolean {
  if (isSymbol(key) && isReference(base)) return symbolProperty(base, key) !== undefined;
  const name = toKey(run, key);
  if (!isReference(base)) {
    throwError(
      "TypeError",
      `Cannot use 'in' operator to search for '${name}' in ${toText(run, base)}`,
    );
  }
  if (base.kind === kinds.object) {
    const position = positionOf(base, name);
    if (position >= 0 && base.values[position] !== ABSENT) return true;
  }
  if (base.kind === kinds.array) {
    const position = arrayPosition(name);
    if (position >= 0) return position < base.items.length && base.items[position] !== ABSENT;
  }
  return getProperty(run, base, name) !== undefined;
}

/** Calls `base[key](...args)`. An undefined method is not called; any other non-function is an error. */
export function callMethod(run: Run, base: Value, key: Value, args: Value[]): Value {
  if (base === undefined) return callOnUndefined(key, args);
  if (base === null) return undefined;
  const callee = getProperty(run, base, key);
  if (isFunction(callee)) {
    if (callee === methodTables.array.get("reduce") && args.length < 2 && isEmpty(base))
      return null;
    return callee.native(run, base, args);
  }
  if (isEmpty(base)) return undefined;
  // Objects of documents have this method only.
  const name = isSymbol(key) ? (key.description ?? "") : toKey(run, key);
  const plain =
    isReference(base) && name === "toString" ? methodTables.object.get(name) : undefined;
  if (callee === undefined && plain !== undefined) return plain.native(run, base, args);
  return throwError("TypeError", `Property '${name}' of object is not a function`);
}

function isEmpty(value: Value): boolean {
  return isArray(value) && value.items.length === 0;
}

/** List methods on a missing value behave as on an empty list; others are skipped. */
function callOnUndefined(key: Value, args: Value[]): Value {
  switch (key) {
    case "reduce":
      return args.length > 1 ? args[1] : null;
    case "concat": {
      const [first] = args;
      return new ScriptArray(isArray(first) ? first.items.slice() : args.slice());
    }
    case "some":
    case "includes":
      return false;
    case "every":
      return true;
    case "indexOf":
      return -1;
    case "map":
    case "filter":
    case "reverse":
    case "slice":
    case "sort":
    case "flatMap":
      return new ScriptArray([]);
    default:
      return undefined;
  }
}

/** Calls a function that is not a method. Undefined and null are not called. */
export function callValue(run: Run, callee: Value, args: Value[], name: string): Value {
  if (isFunction(callee)) return callee.native(run, undefined, args);
  if (callee === undefined || callee === null) return undefined;
  return throwError("TypeError", `Property '${name}' of object is not a function`);
}

/** `new callee(...args)`. @throws ScriptThrow when it is not a constructor */
export function constructValue(run: Run, callee: Value, args: Value[], name: string): Value {
  if (!isFunction(callee) || callee.construct === null) {
    throwError("TypeError", `${name} is not a constructor`);
  }
  return callee.construct(run, undefined, args);
}

/** Returns the elements for `for (… of value)` and `...value`, in a new list. */
export function elementsOf(run: Run, value: Value): Value[] {
  if (value === undefined || value === null) throwError("TypeError", cannotConvert);
  if (typeof value === "string") {
    run.grow(value.length * 16);
    run.burn(value.length * 2);
    return [...value];
  }
  if (isReference(value)) {
    switch (value.kind) {
      case kinds.array:
        run.grow(value.items.length * 8);
        run.burn(value.items.length * 4);
        return withoutHoles(value.items.slice());
      case kinds.set:
        run.grow(value.items.size * 8);
        return [...value.items];
      case kinds.map:
        run.grow(value.entries.size * 80);
        return [...value.entries].map((entry) => new ScriptArray(entry));
      case kinds.object:
        if (value.className === "String") return elementsOf(run, value.boxed);
        return iteratedBy(run, value);
      default:
    }
  }
  return throwError("TypeError", "The value is not iterable");
}

/** Returns the elements that an object's own iterator returns. All are read before the first is used. */
function iteratedBy(run: Run, value: ScriptObject): Value[] {
  const method = symbolOf(value, wellKnown.iterator);
  if (!isFunction(method)) throwError("TypeError", "The value is not iterable");
  const iterator = callFunction(run, method, value, []);
  const next = getProperty(run, iterator, "next");
  if (!isFunction(next)) throwError("TypeError", "The iterator has no next method");
  const elements: Value[] = [];
  for (;;) {
    run.grow(16);
    run.burn(8);
    const step = callFunction(run, next, iterator, []);
    if (!isReference(step)) throwError("TypeError", "Iterator result is not an object");
    if (truthy(getProperty(run, step, "done"))) return elements;
    elements.push(getProperty(run, step, "value"));
  }
}

/** Replaces holes by undefined. */
function withoutHoles(items: Slot[]): Value[] {
  for (let i = 0; i < items.length; i += 1) if (items[i] === ABSENT) items[i] = undefined;
  return items as Value[];
}

/** Returns the names for `for (… in value)` and `Object.keys`. */
export function namesIn(run: Run, value: Value): string[] {
  if (typeof value === "string" || isArray(value)) {
    const length = typeof value === "string" ? value.length : value.items.length;
    run.grow(length * 16);
    const names: string[] = [];
    for (let i = 0; i < length; i += 1) {
      if (typeof value === "string" || value.items[i] !== ABSENT) names.push(String(i));
    }
    if (isArray(value) && value.extra !== null) names.push(...ownKeys(value.extra));
    return names;
  }
  if (!isReference(value)) return [];
  if (value.kind === kinds.object) {
    run.grow(value.keys.length * 8);
    return ownKeys(value);
  }
  if (value.kind === kinds.function && value.properties !== null && !value.builtIn) {
    return ownKeys(value.properties);
  }
  return [];
}

/** Copies the own properties of a value into an object: `{...value}`, `Object.assign`. */
export function copyProperties(
  run: Run,
  target: Value,
  value: Value,
  except?: ReadonlySet<string>,
): void {
  if (typeof value === "string" || isArray(value)) {
    for (const name of namesIn(run, value)) {
      if (!except?.has(name)) setProperty(run, target, name, getProperty(run, value, name));
    }
    return;
  }
  if (!isReference(value) || value.kind !== kinds.object) return;
  const symbols = value.traits?.symbols;
  if (symbols) for (const [key, own] of symbols) setProperty(run, target, key, own);
  if (except === undefined && isReference(target) && copiesWhole(run, target, value)) return;
  for (const name of namesIn(run, value)) {
    if (!except?.has(name)) setProperty(run, target, name, getOwn(value, name));
  }
}

/** Copies all properties of an object into an empty one in one step. @returns false if this fast path does not apply */
function copiesWhole(run: Run, target: Reference, value: ScriptObject): boolean {
  if (target.kind !== kinds.object || target.keys.length > 0) return false;
  if (target.traits !== null || target.source !== null || !value.keysShared) return false;
  const values: Slot[] = [];
  for (let i = 0; i < value.keys.length; i += 1) {
    const slot = slotAt(value, i);
    if (slot === ABSENT) return false;
    values.push(slot);
  }
  run.grow(values.length * 56);
  target.keys = value.keys;
  target.keysShared = true;
  target.values = values;
  target.written = true;
  return true;
}

/** Returns a new object over a fixed key list: the value of an object literal. Hot. */
export function literalObject(run: Run, keys: string[], values: Slot[]): ScriptObject {
  run.grow(64 + keys.length * 8);
  const object = new ScriptObject(keys, true, values);
  object.written = true;
  return object;
}
