import { expect, test } from "vitest";
import { minifiedObject } from "../../../engine/engine.ts";

test("an object is minified, and stays as it is when another is", async () => {
  const first = await minifiedObject(Buffer.from('{ "a" : 1.0 }'));
  await minifiedObject(Buffer.from('{"bbb":2}'));
  expect(first.toString()).toBe('{"a":1.0}');
});

test("a long one too", async () => {
  const value = "x".repeat(200_000);
  const text = await minifiedObject(Buffer.from(`{ "a" : "${value}" }`));
  expect(text.toString()).toBe(`{"a":"${value}"}`);
});

test.each(['{"a":1', "[1]", '{"a":1}x'])("%s is refused", async (text) => {
  await expect(async () => await minifiedObject(Buffer.from(text))).rejects.toThrow();
});
