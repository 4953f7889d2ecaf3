/**
 * Methods of strings and regular expressions. Each charges for the characters that it scans or creates.
 *
 * Invariant: no host regular expression is built from a script's text; patterns run on regular-expression.ts.
 */

import { EngineError } from "../../base/errors.ts";
import {
  stringLengthMax,
  symbolText,
  toInteger,
  toNumber,
  tooLong,
  toText,
} from "../language/script-operators.ts";
import { methodTables } from "../language/script-properties.ts";
import {
  callFunction,
  isFunction,
  isReference,
  kinds,
  type MatchSpans,
  type Native,
  newObject,
  type Run,
  ScriptArray,
  type ScriptFunction,
  ScriptPattern,
  setOwn,
  throwError,
  traitsOf,
  type Value,
} from "../language/script-values.ts";
import {
  payForCase,
  payForNormalizing,
  payForOrder,
  payForSearch,
} from "../language/text-costs.ts";
import { builtIn, defineAll, namespaceOf, newArray, newString } from "./built-in.ts";
import { bounded } from "./built-ins-array.ts";
import { compilePattern, instructionBytes, instructionUnits } from "./regular-expression.ts";

/** Returns the text that a method is called on, charged by its length. */
function textSelf(run: Run, self: Value): string {
  const text = toText(run, self);
  run.burn(1 + (text.length >> 6));
  return text;
}

/** As `textSelf`, for methods that scan every character. */
function paidText(run: Run, self: Value): string {
  const text = textSelf(run, self);
  run.burn(text.length >> 4);
  return text;
}

function isPattern(value: Value): value is ScriptPattern {
  return isReference(value) && value.kind === kinds.pattern;
}

/** Returns the text to search for in a text. */
function wantedIn(run: Run, text: string, wanted: Value, isBackward = false): string {
  const part = toText(run, wanted);
  payForSearch(run, text, part, isBackward);
  return part;
}

/** Returns a text to compare with the start or end of another. */
function comparedText(run: Run, value: Value): string {
  const text = toText(run, value);
  run.burn(text.length >> 4);
  return text;
}

const searching: Record<string, Native> = {
  indexOf(run, self, [wanted, from]) {
    const text = textSelf(run, self);
    return text.indexOf(wantedIn(run, text, wanted), toInteger(run, from));
  },
  lastIndexOf(run, self, [wanted]) {
    const text = textSelf(run, self);
    return text.lastIndexOf(wantedIn(run, text, wanted, true));
  },
  includes(run, self, [wanted, from]) {
    const text = textSelf(run, self);
    return text.includes(wantedIn(run, text, wanted), toInteger(run, from));
  },
  startsWith: (run, self, [wanted, from]) =>
    textSelf(run, self).startsWith(comparedText(run, wanted), toInteger(run, from)),
  endsWith(run, self, [wanted, end]) {
    const text = textSelf(run, self);
    const wantedText = comparedText(run, wanted);
    return text.endsWith(wantedText, end === undefined ? text.length : toInteger(run, end));
  },
  localeCompare: (run, self, [other]) => {
    const text = textSelf(run, self);
    const otherText = toText(run, other);
    payForOrder(run, text, otherText);
    return text.localeCompare(otherText);
  },
  charAt: (run, self, [position]) => textSelf(run, self).charAt(toInteger(run, position)),
  charCodeAt: (run, self, [position]) => textSelf(run, self).charCodeAt(toInteger(run, position)),
  codePointAt: (run, self, [position]) => textSelf(run, self).codePointAt(toInteger(run, position)),
  at: (run, self, [position]) => textSelf(run, self).at(toInteger(run, position)),
};

function upperCase(run: Run, self: Value): string {
  const text = textSelf(run, self);
  payForCase(run, text);
  return newString(run, text.toUpperCase());
}

function lowerCase(run: Run, self: Value): string {
  const text = textSelf(run, self);
  payForCase(run, text);
  return newString(run, text.toLowerCase());
}

