/**
 * The expected forms were measured on RavenDB 7.2.7, by looking up documents and collections under
 * other spellings.
 */
import { describe, expect, test } from "vitest";
import { foldedName, lowerCased } from "../../../engine/base/case-folding.ts";

/** Code units that this version of JavaScript lower-cases, but RavenDB 7.2.7 does not. */
const newer = new Set([0x1c89, 0xa7cb, 0xa7cc, 0xa7ce, 0xa7d2, 0xa7d4, 0xa7da, 0xa7dc]);

describe("the folded form of an id", () => {
  test("folds each code unit separately, by Unicode 15", () => {
    for (let unit = 0; unit < 0x10000; unit++) {
      const text = String.fromCharCode(unit);
      const lower = text.toLowerCase();
      const isKept = lower.length > 1 || newer.has(unit);
      // A later Unicode version may define more capitals, which fold to themselves.
      if (lowerCased(text) === text && lower !== text && unit > 0xa7dc) continue;
      expect([unit.toString(16), lowerCased(text)]).toEqual([
        unit.toString(16),
        isKept ? text : lower,
      ]);
    }
  });

  test("does not depend on context, so the form of a prefix is a prefix of the form", () => {
    for (const text of ["ΟΔΟΣ/1", "ΟΔΟΣ", "ΑΣ ΒΣ.Σ", "İSTANBUL", "STRAẞE", "\u{10400}Σ\u{10428}"]) {
      for (let end = 0; end <= text.length; end++) {
        expect(lowerCased(text).startsWith(lowerCased(text.slice(0, end)))).toBe(true);
      }
    }
  });

  test.each([
    ["ΟΔΟΣ", "οδοσ", true],
    ["ΟΔΟΣ", "οδος", false],
    ["σ", "ς", false],
    ["İ", "i", false],
    ["İ", "i\u0307", false],
    ["I", "ı", false],
    ["ẞ", "ß", true],
    ["ß", "ss", false],
    ["Ǆ", "ǆ", true],
    ["ǅ", "ǆ", true],
    ["Ꭰ", "\uab70", true],
    ["Ა", "ა", true],
    ["Ⴀ", "ⴀ", true],
    ["\u{10400}", "\u{10428}", false],
    ["\u212a", "k", true],
    ["\u2126", "ω", true],
    ["ϴ", "θ", true],
    ["µ", "μ", false],
    ["ſ", "s", false],
    ["ᾈ", "ᾀ", true],
    ["Ⅷ", "ⅷ", true],
  ])("of %j and %j is the same: %j", (one, other, isSame) => {
    expect(lowerCased(`a/${one}x`) === lowerCased(`A/${other}X`)).toBe(isSame);
  });
});

describe("the folded form of a name", () => {
  test.each([
    ["ΟΔΟΣ", "οδοσ", true],
    ["ΟΔΟΣ", "οδος", true],
    ["σ", "ς", true],
    ["İ", "i", false],
    ["İ", "i\u0307", false],
    ["I", "ı", false],
    ["ſ", "s", false],
    ["ẞ", "ß", false],
    ["ǅ", "ǆ", true],
    ["ǅ", "Ǆ", true],
    ["Ა", "ა", true],
    ["\u212a", "k", false],
    ["\u212b", "å", false],
    ["\u2126", "ω", false],
    ["ϴ", "θ", false],
    ["θ", "ϑ", true],
    ["µ", "μ", true],
    ["\u0345", "ι", true],
    ["\u1c80", "в", true],
    ["\u1c88", "\ua64b", true],
    ["\u1e9b", "ṡ", true],
    ["ᾈ", "ᾀ", true],
  ])("of %j and %j is the same: %j", (one, other, isSame) => {
    expect(foldedName(`a${one}x`) === foldedName(`A${other}X`)).toBe(isSame);
  });

  test("leaves %j unchanged", () => {
    for (let unit = 0; unit < 0x10000; unit++) {
      const form = foldedName(String.fromCharCode(unit));
      expect(foldedName(form)).toBe(form);
      expect(form).toHaveLength(1);
    }
  });
});
