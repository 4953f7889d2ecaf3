/**
 * Matches many wildcards together: tests whether a text contains, or ends with, any of them. One pass over the text
 * matches all (Aho and Corasick), so three thousand wildcards cost as much as one.
 *
 *   state ──first child──► state ──next sibling──► …      a trie of the wildcards; an edge has one UTF-16 unit
 *   state ──fallback──► the state of the longest proper suffix that is in the trie too
 *
 * A wildcard anchored at the end has an additional edge, for a unit that no term's text contains.
 */
import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { SearchPhrase } from "./analyzer.ts";

/** A wildcard that begins open: `*ab` or `*ab*`. */
export type WildcardPhrase = Extract<SearchPhrase, { readonly kind: "wildcard" }>;

/** Up to this many wildcards are tested one by one. */
const singleMax = 4;
/** An unpaired surrogate: text decoded from UTF-8 never contains one. */
const endUnit = 0xdfff;
/** Bytes of one state with its share of the table. */
const stateBytes = 40;

/** Returns a test whether a term's text matches any of the wildcards. */
export function* containsAny(
  pieces: readonly WildcardPhrase[],
  budget: WorkBudget,
): Work<(text: string) => boolean> {
  if (pieces.some(({ text }) => text === "")) return () => true;
  if (pieces.length <= singleMax) return singleTest(pieces, budget);
  const automaton = new Automaton(pieces, budget);
  yield* automaton.build();
  return (text) => automaton.test(text);
}

function singleTest(
  pieces: readonly WildcardPhrase[],
  budget: WorkBudget,
): (text: string) => boolean {
  return (text) => {
    budget.spend(pieces.length * (1 + (text.length >>> 6)));
    return pieces.some((piece) =>
      piece.endsOpen ? text.includes(piece.text) : text.endsWith(piece.text),
    );
  };
}

class Automaton {
  readonly #pieces: readonly WildcardPhrase[];
  readonly #budget: WorkBudget;
  #count = 1;
  readonly #units: Uint16Array;
  readonly #firsts: Int32Array;
  readonly #siblings: Int32Array;
  readonly #fallbacks: Int32Array;
  /** 1: a wildcard ends at this state, or at one of its fallbacks. */
  readonly #ends: Uint8Array;
  /** Children by hash of parent and unit; 0 is free. */
  readonly #table: Int32Array;
  readonly #parents: Int32Array;

  constructor(pieces: readonly WildcardPhrase[], budget: WorkBudget) {
    this.#pieces = pieces;
    this.#budget = budget;
    const size = pieces.reduce((sum, { text }) => sum + text.length + 1, 1);
    budget.hold(size * stateBytes);
    this.#units = new Uint16Array(size);
    this.#firsts = new Int32Array(size);
    this.#siblings = new Int32Array(size);
    this.#fallbacks = new Int32Array(size);
    this.#ends = new Uint8Array(size);
    this.#parents = new Int32Array(size);
    this.#table = new Int32Array(2 ** Math.ceil(Math.log2(size * 2)));
  }

  *build(): Work<void> {
    for (const { text, endsOpen } of this.#pieces) {
      let state = 0;
      for (let i = 0; i < text.length; i++) state = this.#grown(state, text.charCodeAt(i));
      if (!endsOpen) state = this.#grown(state, endUnit);
      this.#ends[state] = 1;
      this.#budget.spend(text.length);
      if (this.#budget.isDue) yield;
    }
    yield* this.#linkFallbacks();
  }

  /** Breadth first: the fallback of a state is closer to the root than the state. */
  *#linkFallbacks(): Work<void> {
    const queue = new Int32Array(this.#count);
    let last = 1;
    for (let at = 0; at < last; at++) {
      const state = queue[at] as number;
      let child = this.#firsts[state] as number;
      for (; child !== 0; child = this.#siblings[child] as number) {
        queue[last++] = child;
        const fallback =
          state === 0
            ? 0
            : this.#step(this.#fallbacks[state] as number, this.#units[child] as number);
        this.#fallbacks[child] = fallback;
        if (this.#ends[fallback] === 1) this.#ends[child] = 1;
        this.#budget.spend(1);
      }
      if (this.#budget.isDue) yield;
    }
  }

  test(text: string): boolean {
    let state = 0;
    let at = 0;
    for (; at < text.length; at++) {
      state = this.#step(state, text.charCodeAt(at));
      if (this.#ends[state] === 1) break;
    }
    this.#budget.spend(1 + (at >>> 2));
    return at < text.length || this.#ends[this.#step(state, endUnit)] === 1;
  }

  #step(from: number, unit: number): number {
    for (let state = from; ; state = this.#fallbacks[state] as number) {
      const child = this.#childOf(state, unit);
      if (child !== 0 || state === 0) return child;
    }
  }

  /** Returns the child of a state, created if needed. */
  #grown(state: number, unit: number): number {
    const known = this.#childOf(state, unit);
    if (known !== 0) return known;
    const child = this.#count++;
    this.#units[child] = unit;
    this.#parents[child] = state;
    this.#siblings[child] = this.#firsts[state] as number;
    this.#firsts[state] = child;
    const mask = this.#table.length - 1;
    let slot = slotOf(state, unit) & mask;
    while (this.#table[slot] !== 0) slot = (slot + 1) & mask;
    this.#table[slot] = child;
    return child;
  }

  #childOf(state: number, unit: number): number {
    const mask = this.#table.length - 1;
    for (let slot = slotOf(state, unit) & mask; ; slot = (slot + 1) & mask) {
      const child = this.#table[slot] as number;
      if (child === 0) return 0;
      if (this.#parents[child] === state && this.#units[child] === unit) return child;
    }
  }
}

function slotOf(state: number, unit: number): number {
  const hash = Math.imul(state, 0x9e3779b1) ^ Math.imul(unit + 1, 0x85ebca6b);
  return (hash ^ (hash >>> 15)) >>> 0;
}
