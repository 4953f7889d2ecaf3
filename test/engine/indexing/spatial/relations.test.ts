import { describe, expect, it } from "vitest";
import { FreeBudget, finish, WorkBudget } from "../../../../engine/base/scheduling/work-budget.ts";
import { AreaLocator } from "../../../../engine/indexing/spatial/area-locator.ts";
import {
  intersects,
  isCovered,
  PreparedShape,
} from "../../../../engine/indexing/spatial/relations.ts";
import { globe } from "../../../../engine/indexing/spatial/space.ts";
import { parseWkt } from "../../../../engine/indexing/spatial/wkt.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

const budget = new FreeBudget();
const shape = (text: string) => new PreparedShape(parseWkt(text, globe, "Kilometers"), globe);

/** Whether they intersect, the second contains the first, and the first contains the second. */
function reported(left: string, right: string): string {
  const [a, b] = [shape(left), shape(right)];
  const meets = finish(intersects(a, b, budget));
  expect(finish(intersects(b, a, budget)), `${right} and ${left}`).toBe(meets);
  const isIn = finish(isCovered(a, b, budget));
  const holds = finish(isCovered(b, a, budget));
  return [meets ? "meet" : "apart", ...(isIn ? ["in"] : []), ...(holds ? ["holds"] : [])].join(" ");
}

const square = "POLYGON((0 0,10 0,10 10,0 10,0 0))";
const holed = "POLYGON((0 0,10 0,10 10,0 10,0 0),(4 4,6 4,6 6,4 6,4 4))";
const bay = "POLYGON((0 0,10 0,10 10,6 10,6 4,4 4,4 10,0 10,0 0))";

const seed = seedOfRun();

describe("two shapes", () => {
  it.each([
    ["POINT(5 5)", square, "meet in"],
    ["POINT(0 5)", square, "meet in"],
    ["POINT(11 5)", square, "apart"],
    ["POINT(5 5)", holed, "apart"],
    ["POINT(4 5)", holed, "meet in"],
    ["POINT(5 5)", "POINT(5 5)", "meet in holds"],
    ["MULTIPOINT(1 1,20 20)", square, "meet"],
    ["MULTIPOINT(1 1,2 2)", square, "meet in"],
    ["POINT(1 1)", "LINESTRING(0 0,3 3)", "meet in"],
    ["POINT(1 1.5)", "LINESTRING(0 0,3 3)", "apart"],
    ["LINESTRING(0 0,2 2)", "LINESTRING(0 2,2 0)", "meet"],
    ["LINESTRING(0 0,1 1)", "LINESTRING(1 1,2 0)", "meet"],
    ["LINESTRING(1 1,2 2)", "LINESTRING(0 0,3 3)", "meet in"],
    ["LINESTRING(0 0,1 0)", "LINESTRING(0 1,1 1)", "apart"],
    ["LINESTRING(1 1,9 9)", square, "meet in"],
    ["LINESTRING(0 0,10 0)", square, "meet in"],
    ["LINESTRING(1 1,9 9)", holed, "meet"],
    ["LINESTRING(1 5,9 5)", bay, "meet"],
    ["LINESTRING(-5 5,15 5)", square, "meet"],
    ["LINESTRING(-5 -5,15 -5)", square, "apart"],
    ["POLYGON((1 1,2 1,2 2,1 2,1 1))", square, "meet in"],
    [square, square, "meet in holds"],
    ["POLYGON((0 0,5 0,5 5,0 5,0 0))", square, "meet in"],
    ["POLYGON((10 0,20 0,20 10,10 10,10 0))", square, "meet"],
    ["POLYGON((4.5 4.5,5.5 4.5,5.5 5.5,4.5 5.5,4.5 4.5))", holed, "apart"],
    ["POLYGON((4 4,6 4,6 6,4 6,4 4))", holed, "meet"],
    ["POLYGON((3 3,7 3,7 7,3 7,3 3))", holed, "meet"],
    ["POLYGON((1 1,3 1,3 9,1 9,1 1))", holed, "meet in"],
    ["POLYGON((3 3,7 3,7 9,3 9,3 3))", bay, "meet"],
    [bay, square, "meet in"],
    [holed, square, "meet in"],
    [
      square,
      "MULTIPOLYGON(((-1 -1,11 -1,11 11,-1 11,-1 -1)),((50 50,51 50,51 51,50 50)))",
      "meet in",
    ],
    ["CIRCLE(5 5 d=100)", square, "meet in"],
    ["CIRCLE(5 5 d=100)", holed, "apart"],
    ["CIRCLE(5 5 d=120)", holed, "meet"],
    ["CIRCLE(10.5 5 d=100)", square, "meet"],
    ["CIRCLE(12 5 d=100)", square, "apart"],
    [square, "CIRCLE(5 5 d=2000)", "meet in"],
    ["LINESTRING(4 5,6 5)", "CIRCLE(5 5 d=120)", "meet in"],
    ["LINESTRING(0 5.5,10 5.5)", "CIRCLE(5 5 d=120)", "meet"],
    ["CIRCLE(5 5 d=10)", "CIRCLE(5.1 5 d=50)", "meet in"],
    ["CIRCLE(5 5 d=10)", "CIRCLE(7 5 d=10)", "apart"],
    ["POLYGON EMPTY", square, "apart"],
    ["POLYGON((179 0,-179 0,-179 2,179 2,179 0))", "POINT(-179.5 1)", "meet holds"],
    [
      "POLYGON((179 0,-179 0,-179 2,179 2,179 0))",
      "POLYGON((178 -1,-178 -1,-178 3,178 3,178 -1))",
      "meet in",
    ],
    ["CIRCLE(-179.9 1 d=50)", "POLYGON((170 0,179.9 0,179.9 2,170 2,170 0))", "meet"],
  ])("%s and %s: %s", (left, right, expected) => {
    expect(reported(left, right)).toBe(expected);
  });

  it("agree with a test of random points", () => {
    const random = new SeededRandom(seed);
    const triangle = () => {
      const [x, y] = [random.below(20), random.below(20)];
      const place = () => `${x + random.below(12)} ${y + random.below(12)}`;
      const [a, b, c] = [place(), place(), place()];
      return `POLYGON((${a},${b},${c},${a}))`;
    };
    for (let round = 0; round < 300; round++) {
      const [left, right] = [triangle(), triangle()];
      const [a, b] = [shape(left), shape(right)];
      const why = `${left} and ${right}`;
      const meets = finish(intersects(a, b, budget));
      const isIn = finish(isCovered(a, b, budget));
      expect(isIn && !meets, why).toBe(false);
      for (let i = 0; i < 200; i++) {
        const [x, y] = [random.next() * 32, random.next() * 32];
        if (!a.covers(x, y)) continue;
        if (b.covers(x, y)) expect(meets, why).toBe(true);
        else expect(isIn, why).toBe(false);
      }
    }
  });
});

