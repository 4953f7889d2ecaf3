/**
 * docs/openapi.json matches the source byte for byte. Reading the source with the TypeScript
 * compiler takes half a minute.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openApiText } from "../../packaging/openapi.ts";
import { projectRoot } from "../support/project-root.ts";

test("docs/openapi.json is what npm run openapi would write", async () => {
  const text = await openApiText();
  expect(text).toBe(readFileSync(`${projectRoot}docs/openapi.json`, "utf8"));
}, 300_000);
