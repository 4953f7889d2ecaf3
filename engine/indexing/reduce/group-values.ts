/**
 * The contributions of one document to the groups of a map-reduce index: for each of its elements, or once, the keys as
 * JSON text and the numbers to add.
 *
 * Measured on RavenDB 7.2.7: a missing key is null; a document whose array is empty belongs to no group; a document
 * that lacks the array, or has another value in its place, belongs to the group of null; a document with arrays in its
 * array belongs to no group. `array(path)` is one key, and so is a path that leads through an array without `[]`.
 * Values that are not numbers spoil their group.
 */
import { byteArrayOpen, byteObjectOpen, byteQuote } from "../../base/json/bytes.ts";
import {
  decodeNumber,
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import type { IndexDefinition } from "../definitions/index-definition.ts";
import {
  eachText,
  type FieldStep,
  isLength,
  itemCount,
  memberOfText,
  pathText,
} from "../fields/path-text.ts";
import { stepsOf } from "../map-index.ts";

/** The kind of number that a contribution adds to a sum. */
export const numberKinds = { none: 0, integers: 1, doubles: 2 } as const;

/**
 * Receives one contribution. `sums[i]` is NaN when a value is not a number; `kinds[i]`: see `numberKinds`; `lows[i]`: how
 * much larger than `sums[i]` an integer is.
 */
export interface ContributionVisitor {
  contribute(
    keys: readonly string[],
    sums: Float64Array,
    kinds: Uint8Array,
    lows: Int16Array,
  ): void;
}

/** Digits of an integer that a double certainly holds. */
const safeDigitsMax = 15;
const longMax = 2n ** 63n - 1n;

interface GroupPath {
  readonly steps: readonly FieldStep[];
  readonly isWholeArray: boolean;
}

export class GroupValues {
  readonly #keys: readonly GroupPath[];
  readonly #sums: readonly GroupPath[];
  /** The common steps of all paths with `[]`, up to their first `[]`; empty if no path has `[]`. */
  readonly #fanOut: readonly FieldStep[];
  readonly #sumValues: Float64Array;
  readonly #kinds: Uint8Array;
  readonly #lows: Int16Array;
  /** By sum: the exact one, of integers beyond 2^53. */
  readonly #exact: (bigint | null)[];

  constructor(definition: IndexDefinition) {
    const group = definition.groupBy;
    this.#keys = (group?.keys ?? []).map((key) => ({
      steps: stepsOf(key.path),
      isWholeArray: key.isWholeArray,
    }));
    this.#sums = (group?.aggregates ?? []).flatMap((one) =>
      one.kind === "sum" ? [{ steps: stepsOf(one.path), isWholeArray: false }] : [],
    );
    const fanned = this.#keys.find(
      (key) => !key.isWholeArray && key.steps.some((step) => step.isEach),
    );
    const length = fanned === undefined ? 0 : fanned.steps.findIndex((step) => step.isEach) + 1;
    this.#fanOut = fanned === undefined ? [] : fanned.steps.slice(0, length);
    this.#sumValues = new Float64Array(this.#sums.length);
    this.#kinds = new Uint8Array(this.#sums.length);
    this.#lows = new Int16Array(this.#sums.length);
    this.#exact = this.#sums.map(() => null);
  }

  /** Visits the contributions of the object that begins at `body`. */
  visit(bytes: Buffer, body: number, visitor: ContributionVisitor): void {
    if (this.#fanOut.length === 0) {
      this.#contribute(bytes, body, -1, visitor);
      return;
    }
    const at = findValue(bytes, body, this.#fanOut);
    if (at >= 0 && bytes[at] === byteArrayOpen) {
      if (holdsArray(bytes, at)) return;
      for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
        this.#contribute(bytes, body, i, visitor);
      }
    } else this.#contribute(bytes, body, at >= 0 && isObject(bytes, at) ? at : -1, visitor);
  }

  /** `element`: offset of the array element at which fanned-out paths start; -1 for none. */
  #contribute(bytes: Buffer, body: number, element: number, visitor: ContributionVisitor): void {
    const keys = this.#keys.map((key) => {
      if (key.isWholeArray) return wholeArray(bytes, body, key.steps);
      if (!this.#isFanned(key.steps)) return pathText(bytes, body, key.steps, 0) ?? "null";
      const rest = isScalar(bytes, element) ? [] : key.steps.slice(this.#fanOut.length);
      return element < 0 ? "null" : (pathText(bytes, element, rest, 0) ?? "null");
    });
    for (let i = 0; i < this.#sums.length; i++) {
      const { steps } = this.#sums[i] as GroupPath;
      this.#sumValues[i] = 0;
      this.#kinds[i] = numberKinds.none;
      this.#lows[i] = 0;
      this.#exact[i] = null;
      if (this.#isFanned(steps)) {
        if (element < 0) continue;
        const rest = steps.slice(this.#fanOut.length);
        const at = isScalar(bytes, element) ? element : findValue(bytes, element, rest);
        if (at >= 0) this.#add(bytes, at, i);
      } else this.#addEach(bytes, body, steps, 0, i);
    }
    for (let i = 0; i < this.#sums.length; i++) if (this.#exact[i] !== null) this.#setExact(i);
    visitor.contribute(keys, this.#sumValues, this.#kinds, this.#lows);
  }

  /** Sets the sum of integers as a double and its rounding error; it wraps at 64 bits. */
  #setExact(sum: number): void {
    if (this.#kinds[sum] !== numberKinds.integers || Number.isNaN(this.#sumValues[sum])) return;
    const whole = BigInt.asIntN(64, this.#exact[sum] as bigint);
    this.#sumValues[sum] = Number(whole);
    this.#lows[sum] = Number(whole - BigInt(this.#sumValues[sum] as number));
  }

  #isFanned(steps: readonly FieldStep[]): boolean {
    const { length } = this.#fanOut;
    if (length === 0 || steps.length < length) return false;
    return this.#fanOut.every((step, i) => {
      const other = steps[i] as FieldStep;
      return step.isEach === other.isEach && step.name.equals(other.name);
    });
  }

  #addEach(
    bytes: Buffer,
    at: number,
    steps: readonly FieldStep[],
    depth: number,
    sum: number,
  ): void {
    if (bytes[at] === byteArrayOpen) {
      if (isLength(steps, depth)) {
        this.#add(Buffer.from(String(itemCount(bytes, at))), 0, sum);
        return;
      }
      for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
        this.#addEach(bytes, i, steps, depth, sum);
      }
      return;
    }
    const step = steps[depth];
    if (step === undefined) {
      this.#add(bytes, at, sum);
      return;
    }
    const span = new ValueSpan();
    if (bytes[at] === byteObjectOpen && findMember(bytes, at, step.name, span)) {
      this.#addEach(bytes, span.from, steps, depth + 1, sum);
    } else if (bytes[at] === byteQuote) {
      const member = memberOfText(bytes, at, steps, depth);
      if (member !== null) this.#add(Buffer.from(member), 0, sum);
    }
  }

  #add(bytes: Buffer, at: number, sum: number): void {
    const first = bytes[at] as number;
    if (first === 0x6e) return;
    const isNumber = first !== byteQuote && first <= 0x39;
    const end = skipValue(bytes, at);
    const value = isNumber ? decodeNumber(bytes, at, end) : Number.NaN;
    let kind: number = numberKinds.integers;
    for (let i = at; isNumber && i < end; i++) {
      const byte = bytes[i] as number;
      if (byte === 0x2e || (byte | 0x20) === 0x65) kind = numberKinds.doubles;
    }
    if (kind === numberKinds.integers && !Number.isNaN(value)) {
      if (!this.#addExact(bytes, at, end, value, sum)) kind = numberKinds.doubles;
    }
    this.#sumValues[sum] = (this.#sumValues[sum] as number) + value;
    this.#kinds[sum] = Math.max(this.#kinds[sum] as number, kind);
  }

  /** Adds up integers exactly from the first on that is large. @returns false when it is beyond 64 bits: a double */
  #addExact(bytes: Buffer, at: number, end: number, value: number, sum: number): boolean {
    const known = this.#exact[sum] as bigint | null;
    const before = this.#sumValues[sum] as number;
    if (known === null && Number.isSafeInteger(value) && Number.isSafeInteger(before + value)) {
      return true;
    }
    const isShort = end - at <= safeDigitsMax;
    const whole = isShort ? BigInt(value) : BigInt(bytes.latin1Slice(at, end));
    if (whole > longMax || whole < -longMax - 1n) return false;
    if (known !== null) this.#exact[sum] = known + whole;
    // The previous sum may be a fraction, and is not an integer then.
    else if (Number.isInteger(before)) this.#exact[sum] = BigInt(before) + whole;
    return true;
  }
}

