/**
 * From a JSON text and a path to the JSON text of a value, without parsing either. Groups and projections read paths
 * this way; the fields of automatic indexes become terms by the same rules (document-fields.ts).
 *
 * Measured on RavenDB 7.2.7:
 * - An array reached by a path without `[]` returns the list of the values that the rest of the path reads from each
 *   element, without the elements that lack it. Lists in lists stay nested.
 * - An array reached by `[]` returns one flat list. An element that lacks the rest of the path is null, and an element
 *   that is neither object nor array is returned itself.
 * - A text that is a date or a time span has the members of the .NET type (date-members.ts). Other texts, and arrays,
 *   have a length: `Length`, `Count` and these in lower case.
 *
 * Knows nothing of fields, indexes or columns.
 */
import { byteArrayOpen, byteObjectOpen, byteQuote } from "../../base/json/bytes.ts";
import { doubleText } from "../../base/json/double-text.ts";
import { quoteString } from "../../base/json/escape.ts";
import {
  decodeString,
  findMember,
  firstElement,
  nextElement,
  skipValue,
  ValueSpan,
} from "../../base/json/field-access.ts";
import { type DateMember, dateMember, isDateText, isDoubleMember } from "../dates/date-members.ts";
import { normalDate } from "../dates/date-terms.ts";

/** One name of a path. `isEach`: followed by `[]`. `name` is in minified JSON form, with its quotes. */
export interface FieldStep {
  readonly name: Buffer;
  readonly text: string;
  readonly isEach: boolean;
}

/** Returns the value of a text at the rest of a path, as JSON text; null if it has no value there. */
export type TextMember = (
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
  depth: number,
) => string | null;

export function fieldStep(text: string, isEach: boolean): FieldStep {
  return { name: quoteString(text), text, isEach };
}

/** Returns whether the rest of a path is the length of the text or array that it has reached. */
export function isLength(steps: readonly FieldStep[], depth: number): boolean {
  if (depth !== steps.length - 1) return false;
  const { text, isEach } = steps[depth] as FieldStep;
  return !isEach && /^(?:[Ll]ength|[Cc]ount)$/.test(text);
}

export function itemCount(bytes: Buffer, at: number): number {
  let count = 0;
  for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i)))
    count++;
  return count;
}

/** As a `TextMember`, of the string that begins at `at`: a member of a date or time span, or the length of another text. */
export function memberOfText(
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
  depth: number,
): string | null {
  if (depth !== steps.length - 1) return null;
  const text = decodeString(bytes, at, skipValue(bytes, at));
  if (isLength(steps, depth)) return isDateText(text) ? null : String(text.length);
  const { text: name } = steps[depth] as FieldStep;
  return memberText(dateMember(text, name), name);
}

/** Returns the JSON text of the member `name` of a date or time span; null when it is undefined. */
export function memberText(member: DateMember | undefined, name: string): string | null {
  if (member === undefined) return null;
  if (typeof member === "string") return JSON.stringify(member);
  return typeof member === "number" && isDoubleMember(name) ? doubleText(member) : String(member);
}

/**
 * Returns the JSON text of the value that the steps from `depth` on read below the value at `at`; null when it is
 * missing. Dates that a path without arrays reaches are extended to seven fraction digits.
 */
export function pathText(
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
  depth: number,
  memberOf: TextMember = memberOfText,
): string | null {
  const step = steps[depth];
  if (step === undefined) return normalDate(bytes.toString("utf8", at, skipValue(bytes, at)));
  if (bytes[at] === byteArrayOpen) {
    if (isLength(steps, depth)) return String(itemCount(bytes, at));
    return `[${presentTexts(bytes, at, steps, depth, memberOf).join(",")}]`;
  }
  if (bytes[at] === byteQuote) return memberOf(bytes, at, steps, depth);
  const span = new ValueSpan();
  if (bytes[at] !== byteObjectOpen || !findMember(bytes, at, step.name, span)) return null;
  if (!step.isEach || bytes[span.from] !== byteArrayOpen) {
    return pathText(bytes, span.from, steps, depth + 1, memberOf);
  }
  return `[${eachText(bytes, span.from, steps, depth + 1, memberOf).join(",")}]`;
}

/**
 * Returns the values that the rest of a path reads from each element of an array, as JSON texts, without elements that
 * lack it.
 */
function presentTexts(
  bytes: Buffer,
  array: number,
  steps: readonly FieldStep[],
  depth: number,
  memberOf: TextMember,
): string[] {
  const texts: string[] = [];
  for (let i = firstElement(bytes, array); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
    const text = pathText(bytes, i, steps, depth, memberOf);
    if (text !== null) texts.push(text);
  }
  return texts;
}

/**
 * Returns the values that the steps from `depth` on read from each element of the array reached by `[]`, as JSON texts
 * in one list.
 */
export function eachText(
  bytes: Buffer,
  array: number,
  steps: readonly FieldStep[],
  depth: number,
  memberOf: TextMember = memberOfText,
): string[] {
  const texts: string[] = [];
  for (let i = firstElement(bytes, array); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
    const isScalar = bytes[i] !== byteObjectOpen && bytes[i] !== byteArrayOpen;
    if (isScalar || depth === steps.length) {
      texts.push(bytes.toString("utf8", i, skipValue(bytes, i)));
    } else if (bytes[i] === byteArrayOpen) texts.push("null");
    else addMemberTexts(bytes, i, steps, depth, memberOf, texts);
  }
  return texts;
}

/**
 * Adds the values that the rest of a path reads below an element of an array reached by `[]`: null where it is missing.
 */
function addMemberTexts(
  bytes: Buffer,
  at: number,
  steps: readonly FieldStep[],
  depth: number,
  memberOf: TextMember,
  texts: string[],
): void {
  const step = steps[depth];
  const span = new ValueSpan();
  if (step === undefined) texts.push(normalDate(bytes.toString("utf8", at, skipValue(bytes, at))));
  else if (bytes[at] === byteQuote) texts.push(memberOf(bytes, at, steps, depth) ?? "null");
  else if (bytes[at] === byteArrayOpen) {
    texts.push(...presentTexts(bytes, at, steps, depth, memberOf));
  } else if (bytes[at] === byteObjectOpen && findMember(bytes, at, step.name, span)) {
    if (step.isEach && bytes[span.from] === byteArrayOpen) {
      texts.push(...eachText(bytes, span.from, steps, depth + 1, memberOf));
    } else addMemberTexts(bytes, span.from, steps, depth + 1, memberOf, texts);
  } else texts.push("null");
}
