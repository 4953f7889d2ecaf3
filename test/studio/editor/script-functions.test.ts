/** The help of the patch editor names the functions that the server has. */
import { expect, test } from "vitest";
import { globals } from "../../../engine/scripting/built-ins/built-ins.ts";
import { seriesQueryName } from "../../../engine/scripting/patch-functions.ts";
import { scriptFunctions } from "../../../studio/editor/script-functions.ts";

test("all functions of patches have help, and no others", () => {
  const named = new Set(scriptFunctions.map(({ name }) => name.split(".")[0]));
  expect([...named].filter((name) => !globals.has(name as string))).toEqual([]);
  // Compiled declared series queries are not for users, and obsolete names only have an error message.
  const hidden = new Set([seriesQueryName, "LoadDocument", "PutDocument", "DeleteDocument"]);
  const own = [...globals.keys()].filter((name) => !(name in globalThis) && !hidden.has(name));
  expect(own.filter((name) => !named.has(name))).toEqual([]);
});