/** Returns whether an element stands for itself, whatever the rest of the path. */
function isScalar(bytes: Buffer, element: number): boolean {
  return element >= 0 && bytes[element] !== byteObjectOpen && bytes[element] !== byteArrayOpen;
}

function isObject(bytes: Buffer, at: number): boolean {
  return bytes[at] === byteObjectOpen;
}

/** Returns whether an element of the array at `at` is an array. */
function holdsArray(bytes: Buffer, at: number): boolean {
  for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
    if (bytes[i] === byteArrayOpen) return true;
  }
  return false;
}

/** Offset of the value at a path of names, or -1. */
function findValue(bytes: Buffer, from: number, steps: readonly FieldStep[]): number {
  const span = new ValueSpan();
  let at = from;
  for (const step of steps) {
    if (!findMember(bytes, at, step.name, span)) return -1;
    at = span.from;
  }
  return at;
}

/** Returns the values at a path as the JSON text of one array; null when the array is missing. */
function wholeArray(bytes: Buffer, body: number, steps: readonly FieldStep[]): string {
  const at = findValue(bytes, body, steps.slice(0, 1));
  if (at < 0) return "null";
  const isEach = steps.some((step) => step.isEach);
  if (!isEach) return pathText(bytes, body, steps, 0) ?? "null";
  if (bytes[at] === byteArrayOpen) return `[${eachText(bytes, at, steps, 1).join(",")}]`;
  return isObject(bytes, at) ? (pathText(bytes, at, steps, 1) ?? "null") : "null";
}
