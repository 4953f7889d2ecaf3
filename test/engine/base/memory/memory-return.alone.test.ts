/** Memory that V8 returns to the system on request. */
import { getHeapStatistics } from "node:v8";
import { expect, test } from "vitest";
import { shrinkHeap } from "../../../../engine/base/memory/memory-return.ts";

const mebi = 1024 * 1024;

/** Allocates objects of some 100 MB that are unreachable when it returns. */
function allocateGarbage(): number {
  const kept: object[] = [];
  for (let n = 0; n < 1_000_000; n++) kept.push({ n, text: `text ${n}` });
  return getHeapStatistics().total_heap_size;
}

test("the heap shrinks to the memory in use", () => {
  const most = allocateGarbage();
  shrinkHeap();
  const { total_heap_size: left, used_heap_size: used } = getHeapStatistics();
  expect(left).toBeLessThan(most - 40 * mebi);
  expect(left - used).toBeLessThan(32 * mebi);
});
