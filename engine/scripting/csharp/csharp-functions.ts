/**
 * The functions that a compiled C# index calls, in addition to the functions of every index: operators, members,
 * methods of texts, numbers and dates, and access to other documents. The output of indexing/csharp uses their names
 * with the prefix `cs`.
 *
 * Invariant: created once and immutable; they hold no state of a run.
 */
import { foldedName } from "../../base/case-folding.ts";
import type { EngineError } from "../../base/errors.ts";
import { timeSpanText } from "../../indexing/dates/time-spans.ts";
import { builtIn, newArray, newString } from "../built-ins/built-in.ts";
import { indexGlobals } from "../index-functions.ts";
import {
  callFunction,
  getOwn,
  isArray,
  isFunction,
  isObject,
  type Native,
  newObject,
  type Run,
  type ScriptFunction,
  setOwn,
  type Value,
} from "../language/script-values.ts";
import { ScriptDocument } from "../values/script-document.ts";
import { mathFunctions, tried } from "./csharp-math.ts";
import { failed, numberIn, wholeOf } from "./csharp-numbers.ts";
import { patternFunctions } from "./csharp-patterns.ts";
import { elementAt, itemsOf, sequenceFunctions } from "./csharp-sequences.ts";
import * as cs from "./csharp-values.ts";

const { isMissing } = cs;

// Members.

/** `value.name` */
function get(run: Run, _self: Value, [value, name]: Value[]): Value {
  return memberOf(run, value, name as string);
}

function memberOf(run: Run, value: Value, name: string): Value {
  if (isMissing(value)) return name === "HasValue" ? false : undefined;
  if (isArray(value)) {
    if (name === "Length" || name === "Count") return value.items.length;
    return value.extra === null ? undefined : getOwn(value.extra, name);
  }
  if (isObject(value) && numberIn(value) === null) {
    const found = cs.propertyOf(run, value, name);
    if (found !== undefined || (name !== "Id" && name !== "@id")) return found;
    return ScriptDocument.of(value)?.id ?? undefined;
  }
  if (typeof value === "string") {
    if (name === "Length") return value.length;
    const found = cs.textMember(run, value, name);
    if (found !== undefined) return found;
  }
  if (name === "Value") return value;
  if (name === "HasValue") return true;
  throw failed(`'${cs.typeName(value)}' does not contain a definition for '${name}'`);
}

/** `value[index]` */
function at(run: Run, _self: Value, [value, index]: Value[]): Value {
  if (isMissing(value)) return value;
  if (typeof index === "string") return memberOf(run, value, index);
  return elementAt(itemsOf(run, value) ?? [], index);
}

/** `value[index] = item`, of a list or dictionary that the function made. */
function setAt(run: Run, _self: Value, [value, index, item]: Value[]): Value {
  run.grow(64);
  if (isArray(value) && value.source === null) {
    const items = value.items;
    elementAt(items as Value[], index);
    items[numberIn(index) as number] = item;
  } else if (isObject(value) && value.source === null && numberIn(value) === null) {
    setOwn(value, cs.textOf(index), item);
  } else throw failed(`Items of '${cs.typeName(value)}' cannot be assigned`);
  return undefined;
}

function dictionary(run: Run, _self: Value, args: Value[]): Value {
  run.grow(96 + args.length * 16);
  const made = newObject();
  for (let i = 0; i + 1 < args.length; i += 2) setOwn(made, cs.textOf(args[i]), args[i + 1]);
  return made;
}

// Casts and conversions.

function castString(_run: Run, _self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return null;
  if (typeof value === "string") return value;
  throw failed(`Cannot convert type '${cs.typeName(value)}' to 'string'`);
}

function boolean(_run: Run, _self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return false;
  if (typeof value === "boolean") return value;
  const text = typeof value === "string" ? value.trim().toLowerCase() : "";
  if (text === "true" || text === "false") return text === "true";
  const number = numberIn(value);
  if (number !== null) return number !== 0;
  throw failed("System.FormatException: The text was not recognized as a valid Boolean.");
}

function parseDate(_run: Run, _self: Value, [value]: Value[]): Value {
  if (isMissing(value)) return undefined;
  const text = cs.textOf(value);
  const given = typeof value === "string" ? value : text;
  const found =
    cs.dateOf(given) ?? cs.dateOf(`${given.replace(" ", "T")}`) ?? cs.dateOf(`${given}T00:00:00`);
  if (found !== null) return cs.dateText(found);
  throw failed(
    `System.FormatException: String '${given.slice(0, 100)}' was not recognized as a valid DateTime.`,
  );
}

