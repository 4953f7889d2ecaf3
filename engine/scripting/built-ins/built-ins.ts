/**
 * THE table of the names available to scripts: every global, each from the file of its family. Nothing else exists for
 * a script.
 *
 * Invariant: the table is built once and immutable; scripts share it.
 */

import { ScriptObject, type Value } from "../language/script-values.ts";
import { definePatchFunctions } from "../patch-functions.ts";
import type { ScriptContext } from "../script-host.ts";
import { builtIn } from "./built-in.ts";
import { defineArrays } from "./built-ins-array.ts";
import { defineDates } from "./built-ins-date.ts";
import { defineJson } from "./built-ins-json.ts";
import { defineStrings } from "./built-ins-string.ts";
import { defineSymbols } from "./built-ins-symbol.ts";
import { defineValues } from "./built-ins-value.ts";

function makeGlobals(): ReadonlyMap<string, Value> {
  const globals = new Map<string, Value>([
    ["undefined", undefined],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
  ]);
  defineValues(globals);
  defineJson(globals);
  defineSymbols(globals);
  const makers = [
    defineArrays(),
    ...defineStrings(),
    defineDates((run) => (run.context as ScriptContext).host.now()),
  ];
  for (const maker of makers) globals.set(maker.name, maker);
  definePatchFunctions(globals);
  addRandom(globals.get("Math"));
  return globals;
}

/** `Math.random` uses the host's numbers, so that tests are reproducible. */
function addRandom(math: Value): void {
  if (!(math instanceof ScriptObject)) return;
  math.keys.push("random");
  math.values.push(builtIn("random", 0, (run) => (run.context as ScriptContext).host.random()));
}

export const globals: ReadonlyMap<string, Value> = makeGlobals();
