/**
 * Tests whether a regular expression matches anywhere in a text, with a lazily built DFA: the program states reached
 * together form one state of the automaton, created when a text first reaches it. From then on a character costs one
 * table lookup, however large the program is. When the states need too much memory, they are discarded and built again.
 *
 * An assertion examines the characters on both sides of its position. A state therefore consists of the instructions
 * *before* the position, without the instructions that follow from them, and of the class of the previous character;
 * the consequences are computed together with the next character.
 *
 * Characters that no part of the program distinguishes are in one class.
 *
 * Invariants:
 * - All states together have at most `spaceMax` numbers, except for those of the current step.
 */
import type { Account } from "../language/script-values.ts";

/** Properties of a compiled pattern that an automaton needs. */
export interface AutomatonProgram {
  readonly size: number;
  /** Returns the kind of an instruction. */
  kindOf(instruction: number): "consume" | "jump" | "split" | "pass" | "assert" | "match";
  /** Returns the target of a jump; the second target of a split. */
  firstOf(instruction: number): number;
  secondOf(instruction: number): number;
  /** Equal for instructions that accept the same characters. */
  readonly testCount: number;
  testOf(instruction: number): number;
  /** Returns whether this test accepts the character. */
  passes(test: number, code: number): boolean;
  /** Returns whether an assertion holds between two characters. */
  holds(instruction: number, before: Side, after: Side): boolean;
}

/** The properties of a character that assertions examine. */
export interface Side {
  /** No character: the beginning or end of the text. */
  readonly isEdge: boolean;
  readonly isWord: boolean;
  readonly isLineEnd: boolean;
}

/** The quota of numbers shared by the automata of one request. */
export class AutomatonSpace {
  numbers = 0;
  readonly #numbersMax: number;
  /** In order of creation. */
  readonly #automatons = new Set<TextAutomaton>();

  constructor(numbersMax = spaceMax) {
    this.#numbersMax = numbersMax;
  }

  add(automaton: TextAutomaton): void {
    this.#automatons.add(automaton);
  }

  /**
   * Reserves numbers for `owner`. When the quota is exhausted, other automata are cleared first: they may no longer be
   * needed.
   */
  take(numbers: number, owner: TextAutomaton): void {
    for (const other of this.#automatons) {
      if (this.numbers + numbers <= this.#numbersMax) break;
      if (other !== owner) other.forget();
    }
    if (this.numbers + numbers > this.#numbersMax) owner.forget();
    this.numbers += numbers;
  }
}

/** Of 4 bytes each. */
const spaceMax = 4 * 1024 * 1024;
/** UTF-16 units of a text between two charges. */
const payStride = 4096;

interface State {
  /** Instructions before which the position is, ascending. */
  readonly places: Int32Array;
  readonly before: Side;
  /** By class of the next character: the next state, `matched`, or undefined: not computed yet. */
  readonly next: (State | typeof matched | undefined)[];
}

interface CharacterClass {
  readonly number: number;
  readonly side: Side;
  /** By test: 1 when it accepts these characters. */
  readonly passing: Uint8Array;
}

const matched = Symbol("matched");
const edge: Side = { isEdge: true, isWord: false, isLineEnd: false };
const pageSize = 256;

export class TextAutomaton {
  readonly #program: AutomatonProgram;
  readonly #sideOf: (code: number) => Side;
  readonly #space: AutomatonSpace;
  readonly #classes: CharacterClass[] = [];
  readonly #classBySignature = new Map<string, CharacterClass>();
  /** By character: its class plus one; 0: not computed yet. */
  readonly #pages: (Uint16Array | undefined)[] = [];
  readonly #endClass: CharacterClass;
  #states = new Map<number, State[]>();
  #ownNumbers = 0;
  #start: State;
  /** The step in which an instruction was last reached. */
  readonly #reached: Uint32Array;
  readonly #arrived: Uint32Array;
  #stepNumber = 0;

  constructor(program: AutomatonProgram, sideOf: (code: number) => Side, space: AutomatonSpace) {
    this.#program = program;
    this.#sideOf = sideOf;
    this.#space = space;
    this.#reached = new Uint32Array(program.size);
    this.#arrived = new Uint32Array(program.size + 1);
    const passing = new Uint8Array(program.testCount);
    this.#endClass = { number: 0, side: edge, passing };
    this.#classes.push(this.#endClass);
    this.#start = { places: new Int32Array(0), before: edge, next: [] };
    space.add(this);
  }

  /** Number of instructions of the program. */
  get size(): number {
    return this.#program.size;
  }

  /** `account` is charged for each new step and for each stretch of the text. */
  test(text: string, account: Account): boolean {
    let state = this.#start;
    let paidAt = 0;
    for (let at = 0; at < text.length; ) {
      let code = text.charCodeAt(at++);
      if (code >= 0xd800 && code <= 0xdbff && at < text.length) {
        code = text.codePointAt(at - 1) as number;
        if (code > 0xffff) at++;
      }
      const group = this.#classOf(code, account);
      const next = state.next[group.number] ?? this.#step(state, group, account);
      if (next === matched) return this.#paid(true, at - paidAt, account);
      state = next;
      if (at - paidAt >= payStride) {
        account.burn((at - paidAt) >>> 1);
        paidAt = at;
      }
    }
    const last = state.next[0] ?? this.#step(state, this.#endClass, account);
    return this.#paid(last === matched, text.length - paidAt, account);
  }

  #paid(isMatched: boolean, units: number, account: Account): boolean {
    account.burn(1 + (units >>> 1));
    return isMatched;
  }

  #classOf(code: number, account: Account): CharacterClass {
    const page = this.#pages[code >>> 8];
    const known = page === undefined ? 0 : (page[code & (pageSize - 1)] as number);
    return known > 0 ? (this.#classes[known - 1] as CharacterClass) : this.#newClass(code, account);
  }

  #newClass(code: number, account: Account): CharacterClass {
    const program = this.#program;
    account.burn(program.testCount);
    const passing = new Uint8Array(program.testCount);
    for (let test = 0; test < passing.length; test++) {
      if (program.passes(test, code)) passing[test] = 1;
    }
    const side = this.#sideOf(code);
    const signature = `${side.isWord}${side.isLineEnd}${Buffer.from(passing.buffer).toString("latin1")}`;
    let group = this.#classBySignature.get(signature);
    if (group === undefined) {
      group = { number: this.#classes.length, side, passing };
      this.#classes.push(group);
      this.#classBySignature.set(signature, group);
    }
    let page = this.#pages[code >>> 8];
    if (page === undefined) {
      page = new Uint16Array(pageSize);
      this.#pages[code >>> 8] = page;
    }
    page[code & (pageSize - 1)] = group.number + 1;
    return group;
  }

  /** Computes the transition for a class of characters. */
  #step(state: State, group: CharacterClass, account: Account): State | typeof matched {
    const arrived: number[] = [];
    const work = this.#follow(state, group, arrived);
    account.burn(Math.abs(work));
    const next = work < 0 ? matched : this.#stateOf(Int32Array.from(arrived).sort(), group.side);
    const grown = Math.max(0, group.number + 1 - state.next.length) * linkNumbers;
    this.#ownNumbers += grown;
    this.#space.numbers += grown;
    state.next[group.number] = next;
    return next;
  }