function newDate(_run: Run, _self: Value, args: Value[]): Value {
  const parts = args.map((part) => (typeof part === "string" ? null : numberIn(part)));
  const isUtc = args.at(-1) === "Utc";
  if (args.some(isMissing)) throw failed("System.ArgumentOutOfRangeException: A part is missing.");
  const numbers = parts.filter((part) => part !== null);
  if (numbers.length === 1) return cs.dateText(cs.momentOfTicks(wholeOf(args[0]), isUtc));
  const [year, month = 1, day = 1, hour = 0, minute = 0, second = 0, millisecond = 0] = numbers;
  const date = new Date(0);
  date.setUTCFullYear(year ?? Number.NaN, month - 1, day);
  date.setUTCHours(hour, minute, second, millisecond);
  const isThere = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!isThere)
    throw failed("System.ArgumentOutOfRangeException: The parameters describe no date.");
  return cs.dateText({ time: date.getTime(), ticks: 0, isUtc });
}

function newSpan(_run: Run, _self: Value, args: Value[]): Value {
  const numbers = args.map((part) => numberIn(part) ?? 0);
  if (numbers.length === 1) return timeSpanText(wholeOf(args[0]));
  const [days, hours, minutes, seconds, milliseconds = 0] =
    numbers.length > 3 ? numbers : [0, ...numbers];
  const whole =
    (((days as number) * 24 + (hours as number)) * 60 + (minutes as number)) * 60 +
    (seconds as number);
  return cs.spanText(whole * 1e7 + milliseconds * 1e4);
}

function fromUnit(ticks: number): Native {
  return (_run, _self, [value]) =>
    isMissing(value) ? undefined : cs.spanText((numberIn(value) ?? 0) * ticks);
}

function addUnit(ticks: number): Native {
  return dateMethod((time, count) => cs.moved(time, count * ticks));
}

function dateMethod(work: (time: cs.Moment, count: number) => cs.Moment): Native {
  return (_run, _self, [value, count]) => {
    if (isMissing(value)) return undefined;
    const time = cs.dateOf(value);
    const number = numberIn(count);
    if (time === null) throw failed(`'${cs.typeName(value)}' is no date`);
    return number === null ? undefined : cs.dateText(work(time, number));
  };
}

/** A day beyond the end of the month becomes the last day. */
function addMonths({ time, ticks, isUtc }: cs.Moment, count: number): cs.Moment {
  const date = new Date(time);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + count);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return { time: date.getTime(), ticks, isUtc };
}

// Texts.

function text(run: Run, _self: Value, [value, format]: Value[]): Value {
  const number = numberIn(value);
  if (typeof format !== "string" || format === "" || isMissing(value)) {
    return newString(run, cs.textOf(value));
  }
  if (number !== null) return newString(run, cs.formatNumber(value, format));
  const time = cs.dateOf(value);
  return newString(run, time === null ? cs.textOf(value) : cs.formatDate(time, format));
}

/** `x.ToString(format)`: undefined for a missing value with a format. */
function formatted(run: Run, self: Value, [value, format]: Value[]): Value {
  if (isMissing(value) && format !== undefined) return undefined;
  return text(run, self, [value, format]);
}

function absent(name: string): EngineError {
  return failed(`System.ArgumentNullException: Value cannot be null. (Parameter '${name}')`);
}

/** Returns the text to search for. @throws EngineError script-failed if it is missing, as in .NET */
function wantedText(value: Value): string {
  if (isMissing(value)) throw absent("value");
  return cs.textOf(value);
}

/**
 * Returns the only operand of `string.Join` and `string.Concat`, which the compiler of .NET cannot resolve when it is
 * missing.
 */
function required(_run: Run, _self: Value, [value, method]: Value[]): Value {
  if (!isMissing(value)) return value;
  throw failed(
    "Microsoft.CSharp.RuntimeBinder.RuntimeBinderException: The call is ambiguous between the following methods or " +
      `properties: 'string.${method as string}(…, params string[])' and 'string.${method as string}(…, params object[])'`,
  );
}

