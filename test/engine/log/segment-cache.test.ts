import { expect, test } from "vitest";
import { newImage, Segment } from "../../../engine/log/segment.ts";
import { SegmentCache } from "../../../engine/log/segment-cache.ts";

function segment(number: number, size = 100): Segment {
  const made = new Segment({ number, kind: "log", salt: 1, size });
  made.image = newImage(size);
  return made;
}

test("the image that was not used for longest goes first", () => {
  const cache = new SegmentCache(300);
  const [one, two, three, four] = [segment(1), segment(2), segment(3), segment(4)] as const;
  for (const added of [one, two, three]) cache.add(added);
  cache.touch(one);
  expect(cache.hasRoom(1)).toBe(false);
  cache.add(four);
  expect([one, two, three, four].map(({ image }) => image !== null)).toEqual([
    true,
    false,
    true,
    true,
  ]);
  expect(cache.bytes).toBe(300);
  cache.remove(three);
  cache.remove(three);
  expect(cache.bytes).toBe(200);
});

test("an image that is larger than the cache does not stay", () => {
  const cache = new SegmentCache(50);
  const [one, two] = [segment(1), segment(2)] as const;
  cache.add(one);
  expect(one.image).toBeNull();
  cache.add(two);
  expect(cache.bytes).toBe(0);
});
