import { describe, expect, it } from "vitest";
import { RecentCache } from "../../../../engine/base/memory/recent-cache.ts";
import { SeededRandom } from "../../../support/random.ts";

/** Size of an entry with a key of one character, in bytes. */
function entryBytes(bytes: number): number {
  const cache = new RecentCache<number>(1e6);
  cache.set("k", 0, bytes);
  return cache.bytes;
}

describe("an LRU cache", () => {
  it("drops the least recently used entries until the new one fits", () => {
    const cache = new RecentCache<number>(3 * entryBytes(100));
    for (const [value, key] of ["a", "b", "c"].entries()) cache.set(key, value, 100);
    expect(cache.get("a")).toBe(0);
    cache.set("d", 3, 100);
    expect(["a", "b", "c", "d"].map((key) => cache.get(key))).toEqual([0, undefined, 2, 3]);
    cache.set("e", 4, 100 + entryBytes(100));
    expect(["a", "c", "d", "e"].map((key) => cache.get(key))).toEqual([undefined, undefined, 3, 4]);
  });

  it("keeps the newest entry whatever its size, and then no other", () => {
    const cache = new RecentCache<string>(1000);
    cache.set("small", "s", 10);
    cache.set("large", "l", 1e9);
    expect(cache.get("small")).toBeUndefined();
    expect(cache.get("large")).toBe("l");
    cache.set("small", "s", 10);
    expect(cache.get("large")).toBeUndefined();
    expect(cache.bytes).toBeLessThan(1000);
  });

  it("counts the size of its keys", () => {
    const cache = new RecentCache<boolean>(10_000);
    for (let i = 0; i < 100; i++) cache.set(`${i}${"x".repeat(1000)}`, true, 0);
    expect(cache.bytes).toBeLessThanOrEqual(10_000);
    expect(cache.get(`99${"x".repeat(1000)}`)).toBe(true);
    expect(cache.get(`0${"x".repeat(1000)}`)).toBeUndefined();
  });

  it("behaves like a list that is searched from its end", () => {
    const random = new SeededRandom(7);
    const cache = new RecentCache<number>(2_000);
    let list: { key: string; value: number; bytes: number }[] = [];
    for (let step = 0; step < 3_000; step++) {
      const key = String.fromCharCode(97 + random.below(12));
      const known = list.find((one) => one.key === key);
      list = list.filter((one) => one !== known);
      if (random.below(2) === 0) {
        expect(cache.get(key), `step ${step}`).toBe(known?.value);
        if (known !== undefined) list.push(known);
      } else {
        const size = random.below(600);
        cache.set(key, step, size);
        list.push({ key, value: step, bytes: entryBytes(size) });
        const total = () => list.reduce((sum, { bytes }) => sum + bytes, 0);
        while (total() > 2_000 && list.length > 1) list.shift();
      }
      expect(cache.bytes).toBe(list.reduce((sum, { bytes }) => sum + bytes, 0));
    }
  });
});