/** `{0}`, `{1,10}`, `{0:yyyy}`; `{{` is a brace. */
function format(run: Run, self: Value, [pattern, ...given]: Value[]): Value {
  if (typeof pattern !== "string") throw absent("format");
  const [first] = given;
  const args = given.length === 1 && isArray(first) ? (itemsOf(run, first) ?? []) : given;
  run.burn(pattern.length);
  const made = pattern.replace(
    /\{\{|\}\}|\{(\d+)(?:,(-?\d+))?(?::([^{}]*))?\}/g,
    (whole, position?: string, width?: string, how?: string) => {
      if (position === undefined) return whole.charAt(0);
      if (Number(position) >= args.length) {
        throw failed(
          "System.FormatException: Index (zero based) must be less than the size of the argument list.",
        );
      }
      const shown = text(run, self, [args[Number(position)], how]) as string;
      const size = Math.min(Math.abs(Number(width ?? 0)), 10_000);
      run.grow(size);
      return width?.startsWith("-") ? shown.padEnd(size) : shown.padStart(size);
    },
  );
  return newString(run, made);
}

/** `string.Concat(a, b)` and `$"…"`; `list.Concat(more)`. */
function concat(run: Run, _self: Value, args: Value[]): Value {
  const [first, second] = args;
  if (args.length === 2 && (isArray(first) || isArray(second))) {
    const items = itemsOf(run, first);
    if (items === null) return undefined;
    return newArray(run, [...items, ...(itemsOf(run, second) ?? [])]);
  }
  const parts = args.length === 1 && isArray(first) ? (itemsOf(run, first) ?? []) : args;
  if (args.length === 2 && isMissing(first) && isObject(second)) return undefined;
  return joined(run, parts, "");
}

function join(run: Run, _self: Value, [separator, ...given]: Value[]): Value {
  const [first] = given;
  const isList = given.length === 1 && typeof first !== "string";
  const items = isList ? (itemsOf(run, first) ?? []) : given;
  return joined(run, items, cs.textOf(separator));
}

/** Joined texts, charged before they are created. */
function joined(run: Run, items: readonly Value[], separator: string): string {
  const parts = items.map(cs.textOf);
  for (const part of parts) run.grow(part.length + separator.length);
  return parts.join(separator);
}

/** Returns a method of texts; for a missing value it returns undefined, or `otherwise`. */
function textMethod(
  work: (run: Run, text: string, args: Value[]) => Value,
  otherwise?: Value,
): Native {
  return (run, _self, [value, ...args]) => {
    if (isMissing(value)) return otherwise;
    const found = typeof value === "string" ? value : null;
    if (found === null) throw failed(`'${cs.typeName(value)}' is no text`);
    run.grow(32 + found.length);
    return work(run, found, args);
  };
}

function substring(_run: Run, value: string, [start, length]: Value[]): Value {
  const from = numberIn(start) ?? -1;
  const to = length === undefined ? value.length : from + (numberIn(length) ?? -1);
  if (from < 0 || from > value.length || to < from || to > value.length) {
    throw failed(
      "System.ArgumentOutOfRangeException: Index and length must refer to a location within the string.",
    );
  }
  return value.slice(from, to);
}

function contains(run: Run, _self: Value, [source, item, how]: Value[]): Value {
  if (isMissing(source)) return undefined;
  if (typeof source === "string") {
    run.burn(1 + (source.length >> 3));
    const [whole, part] = folded(source, wantedText(item), how);
    return whole.includes(part);
  }
  return (itemsOf(run, source) ?? []).some((one) => cs.equals(run, one, item));
}

/** Returns both texts prepared for comparison under a `StringComparison`. */
function folded(left: string, right: string, how: Value): [string, string] {
  const ignores = how === true || (typeof how === "string" && how.endsWith("IgnoreCase"));
  return ignores ? [left.toLowerCase(), right.toLowerCase()] : [left, right];
}

function split(run: Run, value: string, args: Value[]): Value {
  const options: Value[] = args.filter((arg) => arg === "RemoveEmptyEntries" || arg === "None");
  const given = args
    .filter((arg) => !options.includes(arg))
    .flatMap((arg) => (isArray(arg) ? (itemsOf(run, arg) ?? []) : [arg]))
    .filter((arg): arg is string => typeof arg === "string" && arg !== "");
  const separators = given.length === 0 ? [" ", "\t", "\n", "\r"] : given;
  run.burn(value.length * separators.length);
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < value.length; ) {
    const found = separators.find((separator) => value.startsWith(separator, i));
    if (found === undefined) i += 1;
    else {
      parts.push(value.slice(from, i));
      i += found.length;
      from = i;
    }
  }
  parts.push(value.slice(from));
  const isKept = !options.includes("RemoveEmptyEntries");
  return newArray(
    run,
    parts.filter((part) => isKept || part !== ""),
  );
}

