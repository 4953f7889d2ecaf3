/** Suggestions for mistyped names. */
import { expect, test } from "vitest";
import { nearestName } from "../../../server/settings/nearest-name.ts";

test("suggests the nearest known name, in its own spelling", () => {
  expect(nearestName("datadri", ["ServerUrl", "DataDir"])).toBe("DataDir");
  expect(nearestName("staus", ["status", "query"])).toBe("status");
});

test("suggests nothing if no name is near, or none is known", () => {
  expect(nearestName("xyz", ["status", "query"])).toBeUndefined();
  expect(nearestName("x", [])).toBeUndefined();
});
