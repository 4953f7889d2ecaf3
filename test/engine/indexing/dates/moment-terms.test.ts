/** Which texts are time spans, and their ticks, is as in RavenDB 7.2.7; more is in test/cases/exchanges/time-spans.txt. */
import { expect, test } from "vitest";
import { WorkBudget } from "../../../../engine/base/scheduling/work-budget.ts";
import { dateKind, TermDictionary } from "../../../../engine/indexing/columns/term-dictionary.ts";
import { TermOrder } from "../../../../engine/indexing/columns/term-order.ts";
import { dateTicks } from "../../../../engine/indexing/dates/date-terms.ts";
import {
  mayBeSpan,
  parseMoment,
  termsOfMoment,
} from "../../../../engine/indexing/dates/moment-terms.ts";
import { spanTicks, timeSpanText } from "../../../../engine/indexing/dates/time-spans.ts";

test.each([
  ["00:00:05", 50_000_000n, "00:00:05"],
  ["00:00:05.1", 51_000_000n, "00:00:05.1000000"],
  ["-00:00:00.0000001", -1n, "-00:00:00.0000001"],
  ["24:00:00", 864_000_000_000n, "1.00:00:00"],
  ["0001.00:00:00", 864_000_000_000n, "1.00:00:00"],
  ["00:60:00", 36_000_000_000n, "01:00:00"],
  ["10675199.02:48:05.4775807", 2n ** 63n - 1n, "10675199.02:48:05.4775807"],
  ["2020-01-01T00:00:00", 637_134_336_000_000_000n, "2020-01-01T00:00:00.0000000"],
])("%s is the moment of %s ticks", (text, ticks, term) => {
  const moment = parseMoment(text);
  expect(moment).not.toBeNull();
  if (moment === null) return;
  expect(dateTicks(moment.milliseconds, moment.ticks)).toBe(ticks);
  expect(moment.ticks).toBeGreaterThanOrEqual(0);
  expect(termsOfMoment(moment)).toContain(term);
});

test.each([
  "9:00:00",
  "1:00",
  "5",
  "1.2:3:4",
  "01:02:03:04",
  "00:00:05.12345678",
  "10675199.02:48:05.4775808",
  "100000000.00:00:00",
  "--00:00:01",
  " 00:00:01",
])("%s is a text", (text) => {
  expect(parseMoment(text)).toBeNull();
});

test("what may be a time span has digits and a colon", () => {
  const may = (text: string) => mayBeSpan(Buffer.from(`${text}:::::`), text.length);
  const spans = ["00:00:05", "-1.00:00:00", "-10675199.02:48:05.4775808", "10675199.02:48:05.1"];
  expect(spans.map(may)).toEqual([true, true, true, true]);
  const texts = ["users/1:", "12345678", "00:00:0", "a0:00:05", "2020-01-01", "1234567890123456"];
  expect(texts.map(may)).toEqual([false, false, false, false, false, false]);
});

test("moments that differ by a tick are in order, negative ones too", () => {
  const dictionary = new TermDictionary();
  const spans = [-10_001n, -10_000n, -9_999n, -1n, 0n, 1n, 9_999n, 10_000n, 864_000_000_001n];
  const texts = [...spans.map((ticks) => timeSpanText(ticks)), "0001-01-02T00:00:00.0000002"];
  for (const text of texts.toReversed()) {
    const moment = parseMoment(text);
    if (moment === null) throw new Error(text);
    dictionary.internText(dateKind, moment.term, moment.milliseconds);
  }
  const order = new TermOrder("date", dictionary);
  for (const _ of order.refresh(new WorkBudget()));
  expect([...order.terms].map((term) => dictionary.textOf(term))).toEqual(texts);
  expect(spanTicks(texts[8] as string)).toBe(864_000_000_001n);
});
