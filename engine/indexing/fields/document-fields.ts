/**
 * From a document's text and a path to the terms of a field, without parsing the document.
 *
 * Terms by type of value (measured on RavenDB 7.2.7 with debug=entries):
 *   string        its text in lower case (exact: unchanged; search: its words); a date in its normal form
 *   number        its digits as written, trailing zeros of the fraction removed (-0.0: `-0`); and its double
 *   true, false   the word
 *   null          the null marker
 *   array         each element, nested arrays too; none for an empty one
 *   object        the word `json_value` (exact: `JSON_VALUE`); in a deployed index its text
 *   missing       none. A path with `[]` gives null for an element that lacks the rest of the path,
 *                 and the element itself when it is neither object nor array.
 * A path also reads the members of a text that is a date or a time span, and the length of a text or an array
 * (path-text.ts).
 *
 * Knows nothing of entries, collections or queries.
 *
 * Hot: bench/scan.bench.ts.
 */

import {
  byteArrayOpen,
  byteBackslash,
  byteMinus,
  byteObjectOpen,
  byteQuote,
  byteZero,
} from "../../base/json/bytes.ts";
import {
  decodeNumber,
  decodeString,
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import { objectTermBytesMax } from "../../base/limits.ts";
import type { FieldColumn } from "../columns/field-column.ts";
import type { ColumnKind } from "../columns/store-column.ts";
import {
  dateKind,
  gapTerm,
  nullTerm,
  numberKind,
  objectTerm,
  type TermDictionary,
  textKind,
} from "../columns/term-dictionary.ts";
import type { Instant } from "../dates/date-terms.ts";
import { mayBeSpan, parseMoment } from "../dates/moment-terms.ts";
import {
  type Analyzer,
  keywordAnalyzer,
  lowerInvariant,
  lowerKeywordAnalyzer,
} from "../text/analyzer.ts";
import { type FieldStep, isLength, itemCount, memberOfText } from "./path-text.ts";

/** How the strings of a field become terms. */
export type FieldMode = "lower" | "exact" | Analyzer;

/** Returns the column type of a field in a mode; null: the field has no terms. */
export function columnKindOf(mode: FieldMode | null): ColumnKind {
  const isWhole = mode === keywordAnalyzer || mode === lowerKeywordAnalyzer;
  return typeof mode === "function" && !isWhole ? "text" : "values";
}

/** Buffer for terms; longer ones get a buffer of their own. */
let scratch: Buffer = Buffer.allocUnsafeSlow(4096);
const zeroText = Buffer.from("0");
const nothing = Buffer.alloc(0);
const trueText = Buffer.from("true");
const falseText = Buffer.from("false");
/** Term of an object in an automatic index. */
const objectText = "JSON_VALUE";
const minusZeroText = Buffer.from("-0");
const dot = 0x2e;
const byteT = 0x74;
const byteF = 0x66;
const byteN = 0x6e;

/** Adds the terms at `steps` below the object that begins at `at` to the column's current entry. */
export function addFieldTerms(
  column: FieldColumn,
  mode: FieldMode,
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
): void {
  follow(column, mode, bytes, at, steps, 0, false);
}

/** As `addFieldTerms`, given the offset `at` of the first step's value. */
export function addTermsAfterFirst(
  column: FieldColumn,
  mode: FieldMode,
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
): void {
  follow(column, mode, bytes, at, steps, 1, false);
}

function follow(
  column: FieldColumn,
  mode: FieldMode,
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
  depth: number,
  isInEach: boolean,
): void {
  if (depth === steps.length) {
    addValueTerms(column, mode, bytes, at);
    return;
  }
  const isInOwnEach = depth > 0 && (steps[depth - 1] as FieldStep).isEach;
  if (bytes[at] === byteArrayOpen) {
    if (!isInOwnEach && isLength(steps, depth)) {
      addNumberTerm(column, itemCount(bytes, at), -1);
      return;
    }
    const isEach = isInEach || isInOwnEach;
    for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
      follow(column, mode, bytes, i, steps, depth, isEach);
    }
    return;
  }
  if (bytes[at] !== byteObjectOpen) {
    if (isInEach && isInOwnEach) addValueTerms(column, mode, bytes, at);
    else addMemberTerms(column, mode, bytes, at, steps, depth, isInEach);
    return;
  }
  const step = steps[depth] as FieldStep;
  const span = new ValueSpan();
  if (findMember(bytes, at, step.name, span)) {
    follow(column, mode, bytes, span.from, steps, depth + 1, isInEach);
  } else if (isInEach) column.add(nullTerm);
}

/** Adds the terms of members that a path reads from a value that is neither object nor array. */
function addMemberTerms(
  column: FieldColumn,
  mode: FieldMode,
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
  depth: number,
  isInEach: boolean,
): void {
  const member = bytes[at] === byteQuote ? memberOfText(bytes, at, steps, depth) : null;
  if (member !== null) addValueTerms(column, mode, Buffer.from(member), 0);
  else if (isInEach) column.add(nullTerm);
}

/**
 * Adds the terms of the value that begins at `at`. `keepsObjects`: an object becomes a term with its text, as in Lucene
 * indexes of RavenDB.
 */
