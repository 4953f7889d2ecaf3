/**
 * The values of a script, and the resource account of a run.
 *
 * A script never holds a host object: it holds undefined, null, booleans, numbers, strings, or instances of the classes
 * below. Their fields are read by this folder's code under fixed names only; names in a script are looked up in
 * `keys`/`values`, in `items` by a checked integer, in a host `Map` by key, or in a table of built-ins. There is no
 * path from a script's text to a host property, prototype, function or global.
 *
 * It knows neither the syntax of scripts nor the text of documents (script-document.ts).
 *
 * Invariants:
 * - the `keys` array of an object only grows at its end, so a (keys, position) pair stays valid; removing a key creates
 *   a new array;
 * - a `keys` array marked shared is never modified: an object makes its own copy before it adds a key;
 * - an error that stops a run (`EngineError`) is never caught by a script's try: a script catches `ScriptThrow` only.
 */

import { EngineError } from "../../base/errors.ts";
import { scriptBytesMax, scriptMsMax, scriptStepsMax, scriptWorkPerMs } from "../../base/limits.ts";
import { processMemory } from "../../base/memory/memory-budget.ts";
import type { KeyNode } from "../values/shape-hint.ts";
import { ScriptClock } from "./script-clock.ts";

/** A missing property: a deleted property that keeps its slot, or a hole of an array. */
export const ABSENT: unique symbol = Symbol("absent");
/** A property of a document that has not been parsed yet. */
export const LAZY: unique symbol = Symbol("lazy");

/** A value of a script. */
export type Value = undefined | null | boolean | number | string | Reference;
/** A value with an identity. */
export type Reference =
  | ScriptObject
  | ScriptArray
  | ScriptFunction
  | ScriptDate
  | ScriptMap
  | ScriptSet
  | ScriptPattern
  | ScriptSymbol;
/** The content of a slot of an object or array. */
export type Slot = Value | typeof ABSENT | typeof LAZY;

/** The class of a reference, as a small integer, so that dispatch is a switch. */
export const kinds = {
  object: 0,
  array: 1,
  function: 2,
  date: 3,
  map: 4,
  set: 5,
  pattern: 6,
  symbol: 7,
} as const;

/** Parses the value of a lazy property; implemented by text-source.ts. */
export interface Source {
  materialize(owner: ScriptObject, position: number): Value;
}

/** An object: a literal, a document or part of one, an error, a boxed primitive, an instance. */
export class ScriptObject {
  readonly kind = kinds.object;
  keys: string[];
  keysShared: boolean;
  values: Slot[];
  /** The text it was parsed from, between `start` and `end`. */
  source: Source | null;
  start: number;
  end: number;
  /** The list of keys in the text; null for an object that a script created. */
  shape: KeyNode | null;
  /** Where the offsets of its properties are recorded, see text-source.ts; -1 when they are not. */
  spanAt: number;
  /** Number of properties parsed from the text: the first ones. */
  readCount: number;
  /** Whether a property was set, added or deleted since parsing. */
  written: boolean;
  /** Bitmap of the positions that were set; the highest bit covers all from 31 on. See `markSet`. */
  set: number;
  /** Rarely used attributes. */
  traits: ObjectTraits | null;

  constructor(keys: string[], keysShared: boolean, values: Slot[]) {
    this.keys = keys;
    this.keysShared = keysShared;
    this.values = values;
    this.source = null;
    this.start = 0;
    this.end = 0;
    this.shape = null;
    this.spanAt = -1;
    this.readCount = 0;
    this.written = false;
    this.set = 0;
    this.traits = null;
  }

  get frozen(): boolean {
    return this.traits?.frozen ?? false;
  }

  get className(): string {
    return this.traits === null ? "Object" : this.traits.className;
  }

  get boxed(): Value {
    return this.traits === null ? undefined : this.traits.boxed;
  }

