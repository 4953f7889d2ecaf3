import { expect, test } from "vitest";
import {
  checkedJson,
  checkedJsonInSlices,
  checkedJsonWithMetadata,
  checkJson,
  readMinified,
} from "../../../../engine/state/documents/checked-json.ts";

const text = Buffer.from('{ "n": 1.50, "@metadata": { "a": 1 }, "s": "x\\/y" }');

test("minifies an object and keeps the spelling of its numbers", async () => {
  const expected = '{"n":1.50,"s":"x/y"}';
  const checked = checkedJson(text);
  checkJson(Buffer.from('{"other":"text that is longer than the first one was"}'));
  expect(checked.toString()).toBe(expected);
  expect((await checkedJsonInSlices(text)).toString()).toBe(expected);
  expect(checkedJsonWithMetadata(text).toString()).toBe('{"n":1.50,"@metadata":{"a":1},"s":"x/y"}');
});

test.each([
  ["", "json-truncated"],
  ["[]", "json-not-object"],
  ["{} 1", "json-invalid"],
  ["{'a':1}", "json-invalid"],
])("rejects %j", async (refused, code) => {
  const bytes = Buffer.from(refused);
  const expected = expect.objectContaining({ code });
  for (const check of [checkJson, checkedJson, checkedJsonWithMetadata]) {
    expect(() => check(bytes)).toThrow(expected);
  }
  await expect(checkedJsonInSlices(bytes)).rejects.toMatchObject({ code });
});

test("minifies a long text in slices and a short one synchronously", async () => {
  const value = "x".repeat(200_000);
  const found = readMinified(Buffer.from(`{ "a" : "${value}" }`));
  expect(found).toBeInstanceOf(Promise);
  expect((await found).toString()).toBe(`{"a":"${value}"}`);
  expect(readMinified(Buffer.from('{ "a" : 1.0 }')).toString()).toBe('{"a":1.0}');
});