function indexOf(run: Run, _self: Value, [source, item, from]: Value[]): Value {
  if (isMissing(source)) return undefined;
  if (typeof source !== "string") {
    return (itemsOf(run, source) ?? []).findIndex((one) => cs.equals(run, one, item));
  }
  run.burn(1 + (source.length >> 3));
  const [whole, part] = folded(source, wantedText(item), from);
  return whole.indexOf(part, numberIn(from) ?? 0);
}

function trimmed(value: string, given: Value[], isStart: boolean, isEnd: boolean): string {
  const characters = given.flatMap((arg) => (typeof arg === "string" ? [...arg] : []));
  const isTrimmed = (character: string) =>
    characters.length === 0 ? /\s/.test(character) : characters.includes(character);
  let from = 0;
  let to = value.length;
  while (isStart && from < to && isTrimmed(value.charAt(from))) from += 1;
  while (isEnd && to > from && isTrimmed(value.charAt(to - 1))) to -= 1;
  return value.slice(from, to);
}

function padded(isStart: boolean): Native {
  return textMethod((run, value, [size, fill]) => {
    const length = Math.max(0, numberIn(size) ?? 0);
    run.grow(length);
    const filler = typeof fill === "string" ? fill : " ";
    return isStart ? value.padStart(length, filler) : value.padEnd(length, filler);
  });
}

function replace(run: Run, value: string, [from, to]: Value[]): Value {
  const part = cs.textOf(from);
  if (part === "") throw failed("System.ArgumentException: String cannot be of zero length.");
  return replaced(run, value, part, cs.textOf(to));
}

function replaced(run: Run, value: string, part: string, to: string): string {
  return value.replaceAll(part, () => {
    run.grow(to.length);
    return to;
  });
}

function equals(run: Run, _self: Value, [left, right, how]: Value[]): Value {
  if (typeof left === "string" && typeof right === "string" && how !== undefined) {
    const [first, second] = folded(left, right, how);
    return first === second;
  }
  return cs.equals(run, left, right);
}

function compareTo(run: Run, _self: Value, [left, right]: Value[]): Value {
  return Math.sign(cs.order(run, left, right)) + 0;
}

/** `string.Compare`: in dictionary order, unless an ordinal comparison is requested. */
function compareTexts(run: Run, self: Value, [left, right, how]: Value[]): Value {
  const isOrdinal = typeof how === "string" && how.startsWith("Ordinal");
  if (typeof left !== "string" || typeof right !== "string") {
    return compareTo(run, self, [left, right]);
  }
  run.burn(1 + (Math.min(left.length, right.length) >> 3));
  const [first, second] = folded(left, right, how);
  if (isOrdinal) return first < second ? -1 : first > second ? 1 : 0;
  return Math.sign(collator.compare(first, second)) + 0;
}

const collator = new Intl.Collator("en");

/** Any value is greater than a missing one. */
function comparison(isRight: (found: number) => boolean): Native {
  return (run, _self, [left, right]) => {
    if (isMissing(right) && !isMissing(left)) return isRight(1);
    const found = cs.compare(run, left, right);
    return found !== null && isRight(found);
  };
}

// Access from an index.

function idOf(_run: Run, _self: Value, [value]: Value[]): Value {
  return ScriptDocument.of(value)?.id ?? undefined;
}

function metadataFor(_run: Run, _self: Value, [value]: Value[]): Value {
  return ScriptDocument.of(value)?.metadata();
}

/** Returns a document, or the documents of a list of ids; one of another collection counts as missing. */
function loadDocument(run: Run, self: Value, [id, collection]: Value[]): Value {
  if (isArray(id)) {
    return newArray(
      run,
      (itemsOf(run, id) ?? []).map((one) => loadDocument(run, self, [one, collection])),
    );
  }
  if (typeof id !== "string" || id === "") return undefined;
  const load = indexGlobals.get("load") as ScriptFunction;
  const found = callFunction(run, load, self, [id]);
  const metadata = ScriptDocument.of(found)?.metadata();
  if (isMissing(found) || !isObject(metadata)) return undefined;
  const actual = foldedName(cs.textOf(getOwn(metadata, "@collection")));
  return collection === undefined || actual === collection ? found : undefined;
}

