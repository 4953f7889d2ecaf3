/** Orders of terms, merged from batches, compared with a full sort. */
import { expect, test } from "vitest";
import { WorkBudget } from "../../../../engine/base/scheduling/work-budget.ts";
import { numberKind, TermDictionary } from "../../../../engine/indexing/columns/term-dictionary.ts";
import { TermOrder, wholePart } from "../../../../engine/indexing/columns/term-order.ts";
import { SeededRandom } from "../../../support/random.ts";

const texts = [
  "3",
  "-3",
  "1.5",
  "9007199254740993",
  "9007199254740992.5",
  "123456789012345673",
  "123456789012345677",
  "123456789012345677.5",
  "123456789012345678.25",
  "123456789012345680",
  "1.2345678901234568E+17",
  "123456789012345682.5",
  "-123456789012345677.5",
  "-123456789012345677",
  "9223372036854775807",
  "99999999999999999999",
  "1e20",
  "1e308",
];

test("keeps the order of numbers beyond 2^53, in any order of arrival", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new SeededRandom(seed);
    const dictionary = new TermDictionary();
    const order = new TermOrder("number", dictionary);
    const left = [...texts];
    while (left.length > 0) {
      for (let count = 1 + random.below(4); count > 0 && left.length > 0; count--) {
        const [text = ""] = left.splice(random.below(left.length), 1);
        dictionary.internText(numberKind, text, Number(text));
      }
      for (const _ of order.refresh(new WorkBudget()));
    }
    const ordered = [...order.terms].map((term) => dictionary.textOf(term));
    expect([...ordered].sort(), `seed ${seed}`).toEqual([...texts].sort());
    for (let at = 1; at < ordered.length; at++) {
      const [before = "", after = ""] = ordered.slice(at - 1, at + 1);
      expect(Number(before), `seed ${seed}`).toBeLessThanOrEqual(Number(after));
      expect(wholePart(before) <= wholePart(after), `seed ${seed}: ${before}, ${after}`).toBe(true);
    }
  }
});
