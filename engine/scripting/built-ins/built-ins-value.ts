/**
 * The built-ins of objects, functions, numbers, Math, JSON, Map, Set and errors.
 *
 * It knows documents only as values.
 */

import {
  arithmetic,
  toInteger,
  toNumber,
  toPrimitive,
  toText,
  truthy,
} from "../language/script-operators.ts";
import {
  copyProperties,
  elementsOf,
  getProperty,
  methodTables,
  namesIn,
  setProperty,
} from "../language/script-properties.ts";
import {
  callFunction,
  hasOwn,
  isArray,
  isObject,
  isReference,
  kinds,
  type Native,
  newError,
  newObject,
  type Run,
  ScriptArray,
  ScriptFunction,
  ScriptMap,
  ScriptSet,
  throwError,
  traitsOf,
  type Value,
} from "../language/script-values.ts";
import {
  builtIn,
  defineAll,
  functionArgument,
  namespaceOf,
  newArray,
  newString,
} from "./built-in.ts";

const ofObject: Record<string, Native> = {
  hasOwnProperty: (run: Run, self: Value, args: Value[]) => isOwn(run, self, args[0]),
  toString: (run: Run, self: Value) => objectText(run, self),
  toLocaleString: (run: Run, self: Value) => objectText(run, self),
  valueOf: (_run: Run, self: Value) =>
    isReference(self) && self.kind === kinds.object && self.boxed !== undefined ? self.boxed : self,
};

function objectText(run: Run, self: Value): string {
  // An error prints its name; other objects here are plain, without a text of their own.
  if (isReference(self) && self.kind === kinds.object && !self.className.endsWith("Error")) {
    return self.boxed === undefined ? "[object Object]" : toText(run, self.boxed);
  }
  return String(toPrimitive(run, self, "string"));
}

function isOwn(run: Run, self: Value, key: Value): boolean {
  const name = toText(run, key);
  if (isReference(self) && self.kind === kinds.object) return hasOwn(self, name);
  if (isArray(self)) return name === "length" || namesIn(run, self).includes(name);
  return false;
}

function requireObject(value: Value): Value {
  if (value === undefined || value === null) {
    throwError("TypeError", "Cannot convert undefined or null to object");
  }
  return value;
}

const objectStatics: Record<string, Native> = {
  keys: (run, _self, [value]) => newArray(run, namesIn(run, requireObject(value))),
  values(run, _self, [value]) {
    const names = namesIn(run, requireObject(value));
    return newArray(
      run,
      names.map((name) => getProperty(run, value, name)),
    );
  },
  entries(run, _self, [value]) {
    const names = namesIn(run, requireObject(value));
    run.grow(names.length * 80);
    return newArray(
      run,
      names.map((name) => new ScriptArray([name, getProperty(run, value, name)])),
    );
  },
  getOwnPropertySymbols(run, _self, [value]) {
    const symbols = isObject(value) ? value.traits?.symbols : undefined;
    return newArray(run, symbols ? [...symbols.keys()] : []);
  },
  getOwnPropertyNames: (run, _self, [value]) => newArray(run, namesIn(run, requireObject(value))),
  assign(run, _self, [target, ...sources]) {
    requireObject(target);
    for (const source of sources) copyProperties(run, target, source);
    return target;
  },
  fromEntries(run, _self, [entries]) {
    const made = newObject();
    for (const entry of elementsOf(run, entries)) {
      setProperty(run, made, toText(run, getProperty(run, entry, 0)), getProperty(run, entry, 1));
    }
    return made;
  },
  freeze(_run, _self, [value]) {
    if (isObject(value)) traitsOf(value).frozen = true;
    else if (isArray(value)) value.frozen = true;
    return value;
  },
  isFrozen: (_run, _self, [value]) =>
    !isReference(value) ||
    ((value.kind === kinds.object || value.kind === kinds.array) && value.frozen),
  is: (_run, _self, [a, b]) => Object.is(a, b),
  hasOwn: (run, _self, [value, key]) => isOwn(run, value, key),
  create(run) {
    run.grow(64);
    return newObject();
  },
};

function makeObject(run: Run, _self: Value, [value]: Value[]): Value {
  run.grow(64);
  return isReference(value) ? value : newObject();
}

function functionSelf(self: Value): ScriptFunction {
  return functionArgument(self);
}

