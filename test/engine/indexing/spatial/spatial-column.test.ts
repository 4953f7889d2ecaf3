/** Compared with a simple model that tests every live entry. */
import { describe, expect, it } from "vitest";
import { FreeBudget, finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { EntryStore } from "../../../../engine/indexing/columns/entry-store.ts";
import { EntryView } from "../../../../engine/indexing/columns/entry-view.ts";
import { firstTerm } from "../../../../engine/indexing/columns/term-dictionary.ts";
import { circleShape } from "../../../../engine/indexing/spatial/shape.ts";
import { distanceBetween, globe } from "../../../../engine/indexing/spatial/space.ts";
import { spatialColumnOf } from "../../../../engine/indexing/spatial/spatial-column.ts";
import {
  addPoint,
  addWkt,
  coordinateOf,
} from "../../../../engine/indexing/spatial/spatial-terms.ts";
import {
  addSpatialText,
  isSpatialText,
} from "../../../../engine/indexing/spatial/spatial-values.ts";
import { parseWkt } from "../../../../engine/indexing/spatial/wkt.ts";
import { SeededRandom } from "../../../support/random.ts";
import { seedOfRun } from "../../../support/seed.ts";

const budget = new FreeBudget();
const seed = seedOfRun();

interface Placed {
  readonly x: number;
  readonly y: number;
}

class Model {
  store = new EntryStore(1);
  /** The points of each document. */
  readonly documents = new Map<number, readonly Placed[]>();

  put(document: number, points: readonly Placed[]): void {
    this.remove(document);
    for (const { x, y } of points) addPoint(this.column, x, y, globe);
    this.store.endEntry(document);
    this.documents.set(document, points);
  }

  remove(document: number): void {
    this.store.remove(document);
    this.documents.delete(document);
  }

  get column() {
    const [column] = this.store.columns;
    if (column === undefined) throw new Error("the column does not exist");
    return column;
  }

  get spatial() {
    const spatial = spatialColumnOf(this.column, globe);
    finish(spatial.refresh(budget));
    return spatial;
  }

  within(x: number, y: number, radius: number, relation: "within" | "disjoint" = "within") {
    const view = new EntryView(this.store);
    const found = finish(this.spatial.find(relation, circleShape(x, y, radius), view, budget));
    return [...found.toList()].map((entry) => this.store.documents[entry] as number).sort(byNumber);
  }

  nearest(x: number, y: number, count: number): number[] {
    const view = new EntryView(this.store);
    const among = {
      accepts: (entry: number) => entry < view.size && view.isLive(entry),
      rankOf: (entry: number) => view.placeOf(entry),
    };
    const found = finish(this.spatial.nearest(x, y, count, 0, among, budget));
    return [...found].map((entry) => this.store.documents[entry] as number);
  }
}

const byNumber = (a: number, b: number) => a - b;

function randomPlace(random: SeededRandom): Placed {
  const places = [
    { x: random.next() * 360 - 180, y: random.next() * 180 - 90 },
    { x: 180 - random.next() * 2, y: random.next() * 4 - 2 },
    { x: random.next() * 2 - 180, y: random.next() * 4 - 2 },
    { x: random.next() * 360 - 180, y: 90 - random.next() * 3 },
    { x: random.below(5), y: random.below(5) },
  ];
  return places[random.below(places.length)] as Placed;
}

const circles = [
  [0, 0, 10],
  [179.5, 0, 1.5],
  [-179.5, 1, 1.5],
  [20, 89.5, 2],
  [0, -89, 40],
  [2, 2, 0],
  [100, 30, 179],
] as const;

describe("points of entries", () => {
  it("are found in circles and by distance while documents are changed and removed", () => {
    const random = new SeededRandom(seed);
    const model = new Model();
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 600; i++) {
        const document = random.below(1500);
        const count = random.chance(0.8) ? 1 : random.below(3);
        if (random.chance(0.2)) model.remove(document);
        else
          model.put(
            document,
            Array.from({ length: count }, () => randomPlace(random)),
          );
      }
      if (round % 4 === 3) model.store = model.store.compact(() => false) ?? model.store;
      for (const [x, y, radius] of circles) {
        const why = `round ${round}, ${x} ${y} ${radius}`;
        const far = (place: Placed) => distanceBetween(globe, x, y, place.x, place.y);
        const all = [...model.documents].filter(([, points]) => points.length > 0);
        const isIn = (points: readonly Placed[]) => points.some((one) => far(one) <= radius + 1e-9);
        const inside = all.filter(([, points]) => isIn(points)).map(([document]) => document);
        expect(model.within(x, y, radius), why).toEqual(inside.sort(byNumber));
        const outside = all.filter(([, points]) => !isIn(points)).map(([document]) => document);
        expect(model.within(x, y, radius, "disjoint"), why).toEqual(outside.sort(byNumber));
        const distanceOf = (document: number) =>
          Math.min(...(model.documents.get(document) ?? []).map(far));
        const near = model.nearest(x, y, 25).map(distanceOf);
        const ordered = all.map(([document]) => distanceOf(document)).sort(byNumber);
        expect(near.length).toBeGreaterThanOrEqual(25);
        for (const [i, distance] of near.entries()) {
          expect(distance, why).toBeCloseTo(ordered[i] as number, 6);
        }
      }
    }
    model.store.checkInvariants();
  });

  it("fill whole trees", () => {
    const model = new Model();
    const random = new SeededRandom(seed);
    for (let i = 0; i < 70_000; i++) {
      model.put(i, [{ x: random.next() * 20, y: random.next() * 20 }]);
    }
    const inside = [...model.documents]
      .filter(([, [at]]) => at !== undefined && distanceBetween(globe, 10, 10, at.x, at.y) <= 1)
      .map(([document]) => document);
    expect(model.within(10, 10, 1)).toEqual(inside);
    expect(model.nearest(10, 10, 1).length).toBe(1);
  });
});

