import { describe, expect, it } from "vitest";
import { methodKey, methodNames } from "../../../../engine/rql/functions/method-table.ts";

describe("methodKey", () => {
  it("finds methods in any case and nothing that objects inherit", () => {
    expect(methodKey("StartsWith")).toBe("startswith");
    expect(methodKey("SPATIAL.within")).toBe("spatial.within");
    expect(methodKey("constructor")).toBeNull();
    expect(methodKey("suggest")).toBeNull();
  });

  it("has its names in lower case", () => {
    for (const name of Object.keys(methodNames)) expect(name).toBe(name.toLowerCase());
  });
});
