import { describe, expect, it } from "vitest";
import { functionNamed, functions } from "../../../../engine/rql/functions/function-table.ts";

describe("functions", () => {
  it("are found in any case, without members inherited by objects", () => {
    expect(functionNamed("StartsWith")).toBe(functions.startswith);
    expect(functionNamed("SPATIAL.within")).toBe(functions["spatial.within"]);
    expect(functionNamed("constructor")).toBeUndefined();
  });

  it("have their names in lower case", () => {
    for (const name of Object.keys(functions)) expect(name).toBe(name.toLowerCase());
  });
});
