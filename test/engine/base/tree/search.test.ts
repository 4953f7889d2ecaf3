import fc from "fast-check";
import { expect, test } from "vitest";
import { compareNumbers } from "../../../../engine/base/tree/compare.ts";
import { countBelow, search } from "../../../../engine/base/tree/search.ts";

const sorted = fc
  .uniqueArray(fc.integer({ min: 0, max: 40 }))
  .map((keys) => keys.sort(compareNumbers));

test("finds a key's position, or its insertion point", () => {
  fc.assert(
    fc.property(sorted, fc.integer({ min: -1, max: 41 }), (keys, key) => {
      const at = keys.indexOf(key);
      const below = keys.filter((other) => other < key).length;
      expect(search(keys, key, compareNumbers)).toBe(at >= 0 ? at : ~below);
    }),
  );
});

test("counts the keys below an inclusive or exclusive bound", () => {
  fc.assert(
    fc.property(sorted, fc.integer({ min: -1, max: 41 }), (keys, key) => {
      expect(countBelow(keys, key, false, compareNumbers)).toBe(keys.filter((k) => k < key).length);
      expect(countBelow(keys, key, true, compareNumbers)).toBe(keys.filter((k) => k <= key).length);
    }),
  );
});
