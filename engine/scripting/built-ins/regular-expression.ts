/**
 * Regular expressions in linear time: a pattern is compiled to a small program, and all its threads walk the text
 * together, each position once (a Pike machine with captures). The time is at most text length times program length, so
 * untrusted patterns are safe.
 *
 * Supports classes, quantifiers (greedy and lazy), groups (also named), alternation, anchors, `\b`, `\d \w \s`,
 * `\p{L}`-like categories, and the flags d g i m s u y. Back references and lookaround are not possible in linear time
 * and are refused by name. Used by scripts and by RQL's `regex()`, which only needs to know whether there is a match:
 * text-automaton.ts.
 *
 * Invariants:
 * - a program has at most `programSizeMax` instructions, whatever the repetitions in the pattern;
 * - a thread list holds each instruction at most once, in order of preference.
 */

import { EngineError } from "../../base/errors.ts";
import type { Account, Matcher, MatchSpans } from "../language/script-values.ts";
import {
  type AutomatonProgram,
  AutomatonSpace,
  type Side,
  TextAutomaton,
} from "./text-automaton.ts";

/** Maximum instructions of a pattern. */
const programSizeMax = 5_000;
/** Cost of generating an instruction, and its memory use in bytes. */
export const instructionUnits = 8;
export const instructionBytes = 64;
/** Maximum UTF-16 units of a pattern. */
const patternLengthMax = 4_096;
/** Maximum nesting of groups. */
const patternDepthMax = 100;

const ops = {
  char: 0,
  set: 1,
  any: 2,
  split: 3,
  jump: 4,
  save: 5,
  assert: 6,
  match: 7,
} as const;

type Assertion = "lineStart" | "lineEnd" | "textStart" | "textEnd" | "boundary" | "inside";

/** A set of characters: sorted pairs of first and last, and Unicode categories. */
interface CharacterSet {
  ranges: number[];
  categories: RegExp[];
  negated: boolean;
}

type Node =
  | { kind: "empty" }
  | { kind: "char"; code: number }
  | { kind: "set"; set: CharacterSet }
  | { kind: "any" }
  | { kind: "assert"; what: Assertion }
  | { kind: "group"; index: number; body: Node }
  | { kind: "sequence"; parts: Node[] }
  | { kind: "either"; options: Node[] }
  | { kind: "repeat"; body: Node; min: number; max: number; lazy: boolean };

function patternError(pattern: string, reason: string): EngineError {
  return new EngineError("regex-invalid", `Invalid regular expression: /${pattern}/: ${reason}`);
}

const digitRanges = [48, 57];
const wordRanges = [48, 57, 65, 90, 95, 95, 97, 122];
const spaceRanges = [
  9, 13, 32, 32, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f,
  0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff,
];

function complement(ranges: readonly number[]): number[] {
  const result: number[] = [];
  let next = 0;
  for (let i = 0; i < ranges.length; i += 2) {
    const first = ranges[i] as number;
    if (first > next) result.push(next, first - 1);
    next = (ranges[i + 1] as number) + 1;
  }
  result.push(next, 0x10ffff);
  return result;
}

/** Categories allowed in a pattern, as fixed host patterns for one character: none is built from input. */
const categories = new Map<string, RegExp>([
  ["L", /^\p{L}$/u],
  ["Lu", /^\p{Lu}$/u],
  ["Ll", /^\p{Ll}$/u],
  ["Lt", /^\p{Lt}$/u],
  ["Lm", /^\p{Lm}$/u],
  ["Lo", /^\p{Lo}$/u],
  ["M", /^\p{M}$/u],
  ["N", /^\p{N}$/u],
  ["Nd", /^\p{Nd}$/u],
  ["Nl", /^\p{Nl}$/u],
  ["P", /^\p{P}$/u],
  ["S", /^\p{S}$/u],
  ["Sc", /^\p{Sc}$/u],
  ["Z", /^\p{Z}$/u],
  ["Zs", /^\p{Zs}$/u],
  ["C", /^\p{C}$/u],
]);

