/**
 * The functions of the patch API: a script's operations on its database, through `ScriptHost`.
 *
 * Messages equal those of RavenDB 7.2.7, which users of its clients know. Errors of these functions end the run; a
 * script cannot catch them.
 *
 * Invariant: arguments are checked here, so that a host receives ids, names and numbers of the right type.
 */

import { EngineError, type ErrorCode } from "../base/errors.ts";
import { neverText } from "../base/timestamp.ts";
import { timeSpanText } from "../indexing/dates/time-spans.ts";
import { builtIn, namespaceOf, newArray } from "./built-ins/built-in.ts";
import { formatDate, formatNumber, ticksOfText } from "./built-ins/format-text.ts";
import { compileTextTest } from "./built-ins/regular-expression.ts";
import { toNumber, toText } from "./language/script-operators.ts";
import { getProperty } from "./language/script-properties.ts";
import {
  addOwn,
  callFunction,
  deleteOwn,
  getOwn,
  hasOwn,
  isArray,
  isFunction,
  isObject,
  isReference,
  kinds,
  type Native,
  newObject,
  type Run,
  ScriptArray,
  type ScriptObject,
  setOwn,
  type Value,
} from "./language/script-values.ts";
import { payForCase, payForComparing } from "./language/text-costs.ts";
import type { ScriptContext, ScriptHost, ScriptTimeSeries } from "./script-host.ts";
import {
  documentText,
  metadataIsNull,
  metadataText,
  ScriptDocument,
  valueText,
} from "./values/script-document.ts";
import { valueOfText } from "./values/text-source.ts";
import { metadataKey } from "./values/value-printer.ts";
import { numberText } from "./values/value-text.ts";

function contextOf(run: Run): ScriptContext {
  return run.context as ScriptContext;
}

function hostOf(run: Run): ScriptHost {
  return contextOf(run).host;
}

function refuse(message: string, code: ErrorCode = "invalid-operation"): never {
  throw new EngineError(code, message);
}

function writable(run: Run): ScriptHost {
  const host = hostOf(run);
  if (host.readOnly) refuse("Cannot make modifications in readonly context");
  return host;
}

/** Minimum cost of a host call: it involves lookups outside of the script. */
const hostCallUnits = 50;
/** Cost of a change: it is validated, staged, logged, committed, and reported to listeners. */
const changeUnits = 1_000;
/** Cost per byte of a document: it is parsed and serialized once more. */
const unitsPerByte = 1;
/** Memory overhead of a change until it is durable, besides the data written, in bytes. */
const changeBytes = 512;
/** Inserting an entry into a time series repacks its segment. */
const seriesChangeUnits = 3_000;
/** Entries that a script appends are stored together. */
const seriesAppendUnits = 500;
const seriesReadUnits = 100;
const seriesEntryBytes = 256;
/** The id of an include is kept until the reply. */
const includedBytes = 64;

/** Charges for a change, and for its memory until it is durable. */
function payForChange(run: Run, text: string, units = changeUnits): void {
  run.burn(units + text.length * unitsPerByte);
  run.grow(changeBytes + text.length * 2);
}

function loadOne(run: Run, id: string): Value {
  run.burn(hostCallUnits);
  const { host, loadedHint } = run.context as ScriptContext;
  const loaded = id === "" ? null : host.load(id, loadedHint);
  if (loaded === null) return undefined;
  // The cost of locating its properties and parsing the used ones is proportional to its text.
  run.burn(loaded.length / 2);
  run.grow(256);
  loaded.run = run;
  return loaded.root;
}

function loadMany(run: Run, ids: ScriptArray): Value {
  const items = ids.items.map((id): Value => {
    if (typeof id !== "string") {
      const type = id === null ? "Null" : typeof id === "number" ? "Number" : "Object";
      refuse(`load(ids) must be called with a array of strings, but got ${type} - ${String(id)}`);
    }
    return loadOne(run, id);
  });
  return newArray(run, items);
}

