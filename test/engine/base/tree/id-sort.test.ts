import fc from "fast-check";
import { expect, test } from "vitest";
import { IdSlab } from "../../../../engine/base/tree/id-slab.ts";
import { IdSort } from "../../../../engine/base/tree/id-sort.ts";

const ids = fc.uniqueArray(
  fc.string({ unit: fc.constantFrom("a", "b", "é", "😀"), maxLength: 5 }),
  {
    maxLength: 70,
  },
);

test("sorts by id in steps without losing any", () => {
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 5 }), fc.boolean(), (given, blockMax, inOrder) => {
      const sorted = given.toSorted((left, right) =>
        Buffer.compare(Buffer.from(left), Buffer.from(right)),
      );
      const slab = new IdSlab(1024, 16);
      for (const id of inOrder ? sorted : given) slab.add(Buffer.from(id), Buffer.byteLength(id));
      const sort = new IdSort(Uint32Array.from(given.keys()), slab, blockMax);
      let isDone = false;
      for (let tick = 0; tick < 1000 && !isDone; tick++) {
        isDone = sort.step();
        expect([...sort.items].sort((left, right) => left - right)).toEqual([...given.keys()]);
      }
      expect(isDone).toBe(true);
      expect(sort.step()).toBe(true);
      expect([...sort.items].map((docNum) => slab.textOf(docNum))).toEqual(sorted);
    }),
  );
});
