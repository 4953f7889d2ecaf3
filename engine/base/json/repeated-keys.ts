/**
 * Finds and removes repeated keys of one object in minified text: of members with the same key only the last is kept,
 * in its place. Works on the members found by the parser.
 *
 * A member uses three slots of `members`: start and end (exclusive) of its key in the text, quotes included, and a hash
 * that equal keys share. Each member extends to the comma before the next.
 */
import { finish, type Work } from "../scheduling/work-budget.ts";
import { bytesEqual } from "./bytes.ts";

const slots = 3;
/** Members up to which comparing all pairs is faster than a table. */
const pairsMax = 16;
/** Members processed between two pauses: about a millisecond. */
const membersPerPause = 2048;
/** Probes in one lookup above which the keys are assumed to be chosen to collide. */
const probesMax = 64;

/**
 * Returns false if the hashes alone show that no key repeats. Cheap for few members, true for many.
 * @param from,to the slots of the object's members.
 */
export function mayRepeat(members: Int32Array, from: number, to: number): boolean {
  if (to - from > pairsMax * slots) return true;
  for (let a = from + slots; a < to; a += slots) {
    const hash = members[a + 2] as number;
    for (let b = from; b < a; b += slots) if (members[b + 2] === hash) return true;
  }
  return false;
}

/** Sizes of an object after the removal of keys. */
export interface Shortened {
  /** End of its members on the stack. */
  readonly memberTop: number;
  /** Position of its closing brace in the text. */
  readonly textEnd: number;
}

/**
 * Removes members whose key is repeated later, in `text` and in `members`.
 * @param from,to the slots of the object's members.
 * @param textEnd end of the last member: the position of the closing brace.
 * @returns null when no key repeats; then nothing was changed. Cost: the bytes of the keys, and of
 *   the object when keys repeat.
 */
export function removeRepeatedKeys(
  text: Buffer,
  members: Int32Array,
  from: number,
  to: number,
  textEnd: number,
): Shortened | null {
  if (to - from > pairsMax * slots) {
    return finish(removeRepeatedInSlices(text, members, from, to, textEnd));
  }
  const repeated = findInPairs(text, members, from, to);
  return repeated === null ? null : finish(remove(text, members, from, to, textEnd, repeated));
}

/** As `removeRepeatedKeys`, for many members: it may pause. */
export function* removeRepeatedInSlices(
  text: Buffer,
  members: Int32Array,
  from: number,
  to: number,
  textEnd: number,
): Work<Shortened | null> {
  const repeated = yield* findInTable(text, members, from, to);
  return repeated === null ? null : yield* remove(text, members, from, to, textEnd, repeated);
}

function* remove(
  text: Buffer,
  members: Int32Array,
  from: number,
  to: number,
  textEnd: number,
  repeated: Uint8Array,
): Work<Shortened> {
  let steps = 0;
  let textTo = members[from] as number;
  let memberTo = from;
  for (let at = from; at < to; at += slots) {
    if (++steps % membersPerPause === 0) yield;
    if (repeated[(at - from) / slots] === 1) continue;
    const begin = members[at] as number;
    const end = at + slots < to ? (members[at + slots] as number) - 1 : textEnd;
    if (memberTo > from) text[textTo++] = 0x2c;
    text.copyWithin(textTo, begin, end);
    members[memberTo] = textTo;
    members[memberTo + 1] = textTo + (members[at + 1] as number) - begin;
    members[memberTo + 2] = members[at + 2] as number;
    memberTo += slots;
    textTo += end - begin;
  }
  return { memberTop: memberTo, textEnd: textTo };
}

function sameKey(text: Buffer, members: Int32Array, a: number, b: number): boolean {
  const aFrom = members[a] as number;
  const bFrom = members[b] as number;
  const length = (members[a + 1] as number) - aFrom;
  return (
    length === (members[b + 1] as number) - bFrom && bytesEqual(text, aFrom, text, bFrom, length)
  );
}

/**
 * Returns a byte for each member: 1 if it is to be removed. Null if no member is removed. A set of millions would grow
 * in one go.
 */
function findInPairs(
  text: Buffer,
  members: Int32Array,
  from: number,
  to: number,
): Uint8Array | null {
  let repeated: Uint8Array | null = null;
  for (let a = from; a < to; a += slots) {
    for (let b = a + slots; b < to; b += slots) {
      if (members[a + 2] !== members[b + 2] || !sameKey(text, members, a, b)) continue;
      repeated ??= new Uint8Array((to - from) / slots);
      repeated[(a - from) / slots] = 1;
      break;
    }
  }
  return repeated;
}

/** As `findInPairs`, for many members. */
function* findInTable(
  text: Buffer,
  members: Int32Array,
  from: number,
  to: number,
): Work<Uint8Array | null> {
  const count = (to - from) / slots;
  const mask = 2 ** Math.ceil(Math.log2(2 * count)) - 1;
  // Slot + 1 of the last member seen with a key; 0 is free.
  const table = new Int32Array(mask + 1);
  let repeated: Uint8Array | null = null;
  let steps = 0;
  for (let at = from; at < to; at += slots) {
    if (++steps % membersPerPause === 0) yield;
    let place = hashKey(text, members[at] as number, members[at + 1] as number) & mask;
    let probes = 0;
    for (; table[place] !== 0; place = (place + 1) & mask) {
      const other = (table[place] as number) - 1;
      if (sameKey(text, members, at, other)) {
        repeated ??= new Uint8Array(count);
        repeated[(other - from) / slots] = 1;
        break;
      }
      if (++probes > probesMax) return yield* findByText(text, members, from, to);
    }
    table[place] = at + 1;
  }
  return repeated;
}

/** As `findInPairs`, for keys chosen to collide: the JavaScript engine's own string hash has a secret seed. */
function* findByText(
  text: Buffer,
  members: Int32Array,
  from: number,
  to: number,
): Work<Uint8Array | null> {
  const last = new Map<string, number>();
  let repeated: Uint8Array | null = null;
  let steps = 0;
  for (let at = from; at < to; at += slots) {
    if (++steps % membersPerPause === 0) yield;
    const key = text.latin1Slice(members[at], members[at + 1]);
    const other = last.get(key);
    if (other !== undefined) {
      repeated ??= new Uint8Array((to - from) / slots);
      repeated[(other - from) / slots] = 1;
    }
    last.set(key, at);
  }
  return repeated;
}

function hashKey(text: Buffer, from: number, to: number): number {
  let hash = to - from;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (text[i] as number), 0x01000193);
  return hash ^ (hash >>> 15);
}