/** Parses a pattern. Grammar: either = sequence { "|" sequence }; sequence = { atom [ quantifier ] }. */
class PatternParser {
  private at = 0;
  private depth = 0;
  groupCount = 0;
  readonly names = new Map<string, number>();
  private readonly pattern: string;

  constructor(pattern: string) {
    this.pattern = pattern;
  }

  whole(): Node {
    const node = this.either();
    if (this.at < this.pattern.length) throw this.error("Unmatched ')'");
    return node;
  }

  private error(reason: string): EngineError {
    return patternError(this.pattern, reason);
  }

  private peek(text: string): boolean {
    return this.pattern.startsWith(text, this.at);
  }

  private take(text: string): boolean {
    if (!this.peek(text)) return false;
    this.at += text.length;
    return true;
  }

  private either(): Node {
    this.depth += 1;
    if (this.depth > patternDepthMax) throw this.error("Too many groups inside each other");
    const options = [this.sequence()];
    while (this.take("|")) options.push(this.sequence());
    this.depth -= 1;
    return options.length === 1 ? (options[0] as Node) : { kind: "either", options };
  }

  private sequence(): Node {
    const parts: Node[] = [];
    while (this.at < this.pattern.length && !this.peek("|") && !this.peek(")")) {
      parts.push(this.quantified(this.atom()));
    }
    if (parts.length === 1) return parts[0] as Node;
    return parts.length === 0 ? { kind: "empty" } : { kind: "sequence", parts };
  }

  private quantified(body: Node): Node {
    const bounds = this.bounds();
    if (bounds === null) return body;
    if (body.kind === "assert") throw this.error("Nothing to repeat");
    const lazy = this.take("?");
    if (!lazy && this.peek("+")) throw this.error("Possessive quantifiers are not supported");
    const node: Node = { kind: "repeat", body, min: bounds[0], max: bounds[1], lazy };
    if (/^[*+?]|^\{\d+(,\d*)?\}/.test(this.pattern.slice(this.at, this.at + 16))) {
      throw this.error("Nothing to repeat");
    }
    return node;
  }

  private bounds(): [number, number] | null {
    if (this.take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.take("?")) return [0, 1];
    if (!this.peek("{")) return null;
    const close = this.pattern.indexOf("}", this.at);
    const parts = /^(\d{1,9})(,(\d{0,9}))?$/.exec(this.pattern.slice(this.at + 1, close));
    if (parts === null) return null;
    this.at = close + 1;
    const min = Number(parts[1]);
    let max = min;
    if (parts[2] !== undefined) max = parts[3] ? Number(parts[3]) : Number.POSITIVE_INFINITY;
    if (max < min) throw this.error("numbers out of order in {} quantifier");
    return [min, max];
  }

  private atom(): Node {
    const char = this.pattern[this.at] as string;
    switch (char) {
      case "^":
        this.at += 1;
        return { kind: "assert", what: "lineStart" };
      case "$":
        this.at += 1;
        return { kind: "assert", what: "lineEnd" };
      case ".":
        this.at += 1;
        return { kind: "any" };
      case "(":
        return this.group();
      case "[":
        return this.characterClass();
      case "\\":
        return this.escape();
      case "*":
      case "+":
      case "?":
        throw this.error("Nothing to repeat");
      default:
        return { kind: "char", code: this.codePoint() };
    }
  }

  private codePoint(): number {
    const code = this.pattern.codePointAt(this.at) as number;
    this.at += code > 0xffff ? 2 : 1;
    return code;
  }

  private group(): Node {
    this.at += 1;
    if (this.peek("?=") || this.peek("?!") || this.peek("?<=") || this.peek("?<!")) {
      throw this.error("Lookahead and lookbehind are not supported");
    }
    let index = 0;
    if (this.take("?:")) index = -1;
    else if (this.take("?<") || this.take("?'")) {
      const name = /^([\p{L}_$][\p{L}\p{N}_$]{0,99})[>']/u.exec(
        this.pattern.slice(this.at, this.at + 210),
      );
      if (name === null) throw this.error("Invalid capture group name");
      const text = name[1] as string;
      if (this.names.has(text)) throw this.error("Duplicate capture group name");
      this.at += text.length + 1;
      this.names.set(text, this.groupCount + 1);
    } else if (this.peek("?")) throw this.error("Invalid group");
    if (index === 0) {
      this.groupCount += 1;
      index = this.groupCount;
    }
    const body = this.either();
    if (!this.take(")")) throw this.error("Unterminated group");
    return index < 0 ? body : { kind: "group", index, body };
  }