function load(run: Run, _self: Value, args: Value[]): Value {
  const [id] = args;
  if (args.length !== 1) refuse("load(id | ids) must be called with a single string argument");
  if (id === null || id === undefined) return id;
  if (typeof id === "string") return loadOne(run, id);
  if (isArray(id)) return loadMany(run, id);
  return refuse("load(id | ids) must be called with a single string or array argument");
}

function loadPath(run: Run, _self: Value, [document, path]: Value[]): Value {
  if (!isReference(document) || typeof path !== "string") {
    refuse("loadPath(doc, path) must be called with a document and path");
  }
  const many = path.includes("[]");
  const ids = followPath(run, [document], path.split("."));
  if (!many) {
    const [found] = ids;
    const [id] = isArray(found) ? found.items : ids;
    return typeof id === "string" ? loadOne(run, id) : null;
  }
  const loaded = ids.map((id) => (typeof id === "string" ? (loadOne(run, id) ?? null) : null));
  return newArray(run, loaded);
}

function followPath(run: Run, start: Value[], parts: readonly string[]): Value[] {
  let values = start;
  for (const part of parts) {
    const spread = part.endsWith("[]");
    const name = spread ? part.slice(0, -2) : part;
    const next: Value[] = [];
    for (const value of values) {
      run.burn(2);
      const found = isReference(value) ? getProperty(run, value, name) : undefined;
      if (!spread) next.push(found);
      else if (isArray(found)) for (const item of found.items) next.push(item as Value);
    }
    values = next;
  }
  return values;
}

function changeVectorOf(value: Value, id: string): string | null | undefined {
  if (value === undefined || value === null || typeof value === "string") return value;
  return refuse(`The change vector must be a string or null. Document ID: '${id}'.`);
}

function put(run: Run, _self: Value, args: Value[]): Value {
  const [id, value, changeVector] = args;
  if (args.length < 2 || args.length > 3) {
    refuse("put(id, doc, changeVector) must be called with called with 2 or 3 arguments only");
  }
  if (typeof id !== "string" && id !== null && id !== undefined) {
    refuse("The first parameter to put(id, doc, changeVector) must be a string");
  }
  if (!isReference(value) || value.kind === kinds.function || value.kind === kinds.symbol) {
    refuse(
      `Created document must be a valid object which is not null or empty. Document ID: '${id}'.`,
    );
  }
  const host = writable(run);
  const object = isObject(value) ? value : listAsObject(run, value);
  const text = documentText(run, object);
  const metadata = putMetadata(run, object);
  payForChange(run, text);
  if (metadata !== null) payForChange(run, metadata, 0);
  return host.put(id ?? null, text, metadata, changeVectorOf(changeVector, String(id)));
}

function putMetadata(run: Run, object: ScriptObject): string | null {
  if (!hasOwn(object, metadataKey)) return null;
  const metadata = getOwn(object, metadataKey);
  if (metadata === undefined || metadata === null) throw metadataIsNull();
  if (!isObject(metadata)) refuse("'@metadata' must be an object", "invalid-format");
  return metadataText(run, metadata);
}

/** Returns an array as an object with its positions and its length as keys; other values have no properties. */
function listAsObject(run: Run, value: Value): ScriptObject {
  const made = newObject();
  if (isArray(value)) {
    run.grow(value.items.length * 64);
    run.burn(value.items.length * 10);
    for (const [i, item] of value.items.entries()) addOwn(made, String(i), item);
    addOwn(made, "length", value.items.length);
  }
  return made;
}

function del(run: Run, _self: Value, args: Value[]): Value {
  const [id, changeVector] = args;
  if (args.length === 0) {
    refuse("delete(id, changeVector) must be called with at least one parameter");
  }
  if (typeof id !== "string") refuse("delete(id, changeVector) id argument must be a string");
  payForChange(run, id);
  const expected = typeof changeVector === "string" ? changeVector : undefined;
  return writable(run).delete(id, expected);
}

