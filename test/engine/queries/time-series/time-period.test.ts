import { describe, expect, test } from "vitest";
import {
  addPeriod,
  parsePeriod,
  parseRange,
  parseSeriesTime,
  parseTimeSpan,
  startOfGroup,
} from "../../../../engine/queries/time-series/time-period.ts";

const ms = (text: string) => Date.parse(text);
const text = (time: number) => new Date(time).toISOString();

describe("a period", () => {
  test("has a number and a unit, in any case, with or without spaces", () => {
    expect(parsePeriod("1h")).toEqual({ kind: "milliseconds", length: 3_600_000 });
    expect(parsePeriod(" 90   MIN ")).toEqual({ kind: "milliseconds", length: 5_400_000 });
    expect(parsePeriod("250 milliseconds")).toEqual({ kind: "milliseconds", length: 250 });
    expect(parsePeriod("2 quarters")).toEqual({ kind: "months", count: 6 });
    expect(parsePeriod("3y")).toEqual({ kind: "months", count: 36 });
    expect(parsePeriod("1 M")).toEqual({ kind: "milliseconds", length: 60_000 });
  });

  test.each([
    ["x", "invalid-argument"],
    ["-1 days", "invalid-argument"],
    ["1.5 h", "invalid-argument"],
    ["1", "invalid-argument"],
    ["1 week", "invalid-argument"],
    ["1 day 2 hours", "invalid-argument"],
    ["0 days", "invalid-argument"],
    ["99999999999 days", "out-of-range"],
    ["9".repeat(25).concat(" days"), "out-of-range"],
    ["2000000 years", "invalid-argument"],
  ])("is rejected if it is %s", (wrong, code) => {
    expect(() => parsePeriod(wrong)).toThrow(expect.objectContaining({ code }));
  });

  test("of a range may be empty", () => {
    expect(parseRange("0 days")).toEqual({ kind: "milliseconds", length: 0 });
    expect(parseRange("10 days")).toEqual({ kind: "milliseconds", length: 864_000_000 });
    expect(() => parseRange("0 weeks")).toThrow("Unable to understand");
  });

  test("of months ends at the last day of a shorter month", () => {
    const month = parsePeriod("1 month");
    expect(text(addPeriod(ms("2024-01-31T05:00:00Z"), month))).toBe("2024-02-29T05:00:00.000Z");
    expect(text(addPeriod(ms("2023-03-31T00:00:00Z"), month, -1))).toBe("2023-02-28T00:00:00.000Z");
    expect(() => addPeriod(ms("9999-12-05T00:00:00Z"), month)).toThrow("un-representable");
  });
});

describe("groups begin", () => {
  // Measured on RavenDB 7.2.7.
  test.each([
    ["3 days", "2023-01-10T01:00:00Z", "2023-01-09T00:00:00.000Z"],
    ["7 h", "2023-01-10T01:00:00Z", "2023-01-09T21:00:00.000Z"],
    ["7 s", "2023-01-10T01:00:00Z", "2023-01-10T00:59:59.000Z"],
    ["5 months", "1999-12-25T00:00:00Z", "1999-11-01T00:00:00.000Z"],
    ["7 months", "2005-12-31T00:00:00Z", "2005-08-01T00:00:00.000Z"],
    ["3 q", "2005-12-31T00:00:00Z", "2005-10-01T00:00:00.000Z"],
    ["13 months", "2005-12-31T00:00:00Z", "2005-12-01T00:00:00.000Z"],
    ["18 months", "2003-07-01T00:00:00Z", "2003-07-01T00:00:00.000Z"],
    ["24 months", "1999-01-15T00:00:00Z", "1998-01-01T00:00:00.000Z"],
    ["5 y", "1999-01-15T00:00:00Z", "1995-01-01T00:00:00.000Z"],
    ["1 month", "0001-01-31T00:00:00Z", "0001-01-01T00:00:00.000Z"],
    ["5000 y", "0004-01-31T00:00:00Z", "0001-01-01T00:00:00.000Z"],
  ])("with %s at %s: %s", (period, time, start) => {
    expect(text(startOfGroup(ms(time), parsePeriod(period)))).toBe(start);
  });
});

test("a time span has days, hours and minutes, or days alone", () => {
  expect(parseTimeSpan("02:00")).toBe(7_200_000);
  expect(parseTimeSpan("-05:30:00")).toBe(-19_800_000);
  expect(parseTimeSpan("1.02:00:00.5")).toBe(93_600_500);
  expect(parseTimeSpan("-3")).toBe(-259_200_000);
  for (const wrong of ["26:00", "1:60", "xx", "", "999999999.00:00", "1:2:3:4"]) {
    expect(parseTimeSpan(wrong)).toBeNull();
  }
});

test("a time has one of the formats of series queries", () => {
  expect(parseSeriesTime("2023")).toEqual({ ms: ms("2023-01-01"), isBetween: false });
  expect(parseSeriesTime("2023-05-02T03:04")).toMatchObject({ ms: ms("2023-05-02T03:04:00Z") });
  expect(parseSeriesTime("2023-05-02T03:04:05.1234567Z")).toEqual({
    ms: ms("2023-05-02T03:04:05.123Z"),
    isBetween: true,
  });
  for (const wrong of ["2023-05-02T03:04:05Z", "2023-13", "2023-02-30", "0000", "x", ""]) {
    expect(parseSeriesTime(wrong)).toBeNull();
  }
});
