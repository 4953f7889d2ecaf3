import { describe, expect, it } from "vitest";
import { BoxTree } from "../../../../engine/indexing/spatial/box-tree.ts";
import { NearestItems } from "../../../../engine/indexing/spatial/nearest.ts";
import type { Box } from "../../../../engine/indexing/spatial/shape.ts";
import {
  distanceBetween,
  distanceOf,
  globe,
  lengthOf,
  reportedLengthOf,
  type Space,
} from "../../../../engine/indexing/spatial/space.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

const seed = seedOfRun();

function randomPlaces(count: number, random: SeededRandom): Float64Array {
  const places = new Float64Array(count * 2);
  for (let i = 0; i < count; i++) {
    const isPole = random.chance(0.1);
    places[i * 2] = random.chance(0.1) ? 180 - random.next() : random.next() * 360 - 180;
    places[i * 2 + 1] = isPole ? 90 - random.next() : random.next() * 180 - 90;
  }
  return places;
}

const treeOf = (count: number, corners: Float64Array, width: 2 | 4) =>
  new BoxTree(
    Uint32Array.from({ length: count }, (_, i) => i),
    corners,
    width,
    globe,
  );

describe("a tree", () => {
  it.each([0, 1, 15, 16, 17, 300, 5000])(
    "of %i boxes finds the boxes that intersect a box",
    (count) => {
      const random = new SeededRandom(seed + count);
      const corners = new Float64Array(count * 4);
      for (let i = 0; i < count; i++) {
        const [x, y] = [random.next() * 350 - 180, random.next() * 170 - 90];
        corners.set([x, y, x + random.next() * 10, y + random.next() * 10], i * 4);
      }
      const tree = treeOf(count, corners, 4);
      for (let round = 0; round < 50; round++) {
        const [minX, minY] = [random.next() * 350 - 180, random.next() * 170 - 90];
        const box: Box = { minX, minY, maxX: minX + random.next() * 40, maxY: minY + 20 };
        const found: number[] = [];
        tree.search(box, corners, found);
        const expected = Array.from({ length: count }, (_, i) => i).filter((i) => {
          const [x1, y1, x2, y2] = corners.subarray(i * 4, i * 4 + 4) as unknown as number[] as [
            number,
            number,
            number,
            number,
          ];
          return x1 <= box.maxX && y1 <= box.maxY && x2 >= box.minX && y2 >= box.minY;
        });
        expect(found.sort((a, b) => a - b)).toEqual(expected);
      }
    },
  );
});

describe("the nearest", () => {
  const plane: Space = { ...globe, type: "Cartesian" };
  it.each([
    ["globe", globe],
    ["plane", plane],
  ])("of several trees are returned in order on a %s", (_name, space) => {
    const random = new SeededRandom(seed);
    const places = randomPlaces(3000, random);
    const items = (from: number, to: number) =>
      Uint32Array.from({ length: to - from }, (_, i) => from + i);
    const trees = [
      new BoxTree(items(0, 1000), places, 2, globe),
      new BoxTree(items(1000, 2990), places, 2, globe),
      new BoxTree(items(2990, 3000), places, 2, globe),
    ].map((tree) => ({ tree, placeOf: (item: number) => item }));
    for (const [x, y] of [
      [0, 0],
      [179.9, 10],
      [-180, -89.9],
      [20, 90],
      [-75, 40],
    ] as const) {
      const search = new NearestItems(trees, places, x, y, space);
      const distances: number[] = [];
      const seen = new Set<number>();
      while (search.next()) {
        seen.add(search.place);
        const at = search.place * 2;
        distances.push(
          distanceBetween(space, x, y, places[at] as number, places[at + 1] as number),
        );
      }
      expect(seen.size).toBe(3000);
      for (let i = 1; i < distances.length; i++) {
        const [before, now] = [distances[i - 1] as number, distances[i] as number];
        expect(now, `from ${x} ${y}`).toBeGreaterThanOrEqual(before - 1e-9);
      }
    }
  });

  it("are found without visiting many nodes", () => {
    const places = randomPlaces(50_000, new SeededRandom(seed));
    const tree = treeOf(50_000, places, 2);
    const search = new NearestItems([{ tree, placeOf: (item) => item }], places, 10, 50, globe);
    for (let i = 0; i < 20; i++) expect(search.next()).toBe(true);
    expect(search.steps).toBeLessThan(1500);
  });
});

describe("lengths", () => {
  it("match RavenDB 7.2.7", () => {
    const arc = distanceBetween(globe, -73.9969, 40.7061, -74.0445, 40.6892);
    expect(reportedLengthOf(globe, arc)).toBeCloseTo(4.430855706779593, 9);
    expect(reportedLengthOf({ ...globe, type: "Cartesian" }, 7)).toBe(7);
    expect(lengthOf(globe, distanceOf(globe, 200, "Miles"), "Miles")).toBeCloseTo(200, 9);
    expect(distanceOf(globe, -5, "Kilometers")).toBeCloseTo(-0.04496601838808317, 15);
  });
});