function id(_run: Run, _self: Value, args: Value[]): Value {
  const [value] = args;
  if (args.length !== 1) refuse("id(doc) must be called with a single argument");
  if (value === null || value === undefined) return value;
  if (!isReference(value)) refuse("id(doc) must be called with an object argument");
  const document = ScriptDocument.of(value);
  return document === null ? null : document.id;
}

function getMetadata(run: Run, _self: Value, args: Value[]): Value {
  const [value] = args;
  const message = "metadataFor(doc) must be called with a single entity argument";
  if (args.length !== 1) refuse(message);
  if (!isReference(value)) refuse("The value is not an object", "invalid-argument");
  const document = ScriptDocument.of(value);
  if (document === null) refuse(message);
  run.burn(hostCallUnits);
  return document.metadata();
}

function lastModified(run: Run, _self: Value, args: Value[]): Value {
  const [value] = args;
  if (args.length !== 1) refuse("lastModified(doc) must be called with a single argument");
  if (value === null || value === undefined) return undefined;
  if (!isReference(value)) refuse("lastModified(doc) must be called with an object argument");
  run.burn(hostCallUnits * 4);
  const metadata = ScriptDocument.of(value)?.metadata();
  const text = isObject(metadata) ? getOwn(metadata, "@last-modified") : undefined;
  return typeof text === "string" ? Date.parse(text) : undefined;
}

/** Returns the id of a document argument: a string, or a document of this run. */
function documentId(value: Value, signature: string): string {
  if (typeof value === "string") return value;
  const document = ScriptDocument.of(value);
  if (document === null || document.id === null) {
    refuse(
      `${signature}: 'doc' must be a string argument (the document id) or the actual document instance itself`,
    );
  }
  return document.id;
}

function counterName(value: Value, signature: string): string {
  if (typeof value !== "string") refuse(`${signature}: 'name' must be a string argument`);
  if (value.trim() === "") refuse(`${signature}: 'name' must be a non-empty string argument`);
  return value;
}

function counterArguments(args: Value[], method: string): [string, string] {
  const signature = `${method}(doc, name)`;
  if (args.length !== 2) refuse(`${signature} must be called with exactly 2 arguments`);
  return [documentId(args[0], signature), counterName(args[1], signature)];
}

const counters: Record<string, Native> = {
  counter(run, _self, args) {
    const [document, name] = counterArguments(args, "counter");
    run.burn(hostCallUnits);
    return hostOf(run).counter(document, name);
  },
  counterRaw(run, _self, args) {
    const [document, name] = counterArguments(args, "counterRaw");
    run.burn(hostCallUnits);
    const parts = newObject();
    for (const [part, value] of Object.entries(hostOf(run).counterParts(document, name) ?? {})) {
      setOwn(parts, part, value);
    }
    return parts;
  },
  incrementCounter(run, _self, args) {
    if (args.length < 2 || args.length > 3) {
      refuse(
        `There is no overload of method 'incrementCounter' that takes ${args.length} arguments.` +
          "Supported overloads are : 'incrementCounter(doc, name)' , 'incrementCounter(doc, name, value)'",
      );
    }
    const signature =
      args.length === 2 ? "incrementCounter(doc, name)" : "incrementCounter(doc, name, value)";
    const document = documentId(args[0], signature);
    const name = counterName(args[1], signature);
    const [, , delta = 1] = args;
    if (typeof delta !== "number") refuse(`${signature}: 'value' must be a number argument`);
    if (!Number.isFinite(delta)) {
      refuse(`${signature}: 'value' must be a finite number, but is ${delta}`);
    }
    payForChange(run, name);
    writable(run).incrementCounter(document, name, Math.trunc(delta));
    return true;
  },
  deleteCounter(run, _self, args) {
    const [document, name] = counterArguments(args, "deleteCounter");
    payForChange(run, name);
    writable(run).deleteCounter(document, name);
    return true;
  },
};