  private escape(): Node {
    const next = this.pattern[this.at + 1];
    if (next === undefined) throw this.error("\\ at end of pattern");
    const what = assertions.get(next);
    if (what !== undefined) {
      this.at += 2;
      return { kind: "assert", what };
    }
    if ((next >= "1" && next <= "9") || next === "k") {
      throw this.error("Back references are not supported");
    }
    const set = this.classEscape();
    if (set !== null) return { kind: "set", set };
    this.at += 1;
    return { kind: "char", code: this.escapedCode() };
  }

  /** `\d \D \w \W \s \S \p{..} \P{..}`; null for any other escape. */
  private classEscape(): CharacterSet | null {
    const letter = this.pattern[this.at + 1] as string;
    const ranges = classRanges.get(letter.toLowerCase());
    if (ranges !== undefined) {
      this.at += 2;
      const negated = letter !== letter.toLowerCase();
      return { ranges: negated ? complement(ranges) : [...ranges], categories: [], negated: false };
    }
    if (letter !== "p" && letter !== "P") return null;
    const name = /^\{(\w{1,20})\}/.exec(this.pattern.slice(this.at + 2, this.at + 26));
    const category = name === null ? undefined : categories.get(name[1] as string);
    if (name === null || category === undefined) throw this.error("Invalid property name");
    this.at += 2 + name[0].length;
    return { ranges: [], categories: [category], negated: letter === "P" };
  }

  /** Returns the character of an escape; the cursor is after the backslash. */
  private escapedCode(): number {
    const letter = this.pattern[this.at] as string;
    const simple = simpleEscapes.get(letter);
    if (simple !== undefined) {
      this.at += 1;
      return simple;
    }
    const rest = this.pattern.slice(this.at, this.at + 10);
    const hex = /^x([0-9a-fA-F]{2})|^u([0-9a-fA-F]{4})|^u\{([0-9a-fA-F]{1,6})\}/.exec(rest);
    if (hex !== null) {
      this.at += hex[0].length;
      return Number.parseInt(hex[1] ?? hex[2] ?? (hex[3] as string), 16);
    }
    const control = /^c([a-zA-Z])/.exec(rest);
    if (control !== null) {
      this.at += 2;
      return (control[1] as string).charCodeAt(0) % 32;
    }
    return this.codePoint();
  }

  private characterClass(): Node {
    this.at += 1;
    const set: CharacterSet = { ranges: [], categories: [], negated: this.take("^") };
    const pairs: [number, number][] = [];
    while (!this.take("]")) {
      if (this.at >= this.pattern.length) throw this.error("Unterminated character class");
      const first = this.classAtom(set, pairs);
      if (first < 0) continue;
      let last = first;
      if (
        this.peek("-") &&
        this.pattern[this.at + 1] !== "]" &&
        this.at + 1 < this.pattern.length
      ) {
        this.at += 1;
        last = this.classAtom(set, pairs);
        if (last < 0) {
          pairs.push([45, 45]);
          last = first;
        }
        if (last < first) throw this.error("Range out of order in character class");
      }
      pairs.push([first, last]);
    }
    set.ranges = mergeRanges(pairs);
    return { kind: "set", set };
  }

  /** One character of a class, or -1 after adding a set. */
  private classAtom(set: CharacterSet, pairs: [number, number][]): number {
    if (!this.peek("\\")) return this.codePoint();
    if (this.at + 1 >= this.pattern.length) throw this.error("\\ at end of pattern");
    const inner = this.classEscape();
    if (inner === null) {
      this.at += 1;
      if (this.take("b")) return 8;
      return this.escapedCode();
    }
    if (inner.negated) throw this.error("Negated categories inside a class are not supported");
    for (let i = 0; i < inner.ranges.length; i += 2) {
      pairs.push([inner.ranges[i] as number, inner.ranges[i + 1] as number]);
    }
    set.categories.push(...inner.categories);
    return -1;
  }
}

