/**
 * The functions that the text of a deployed index may call, in addition to the functions of every script: declarations
 * of maps and reduces, and access to the documents that a map refers to.
 *
 * Invariant: created once and immutable; the declarations of a run are held by that run only.
 */
import { EngineError } from "../base/errors.ts";
import { pointText } from "../indexing/spatial/spatial-terms.ts";
import { loadAttachment, loadAttachments } from "./attachment-functions.ts";
import { builtIn, namespaceOf, newArray } from "./built-ins/built-in.ts";
import { globals } from "./built-ins/built-ins.ts";
import {
  callFunction,
  getOwn,
  isArray,
  isFunction,
  isObject,
  isReference,
  type Native,
  newObject,
  type Run,
  ScriptArray,
  type ScriptFunction,
  setOwn,
  type Value,
} from "./language/script-values.ts";
import type { ScriptContext, ScriptHost } from "./script-host.ts";
import { ScriptDocument } from "./values/script-document.ts";

/** One `map(…)`. The reader validates its arguments. */
interface DeclaredMap {
  readonly source: "documents" | "counters" | "timeSeries";
  readonly collection: Value;
  /** The name of a counter; undefined: any. */
  readonly item: Value;
  readonly map: Value;
}

interface DeclaredReduce {
  readonly groupBy: Value;
  readonly aggregate: Value;
}

interface Declarations {
  readonly maps: DeclaredMap[];
  readonly reduces: DeclaredReduce[];
}

/** The host of an index's functions. */
export interface IndexScriptHost extends ScriptHost {
  /** False during `noTracking.load`: loaded documents are not recorded as references. */
  isTracking: boolean;
}

const declared = new WeakMap<Run, Declarations>();

/** Returns the declarations made by a run of an index's text. */
export function declarationsOf(run: Run): Declarations {
  let found = declared.get(run);
  if (found === undefined) {
    found = { maps: [], reduces: [] };
    declared.set(run, found);
  }
  return found;
}

const declarationBytes = 256;

function declareMap(source: DeclaredMap["source"]): Native {
  return (run, _self, args) => {
    run.grow(declarationBytes);
    const { maps } = declarationsOf(run);
    const [first, second, third] = args;
    if (source === "documents") {
      maps.push({ source, collection: first, item: undefined, map: second });
    } else if (args.length === 1) {
      const collection = isFunction(first) ? "@all_docs" : first;
      maps.push({ source, collection, item: undefined, map: first });
    } else if (args.length === 2) {
      maps.push({ source, collection: first, item: undefined, map: second });
    } else {
      // With more arguments, their meaning is unknown.
      const collection = args.length === 3 ? first : undefined;
      maps.push({ source, collection, item: second ?? null, map: third });
    }
    return undefined;
  };
}

function declareGroupBy(run: Run, _self: Value, [groupBy]: Value[]): Value {
  run.grow(declarationBytes);
  return namespaceOf({
    aggregate(inner, _inner, [aggregate]) {
      inner.grow(declarationBytes);
      declarationsOf(inner).reduces.push({ groupBy, aggregate });
      return undefined;
    },
  });
}

/**
 * `load(id, collection)`: the collection is read from the text, too, see index-script.ts. Unlike in patches, a missing
 * document is null.
 */
function load(run: Run, self: Value, args: Value[]): Value {
  const [id, collection] = args;
  // Translated C# has the collection in its text only.
  if (args.length > 1 && typeof collection !== "string") {
    throw new EngineError(
      "invalid-argument",
      "load(id, collection): 'collection' must be a string",
    );
  }
  return callFunction(run, globals.get("load") as ScriptFunction, self, [id]) ?? null;
}

/** `cmpxchg(key)`: of a missing key, the value is null. */
function compareExchange(run: Run, self: Value, args: Value[]): Value {
  const [key] = args;
  if (args.length === 1 && (key === null || key === undefined)) return null;
  return callFunction(run, globals.get("cmpxchg") as ScriptFunction, self, args);
}

function loadUntracked(run: Run, self: Value, args: Value[]): Value {
  const host = (run.context as ScriptContext).host as IndexScriptHost;
  host.isTracking = false;
  try {
    return load(run, self, args);
  } finally {
    host.isTracking = true;
  }
}

function createField(run: Run, _self: Value, [name, value, options]: Value[]): Value {
  if (typeof name !== "string") {
    throw new EngineError(
      "invalid-argument",
      "createField(name, value, options): 'name' must be a string",
    );
  }
  if (!isObject(options)) {
    throw new EngineError(
      "invalid-argument",
      "createField(name, value, options): 'options' must be an object",
    );
  }
  run.grow(declarationBytes);
  const field = newObject();
  setOwn(field, "$name", name);
  setOwn(field, "$value", value);
  setOwn(field, "$options", options);
  return field;
}

