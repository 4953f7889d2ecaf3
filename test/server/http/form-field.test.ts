/** A field of a form as a body. */
import { expect, test } from "vitest";
import { formField } from "../../../server/http/form-field.ts";

const form = "application/x-www-form-urlencoded; charset=UTF-8";
const field = (body: string, type = form) =>
  formField({ header: () => type }, Buffer.from(body), "Options").toString();

test("decodes a field of a form; a missing field is empty", () => {
  expect(field("a=1&Options=%7B%22N%22%3A%22x+%26+y%22%7D")).toBe('{"N":"x & y"}');
  expect(field("a=1")).toBe("");
});

test("returns any other body unchanged, also if curl labels it as a form", () => {
  expect(field('{"N":"a=1"}')).toBe('{"N":"a=1"}');
  expect(field("Options=1", "application/json")).toBe("Options=1");
});
