/**
 * Scripts of an administrator (`POST /admin/console`): they compute a value. Of the server they see the name of a database,
 * and they change nothing; RavenDB's can reach all of its objects.
 */

import { EngineError } from "../base/errors.ts";
import { getProperty } from "./language/script-properties.ts";
import {
  addOwn,
  isArray,
  isFunction,
  newObject,
  type Run,
  type Value,
} from "./language/script-values.ts";
import { compileScript } from "./script.ts";
import type { ScriptHost } from "./script-host.ts";
import { valueText } from "./values/script-document.ts";

/** The names that RavenDB 7.2.7 defines for its scripts; all except the first two are null here. */
const names = [
  "server",
  "database",
  "serverCtx",
  "clusterCtx",
  "databaseCtx",
  "orchestratorCtx",
] as const;

function refuse(): never {
  throw new EngineError(
    "not-supported",
    "A script of the console has no access to documents. Use a query or a patch of the database.",
  );
}

const host: Omit<ScriptHost, "now"> = {
  readOnly: true,
  random: () => Math.random(),
  load: refuse,
  put: refuse,
  delete: refuse,
  counter: refuse,
  counterParts: refuse,
  incrementCounter: refuse,
  deleteCounter: refuse,
  timeSeries: refuse,
  compareExchange: refuse,
  include: refuse,
  includeCompareExchange: refuse,
  output: () => undefined,
};

/**
 * Runs a script, under the limits of a patch.
 * @returns the JSON text of the value that it returns
 * @throws EngineError script-syntax, script-failed, script-recursion, not-supported, invalid-operation
 */
export function runConsoleScript(text: string, databaseName: string | null, nowMs: number): string {
  const server = newObject();
  const database = newObject();
  if (databaseName !== null) addOwn(database, "Name", databaseName);
  const script = compileScript(text, { kind: "patch", parameters: names });
  const args: Value[] = [server, databaseName === null ? null : database, null, null, null, null];
  const { value, run } = script.run({ host: { ...host, now: () => nowMs }, args });
  return valueText(run, shown(run, value));
}

/** As RavenDB 7.2.7 shows a value: a list as an object with its positions and length, a function with its name and length. */
function shown(run: Run, value: Value): Value {
  if (!isArray(value) && !isFunction(value)) return value;
  const made = newObject();
  if (isArray(value)) {
    run.grow(value.items.length * 64);
    for (let at = 0; at < value.items.length; at++) {
      addOwn(made, String(at), getProperty(run, value, at));
    }
  }
  addOwn(made, "length", isArray(value) ? value.items.length : value.length);
  if (isFunction(value)) addOwn(made, "name", value.name);
  return made;
}
