import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NumberQueue } from "../../../../engine/indexing/columns/number-queue.ts";

describe("NumberQueue", () => {
  it("returns numbers in insertion order, each once while it waits", () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.nat(100) },
      { weight: 2, arbitrary: fc.constant(null) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const queue = new NumberQueue();
        const waiting: number[] = [];
        let takenCount = 0;
        for (const number of steps) {
          if (number !== null) {
            queue.add(number);
            if (!waiting.includes(number)) waiting.push(number);
          } else if (waiting.length > 0) {
            expect(queue.take()).toBe(waiting.shift());
            takenCount++;
          }
          expect([...queue.toArray()]).toEqual(waiting);
          expect([queue.size, queue.takenCount]).toEqual([waiting.length, takenCount]);
        }
      }),
    );
  });

  it("fails if an item is taken from an empty queue", () => {
    expect(() => new NumberQueue().take()).toThrow("a number is taken from a queue that has one");
  });
});