const cutting: Record<string, Native> = {
  slice(run, self, args) {
    const text = textSelf(run, self);
    const start = bounded(run, args[0], text.length, 0);
    return newString(run, text.slice(start, bounded(run, args[1], text.length, text.length)));
  },
  substring(run, self, args) {
    const text = textSelf(run, self);
    const start = toInteger(run, args[0]);
    const end = args[1] === undefined ? text.length : toInteger(run, args[1]);
    return newString(run, text.substring(start, end));
  },
  substr(run, self, args) {
    const text = textSelf(run, self);
    const start = bounded(run, args[0], text.length, 0);
    const count = args[1] === undefined ? text.length : toInteger(run, args[1]);
    return newString(run, text.slice(start, start + Math.max(0, count)));
  },
  trim: (run, self) => newString(run, paidText(run, self).trim()),
  trimStart: (run, self) => newString(run, paidText(run, self).trimStart()),
  trimEnd: (run, self) => newString(run, paidText(run, self).trimEnd()),
  toUpperCase: upperCase,
  toLowerCase: lowerCase,
  toLocaleUpperCase: upperCase,
  toLocaleLowerCase: lowerCase,
  normalize(run, self, [form]) {
    const text = textSelf(run, self);
    const name = form === undefined ? "NFC" : toText(run, form);
    if (!/^NFK?[CD]$/.test(name)) throwError("RangeError", `The normalization form is one of NFC`);
    payForNormalizing(run, text, name);
    return newString(run, text.normalize(name));
  },
  toString: (run: Run, self: Value) => textSelf(run, self),
  valueOf: (run: Run, self: Value) => textSelf(run, self),
  concat(run, self, args) {
    let text = textSelf(run, self);
    for (const arg of args) {
      const part = toText(run, arg);
      text = newString(run, text + part);
    }
    return text;
  },
  repeat(run, self, [count]) {
    const text = textSelf(run, self);
    const times = toNumber(run, count);
    if (times < 0 || times === Number.POSITIVE_INFINITY)
      throwError("RangeError", "Invalid count value");
    const length = text.length * Math.trunc(times || 0);
    checkLength(run, length);
    return text.repeat(Math.trunc(times || 0));
  },
  padStart: (run, self, args) => pad(run, self, args, true),
  padEnd: (run, self, args) => pad(run, self, args, false),
};

/** Charges for a string before it is created. @throws ScriptThrow when it is too long */
function checkLength(run: Run, length: number): void {
  run.grow(32 + length);
  if (length > stringLengthMax) tooLong();
}

function pad(run: Run, self: Value, args: Value[], start: boolean): string {
  const text = textSelf(run, self);
  const length = toInteger(run, args[0]);
  const filler = args[1] === undefined ? " " : toText(run, args[1]);
  if (length <= text.length || filler === "") return text;
  checkLength(run, length);
  return start ? text.padStart(length, filler) : text.padEnd(length, filler);
}

/** Work of creating one part of a text. */
const partWork = 5;

function split(run: Run, self: Value, args: Value[]): Value {
  const text = textSelf(run, self);
  const limit = args[1] === undefined ? 2 ** 32 - 1 : Math.max(0, toInteger(run, args[1]));
  const [separator] = args;
  let parts: Value[];
  if (separator === undefined) parts = [text];
  else if (isPattern(separator)) parts = splitByPattern(run, text, separator, limit);
  else {
    const by = wantedIn(run, text, separator);
    run.grow(by === "" ? text.length * 8 : text.length);
    // One part beyond the quota ends the run, before the host has created them all.
    const affordable = Math.floor(Math.min(run.bytesLeft / 24, run.affordableWork / partWork));
    parts = text.split(by, Math.min(limit, affordable + 1));
  }
  run.burn(parts.length * partWork);
  run.grow(parts.length * 24);
  return new ScriptArray(parts);
}

