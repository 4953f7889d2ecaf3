import { describe, expect, it } from "vitest";
import {
  type StringDistance,
  similarityOf,
} from "../../../../engine/indexing/text/string-similarity.ts";

/** Measured on RavenDB 7.2.7: the highest `Accuracy` with which a term was suggested for a text. */
const measured: readonly (readonly [StringDistance, string, Readonly<Record<string, number>>])[] = [
  [
    "levenshtein",
    "maxin",
    {
      maxin: 0.8,
      maxinab: 0.833,
      maxine: 1,
      xmaxin: 0.6,
      maxim: 0.8,
      max: 0.4,
      ma: 0.2,
      maksim: 0.4,
      "anna maria": 0.222,
      halifax: 0.333,
      indych: 0,
    },
  ],
  ["levenshtein", "yesterda", { yesterday: 1, yesterdays: 0.889, hadera: 0.25 }],
  ["levenshtein", "hafia", { hadera: 0.4, haifa: 0.6, halifax: 0.667 }],
  [
    "jaro-winkler",
    "maxin",
    { maxin: 0.96, maxinab: 0.972, maxine: 1, xmaxin: 0.867, maksim: 0.787 },
  ],
  ["jaro-winkler", "yesterda", { yesterdays: 0.993, hadera: 0.55, hedera: 0.658 }],
  ["jaro-winkler", "roma", { rom: 0.867, rome: 0.942, "anna maria": 0.408, maxinab: 0.611 }],
  ["n-gram", "maxin", { maxin: 0.8, maxine: 1, max: 0.4, "anna maria": 0.555, indych: 1 }],
  ["n-gram", "oern", { hadera: 0.8, yesterday: 0.5, yesterdays: 0.445 }],
];

describe("similarityOf", () => {
  it.each(measured)("matches the measured value: %s of %s", (distance, text, terms) => {
    const found = Object.keys(terms).map((term) => {
      const similarity = similarityOf(Buffer.from(term), Buffer.from(text), distance);
      return [term, similarity];
    });
    for (const [term, similarity] of found) {
      expect(
        Math.abs((similarity as number) - (terms[term as string] as number)),
        `${term}`,
      ).toBeLessThan(0.0011);
    }
  });

  it("uses single precision: 0.4 of `max` is less than the limit 0.4", () => {
    const similarity = similarityOf(Buffer.from("max"), Buffer.from("maxin"), "n-gram");
    expect(similarity).toBeLessThan(Math.fround(0.4));
  });

  it("accepts texts of any length", () => {
    const long = Buffer.alloc(100_000, "a");
    expect(similarityOf(long, long, "levenshtein")).toBe(1);
    expect(similarityOf(Buffer.alloc(0), Buffer.alloc(0), "jaro-winkler")).toBe(1);
    expect(similarityOf(Buffer.from("a"), Buffer.from("b"), "jaro-winkler")).toBe(0);
  });
});
