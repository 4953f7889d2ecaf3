/**
 * The patterns of C# in indexes: regular expressions (`Regex.IsMatch`), and the tests of `is` and `switch`.
 *
 * Regular expressions run in linear time (regular-expression.ts); look-around and back references are refused.
 *
 * Measured on RavenDB 7.2.7: a value of a document is no `string`, `int` or `double` but a type of the server's own, so
 * `e.Name is string` is false and `e.Count is long` true; its null is an object, so `e.Name is null` is false. A value
 * that an expression computed has the type of C#.
 */
import { EngineError } from "../../base/errors.ts";
import { newArray, newString } from "../built-ins/built-in.ts";
import { compilePattern, instructionUnits } from "../built-ins/regular-expression.ts";
import {
  callFunction,
  isArray,
  isFunction,
  isObject,
  type Matcher,
  type MatchSpans,
  type Native,
  newObject,
  type Run,
  type ScriptObject,
  setOwn,
  type Value,
} from "../language/script-values.ts";
import { failed, isDecimalValue, isLong, numberIn } from "./csharp-numbers.ts";
import * as cs from "./csharp-values.ts";

const { isMissing } = cs;

// Regular expressions.

/** Options of .NET that change nothing here, or are flags. */
const optionFlags: Readonly<Record<string, string>> = {
  None: "",
  Compiled: "",
  CultureInvariant: "",
  NonBacktracking: "",
  IgnoreCase: "i",
  Multiline: "m",
  Singleline: "s",
};

/** Recently compiled patterns: those of active indexes. The oldest is dropped. */
const compiled = new Map<string, Matcher>();
const compiledMax = 64;

