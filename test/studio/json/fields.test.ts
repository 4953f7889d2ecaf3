import { expect, test } from "vitest";
import { fieldsOf, placesOf } from "../../../studio/json/fields.ts";

test("finds scalar fields with their types, also in objects", () => {
  const rows = [
    { "@metadata": { "@id": "a" }, N: 1, At: "2020-01-01T00:00:00", In: { Name: "x", M: 2 } },
    { N: 2, At: null, In: { Name: "y", M: "2" }, List: [1] },
  ];
  const found = fieldsOf(rows).map(({ name, type }) => `${name} ${type}`);
  expect(found).toEqual(["N number", "At date", "In.Name text", "In.M text"]);
});

test("finds coordinates by the fields of the query, and otherwise by their names", () => {
  const rows = [
    { Where: { Lat: "48.5", lng: 2 } },
    { y: 10, x: 20, Latitude: 1, Longitude: 2 },
    { Latitude: 91, Longitude: 0 },
    { Latitude: null, Longitude: null },
    { Latitude: "", Longitude: "" },
    {},
  ];
  expect(placesOf(rows, [])).toEqual([
    { row: 0, latitude: 48.5, longitude: 2 },
    { row: 1, latitude: 1, longitude: 2 },
  ]);
  expect(placesOf(rows, [[["y"], ["x"]]])[1]).toEqual({ row: 1, latitude: 10, longitude: 20 });
});