const timeForms = /^\d{4}(-\d\d(-\d\d(T\d\d:\d\d(:\d\d(\.\d{3}(\d{4})?Z?)?)?)?)?)?$/;

/** Returns the time of a time-series argument. @throws EngineError invalid-argument */
function seriesTime(value: Value): number {
  if (isReference(value) && value.kind === kinds.date && !Number.isNaN(value.time))
    return value.time;
  const text = typeof value === "string" ? value : "";
  const time = timeForms.test(text)
    ? Date.parse(text.includes("T") && !text.endsWith("Z") ? `${text}Z` : text)
    : Number.NaN;
  if (!Number.isNaN(time)) return time;
  return refuse(
    `Unable to parse timeseries from/to values. Got: ${text}\nThe supported time formats are:\n` +
      "yyyy\nyyyy-MM\nyyyy-MM-dd\nyyyy-MM-ddTHH:mm\nyyyy-MM-ddTHH:mm:ss\nyyyy-MM-ddTHH:mm:ss.fff\n" +
      "yyyy-MM-ddTHH:mm:ss.fffZ\nyyyy-MM-ddTHH:mm:ss.fffffff\nyyyy-MM-ddTHH:mm:ss.fffffffZ",
    "invalid-argument",
  );
}

function optionalTime(value: Value): number | null {
  return value === undefined || value === null ? null : seriesTime(value);
}

function seriesValues(run: Run, value: Value): number[] {
  if (typeof value === "number") return [value];
  if (isArray(value)) {
    run.burn(value.items.length * 4);
    return value.items.map((item) => {
      if (typeof item === "number") return item;
      const message = "The values argument must be an array of numbers";
      return refuse(
        `timeseries(doc, name).append(timestamp, values): ${message}`,
        "invalid-argument",
      );
    });
  }
  return refuse("append: 'values' must be a number or an array of numbers", "invalid-argument");
}

function isoTime(time: number): string {
  return `${new Date(time).toISOString().slice(0, -1)}0000Z`;
}

function timeseries(run: Run, _self: Value, args: Value[]): Value {
  const signature = "timeseries(doc, name)";
  if (args.length !== 2) {
    refuse(`${signature} must be called with exactly 2 arguments`, "invalid-argument");
  }
  const document = documentId(args[0], signature);
  const [, name] = args;
  if (typeof name !== "string") refuse(`${signature}: 'name' must be a string argument`);
  const series = (): ScriptTimeSeries => hostOf(run).timeSeries(document, name);
  return namespaceOf({
    append(inner, _self, given) {
      const [time, values, tag] = given;
      if (given.length > 3) {
        refuse(
          `There is no overload with ${given.length} arguments for this method should be timeseries(doc, name)` +
            ".append(timestamp, values) or timeseries(doc, name).append(timestamp, values, tag)",
          "invalid-argument",
        );
      }
      payForChange(inner, name, seriesAppendUnits);
      writable(inner);
      if (tag !== undefined && tag !== null && typeof tag !== "string") {
        const where = "timeseries(doc, name).append(timestamp, values, tag)";
        refuse(`${where}: The 'tag' argument should be a string`, "invalid-argument");
      }
      series().append(seriesTime(time), seriesValues(inner, values), tag ?? null);
      return undefined;
    },
    increment(inner, _self, given) {
      payForChange(inner, name, seriesChangeUnits);
      writable(inner);
      const [time, values] = given.length === 1 ? [undefined, given[0]] : given;
      const at = time === undefined ? hostOf(inner).now() : seriesTime(time);
      series().increment(at, seriesValues(inner, values));
      return undefined;
    },
    delete(inner, _self, [from, to]) {
      payForChange(inner, name, seriesChangeUnits);
      writable(inner);
      series().delete(optionalTime(from), optionalTime(to));
      return undefined;
    },
    get(inner, _self, given) {
      if (given.length > 2) {
        const overloads = "'get' method has only the overloads: 'get(from, to)' or 'get()'";
        refuse(`${overloads}, but was called with ${given.length} arguments.`, "invalid-argument");
      }
      return seriesEntries(inner, series(), optionalTime(given[0]), optionalTime(given[1]));
    },
    getStats: (inner) => seriesStats(inner, series()),
  });
}

