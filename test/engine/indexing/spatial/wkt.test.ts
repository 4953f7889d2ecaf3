import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { boxesOf, centerOf, isPoint } from "../../../../engine/indexing/spatial/shape.ts";
import { globe, type Space } from "../../../../engine/indexing/spatial/space.ts";
import { parseWkt } from "../../../../engine/indexing/spatial/wkt.ts";

const parse = (text: string, space: Space = globe) => parseWkt(text, space, "Kilometers");

function complaint(text: string, space: Space = globe): string {
  try {
    parse(text, space);
  } catch (error) {
    if (error instanceof EngineError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "none";
}

describe("well-known text", () => {
  it("is read in any letter case and with any spacing", () => {
    expect([...parse(" point(1 2) ").points]).toEqual([1, 2]);
    expect([...parse("POINT Z (1 2 3)").points]).toEqual([1, 2]);
    expect([...parse("MULTIPOINT(1 2, 3 4)").points]).toEqual([1, 2, 3, 4]);
    expect([...parse("MultiPoint((1 2),(3 4))").points]).toEqual([1, 2, 3, 4]);
    expect(parse("LINESTRING(1 2, 3 -4e1)").lines.map((line) => [...line])).toEqual([
      [1, 2, 3, -40],
    ]);
    expect(parse("MULTILINESTRING((1 2,3 4),(5 6,7 8))").lines).toHaveLength(2);
    const holed = parse("POLYGON((0 0,9 0,9 9,0 0),(5 1,6 1,6 2,5 1))");
    expect(holed.areas.map((area) => area.length)).toEqual([2]);
    expect(parse("MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))").areas).toHaveLength(2);
    const mixed = parse("GEOMETRYCOLLECTION(POINT(1 1),GEOMETRYCOLLECTION(LINESTRING(0 0,1 1)))");
    expect([mixed.points.length, mixed.lines.length]).toEqual([2, 1]);
    expect(parse("POLYGON EMPTY").areas).toEqual([]);
    expect(isPoint(parse("POINT(1 1)"))).toBe(true);
  });

  it("may be numbers, as in points, boxes and circles of older RavenDB versions", () => {
    expect([...parse(" -107.2 35.1 ").points]).toEqual([-107.2, 35.1]);
    expect([...parse("35.1, -107.2").points]).toEqual([-107.2, 35.1]);
    const boxes = (text: string) => boxesOf(parse(text), globe);
    expect(boxes("-110 30 -100 40")).toEqual(boxes("ENVELOPE(-110, -100, 40, 30)"));
    expect(boxes("170 30 -100 40")).toEqual(boxes("ENVELOPE(170, -100, 40, 30)"));
    expect(parse("Circle(10,20 d=1)").circles).toEqual(parse("CIRCLE(20 10 d=1)").circles);
    for (const text of ["1", "1 2 3", "1 2 3 4 5", "1,2,3,4", "1 95", "1 9 2 3", "1 2 x", "1,"]) {
      expect(complaint(text)).toMatch(/^shape-invalid/);
    }
  });

  it("has circles and boxes as RavenDB writes them", () => {
    const [circle] = parse("CIRCLE(20 10 d=111.19508)").circles;
    expect(circle).toMatchObject({ x: 20, y: 10 });
    expect(circle?.radius).toBeCloseTo(1, 6);
    const [miles] = parseWkt("Circle(20.0 10.0 d=1.0)", globe, "Miles").circles;
    expect((miles?.radius ?? 0) / (parse("CIRCLE(20 10 d=1)").circles[0]?.radius ?? 0)).toBeCloseTo(
      1.609344,
      9,
    );
    expect(parse("BUFFER(POINT(20 10), 2)").circles).toEqual([{ x: 20, y: 10, radius: 2 }]);
    expect(parse("ENVELOPE(1, 3, 8, 2)").areas.map(([ring]) => [...(ring ?? [])])).toEqual([
      [1, 2, 3, 2, 3, 8, 1, 8, 1, 2],
    ]);
  });

  it("continues beyond the date line, on both sides", () => {
    const area = parse("POLYGON((170 -10, -170 -10, -170 10, 170 10, 170 -10))");
    expect(boxesOf(area, globe)).toEqual([
      { minX: 170, minY: -10, maxX: 180, maxY: 10 },
      { minX: -180, minY: -10, maxX: -170, maxY: 10 },
    ]);
    expect(centerOf(area)).toEqual({ x: 180, y: 0 });
    expect(boxesOf(parse("ENVELOPE(170, -170, 5, -5)"), globe)).toHaveLength(2);
    // The whole globe does not cross it.
    const all = parse("POLYGON((-180 -90, 180 -90, 180 90, -180 90, -180 -90))");
    expect(boxesOf(all, globe)).toEqual([{ minX: -180, minY: -90, maxX: 180, maxY: 90 }]);
  });

  it.each([
    ["", "Unknown Shape definition []"],
    ["HELLO(1 2)", "Unknown Shape definition [HELLO(1 2)]"],
    ["POINT(1 2", "Unknown Shape definition [POINT(1 2]"],
    ["POINT(1 2) x", "Unknown Shape definition [POINT(1 2) x]"],
    ["POINT(1)", "Unknown Shape definition [POINT(1)]"],
    ["POINT(NaN 1)", "Unknown Shape definition [POINT(NaN 1)]"],
    [
      "POINT(200 1)",
      "Bad X value 200 is not in boundary Rect(minX=-180,maxX=180,minY=-90,maxY=90)",
    ],
    ["POINT(1 1e999)", "Bad Y value Infinity is not in boundary"],
    ["POLYGON((1 2))", "Invalid number of points in LinearRing (found 1 - must be 0 or >= 4)"],
    ["POLYGON((0 0, 1 1, 2 0, 3 3))", "points must form a closed linestring"],
    ["LINESTRING(1 2)", "Invalid number of points in LineString (found 1 - must be 0 or >= 2)"],
    ["CIRCLE(1 2 d=-1)", "distance must be >= 0; got"],
    ["ENVELOPE(1, 2, 3)", "Unknown Shape definition"],
    ["ENVELOPE(1, 2, 3, 4)", "maxY must be >= minY: 4 to 3"],
  ])("is rejected if it is not a shape: %s", (text, message) => {
    expect(complaint(text)).toContain(`shape-invalid: ${message}`);
  });

  it("has limits", () => {
    expect(complaint(`MULTIPOINT(${"1 1,".repeat(40_000)}1 1)`)).toMatch(/^too-large/);
    expect(complaint(`POINT(1 1${"0".repeat(3_000_000)})`)).toMatch(/^too-large/);
    const deep = `${"GEOMETRYCOLLECTION(".repeat(5000)}POINT(1 1)${")".repeat(5000)}`;
    expect(complaint(deep)).toMatch(/^shape-invalid/);
  });

  it("respects the bounds of a plane", () => {
    const plane: Space = { ...globe, type: "Cartesian", minX: 0, maxX: 1000, minY: 0, maxY: 1000 };
    expect([...parse("POINT(900 1000)", plane).points]).toEqual([900, 1000]);
    expect(complaint("POINT(-1 5)", plane)).toMatch(/minX=0,maxX=1000/);
    expect(parse("CIRCLE(5 5 d=7)", plane).circles).toEqual([{ x: 5, y: 5, radius: 7 }]);
    expect(complaint("ENVELOPE(9, 2, 3, 1)", plane)).toMatch(/maxX must be >= minX/);
  });
});
