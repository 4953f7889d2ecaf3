/** Properties of a compiled definition before it runs, and reasons for rejecting one. */
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { parseStaticDefinition } from "../../../../engine/indexing/definitions/static-definition.ts";
import { compileIndex } from "../../../../engine/services/index-hosting/index-compiler.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

async function compiled(definition: object) {
  const database = await openTestDatabase({ isInMemory: true });
  return compileIndex(
    parseStaticDefinition({ Name: "I", ...definition } as Parameters<
      typeof parseStaticDefinition
    >[0]),
    database,
    database.clock,
  );
}

describe("a compiled index", () => {
  test("lists the collections of its maps, their fields, and the collections they load", async () => {
    const program = await compiled({
      Maps: [
        "map('Users', u => ({ Name: u.Name, City: load(u.City, 'Cities').Name }))",
        "map('Dogs', d => ({ Name: d.Name, City: null }))",
      ],
    });
    expect(program.collections).toEqual(["Users", "Dogs"]);
    expect(program.referencedCollections).toEqual(["Cities"]);
    expect([...(program.fieldNames ?? [])].sort()).toEqual(["City", "Name"]);
    expect([program.isReduce, program.source]).toEqual([false, "Documents"]);
  });

  test("reduces if a reduce function is defined", async () => {
    const program = await compiled({
      Maps: ["map('Users', u => ({ Name: u.Name, Count: 1 }))"],
      Reduce:
        "groupBy(u => u.Name).aggregate(g => ({ Name: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))",
    });
    expect(program.isReduce).toBe(true);
  });

  test("may be in C#, over documents or counters", async () => {
    const program = await compiled({ Maps: ["from u in docs.Users select new { u.Name, N = 1 }"] });
    expect([...(program.fieldNames ?? [])].sort()).toEqual(["N", "Name"]);
    expect(program.collections).toEqual(["Users"]);
    const counters = "from c in counters.Users select new { c.Name, c.Value }";
    expect((await compiled({ Maps: [counters] })).source).toBe("Counters");
  });

  test.each([
    ["that does not parse", ["map('Users', u => {"]],
    ["without a map", ["1 + 1"]],
    ["of C# that does not parse", ["from u in docs.Users select"]],
    ["of C# with a name that is not there", ["from u in docs.Users select new { x.A }"]],
  ])("is rejected for a text %s", async (_name, Maps) => {
    await expect(compiled({ Maps })).rejects.toThrow(EngineError);
  });
});
