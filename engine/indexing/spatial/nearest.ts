/**
 * Iterates the items of trees in the order of their distances from a point, nearest first: a best-first search that
 * always expands the node or item with the smallest lower bound of its distance. On the globe distances are compared as
 * haversines.
 *
 * Hot: bench/spatial.bench.ts.
 */
import { type BoxTree, fanOut } from "./box-tree.ts";
import { haversine, haversineToBox, type Space } from "./space.ts";

/** A tree, and the number of the place of each item. */
export interface PlacedTree {
  readonly tree: BoxTree;
  readonly placeOf: (item: number) => number;
}

export class NearestItems {
  /** The place that `next` has found, and how far it is: a haversine on the globe, in a plane the square of the distance. */
  place = -1;
  key = 0;
  /** Nodes and items looked at: the cost so far. */
  steps = 0;
  readonly #trees: readonly PlacedTree[];
  readonly #places: Float64Array;
  readonly #x: number;
  readonly #y: number;
  readonly #cosY: number;
  readonly #isFlat: boolean;
  /** A binary heap: keys, and for each its tree, its level (-1: an item) and its number. */
  #keys: Float64Array = new Float64Array(256);
  #refs: Int32Array = new Int32Array(768);
  #count = 0;

  /** `places`: x and y of each place, at twice its number. */
  constructor(
    trees: readonly PlacedTree[],
    places: Float64Array,
    x: number,
    y: number,
    { type }: Space,
  ) {
    this.#trees = trees;
    this.#places = places;
    this.#x = x;
    this.#y = y;
    this.#cosY = Math.cos((y * Math.PI) / 180);
    this.#isFlat = type === "Cartesian";
    for (const [i, { tree }] of trees.entries()) {
      if (tree.items.length > 0) this.#push(0, i, tree.levels.length - 1, 0);
    }
  }

  /** Moves to the next item. @returns false at the end */
  next(): boolean {
    while (this.#count > 0) {
      const [key] = this.#keys as unknown as [number];
      const [treeAt, level, number] = this.#refs as unknown as [number, number, number];
      this.#pop();
      if (level === -1) {
        this.place = number;
        this.key = key;
        return true;
      }
      this.#open(treeAt, level, number);
    }
    return false;
  }

  #open(treeAt: number, level: number, node: number): void {
    const { tree, placeOf } = this.#trees[treeAt] as PlacedTree;
    const first = node * fanOut;
    if (level > 0) {
      const boxes = tree.levels[level - 1] as Float64Array;
      const end = Math.min(first + fanOut, boxes.length >>> 2);
      for (let child = first; child < end; child++) {
        this.#push(this.#boxKey(boxes, child * 4), treeAt, level - 1, child);
      }
      this.steps += end - first;
      return;
    }
    const end = Math.min(first + fanOut, tree.items.length);
    for (let i = first; i < end; i++) {
      const item = tree.items[i] as number;
      const place = placeOf(item);
      this.#push(this.#placeKey(place * 2), treeAt, -1, place);
    }
    this.steps += end - first;
  }

  #placeKey(at: number): number {
    const x = this.#places[at] as number;
    const y = this.#places[at + 1] as number;
    if (!this.#isFlat) return haversine(this.#x, this.#y, x, y);
    return (x - this.#x) ** 2 + (y - this.#y) ** 2;
  }

  #boxKey(boxes: Float64Array, at: number): number {
    const minX = boxes[at] as number;
    const minY = boxes[at + 1] as number;
    const maxX = boxes[at + 2] as number;
    const maxY = boxes[at + 3] as number;
    if (!this.#isFlat) {
      // Less than the bound by more than its rounding, so that no item is nearer than its node.
      const bound = haversineToBox(this.#x, this.#y, this.#cosY, minX, minY, maxX, maxY);
      return bound * (1 - 1e-12) - 1e-18;
    }
    const dx = Math.max(minX - this.#x, 0, this.#x - maxX);
    const dy = Math.max(minY - this.#y, 0, this.#y - maxY);
    return dx * dx + dy * dy;
  }

  #push(key: number, tree: number, level: number, number: number): void {
    if (this.#count === this.#keys.length) this.#grow();
    const keys = this.#keys;
    const refs = this.#refs;
    let at = this.#count++;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if ((keys[parent] as number) <= key) break;
      this.#move(parent, at);
      at = parent;
    }
    keys[at] = key;
    refs[at * 3] = tree;
    refs[at * 3 + 1] = level;
    refs[at * 3 + 2] = number;
  }

  /** Removes the least. */
  #pop(): void {
    const keys = this.#keys;
    const last = --this.#count;
    if (last === 0) return;
    const key = keys[last] as number;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= last) break;
      if (child + 1 < last && (keys[child + 1] as number) < (keys[child] as number)) child++;
      if ((keys[child] as number) >= key) break;
      this.#move(child, at);
      at = child;
    }
    this.#move(last, at);
  }

  #move(from: number, to: number): void {
    this.#keys[to] = this.#keys[from] as number;
    this.#refs[to * 3] = this.#refs[from * 3] as number;
    this.#refs[to * 3 + 1] = this.#refs[from * 3 + 1] as number;
    this.#refs[to * 3 + 2] = this.#refs[from * 3 + 2] as number;
  }

  #grow(): void {
    const keys = new Float64Array(this.#keys.length * 2);
    keys.set(this.#keys);
    this.#keys = keys;
    const refs = new Int32Array(this.#refs.length * 2);
    refs.set(this.#refs);
    this.#refs = refs;
  }
}
