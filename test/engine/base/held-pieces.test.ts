import { expect, test } from "vitest";
import { HeldPieces } from "../../../engine/base/held-pieces.ts";
import { processMemory } from "../../../engine/base/memory-budget.ts";

const mebibyte = 1024 * 1024;

async function* chunks(count: number): AsyncGenerator<Buffer> {
  for (let n = 0; n < count; n++) yield Buffer.from(`${n}`);
}

test("counts large reads in the memory budget until they are released", async () => {
  const pieces = new HeldPieces(chunks(5));
  expect((await pieces.next(0)).value).toEqual(Buffer.from("0"));
  expect(processMemory.workBytesOf("bodies")).toBe(0);
  await pieces.next(mebibyte);
  expect(processMemory.workBytesOf("bodies")).toBe(2 * mebibyte);
  await pieces.next(2 * mebibyte);
  expect(processMemory.workBytesOf("bodies")).toBe(4 * mebibyte);
  await pieces.next(10);
  expect(processMemory.workBytesOf("bodies")).toBe(0);
  await pieces.next(mebibyte);
  pieces.release();
  expect(processMemory.workBytesOf("bodies")).toBe(0);
});

test("fails a stalled large read while other requests wait for memory", async () => {
  processMemory.limitUse("bodies", 10 * mebibyte);
  const never: AsyncIterator<Buffer> = { next: () => new Promise(() => undefined) };
  const pieces = new HeldPieces(never);
  const stopped = pieces.next(4 * mebibyte);
  stopped.catch(() => undefined);
  const waiting = processMemory.take("bodies", 8 * mebibyte);
  await expect(stopped).rejects.toThrow("setting Http.MaxHeldBodiesInMb");
  pieces.release();
  expect(await waiting).toBe(true);
  processMemory.give("bodies", 8 * mebibyte);
});
