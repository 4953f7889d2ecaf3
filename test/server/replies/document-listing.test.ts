import { expect, test } from "vitest";
import { foldedName } from "../../../engine/base/case-folding.ts";
import { matchesPattern } from "../../../server/replies/document-listing.ts";

/** The result of RavenDB 7.2.7 for `startsWith` with `matches`. */
test.each([
  ["ΟΔΟΣ/1", "οδος/*", true],
  ["οδος/1", "*Δ?Σ/1", true],
  ["STRAẞE", "straß*", false],
  ["İ", "i*", false],
  ["Ab", "aB?", false],
  ["Abc", "aB?", true],
])("the pattern of %j and %j match: %j", (text, pattern, isMatch) => {
  expect(matchesPattern(text, foldedName(pattern))).toBe(isMatch);
});
