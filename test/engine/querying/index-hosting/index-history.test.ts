import { afterEach, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/database/open-database.ts";
import { historiesOf } from "../../../../engine/querying/index-hosting/index-history.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

const definitionOf = (field: string, more = {}) => ({
  Name: "I",
  Maps: [`map('Users', u => ({ ${field}: u.${field} }))`],
  ...more,
});

async function deploy(database: OpenDatabase, ...definitions: object[]): Promise<void> {
  for (const [i, definition] of definitions.entries()) {
    const deployer = { source: "me", commandIndex: i + 1 };
    const json = definition as Record<string, unknown>;
    await database.queries.administration.deploy([json], true, deployer);
  }
}

/** The names of the fields of the revisions of an index, the newest first. */
function fieldsOf(database: OpenDatabase, name = "I"): string[] {
  const revisions = historiesOf(database.state).get(name) ?? [];
  return revisions.map(({ definition }) => /\{ (\w+):/.exec(String(definition.maps[0]))?.[1] ?? "");
}

async function setRevisions(database: OpenDatabase, value: string): Promise<void> {
  const Settings = { "Indexing.History.NumberOfRevisions": value };
  await database.putSettings({ ...database.settings, Settings });
}

it("keeps who deployed what and when, the newest first, over a crash", async () => {
  const folder = temporaryFolder();
  const database = await openDatabase(folder);
  await deploy(database, definitionOf("A"), definitionOf("B", { Priority: "High" }));
  const told = historiesOf(database.state);
  const revisions = told.get("I") ?? [];
  expect(revisions.map(({ source, commandIndex }) => [source, commandIndex])).toEqual([
    ["me", 2],
    ["me", 1],
  ]);
  expect(revisions.map(({ options }) => options.priority)).toEqual(["High", null]);
  const [newer, older] = revisions.map(({ createdAtMicros }) => createdAtMicros);
  expect(Number(newer)).toBeGreaterThan(Number(older));
  const again = await openAfterCrash(folder);
  expect(historiesOf(again.state)).toEqual(told);
});

it("does not take down what is the same, or is locked out", async () => {
  const database = await openDatabase();
  await deploy(database, definitionOf("A"), definitionOf("A"));
  expect(fieldsOf(database)).toEqual(["A"]);
  await deploy(database, definitionOf("A", { LockMode: "LockedIgnore" }), definitionOf("B"));
  expect(fieldsOf(database)).toEqual(["A", "A"]);
});

it("takes down a definition that comes back while another is built", async () => {
  const database = await openDatabase();
  await deploy(database, definitionOf("A"));
  database.queries.administration.setPaused(true);
  await deploy(database, definitionOf("B"), definitionOf("A"));
  expect(fieldsOf(database)).toEqual(["A", "B", "A"]);
});

it("keeps ten definitions, or as many as the database's setting says", async () => {
  const database = await openDatabase();
  const letters = [..."ABCDEFGHIJKLM"];
  await deploy(database, ...letters.map((letter) => definitionOf(letter)));
  expect(fieldsOf(database).join("")).toBe("MLKJIHGFED");
  await setRevisions(database, "2");
  await deploy(database, definitionOf("N"));
  expect(fieldsOf(database)).toEqual(["N", "M"]);
  await setRevisions(database, "many");
  await deploy(database, definitionOf("O"));
  expect(fieldsOf(database)).toEqual(["O", "N", "M"]);
  await setRevisions(database, "0");
  await deploy(database, definitionOf("P"));
  expect(fieldsOf(database)).toEqual([]);
});

it("keeps fewer of long definitions, but always the newest", async () => {
  const database = await openDatabase();
  const long = (name: string) =>
    definitionOf(name, { AdditionalSources: { text: `/*${"x".repeat(1_000_000)}*/` } });
  await deploy(database, ...[..."ABCDEF"].map(long));
  expect(fieldsOf(database)).toEqual(["F", "E", "D", "C"]);
});

it("stays when the index is reset, and goes with it", async () => {
  const database = await openDatabase();
  await deploy(database, definitionOf("A"), definitionOf("A", { Name: "I/Other" }));
  database.queries.indexes.reset("I");
  expect(fieldsOf(database)).toEqual(["A"]);
  await database.queries.administration.delete("i");
  expect([...historiesOf(database.state).keys()]).toEqual(["I/Other"]);
});
