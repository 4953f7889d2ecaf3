import { describe, expect, it } from "vitest";
import { functionNamed, functions } from "../../../../engine/queries/functions/function-table.ts";
import { rqlMethods } from "../../../../engine/queries/syntax/words.ts";

describe("functions", () => {
  it("are found in any case, without members inherited by objects", () => {
    expect(functionNamed("StartsWith")).toBe(functions.startswith);
    expect(functionNamed("SPATIAL.within")).toBe(functions["spatial.within"]);
    expect(functionNamed("constructor")).toBeUndefined();
  });

  it("are all completed in the studio and at the prompt", () => {
    const completed = rqlMethods.map((name) => name.toLowerCase());
    expect(completed.sort()).toEqual(Object.keys(functions).sort());
  });

  it("have their names in lower case", () => {
    for (const name of Object.keys(functions)) expect(name).toBe(name.toLowerCase());
  });
});