function seriesEntries(
  run: Run,
  series: ScriptTimeSeries,
  from: number | null,
  to: number | null,
): Value {
  run.burn(hostCallUnits);
  const pay = (count: number) => {
    run.burn(count * seriesReadUnits);
    run.grow(count * seriesEntryBytes);
  };
  const rows = series.entries(from, to, pay).map((entry) => {
    run.grow(entry.values.length * 8);
    const row = newObject();
    setOwn(row, "Timestamp", isoTime(entry.time));
    setOwn(row, "Tag", entry.tag);
    setOwn(row, "Values", new ScriptArray([...entry.values]));
    setOwn(row, "IsRollup", entry.isRollup);
    return row;
  });
  return new ScriptArray(rows);
}

function seriesStats(run: Run, series: ScriptTimeSeries): Value {
  run.burn(hostCallUnits);
  const known = series.stats();
  const stats = newObject();
  // Without entries RavenDB 7.2.7 returns .NET's minimum date, without `Z`.
  setOwn(stats, "Start", known === null ? neverText : isoTime(known.first));
  setOwn(stats, "End", known === null ? neverText : isoTime(known.last));
  setOwn(stats, "Count", known?.count ?? 0);
  return stats;
}

/**
 * The function that calls of declared series queries are compiled to: its arguments are the name of the query, and a
 * list of its arguments.
 */
export const seriesQueryName = "__timeSeriesQuery";

function seriesQuery(run: Run, _self: Value, [name, args]: Value[]): Value {
  const host = hostOf(run);
  if (host.seriesQuery === undefined || typeof name !== "string" || !isArray(args)) {
    return refuse(`${seriesQueryName} is not defined`, "script-failed");
  }
  run.burn(hostCallUnits);
  const text = host.seriesQuery(name, args.items as readonly Value[]);
  run.burn(text.length);
  run.grow(text.length * 2);
  return valueOfText(text);
}

function cmpxchg(run: Run, _self: Value, args: Value[]): Value {
  const [key] = args;
  if (args.length !== 1 || typeof key !== "string") {
    refuse("cmpxchg(key) must be called with a single string argument");
  }
  run.burn(hostCallUnits);
  const text = hostOf(run).compareExchange(key);
  if (text === null) return null;
  run.grow(text.length * 2);
  return valueOfText(text);
}

function include(run: Run, _self: Value, args: Value[]): Value {
  const [value] = args;
  if (args.length !== 1) refuse("include(id) must be called with a single argument");
  if (value === null || value === undefined) return undefined;
  const ids = isArray(value) ? value.items : [value];
  for (const item of ids) {
    if (typeof item !== "string") {
      refuse("include(doc) must be called with an string or string array argument");
    }
    run.burn(hostCallUnits);
    run.grow(includedBytes + item.length);
    hostOf(run).include(item);
  }
  return undefined;
}

/** Returns a value as debug output: text unquoted, the rest as stored JSON; booleans and numbers in .NET notation. */
function outputText(run: Run, value: Value): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "undefined";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return numberText(value).replaceAll('"', "");
  if (isFunction(value)) return JSON.stringify({ length: value.length, name: value.name });
  return valueText(run, value);
}

function output(run: Run, _self: Value, [value]: Value[]): Value {
  const text = outputText(run, value);
  run.burn(hostCallUnits);
  run.grow(64 + text.length);
  hostOf(run).output(text);
  return undefined;
}