const assertions = new Map<string, Assertion>([
  ["b", "boundary"],
  ["B", "inside"],
  ["A", "textStart"],
  ["z", "textEnd"],
  ["Z", "textEnd"],
]);

const classRanges = new Map<string, readonly number[]>([
  ["d", digitRanges],
  ["w", wordRanges],
  ["s", spaceRanges],
]);

const simpleEscapes = new Map<string, number>([
  ["n", 10],
  ["r", 13],
  ["t", 9],
  ["v", 11],
  ["f", 12],
  ["0", 0],
]);

function mergeRanges(pairs: [number, number][]): number[] {
  pairs.sort((a, b) => a[0] - b[0]);
  const result: number[] = [];
  for (const [first, last] of pairs) {
    const end = result.at(-1);
    if (end !== undefined && first <= end + 1) {
      if (last > end) result[result.length - 1] = last;
    } else result.push(first, last);
  }
  return result;
}

/** A pattern's instructions: operation and two operands each. */
class Program {
  readonly operations: number[] = [];
  readonly first: number[] = [];
  readonly second: number[] = [];
  readonly sets: CharacterSet[] = [];
  readonly assertions: Assertion[] = [];
  private readonly pattern: string;
  private readonly fold: boolean;

  constructor(pattern: string, node: Node, fold: boolean) {
    this.pattern = pattern;
    this.fold = fold;
    this.emit(ops.save, 0, 0);
    this.node(node);
    this.emit(ops.save, 1, 0);
    this.emit(ops.match, 0, 0);
  }

  private emit(operation: number, first: number, second: number): number {
    if (this.operations.length >= programSizeMax) {
      throw patternError(this.pattern, "The expression is too large");
    }
    this.operations.push(operation);
    this.first.push(first);
    this.second.push(second);
    return this.operations.length - 1;
  }

  private get next(): number {
    return this.operations.length;
  }

  private node(node: Node): void {
    switch (node.kind) {
      case "empty":
        return;
      case "char":
        this.emit(ops.char, this.fold ? foldCase(node.code) : node.code, 0);
        return;
      case "any":
        this.emit(ops.any, 0, 0);
        return;
      case "set":
        this.emit(ops.set, this.sets.push(node.set) - 1, 0);
        return;
      case "assert":
        this.emit(ops.assert, this.assertions.push(node.what) - 1, 0);
        return;
      case "group":
        this.emit(ops.save, node.index * 2, 0);
        this.node(node.body);
        this.emit(ops.save, node.index * 2 + 1, 0);
        return;
      case "sequence":
        for (const part of node.parts) this.node(part);
        return;
      case "either":
        this.either(node.options);
        return;
      case "repeat":
        this.repeat(node.body, node.min, node.max, node.lazy);
    }
  }

  private either(options: Node[]): void {
    const ends: number[] = [];
    for (const [i, option] of options.entries()) {
      if (i === options.length - 1) {
        this.node(option);
        break;
      }
      const split = this.emit(ops.split, 0, 0);
      this.first[split] = this.next;
      this.node(option);
      ends.push(this.emit(ops.jump, 0, 0));
      this.second[split] = this.next;
    }
    for (const end of ends) this.first[end] = this.next;
  }

  private repeat(body: Node, min: number, max: number, lazy: boolean): void {
    // An empty body adds no instructions, so the number of repetitions is bounded here.
    if (min > programSizeMax) throw patternError(this.pattern, "The expression is too large");
    for (let i = 0; i < min; i += 1) this.node(body);
    if (max === Number.POSITIVE_INFINITY) {
      const split = this.emit(ops.split, 0, 0);
      this.node(body);
      this.emit(ops.jump, split, 0);
      this.target(split, split + 1, this.next, lazy);
      return;
    }
    const splits: number[] = [];
    for (let i = min; i < max; i += 1) {
      splits.push(this.emit(ops.split, 0, 0));
      this.node(body);
    }
    for (const split of splits) this.target(split, split + 1, this.next, lazy);
  }