  get maker(): ScriptFunction | null {
    return this.traits === null ? null : this.traits.maker;
  }
}

/** Attributes that most objects lack. */
class ObjectTraits {
  frozen = false;
  /** "Object", an error's name ("TypeError"), or the primitive it boxes ("String", "Number", "Boolean"). */
  className = "Object";
  boxed: Value = undefined;
  /** The value of a boxed number, where a double does not hold it: see csharp-numbers.ts. */
  exact: { readonly units: number | bigint; readonly scale: number } | null = null;
  /** The text of a boxed number in its document. */
  spelling: string | null = null;
  /** The function that constructed it. */
  maker: ScriptFunction | null = null;
  /** Positions by key, built when there are many keys. */
  lookup: Map<string, number> | null = null;
  /** Properties whose keys are symbols. */
  symbols: Map<ScriptSymbol, Value> | null = null;
}

/** Returns the traits of an object, created if needed. */
export function traitsOf(object: ScriptObject): ObjectTraits {
  object.traits ??= new ObjectTraits();
  return object.traits;
}

/** An array. Holes are ABSENT. */
export class ScriptArray {
  readonly kind = kinds.array;
  items: Slot[];
  /** The text it was parsed from, between `start` and `end`. */
  source: Source | null = null;
  start = 0;
  end = 0;
  /** Nesting depth in that text. */
  depth = 0;
  /** Whether an element was set, added or removed since parsing. */
  written = false;
  /** Whether an element is known to contain a change. */
  changedBelow = false;
  frozen = false;
  /** Spelling of integers beyond the precision of a double, by position, while they are unchanged. */
  exact: Map<number, string> | null = null;
  /** Named properties (`index`, `groups` of a match). */
  extra: ScriptObject | null = null;

  constructor(items: Slot[]) {
    this.items = items;
  }
}

/** The implementation of a function. `self` is its `this`. */
export type Native = (run: Run, self: Value, args: Value[]) => Value;

/** A function: the script's own, or a built-in one (shared by all scripts, immutable). */
export class ScriptFunction {
  readonly kind = kinds.function;
  name: string;
  readonly length: number;
  native: Native;
  readonly builtIn: boolean;
  /** The implementation of `new`; null when it is not a constructor. */
  construct: Native | null = null;
  /** Named properties: a script's own, or those of a built-in constructor (`Object.keys`). */
  properties: ScriptObject | null = null;
  /** Methods of its instances, when it is a class or has a `prototype`. */
  methods: ScriptObject | null = null;
  base: ScriptFunction | null = null;

  constructor(name: string, length: number, native: Native, builtIn: boolean) {
    this.name = name;
    this.length = length;
    this.native = native;
    this.builtIn = builtIn;
  }
}

/** A date: milliseconds since 1970, NaN when invalid. */
export class ScriptDate {
  readonly kind = kinds.date;
  time: number;
  constructor(time: number) {
    this.time = time;
  }
}

export class ScriptMap {
  readonly kind = kinds.map;
  readonly entries = new Map<Value, Value>();
}

export class ScriptSet {
  readonly kind = kinds.set;
  readonly items = new Set<Value>();
}

/**
 * One match: alternately start and end of each group (group 0 is the whole), -1 for a group that did not participate.
 */
export type MatchSpans = readonly number[];

/** Charged for work: a run. */
export interface Account {
  burn(units: number): void;
}

/** A compiled regular expression, from regular-expression.ts. */
export interface Matcher {
  readonly source: string;
  readonly flags: string;
  readonly groupCount: number;
  readonly groupNames: ReadonlyMap<string, number>;
  /** Number of instructions, to which compile time and memory are proportional. */
  readonly size: number;
  /** First match at or after `from` (exactly at `from` when sticky), or null. The work is charged to `account`. */
  match(text: string, from: number, account: Account): MatchSpans | null;
}

