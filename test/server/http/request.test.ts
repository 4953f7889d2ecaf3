/** Query strings as sent by clients, and the messages for invalid values. */
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { parseTimeSpanMs, QueryString } from "../../../server/http/request.ts";

describe("a query string", () => {
  test("is parsed in any notation", () => {
    const query = new QueryString("&id=a%2F1&ID=b+c&&flag&empty=&x=1=2&bad=%zz&%6eame=v&");
    expect(query.all("id")).toEqual(["a/1", "b c"]);
    expect(query.get("Id")).toBe("a/1");
    expect(query.get("flag")).toBe("");
    expect(query.has("FLAG")).toBe(true);
    expect(query.get("empty")).toBe("");
    expect(query.get("x")).toBe("1=2");
    expect(query.get("bad")).toBe("%zz");
    expect(query.get("name")).toBe("v");
    expect(query.get("none")).toBeUndefined();
    expect(new QueryString("").all("id")).toEqual([]);
  });

  test("decodes slashes alone as together with other escapes", () => {
    const cases = [
      "users%2F7",
      "users%2f7",
      "a%2Fb%2Fc",
      "%2F",
      "a%252Fb",
      "%C3%A9%2F1",
      "%2F%",
      "%2%2F",
    ];
    for (const text of cases) {
      let expected = text;
      try {
        expected = decodeURIComponent(text);
      } catch {}
      expect(new QueryString(`id=${text}`).get("id"), text).toBe(expected);
    }
  });

  test("detects whether it has a single name", () => {
    expect(new QueryString("").hasOnly("id")).toBe(true);
    expect(new QueryString("id=1&ID=2&").hasOnly("id")).toBe(true);
    expect(new QueryString("id=1&include=2").hasOnly("id")).toBe(false);
    expect(new QueryString("include=2").hasOnly("id")).toBe(false);
  });

  test("has names that do not collide with JavaScript's own", () => {
    const query = new QueryString("__proto__=1&constructor=2");
    expect(query.get("__proto__")).toBe("1");
    expect(query.get("constructor")).toBe("2");
    expect(query.get("toString")).toBeUndefined();
  });
});

function message(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(EngineError);
    expect((error as EngineError).code).toBe("invalid-argument");
    return (error as EngineError).message;
  }
  throw new Error("no exception was thrown");
}

describe("values", () => {
  const query = new QueryString(
    "one=1&neg=-5&big=2147483648&huge=9223372036854775808&greatest=9223372036854775807&least=-9223372036854775808&text=x&yes=TRUE&no=false&blank=&two=1&two=2" +
      "&span=1.02:03:04.5&ms=250&date=2020-01-02T03:04:05.1234567Z&day=2020-01-02&float=1.5e3",
  );

  test("are typed, and absent or blank values return the default", () => {
    expect(query.int("one", 7)).toBe(1);
    expect(query.int("neg", 7)).toBe(-5);
    expect(query.int("blank", 7)).toBe(7);
    expect(query.int("none", undefined)).toBeUndefined();
    expect(query.long("big", 0)).toBe(2147483648);
    expect(query.long("greatest", 0)).toBe(Number.MAX_SAFE_INTEGER);
    expect(query.long("least", 0)).toBe(-Number.MAX_SAFE_INTEGER);
    expect(query.float("float", 0)).toBe(1500);
    expect(query.bool("yes", false)).toBe(true);
    expect(query.bool("no", true)).toBe(false);
    expect(query.bool("blank", true)).toBe(true);
    expect(query.timeSpanMs("span", 0)).toBe(93_784_500);
    expect(query.timeSpanMs("ms", 0)).toBe(250);
    expect(query.dateMs("date", 0)).toBe(Date.UTC(2020, 0, 2, 3, 4, 5, 123));
    expect(query.required("one")).toBe("1");
  });

  test("that cannot be parsed are reported with RavenDB's messages", () => {
    expect(message(() => query.required("none"))).toBe(
      "Query string none is mandatory, but wasn't specified.",
    );
    expect(message(() => query.required("blank"))).toBe(
      "Query string value 'blank' must have a non empty value",
    );
    expect(message(() => query.required("two"))).toBe("Query string two must appear exactly once");
    expect(message(() => query.int("text", 0))).toBe(
      "Could not parse header 'text' header as int, value was: x",
    );
    expect(message(() => query.int("big", 0))).toContain("as int, value was: 2147483648");
    expect(message(() => query.long("huge", 0))).toContain("as long");
    expect(message(() => query.float("text", 0))).toContain("as float");
    expect(message(() => query.bool("one", true))).toBe(
      "Could not parse query string 'one' as bool val 1",
    );
    expect(message(() => query.timeSpanMs("text", 0))).toBe(
      "Could not parse query string 'text' as timespan val x",
    );
    expect(message(() => query.dateMs("day", 0))).toBe(
      "Could not parse query string 'day' as date, val '2020-01-02'",
    );
  });
});

test.each([
  ["00:00:01.500000", 1500],
  ["00:00:05", 5000],
  ["-00:00:05", -5000],
  ["10:30", 37_800_000],
  ["3.00:00:00", 259_200_000],
  ["24:00:00", undefined],
  ["00:60:00", undefined],
  ["1:2:3:4", undefined],
  ["", undefined],
])("the time span '%s' is %s ms", (text, expected) => {
  expect(parseTimeSpanMs(text)).toBe(expected);
});