function twoTexts(method: string, second: string, args: Value[]): [string, string] {
  const [text, other] = args;
  if (args.length !== 2 || typeof text !== "string" || typeof other !== "string") {
    refuse(`${method}(text, ${second}) must be called with two string parameters`);
  }
  return [text, other];
}

const textTests: Record<string, Native> = {
  startsWith(run, _self, args) {
    const [text, start] = twoTexts("startsWith", "contained", args);
    payForCase(run, start);
    payForCase(run, start);
    return text.slice(0, start.length).toLowerCase() === start.toLowerCase();
  },
  endsWith(run, _self, args) {
    const [text, end] = twoTexts("endsWith", "contained", args);
    payForCase(run, end);
    payForCase(run, end);
    return end === "" || text.slice(-end.length).toLowerCase() === end.toLowerCase();
  },
  regex(run, _self, args) {
    const [text, pattern] = twoTexts("regex", "regex", args);
    run.burn(pattern.length * 16);
    return compileTextTest(pattern, run)(text);
  },
};

/** The reference's earth: 60 times 1.1515 miles per degree, 0.621371192 miles per kilometer. */
const milesOfDegree = (degrees: number): number => degrees * 60 * 1.1515;
const milesOfKilometer = 0.621371192;

function distance(run: Run, _self: Value, args: Value[]): Value {
  if (args.length < 4 || args.length > 5) {
    refuse(
      "Called with unexpected number of arguments, expected: spatial.distance(lat1, lng1, lat2, lng2, " +
        "kilometers | miles | cartesian)",
      "invalid-argument",
    );
  }
  const [lat1, lng1, lat2, lng2] = args.slice(0, 4).map((arg) => toNumber(run, arg)) as [
    number,
    number,
    number,
    number,
  ];
  const units = args[4] === undefined ? "kilometers" : toText(run, args[4]).toLowerCase();
  if (units === "cartesian") return Math.hypot(lat1 - lat2, lng1 - lng2);
  const miles = milesOfDegree(angleBetween(lat1, lng1, lat2, lng2));
  if (units === "kilometers") return miles / milesOfKilometer;
  if (units === "miles") return miles;
  return refuse(`Unknown spatial units '${units.slice(0, 40)}'`, "invalid-argument");
}

/** Angle between two places, in degrees. */
function angleBetween(lat1: number, lng1: number, lat2: number, lng2: number): number {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  const [a, b] = [radians(lat1), radians(lat2)];
  const cosine =
    Math.sin(a) * Math.sin(b) + Math.cos(a) * Math.cos(b) * Math.cos(radians(lng1 - lng2));
  // Rounding may push the cosine of identical places past 1.
  return (Math.acos(Math.max(-1, Math.min(1, cosine))) / Math.PI) * 180;
}

const typeRanks: Readonly<Record<string, number>> = { boolean: 1, number: 2, string: 3 };

/** Compares two scalars: null first, then by type, then by value. */
function compareScalars(a: Value, b: Value): number {
  const rankA = a === null || a === undefined ? 0 : (typeRanks[typeof a] ?? 4);
  const rankB = b === null || b === undefined ? 0 : (typeRanks[typeof b] ?? 4);
  if (rankA !== rankB) return rankA - rankB;
  if (rankA === 0 || a === b) return 0;
  return (a as number | string) < (b as number | string) ? -1 : 1;
}

function extremeOf(name: string, sign: number): Native {
  return (run, _self, args) => {
    if (args.length !== 2)
      refuse(`${name}must be called with exactly two arguments`, "invalid-argument");
    const [a, b] = args;
    if (isReference(a) || isReference(b)) {
      refuse(`${name} cannot be called on an object`, "invalid-argument");
    }
    if (typeof a === "string" && typeof b === "string") payForComparing(run, a, b);
    return compareScalars(a, b) * sign <= 0 ? a : b;
  };
}

