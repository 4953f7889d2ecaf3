import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTimestamp, parseTimestamp } from "../../../engine/base/timestamp.ts";

/** Microseconds around 1970 that are all exact. */
const exactMax = Number.MAX_SAFE_INTEGER;
const yearOne = -62_135_596_800_000_000;

describe("formatting a timestamp", () => {
  it("prints the date and time of Date, seven decimals and Z", () => {
    fc.assert(
      fc.property(fc.integer({ min: -exactMax, max: exactMax }), (micros) => {
        const millis = Math.floor(micros / 1000);
        const rest = String(micros - millis * 1000).padStart(3, "0");
        const expected = new Date(millis).toISOString().replace("Z", `${rest}0Z`);
        expect(formatTimestamp(micros)).toBe(expected);
        expect(parseTimestamp(expected)).toBe(micros);
      }),
      { numRuns: 3000 },
    );
  });

  it("is correct on every day of 800 years", () => {
    for (let day = -200_000; day < 92_000; day++) {
      const text = formatTimestamp(day * 86_400_000_000);
      if (!text.startsWith(new Date(day * 86_400_000).toISOString().slice(0, 19))) {
        expect.fail(text);
      }
    }
  });

  it("covers years 1 to 9999", () => {
    expect(formatTimestamp(yearOne)).toBe("0001-01-01T00:00:00.0000000Z");
    expect(formatTimestamp(0)).toBe("1970-01-01T00:00:00.0000000Z");
    const last = parseTimestamp("9999-12-31T23:59:59.9999999Z");
    expect(formatTimestamp(last)).toBe("9999-12-31T23:59:59.9999680Z");
    expect(() => formatTimestamp(yearOne - 1000)).toThrow("not before year 1");
    expect(() => formatTimestamp(last + 1000)).toThrow("not after year 9999");
  });
});

describe("parsing a timestamp", () => {
  it.each([
    ["2020-02-29T12:30:59Z", Date.UTC(2020, 1, 29, 12, 30, 59) * 1000],
    ["2020-02-29T12:30:59", Date.UTC(2020, 1, 29, 12, 30, 59) * 1000],
    ["1970-01-01T00:00:00.5Z", 500_000],
    ["1970-01-01T00:00:00.1234567Z", 123_456],
    ["0099-01-01T00:00:00Z", Date.parse("0099-01-01T00:00:00Z") * 1000],
  ])("accepts %s", (text, micros) => expect(parseTimestamp(text)).toBe(micros));

  it.each([
    "",
    "2020-01-01",
    "2020-02-30T00:00:00Z",
    "2021-02-29T00:00:00Z",
    "2020-13-01T00:00:00Z",
    "2020-00-01T00:00:00Z",
    "2020-01-01T24:00:00Z",
    "2020-01-01T00:60:00Z",
    "2020-01-01T00:00:60Z",
    "2020-01-01T00:00:00.Z",
    "2020-01-01T00:00:00.12345678Z",
    "2020-01-01T00:00:00+01:00",
    "0000-01-01T00:00:00Z",
    " 2020-01-01T00:00:00Z",
    "2020-01-01T00:00:00Z\n",
  ])("rejects '%s'", (text) => expect(parseTimestamp(text)).toBeNaN());
});