function splitByPattern(run: Run, text: string, pattern: ScriptPattern, limit: number): Value[] {
  const { matcher } = pattern;
  const parts: Value[] = [];
  let start = 0;
  let from = 0;
  while (from < text.length && parts.length < limit) {
    const match = matcher.match(text, from, run);
    if (match === null || (match[0] as number) >= text.length) break;
    const [at, end] = match as [number, number];
    if (end === start) {
      // An empty match at the last separator: continue one character further.
      from = at + 1;
      continue;
    }
    run.burn(partWork);
    parts.push(newString(run, text.slice(start, at)));
    for (let group = 1; group <= matcher.groupCount; group += 1) {
      parts.push(groupText(text, match, group));
    }
    start = end;
    from = end;
  }
  if (parts.length < limit) parts.push(newString(run, text.slice(start)));
  return parts.slice(0, limit);
}

function groupText(text: string, match: MatchSpans, group: number): string | undefined {
  const start = match[group * 2] as number;
  return start < 0 ? undefined : text.slice(start, match[group * 2 + 1]);
}

/** Returns the result of `match` and `exec`: the groups, with `index`, `input` and `groups`. */
function matchArray(
  run: Run,
  pattern: ScriptPattern,
  text: string,
  match: MatchSpans,
): ScriptArray {
  const { matcher } = pattern;
  const items: Value[] = [];
  for (let group = 0; group <= matcher.groupCount; group += 1) {
    items.push(groupText(text, match, group));
  }
  run.grow(256 + items.length * 40 + (match[1] as number) - (match[0] as number));
  const array = new ScriptArray(items);
  array.extra = newObject();
  setOwn(array.extra, "index", match[0] as number);
  setOwn(array.extra, "input", text);
  if (matcher.groupNames.size > 0) {
    const groups = newObject();
    for (const [name, group] of matcher.groupNames)
      setOwn(groups, name, groupText(text, match, group));
    setOwn(array.extra, "groups", groups);
  }
  return array;
}

/** Returns all matches, from the start. */
function allMatches(run: Run, pattern: ScriptPattern, text: string): MatchSpans[] {
  const matches: MatchSpans[] = [];
  let from = 0;
  while (from <= text.length) {
    const match = pattern.matcher.match(text, from, run);
    if (match === null) break;
    run.grow(128 + match.length * 8);
    run.burn(partWork);
    matches.push(match);
    const end = match[1] as number;
    from = end === match[0] ? end + 1 : end;
  }
  return matches;
}

/** Returns a match as in `exec`: from `lastIndex` on when the pattern is global or sticky. */
function exec(run: Run, pattern: ScriptPattern, text: string): MatchSpans | null {
  const { matcher } = pattern;
  const keeps = matcher.flags.includes("g") || matcher.flags.includes("y");
  const from = keeps ? pattern.lastIndex : 0;
  const outside = from > text.length || from < 0;
  const match = outside ? null : matcher.match(text, from, run);
  if (keeps) pattern.lastIndex = match === null ? 0 : (match[1] as number);
  return match;
}

function patternOf(run: Run, value: Value, flags: string): ScriptPattern {
  if (isPattern(value)) return value;
  return makePattern(run, value === undefined ? "(?:)" : toText(run, value), flags);
}

/** Compiles a pattern of a script; a script can catch its errors. */
function makePattern(run: Run, source: string, flags: string): ScriptPattern {
  run.burn(600);
  run.grow(256 + source.length * 32);
  try {
    const matcher = compilePattern(source, flags);
    run.burn(matcher.size * instructionUnits);
    run.grow(matcher.size * instructionBytes);
    return new ScriptPattern(matcher);
  } catch (error) {
    if (error instanceof EngineError && error.code === "regex-invalid") {
      throwError("SyntaxError", error.message);
    }
    throw error;
  }
}

