/** .NET's text formats of time spans and dates. */
import { expect, test } from "vitest";
import { timeSpanText, unzonedDateText } from "../../../server/http/dates.ts";
import { parseTimeSpanMs } from "../../../server/http/request.ts";

test.each([
  [0, "00:00:00.0000000"],
  [1500, "00:00:01.5000000"],
  [86_400_000 * 12 + 3_723_004, "12.01:02:03.0040000"],
])("%i ms is %s, and back", (ms, text) => {
  expect(timeSpanText(ms)).toBe(text);
  expect(parseTimeSpanMs(text)).toBe(ms);
});

test("a date without time zone has seven decimals", () => {
  expect(unzonedDateText(new Date(Date.UTC(2020, 1, 3)))).toBe("2020-02-03T00:00:00.0000000");
});
