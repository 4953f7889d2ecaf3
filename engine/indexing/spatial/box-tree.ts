/**
 * An R-tree of immutable boxes or points: items in the order of a Hilbert curve, and boxes around every 16 of them,
 * around every 16 of those, and so on. Built in one call; many trees are searched together.
 *
 * Independent of the meaning of items. The corners of its box are in `corners`, at a multiple of `width`: two numbers,
 * a point, or four, minX, minY, maxX, maxY. They are passed to each search, because they are in an array that grows.
 *
 * Hot: bench/spatial.bench.ts.
 */
import type { Box } from "./shape.ts";

/** Children of a node. */
export const fanOut = 16;
const hilbertMax = 0xffff;

export class BoxTree {
  /** In the order of the curve. */
  readonly items: Uint32Array;
  /** Boxes of the nodes of each level, four numbers each; the lowest level first, which is above the items. */
  readonly levels: readonly Float64Array[];
  readonly width: 2 | 4;

  /** `items` is owned by the tree. `bounds`: where most boxes are. */
  constructor(items: Uint32Array, corners: Float64Array, width: 2 | 4, bounds: Box) {
    this.items = items;
    this.width = width;
    sortByCurve(items, corners, width, bounds);
    const levels = [itemLevel(items, corners, width)];
    for (;;) {
      const last = levels.at(-1) as Float64Array; // there is one
      if (last.length <= 4) break;
      levels.push(nodeLevel(last));
    }
    this.levels = levels;
  }

  /** Adds to `found` the items whose boxes meet a box. Cost: in proportion to them, and to the height of the tree. */
  search(box: Box, corners: Float64Array, found: number[]): void {
    const { levels, items, width } = this;
    const far = width - 2;
    const stack = [levels.length - 1, 0];
    while (stack.length > 0) {
      const node = stack.pop() as number;
      const level = stack.pop() as number;
      const boxes = levels[level] as Float64Array;
      const at = node * 4;
      if (
        (boxes[at] as number) > box.maxX ||
        (boxes[at + 1] as number) > box.maxY ||
        (boxes[at + 2] as number) < box.minX ||
        (boxes[at + 3] as number) < box.minY
      ) {
        continue;
      }
      const first = node * fanOut;
      if (level > 0) {
        const end = Math.min(first + fanOut, (levels[level - 1] as Float64Array).length >>> 2);
        for (let child = first; child < end; child++) stack.push(level - 1, child);
        continue;
      }
      const end = Math.min(first + fanOut, items.length);
      for (let i = first; i < end; i++) {
        const item = items[i] as number;
        const c = item * width;
        if (
          (corners[c] as number) <= box.maxX &&
          (corners[c + 1] as number) <= box.maxY &&
          (corners[c + far] as number) >= box.minX &&
          (corners[c + far + 1] as number) >= box.minY
        ) {
          found.push(item);
        }
      }
    }
  }
}

function sortByCurve(items: Uint32Array, corners: Float64Array, width: 2 | 4, bounds: Box): void {
  const far = width - 2;
  const scaleX = hilbertMax / Math.max(bounds.maxX - bounds.minX, Number.MIN_VALUE) / 2;
  const scaleY = hilbertMax / Math.max(bounds.maxY - bounds.minY, Number.MIN_VALUE) / 2;
  const count = items.length;
  // Pairs of a key and an item in one number each, which a typed array sorts natively.
  const pairs = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const c = (items[i] as number) * width;
    const x = ((corners[c] as number) + (corners[c + far] as number) - 2 * bounds.minX) * scaleX;
    const y =
      ((corners[c + 1] as number) + (corners[c + far + 1] as number) - 2 * bounds.minY) * scaleY;
    pairs[i] = hilbert(inGrid(x), inGrid(y)) * 2 ** 20 + i;
  }
  pairs.sort();
  const sorted = pairs.map((pair) => items[pair % 2 ** 20] as number);
  for (let i = 0; i < count; i++) items[i] = sorted[i] as number;
}

function inGrid(value: number): number {
  return Math.max(0, Math.min(hilbertMax, Math.floor(value)));
}

function itemLevel(items: Uint32Array, corners: Float64Array, width: 2 | 4): Float64Array {
  const far = width - 2;
  const boxes = emptyBoxes(Math.ceil(items.length / fanOut));
  for (let i = 0; i < items.length; i++) {
    const c = (items[i] as number) * width;
    const at = Math.floor(i / fanOut) * 4;
    boxes[at] = Math.min(boxes[at] as number, corners[c] as number);
    boxes[at + 1] = Math.min(boxes[at + 1] as number, corners[c + 1] as number);
    boxes[at + 2] = Math.max(boxes[at + 2] as number, corners[c + far] as number);
    boxes[at + 3] = Math.max(boxes[at + 3] as number, corners[c + far + 1] as number);
  }
  return boxes;
}

function nodeLevel(below: Float64Array): Float64Array {
  const count = below.length >>> 2;
  const all = Uint32Array.from({ length: count }, (_, i) => i);
  return itemLevel(all, below, 4);
}

function emptyBoxes(count: number): Float64Array {
  const boxes = new Float64Array(Math.max(1, count) * 4);
  for (let i = 0; i < boxes.length; i += 4) {
    boxes[i] = Infinity;
    boxes[i + 1] = Infinity;
    boxes[i + 2] = -Infinity;
    boxes[i + 3] = -Infinity;
  }
  return boxes;
}

/**
 * Returns the position of a cell of a grid of 65,536 by 65,536 on the Hilbert curve. The method is that of the package
 * flatbush.
 */
function hilbert(x: number, y: number): number {
  let a = x ^ y;
  let b = 0xffff ^ a;
  let c = 0xffff ^ (x | y);
  let d = x & (y ^ 0xffff);
  let A = a | (b >> 1);
  let B = (a >> 1) ^ a;
  let C = (c >> 1) ^ (b & (d >> 1)) ^ c;
  let D = (a & (c >> 1)) ^ (d >> 1) ^ d;
  a = A;
  b = B;
  c = C;
  d = D;
  A = (a & (a >> 2)) ^ (b & (b >> 2));
  B = (a & (b >> 2)) ^ (b & ((a ^ b) >> 2));
  C ^= (a & (c >> 2)) ^ (b & (d >> 2));
  D ^= (b & (c >> 2)) ^ ((a ^ b) & (d >> 2));
  a = A;
  b = B;
  c = C;
  d = D;
  A = (a & (a >> 4)) ^ (b & (b >> 4));
  B = (a & (b >> 4)) ^ (b & ((a ^ b) >> 4));
  C ^= (a & (c >> 4)) ^ (b & (d >> 4));
  D ^= (b & (c >> 4)) ^ ((a ^ b) & (d >> 4));
  a = A;
  b = B;
  c = C;
  d = D;
  C ^= (a & (c >> 8)) ^ (b & (d >> 8));
  D ^= (b & (c >> 8)) ^ ((a ^ b) & (d >> 8));
  a = C ^ (C >> 1);
  b = D ^ (D >> 1);
  let i0 = x ^ y;
  let i1 = b | (0xffff ^ (i0 | a));
  i0 = spread(i0);
  i1 = spread(i1);
  return ((i1 << 1) | i0) >>> 0;
}

function spread(value: number): number {
  let bits = value;
  bits = (bits | (bits << 8)) & 0x00ff00ff;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f;
  bits = (bits | (bits << 2)) & 0x33333333;
  return (bits | (bits << 1)) & 0x55555555;
}
