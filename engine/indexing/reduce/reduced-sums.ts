/**
 * Incremental sums of a reduce whose result consists only of sums and parts of the key (`SummedReduce`): sums are
 * stored by group; new values are added and removed values subtracted, so that the cost of a change is independent of
 * the number of values of a group.
 *
 * A group is reduced by its function as long as one of its added values is neither a number in canonical form nor null,
 * or one of its sums has lost bits. The doubles of a few values are added in order, as the function does, those of many
 * values exactly.
 *
 * Knows nothing of where values are kept. Results are texts that the function would have returned.
 *
 * Hot: bench/reduce.bench.ts.
 */

import { byteMinus, byteZero } from "../../base/json/bytes.ts";
import { quoteString } from "../../base/json/escape.ts";
import { decodeNumber, findMember, ValueSpan } from "../../base/json/field-access.ts";
import { reducePageValuesMax } from "../../base/limits.ts";
import { grownUint32 } from "../columns/packed.ts";
import type { SummedReduce } from "../index-program.ts";
import { ExactSums } from "./exact-sums.ts";

/** Two numbers have the same sum in any order. */
const orderedMin = 3;
/** Digits of an integer that a double certainly holds. */
const integerBytesMax = 15;
/** JSON texts that a function returns as it got them, in whatever language. */
const safeKey = /^(?:".*"|true|false|null|0|-?[1-9]\d{0,14})$/s;

/** The numbers of a value, as read last. */
interface ReadValue {
  readonly numbers: Float64Array;
  hasDoubles: boolean;
}

export class ReducedSums {
  readonly #reduce: SummedReduce;
  readonly #names: readonly Buffer[];
  /** By part of the key: the bytes that precede its value. */
  readonly #parts: ReadonlyMap<string, Buffer>;
  readonly #sums = new ExactSums();
  /** By group: values with a double. */
  #doubleCounts: Uint32Array = new Uint32Array(16);
  /** By group: values that have something else where a number is added; groups without any are left out. */
  readonly #strangeCounts = new Map<number, number>();
  /** Groups with a sum that has lost bits. */
  readonly #inexact = new Set<number>();
  readonly #read: ReadValue;
  readonly #ordered: Float64Array;

