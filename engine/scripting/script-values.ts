/**
 * What a script's values are, and the account of what a run may use up.
 *
 * A script never holds a host object: it holds undefined, null, booleans, numbers, strings, or instances of
 * the classes below. Their fields are read by this folder's code under fixed names only; what a script names
 * is looked up in `keys`/`values`, in `items` by a checked integer, in a host `Map` by key, or in a table of
 * built-ins. There is no path from a script's text to a host property, prototype, function or global.
 *
 * It does not know the syntax of scripts, nor documents' text (script-document.ts).
 *
 * Invariants:
 * - `keys` of an object only grows at its end while it is the same array, so a (keys, position) pair that was
 *   once right stays right; removing a key makes a new array;
 * - a `keys` array marked shared is never changed: an object takes its own copy before it adds a key;
 * - what stops a run (`EngineError`) is never caught by a script's try: a script catches `ScriptThrow` only.
 */

import { EngineError } from "../errors.ts";
import { scriptBytesMax, scriptMsMax, scriptStepsMax, scriptWorkPerMs } from "../limits.ts";
import { processMemory } from "../memory-budget.ts";
import { ScriptClock } from "./script-clock.ts";
import type { KeyNode } from "./shape-hint.ts";

/** A property that is not there: a deleted one that keeps its place, or a hole of an array. */
export const ABSENT: unique symbol = Symbol("absent");
/** A property of a document whose text has not been read yet. */
export const LAZY: unique symbol = Symbol("lazy");

/** What a script computes with. */
export type Value = undefined | null | boolean | number | string | Reference;
/** A value with an identity. */
export type Reference =
  | ScriptObject
  | ScriptArray
  | ScriptFunction
  | ScriptDate
  | ScriptMap
  | ScriptSet
  | ScriptPattern;
/** What a slot of an object or array holds. */
export type Slot = Value | typeof ABSENT | typeof LAZY;

/** Which class a reference is of; a small integer, so that dispatch is a switch. */
export const kinds = {
  object: 0,
  array: 1,
  function: 2,
  date: 3,
  map: 4,
  set: 5,
  pattern: 6,
} as const;

/** Makes the value of a lazy property; implemented by text-source.ts. */
export interface Source {
  materialize(owner: ScriptObject, position: number): Value;
}

/** An object: a literal, a document or part of one, an error, a boxed primitive, an instance. */
export class ScriptObject {
  readonly kind = kinds.object;
  keys: string[];
  keysShared: boolean;
  values: Slot[];
  /** The text it was read from, between `start` and `end`. */
  source: Source | null;
  start: number;
  end: number;
  /** The list of keys that the text has; null when a script made it. */
  shape: KeyNode | null;
  /** Where the places of its properties are noted, see text-source.ts; -1 when they are not. */
  spanAt: number;
  /** Properties that were there when it was read: the first ones. */
  readCount: number;
  /** A property was set, added or deleted since it was read. */
  written: boolean;
  /** Bits of the positions that were set; the highest one for all from 31 on. See `markSet`. */
  set: number;
  /** What few objects have. */
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

/** What makes an object more than a list of properties. */
export class ObjectTraits {
  frozen = false;
  /** "Object", an error's name ("TypeError"), or the primitive it boxes ("String", "Number", "Boolean"). */
  className = "Object";
  boxed: Value = undefined;
  /** The function it was constructed by. */
  maker: ScriptFunction | null = null;
  /** Positions by key, made when there are many keys. */
  lookup: Map<string, number> | null = null;
}

/** The traits of an object, made when it has none. */
export function traitsOf(object: ScriptObject): ObjectTraits {
  object.traits ??= new ObjectTraits();
  return object.traits;
}

/** An array. Holes are ABSENT. */
export class ScriptArray {
  readonly kind = kinds.array;
  items: Slot[];
  /** The text it was read from, between `start` and `end`. */
  source: Source | null = null;
  start = 0;
  end = 0;
  /** Containers around it there. */
  depth = 0;
  /** An element was set, added or removed since it was read. */
  written = false;
  /** Something in an element was written, as far as anybody has looked. */
  changedBelow = false;
  frozen = false;
  /** Spelling of the whole numbers that a double cannot hold, by position, while they are not written. */
  exact: Map<number, string> | null = null;
  /** Named properties (`index`, `groups` of a match). */
  extra: ScriptObject | null = null;