/** `createSpatialField(lat, lng)` or `createSpatialField(wkt)`: a shape (indexing/spatial/spatial-values.ts). */
function createSpatialField(run: Run, _self: Value, [first, second]: Value[]): Value {
  run.grow(declarationBytes);
  const field = newObject();
  const isPoint = typeof first === "number" && typeof second === "number";
  const text = typeof first === "string" && second === undefined ? first : null;
  setOwn(field, "$spatial", isPoint ? pointText(second, first) : text);
  return field;
}

/** `createVector(value)`: vectors (indexing/vectors/vector-terms.ts). */
function createVector(run: Run, _self: Value, [value]: Value[]): Value {
  run.grow(declarationBytes);
  const field = newObject();
  setOwn(field, "$vector", value ?? null);
  return field;
}

/** `boost(value, factor)`: a field's value, or a whole entry, with a score factor. */
function boost(run: Run, _self: Value, [value, factor]: Value[]): Value {
  if (typeof factor !== "number" || !Number.isFinite(factor)) {
    throw new EngineError("invalid-argument", "boost(value, factor): 'factor' must be a number");
  }
  run.grow(declarationBytes);
  const boosted = newObject();
  setOwn(boosted, "$value", value);
  setOwn(boosted, "$boost", factor);
  return boosted;
}

/** Reads a list from the metadata of a document. */
function metadataList(method: string, key: string): Native {
  return (run, _self, args) => {
    const [document] = args;
    if (args.length !== 1) {
      throw new EngineError(
        "invalid-operation",
        `${method}(doc) must be called with a single entity argument`,
      );
    }
    if (document === null || document === undefined) return newArray(run, []);
    if (!isReference(document) || ScriptDocument.of(document) === null) {
      throw new EngineError("invalid-operation", `${method}(doc) must be called with a document`);
    }
    const metadata = ScriptDocument.of(document)?.metadata();
    const list = isObject(metadata) ? getOwn(metadata, key) : undefined;
    return newArray(run, isArray(list) ? [...list.items] : []);
  };
}

function recurse(run: Run, _self: Value, [root, next]: Value[]): Value {
  if (!isFunction(next)) {
    throw new EngineError("invalid-argument", "recurse(item, func): 'func' must be a function");
  }
  const found: Value[] = [];
  const open: Value[] = [root];
  for (let item = open.shift(); item !== undefined; item = open.shift()) {
    if (item === null || found.includes(item)) continue;
    run.burn(found.length + 1);
    found.push(item);
    const more = callFunction(run, next, undefined, [item]);
    if (isArray(more)) open.push(...(more.items as Value[]));
    else if (more !== undefined) open.push(more);
  }
  return new ScriptArray(found);
}

/** Globals of an index's text. */
export const indexGlobals: ReadonlyMap<string, Value> = new Map<string, Value>([
  ...globals,
  ["map", builtIn("map", 2, declareMap("documents"))],
  ["timeSeries", namespaceOf({ map: declareMap("timeSeries") })],
  ["counters", namespaceOf({ map: declareMap("counters") })],
  ["groupBy", builtIn("groupBy", 1, declareGroupBy)],
  ["load", builtIn("load", 2, load)],
  ["noTracking", namespaceOf({ load: loadUntracked })],
  ["cmpxchg", builtIn("cmpxchg", 0, compareExchange)],
  ["loadCompareExchangeValue", builtIn("loadCompareExchangeValue", 0, compareExchange)],
  ["boost", builtIn("boost", 2, boost)],
  ["createField", builtIn("createField", 3, createField)],
  ["createVector", builtIn("createVector", 1, createVector)],
  ["createSpatialField", builtIn("createSpatialField", 2, createSpatialField)],
  ["loadAttachment", builtIn("loadAttachment", 2, loadAttachment)],
  ["loadAttachments", builtIn("loadAttachments", 1, loadAttachments)],
  ["attachmentsFor", builtIn("attachmentsFor", 1, metadataList("attachmentsFor", "@attachments"))],
  ["counterNamesFor", builtIn("counterNamesFor", 1, metadataList("counterNamesFor", "@counters"))],
  [
    "timeSeriesNamesFor",
    builtIn("timeSeriesNamesFor", 1, metadataList("timeSeriesNamesFor", "@timeseries")),
  ],
  ["recurse", builtIn("recurse", 2, recurse)],
]);