export class ScriptPattern {
  readonly kind = kinds.pattern;
  readonly matcher: Matcher;
  lastIndex = 0;
  constructor(matcher: Matcher) {
    this.matcher = matcher;
  }
}

/** A symbol of scripts: an own class, so that no script ever holds a symbol of the host. Compared by identity. */
export class ScriptSymbol {
  readonly kind = kinds.symbol;
  readonly description: string | undefined;
  constructor(description: string | undefined) {
    this.description = description;
  }
}

/** The symbols that operators and loops look up in objects. */
export const wellKnown = {
  iterator: new ScriptSymbol("Symbol.iterator"),
  toPrimitive: new ScriptSymbol("Symbol.toPrimitive"),
  toStringTag: new ScriptSymbol("Symbol.toStringTag"),
} as const;

/** Returns the property of an object, or of its class, under a symbol; undefined if it does not exist. */
export function symbolOf(object: ScriptObject, symbol: ScriptSymbol): Value {
  const own = object.traits?.symbols?.get(symbol);
  if (own !== undefined) return own;
  return object.maker?.methods?.traits?.symbols?.get(symbol);
}

/** A value thrown by a script. Not an Error: it needs no host stack. */
export class ScriptThrow {
  readonly value: Value;
  constructor(value: Value) {
    this.value = value;
  }
}

/** The limits of one run. Every number is finite, so every run ends. */
export interface ScriptLimits {
  /** Statements, counted nearly as in the reference server. */
  readonly stepsMax: number;
  /** Units of work of about 10 ns: statements and built-ins, in proportion to their input. */
  readonly workMax: number;
  /** Milliseconds of processor time, for work that takes longer than estimated. */
  readonly msMax: number;
  /**
   * Factor by which a run may exceed `msMax`: the budget counts its work. The clock only stops work that takes far longer
   * than its charge; in a process that has just started, code that is not optimized yet takes several times as long.
   */
  readonly lateFactor: number;
  /** Bytes of strings, arrays and objects allocated during the run, whether or not they are still reachable. */
  readonly bytesMax: number;
  /** Maximum depth of nested calls. */
  readonly depthMax: number;
}

type Settable = { -readonly [Name in keyof ScriptLimits]: ScriptLimits[Name] };

const usual: Settable = {
  stepsMax: scriptStepsMax,
  workMax: scriptMsMax * scriptWorkPerMs,
  msMax: scriptMsMax,
  lateFactor: 4,
  bytesMax: scriptBytesMax,
  depthMax: 65,
};
const lifted: Settable = { ...usual, stepsMax: Number.MAX_SAFE_INTEGER };

/** The default limits of a patch: `Patching.MaxStepsForScript` is 10,000. */
export const defaultLimits: ScriptLimits = usual;

/** The limits without a maximum of steps. Time and memory stay limited: a running script blocks the process. */
export const liftedLimits: ScriptLimits = lifted;

/** Limits configurable by the operator; `server/` sets them at startup, for all scripts of the process. */
export interface ScriptSettings {
  readonly stepsMax: number;
  readonly msMax: number;
  readonly bytesMax: number;
}

export function setScriptLimits({ stepsMax, msMax, bytesMax }: ScriptSettings): void {
  usual.stepsMax = stepsMax;
  for (const limits of [usual, lifted]) {
    limits.msMax = msMax;
    limits.workMax = msMax * scriptWorkPerMs;
    limits.bytesMax = bytesMax;
  }
}

/** Allocations are reported to the process's account in steps of at least this size. */
const heldStepBytes = 1024 * 1024;
/** Work between two checks of the clock. */
const workOfStretch = 20_000;

/** Levels of nested closures that all calls together may put on the host's stack. */
const stackLevelsMax = 1_600;
/** Stack levels charged for a built-in that calls back into the script. */
const callbackLevels = 8;

/** Statements that the reference server's wrapper code counts among a script's steps. */
const stepsOfSurroundings = 5;

