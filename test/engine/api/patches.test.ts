import { afterEach, beforeEach, expect, test } from "vitest";
import type { OpenDatabase } from "../../../engine/api/database/open-database.ts";
import { Database } from "../../../engine/api/database.ts";
import { readTree } from "../../../engine/base/json/text-tree.ts";
import { closeDatabases, openDatabase } from "../../support/open-database.ts";

let opened: OpenDatabase;
let database: Database;
beforeEach(async () => {
  opened = await openDatabase();
  database = Database.of(opened);
  await opened.put("a", { n: 1 });
});
afterEach(closeDatabases);

const patch = { script: "this.n += args.by;", values: '{"by":2}' };

test("a script changes a document unless it runs as a test", async () => {
  const tested = await database.patches.run({ id: "a", patch }, true);
  expect(JSON.parse(tested.modified as string)).toMatchObject({ n: 3 });
  expect(await opened.get("a")).toMatchObject({ n: 1 });
  const { status, changeVector } = await database.patches.run({ id: "a", patch });
  expect([status, changeVector]).toEqual(["Patched", database.changeVector]);
  expect(await opened.get("a")).toMatchObject({ n: 3 });
  expect((await database.patches.run({ id: "b", patch })).status).toBe("DocumentDoesNotExist");
});

test("applies all operations of a JSON Patch or none", async () => {
  const run = (text: string, expected?: string) =>
    database.patches.runJson("a", readTree(Buffer.from(text), 0), expected);
  const { status } = await run('[{"op":"replace","path":"/n","value":7}]');
  expect(status).toBe("Patched");
  const half = run('[{"op":"add","path":"/m","value":1},{"op":"remove","path":"/none"}]');
  await expect(half).rejects.toMatchObject({ code: "invalid-operation" });
  expect(await opened.get("a")).toMatchObject({ n: 7 });
  expect(await opened.get("a")).not.toHaveProperty("m");
  const late = run('[{"op":"remove","path":"/n"}]', `A:99-${database.databaseId}`);
  await expect(late).rejects.toMatchObject({ code: "concurrency" });
});
