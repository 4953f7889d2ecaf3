import { expect, it } from "vitest";
import { checkNodeTag } from "../../../../engine/base/names.ts";
import { ChangeOrigin } from "../../../../engine/state/documents/change-origin.ts";

const hash = "SujxUHKKb0KlgkspLLr2KQ";

it("names the node and the database in change vectors and counters", () => {
  const origin = new ChangeOrigin("WEST", hash);
  expect(origin.changeVectorAt(7)).toBe(`WEST:7-${hash}`);
  expect(origin.partKey).toBe(`WEST-${hash}`);
  expect(origin.hashBytes.toString()).toBe(hash);
  expect(origin.metadataOpen.toString()).toBe('"@change-vector":"WEST:');
});

it.each(["A", "ZZZZ"])("accepts the tag %j", (tag) => {
  checkNodeTag(tag);
});

it.each(["", "a", "ABCDE", "A1", "Ä", 'A"', "A\n"])("rejects the tag %j", (tag) => {
  expect(() => checkNodeTag(tag)).toThrow("is not one to four letters from A to Z");
});
