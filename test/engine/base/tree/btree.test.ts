import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BTree, type KeyRange } from "../../../../engine/base/tree/btree.ts";
import { compareNumbers } from "../../../../engine/base/tree/compare.ts";

type Entry = [number, string];
type Operation =
  | { kind: "set"; key: number; value: string }
  | { kind: "delete"; key: number }
  | { kind: "clone"; swap: boolean }
  | { kind: "range"; range: KeyRange<number> };

const keyMax = 120;
const key = fc.integer({ min: 0, max: keyMax });
const range = fc.record<KeyRange<number>>({
  lower: fc.option(key, { nil: undefined }),
  upper: fc.option(key, { nil: undefined }),
  descending: fc.boolean(),
});
const operation = fc.oneof<fc.WeightedArbitrary<Operation>[]>(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("set"), key, value: fc.string() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("delete"), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("clone"), swap: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("range"), range }) },
);

/** The model: a sorted array. */
class Model {
  entries: Entry[] = [];
  get(key: number): string | undefined {
    return this.entries.find((entry) => entry[0] === key)?.[1];
  }
  set(key: number, value: string): void {
    this.delete(key);
    this.entries.push([key, value]);
    this.entries.sort((left, right) => left[0] - right[0]);
  }
  delete(key: number): void {
    this.entries = this.entries.filter((entry) => entry[0] !== key);
  }
  range(range: KeyRange<number>): Entry[] {
    const { lower = Number.NEGATIVE_INFINITY, upper = Number.POSITIVE_INFINITY } = range;
    const inside = this.entries.filter(([key]) => key >= lower && key <= upper);
    return range.descending ? inside.reverse() : inside;
  }
}

function run(tree: BTree<number, string>, model: Model, next: Operation): void {
  if (next.kind === "set") {
    expect(tree.set(next.key, next.value)).toBe(model.get(next.key));
    model.set(next.key, next.value);
  } else if (next.kind === "delete") {
    expect(tree.delete(next.key)).toBe(model.get(next.key));
    model.delete(next.key);
  } else if (next.kind === "range") {
    expect([...tree.entries(next.range)]).toEqual(model.range(next.range));
    expect(tree.count(next.range)).toBe(model.range(next.range).length);
  }
}

describe.each([4, 5, 10, 32])("with fan-out %i", (fanOut) => {
  test("behaves like a sorted array, and clones do not change", () => {
    fc.assert(
      fc.property(
        fc.array(operation, { minLength: 1, maxLength: 400, size: "max" }),
        (operations) => {
          let tree = new BTree<number, string>(compareNumbers, fanOut);
          const model = new Model();
          const held: { tree: BTree<number, string>; entries: Entry[] }[] = [];
          for (const next of operations) {
            if (next.kind === "clone") {
              const clone = tree.clone();
              held.push({ tree: next.swap ? tree : clone, entries: model.entries.slice() });
              if (next.swap) tree = clone; // Continue with either of the two trees.
            } else run(tree, model, next);
            tree.checkInvariants();
          }
          expect([...tree.entries()]).toEqual(model.entries);
          expect(tree.size).toBe(model.entries.length);
          expect(tree.first()).toEqual(model.entries[0]);
          expect(tree.last()).toEqual(model.entries.at(-1));
          for (let key = -1; key <= keyMax + 1; key++) {
            expect(tree.get(key)).toBe(model.get(key));
            expect(tree.has(key)).toBe(model.get(key) !== undefined);
          }
          for (const { tree: frozen, entries } of held) {
            frozen.checkInvariants();
            expect([...frozen.entries()]).toEqual(entries);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  test("grows and shrinks in order, in reverse order and from the middle", () => {
    const count = 600;
    const ascending = Array.from({ length: count }, (_, at) => at);
    const scattered = ascending.map((at) => (at * 7919) % count);
    for (const order of [ascending, ascending.toReversed(), scattered]) {
      const tree = new BTree<number, string>(compareNumbers, fanOut);
      for (const at of order) tree.set(at, String(at));
      tree.checkInvariants();
      expect([...tree.entries()].map((entry) => entry[0])).toEqual(ascending);
      for (const at of order) {
        expect(tree.delete(at)).toBe(String(at));
        tree.checkInvariants();
      }
      expect(tree.first()).toBeUndefined();
      expect(tree.last()).toBeUndefined();
    }
  });
});

test("a cursor stays at its end", () => {
  const tree = new BTree<number, string>(compareNumbers, 4);
  for (let at = 0; at < 20; at++) tree.set(at, "");
  for (const descending of [false, true]) {
    const cursor = tree.cursor({ lower: 3, upper: 5, descending });
    const seen: number[] = [];
    while (cursor.next()) seen.push(cursor.key);
    expect(seen).toEqual(descending ? [5, 4, 3] : [3, 4, 5]);
    expect(cursor.next()).toBe(false);
    expect(cursor.next()).toBe(false);
  }
});

test("a cursor fails after the tree changed", () => {
  const tree = new BTree<number, string>(compareNumbers);
  tree.set(1, "one");
  const cursor = tree.cursor();
  tree.set(2, "two");
  expect(() => cursor.next()).toThrow("does not change under a cursor");
});

test("emptying a clone does not change its origin", () => {
  const tree = new BTree<number, string>(compareNumbers);
  tree.set(1, "one");
  const clone = tree.clone();
  clone.clear();
  clone.set(2, "two");
  expect([...tree.entries()]).toEqual([[1, "one"]]);
  expect([...clone.entries()]).toEqual([[2, "two"]]);
});