  constructor(items: Slot[]) {
    this.items = items;
  }
}

/** What a function runs. `self` is its `this`. */
export type Native = (run: Run, self: Value, args: Value[]) => Value;

/** A function: the script's own, or a built-in one (shared by all scripts, never changed). */
export class ScriptFunction {
  readonly kind = kinds.function;
  name: string;
  readonly length: number;
  native: Native;
  readonly builtIn: boolean;
  /** What `new` does; null when it is not a constructor. */
  construct: Native | null = null;
  /** Named properties: a script's own, or those of a built-in constructor (`Object.keys`). */
  properties: ScriptObject | null = null;
  /** Methods of its instances, when it is a class or has got a `prototype`. */
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

/** One match: start and end of each group in turn (group 0 is the whole), -1 for a group that took no part. */
export type MatchSpans = readonly number[];

/** Who pays for work: a run. */
export interface Account {
  burn(units: number): void;
}

/** A compiled regular expression; regular-expression.ts makes them. */
export interface Matcher {
  readonly source: string;
  readonly flags: string;
  readonly groupCount: number;
  readonly groupNames: ReadonlyMap<string, number>;
  /** Instructions: what making it took, and what it holds, is in proportion. */
  readonly size: number;
  /** First match at or after `from` (exactly at `from` when sticky), or null. `account` pays for the work. */
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

/** A value that a script has thrown, on its way to a `catch`. Not an Error: it needs no host stack. */
export class ScriptThrow {
  readonly value: Value;
  constructor(value: Value) {
    this.value = value;
  }
}

/** What one run may use up. Every number is finite, so every run ends. */
export interface ScriptLimits {
  /** Statements, counted nearly as the reference counts them. */
  readonly stepsMax: number;
  /** Units of work of about 10 ns: what statements and built-ins do, in proportion to their input. */
  readonly workMax: number;
  /** Milliseconds of processor time, where work takes longer than it is thought to. */
  readonly msMax: number;
  /** Bytes of strings, arrays and objects made during the run, whether or not they are still held. */
  readonly bytesMax: number;
  /** Calls inside each other that still pass. */
  readonly depthMax: number;
}

type Settable = { -readonly [Name in keyof ScriptLimits]: ScriptLimits[Name] };

const usual: Settable = {
  stepsMax: scriptStepsMax,
  workMax: scriptMsMax * scriptWorkPerMs,
  msMax: scriptMsMax,
  bytesMax: scriptBytesMax,
  depthMax: 65,
};
const lifted: Settable = { ...usual, stepsMax: Number.MAX_SAFE_INTEGER };

/** The limits of a patch when nothing is said: `Patching.MaxStepsForScript` is 10,000. */
export const defaultLimits: ScriptLimits = usual;

/**
 * The limits when the maximum of steps is lifted. Time and memory stay as they are: while a script runs, the process does
 * nothing else.
 */
export const liftedLimits: ScriptLimits = lifted;

/** What an operator may change; `server/` does so at the start, for all scripts of the process. */
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

/** How much longer than its work is thought to take a run may take: the host compiles and collects beside it. */
const lateFactor = 1.5;
/** Less memory than this is not told to the process's account. */
const heldStepBytes = 1024 * 1024;
/** Work after which the clock is looked at. */
const workOfStretch = 20_000;

/** Levels of nested closures that all calls together may hold on the host's stack. */
export const stackLevelsMax = 1_600;
/** Levels that a built-in holds which calls back into the script. */
const callbackLevels = 8;

/** Statements that the reference's own code around a script takes from its steps. */
const stepsOfSurroundings = 5;

/** One run of a script: its account and its surroundings. */
export class Run implements Account {
  stepsLeft: number;
  /** Work until the clock is looked at: `payStretch`. */
  workLeft: number;
  /** Work that is left behind that. */
  workBehind: number;
  bytesLeft: number;
  depthLeft: number;
  levelsLeft = stackLevelsMax;
  readonly limits: ScriptLimits;
  /** Offset in the source of what runs now, for messages. */
  at = 0;
  /** The value of a `return`, and the label of a `break` or `continue`, that is on its way. */
  result: Value = undefined;
  label: string | null = null;
  /** What the patch functions talk to: the `ScriptContext` of patch-functions.ts. */
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

  /** The process's account of memory has what the run made, as far as it was looked at, until `end`. */
  private holdMemory(): void {
    const made = this.limits.bytesMax - this.bytesLeft;
    if (this.isEnded || made - this.heldBytes < heldStepBytes) return;
    processMemory.force("scripts", made - this.heldBytes);
    this.heldBytes = made;
  }

  /** What it made is another's now, or garbage. */
  end(): void {
    this.isEnded = true;
    if (this.heldBytes === 0) return;
    processMemory.give("scripts", this.heldBytes);
    this.heldBytes = 0;
  }

  /** Goes on with what another run has left of its work, time and memory. */
  continueFrom({ workLeft, workBehind, bytesLeft, clock }: Run): void {
    this.workLeft = workLeft;
    this.workBehind = workBehind;
    this.bytesLeft = bytesLeft;
    this.clock = clock;
  }

  /** Work that can still be paid for. */
  get affordableWork(): number {
    return this.workLeft + this.workBehind;
  }

  /** Pays for `units` of work. @throws EngineError script-failed when there is none left. */
  burn(units: number): void {
    this.workLeft -= units;
    if (!(this.workLeft >= 0)) this.payStretch();
  }

