import { expect, test } from "vitest";
import { BufferedChunks } from "../../../../engine/base/memory/buffered-chunks.ts";
import { processMemory } from "../../../../engine/base/memory/memory-budget.ts";

const mebibyte = 1024 * 1024;

async function* chunks(count: number): AsyncGenerator<Buffer> {
  for (let n = 0; n < count; n++) yield Buffer.from(`${n}`);
}

test("what a reader holds is counted while it is much, and given back", async () => {
  const pieces = new BufferedChunks(chunks(5));
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
  const pieces = new BufferedChunks(never);
  const stopped = pieces.next(4 * mebibyte);
  stopped.catch(() => undefined);
  const waiting = processMemory.reserve("bodies", 8 * mebibyte);
  await expect(stopped).rejects.toThrow("setting Http.MaxHeldBodiesInMb");
  pieces.release();
  expect(await waiting).toBe(true);
  processMemory.release("bodies", 8 * mebibyte);
});
