import { describe, expect, it } from "vitest";
import { FieldColumn } from "../../../../engine/indexing/columns/field-column.ts";
import { textKind } from "../../../../engine/indexing/columns/term-dictionary.ts";
import {
  CoraxWeigher,
  countedAs,
  LuceneWeigher,
} from "../../../../engine/indexing/text/word-weights.ts";

/** A column with these terms. */
function columnOf(...terms: readonly string[]): FieldColumn {
  const column = new FieldColumn();
  for (const term of terms) column.dictionary.internText(textKind, term, Number.NaN);
  return column;
}

function termIn({ dictionary }: FieldColumn, text: string): number {
  return dictionary.findText(textKind, text);
}

describe("a term has the same weight as in RavenDB 7.2.7", () => {
  it("counts its occurrences in steps", () => {
    const measured = {
      1: 1,
      16: 16,
      18: 16,
      19: 19,
      21: 19,
      50: 49,
      63: 61,
      64: 64,
      75: 64,
      76: 76,
      130: 124,
      250: 244,
      300: 256,
      350: 304,
      1000: 976,
      1500: 1408,
      5000: 4864,
      10000: 9472,
      20000: 19_456,
    };
    for (const [frequency, counted] of Object.entries(measured)) {
      expect(countedAs(Number(frequency)), frequency).toBe(counted);
    }
  });

  it("in Corax: by rarity, occurrences, boost, and its length among others", () => {
    const weigher = new CoraxWeigher();
    const colors = columnOf("red", "green", "blue", "gray");
    const score = (word: string, found: number, boost = 1, frequency = 1) =>
      weigher.termWeight({ total: 100, found, boost }, colors, termIn(colors, word))(frequency);
    expect(score("red", 8)).toBeCloseTo(0.86089, 5);
    expect(score("gray", 4)).toBeCloseTo(1.03701, 5);
    // Found by the boost at which another condition has the same weight.
    expect(score("blue", 3, 1.43248)).toBeCloseTo(score("blue", 1), 4);
    expect(score("blue", 3)).toBeCloseTo(score("blue", 1, 0.725693), 4);
    expect(score("blue", 1, 2)).toBeCloseTo(score("blue", 3, 3.34756), 4);
    expect(score("blue", 3, 1, 2)).toBeCloseTo(1.68118, 5);
    expect(weigher.wholeWeight({ total: 100, found: 2, boost: 1 })).toBeCloseTo(1.23294, 5);
    expect(score("blue", 3, 0)).toBe(0);
    expect(score("blue", 3, 1e308, 20)).toBeCloseTo(Math.log(101 / 3.5), 5);
    expect(score("blue", 3, -2)).toBeLessThan(0);
  });

  it("in Lucene: by rarity and the root of its occurrences, without the length of the entry", () => {
    const column = columnOf("apple", "filler");
    const scores = (...parts: readonly [found: number, frequency: number][]) => {
      const sumBy = (weigher: LuceneWeigher) => {
        let sum = 0;
        for (const [found, frequency] of parts) {
          const weightOf = weigher.termWeight({ total: 12, found, boost: 1 });
          sum = weigher.round(sum + weightOf(frequency));
        }
        return sum;
      };
      const first = new LuceneWeigher();
      sumBy(first);
      return sumBy(new LuceneWeigher(first.norm));
    };
    expect(column.dictionary.count).toBeGreaterThan(2);
    expect(scores([12, 10])).toBe(2.9091603755950928);
    expect(scores([12, 1])).toBe(0.9199572801589966);
    expect(scores([7, 2])).toBe(1.9876278638839722);
    expect(scores([12, 1], [7, 1])).toBeCloseTo(1.6797778606414795, 6);
  });
});
