/** Items of dumps of RavenDB 3.5, converted as RavenDB 7.2.7 converts them: expected values were observed there. */
import { describe, expect, test } from "vitest";
import {
  isOldBuild,
  oldAttachment,
  oldDocumentKind,
  presentIdentityName,
  presentIndex,
  presentMetadata,
} from "../../../engine/smuggler/old-dump.ts";

test("a build below 40000 is old, except for development builds of 4.0 and later", () => {
  const builds = [-1, 0, 35, 35_168, 39_999, 40, 41, 60, 40_000, 72_051];
  expect(builds.filter(isOldBuild)).toEqual([-1, 0, 35, 35_168, 39_999]);
});

describe("metadata", () => {
  const present = (metadata: object, id = "o/1"): unknown =>
    JSON.parse(presentMetadata(id, JSON.stringify(metadata)));

  test("loses what the old server generated, and renames the collection and the expiration", () => {
    const generated = Object.fromEntries(
      [
        "@etag",
        "@index-score",
        "Last-Modified",
        "Raven-Last-Modified",
        "Raven-Read-Only",
        "Raven-Delete-Marker",
        "Raven-Document-Parent-Revision",
        "Raven-Document-Revision",
        "Raven-Document-Revision-Status",
        "Raven-Replication-Source",
        "Raven-Replication-Version",
        "Raven-Replication-History",
        "Raven-Replication-Merged-History",
        "Non-Authoritative-Information",
      ].map((key) => [key, "x"]),
    );
    const kept = {
      "Raven-Clr-Type": "A.Order, A",
      "Raven-Replication-Conflict": true,
      "Temp-Index-Score": 1.5,
      "raven-entity-name": "lower",
      mine: { a: 1 },
    };
    const renamed = { "Raven-Entity-Name": "Orders", "Raven-Expiration-Date": "2099-01-01" };
    expect(present({ ...generated, ...kept, ...renamed })).toEqual({
      ...kept,
      "@collection": "Orders",
      "@expires": "2099-01-01",
    });
    expect(presentMetadata("o/1", '{"n":9007199254740993,"d":1.50}')).toBe(
      '{"n":9007199254740993,"d":1.50}',
    );
    expect(present({ "Raven-Entity-Name": "A", "@collection": "B" })).toEqual({
      "@collection": "B",
    });
  });

  test("of HiLo documents is the collection alone", () => {
    expect(present({ mine: 1 }, "Raven/Hilo/orders")).toEqual({ "@collection": "@hilo" });
    expect(present({ mine: 1 }, "raven/hilo/orders")).toEqual({ mine: 1 });
  });
});

test("documents of replication and delete markers are obsolete, revisions are told by id and status", () => {
  const kind = (id: string, metadata: Record<string, unknown> = {}) =>
    oldDocumentKind(id, metadata);
  expect(kind("Raven/Replication/Destinations")).toBe("obsolete");
  expect(kind("Raven/Replication/Sources/1")).toBe("obsolete");
  expect(kind("o/1", { "Raven-Delete-Marker": true })).toBe("obsolete");
  for (const id of ["Raven/Replication/Sources", "raven/replication/sources/1", "Raven/Alerts"]) {
    expect(kind(id)).toBe("document");
  }
  const historical = { "Raven-Document-Revision-Status": "Historical" };
  expect(kind("o/1/revisions/2", historical)).toBe("revision");
  expect(kind("o/1", historical)).toBe("document");
  expect(kind("o/1/revisions/2", { "Raven-Document-Revision-Status": "historical" })).toBe(
    "document",
  );
});

test("the last character of an identity becomes the separator", () => {
  const names = ["orders/", "ab/cd/", "y|", "/", "x"].map(presentIdentityName);
  expect(names).toEqual(["orders|", "ab/cd|", "y|", "|", "|"]);
});