  /** Pays for `bytes` of new memory, and for the work of filling them. @throws EngineError script-failed */
  grow(bytes: number): void {
    this.bytesLeft -= bytes;
    this.workLeft -= bytes / 16;
    if (!(this.bytesLeft >= 0)) throw memoryExceeded(this.limits);
    if (!(this.workLeft >= 0)) this.payStretch();
  }

  /** Goes on when steps, work or time of a stretch are used up, and there are more. @throws EngineError script-failed */
  payStretch(): void {
    const { limits } = this;
    if (this.stepsLeft < 0) throw stepsExceeded(limits);
    const taken = Math.min(this.workBehind, workOfStretch - this.workLeft);
    this.workBehind -= taken;
    this.workLeft += taken;
    if (!(this.workLeft >= 0)) throw timeExceeded(limits);
    this.holdMemory();
    if (this.clock === null) this.clock = new ScriptClock();
    else if (this.clock.hasRun(limits.msMax * lateFactor)) throw new ScriptLate(limits);
  }
}

/** The error of a run that has used up its steps. */
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

/** The same error where the clock says it: code that the host has not seen often runs slower than it will soon. */
export class ScriptLate extends EngineError {
  constructor(limits: ScriptLimits) {
    super("script-failed", timeText(limits));
  }
}

/** The error of a run that has used up its memory. */
export function memoryExceeded({ bytesMax }: ScriptLimits): EngineError {
  return new EngineError(
    "script-failed",
    `The script was stopped: it may make and store values of ${Math.round(bytesMax / 1024 / 1024)} MB. You can ` +
      "configure it by modifying the configuration option: 'Patching.MaxMemoryForScriptInMb'.",
  );
}

/** The error of calls inside each other beyond the limit. */
export function recursionExceeded(cause?: unknown): EngineError {
  return new EngineError("script-recursion", "The recursion is forbidden by script host.", {
    cause,
  });
}

export function newObject(): ScriptObject {
  return new ScriptObject([], false, []);
}

/** An error object of scripts; `message` undefined leaves the property out. */
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

/** Positions by key of shared lists: documents of one shape have one. */
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

/** The value at a position, read from the document's text when it has not been yet; ABSENT when deleted. */
export function slotAt(object: ScriptObject, position: number): Value | typeof ABSENT {
  const slot = object.values[position] as Slot;
  if (slot !== LAZY) return slot;
  const value = (object.source as Source).materialize(object, position);
  object.values[position] = value;
  return value;
}

/** Notes that the property at a position was set, which it had before. */
export function markSet(object: ScriptObject, position: number): void {
  object.written = true;
  object.set |= 1 << Math.min(position, 31);
}

/** May the property at a position have been set since it was read? */
export function wasSet(object: ScriptObject, position: number): boolean {
  return (object.set & (1 << Math.min(position, 31))) !== 0;
}

export function hasOwn(object: ScriptObject, key: string): boolean {
  const position = positionOf(object, key);
  return position >= 0 && object.values[position] !== ABSENT;
}

/** An own property's value; undefined when there is none. */
export function getOwn(object: ScriptObject, key: string): Value {
  const position = positionOf(object, key);
  if (position < 0) return undefined;
  const slot = slotAt(object, position);
  return slot === ABSENT ? undefined : slot;
}

/** Sets or adds an own property; a deleted one of a document comes back at its old place. */
export function setOwn(object: ScriptObject, key: string, value: Value): void {
  const position = positionOf(object, key);
  if (position >= 0) {
    markSet(object, position);
    object.values[position] = value;
    return;
  }
  addOwn(object, key, value);
}

/** What a shared list became when a key was added to it: objects that get the same one share the longer list too. */
const grownLists = new WeakMap<string[], string[]>();
/** Longer lists than this are not remembered: each step makes a whole one. */
const grownKeysMax = 64;

/** The shared list that this one becomes with one more key; null when each object has its own. */
function grownList(keys: string[], key: string): string[] | null {
  const grown = grownLists.get(keys);
  if (grown !== undefined) return grown[keys.length] === key ? grown : null;
  if (keys.length >= grownKeysMax) return null;
  const made = [...keys, key];
  grownLists.set(keys, made);
  return made;
}

/** Adds a property that is known not to be there. */
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

/** Removes an own property. A document's keeps its place in case it comes back. Cost: one pass. */
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
 * Calls a function from a built-in. Counts the host's stack, so that built-ins which call back cannot
 * overflow it.
 * @throws EngineError script-recursion
 */
export function callFunction(run: Run, callee: ScriptFunction, self: Value, args: Value[]): Value {
  if (run.levelsLeft < callbackLevels) throw recursionExceeded();
  run.levelsLeft -= callbackLevels;
  const result = callee.native(run, self, args);
  run.levelsLeft += callbackLevels;
  return result;
}
