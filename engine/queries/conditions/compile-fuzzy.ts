/**
 * fuzzy(): similarity of terms as Lucene computes it: 1 - edits / the shorter length, which must exceed the requested
 * similarity.
 *
 * Hot: bench/text.bench.ts.
 */

import type { Work, WorkBudget } from "../../base/scheduling/work-budget.ts";
import type { FieldSearch, TermTest } from "../../indexing/columns/field-search.ts";
import { letterSetOf } from "../../indexing/columns/term-dictionary.ts";
import type { IndexReader } from "../../indexing/index-reader.ts";
import type { ScoredText } from "../functions/rql-function.ts";

/** Longer terms are only tested for equality. */
const lengthMax = 256;
/** Texts up to this length are compared with terms bit by bit: a row of the table is one number. */
const bitsMax = 31;
const asciiEnd = 0x80;
/** Bytes of a UTF-16 unit at most. */
const unitBytesMax = 3;

/** Returns a test whether a term's similarity to `text` exceeds `similarity`, from 0 to 1. */
export function fuzzyTest(text: string, similarity: number, budget: WorkBudget): TermTest {
  const sought = text.toLowerCase();
  const isSimilar = (edits: number, length: number) =>
    1 - edits / Math.min(length, sought.length) > similarity;
  // The difference in length is a lower bound of the edits.
  const isFit = (length: number) =>
    length > 0 && isSimilar(Math.abs(length - sought.length), length);
  const ofText = (term: string) => {
    if (term === sought) return true;
    if (term.length > lengthMax || sought.length > lengthMax || sought.length === 0) return false;
    if (!isFit(term.length)) return false;
    budget.spend(term.length * sought.length);
    return isSimilar(editDistance(term, sought), term.length);
  };
  if (sought.length === 0 || sought.length > bitsMax) {
    return { ofText, ofBytes: null, bytesMin: 0, bytesMax: Infinity, mayPass: () => true };
  }
  /** By length of a term: the most edits that it may be away; -1: it is too short or too long. */
  const editsMax = Int16Array.from({ length: lengthMax + 1 }, (_, length) => {
    // Equal texts pass in any case.
    if (length !== sought.length && !isFit(length)) return -1;
    let edits = 0;
    while (edits < lengthMax && length > 0 && isSimilar(edits + 1, length)) edits++;
    return edits;
  });
  return {
    ofText,
    ofBytes: bytesTest(sought, editsMax, isSimilar),
    bytesMin: editsMax.findIndex((most) => most >= 0),
    bytesMax: editsMax.findLastIndex((most) => most >= 0) * unitBytesMax,
    mayPass: lettersTest(sought, editsMax),
  };
}

/** Returns the similar terms, each boosted by its similarity beyond the requested one, as Lucene does. */
export function* fuzzyTerms(
  field: FieldSearch | undefined,
  text: string,
  similarity: number,
  boost: number,
  { budget }: IndexReader,
): Work<ScoredText> {
  const sought = text.toLowerCase();
  const parts: ScoredText[] = [];
  const terms =
    field === undefined ? [] : yield* field.termsPassing(fuzzyTest(text, similarity, budget));
  for (const term of terms) {
    const edits = term === sought ? 0 : editDistance(term, sought);
    const found = Math.fround(1 - edits / Math.min(term.length, sought.length));
    const excess = Math.fround((found - similarity) * Math.fround(1 / (1 - similarity)));
    parts.push({ kind: "term", text: term, boost: Math.fround(boost * excess) });
  }
  return { kind: "sum", parts, isCounted: false };
}

/**
 * Returns an edit removes one character at most, and adds one: a term that lacks more, or has more others, is farther
 * away.
 */
function lettersTest(sought: string, editsMax: Int16Array): TermTest["mayPass"] {
  const bytes = Buffer.from(sought).filter((byte) => byte < asciiEnd);
  const own = letterSetOf(bytes, 0, bytes.length);
  return (letters, length) => {
    const most = editsMax[length] ?? -1;
    return most >= 0 && hasAtMost(own & ~letters, most) && hasAtMost(letters & ~own, most);
  };
}

/** Returns whether at most this many bits are set. */
function hasAtMost(bits: number, most: number): boolean {
  let rest = bits;
  for (let count = 0; rest !== 0; count++) {
    if (count === most) return false;
    rest &= rest - 1;
  }
  return true;
}

/**
 * Returns the same test on the bytes of a term; null: they are not all ASCII.
 * @param sought of one to 31 characters
 */
function bytesTest(
  sought: string,
  editsMax: Int16Array,
  isSimilar: (edits: number, length: number) => boolean,
): NonNullable<TermTest["ofBytes"]> {
  const { length } = sought;
  /** By character: the positions at which the sought text has it, as bits. */
  const places = new Uint32Array(asciiEnd);
  for (let i = 0; i < length; i++) {
    const code = sought.charCodeAt(i);
    if (code < asciiEnd) places[code] = (places[code] as number) | (1 << i);
  }
  const fitMax = editsMax.findLastIndex((most) => most >= 0);
  const fitMin = editsMax.findIndex((most) => most >= 0);
  return (bytes, from, to) => {
    const size = to - from;
    if (size < fitMin || size > fitMax * unitBytesMax) return false;
    if (size > fitMax || (editsMax[size] as number) < 0)
      return isAscii(bytes, from, to) ? false : null;
    const edits = editsOf(bytes, from, to, places, length, editsMax[size] as number);
    if (edits < 0) return null;
    return edits === 0 || isSimilar(edits, size);
  };
}

function isAscii(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if ((bytes[i] as number) >= asciiEnd) return false;
  return true;
}

/**
 * Returns the edit distance of bytes from a text of up to 31 characters, computed column by column (Myers 1999, Hyyrö
 * 2003): bits mark where a cell is one more or one less than the cell above. -1 if a byte is not ASCII.
 * @param most distances above this bound need not be exact
 */
function editsOf(
  bytes: Buffer,
  from: number,
  to: number,
  places: Uint32Array,
  length: number,
  most: number,
): number {
  const last = 1 << (length - 1);
  let more = -1;
  let less = 0;
  let edits = length;
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte >= asciiEnd) return -1;
    const equal = places[byte] as number;
    const vertical = equal | less;
    const same = (((equal & more) + more) ^ more) | equal;
    let rise = less | ~(same | more);
    let fall = more & same;
    if ((rise & last) !== 0) edits++;
    else if ((fall & last) !== 0) edits--;
    // Each remaining byte reduces the distance by at most one.
    if (edits - (to - i - 1) > most) return isAscii(bytes, i + 1, to) ? length + to - from : -1;
    rise = (rise << 1) | 1;
    fall <<= 1;
    more = fall | ~(vertical | rise);
    less = rise & vertical;
  }
  return edits;
}

/** Rows of the table; only used within a call. */
let above = new Uint16Array(lengthMax + 1);
let row = new Uint16Array(lengthMax + 1);

/** Levenshtein distance of texts of at most 256 units of UTF-16: insertions, deletions and replacements. Cost: product of the lengths. */
export function editDistance(left: string, right: string): number {
  for (let k = 0; k <= right.length; k++) above[k] = k;
  for (let i = 1; i <= left.length; i++) {
    const unit = left.charCodeAt(i - 1);
    row[0] = i;
    for (let k = 1; k <= right.length; k++) {
      const replaced = (above[k - 1] as number) + (unit === right.charCodeAt(k - 1) ? 0 : 1);
      row[k] = Math.min(replaced, (row[k - 1] as number) + 1, (above[k] as number) + 1);
    }
    [above, row] = [row, above];
  }
  return above[right.length] as number;
}
