import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
let events: string[];
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
  events = [];
  await putAll(opened, "Things", { a: { n: "x" }, b: { n: "y" } });
  await database.indexes.deploy([definition()], false, { source: "here", commandIndex: 3 });
  await database.indexes.waitForNonStale([], 10_000);
  database.changes.listenToIndexes(({ type, name }) => events.push(`${type} ${name}`));
});
afterEach(closeDatabases);

function definition(field = "N") {
  return { Name: "I", Maps: [`map('Things', t => ({ ${field}: t.n }))`] };
}

test("lists indexes and finds them by name, in any letter case", async () => {
  const { indexes } = database;
  await query(opened, "from Things where n = 'x'");
  expect(indexes.names()).toEqual(["Auto/Things/Byn", "I"]);
  expect(indexes.list().map(({ name }) => name)).toEqual(indexes.names());
  expect(indexes.listDetails().map(({ type }) => type)).toEqual(["AutoMap", "JavaScriptMap"]);
  expect(indexes.listAutomatic().map(({ name }) => name)).toEqual(["Auto/Things/Byn"]);
  expect([indexes.has("i"), indexes.has("none")]).toEqual([true, false]);
  expect(indexes.get("i").name).toBe("I");
  expect(indexes.details("i").entriesCount).toBe(2);
  expect(indexes.fieldNames("i")).toEqual(["N", "id()"]);
  for (const find of ["get", "details", "definition", "fieldNames", "reset"] as const) {
    expect(() => indexes[find]("none")).toThrow("There is no index with 'none' name.");
  }
});

test("returns definitions and their history as deployed", async () => {
  const { indexes } = database;
  expect(indexes.definition("I")).toMatchObject({ Name: "I", Maps: definition().Maps });
  expect(indexes.hasChanged(definition())).toBe(false);
  expect(indexes.hasChanged(definition("M"))).toBe(true);
  expect(indexes.histories().get("I")).toMatchObject([{ source: "here" }]);
  expect(indexes.definitionCount).toBe(1);
  const before = indexes.definitionEtag("i") ?? 0;
  await putAll(opened, "Things", { c: {} });
  await indexes.setPriority("I", "High");
  expect(indexes.definitionEtag("I")).toBeGreaterThan(before);
  expect(indexes.definitionEtag("none")).toBeUndefined();
});

test("lists terms in order, and their etag changes with the index", async () => {
  const { indexes } = database;
  const request = { field: "N", after: "", countMax: 10 };
  const first = await indexes.terms("i", request);
  expect(first).toMatchObject({ name: "I", terms: ["x", "y"] });
  expect((await indexes.terms("I", { ...request, after: "x" })).terms).toEqual(["y"]);
  await putAll(opened, "Things", { c: { n: "z" } });
  expect(await indexes.waitForNonStale(["i", "none"], 10_000)).toEqual({
    count: 1,
    stale: [],
    paused: [],
  });
  expect((await indexes.terms("I", request)).resultEtag).not.toBe(first.resultEtag);
});

test("builds the terms of a field on request if the index stores only its words", async () => {
  const { indexes } = database;
  await putAll(opened, "Posts", { p: { Text: "Quick fox" } });
  await query(opened, "from Posts where search(Text, 'fox')");
  const name = "Auto/Posts/BySearch(Text)";
  expect(indexes.fieldNames(name)).toEqual(["Text", "search(Text)", "id()"]);
  const request = { after: "", countMax: 10 };
  const words = await indexes.terms(name, { ...request, field: "search(Text)" });
  expect(words.terms).toEqual(["fox", "quick"]);
  expect(opened.queries.indexes.byName(name)?.wordsOnly).toEqual(new Set(["Text"]));
  const whole = await indexes.terms(name, { ...request, field: "Text" });
  expect(whole).toMatchObject({ name, terms: ["quick fox"] });
  expect(indexes.fieldNames(name)).toEqual(["Text", "search(Text)", "id()"]);
  expect(indexes.listAutomatic().map((one) => one.name)).toEqual([name]);
});

test("reports a paused index as stale", async () => {
  const { indexes } = database;
  indexes.setPaused(true, { isReduce: true });
  expect(indexes.get("I").isPaused).toBe(false);
  indexes.setPaused(true, { name: "I" });
  expect([indexes.get("I").isPaused, indexes.isPaused]).toEqual([true, false]);
  await putAll(opened, "Things", { c: {} });
  expect(await indexes.waitForNonStale([], 20)).toEqual({ count: 1, stale: ["I"], paused: ["I"] });
  indexes.setPaused(true);
  expect(indexes.isPaused).toBe(true);
  indexes.setPaused(false);
  expect((await indexes.waitForNonStale([], 10_000)).stale).toEqual([]);
  expect(events.slice(0, 3)).toEqual(["IndexPaused I", "IndexPaused I", "BatchCompleted I"]);
});

test("index changes are durable and reported", async () => {
  const { indexes } = database;
  await indexes.setLockMode("I", "LockedError");
  await indexes.setPriority("I", "Low");
  await indexes.setDisabled("I", true);
  expect(indexes.details("I")).toMatchObject({
    lockMode: "LockedError",
    priority: "Low",
    isDisabled: true,
    isRunning: false,
  });
  expect(events).toEqual(["LockModeChanged I", "PriorityChanged I", "IndexDemotedToDisabled I"]);
  await expect(indexes.delete("I")).rejects.toMatchObject({ code: "index-deletion" });
  await indexes.setLockMode("I", "Unlock");
  expect([await indexes.delete("I"), await indexes.delete("I")]).toEqual([true, false]);
  expect(indexes.definitionCount).toBe(0);
});

test("locks only deployed indexes", async () => {
  await query(opened, "from Things where n = 'x'");
  const locked = database.indexes.setLockMode("Auto/Things/Byn", "Unlock");
  await expect(locked).rejects.toMatchObject({ code: "invalid-operation" });
});

test("swaps in a replacement and rebuilds an index after a reset", async () => {
  const { indexes } = database;
  indexes.setPaused(true);
  await indexes.deploy([definition("M")], false);
  expect(indexes.names()).toEqual(["I", "ReplacementOf/I"]);
  await indexes.replace("I");
  expect([indexes.names(), indexes.fieldNames("I")]).toEqual([
    ["I"],
    expect.arrayContaining(["M"]),
  ]);
  indexes.setPaused(false);
  await indexes.waitForNonStale([], 10_000);
  indexes.reset("i");
  expect(indexes.get("I").isStale).toBe(true);
});

test("deletes errors on request", async () => {
  const { indexes } = database;
  const failing = {
    Name: "F",
    Maps: ["map('Things', t => { if (t.n === 'y') throw 'no'; return { N: 1 }; })"],
  };
  await indexes.deploy([failing], false);
  await indexes.waitForNonStale([], 10_000);
  expect(indexes.get("F").errors.map(({ document }) => document)).toEqual(["b"]);
  indexes.clearErrors("F");
  expect(indexes.get("F").errors).toEqual([]);
});
