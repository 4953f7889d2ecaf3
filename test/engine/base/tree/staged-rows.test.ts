import fc from "fast-check";
import { expect, test } from "vitest";
import { StagedRows } from "../../../../engine/base/tree/staged-rows.ts";

const docCount = 12;
const step = fc.oneof(
  fc.record({ kind: fc.constant("push"), value: fc.nat(docCount - 1) }),
  fc.record({ kind: fc.constant("push"), value: fc.nat(2) }),
  fc.record({ kind: fc.constant("all"), value: fc.integer({ min: 1, max: 10 }) }),
  fc.record({ kind: fc.constantFrom("shift", "pop"), value: fc.integer({ min: 1, max: 20 }) }),
);

test("is a queue that returns the newest row of each document", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: "max" }), (steps) => {
      const staged = new StagedRows(4, 4);
      const queue: number[][] = [];
      let etag = 0;
      for (const { kind, value } of steps) {
        if (kind === "push") {
          etag++;
          staged.push(value, etag, etag * 10, etag + 1, 2 ** 32 - etag);
          queue.push([value, etag, etag * 10, etag + 1, 2 ** 32 - etag]);
        } else if (kind === "all") {
          const rows = Array.from({ length: value }, (_, k) => [
            (etag + k * k) % docCount,
            k,
            k % 3,
            k,
          ]);
          const etags = Float64Array.from(rows, () => ++etag);
          staged.pushAll({ count: value, words: Uint32Array.from(rows.flat()), etags }, 1000);
          for (const [k, [docNum = 0, at = 0, length = 0, word = 0]] of rows.entries()) {
            queue.push([docNum, etags[k] ?? 0, length === 0 ? 0 : 1000 + at, length, word]);
          }
        } else {
          for (let left = Math.min(value, queue.length); left > 0; left--) {
            if (kind === "pop") {
              queue.pop();
              staged.pop();
              continue;
            }
            expect(entry(staged, staged.oldest())).toEqual(queue.shift());
            staged.shift(1);
          }
        }
        staged.checkInvariants(docCount);
        // Compares one text, because there are hundreds of thousands of entries.
        expect(listed(staged)).toBe(newestFirst(queue).join(";"));
      }
    }),
    { numRuns: 60 },
  );
});

/** The entries of each document, newest first. */
function newestFirst(queue: readonly number[][]): number[][] {
  const documents = Array.from({ length: docCount }, (_, docNum) => docNum);
  return documents.flatMap((docNum) => queue.filter((each) => each[0] === docNum).reverse());
}

function listed(staged: StagedRows): string {
  const all: number[][] = [];
  for (let docNum = 0; docNum < docCount; docNum++) {
    for (let slot = staged.newestOf(docNum); slot >= 0; slot = staged.previousOf(slot)) {
      all.push(entry(staged, slot));
    }
  }
  expect(staged.count).toBe(all.length);
  return all.join(";");
}

function entry(staged: StagedRows, slot: number): number[] {
  return [
    staged.docNumOf(slot),
    staged.etagOf(slot),
    staged.positionOf(slot),
    staged.lengthOf(slot),
    staged.wordOf(slot),
  ];
}

test("frees the memory of a burst", () => {
  const staged = new StagedRows(4, 4);
  for (let etag = 1; etag <= 4; etag++) staged.push(0, etag, 0, 1, 0);
  const before = staged.memoryBytes();
  for (let etag = 5; etag <= 1000; etag++) staged.push(0, etag, 0, 1, 0);
  expect(staged.memoryBytes()).toBeGreaterThan(10 * before);
  while (staged.count > 0) staged.shift(1);
  expect(staged.memoryBytes()).toBeLessThan(5 * before);
  for (let etag = 1; etag <= 30; etag++) staged.push(0, etag, 0, 1, 0);
  staged.checkInvariants(1);
  while (staged.count > 0) staged.pop();
  staged.checkInvariants(1);
});

test("moves an entry that is staged", () => {
  const staged = new StagedRows(4, 4);
  staged.push(3, 1, 10, 1, 0);
  staged.setPosition(staged.newestOf(3), 20);
  expect(staged.positionOf(staged.oldest())).toBe(20);
});
