import { describe, expect, it } from "vitest";
import { parseInstant, termsOfInstant } from "../../../../engine/indexing/dates/date-terms.ts";

describe("parseInstant", () => {
  it.each([
    ["2024-01-31", "2024-01-31"],
    ["2024-01-31T10:15:30", "2024-01-31T10:15:30.0000000"],
    ["2024-01-31T10:15:30Z", "2024-01-31T10:15:30.0000000Z"],
    ["2024-01-31T10:15:30.1Z", "2024-01-31T10:15:30.1000000Z"],
    ["2024-01-31T12:15:30.123+02:00", "2024-01-31T10:15:30.1230000Z"],
    ["2024-01-31T10:15:30.1234567", "2024-01-31T10:15:30.1234567"],
    ["2024-01-31T24:00:00", "2024-02-01T00:00:00.0000000"],
    ["0001-01-01", "0001-01-01"],
    ["9999-12-31T23:59:59.9999999", "9999-12-31T23:59:59.9999999"],
  ])("parses %s as %s", (text, term) => {
    expect(parseInstant(text)?.term).toBe(term);
  });

  it.each([
    ...["2024-02-30", "2023-02-29", "2024-13-01", "2024-1-31", "2024-01-31 10:15:30", "2024"],
    ...["2024-01-31T10:15", "2024-01-31t10:15:30", "2024-01-31T10:15:30.1+02:00", "0000-01-01"],
    ...["2024-01-31T25:00:00", "2024-01-31T24:00:01", "2024-01-31T10:60:00", ""],
  ])("rejects '%s'", (text) => {
    expect(parseInstant(text)).toBeNull();
  });

  it("agrees with Date on the day of every month of four centuries", () => {
    for (let year = 1800; year < 2200; year++) {
      for (let month = 0; month < 12; month++) {
        const date = new Date(Date.UTC(year, month + 1, 0));
        const text = date.toISOString().slice(0, 10);
        expect(parseInstant(text)?.milliseconds).toBe(date.getTime());
      }
    }
  });

  it("produces the terms of an instant in every format that documents use", () => {
    const midnight = parseInstant("2024-01-31");
    expect(midnight === null ? [] : termsOfInstant(midnight)).toEqual([
      "2024-01-31T00:00:00.0000000",
      "2024-01-31T00:00:00.0000000Z",
      "2024-01-31",
    ]);
  });
});
