import { afterEach, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { historiesOf } from "../../../../engine/services/index-hosting/index-history.ts";
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

/** Returns the field names of an index's revisions, newest first. */
function fieldsOf(database: OpenDatabase, name = "I"): string[] {
  const revisions = historiesOf(database.state).get(name) ?? [];
  return revisions.map(({ definition }) => /\{ (\w+):/.exec(String(definition.maps[0]))?.[1] ?? "");
}

async function setRevisions(database: OpenDatabase, value: string): Promise<void> {
  const Settings = { "Indexing.History.NumberOfRevisions": value };
  await database.putSettings({ ...database.settings, Settings });
}

it("records who deployed which definition and when, newest first, across a crash", async () => {
  const folder = temporaryFolder();
  const database = await openDatabase(folder);
  await deploy(database, definitionOf("A"), definitionOf("B", { Priority: "High" }));
  const reported = historiesOf(database.state);
  const revisions = reported.get("I") ?? [];
  expect(revisions.map(({ source, commandIndex }) => [source, commandIndex])).toEqual([
    ["me", 2],
    ["me", 1],
  ]);
  expect(revisions.map(({ options }) => options.priority)).toEqual(["High", null]);
  const [newer, older] = revisions.map(({ createdAtMicros }) => createdAtMicros);
  expect(Number(newer)).toBeGreaterThan(Number(older));
  const again = await openAfterCrash(folder);
  expect(historiesOf(again.state)).toEqual(reported);
});

it("does not record unchanged or locked deployments", async () => {
  const database = await openDatabase();
  await deploy(database, definitionOf("A"), definitionOf("A"));
  expect(fieldsOf(database)).toEqual(["A"]);
  await deploy(database, definitionOf("A", { LockMode: "LockedIgnore" }), definitionOf("B"));
  expect(fieldsOf(database)).toEqual(["A", "A"]);
});

it("records a definition that is restored while its replacement is being built", async () => {
  const database = await openDatabase();
  await deploy(database, definitionOf("A"));
  database.queries.administration.setPaused(true);
  await deploy(database, definitionOf("B"), definitionOf("A"));
  expect(fieldsOf(database)).toEqual(["A", "B", "A"]);
});

it("retains ten definitions, or the number in the database's settings", async () => {
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

it("retains fewer of long definitions, but always the newest", async () => {
  const database = await openDatabase();
  const long = (name: string) =>
    definitionOf(name, { AdditionalSources: { text: `/*${"x".repeat(1_000_000)}*/` } });
  await deploy(database, ...[..."ABCDEF"].map(long));
  expect(fieldsOf(database)).toEqual(["F", "E", "D", "C"]);
});

it("survives a reset of the index and is deleted with it", async () => {
  const database = await openDatabase();
  await deploy(database, definitionOf("A"), definitionOf("A", { Name: "I/Other" }));
  database.queries.indexes.reset("I");
  expect(fieldsOf(database)).toEqual(["A"]);
  await database.queries.administration.delete("i");
  expect([...historiesOf(database.state).keys()]).toEqual(["I/Other"]);
});
