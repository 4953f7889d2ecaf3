/** Cells of CSV as members of JSON documents. */
import { expect, test } from "vitest";
import { cellJson, JsonBuilder } from "../../cli/csv-cells.ts";

const plain = (value: string) => cellJson({ value, isQuoted: false }, false);
const quoted = (value: string) => cellJson({ value, isQuoted: true }, false);

test("numbers keep their digits, and number-like values are texts", () => {
  expect(plain("12345678901234567890.10")).toBe("12345678901234567890.10");
  expect(plain("007")).toBe('"007"');
  expect(plain("TRUE")).toBe("true");
  expect(quoted("12")).toBe('"12"');
  expect(quoted("[1,2]")).toBe("[1,2]");
  expect(quoted("[1,")).toBe('"[1,"');
  expect(cellJson({ value: "12", isQuoted: false }, true)).toBe('"12"');
});

test("paths make objects, and one through what is none keeps its dots", () => {
  const members = new JsonBuilder();
  members.add(["Address", "City"], '"Ghent"');
  members.add(["Name"], '"Ann"');
  members.add(["Name", "First"], '"A"');
  expect(members.toString()).toBe('{"Address":{"City":"Ghent"},"Name":"Ann","Name.First":"A"}');
});
