import { afterEach, expect, test } from "vitest";
import { type Engine, openEngine } from "../../../engine/engine.ts";
import { closeDatabases, temporaryFolder } from "../../support/open-database.ts";

let engine: Engine;
afterEach(async () => {
  await engine.close();
  await closeDatabases();
});

test("databases are created, found in any letter case, unloaded and deleted", async () => {
  engine = await openEngine({ folder: temporaryFolder() });
  const { databases } = engine;
  const shop = await databases.create("Shop", { DatabaseName: "Shop" });
  expect([databases.names(), databases.has("SHOP"), databases.has("x")]).toEqual([
    ["Shop"],
    true,
    false,
  ]);
  expect(databases.find("shop")).toBe(shop);
  expect(databases.find("x")).toBeUndefined();
  await expect(databases.create("shop", {})).rejects.toMatchObject({ code: "database-exists" });
  await databases.unload("Shop");
  const again = await databases.find("Shop");
  expect(again).not.toBe(shop);
  expect(again?.settings).toEqual({ DatabaseName: "Shop" });
  expect(await databases.closeIdle()).toBe(0);
  expect([await databases.delete("shop"), await databases.delete("shop")]).toEqual([true, false]);
});