export function addValueTerms(
  column: FieldColumn,
  mode: FieldMode,
  bytes: Buffer,
  at: number,
  keepsObjects = false,
): void {
  switch (bytes[at]) {
    case byteQuote:
      addString(column, mode, bytes, at);
      return;
    case byteArrayOpen:
      for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
        addValueTerms(column, mode, bytes, i, keepsObjects);
      }
      return;
    case byteObjectOpen:
      column.add(
        keepsObjects
          ? internObject(column.dictionary, bytes, at)
          : internText(column.dictionary, mode === "exact" ? objectText : objectText.toLowerCase()),
      );
      return;
    case byteN:
      column.add(nullTerm);
      return;
    case byteT:
      column.add(column.dictionary.intern(textKind, trueText, 4, Number.NaN));
      return;
    case byteF:
      column.add(column.dictionary.intern(textKind, falseText, 5, Number.NaN));
      return;
    default:
      column.add(internNumber(column.dictionary, bytes, at, skipValue(bytes, at)));
  }
}

/**
 * Adds the term of a number: the term of its shortest text. `like`: an entry of the column that probably has the same
 * number, or -1.
 */
export function addNumberTerm(column: FieldColumn, value: number, like: number): void {
  const { dictionary } = column;
  const term = like < 0 ? undefined : column.termsOf(like)[0];
  if (term !== undefined && dictionary.values[term] === value) {
    column.add(term);
    return;
  }
  const length = scratch.latin1Write(String(value));
  column.add(internNumber(dictionary, scratch, 0, length));
}

function addString(column: FieldColumn, mode: FieldMode, bytes: Buffer, at: number): void {
  if (typeof mode === "function") {
    addWords(column, mode, decodeString(bytes, at, skipValue(bytes, at)));
    return;
  }
  const isLower = mode === "lower";
  // Plain ASCII is copied to the scratch buffer byte by byte; the first other byte restarts on the text path.
  let length = 0;
  for (let i = at + 1; ; i++) {
    const byte = bytes[i] as number;
    if (byte === byteQuote) break;
    if (byte === byteBackslash || byte >= 0x80 || length === scratch.length) {
      addText(column, isLower, decodeString(bytes, at, skipValue(bytes, at)));
      return;
    }
    scratch[length++] = isLower && byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte;
  }
  if ((length >= 10 && scratch[4] === byteMinus) || mayBeSpan(scratch, length)) {
    const text = bytes.latin1Slice(at + 1, at + 1 + length);
    const moment = parseMoment(text);
    if (moment !== null) {
      column.add(internDate(column.dictionary, moment));
      return;
    }
  }
  column.add(column.dictionary.intern(textKind, scratch, length, Number.NaN));
}

function addText(column: FieldColumn, isLower: boolean, text: string): void {
  const moment = parseMoment(text);
  if (moment !== null) column.add(internDate(column.dictionary, moment));
  else column.add(internText(column.dictionary, isLower ? lowerInvariant(text) : text));
}

function addWords(column: FieldColumn, analyze: Analyzer, text: string): void {
  if (text === "") {
    column.add(column.dictionary.intern(textKind, nothing, 0, Number.NaN));
    return;
  }
  let hasWords = false;
  analyze(text, (word) => {
    hasWords = true;
    column.add(internText(column.dictionary, word));
  });
  // A phrase may match across two elements of an array, but not across one without words, as on RavenDB 7.2.7.
  if (!hasWords) column.add(gapTerm);
}

function internText(dictionary: TermDictionary, text: string): number {
  return dictionary.internText(textKind, text, Number.NaN);
}

/** Returns the text of the object that begins at `at`; the marker when it is too long. */
function internObject(dictionary: TermDictionary, bytes: Buffer, at: number): number {
  const text = bytes.subarray(at, skipValue(bytes, at));
  if (text.length > objectTermBytesMax) return objectTerm;
  return dictionary.intern(textKind, text, text.length, Number.NaN);
}

function internDate(dictionary: TermDictionary, instant: Instant): number {
  const bytes = Buffer.from(instant.term, "latin1");
  return dictionary.intern(dateKind, bytes, bytes.length, instant.milliseconds);
}

/** Returns the term of the number `bytes[from, to)`. */
function internNumber(dictionary: TermDictionary, bytes: Buffer, from: number, to: number): number {
  let end = to;
  let dotAt = -1;
  let hasExponent = false;
  for (let i = from; i < to; i++) {
    const byte = bytes[i] as number;
    if (byte === dot) dotAt = i;
    else if ((byte | 0x20) === 0x65) hasExponent = true;
  }
  const value = decodeNumber(bytes, from, to);
  if (dotAt >= 0 && !hasExponent) {
    while (bytes[end - 1] === byteZero) end--;
    if (end - 1 === dotAt) end--;
  }
  // The number is found by its text under a different spelling than that of its value.
  if (hasExponent || Object.is(value, -0)) dictionary.hasInexact = true;
  if (value === 0 && !hasExponent) {
    const isMinus = dotAt >= 0 && bytes[from] === byteMinus;
    return dictionary.intern(numberKind, isMinus ? minusZeroText : zeroText, isMinus ? 2 : 1, 0);
  }
  const length = end - from;
  if (length > scratch.length) scratch = Buffer.allocUnsafeSlow(length * 2);
  bytes.copy(scratch, 0, from, end);
  return dictionary.intern(numberKind, scratch, length, value);
}
