/** The official client's spatial queries, over automatic indexes and its index classes. */
import {
  AbstractJavaScriptIndexCreationTask,
  type DocumentStore,
  PointField,
  WktField,
} from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

class Cafe {
  name: string;
  lat: number | null;
  lng: number | null;
  area: string | null;
  constructor(name: string, lat: number | null, lng: number | null, area: string | null = null) {
    this.name = name;
    this.lat = lat;
    this.lng = lng;
    this.area = area;
  }
}

class CafesByPlace extends AbstractJavaScriptIndexCreationTask<
  Cafe,
  { name: string; place: unknown; area: unknown }
> {
  constructor() {
    super();
    const { createSpatialField } = this.mapUtils();
    this.map(Cafe, (cafe) => ({
      name: cafe.name,
      place: createSpatialField(cafe.lat as number, cafe.lng as number),
      area: createSpatialField(cafe.area as string),
    }));
    this.spatial("place", (factory) => factory.geography().defaultOptions("Miles"));
  }
}

afterAll(closeStores);

describe.each(ways)("a spatial query $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
    const session = store.openSession();
    await session.store(new Cafe("Harbour", 53.5436, 9.9665), "cafes/1");
    await session.store(new Cafe("Alster", 53.5665, 10.0014), "cafes/2");
    await session.store(new Cafe("Berlin", 52.5163, 13.3777), "cafes/3");
    await session.store(new Cafe("Nowhere", null, null), "cafes/4");
    const area = "POLYGON((9 53, 10 53, 10 54, 9 54, 9 53))";
    await session.store(new Cafe("Fiji", -17.7134, 178.065, area), "cafes/5");
    await session.saveChanges();
    await new CafesByPlace().execute(store);
  });

  const cafes = () => store.openSession().query<Cafe>(Cafe).waitForNonStaleResults();
  const indexed = () =>
    store.openSession().query<Cafe>(Cafe, CafesByPlace).waitForNonStaleResults();
  const names = (found: readonly Cafe[]) => found.map(({ name }) => name);
  const place = () => new PointField("lat", "lng");

  test("finds documents within a radius, in the order of distances", async () => {
    const near = await cafes()
      .spatial(place(), (criteria) => criteria.withinRadius(300, 53.55, 9.97))
      .orderByDistance(place(), 53.5665, 10.0014)
      .all();
    expect(names(near)).toEqual(["Alster", "Harbour", "Berlin"]);
    const far = await cafes()
      .spatial(place(), (criteria) => criteria.withinRadius(300, 53.55, 9.97, "Miles"))
      .orderByDistanceDescending(place(), 53.5665, 10.0014)
      .all();
    expect(names(far)).toEqual(["Berlin", "Harbour", "Alster"]);
    const across = cafes().spatial(place(), (criteria) =>
      criteria.withinRadius(300, -17.7, -179.9),
    );
    expect(names(await across.all())).toEqual(["Fiji"]);
  });

  test("finds by the relation to a shape", async () => {
    const box = "POLYGON((9 53, 11 53, 11 54, 9 54, 9 53))";
    const inside = cafes().spatial(place(), (criteria) => criteria.within(box));
    expect(names(await inside.all()).sort()).toEqual(["Alster", "Harbour"]);
    const outside = cafes().spatial(place(), (criteria) => criteria.disjoint(box));
    expect(names(await outside.all()).sort()).toEqual(["Berlin", "Fiji"]);
    const areas = cafes().spatial(new WktField("area"), (criteria) =>
      criteria.contains("POINT(9.5 53.5)"),
    );
    expect(names(await areas.all())).toEqual(["Fiji"]);
  });

  test("queries a static index", async () => {
    // Miles, because the field is defined so.
    const near = indexed()
      .withinRadiusOf("place", 170, 53.55, 9.97)
      .orderByDistance("place", 53.55, 9.97);
    expect(names(await near.all())).toEqual(["Harbour", "Alster", "Berlin"]);
    const kilometers = indexed().withinRadiusOf("place", 170, 53.55, 9.97, "Kilometers");
    expect(names(await kilometers.all()).sort()).toEqual(["Alster", "Harbour"]);
    const nearest = indexed().whereExists("place").orderByDistance("place", 52, 13).take(1);
    expect(names(await nearest.all())).toEqual(["Berlin"]);
    const shapes = indexed().relatesToShape("area", "POINT(9.5 53.5)", "Intersects");
    expect(names(await shapes.all())).toEqual(["Fiji"]);
  });

  test("is rejected with the server's error", async () => {
    const wrong = cafes().spatial(place(), (criteria) => criteria.withinRadius(1, 95, 0));
    await expect(wrong.all()).rejects.toThrow(/Bad Y value 95/);
  });
});
