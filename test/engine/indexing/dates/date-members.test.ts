/** Members of dates and time spans. The values are those of RavenDB 7.2.7; more are in test/cases/exchanges/date-parts.txt. */
import { expect, test } from "vitest";
import {
  dateMember,
  isDateText,
  isDoubleMember,
  timeMember,
} from "../../../../engine/indexing/dates/date-members.ts";
import { spanTicks, timeSpanText } from "../../../../engine/indexing/dates/time-spans.ts";

test.each([
  ["2000-01-02T03:04:05.0060000", "Year", 2000],
  ["2000-01-02T03:04:05.0067891Z", "Microsecond", 789],
  ["2000-01-02T03:04:05.0067891Z", "Nanosecond", 100],
  ["2000-01-02T03:04:05.0067891Z", "Ticks", 630823790450067891n],
  ["2000-01-02T03:04:05.0067891Z", "Kind", "Utc"],
  ["2000-01-02T03:04:05+02:00", "Hour", 3],
  ["2000-01-02T03:04:05+02:00", "UtcDateTime", "2000-01-02T01:04:05.0000000Z"],
  ["2010-12-31T23:59:59.9990000-05:00", "UtcTicks", 634294547999990000n],
  ["2010-12-31T23:59:59.9990000-05:00", "Date", "2010-12-31T00:00:00.0000000"],
  ["2010-12-31T23:59:59.9990000-05:00", "TotalOffsetMinutes", -300],
  ["2010-12-31T23:59:59.9990000-05:00", "Offset", "-05:00:00"],
  ["2010-12-31", "DayNumber", 734136],
  ["0050-12-31", "DayOfYear", 365],
  ["1.02:03:04", "TotalHours", 26.051111111111112],
  ["-00:00:01", "Seconds", -1],
  ["03:04:05.006", "Ticks", 110450060000n],
  ["03:04:05", "Hour", 3],
  ["24:00:00", "Hours", 0],
])("of %s, %s is %s", (text, name, value) => {
  expect(dateMember(text, name)).toBe(value);
});

test.each([
  ["2000-01-02T03:04:05", "Offset"],
  ["2000-01-02T03:04:05+02:00", "Kind"],
  ["2000-01-02T03:04:05", "year"],
  ["2000-01-02", "Hour"],
  ["24:00:00", "Hour"],
  ["1.02:03:04", "Hour"],
  ["2000-13-02", "Year"],
  ["x", "Year"],
])("%s has no %s", (text, name) => {
  expect(dateMember(text, name)).toBeUndefined();
});

test("days and times of day have members only in an index", () => {
  expect(timeMember("2000-01-02", "Year")).toBeUndefined();
  expect(timeMember("03:04:05", "Hour")).toBeUndefined();
  expect(timeMember("03:04:05", "Hours")).toBe(3);
});

test("what is a date or a time span, and what is printed as a double", () => {
  expect(["2000-01-02", "03:04:05", "x", "3:04:05"].map(isDateText)).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(["TotalDays", "TotalOffsetMinutes", "Days"].map(isDoubleMember)).toEqual([
    true,
    false,
    false,
  ]);
});

test("a time span is printed as text", () => {
  for (const text of ["00:00:00", "1.02:03:04.5000000", "-10675199.02:48:05.4775808"]) {
    expect(timeSpanText(spanTicks(text) as bigint)).toBe(text);
  }
});
