import { expect, test } from "vitest";
import { nearestNames } from "../../../studio/shell/nearest.ts";

test("the nearest names come first, and distant ones are omitted", () => {
  const names = ["shop", "shop-test", "archive", "ship", "Zebra"];
  expect(nearestNames("shp", names)).toEqual(["shop", "ship"]);
  expect(nearestNames("SHOP-TEST", names)[0]).toBe("shop");
  expect(nearestNames("shop-tset", names)).toContain("shop-test");
  expect(nearestNames("qqqqqq", names)).toEqual([]);
});