describe("hostile shapes", () => {
  /** A ring that goes back and forth on one line, and a comb whose teeth all cross it. */
  const flat = `POLYGON((0 0,${"9 0,1 0,".repeat(8000)}0 0))`;
  const comb = `LINESTRING(${Array.from({ length: 8000 }, (_, i) => `${i / 1000} -1,${i / 1000} 1`).join(",")})`;

  it.each([
    ["LINESTRING(0 0,9 0)", flat],
    [flat, flat],
    [comb, `POLYGON((-1 -2,20 -2,20 2,-1 2,${"19 1.5,-1 2,".repeat(4000)}-1 -2))`],
  ])("are charged to the budget, and pause", (inner, outer) => {
    const limited = new WorkBudget(undefined, 20_000_000);
    const work = isCovered(shape(inner), shape(outer), limited);
    try {
      for (let isDone = false; !isDone; ) {
        const start = performance.now();
        isDone = work.next().done === true;
        expect(performance.now() - start).toBeLessThan(500);
      }
    } catch (error) {
      expect((error as { code?: string }).code).toBe("work-limit");
    }
    expect(limited.units).toBeGreaterThan(10_000);
  });
});

describe("the position of a point relative to an area", () => {
  it("is the same with few edges and with many", () => {
    const random = new SeededRandom(seed);
    const star: number[] = [];
    for (let i = 0; i < 2000; i++) {
      const [angle, far] = [(i / 2000) * 2 * Math.PI, 10 + random.next() * 20];
      star.push(Math.cos(angle) * far, Math.sin(angle) * far);
    }
    const ring = Float64Array.from([...star, star[0] as number, star[1] as number]);
    const locator = new AreaLocator([ring]);
    for (let i = 0; i < 2000; i++) {
      const [x, y] = [random.next() * 70 - 35, random.next() * 70 - 35];
      expect(locator.locate(x, y) > 0, `${x} ${y}`).toBe(isInside(ring, x, y));
    }
    expect(locator.locate(ring[20] as number, ring[21] as number)).toBe(0);
    expect(locator.units).toBeLessThan(200);
  });
});

/** The simple algorithm: crossings of a ray. */
function isInside(ring: Float64Array, x: number, y: number): boolean {
  let inside = false;
  for (let i = 0; i + 3 < ring.length; i += 2) {
    const [x1, y1, x2, y2] = [...ring.subarray(i, i + 4)] as [number, number, number, number];
    if (y1 > y !== y2 > y && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)) inside = !inside;
  }
  return inside;
}
