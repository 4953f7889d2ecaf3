import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { productVersion } from "../../../server/settings/product-version.ts";

test("the version is that of the package", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  expect(productVersion).toBe(version);
});