const matching: Record<string, Native> = {
  split,
  match(run, self, [value]) {
    const text = textSelf(run, self);
    const pattern = patternOf(run, value, "");
    if (!pattern.matcher.flags.includes("g")) {
      const match = exec(run, pattern, text);
      return match === null ? null : matchArray(run, pattern, text, match);
    }
    const matches = allMatches(run, pattern, text);
    if (matches.length === 0) return null;
    return newArray(
      run,
      matches.map((match) => newString(run, groupText(text, match, 0) as string)),
    );
  },
  matchAll(run, self, [value]) {
    const text = textSelf(run, self);
    const pattern = patternOf(run, value, "g");
    if (!pattern.matcher.flags.includes("g")) {
      throwError("TypeError", "String.prototype.matchAll called with a non-global RegExp argument");
    }
    const matches = allMatches(run, pattern, text);
    return newArray(
      run,
      matches.map((match) => matchArray(run, pattern, text, match)),
    );
  },
  search(run, self, [value]) {
    const text = textSelf(run, self);
    const match = patternOf(run, value, "").matcher.match(text, 0, run);
    return match === null ? -1 : (match[0] as number);
  },
  replace: (run, self, args) => replace(run, self, args, false),
  replaceAll: (run, self, args) => replace(run, self, args, true),
};

/** The position and groups of a replaced part. */
interface Part {
  readonly match: MatchSpans;
  readonly names: ReadonlyMap<string, number>;
}

const noNames: ReadonlyMap<string, number> = new Map();

function replace(run: Run, self: Value, args: Value[], all: boolean): Value {
  const text = textSelf(run, self);
  const [wanted, replacement] = args;
  let parts: Part[];
  if (isPattern(wanted)) {
    const { flags, groupNames } = wanted.matcher;
    if (all && !flags.includes("g")) {
      throwError("TypeError", "replaceAll must be called with a global RegExp");
    }
    const first = flags.includes("g") ? null : exec(run, wanted, text);
    const matches = flags.includes("g") ? allMatches(run, wanted, text) : first ? [first] : [];
    parts = matches.map((match) => ({ match, names: groupNames }));
  } else parts = occurrences(run, text, wantedIn(run, text, wanted), all);
  return replaceParts(run, text, parts, replacement);
}

function occurrences(run: Run, text: string, wanted: string, all: boolean): Part[] {
  const parts: Part[] = [];
  let at = text.indexOf(wanted);
  while (at >= 0) {
    run.grow(64);
    run.burn(partWork);
    parts.push({ match: [at, at + wanted.length], names: noNames });
    if (!all || at >= text.length) break;
    at = text.indexOf(wanted, at + Math.max(1, wanted.length));
  }
  return parts;
}

function replaceParts(run: Run, text: string, parts: Part[], replacement: Value): string {
  const template = isFunction(replacement) ? "" : toText(run, replacement);
  let result = "";
  let done = 0;
  for (const { match, names } of parts) {
    run.burn(8);
    const [start, end] = match as [number, number];
    const made = isFunction(replacement)
      ? toText(run, callReplacement(run, text, match, names, replacement))
      : expand(run, template, text, match, names);
    checkLength(run, start - done + made.length);
    if (result.length + made.length > stringLengthMax) tooLong();
    result += text.slice(done, start) + made;
    done = end;
  }
  return newString(run, result + text.slice(done));
}

function callReplacement(
  run: Run,
  text: string,
  match: MatchSpans,
  names: ReadonlyMap<string, number>,
  replacement: ScriptFunction,
): Value {
  const args: Value[] = [];
  for (let group = 0; group < match.length / 2; group += 1)
    args.push(groupText(text, match, group));
  args.push(match[0] as number, text);
  if (names.size > 0) {
    const groups = newObject();
    for (const [name, group] of names) setOwn(groups, name, groupText(text, match, group));
    args.push(groups);
  }
  return callFunction(run, replacement, undefined, args);
}