describe("shapes of entries", () => {
  it("are found by their relation to another shape", () => {
    const store = new EntryStore(1);
    const [column] = store.columns;
    if (column === undefined) throw new Error("the column does not exist");
    const texts = [
      "POLYGON((0 0,10 0,10 10,0 10,0 0))",
      "POLYGON((2 2,3 2,3 3,2 3,2 2))",
      "LINESTRING(-5 -5,5 5)",
      "POLYGON((179 0,-179 0,-179 2,179 2,179 0))",
      "POINT(4 4)",
      "no shape",
      "MULTIPOINT(4 4,60 60)",
    ];
    for (const [document, text] of texts.entries()) {
      addWkt(column, text, globe);
      store.endEntry(document);
    }
    const view = new EntryView(store);
    const spatial = spatialColumnOf(column, globe);
    finish(spatial.refresh(budget));
    const found = (relation: "within" | "contains" | "intersects" | "disjoint", text: string) => {
      const shape = parseWkt(text, globe, "Kilometers");
      return [...finish(spatial.find(relation, shape, view, budget)).toList()];
    };
    const box = "POLYGON((1 1,5 1,5 5,1 5,1 1))";
    expect(found("intersects", box)).toEqual([0, 1, 2, 4, 6]);
    expect(found("within", box)).toEqual([1, 4]);
    expect(found("contains", box)).toEqual([0, 4]);
    expect(found("disjoint", box)).toEqual([3]);
    expect(found("intersects", "POINT(-179.5 1)")).toEqual([3]);
    expect(found("intersects", "POINT(179.5 1)")).toEqual([3]);
    expect([...spatial.withoutShape(view)]).toEqual([5]);
    expect(spatial.placeOf(1, 0, 0)).toEqual({ x: 2.5, y: 2.5 });
    expect(spatial.placeOf(5, 0, 0)).toBeNull();
    const all = { accepts: () => true, rankOf: (entry: number) => entry };
    const near = finish(spatial.nearest(180, 1, 1, 0, all, budget));
    expect([...near]).toEqual([3]);
  });

  it("are terms of their own type", () => {
    const store = new EntryStore(1);
    const [column] = store.columns;
    if (column === undefined) throw new Error("the column does not exist");
    const text = '[{"$spatial":"POINT (1 2)"},{"$spatial":null},{"$spatial":"POINT(1.0 2)"}]';
    expect(isSpatialText(text)).toBe(true);
    expect(isSpatialText('{"a":1}')).toBe(false);
    addSpatialText(column, text, globe);
    addPoint(column, 200, 0, globe);
    addPoint(column, Number.NaN, 0, globe);
    store.endEntry(0);
    expect(column.dictionary.count).toBe(firstTerm + 1);
    expect(column.dictionary.textOf(firstTerm)).toBe("POINT (1 2)");
    expect(column.dictionary.findText(0, "POINT (1 2)")).toBe(-1);
  });

  it("have coordinates that are numbers or numeric texts", () => {
    expect([5, "60.5", " -1e1 "].map(coordinateOf)).toEqual([5, 60.5, -10]);
    expect(["", "x", null, true, "0x10"].map(coordinateOf)).toEqual(Array(5).fill(Number.NaN));
  });
});