  /** @returns the amount of work; negative when the pattern matched before the character */
  #follow({ places, before }: State, group: CharacterClass, arrived: number[]): number {
    const program = this.#program;
    const step = ++this.#stepNumber;
    // A match may begin at every position.
    const open = [0, ...places];
    let work = 1;
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.#reached[at] === step) continue;
      this.#reached[at] = step;
      work++;
      switch (program.kindOf(at)) {
        case "match":
          return -work;
        case "consume": {
          const behind = at + 1;
          if (group.passing[program.testOf(at)] !== 1 || this.#arrived[behind] === step) break;
          this.#arrived[behind] = step;
          arrived.push(behind);
          break;
        }
        case "jump":
          open.push(program.firstOf(at));
          break;
        case "split":
          open.push(program.firstOf(at), program.secondOf(at));
          break;
        case "assert":
          if (program.holds(at, before, group.side)) open.push(at + 1);
          break;
        case "pass":
          open.push(at + 1);
      }
    }
    return work;
  }

  /** Returns the state of these positions, created if needed. */
  #stateOf(places: Int32Array, before: Side): State {
    const hash = hashOf(places, before);
    const known = this.#states.get(hash)?.find((state) => isSame(state, places, before));
    if (known !== undefined) return known;
    const numbers = stateNumbers + places.length;
    this.#space.take(numbers, this);
    const state: State = { places, before, next: [] };
    const alike = this.#states.get(hash);
    if (alike === undefined) this.#states.set(hash, [state]);
    else alike.push(state);
    this.#ownNumbers += numbers;
    return state;
  }

  /** Discards all states. The current state stays alive while it is in use. */
  forget(): void {
    this.#space.numbers -= this.#ownNumbers;
    this.#ownNumbers = 0;
    this.#states = new Map();
    // The transitions of the old start would keep the others alive.
    this.#start = { places: new Int32Array(0), before: edge, next: [] };
  }
}

/** Numbers that a state uses besides its positions, and for each entry of its transition table. */
const stateNumbers = 32;
const linkNumbers = 2;

function hashOf(places: Int32Array, before: Side): number {
  let hash = Number(before.isEdge) | (Number(before.isWord) << 1) | (Number(before.isLineEnd) << 2);
  for (let i = 0; i < places.length; i++)
    hash = Math.imul(hash ^ (places[i] as number), 0x01000193);
  return hash;
}

function isSame(state: State, places: Int32Array, before: Side): boolean {
  const other = state.before;
  if (other.isEdge !== before.isEdge || other.isWord !== before.isWord) return false;
  if (other.isLineEnd !== before.isLineEnd || state.places.length !== places.length) return false;
  for (let i = 0; i < places.length; i++) if (state.places[i] !== places[i]) return false;
  return true;
}