/** Returns a replacement text with `$&`, `$1`, `$<name>`, `` $` ``, `$'` and `$$` expanded. */
function expand(
  run: Run,
  template: string,
  text: string,
  match: MatchSpans,
  names: ReadonlyMap<string, number>,
): string {
  if (!template.includes("$")) return template;
  run.burn(template.length >> 2);
  const groups = match.length / 2;
  const [start, end] = match as [number, number];
  return template.replace(/\$(\$|&|`|'|\d\d?|<[^>]*>)/g, (whole, what: string) => {
    let made = whole;
    if (what === "$") made = "$";
    else if (what === "&") made = text.slice(start, end);
    else if (what === "`") made = text.slice(0, start);
    else if (what === "'") made = text.slice(end);
    else if (what.startsWith("<")) {
      const group = names.get(what.slice(1, -1));
      if (names.size > 0) made = group === undefined ? "" : (groupText(text, match, group) ?? "");
    } else {
      const two = Number(what);
      const one = Number(what[0]);
      if (two > 0 && two < groups) made = groupText(text, match, two) ?? "";
      else if (one > 0 && one < groups) {
        made = (groupText(text, match, one) ?? "") + what.slice(1);
      }
    }
    checkLength(run, made.length);
    return made;
  });
}

function patternSelf(self: Value): ScriptPattern {
  if (isPattern(self)) return self;
  return throwError("TypeError", "The method is called on something that is no RegExp");
}

const ofPattern: Record<string, Native> = {
  test: (run, self, [text]) => exec(run, patternSelf(self), toText(run, text)) !== null,
  exec(run, self, [value]) {
    const text = toText(run, value);
    const match = exec(run, patternSelf(self), text);
    return match === null ? null : matchArray(run, patternSelf(self), text, match);
  },
  toString: (run: Run, self: Value) => toText(run, patternSelf(self)),
};

function makeString(run: Run, args: Value[]): string {
  if (args.length === 0) return "";
  const [value] = args;
  return isReference(value) && value.kind === kinds.symbol ? symbolText(value) : toText(run, value);
}

/** Fills the method tables of strings and patterns. @returns the constructors `String` and `RegExp` */
export function defineStrings(): readonly ScriptFunction[] {
  for (const group of [searching, cutting, matching]) defineAll(methodTables.string, 1, group);
  defineAll(methodTables.pattern, 1, ofPattern);
  const text = builtIn("String", 1, (run, _self, args) => makeString(run, args));
  text.construct = (run, _self, args) => {
    const boxed = newObject();
    traitsOf(boxed).className = "String";
    traitsOf(boxed).boxed = makeString(run, args);
    return boxed;
  };
  text.properties = namespaceOf({
    fromCharCode: (run, _self, args) =>
      newString(run, String.fromCharCode(...args.slice(0, 1000).map((arg) => toNumber(run, arg)))),
    fromCodePoint: (run, _self, args) => fromCodePoints(run, args),
  });
  const pattern = builtIn("RegExp", 2, newPattern);
  pattern.construct = newPattern;
  return [text, pattern];
}

function fromCodePoints(run: Run, args: Value[]): string {
  let text = "";
  for (const arg of args) {
    const code = toNumber(run, arg);
    if (!Number.isInteger(code) || code < 0 || code > 0x10ffff) {
      throwError("RangeError", `Invalid code point ${code}`);
    }
    text += String.fromCodePoint(code);
  }
  return newString(run, text);
}

function newPattern(run: Run, _self: Value, args: Value[]): Value {
  const [source, flags] = args;
  if (isPattern(source)) {
    return makePattern(
      run,
      source.matcher.source,
      flags === undefined ? source.matcher.flags : toText(run, flags),
    );
  }
  const text = source === undefined ? "(?:)" : toText(run, source);
  return makePattern(run, text, flags === undefined ? "" : toText(run, flags));
}