/** One run of a script: its account and its context. */
export class Run implements Account {
  stepsLeft: number;
  /** Work until the next check of the clock: `payStretch`. */
  workLeft: number;
  /** Work left after that. */
  workBehind: number;
  bytesLeft: number;
  depthLeft: number;
  levelsLeft = stackLevelsMax;
  readonly limits: ScriptLimits;
  /** Source offset of the code being executed, for messages. */
  at = 0;
  /** The pending value of a `return`, and the pending label of a `break` or `continue`. */
  result: Value = undefined;
  label: string | null = null;
  /** `globalThis`, created when it is first read. */
  globalObject: ScriptObject | null = null;
  /** The symbols of `Symbol.for`: other runs have different symbols. */
  readonly registry = new Map<string, ScriptSymbol>();
  /** The context of patch functions: the `ScriptContext` of patch-functions.ts. */
  readonly context: unknown;
  /** Values of the parameters, by name without `$`. */
  readonly parameters: ScriptObject;
  private clock: ScriptClock | null = null;
  private heldBytes = 0;
  private isEnded = false;

  constructor(limits: ScriptLimits, context: unknown, parameters: ScriptObject) {
    this.limits = limits;
    this.stepsLeft = limits.stepsMax - stepsOfSurroundings;
    this.workLeft = Math.min(limits.workMax, workOfStretch);
    this.workBehind = limits.workMax - this.workLeft;
    this.bytesLeft = limits.bytesMax;
    this.depthLeft = limits.depthMax;
    this.context = context;
    this.parameters = parameters;
  }

  /** Reports the memory allocated so far to the process's account, until `end`. */
  private holdMemory(): void {
    const made = this.limits.bytesMax - this.bytesLeft;
    if (this.isEnded || made - this.heldBytes < heldStepBytes) return;
    processMemory.force("scripts", made - this.heldBytes);
    this.heldBytes = made;
  }

  /** Releases the memory from the process's account: it is owned by others now, or garbage. */
  end(): void {
    this.isEnded = true;
    if (this.heldBytes === 0) return;
    processMemory.release("scripts", this.heldBytes);
    this.heldBytes = 0;
  }

  /** Continues with the rest of another run's work, time and memory. */
  continueFrom({ workLeft, workBehind, bytesLeft, clock }: Run): void {
    this.workLeft = workLeft;
    this.workBehind = workBehind;
    this.bytesLeft = bytesLeft;
    this.clock = clock;
  }

  /** Units of work so far. */
  get spentWork(): number {
    return this.limits.workMax - this.affordableWork;
  }

  /** The work left in total. */
  get affordableWork(): number {
    return this.workLeft + this.workBehind;
  }

  /** Charges `units` of work. @throws EngineError script-failed when the quota is exhausted. */
  burn(units: number): void {
    this.workLeft -= units;
    if (!(this.workLeft >= 0)) this.payStretch();
  }

  /** Charges `bytes` of new memory, and the work of filling them. @throws EngineError script-failed */
  grow(bytes: number): void {
    this.bytesLeft -= bytes;
    this.workLeft -= bytes / 16;
    if (!(this.bytesLeft >= 0)) throw memoryExceeded(this.limits);
    if (!(this.workLeft >= 0)) this.payStretch();
  }

  /**
   * Called when a stretch of steps, work or time is used up: continues when there is quota left.
   * @throws EngineError script-failed
   */
  payStretch(): void {
    const { limits } = this;
    if (this.stepsLeft < 0) throw stepsExceeded(limits);
    const taken = Math.min(this.workBehind, workOfStretch - this.workLeft);
    this.workBehind -= taken;
    this.workLeft += taken;
    if (!(this.workLeft >= 0)) throw timeExceeded(limits);
    this.holdMemory();
    if (this.clock === null) this.clock = new ScriptClock();
    else if (this.clock.hasRun(limits.msMax * limits.lateFactor)) throw new ScriptTimeout(limits);
  }
}

