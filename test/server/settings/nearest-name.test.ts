/** Suggestions for mistyped names. */
import { expect, test } from "vitest";
import { nearestName } from "../../../server/settings/nearest-name.ts";

test("the nearest of the known names is suggested, in its own spelling", () => {
  expect(nearestName("datadri", ["ServerUrl", "DataDir"])).toBe("DataDir");
  expect(nearestName("staus", ["status", "query"])).toBe("status");
});

test("nothing is suggested when none is near, or none is known", () => {
  expect(nearestName("xyz", ["status", "query"])).toBeUndefined();
  expect(nearestName("x", [])).toBeUndefined();
});