  private target(split: number, into: number, past: number, lazy: boolean): void {
    this.first[split] = lazy ? past : into;
    this.second[split] = lazy ? into : past;
  }
}

function foldCase(code: number): number {
  if (code < 128) return code >= 65 && code <= 90 ? code + 32 : code;
  const lower = String.fromCodePoint(code).toLowerCase();
  const folded = lower.codePointAt(0) as number;
  return lower.length === (folded > 0xffff ? 2 : 1) ? folded : code;
}

function isWord(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    (code >= 48 && code <= 57) ||
    code === 95
  );
}

function isLineEnd(code: number): boolean {
  return code === 10 || code === 13 || code === 0x2028 || code === 0x2029;
}

function inRanges(ranges: readonly number[], code: number): boolean {
  for (let i = 0; i < ranges.length; i += 2) {
    if (code < (ranges[i] as number)) return false;
    if (code <= (ranges[i + 1] as number)) return true;
  }
  return false;
}

function inSet(set: CharacterSet, code: number): boolean {
  if (inRanges(set.ranges, code)) return true;
  if (set.categories.length === 0) return false;
  const text = String.fromCodePoint(code);
  return set.categories.some((category) => category.test(text));
}

/** The threads at one position of the text: instructions in order of preference, with their captures. */
class ThreadList {
  readonly instructions: Int32Array;
  readonly captures: (readonly number[])[] = [];
  count = 0;
  /** Position + 1 at which an instruction was last added: shows whether it is in the list. */
  readonly seen: Int32Array;

  constructor(size: number) {
    this.instructions = new Int32Array(size);
    this.seen = new Int32Array(size);
  }
}

class PikeMatcher implements Matcher {
  readonly source: string;
  readonly flags: string;
  readonly groupCount: number;
  readonly groupNames: ReadonlyMap<string, number>;
  readonly program: Program;
  private readonly fold: boolean;
  private readonly multiline: boolean;
  private readonly dotAll: boolean;
  private readonly sticky: boolean;
  private readonly unicode: boolean;
  /** Instructions visited since the last charge. */
  private work = 0;

  constructor(source: string, flags: string) {
    const parser = new PatternParser(source);
    const node = parser.whole();
    this.source = source;
    this.flags = flags;
    this.groupCount = parser.groupCount;
    this.groupNames = parser.names;
    this.fold = flags.includes("i");
    this.multiline = flags.includes("m");
    this.dotAll = flags.includes("s");
    this.sticky = flags.includes("y");
    this.unicode = flags.includes("u");
    this.program = new Program(source, node, this.fold);
  }

  get size(): number {
    return this.program.operations.length;
  }

  match(text: string, from: number, account: Account): MatchSpans | null {
    const { size } = this;
    account.burn(size / 8 + 4);
    let current = new ThreadList(size);
    let next = new ThreadList(size);
    let found: readonly number[] | null = null;
    const empty = new Array<number>((this.groupCount + 1) * 2).fill(-1);
    for (let at = from; ; ) {
      const mayBegin = found === null && (!this.sticky || at === from);
      if (mayBegin) this.add(current, 0, empty, text, at);
      if (current.count === 0 && (found !== null || this.sticky)) break;
      account.burn(this.work + 1);
      this.work = 0;
      const code = at < text.length ? this.codeAt(text, at) : -1;
      const width = code > 0xffff ? 2 : 1;
      const ended = this.step(current, next, text, at, code, width);
      if (ended !== null) found = ended;
      current.count = 0;
      [current, next] = [next, current];
      if (at >= text.length) break;
      at += width;
    }
    return found;
  }

  private codeAt(text: string, at: number): number {
    return this.unicode ? (text.codePointAt(at) as number) : text.charCodeAt(at);
  }

  /** Advances every thread by one character. @returns the captures of the best matching thread */
  private step(
    current: ThreadList,
    next: ThreadList,
    text: string,
    at: number,
    code: number,
    width: number,
  ): readonly number[] | null {
    const { operations } = this.program;
    const folded = this.fold && code >= 0 ? foldCase(code) : code;
    for (let i = 0; i < current.count; i += 1) {
      const instruction = current.instructions[i] as number;
      const captures = current.captures[i] as readonly number[];
      const operation = operations[instruction];
      if (operation === ops.match) return captures;
      if (code < 0) continue;
      if (this.passes(instruction, code, folded))
        this.add(next, instruction + 1, captures, text, at + width);
    }
    return null;
  }