/** Returns the error of a run that exceeded its steps. */
function stepsExceeded({ stepsMax }: ScriptLimits): EngineError {
  return new EngineError(
    "script-failed",
    `The maximum number of statements executed have been reached - ${stepsMax}. You can configure it by modifying the ` +
      "configuration option: 'Patching.MaxStepsForScript'.",
  );
}

function timeText({ msMax }: ScriptLimits): string {
  return (
    `The script was stopped: it may take ${msMax} ms of processor time for one document, because nothing else is ` +
    "served while it runs. Let it do less for each document. You can configure it by modifying the configuration " +
    "option: 'Patching.MaxTimeForScriptInMs'."
  );
}

function timeExceeded(limits: ScriptLimits): EngineError {
  return new EngineError("script-failed", timeText(limits));
}

/** The time error when raised by the clock: cold code runs slower than it soon will, so a retry may succeed. */
export class ScriptTimeout extends EngineError {
  constructor(limits: ScriptLimits) {
    super("script-failed", timeText(limits));
  }
}

/** Returns the error of a run that exceeded its memory. */
export function memoryExceeded({ bytesMax }: ScriptLimits): EngineError {
  return new EngineError(
    "script-failed",
    `The script was stopped: it may make and store values of ${Math.round(bytesMax / 1024 / 1024)} MB. You can ` +
      "configure it by modifying the configuration option: 'Patching.MaxMemoryForScriptInMb'.",
  );
}

/** Returns the error of calls nested beyond the limit. */
export function recursionExceeded(cause?: unknown): EngineError {
  return new EngineError("script-recursion", "The recursion is forbidden by script host.", {
    cause,
  });
}

export function newObject(): ScriptObject {
  return new ScriptObject([], false, []);
}

/** Creates an error object of scripts; if `message` is undefined, it has no such property. */
export function newError(name: string, message: string | undefined): ScriptObject {
  const error = newObject();
  traitsOf(error).className = name;
  if (message !== undefined) setOwn(error, "message", message);
  return error;
}

/** Throws an error that the script can catch. */
export function throwError(name: string, message: string): never {
  throw new ScriptThrow(newError(name, message));
}

const lookupKeysMin = 12;

/** Position of `key`, or -1. Hot. */
export function positionOf(object: ScriptObject, key: string): number {
  const keys = object.keys;
  const length = keys.length;
  if (length < lookupKeysMin) {
    for (let i = 0; i < length; i += 1) if (keys[i] === key) return i;
    return -1;
  }
  return lookupOf(object).get(key) ?? -1;
}

/** Positions by key of shared lists: documents of one shape share one. */
const sharedLookups = new WeakMap<string[], Map<string, number>>();

function lookupOf(object: ScriptObject): ReadonlyMap<string, number> {
  const { keys, keysShared } = object;
  const known = keysShared ? sharedLookups.get(keys) : traitsOf(object).lookup;
  if (known !== undefined && known !== null) return known;
  const made = new Map<string, number>();
  for (const [i, key] of keys.entries()) made.set(key, i);
  if (keysShared) sharedLookups.set(keys, made);
  else traitsOf(object).lookup = made;
  return made;
}

/** Returns the value at a position, parsed from the document's text if needed; ABSENT when deleted. */
export function slotAt(object: ScriptObject, position: number): Value | typeof ABSENT {
  const slot = object.values[position] as Slot;
  if (slot !== LAZY) return slot;
  const value = (object.source as Source).materialize(object, position);
  object.values[position] = value;
  return value;
}

/** Records that an existing property was set. */
export function markSet(object: ScriptObject, position: number): void {
  object.written = true;
  object.set |= 1 << Math.min(position, 31);
}

/** Returns whether the property at a position may have been set since parsing. */
export function wasSet(object: ScriptObject, position: number): boolean {
  return (object.set & (1 << Math.min(position, 31))) !== 0;
}