  constructor(reduce: SummedReduce) {
    this.#reduce = reduce;
    const sums = reduce.members.filter(({ isSum }) => isSum);
    this.#names = sums.map(({ name }) => quoteString(name));
    this.#parts = new Map(
      reduce.members.flatMap((one) =>
        one.isSum || one.part === null ? [] : [[one.part, quoteString(one.part)]],
      ),
    );
    this.#read = { numbers: new Float64Array(sums.length), hasDoubles: false };
    this.#ordered = new Float64Array(sums.length);
  }

  /** Returns whether groups of this key can be summed: its parts are copied to the result verbatim. */
  takesKey(key: string): boolean {
    return this.#reduce.members.every(
      (member) => member.isSum || safeKey.test(this.#partOf(key, member.part)),
    );
  }

  /** Returns whether one of these fields has a sum; null: any. */
  hasAny(fields: ReadonlySet<string> | null): boolean {
    if (fields === null) return true;
    return this.#reduce.members.some(({ name, isSum }) => isSum && fields.has(name));
  }

  /** Begins with an empty group. */
  clear(group: number): void {
    this.#doubleCounts = grownUint32(this.#doubleCounts, group + 1);
    this.#doubleCounts[group] = 0;
    this.#inexact.delete(group);
    const { length } = this.#names;
    for (let i = 0; i < length; i++) this.#sums.clear(group * length + i);
  }

  /** Adds (`sign` 1) or subtracts (-1) the value that begins at `at`. */
  add(group: number, bytes: Buffer, at: number, sign: 1 | -1): void {
    if (!this.#readValue(bytes, at)) {
      const count = (this.#strangeCounts.get(group) ?? 0) + sign;
      if (count === 0) this.#strangeCounts.delete(group);
      else this.#strangeCounts.set(group, count);
      return;
    }
    const { numbers, hasDoubles } = this.#read;
    const first = group * numbers.length;
    for (let i = 0; i < numbers.length; i++) {
      if (!this.#sums.add(first + i, sign * (numbers[i] as number))) this.#inexact.add(group);
    }
    if (hasDoubles) this.#doubleCounts[group] = (this.#doubleCounts[group] as number) + sign;
  }

  /** Returns whether the sums of a group equal the function's result. */
  has(group: number): boolean {
    return !this.#strangeCounts.has(group) && !this.#inexact.has(group);
  }

  /** Returns whether `members` needs the values of a group of so many. */
  #needsOrder(group: number, count: number): boolean {
    const isFew = count >= orderedMin && count <= reducePageValuesMax;
    return isFew && (this.#doubleCounts[group] as number) > 0;
  }

  /**
   * Returns the members of a group's result: name and JSON text. `values`: visits where the values of the group begin,
   * in their order; `count`: how many there are.
   */
  members(
    group: number,
    key: string,
    count: number,
    values: (visit: (bytes: Buffer, at: number) => void) => void,
  ): { readonly name: string; readonly text: string }[] {
    const ordered = this.#needsOrder(group, count) ? this.#inOrder(values) : null;
    let sum = 0;
    return this.#reduce.members.map((member) => {
      if (!member.isSum) return { name: member.name, text: this.#partOf(key, member.part) };
      const total =
        ordered === null
          ? this.#totalOf(group * this.#names.length + sum)
          : (ordered[sum] as number);
      sum++;
      return { name: member.name, text: this.#reduce.textOf(total) };
    });
  }

  #totalOf(sum: number): number | bigint {
    const total = this.#sums.valueOf(sum);
    const isExact = !this.#reduce.isOfIntegers || Number.isSafeInteger(total);
    return isExact ? total : this.#sums.integerOf(sum);
  }

  #inOrder(values: (visit: (bytes: Buffer, at: number) => void) => void): Float64Array {
    const found = this.#ordered.fill(0);
    const { numbers } = this.#read;
    values((bytes, at) => {
      this.#readValue(bytes, at);
      for (let i = 0; i < found.length; i++) {
        found[i] = (found[i] as number) + (numbers[i] as number);
      }
    });
    return found;
  }

  /**
   * Returns the text of a part of a key, or of the whole key; empty if the key lacks the part, or it cannot be read
   * this way.
   */
  #partOf(key: string, part: string | null): string {
    if (part === null) return key;
    const bytes = Buffer.from(key);
    const name = this.#parts.get(part) as Buffer; // all parts are known
    return findMember(bytes, 0, name, span) ? bytes.utf8Slice(span.from, span.to) : "";
  }

  /** @returns false when something is added that is no plain number */
  #readValue(bytes: Buffer, at: number): boolean {
    const read = this.#read;
    read.hasDoubles = false;
    for (let i = 0; i < this.#names.length; i++) {
      if (!findMember(bytes, at, this.#names[i] as Buffer, span)) return false;
      const { from, to } = span;
      const first = bytes[from] as number;
      read.numbers[i] = 0;
      // Both languages add nothing for null, which a map writes for missing values.
      if (first === byteN) continue;
      if (first !== byteMinus && (first < byteZero || first > byteNine)) return false;
      if (isDouble(bytes, from, to)) {
        if (this.#reduce.isOfIntegers) return false;
        read.hasDoubles = true;
      } else if (to - from > integerBytesMax) return false;
      read.numbers[i] = decodeNumber(bytes, from, to);
    }
    return true;
  }
}

const span = new ValueSpan();
const byteDot = 0x2e;
const byteN = 0x6e;
const byteNine = 0x39;
const byteE = 0x65;

function isDouble(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte === byteDot || (byte | 0x20) === byteE) return true;
  }
  return false;
}