/** `CreateField(name, value, stored, analyzed)` or `CreateField(name, value, options)` */
function createField(run: Run, self: Value, [name, value, stored, analyzed]: Value[]): Value {
  const options = newObject();
  if (isObject(stored) && numberIn(stored) === null) {
    setOwn(options, "storage", getOwn(stored, "Storage"));
    setOwn(options, "indexing", getOwn(stored, "Indexing"));
  } else {
    setOwn(options, "storage", stored === true);
    if (typeof analyzed === "boolean") setOwn(options, "indexing", analyzed ? "Search" : "Exact");
  }
  const create = indexGlobals.get("createField") as ScriptFunction;
  return callFunction(run, create, self, [cs.textOf(name), value, options]);
}

/** `CreateSpatialField(lat, lng)` or `CreateSpatialField(wkt)` */
function createSpatialField(run: Run, self: Value, [first, second]: Value[]): Value {
  const create = indexGlobals.get("createSpatialField") as ScriptFunction;
  const isText = typeof first === "string";
  return callFunction(run, create, self, isText ? [first] : [numberIn(first), numberIn(second)]);
}

/** `CreateVector(value)` */
function createVector(run: Run, self: Value, [value]: Value[]): Value {
  return callFunction(run, indexGlobals.get("createVector") as ScriptFunction, self, [value]);
}

function boost(run: Run, self: Value, [value, factor]: Value[]): Value {
  if (value === undefined) return undefined;
  const call = indexGlobals.get("boost") as ScriptFunction;
  return callFunction(run, call, self, [value, numberIn(factor)]);
}

/** `a + b`, `date.Add(span)`, and `list.Add(item)` of a list that the function made. */
function plus(run: Run, _self: Value, [left, right]: Value[]): Value {
  if (!isArray(left) || left.source !== null) return cs.add(run, left, right);
  run.grow(8);
  left.items.push(right);
  return undefined;
}

function characterTest(pattern: RegExp): Native {
  return (_run, _self, [value, at]) => {
    if (isMissing(value)) return undefined;
    const text = cs.textOf(value);
    return pattern.test(at === undefined ? text : text.slice(numberIn(at) ?? 0));
  };
}

/** An attachment has the members of `loadAttachment`, and one method. */
function attachmentText(run: Run, _self: Value, [attachment, encoding]: Value[]): Value {
  if (isMissing(attachment)) return undefined;
  const read = isObject(attachment) ? getOwn(attachment, "getContentAsString") : undefined;
  if (!isFunction(read)) throw failed(`'${cs.typeName(attachment)}' is no attachment`);
  return callFunction(run, read, attachment, [encoding ?? null]);
}