const ofFunction: Record<string, Native> = {
  call: (run, self, [target, ...args]) => callFunction(run, functionSelf(self), target, args),
  apply(run, self, [target, list]) {
    const args = list === undefined || list === null ? [] : elementsOf(run, list);
    return callFunction(run, functionSelf(self), target, args);
  },
  bind(run, self, [target, ...bound]) {
    run.grow(128);
    const callee = functionSelf(self);
    const native: Native = (inner, _self, args) => {
      inner.grow((bound.length + args.length) * 8);
      return callFunction(inner, callee, target, [...bound, ...args]);
    };
    return new ScriptFunction(`bound ${callee.name}`, 0, native, false);
  },
  toString: (_run: Run, self: Value) => `function ${functionSelf(self).name}() { [code] }`,
};

function numberSelf(run: Run, self: Value): number {
  if (typeof self === "number") return self;
  return isReference(self) && self.kind === kinds.object
    ? toNumber(run, self.boxed)
    : throwError("TypeError", "The method is called on something that is no number");
}

/** Work of formatting a long number in an unusual notation. */
const numberTextUnits = 300;

/** Returns a number of digits for formatting. @throws ScriptThrow outside the bounds */
function digits(run: Run, value: Value, least: number, most: number, method: string): number {
  const count = toInteger(run, value);
  run.burn(numberTextUnits);
  if (count < least || count > most) {
    throwError("RangeError", `${method}() digits argument must be between ${least} and ${most}`);
  }
  return count;
}

const ofNumber: Record<string, Native> = {
  toFixed: (run, self, [count]) =>
    numberSelf(run, self).toFixed(digits(run, count, 0, 100, "toFixed")),
  toPrecision(run, self, [count]) {
    const value = numberSelf(run, self);
    return count === undefined
      ? String(value)
      : value.toPrecision(digits(run, count, 1, 100, "toPrecision"));
  },
  toExponential(run, self, [count]) {
    const value = numberSelf(run, self);
    if (count === undefined) return value.toExponential();
    return value.toExponential(digits(run, count, 0, 100, "toExponential"));
  },
  toString(run: Run, self: Value, [radix]: Value[]): Value {
    const base = radix === undefined ? 10 : toInteger(run, radix);
    if (base < 2 || base > 36)
      throwError("RangeError", "toString() radix must be between 2 and 36");
    if (base !== 10) run.burn(numberTextUnits);
    return numberSelf(run, self).toString(base);
  },
  toLocaleString(run: Run, self: Value): Value {
    run.burn(10_000);
    return numberSelf(run, self).toLocaleString("en-US");
  },
  valueOf: (run: Run, self: Value) => numberSelf(run, self),
};

const numberStatics: Record<string, Native> = {
  isInteger: (_run, _self, [value]) => Number.isInteger(value),
  isSafeInteger: (_run, _self, [value]) => Number.isSafeInteger(value),
  isFinite: (_run, _self, [value]) => Number.isFinite(value),
  isNaN: (_run, _self, [value]) => Number.isNaN(value),
  parseFloat: (run, _self, [value]) => Number.parseFloat(shortText(run, value)),
  parseInt: (run, _self, [value, radix]) =>
    Number.parseInt(shortText(run, value), toInteger(run, radix)),
};

function shortText(run: Run, value: Value): string {
  const text = toText(run, value);
  run.burn(text.length >> 3);
  return text;
}

/** Host functions of one or two numbers, available to scripts under the same name: a fixed list. */
const mathFunctions: Readonly<Record<string, (a: number, b: number) => number>> = {
  abs: Math.abs,
  acos: Math.acos,
  acosh: Math.acosh,
  asin: Math.asin,
  asinh: Math.asinh,
  atan: Math.atan,
  atanh: Math.atanh,
  atan2: Math.atan2,
  cbrt: Math.cbrt,
  ceil: Math.ceil,
  clz32: Math.clz32,
  cos: Math.cos,
  cosh: Math.cosh,
  exp: Math.exp,
  expm1: Math.expm1,
  floor: Math.floor,
  fround: Math.fround,
  imul: Math.imul,
  log: Math.log,
  log1p: Math.log1p,
  log10: Math.log10,
  log2: Math.log2,
  pow: (a, b) => (arithmetic["**"] as (x: number, y: number) => number)(a, b),
  round: Math.round,
  sign: Math.sign,
  sin: Math.sin,
  sinh: Math.sinh,
  sqrt: Math.sqrt,
  tan: Math.tan,
  tanh: Math.tanh,
  trunc: Math.trunc,
};

