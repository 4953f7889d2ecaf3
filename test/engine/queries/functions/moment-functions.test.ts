import { describe, expect, it } from "vitest";
import { formatTimestamp, parseTimestamp } from "../../../../engine/base/timestamp.ts";
import { analyzeQuery } from "../../../../engine/queries/analysis/analyze.ts";
import type { QueryKind } from "../../../../engine/queries/analysis/analyzed-query.ts";
import { parseQueryParameters } from "../../../../engine/queries/analysis/query-parameters.ts";
import { parseQuery } from "../../../../engine/queries/syntax/parser.ts";
import { conditionText } from "../execution/summarize.ts";

const nowMicros = parseTimestamp("2024-03-31T13:45:42.1234560Z");

function analyzed(text: string, parameters = "{}", kind: QueryKind = "read") {
  const options = { kind, parameters: parseQueryParameters(parameters), nowMicros };
  return analyzeQuery(text, parseQuery(text), options);
}

/** The time that a value in a condition denotes. */
function momentOf(value: string, parameters = "{}"): string {
  const { where, moments } = analyzed(`from A where At > ${value}`, parameters);
  const text = formatTimestamp(moments[0] as number);
  expect(where === null ? "" : conditionText(where)).toBe(`(> At "${text}")`);
  return text;
}

describe("a moment in a condition", () => {
  // Verified on RavenDB 7.2.7.
  it.each([
    ["now()", "2024-03-31T13:45:42.1234560Z"],
    ["NOW ( )", "2024-03-31T13:45:42.1234560Z"],
    ["today()", "2024-03-31T00:00:00.0000000Z"],
    ["now('0s')", "2024-03-31T13:45:42.0000000Z"],
    ["now('-1m')", "2024-03-31T13:44:00.0000000Z"],
    ["now('-90min')", "2024-03-31T12:15:00.0000000Z"],
    ["now('0h')", "2024-03-31T13:00:00.0000000Z"],
    ["now('+1D')", "2024-04-01T00:00:00.0000000Z"],
    ["now('-1d2h')", "2024-03-30T11:00:00.0000000Z"],
    ["now(' - 1 day 2 hours ')", "2024-03-30T11:00:00.0000000Z"],
    ["now('-1d0h')", "2024-03-30T13:00:00.0000000Z"],
    ["now('-1d1s')", "2024-03-30T13:45:41.0000000Z"],
    ["now('0mo')", "2024-03-01T00:00:00.0000000Z"],
    ["now('-1month')", "2024-02-01T00:00:00.0000000Z"],
    ["now('-1month0d')", "2024-02-29T00:00:00.0000000Z"],
    ["now('0y')", "2024-01-01T00:00:00.0000000Z"],
    ["now('1year 6months 2days 3hours 4minutes 5seconds')", "2025-10-02T16:49:47.0000000Z"],
  ])("%s is %s", (value, moment) => expect(momentOf(value)).toBe(moment));

  it("accepts an offset from a parameter", () => {
    expect(momentOf("now($ago)", '{"ago":"-1h"}')).toBe("2024-03-31T12:00:00.0000000Z");
  });

  it.each([
    ["now('zz')", "Invalid offset format 'zz' for now(). Expected format: [+|-]N(y|year|years)"],
    ["now('-1w')", "Invalid offset format '-1w'"],
    ["now('-2h1d')", "Invalid offset format '-2h1d'"],
    ["now('-1d1d')", "Invalid offset format '-1d1d'"],
    ["now('-1d -2h')", "Invalid offset format"],
    ["now('-')", "Invalid offset format '-'"],
    ["now('-1.5d')", "Invalid offset format '-1.5d'"],
    ["now('-1mins')", "Invalid offset format '-1mins'"],
    ["now(5)", "Invalid offset format '5'"],
    ["now('')", "Method now() offset argument must be a non-empty string."],
    ["now(null)", "Method now() offset argument must be a non-empty string."],
    ["now('1d', '2d')", "Method now() expects zero or one argument."],
    ["today('-1d')", "Method today() does not accept arguments."],
    ["now('-10000y')", "leads out of the years 1 to 9999"],
    ["now('999999999999d')", "leads out of the years 1 to 9999"],
  ])("%s is rejected", (value, complaint) =>
    expect(() => analyzed(`from A where At > ${value}`)).toThrow(complaint),
  );

  it("is allowed only on the right of an operator", () => {
    expect(() => analyzed("from A where now() < At")).toThrow("The method Now on the left side");
    expect(() => analyzed("from A filter At > now()")).toThrow(
      "'now()' function is not supported in filter or subscription expressions",
    );
    expect(() => analyzed("from A where At > today()", "{}", "subscription")).toThrow(
      "'today()' function is not supported in filter or subscription expressions",
    );
  });
});