  /** Returns whether an instruction accepts this character. `folded`: the case-folded character, if case is ignored. */
  passes(instruction: number, code: number, folded = this.fold ? foldCase(code) : code): boolean {
    const operand = this.program.first[instruction] as number;
    const operation = this.program.operations[instruction];
    if (operation === ops.any) return this.dotAll || !isLineEnd(code);
    if (operation === ops.char) return folded === operand;
    return this.inClass(this.program.sets[operand] as CharacterSet, code, folded);
  }

  private inClass(set: CharacterSet, code: number, folded: number): boolean {
    let inside = inSet(set, code);
    if (!inside && this.fold) {
      inside = inSet(set, folded) || inSet(set, upperOf(folded));
    }
    return inside !== set.negated;
  }

  /** Adds a thread, following the instructions that consume no character. */
  private add(
    list: ThreadList,
    start: number,
    startCaptures: readonly number[],
    text: string,
    at: number,
  ): void {
    const { operations, first, second, assertions: asserted } = this.program;
    const stack: number[] = [start];
    const captured: (readonly number[])[] = [startCaptures];
    while (stack.length > 0) {
      this.work += 2;
      const instruction = stack.pop() as number;
      let captures = captured.pop() as readonly number[];
      if (list.seen[instruction] === at + 1) continue;
      list.seen[instruction] = at + 1;
      const operand = first[instruction] as number;
      switch (operations[instruction]) {
        case ops.jump:
          stack.push(operand);
          captured.push(captures);
          break;
        case ops.split:
          stack.push(second[instruction] as number, operand);
          captured.push(captures, captures);
          break;
        case ops.save: {
          const copy = captures.slice();
          copy[operand] = at;
          this.work += copy.length >> 3;
          captures = copy;
          stack.push(instruction + 1);
          captured.push(captures);
          break;
        }
        case ops.assert:
          if (!this.holds(asserted[operand] as Assertion, text, at)) break;
          stack.push(instruction + 1);
          captured.push(captures);
          break;
        default:
          list.instructions[list.count] = instruction;
          list.captures[list.count] = captures;
          list.count += 1;
      }
    }
  }

  private holds(what: Assertion, text: string, at: number): boolean {
    switch (what) {
      case "lineStart":
        return at === 0 || (this.multiline && isLineEnd(text.charCodeAt(at - 1)));
      case "lineEnd":
        return at === text.length || (this.multiline && isLineEnd(text.charCodeAt(at)));
      case "textStart":
        return at === 0;
      case "textEnd":
        return at === text.length;
      default: {
        const before = at > 0 && isWord(text.charCodeAt(at - 1));
        const after = at < text.length && isWord(text.charCodeAt(at));
        return (before !== after) === (what === "boundary");
      }
    }
  }
}

function upperOf(code: number): number {
  const upper = String.fromCodePoint(code).toUpperCase();
  const result = upper.codePointAt(0) as number;
  return upper.length === (result > 0xffff ? 2 : 1) ? result : code;
}

/**
 * Compiles a pattern in script syntax. `flags` is a set of d g i m s u y.
 * @throws EngineError regex-invalid for an invalid pattern, or a pattern that cannot be matched in linear time
 */
export function compilePattern(source: string, flags: string): Matcher {
  if (!/^[dgimsuy]*$/.test(flags) || new Set(flags).size !== flags.length) {
    throw new EngineError(
      "regex-invalid",
      `Invalid flags supplied to RegExp constructor '${flags}'`,
    );
  }
  if (source.length > patternLengthMax) throw patternError(source.slice(0, 60), "It is too long");
  return new PikeMatcher(source, [...flags].sort().join(""));
}