function mathNamespace(): Value {
  const functions: Record<string, Native> = {
    max: (run, _self, args) => extreme(run, args, Number.NEGATIVE_INFINITY, Math.max),
    min: (run, _self, args) => extreme(run, args, Number.POSITIVE_INFINITY, Math.min),
    hypot(run, _self, args) {
      run.burn(args.length);
      return Math.sqrt(args.reduce<number>((sum, arg) => sum + toNumber(run, arg) ** 2, 0));
    },
  };
  for (const [name, compute] of Object.entries(mathFunctions)) {
    functions[name] = (run, _self, args) => {
      const first = toNumber(run, args[0]);
      return compute(first, toNumber(run, args[1]));
    };
  }
  return namespaceOf(functions, {
    PI: Math.PI,
    E: Math.E,
    LN2: Math.LN2,
    LN10: Math.LN10,
    LOG2E: Math.LOG2E,
    LOG10E: Math.LOG10E,
    SQRT2: Math.SQRT2,
    SQRT1_2: Math.SQRT1_2,
  });
}

function extreme(
  run: Run,
  args: Value[],
  start: number,
  choose: (a: number, b: number) => number,
): number {
  run.burn(args.length);
  let result = start;
  for (const arg of args) result = choose(result, toNumber(run, arg));
  return result;
}

/** Returns a key of a Map or Set; hashing long texts is charged. */
function mapKey(run: Run, value: Value): Value {
  run.burn(typeof value === "string" ? 2 + (value.length >> 4) : 2);
  return value;
}

function mapSelf(self: Value): ScriptMap {
  if (isReference(self) && self.kind === kinds.map) return self;
  return throwError("TypeError", "The method is called on something that is no Map");
}

function setSelf(self: Value): ScriptSet {
  if (isReference(self) && self.kind === kinds.set) return self;
  return throwError("TypeError", "The method is called on something that is no Set");
}

const ofMap: Record<string, Native> = {
  get: (run, self, [key]) => mapSelf(self).entries.get(mapKey(run, key)),
  has: (run, self, [key]) => mapSelf(self).entries.has(mapKey(run, key)),
  set(run, self, [key, value]) {
    run.grow(64);
    mapSelf(self).entries.set(mapKey(run, key), value);
    return self;
  },
  delete: (run, self, [key]) => mapSelf(self).entries.delete(mapKey(run, key)),
  clear(_run, self) {
    mapSelf(self).entries.clear();
    return undefined;
  },
  forEach(run, self, [callback]) {
    const callee = functionArgument(callback);
    for (const [key, value] of mapSelf(self).entries) {
      run.burn(4);
      callFunction(run, callee, undefined, [value, key, self]);
    }
    return undefined;
  },
  keys: (run, self) => newArray(run, [...mapSelf(self).entries.keys()]),
  values: (run, self) => newArray(run, [...mapSelf(self).entries.values()]),
  entries: (run, self) => newArray(run, elementsOf(run, mapSelf(self))),
};

const ofSet: Record<string, Native> = {
  has: (run, self, [value]) => setSelf(self).items.has(mapKey(run, value)),
  add(run, self, [value]) {
    run.grow(48);
    setSelf(self).items.add(mapKey(run, value));
    return self;
  },
  delete: (run, self, [value]) => setSelf(self).items.delete(mapKey(run, value)),
  clear(_run, self) {
    setSelf(self).items.clear();
    return undefined;
  },
  forEach(run, self, [callback]) {
    const callee = functionArgument(callback);
    for (const value of setSelf(self).items) {
      run.burn(4);
      callFunction(run, callee, undefined, [value, value, self]);
    }
    return undefined;
  },
  keys: (run, self) => newArray(run, elementsOf(run, setSelf(self))),
  values: (run, self) => newArray(run, elementsOf(run, setSelf(self))),
  entries: (run, self) =>
    newArray(
      run,
      elementsOf(run, setSelf(self)).map((value) => new ScriptArray([value, value])),
    ),
};

function newMap(run: Run, _self: Value, [source]: Value[]): Value {
  run.grow(128);
  const made = new ScriptMap();
  if (source === undefined || source === null) return made;
  for (const entry of elementsOf(run, source)) {
    run.grow(64);
    made.entries.set(mapKey(run, getProperty(run, entry, 0)), getProperty(run, entry, 1));
  }
  return made;
}

function newSet(run: Run, _self: Value, [source]: Value[]): Value {
  run.grow(128);
  const made = new ScriptSet();
  if (source === undefined || source === null) return made;
  for (const value of elementsOf(run, source)) {
    run.grow(48);
    made.items.add(mapKey(run, value));
  }
  return made;
}