function dateTicks(value: Value, name: string): bigint {
  if (isReference(value) && value.kind === kinds.date && !Number.isNaN(value.time)) {
    return BigInt(Math.trunc(value.time)) * 10_000n;
  }
  const ticks = typeof value === "string" ? ticksOfText(value) : null;
  if (ticks === null) {
    refuse(
      `compareDates(date1, date2, binaryOp) : ${name} must be of type 'DateInstance' or a DateTime string.`,
      "invalid-argument",
    );
  }
  return ticks;
}

const dateComparisons: ReadonlyMap<string, (difference: bigint) => Value> = new Map<
  string,
  (difference: bigint) => Value
>([
  ["Subtract", timeSpanText],
  ["Equal", (difference) => difference === 0n],
  ["NotEqual", (difference) => difference !== 0n],
  ["GreaterThan", (difference) => difference > 0n],
  ["GreaterThanOrEqual", (difference) => difference >= 0n],
  ["LessThan", (difference) => difference < 0n],
  ["LessThanOrEqual", (difference) => difference <= 0n],
]);

function compareDates(run: Run, _self: Value, args: Value[]): Value {
  if (args.length < 2 || args.length > 3) {
    refuse(
      `No overload for method 'compareDates' takes ${args.length} arguments. Supported overloads are : ` +
        "compareDates(date1, date2), compareDates(date1, date2, operationType)",
    );
  }
  const [first, second, operation = "Subtract"] = args;
  run.burn(formatUnits / 4);
  const compute = typeof operation === "string" ? dateComparisons.get(operation) : undefined;
  if (compute === undefined) {
    refuse(
      "compareDates(date1, date2, operationType) : 'operationType' must be a string argument representing " +
        "a valid 'ExpressionType'",
    );
  }
  return compute(dateTicks(first, "date1") - dateTicks(second, "date2"));
}

function wholeNumber(value: Value, signature: string): bigint {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    refuse(`${signature} must be called with a single long argument`);
  }
  return BigInt(Math.round(value));
}

const spans: Record<string, Native> = {
  convertJsTimeToTimeSpanString(run, _self, [value]) {
    run.burn(formatUnits);
    return timeSpanText(wholeNumber(value, "convertJsTimeToTimeSpanString(ticks)") * 10_000n);
  },
  convertToTimeSpanString(run, _self, args) {
    run.burn(formatUnits);
    const parts = args.map((arg) => wholeNumber(arg, "convertToTimeSpanString(ticks)"));
    const [first = 0n, ...rest] = parts;
    if (parts.length === 1) return timeSpanText(first);
    if (parts.length < 3 || parts.length > 5) {
      refuse(
        "supported overloads are: convertToTimeSpanString(ticks), convertToTimeSpanString(hours, minutes, " +
          "seconds), convertToTimeSpanString(days, hours, minutes, seconds), convertToTimeSpanString(days, " +
          "hours, minutes, seconds, milliseconds)",
      );
    }
    const [days, hours, minutes, seconds, milliseconds] =
      parts.length === 3 ? [0n, first, ...rest, 0n] : [...parts, 0n];
    const inSeconds =
      (((days as bigint) * 24n + (hours as bigint)) * 60n + (minutes as bigint)) * 60n +
      (seconds as bigint);
    return timeSpanText(inSeconds * 10_000_000n + (milliseconds ?? 0n) * 10_000n);
  },
};

/** Maximum cost of formatting a value or a time span. */
const formatUnits = 400;

function toStringWithFormat(run: Run, _self: Value, args: Value[]): Value {
  if (args.length === 0 || args.length > 3) {
    refuse(
      `No overload for method 'toStringWithFormat' takes ${args.length} arguments. Supported overloads are : ` +
        "toStringWithFormat(object), toStringWithFormat(object, format), toStringWithFormat(object, culture), " +
        "toStringWithFormat(object, format, culture).",
    );
  }
  const [value, given] = args;
  const format = given === undefined ? null : toText(run, given).slice(0, 200);
  run.burn(formatUnits);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number")
    return format === null ? numberText(value) : formatNumber(value, format);
  if (typeof value === "string") {
    const ticks = ticksOfText(value);
    if (ticks === null) {
      refuse("toStringWithFormat(dateString) : 'dateString' is not a valid DateTime string");
    }
    return formatDate(Number(ticks / 10_000n), format ?? "G");
  }
  if (isReference(value) && value.kind === kinds.date) return formatDate(value.time, format ?? "G");
  return refuse("toStringWithFormat() is not supported for objects of type Object ");
}

