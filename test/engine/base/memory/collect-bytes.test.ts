import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { collectBytes } from "../../../../engine/base/memory/collect-bytes.ts";

const source = () => Readable.from([Buffer.from("ab"), Buffer.from("cd")]);

test("returns all bytes of a stream that reaches its limit", async () => {
  expect((await collectBytes(source(), 4)).toString()).toBe("abcd");
});

test("closes a stream that exceeds its limit, and throws the error of the caller", async () => {
  const tooLong = source();
  await expect(collectBytes(tooLong, 3, () => new Error("4 > 3"))).rejects.toThrow("4 > 3");
  expect(tooLong.destroyed).toBe(true);
});
