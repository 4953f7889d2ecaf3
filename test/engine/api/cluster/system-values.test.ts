import { afterEach, expect, test } from "vitest";
import { type Engine, openEngine } from "../../../../engine/engine.ts";
import { closeDatabases, temporaryFolder } from "../../../support/open-database.ts";

let engine: Engine;
afterEach(async () => {
  await engine.close();
  await closeDatabases();
});

test("server values are stored by key and survive restarts", async () => {
  const folder = temporaryFolder();
  engine = await openEngine({ folder });
  await engine.values.put("a/1", { x: [1] });
  await engine.values.put("a/2", "text");
  await engine.values.put("b", 3);
  await engine.values.delete("a/2");
  await engine.close();
  engine = await openEngine({ folder });
  expect(engine.values.get("b")).toBe(3);
  expect(engine.values.get("a/2")).toBeUndefined();
  expect([...engine.values.entries("a/")]).toEqual([["a/1", { x: [1] }]]);
});