function matcherOf(run: Run, pattern: Value, options: Value): Matcher {
  if (typeof pattern !== "string") throw missing("pattern");
  const inline = /^\(\?([imsn]+)(?:-([imsn]+))?\)/.exec(pattern);
  const flags = new Set<string>((inline?.[1] ?? "").replace("n", ""));
  for (const name of typeof options === "string" ? options.split(", ") : []) {
    const flag = optionFlags[name];
    if (flag === undefined) throw failed(`RegexOptions.${name} is not supported in indexes`);
    if (flag !== "") flags.add(flag);
  }
  for (const flag of inline?.[2] ?? "") flags.delete(flag);
  const source = pattern.slice(inline?.[0].length ?? 0);
  const key = `${[...flags].sort().join("")}/${source}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  run.burn(600);
  try {
    const made = compilePattern(source, [...flags].join(""));
    run.burn(made.size * instructionUnits);
    const [oldest] = compiled.keys();
    if (compiled.size >= compiledMax && oldest !== undefined) compiled.delete(oldest);
    compiled.set(key, made);
    return made;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw failed(
      `System.Text.RegularExpressions.RegexParseException: Invalid pattern '${pattern.slice(0, 100)}'. ${error.message}`,
    );
  }
}

function missing(name: string) {
  return failed(`System.ArgumentNullException: Value cannot be null. (Parameter '${name}')`);
}

function inputOf(value: Value): string {
  if (isMissing(value)) throw missing("input");
  if (typeof value === "string") return value;
  throw failed("The best overloaded method match for 'Regex' has some invalid arguments");
}

/** Yields all matches, from the left; an empty match is followed by the next character. */
function* matches(run: Run, matcher: Matcher, text: string): Generator<MatchSpans> {
  for (let from = 0; from <= text.length; ) {
    const found = matcher.match(text, from, run);
    if (found === null) return;
    run.grow(64);
    yield found;
    const [start, end] = found as [number, number];
    from = end > start ? end : end + 1;
  }
}

function spanText(text: string, spans: MatchSpans, group: number): string | null {
  const [start, end] = [spans[group * 2] ?? -1, spans[group * 2 + 1] ?? -1];
  return start < 0 || end < 0 ? null : text.slice(start, end);
}

function part(run: Run, at: number | undefined, found: string | null): ScriptObject {
  run.grow(192 + (found?.length ?? 0));
  const made = newObject();
  setOwn(made, "Value", found ?? "");
  setOwn(made, "Success", found !== null);
  setOwn(made, "Index", found === null ? 0 : (at ?? 0));
  setOwn(made, "Length", (found ?? "").length);
  return made;
}

/** Returns a `Match`: its `Groups` are found by number and by name. */
function matchObject(
  run: Run,
  matcher: Matcher,
  text: string,
  spans: MatchSpans | null,
): ScriptObject {
  const found = spans ?? [];
  const made = part(run, found[0], spanText(text, found, 0));
  const count = matcher.groupCount + 1;
  const groups = newArray(
    run,
    Array.from({ length: count }, (_, i) => part(run, found[i * 2], spanText(text, found, i))),
  );
  groups.extra = newObject();
  for (const [name, group] of matcher.groupNames) {
    setOwn(groups.extra, name, groups.items[group] as Value);
  }
  setOwn(made, "Groups", groups);
  return made;
}

/** `$1`, `${name}`, `$&`, `$0` and `$$` in a replacement of .NET. */
function expanded(matcher: Matcher, text: string, spans: MatchSpans, template: string): string {
  const groups = spans.length / 2;
  return template.replace(
    /\$(?:(\$)|(&)|(\d{1,3})|\{([^{}]+)\})/g,
    (whole, dollar?: string, all?: string, number?: string, name?: string) => {
      if (dollar !== undefined) return "$";
      if (all !== undefined) return spanText(text, spans, 0) ?? "";
      const wanted = number ?? name ?? "";
      const group = /^\d+$/.test(wanted) ? Number(wanted) : matcher.groupNames.get(wanted);
      return group === undefined || group >= groups ? whole : (spanText(text, spans, group) ?? "");
    },
  );
}

function regexReplace(
  run: Run,
  _self: Value,
  [input, pattern, replacement, options]: Value[],
): Value {
  const text = inputOf(input);
  const matcher = matcherOf(run, pattern, options);
  let made = "";
  let done = 0;
  for (const spans of matches(run, matcher, text)) {
    const [start, end] = spans as [number, number];
    const inserted = isFunction(replacement)
      ? cs.textOf(
          callFunction(run, replacement, undefined, [matchObject(run, matcher, text, spans)]),
        )
      : expanded(matcher, text, spans, cs.textOf(replacement));
    run.grow(start - done + inserted.length);
    made += text.slice(done, start) + inserted;
    done = end;
  }
  return newString(run, made + text.slice(done));
}

function regexSplit(run: Run, _self: Value, [input, pattern, options]: Value[]): Value {
  const text = inputOf(input);
  const parts: Value[] = [];
  let done = 0;
  for (const spans of matches(run, matcherOf(run, pattern, options), text)) {
    parts.push(text.slice(done, spans[0]));
    for (let group = 1; group < spans.length / 2; group += 1) {
      const found = spanText(text, spans, group);
      if (found !== null) parts.push(found);
    }
    done = spans[1] as number;
  }
  parts.push(text.slice(done));
  run.grow(text.length + parts.length * 16);
  return newArray(run, parts);
}

const escapedInRegex: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\f": "\\f",
};

// `is` and `switch`.

/**
 * Returns whether a value has a type of C#. `origin`: "document" for a value that was read, else the type to which the
 * text casts it, or "computed".
 */
function hasType(_run: Run, _self: Value, [value, wanted, origin]: Value[]): Value {
  if (wanted === "object") return origin === "document" || !isMissing(value);
  if (origin === "document") return isOfDocument(value, wanted as string);
  if (isMissing(value)) return false;
  if (wanted === "string") return typeof value === "string" && origin !== "DateTime";
  if (wanted === "bool") return typeof value === "boolean";
  if (wanted === "DateTime") return cs.dateOf(value) !== null;
  const number = typeof value === "string" ? null : numberIn(value);
  if (number === null) return isArray(value) && wanted === "IEnumerable";
  if (origin !== "computed") return wanted === origin;
  if (isLong(value)) return wanted === "int";
  return wanted === (isDecimalValue(value) ? "decimal" : "double");
}

function isOfDocument(value: Value, wanted: string): boolean {
  switch (wanted) {
    case "DynamicNullObject":
      return isMissing(value);
    case "bool":
      return typeof value === "boolean";
    case "long":
      return isLong(value);
    case "DateTime":
      return cs.dateOf(value) !== null;
    case "DynamicArray":
    case "IEnumerable":
      return isArray(value);
    case "DynamicBlittableJson":
      return isObject(value) && !isArray(value) && numberIn(value) === null;
    default:
      return false;
  }
}

/** Returns the type of a constant in a pattern: it matches values of this type only. */
function matchesConstant(run: Run, self: Value, [value, constant, type, origin]: Value[]): Value {
  if (isMissing(constant)) return origin !== "document" && isMissing(value);
  return hasType(run, self, [value, type, origin]) === true && cs.equals(run, value, constant);
}

function matchesRelation(
  run: Run,
  self: Value,
  [value, operator, constant, type, origin]: Value[],
): Value {
  if (hasType(run, self, [value, type, origin]) !== true) return false;
  const found = cs.compare(run, value, constant);
  if (found === null) return false;
  if (operator === "<") return found < 0;
  if (operator === "<=") return found <= 0;
  return operator === ">" ? found > 0 : found >= 0;
}

/** By name without `cs`. */
export const patternFunctions: Readonly<Record<string, Native>> = {
  RegexIsMatch: (run, _self, [input, pattern, options]) =>
    matcherOf(run, pattern, options).match(inputOf(input), 0, run) !== null,
  RegexMatch: (run, _self, [input, pattern, options]) => {
    const matcher = matcherOf(run, pattern, options);
    const text = inputOf(input);
    return matchObject(run, matcher, text, matcher.match(text, 0, run));
  },
  RegexMatches: (run, _self, [input, pattern, options]) => {
    const matcher = matcherOf(run, pattern, options);
    const text = inputOf(input);
    const found = [...matches(run, matcher, text)];
    return newArray(
      run,
      found.map((spans) => matchObject(run, matcher, text, spans)),
    );
  },
  RegexReplace: regexReplace,
  RegexSplit: regexSplit,
  RegexEscape: (run, _self, [value]) => {
    const text = inputOf(value);
    run.grow(text.length * 2);
    return text.replace(
      /[\\*+?|{[()^$.# \n\r\t\f]/g,
      (found) => escapedInRegex[found] ?? `\\${found}`,
    );
  },
  Is: hasType,
  IsConstant: matchesConstant,
  IsRelation: matchesRelation,
  /** The operand of a pattern is computed once. */
  Match: (run, _self, [value, test]) =>
    isFunction(test) ? callFunction(run, test, undefined, [value]) : undefined,
  True: () => true,
  Unmatched: (_run, _self, [value]) => {
    throw failed(
      `System.Runtime.CompilerServices.SwitchExpressionException: Non-exhaustive switch expression failed to match its input. Unmatched value was ${cs.textOf(value).slice(0, 100)}.`,
    );
  },
};
