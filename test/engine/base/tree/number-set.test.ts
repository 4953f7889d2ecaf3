import fc from "fast-check";
import { expect, test } from "vitest";
import { NumberSet } from "../../../../engine/base/tree/number-set.ts";
import { TaggedQueue } from "../../../../engine/base/tree/tagged-queue.ts";

test("behaves like a Set, and returns its lowest number", () => {
  const step = fc.record({
    kind: fc.constantFrom("add", "delete", "take"),
    number: fc.nat(200),
  });
  fc.assert(
    fc.property(fc.constantFrom(8, 64), fc.array(step, { maxLength: 200 }), (size, steps) => {
      const set = new NumberSet(size);
      const model = new Set<number>();
      for (const { kind, number } of steps) {
        if (kind === "add") {
          set.add(number);
          model.add(number);
        } else if (kind === "delete") {
          expect(set.delete(number)).toBe(model.delete(number));
        } else if (model.size > 0) {
          const lowest = Math.min(...model);
          expect(set.takeLowest()).toBe(lowest);
          model.delete(lowest);
        }
        set.checkInvariants();
        expect(set.count).toBe(model.size);
        expect(set.has(number)).toBe(model.has(number));
        const around = [...model].filter(
          (each) => Math.floor(each / size) === Math.floor(number / size),
        );
        expect(set.countAround(number)).toBe(around.length);
      }
    }),
  );
});

test("a queue of numbers returns them in order, over any number of chunks", () => {
  const queue = new TaggedQueue();
  let pushed = 0;
  let taken = 0;
  for (let round = 0; round < 40; round++) {
    for (let at = 0; at < 1000; at++) queue.push(pushed, pushed++ / 2);
    for (let at = 0; at < (round < 20 ? 500 : 1500); at++) {
      expect(queue.firstTag()).toBe(taken / 2);
      expect(queue.shift()).toBe(taken++);
    }
    expect(queue.length).toBe(pushed - taken);
  }
  expect(queue.length).toBe(0);
  expect(queue.memoryBytes()).toBeLessThan(100_000);
});