describe("an index", () => {
  const map = "from o in docs.Orders select new { o.A }";
  const present = (definition: object, name: unknown = "I") => presentIndex({ name, definition });

  test("has its options by field, and none for defaults", () => {
    const definition = {
      Map: "ignored",
      Maps: [map, map],
      Reduce: null,
      LockMode: "LockedIgnore",
      TransformResults: "ignored",
      Stores: { A: "Yes", B: "No", C: 1 },
      Indexes: { A: "Analyzed", B: "NotAnalyzed", C: "No", D: "Default", E: "analyzed" },
      TermVectors: { A: "WithPositionsAndOffsets", B: "No" },
      Analyzers: { A: "StandardAnalyzer" },
      SortOptions: { A: "Double" },
      Suggestions: { B: { Distance: "Levenshtein" } },
      SuggestionsOptions: ["A"],
      SpatialIndexes: { F: { Type: "Cartesian" }, G: null },
      Fields: ["A", "__document_id"],
    };
    expect(present(definition)).toEqual({
      Name: "I",
      Maps: [map, map],
      Reduce: null,
      LockMode: "LockedIgnore",
      Fields: {
        A: {
          Indexing: "Search",
          Storage: "Yes",
          TermVector: "WithPositionsAndOffsets",
          Analyzer: "StandardAnalyzer",
          Suggestions: true,
        },
        B: { Indexing: "Exact" },
        C: { Indexing: "No" },
        E: { Indexing: "Search" },
        F: { Spatial: { Type: "Cartesian" } },
      },
    });
  });

  test("that was automatic gets a name of its own", () => {
    const names = ["Auto/Orders/ByA", "auto/x", "Auto", "Temp/x"];
    const renamed = names.map((name) => present({ Maps: [map] }, name)["Name"]);
    expect(renamed).toEqual(["Legacy/Auto/Orders/ByA", "Legacy/auto/x", "Auto", "Temp/x"]);
  });

  test.each([
    {},
    { Maps: null },
    { Maps: [] },
    { Maps: "x" },
    { Maps: [null] },
    { Map: map },
    { Maps: [map], Reduce: "" },
    { Maps: [map], Stores: { A: "Maybe" } },
    { Maps: [map], Stores: [1] },
    { Maps: [map], Indexes: { A: "NotAnalyzedNoNorms" } },
  ])("%j is not readable", (definition) => {
    expect(() => present(definition)).toThrow(expect.objectContaining({ code: "invalid-format" }));
  });

  test.each([
    {},
    { name: "X" },
    { name: 5, definition: { Maps: [map] } },
    { name: "X", definition: 5 },
  ])("the item %j is not readable", (item) => {
    expect(() => presentIndex(item)).toThrow("Could not read legacy index definition.");
  });
});

describe("an attachment", () => {
  const data = Buffer.from("hello").toString("base64");

  test("becomes a document with its metadata", () => {
    const { key, content, text } = oldAttachment({ Key: "a.txt", Data: data, Metadata: { X: 1 } });
    expect([key, content.toString()]).toEqual(["a.txt", "hello"]);
    const own = { "@collection": "@files", "@legacy-attachment-metadata": { X: 1 } };
    expect(JSON.parse(text)).toEqual({ "@metadata": own });
    expect(oldAttachment({ Key: "a", Data: "", Metadata: {} }).content.length).toBe(0);
  });

  test.each([
    [{ Data: data, Metadata: {} }, "invalid-argument"],
    [{ Key: 5, Data: data, Metadata: {} }, "invalid-argument"],
    [{ Key: "", Data: data, Metadata: {} }, "invalid-argument"],
    [{ Key: "a", Metadata: {} }, "invalid-argument"],
    [{ Key: "a", Data: 5, Metadata: {} }, "invalid-argument"],
    [{ Key: "a", Data: data }, "invalid-argument"],
    [{ Key: "a", Data: data, Metadata: null }, "invalid-argument"],
    [{ Key: "a", Data: data, Metadata: "x" }, "invalid-format"],
    [{ Key: "a", Data: "%%", Metadata: {} }, "invalid-format"],
    [{ Key: "a", Data: "aGVsbG8", Metadata: {} }, "invalid-format"],
  ])("%j is refused as %s", (item, code) => {
    expect(() => oldAttachment(item)).toThrow(expect.objectContaining({ code }));
  });
});
