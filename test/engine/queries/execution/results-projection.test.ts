/** The texts of projected rows: the position and content of their metadata. */
import { describe, expect, test } from "vitest";
import {
  indexedMetadata,
  severalValues,
  wholeGroup,
  withMetadata,
  withScore,
} from "../../../../engine/queries/execution/results-projection.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

const metadata = '"@metadata":{"@projection":true,"@id":"a/1"}}';

describe("metadata of a row", () => {
  test("is its last member, also in an empty row", () => {
    expect(withMetadata('{"a":1}', metadata)).toBe(`{"a":1,${metadata}`);
    expect(withMetadata("{}", metadata)).toBe(`{${metadata}`);
    expect(JSON.parse(wholeGroup('{"Count":2}'))).toEqual({
      Count: 2,
      "@metadata": { "@change-vector": null },
    });
  });

  test("begins with the members that a script has set, except the id", () => {
    const row = '{"a":1,"@metadata":{"own":true,"@id":"other"},"b":2}';
    const whole = JSON.parse(withMetadata(row, metadata)) as object;
    expect(whole).toEqual({
      ...{ a: 1, b: 2 },
      "@metadata": { own: true, "@projection": true, "@id": "a/1" },
    });
    expect(withMetadata('{"@metadata":{}}', metadata)).toBe(`{${metadata}`);
    expect(withMetadata('{"@metadata":7,"a":1}', metadata)).toMatch(/"@id":"a\/1"}}$/);
  });

  test("is not confused with similar text", () => {
    const row = JSON.stringify({ a: '"@metadata":{"x":1}' });
    expect(JSON.parse(withMetadata(row, metadata))).toMatchObject({ a: '"@metadata":{"x":1}' });
  });

  test("has the score of a whole document, and the id of a row from an index", () => {
    const document = '{"@metadata":{"x":1},"a":1,"@metadata":{"@id":"a/1"}}';
    expect(withScore(document, 1.5)).toContain('"@metadata":{"@index-score":1.5,"@id":"a/1"}}');
    expect(JSON.parse(`{${indexedMetadata('a"1')}`)).toEqual({
      "@metadata": { "@projection": true, "@change-vector": null, "@id": 'a"1' },
    });
  });

  test("a field with two values is an error", () => {
    expect(severalValues("a")).toMatchObject({ name: "EngineError" });
    expect(severalValues("a").message).toContain("a");
  });
});

test("selected fields are the values of their paths, under their names", async () => {
  const database = await openTestDatabase({ isInMemory: true });
  const body = { A: { B: [{ C: 1 }, { C: 2 }] }, D: 1.5, E: null };
  await database.put("a/1", { ...body, "@metadata": { "@collection": "Docs" } });
  const rows: object[] = [];
  const query = "from Docs as a select a.A.B[].C as Cs, a.D, a.E, a.None";
  await database.query(
    query,
    {},
    {
      add: (row) => {
        rows.push(JSON.parse(row.toString()));
        return null;
      },
    },
  );
  expect(rows).toMatchObject([{ Cs: [1, 2], D: 1.5, E: null }]);
  expect(rows[0]).not.toHaveProperty("None");
  expect(Object.keys(rows[0] ?? {}).at(-1)).toBe("@metadata");
});