/** Compiles a pattern to a test whether it matches anywhere in a text. */
function compileAutomaton(source: string, flags: string, space: AutomatonSpace): TextAutomaton {
  if (source.length > patternLengthMax) throw patternError(source.slice(0, 60), "It is too long");
  const tests = new PatternTests(source, flags);
  return new TextAutomaton(tests, sideOf, space);
}

function sideOf(code: number): Side {
  return sides[(isWord(code) ? 1 : 0) + (isLineEnd(code) ? 2 : 0)] as Side;
}

const sides: readonly Side[] = [0, 1, 2].map((which) => ({
  isEdge: false,
  isWord: which === 1,
  isLineEnd: which === 2,
}));

const automatonKinds = {
  [ops.char]: "consume",
  [ops.set]: "consume",
  [ops.any]: "consume",
  [ops.split]: "split",
  [ops.jump]: "jump",
  [ops.save]: "pass",
  [ops.assert]: "assert",
  [ops.match]: "match",
} as const;

/** A program in the form that automata need. */
class PatternTests implements AutomatonProgram {
  private readonly program: Program;
  private readonly matcher: PikeMatcher;
  private readonly multiline: boolean;
  /** By instruction: the number of its test. */
  private readonly tests: Int32Array;
  /** By test: an instruction that uses it. */
  private readonly testers: number[] = [];

  constructor(source: string, flags: string) {
    this.matcher = new PikeMatcher(source, flags);
    this.program = this.matcher.program;
    this.multiline = flags.includes("m");
    const known = new Map<unknown, number>();
    this.tests = Int32Array.from(this.program.operations, (operation, at) => {
      if (automatonKinds[operation as keyof typeof automatonKinds] !== "consume") return -1;
      const operand = this.program.first[at] as number;
      const key =
        operation === ops.set
          ? this.program.sets[operand]
          : operation === ops.any
            ? "any"
            : operand;
      const test = known.get(key) ?? this.testers.push(at) - 1;
      known.set(key, test);
      return test;
    });
  }

  get size(): number {
    return this.program.operations.length;
  }

  get testCount(): number {
    return this.testers.length;
  }

  kindOf(instruction: number) {
    const operation = this.program.operations[instruction] as keyof typeof automatonKinds;
    return automatonKinds[operation];
  }

  firstOf(instruction: number): number {
    return this.program.first[instruction] as number;
  }

  secondOf(instruction: number): number {
    return this.program.second[instruction] as number;
  }

  testOf(instruction: number): number {
    return this.tests[instruction] as number;
  }

  passes(test: number, code: number): boolean {
    return this.matcher.passes(this.testers[test] as number, code);
  }

  holds(instruction: number, before: Side, after: Side): boolean {
    const what = this.program.assertions[this.firstOf(instruction)];
    switch (what) {
      case "lineStart":
        return before.isEdge || (this.multiline && before.isLineEnd);
      case "lineEnd":
        return after.isEdge || (this.multiline && after.isLineEnd);
      case "textStart":
        return before.isEdge;
      case "textEnd":
        return after.isEdge;
      default:
        return (before.isWord !== after.isWord) === (what === "boundary");
    }
  }
}

/** An account that ignores charges. */
const nobody: Account = { burn: () => undefined };

/**
 * Compiles a .NET-like pattern for RQL's `regex()`: found anywhere in the text, case-insensitive; `(?-i)`, `(?m)`,
 * `(?s)` and their combinations at the start are flags. `space` is shared by the patterns of one request.
 * @throws EngineError regex-invalid
 */
export function compileTextTest(
  pattern: string,
  account: Account = nobody,
  space = new AutomatonSpace(),
): (text: string) => boolean {
  const inline = /^\(\?([imsnx]*)(?:-([imsnx]+))?\)/.exec(pattern);
  const letters = new Set(`i${inline?.[1] ?? ""}`);
  for (const letter of inline?.[2] ?? "") letters.delete(letter);
  const flags = [...letters].filter((flag) => "ims".includes(flag)).join("");
  const rest = inline === null ? pattern : pattern.slice(inline[0].length);
  const automaton = compileAutomaton(rest, `${flags}u`, space);
  account.burn(automaton.size * instructionUnits);
  return (text) => automaton.test(text, account);
}
