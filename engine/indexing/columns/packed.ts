/**
 * Growable typed arrays and a stable radix sort: the tools that keep indexes out of the object heap. Knows nothing of
 * terms or documents.
 *
 * Hot: bench/scan.bench.ts.
 */

/** `source` when it holds `count` elements, otherwise a copy of at least twice its length that does. */
export function grownUint32(source: Uint32Array, count: number): Uint32Array {
  if (count <= source.length) return source;
  const larger = new Uint32Array(Math.max(count, source.length * 2, 16));
  larger.set(source);
  return larger;
}

/** As `grownUint32`. */
export function grownFloat64(source: Float64Array, count: number): Float64Array {
  if (count <= source.length) return source;
  const larger = new Float64Array(Math.max(count, source.length * 2, 16));
  larger.set(source);
  return larger;
}

/** As `grownUint32`; new bytes are 0. */
export function grownBytes(source: Buffer, count: number): Buffer {
  if (count <= source.length) return source;
  const larger = Buffer.alloc(Math.max(count, source.length * 2, 64));
  source.copy(larger);
  return larger;
}

const radixBits = 16;
const radixSize = 1 << radixBits;
/** Below this many elements, comparing is cheaper than passes over 65,536 buckets. */
export const radixCountMin = 4096;

const bucketCounts = new Uint32Array(radixSize);

/**
 * Sorts `items[0, count)` by `keys[items[i]]`, ascending and stable. Cost: two passes over items, one when all keys are
 * below 65,536 or share their upper half.
 */
export function sortByKey(items: Uint32Array, count: number, keys: Uint32Array): void {
  if (count < 2) return;
  if (count < radixCountMin) {
    // Array.prototype.sort of a typed array is stable.
    items.subarray(0, count).sort((a, b) => (keys[a] as number) - (keys[b] as number));
    return;
  }
  let spare: Uint32Array = new Uint32Array(count);
  let source = items;
  for (let shift = 0; shift < 32; shift += radixBits) {
    if (!radixPass(source, spare, count, keys, shift)) continue;
    const swap = source;
    source = spare;
    spare = swap;
  }
  if (source !== items) items.set(source.subarray(0, count));
}

/** One stable pass over 16 bits. @returns false, without moving anything, if all keys have the same 16 bits. */
function radixPass(
  source: Uint32Array,
  target: Uint32Array,
  count: number,
  keys: Uint32Array,
  shift: number,
): boolean {
  bucketCounts.fill(0);
  for (let i = 0; i < count; i++) {
    const bucket = ((keys[source[i] as number] as number) >>> shift) & (radixSize - 1);
    bucketCounts[bucket] = (bucketCounts[bucket] as number) + 1;
  }
  const only = ((keys[source[0] as number] as number) >>> shift) & (radixSize - 1);
  if (bucketCounts[only] === count) return false;
  let sum = 0;
  for (let bucket = 0; bucket < radixSize; bucket++) {
    const size = bucketCounts[bucket] as number;
    bucketCounts[bucket] = sum;
    sum += size;
  }
  for (let i = 0; i < count; i++) {
    const item = source[i] as number;
    const bucket = ((keys[item] as number) >>> shift) & (radixSize - 1);
    const at = bucketCounts[bucket] as number;
    bucketCounts[bucket] = at + 1;
    target[at] = item;
  }
  return true;
}
