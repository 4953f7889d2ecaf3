/**
 * The script of an export or import: a patch script that runs on each document of the dump, outside of any database.
 *
 * Invariants:
 * - A script can access nothing but the document that it runs on.
 */
import { EngineError } from "../../base/errors.ts";
import { withMetadata } from "../../patching/transaction-script-host.ts";
import { defaultLimits, type ScriptLimits } from "../../scripting/language/script-values.ts";
import type { CompiledScript } from "../../scripting/script.ts";
import { scriptCache } from "../../scripting/script-cache.ts";
import type { ScriptHost } from "../../scripting/script-host.ts";
import { ScriptDocument } from "../../scripting/values/script-document.ts";
import type { DumpOptions } from "./dump-options.ts";

export class DocumentTransform {
  readonly #script: CompiledScript;
  readonly #limits: ScriptLimits;
  readonly #host: ScriptHost;

  /** @throws EngineError script-syntax */
  constructor(script: string, stepsMax: number, nowMicros: () => number) {
    this.#script = scriptCache.get(script, { kind: "patch" });
    this.#limits = { ...defaultLimits, stepsMax };
    this.#host = detachedHost(nowMicros);
  }

  /**
   * Returns the text of a document after the script, with its metadata except for generated members; null when the
   * script threw 'skip'.
   * @param body the document's text without `@metadata`. @param metadata its `@metadata`, as sent to clients.
   * @throws EngineError script-failed
   */
  run(body: string, metadata: string, id: string): string | null {
    const document = ScriptDocument.fromText(body, metadata, id, this.#script.hint);
    try {
      this.#script.run({ host: this.#host, document, limits: this.#limits });
    } catch (error) {
      if (error instanceof EngineError && error.details?.["thrown"] === "skip") return null;
      throw error;
    }
    return withMetadata(document.bodyText(), document.metadataText());
  }
}

/** Undefined when the options have no script. @throws EngineError script-syntax */
export function transformOf(
  { transformScript, scriptStepsMax }: DumpOptions,
  nowMicros: () => number,
): DocumentTransform | undefined {
  if (transformScript === null) return undefined;
  return new DocumentTransform(transformScript, scriptStepsMax, nowMicros);
}

/**
 * Compiles the script of the options, if they have one.
 * @returns whether it may run more steps than other scripts @throws EngineError script-syntax
 */
export function checkTransform(options: DumpOptions): boolean {
  const isScript = transformOf(options, () => 0) !== undefined;
  return isScript && options.scriptStepsMax > defaultLimits.stepsMax;
}

/** Returns the host of a script that runs outside of a database: only the clock and random numbers. */
function detachedHost(nowMicros: () => number): ScriptHost {
  const refuse = (what: string) => (): never => {
    throw new EngineError(
      "invalid-operation",
      `Unable to use \`${what}\` when this instance is not attached to a database operation`,
    );
  };
  return {
    readOnly: false,
    now: () => Math.floor(nowMicros() / 1000),
    random: Math.random,
    load: refuse("load"),
    put: refuse("put document"),
    delete: refuse("delete document"),
    counter: refuse("counter"),
    counterParts: refuse("counterRaw"),
    incrementCounter: refuse("incrementCounter"),
    deleteCounter: refuse("deleteCounter"),
    timeSeries: refuse("timeseries"),
    compareExchange: refuse("cmpxchg"),
    include: refuse("include"),
    includeCompareExchange: refuse("include"),
    output: () => undefined,
  };
}
