/** docs/openapi.json is what the source says now, byte by byte: reading it takes TypeScript's compiler half a minute. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openApiText } from "../../packaging/openapi.ts";

const up = import.meta.url.endsWith(".js") ? "../../../" : "../../";
const root = fileURLToPath(new URL(up, import.meta.url));

test("docs/openapi.json is what npm run openapi would write", async () => {
  const text = await openApiText();
  expect(text).toBe(readFileSync(`${root}docs/openapi.json`, "utf8"));
}, 300_000);
