import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shapeFieldCountMax } from "../../../../engine/base/limits.ts";
import { recordKindAt, recordKinds, recordWordAt } from "../../../../engine/base/record.ts";
import { DocumentParser } from "../../../../engine/state/documents/document-parser.ts";
import { ShapeTable } from "../../../../engine/state/documents/shapes.ts";

function parsed(parser: DocumentParser, names: readonly string[]) {
  const bytes = Buffer.from(`{${names.map((name) => `${JSON.stringify(name)}:1`).join(",")}}`);
  return parser.parse(bytes, 0, bytes.length).found;
}

function shapeOf(parser: DocumentParser, names: readonly string[]): number {
  return parsed(parser, names).shapeId;
}

/** Writes the records of all shapes and reads them into a new table. */
function restored(table: ShapeTable): ShapeTable {
  const copy = new ShapeTable();
  for (let id = 1; id <= table.count; id++) {
    const bytes = Buffer.alloc(table.recordLength(id) + 8, 0xee);
    expect(table.encodeRecord(bytes, 8, id)).toBe(bytes.length - 8);
    expect((bytes.length - 8) % 8).toBe(0);
    expect(bytes[8 + recordKindAt]).toBe(recordKinds.shape);
    expect(bytes.readUInt32LE(8 + recordWordAt)).toBe(id);
    copy.restore(bytes, 8);
    copy.restore(bytes, 8);
  }
  return copy;
}

const nameLists = fc.array(
  fc
    .uniqueArray(
      fc.oneof(fc.constantFrom("a", "b", "c", "", "__proto__"), fc.string({ unit: "binary" })),
      {
        maxLength: 6,
        selector: (name) => name.replace(/\p{Surrogate}/gu, "\ufffd"),
      },
    )
    .map((names) => names.filter((name) => name !== "@metadata")),
  { maxLength: 30 },
);

describe("the shape of a document", () => {
  it("is the same for the same names in the same order, and only then", () => {
    fc.assert(
      fc.property(nameLists, (lists) => {
        const table = new ShapeTable();
        const parser = new DocumentParser(table);
        const ids = new Map<string, number>();
        for (const list of [...lists, ...lists]) {
          const names = list.map((name) => name.replace(/\p{Surrogate}/gu, "\ufffd"));
          const id = shapeOf(parser, list);
          const known = ids.get(JSON.stringify(names));
          expect(id).toBe(names.length === 0 ? 0 : (known ?? table.count));
          ids.set(JSON.stringify(names), id);
          if (id === 0) continue;
          expect(table.get(id).names).toEqual(names);
          names.forEach((name, index) => {
            expect(table.get(id).indexByName.get(name)).toBe(index);
          });
        }
      }),
      { numRuns: 300 },
    );
  });

  it("is found again after its record was read", () => {
    fc.assert(
      fc.property(nameLists, (lists) => {
        const table = new ShapeTable();
        const parser = new DocumentParser(table);
        const ids = lists.map((names) => shapeOf(parser, names));
        const copy = restored(table);
        expect(copy.count).toBe(table.count);
        expect(copy.loggedCount).toBe(table.count);
        const again = new DocumentParser(copy);
        expect(lists.map((names) => shapeOf(again, names))).toEqual(ids);
        for (let id = 1; id <= table.count; id++) expect(copy.get(id)).toEqual(table.get(id));
      }),
      { numRuns: 200 },
    );
  });

  it("is found among many with a common prefix", () => {
    const parser = new DocumentParser(new ShapeTable());
    const names = Array.from({ length: 100 }, (_, i) => ["first", `name${i}`, "last"]);
    const ids = names.map((list) => shapeOf(parser, list));
    expect(new Set(ids).size).toBe(100);
    expect(names.map((list) => shapeOf(parser, list))).toEqual(ids);
  });

  it("is rejected for too many names", () => {
    const table = new ShapeTable();
    const parser = new DocumentParser(table);
    const names = Array.from({ length: shapeFieldCountMax + 1 }, (_, i) => `n${i}`);
    expect(parsed(parser, names)).toMatchObject({ shapeId: 0, fieldCount: 0 });
    const most = parsed(parser, names.slice(1));
    expect(most).toMatchObject({ shapeId: 1, fieldCount: shapeFieldCountMax });
  });

  it("is rejected when the table is full, and known shapes are still found", () => {
    const table = new ShapeTable();
    const parser = new DocumentParser(table);
    const long = "x".repeat(1024 * 1024);
    const ids = Array.from({ length: 40 }, (_, i) => shapeOf(parser, [long, `n${i}`]));
    expect(ids[0]).toBe(1);
    expect(ids[39]).toBe(0);
    expect(shapeOf(parser, [long, "n0"])).toBe(1);
    expect(shapeOf(parser, ["small", "and", "new"])).toBe(table.count);
  });
});

describe("shapes not yet in the log", () => {
  it("are the shapes above the logged count", () => {
    const table = new ShapeTable();
    const parser = new DocumentParser(table);
    shapeOf(parser, ["a"]);
    shapeOf(parser, ["b"]);
    expect(table.loggedCount).toBe(0);
    table.setLoggedCount(2);
    shapeOf(parser, ["c"]);
    expect([table.loggedCount, table.count]).toEqual([2, 3]);
    table.setLoggedCount(1);
    expect(table.loggedCount).toBe(1);
    expect(() => table.setLoggedCount(4)).toThrow("only shapes that exist");
  });

  it("must be read in the order of their ids", () => {
    const table = new ShapeTable();
    const parser = new DocumentParser(table);
    shapeOf(parser, ["a"]);
    shapeOf(parser, ["b"]);
    const bytes = Buffer.alloc(table.recordLength(2));
    table.encodeRecord(bytes, 0, 2);
    expect(() => new ShapeTable().restore(bytes, 0)).toThrow("in the order of their ids");
  });
});
