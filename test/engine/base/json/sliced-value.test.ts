import { describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { parsedText } from "../../../../engine/base/json/raw-scan.ts";
import { longValueBytes, parsedInSlices } from "../../../../engine/base/json/sliced-value.ts";

const long = "x".repeat(longValueBytes);

async function outcomeOf(text: string): Promise<unknown> {
  const bytes = Buffer.from(`  ${text}  `);
  try {
    return await parsedInSlices(bytes, 2, 2 + Buffer.byteLength(text));
  } catch (error) {
    if (error instanceof EngineError) return error.code;
    throw error;
  }
}

describe("a long value that is read in slices", () => {
  test.each([
    ["a list", `[1, "${long}" ,{"A":[]},null]`],
    ["a list of long lists", `[["${long}"],[["${long}",-1.5e3]],[]]`],
    ["an object", `{"A" : "${long}", "B":{"C":["${long}"]}, "D":true}`],
    ["a duplicate key", `{"A":"${long}","A":["${long}"],"A":2}`],
    ["an unusual key", `{"__proto__":{"B":"${long}"},"constructor":1}`],
    ["a deep value", `${"[".repeat(50)}"${long}"${"]".repeat(50)}`],
    ["an empty list with spaces", `[${" ".repeat(longValueBytes)}]`],
    ["many small ones", `[${new Array(20_000).fill('{"T":"ä","V":[1,2]}').join(",")}]`],
  ])("equals the result of JSON.parse: %s", async (_name, text) => {
    expect(await outcomeOf(text)).toStrictEqual(JSON.parse(text));
  });

  test.each([
    ["an extra comma", `["${long}",]`],
    ["a leading comma", `[,"${long}"]`],
    ["a missing comma", `["${long}" 1]`],
    ["a colon", `["${long}":1]`],
    ["two commas", `{"A":"${long}",,"B":1}`],
    ["a list closed by a brace", `["${long}"}`],
    ["an invalid value", `[${"y".repeat(longValueBytes)}]`],
    ["trailing bytes", `["${long}"]]`],
  ])("is rejected as by JSON.parse: %s", async (_name, text) => {
    expect(() => JSON.parse(text)).toThrow();
    const bytes = Buffer.from(text);
    expect(() => parsedText(bytes, 0, bytes.length)).toThrow(EngineError);
    expect(await outcomeOf(text)).toMatch(/^json-/);
  });
});