function refuseWithoutNew(name: string): Native {
  return () => throwError("TypeError", `Constructor ${name} requires 'new'`);
}

/** Returns a constructor; `call` is its behavior without `new`. */
function constructorOf(name: string, call: Native, construct: Native): ScriptFunction {
  const made = builtIn(name, 1, call);
  made.construct = construct;
  return made;
}

function errorConstructor(name: string): ScriptFunction {
  const make: Native = (run, _self, [message]) => {
    run.grow(128);
    return newError(name, message === undefined ? undefined : toText(run, message));
  };
  return constructorOf(name, make, make);
}

/** `new Number(5)`, `new Boolean(x)`: an object that boxes a primitive. */
function boxingConstructor(
  name: string,
  convert: (run: Run, args: Value[]) => Value,
): ScriptFunction {
  return constructorOf(
    name,
    (run, _self, args) => convert(run, args),
    (run, _self, args) => {
      run.grow(96);
      const made = newObject();
      traitsOf(made).className = name;
      traitsOf(made).boxed = convert(run, args);
      return made;
    },
  );
}

function codingFunctions(): Record<string, Native> {
  const wrap =
    (code: (text: string) => string): Native =>
    (run, _self, [value]) => {
      const text = toText(run, value);
      run.burn(text.length >> 1);
      let made: string;
      try {
        made = code(text);
      } catch {
        return throwError("URIError", "URI malformed");
      }
      return newString(run, made);
    };
  return {
    encodeURIComponent: wrap(encodeURIComponent),
    decodeURIComponent: wrap(decodeURIComponent),
    encodeURI: wrap(encodeURI),
    decodeURI: wrap(decodeURI),
    escape: wrap(escape),
    unescape: wrap(unescape),
  };
}

const globalFunctions: Record<string, Native> = {
  parseInt: (run, _self, [value, radix]) =>
    Number.parseInt(shortText(run, value), toInteger(run, radix)),
  parseFloat: (run, _self, [value]) => Number.parseFloat(shortText(run, value)),
  isNaN: (run, _self, [value]) => Number.isNaN(toNumber(run, value)),
  isFinite: (run, _self, [value]) => Number.isFinite(toNumber(run, value)),
  ...codingFunctions(),
};

const errorNames = [
  "Error",
  "TypeError",
  "RangeError",
  "SyntaxError",
  "ReferenceError",
  "EvalError",
  "URIError",
];

/** Fills the method tables of these values and adds their globals. */
export function defineValues(globals: Map<string, Value>): void {
  defineAll(methodTables.object, 1, ofObject);
  defineAll(methodTables.function, 1, ofFunction);
  defineAll(methodTables.number, 1, ofNumber);
  defineAll(methodTables.map, 1, ofMap);
  defineAll(methodTables.set, 1, ofSet);
  defineAll(methodTables.boolean, 0, {
    toString: (run: Run, self: Value) => toText(run, self),
    valueOf: (_run: Run, self: Value) => self,
  });
  const object = constructorOf("Object", makeObject, makeObject);
  object.properties = namespaceOf(objectStatics);
  const number = boxingConstructor("Number", (run, args) =>
    args.length === 0 ? 0 : toNumber(run, args[0]),
  );
  number.properties = namespaceOf(numberStatics, {
    MAX_SAFE_INTEGER: Number.MAX_SAFE_INTEGER,
    MIN_SAFE_INTEGER: Number.MIN_SAFE_INTEGER,
    MAX_VALUE: Number.MAX_VALUE,
    MIN_VALUE: Number.MIN_VALUE,
    EPSILON: Number.EPSILON,
    NaN: Number.NaN,
    POSITIVE_INFINITY: Number.POSITIVE_INFINITY,
    NEGATIVE_INFINITY: Number.NEGATIVE_INFINITY,
  });
  const makers = [
    object,
    number,
    boxingConstructor("Boolean", (_run, args) => truthy(args[0])),
    constructorOf("Map", refuseWithoutNew("Map"), newMap),
    constructorOf("Set", refuseWithoutNew("Set"), newSet),
    ...errorNames.map(errorConstructor),
  ];
  for (const maker of makers) globals.set(maker.name, maker);
  globals.set("Math", mathNamespace());
  for (const [name, native] of Object.entries(globalFunctions)) {
    globals.set(name, builtIn(name, 1, native));
  }
}
