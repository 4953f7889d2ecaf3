/**
 * The costs of the host's text functions where they exceed the estimate by length. Charged before the call: a single
 * call must not exceed a script's time limit.
 *
 * Invariant: inspecting a text costs less than its charge.
 */
import type { Run } from "./script-values.ts";

/** Shorter texts cost little, whatever their content. */
const shortText = 64;
const beyondLatin = /[^\0-\xff]/;
const marks = /\p{M}{16,}/gu;

/** Units of work per character of a text that the host processes character by character. */
const caseUnits = 8;
const compareUnits = 4;
const normalizeUnits = 10;
/** Compatibility forms can be 18 times as long. */
const compatibilityUnits = 40;

/** Case conversion: fast for Latin letters, character by character for all others. */
export function payForCase(run: Run, text: string): void {
  if (text.length <= shortText) return;
  run.burn(text.length >> 3);
  if (beyondLatin.test(text)) run.burn(text.length * caseUnits);
}

/** Long runs of combining marks are sorted by comparing each with all others. */
function payForMarks(run: Run, text: string): void {
  run.burn(text.length >> 3);
  if (text.length <= shortText || !beyondLatin.test(text)) return;
  run.burn(text.length * 2);
  for (const { 0: found } of text.matchAll(marks)) run.burn((found.length * found.length) / 4);
}

export function payForNormalizing(run: Run, text: string, form: string): void {
  run.burn(text.length * (form.startsWith("NFK") ? compatibilityUnits : normalizeUnits));
  payForMarks(run, text);
}

/** Charges for a locale-aware comparison, which normalizes as much as needed. */
export function payForOrder(run: Run, left: string, right: string): void {
  run.burn(40 + Math.min(left.length, right.length) * compareUnits);
  payForMarks(run, left);
  payForMarks(run, right);
}

/**
 * Worst case of searching for a part in a text: with frequent partial matches it is compared repeatedly; and backward
 * the host uses the naive search.
 */
export function payForSearch(run: Run, text: string, part: string, isBackward: boolean): void {
  if (part.length <= 1) {
    run.burn(text.length >> (isBackward ? 3 : 6));
    return;
  }
  const compared = text.length * part.length;
  run.burn(isBackward ? compared / 16 : text.length / 2 + compared / 32);
  run.burn(part.length >> 4);
}

/** Comparing two texts with each other. */
export function payForComparing(run: Run, left: string, right: string): void {
  const length = Math.min(left.length, right.length);
  if (length > shortText) run.burn(length >> 5);
}
