/** Runs expressions in the script engine and in JavaScript itself, which serves as the model. */
import { EngineError } from "../../../engine/base/errors.ts";
import { defaultLimits } from "../../../engine/scripting/language/script-values.ts";
import { compileScript, ScriptParameters } from "../../../engine/scripting/script.ts";
import { ScriptDocument } from "../../../engine/scripting/values/script-document.ts";
import { type StubHost, stubHost } from "./stub-host.ts";

/** Other load on the machine must not affect the result. */
const limits = { ...defaultLimits, msMax: 60_000 };

/** Returns the document after a script has run on it. @throws EngineError */
export function runScript(
  script: string,
  { body = "{}", args = {}, host = stubHost() as StubHost }: RunOptions = {},
): Record<string, unknown> {
  const document = ScriptDocument.fromText(body, '{"@collection":"Users"}', "users/1");
  const parameters = new ScriptParameters(JSON.stringify(args));
  compileScript(script, { kind: "patch" }).run({ host, document, limits, parameters });
  return JSON.parse(document.bodyText()) as Record<string, unknown>;
}

interface RunOptions {
  readonly body?: string;
  readonly args?: object;
  readonly host?: StubHost;
}

/** Returns the value of an expression over `args` as JSON, or the word "fails". */
export function scriptValue(expression: string, args: object = {}): unknown {
  try {
    return runScript(`this.value = [${expression}]`, { args })["value"];
  } catch (error) {
    if (error instanceof EngineError) return "fails";
    throw error;
  }
}

/** Numbers without a JSON form are stored as their names, and a lone surrogate as U+FFFD. */
function stored(_key: string, value: unknown): unknown {
  if (typeof value === "string") return Buffer.from(value).toString();
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

/** Like `scriptValue`, evaluated by JavaScript. */
export function javaScriptValue(expression: string, args: object = {}): unknown {
  try {
    const created: unknown = new Function("args", `return [${expression}]`)(args);
    return JSON.parse(JSON.stringify(created, stored));
  } catch {
    return "fails";
  }
}