export function hasOwn(object: ScriptObject, key: string): boolean {
  const position = positionOf(object, key);
  return position >= 0 && object.values[position] !== ABSENT;
}

/** Returns an own property's value; undefined if it does not exist. */
export function getOwn(object: ScriptObject, key: string): Value {
  const position = positionOf(object, key);
  if (position < 0) return undefined;
  const slot = slotAt(object, position);
  return slot === ABSENT ? undefined : slot;
}

/** Sets or adds an own property; a deleted one of a document reappears at its old position. */
export function setOwn(object: ScriptObject, key: string, value: Value): void {
  const position = positionOf(object, key);
  if (position >= 0) {
    markSet(object, position);
    object.values[position] = value;
    return;
  }
  addOwn(object, key, value);
}

/**
 * The list that a shared list became when a key was added: objects that gain the same key share the longer list too.
 */
const grownLists = new WeakMap<string[], string[]>();
/** Longer lists are not cached: each step would copy a whole one. */
const grownKeysMax = 64;

/** Returns the shared list extended by one key; null when each object needs its own. */
function grownList(keys: string[], key: string): string[] | null {
  const grown = grownLists.get(keys);
  if (grown !== undefined) return grown[keys.length] === key ? grown : null;
  if (keys.length >= grownKeysMax) return null;
  const made = [...keys, key];
  grownLists.set(keys, made);
  return made;
}

/** Adds a property that is known to be missing. */
export function addOwn(object: ScriptObject, key: string, value: Slot): void {
  object.written = true;
  if (object.keysShared) {
    const grown = grownList(object.keys, key);
    if (object.traits !== null) object.traits.lookup = null;
    if (grown !== null) {
      object.keys = grown;
      object.values.push(value);
      return;
    }
    object.keys = object.keys.slice();
    object.keysShared = false;
  }
  const lookup = object.traits === null ? null : object.traits.lookup;
  if (lookup !== null) lookup.set(key, object.keys.length);
  object.keys.push(key);
  object.values.push(value);
}

/** Removes an own property. One of a document keeps its slot in case it is added again. Cost: one pass. */
export function deleteOwn(object: ScriptObject, key: string): void {
  const position = positionOf(object, key);
  if (position < 0) return;
  object.written = true;
  if (object.source !== null) {
    object.values[position] = ABSENT;
    return;
  }
  object.keys = object.keys.toSpliced(position, 1);
  object.keysShared = false;
  object.values.splice(position, 1);
  if (object.traits !== null) object.traits.lookup = null;
}

/** Own keys, in order. Cost: one pass. */
export function ownKeys(object: ScriptObject): string[] {
  const { keys, values } = object;
  const result: string[] = [];
  for (let i = 0; i < keys.length; i += 1) {
    if (values[i] !== ABSENT) result.push(keys[i] as string);
  }
  return result;
}

export function isReference(value: Value): value is Reference {
  return typeof value === "object" && value !== null;
}

export function isObject(value: Value): value is ScriptObject {
  return typeof value === "object" && value !== null && value.kind === kinds.object;
}

export function isArray(value: Value): value is ScriptArray {
  return typeof value === "object" && value !== null && value.kind === kinds.array;
}

export function isFunction(value: Value): value is ScriptFunction {
  return typeof value === "object" && value !== null && value.kind === kinds.function;
}

/**
 * Calls a function from a built-in. Charges stack levels, so that built-ins which call back cannot overflow the host's
 * stack.
 * @throws EngineError script-recursion
 */
export function callFunction(run: Run, callee: ScriptFunction, self: Value, args: Value[]): Value {
  if (run.levelsLeft < callbackLevels) throw recursionExceeded();
  run.levelsLeft -= callbackLevels;
  const result = callee.native(run, self, args);
  run.levelsLeft += callbackLevels;
  return result;
}