const functions: Readonly<Record<string, Native>> = {
  ...sequenceFunctions,
  ...patternFunctions,
  ...mathFunctions,
  Add: plus,
  Subtract: (run, _self, [left, right]) => cs.subtract(run, left, right),
  Multiply: (run, _self, [left, right]) => cs.multiply(run, left, right),
  Divide: (run, _self, [left, right]) => cs.divide(run, left, right, "/"),
  Remainder: (run, _self, [left, right]) => cs.divide(run, left, right, "%"),
  Negate: (run, _self, [value]) => cs.negate(run, value),
  Not: (_run, _self, [value]) => (isMissing(value) ? undefined : !value),
  Equals: equals,
  Differs: (run, _self, [left, right]) => !cs.equals(run, left, right),
  Less: comparison((found) => found < 0),
  LessOrEqual: comparison((found) => found <= 0),
  Greater: comparison((found) => found > 0),
  GreaterOrEqual: comparison((found) => found >= 0),
  CompareTo: compareTo,
  CompareTexts: compareTexts,
  String: castString,
  AsString: (_run, _self, [value]) => (typeof value === "string" ? value : null),
  Boolean: boolean,
  ParseDate: parseDate,
  TryDate: tried(parseDate),
  TryBoolean: tried(boolean),
  NewDate: newDate,
  NewSpan: newSpan,
  FromDays: fromUnit(864e9),
  FromHours: fromUnit(36e9),
  FromMinutes: fromUnit(6e8),
  FromSeconds: fromUnit(1e7),
  FromMilliseconds: fromUnit(1e4),
  FromTicks: (_run, _self, [value]) =>
    isMissing(value) ? undefined : timeSpanText(wholeOf(value)),
  AddDays: addUnit(864e9),
  AddHours: addUnit(36e9),
  AddMinutes: addUnit(6e8),
  AddSeconds: addUnit(1e7),
  AddMilliseconds: addUnit(1e4),
  AddTicks: addUnit(1),
  AddMonths: dateMethod(addMonths),
  AddYears: dateMethod((time, count) => addMonths(time, count * 12)),
  ToUniversalTime: (_run, _self, [value]) => value,
  Get: get,
  At: at,
  SetAt: setAt,
  Items: (run, _self, [value]) => newArray(run, itemsOf(run, value) ?? []),
  Value: at,
  GetValueOrDefault: (_run, _self, [value, other]) => (isMissing(value) ? (other ?? 0) : value),
  Dictionary: dictionary,
  ContainsKey: (_run, _self, [value, key]) =>
    isObject(value) ? getOwn(value, cs.textOf(key)) !== undefined : undefined,
  Same: (_run, _self, [value]) => value,
  Text: text,
  ToString: formatted,
  Format: format,
  Concat: concat,
  Join: join,
  Required: required,
  Contains: contains,
  IndexOf: indexOf,
  LastIndexOf: textMethod((_run, value, [part]) => value.lastIndexOf(cs.textOf(part))),
  StartsWith: textMethod((_run, value, [part, how]) => {
    const [whole, start] = folded(value, wantedText(part), how);
    return whole.startsWith(start);
  }, false),
  EndsWith: textMethod((_run, value, [part, how]) => {
    const [whole, end] = folded(value, wantedText(part), how);
    return whole.endsWith(end);
  }, false),
  Substring: textMethod(substring),
  Insert: textMethod((run, value, [start, inserted]) => {
    const head = substring(run, value, [0, start]) as string;
    const text = cs.textOf(inserted);
    run.grow(text.length);
    return head + text + value.slice(head.length);
  }),
  IndexOfAny: textMethod((run, value, [characters, from]) => {
    const wanted = new Set((itemsOf(run, characters ?? null) ?? []).map(cs.textOf));
    run.burn(1 + (value.length >> 3));
    for (let i = Math.max(0, numberIn(from) ?? 0); i < value.length; i += 1) {
      if (wanted.has(value.charAt(i))) return i;
    }
    return -1;
  }),
  CharIsDigit: characterTest(/^\p{Nd}/u),
  CharIsLetter: characterTest(/^\p{L}/u),
  CharIsLetterOrDigit: characterTest(/^[\p{L}\p{Nd}]/u),
  CharIsLower: characterTest(/^\p{Ll}/u),
  CharIsNumber: characterTest(/^\p{N}/u),
  CharIsPunctuation: characterTest(/^\p{P}/u),
  CharIsUpper: characterTest(/^\p{Lu}/u),
  CharIsWhiteSpace: characterTest(/^[\s\u0085]/u),
  Remove: textMethod((run, value, [start, length]) => {
    const head = substring(run, value, [0, start]) as string;
    if (length === undefined) return head;
    return head + value.slice(head.length + (numberIn(length) ?? 0));
  }),
  Replace: textMethod(replace),
  Split: textMethod(split),
  PadLeft: padded(true),
  PadRight: padded(false),
  Trim: textMethod((_run, value, args) => trimmed(value, args, true, true)),
  TrimStart: textMethod((_run, value, args) => trimmed(value, args, true, false)),
  TrimEnd: textMethod((_run, value, args) => trimmed(value, args, false, true)),
  ToLower: textMethod((_run, value) => value.toLowerCase()),
  ToLowerInvariant: textMethod((_run, value) => value.toLowerCase()),
  ToUpper: textMethod((_run, value) => value.toUpperCase()),
  ToUpperInvariant: textMethod((_run, value) => value.toUpperCase()),
  ToCharArray: textMethod((run, value) => newArray(run, value.split(""))),
  IsNullOrEmpty: (_run, _self, [value]) => isMissing(value) || value === "",
  IsNullOrWhiteSpace: (_run, _self, [value]) => isMissing(value) || cs.textOf(value).trim() === "",
  Id: idOf,
  MetadataFor: metadataFor,
  LoadDocument: loadDocument,
  CreateField: createField,
  CreateSpatialField: createSpatialField,
  CreateVector: createVector,
  CompareExchange: (run, self, [key]) =>
    callFunction(run, indexGlobals.get("loadCompareExchangeValue") as ScriptFunction, self, [
      key,
    ]) ?? undefined,
  Boost: boost,
  GetContentAsString: attachmentText,
};

/** Globals of the script generated from a C# index. */
export const csharpGlobals: ReadonlyMap<string, Value> = new Map<string, Value>([
  ...indexGlobals,
  ...Object.entries(functions).map(([name, native]): [string, Value] => [
    `cs${name}`,
    builtIn(name, native.length, native),
  ]),
]);