function scalarToRawString(run: Run, _self: Value, args: Value[]): Value {
  const [document, lambda] = args;
  if (args.length !== 2) {
    refuse("scalarToRawString(document, lambdaToField) may be called on with two parameters only");
  }
  if (!isFunction(lambda)) {
    refuse(
      "scalarToRawString(document, lambdaToField) must be called with a second lambda argument",
    );
  }
  return callFunction(run, lambda, undefined, [document]);
}

function metadataOf(value: Value, method: string): ScriptObject {
  const metadata = ScriptDocument.of(value)?.metadata();
  if (!isObject(metadata)) refuse(`${method} must be called with a document`);
  return metadata;
}

const archived: Record<string, Native> = {
  archiveAt(run, _self, given) {
    const [document, date] = given;
    if (given.length !== 2) {
      refuse("archiveAt(doc, utcDateTimeString) must be called with two args");
    }
    const metadata = metadataOf(document, "archived.archiveAt(doc, utcDateTimeString)");
    setOwn(metadata, "@archive-at", toText(run, date));
    return undefined;
  },
  unarchive(_run, _self, [document]) {
    const metadata = metadataOf(document, "archived.unarchive(doc)");
    deleteOwn(metadata, "@archived");
    return undefined;
  },
};

/** Functions of old versions: recognized so that the error can name the new function. */
const renamed: Readonly<Record<string, string>> = {
  LoadDocument: "load",
  PutDocument: "put",
  DeleteDocument: "del",
};

function refuseCompiling(): never {
  return refuse(
    "String compilation has been disabled in engine options. You can configure it by modifying the " +
      "configuration option: 'Patching.AllowStringCompilation'.",
    "script-failed",
  );
}

/** Adds the patch API to the globals. */
export function definePatchFunctions(globals: Map<string, Value>): void {
  const functions: Record<string, Native> = {
    load,
    loadPath,
    put,
    del,
    id,
    getMetadata,
    metadataFor: getMetadata,
    lastModified,
    ...counters,
    timeseries,
    [seriesQueryName]: seriesQuery,
    cmpxchg,
    include,
    output,
    ...textTests,
    Raven_Min: extremeOf("Raven_Min", 1),
    Raven_Max: extremeOf("Raven_Max", -1),
    compareDates,
    ...spans,
    toStringWithFormat,
    scalarToRawString,
  };
  for (const [old, name] of Object.entries(renamed)) {
    functions[old] = () => refuse(`The method ${old} was renamed to '${name}'`, "method-missing");
  }
  for (const [name, native] of Object.entries(functions))
    globals.set(name, builtIn(name, 0, native));
  for (const name of ["eval", "Function"]) {
    const made = builtIn(name, 1, refuseCompiling);
    made.construct = refuseCompiling;
    globals.set(name, made);
  }
  globals.set("spatial", namespaceOf({ distance }));
  globals.set("archived", namespaceOf(archived));
  globals.set("console", namespaceOf({ log: output }));
  globals.set(
    "includes",
    namespaceOf({
      document: include,
      cmpxchg(run, _self, [key]) {
        const keys = isArray(key) ? key.items : [key];
        for (const each of keys) {
          if (typeof each !== "string") {
            refuse("includes.cmpxchg(key) must be called with an string or string array argument");
          }
          run.burn(hostCallUnits);
          run.grow(includedBytes);
          hostOf(run).includeCompareExchange(each);
        }
        return undefined;
      },
    }),
  );
}
