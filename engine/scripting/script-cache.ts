/** A cache of compiled scripts by text and use: a repeated script is compiled once. */
import { compiledScriptBytesMax } from "../base/limits.ts";
import { RecentCache } from "../base/memory/recent-cache.ts";
import { type CompiledScript, compileScript, type ScriptOptions } from "./script.ts";

/** Approximate memory of a compiled script, measured: its closures are a hundred times its text. */
const scriptBytes = 8 * 1024;
const bytesPerCharacter = 128;

export class ScriptCache {
  readonly #scripts: RecentCache<CompiledScript>;

  constructor(bytesMax = compiledScriptBytesMax) {
    this.#scripts = new RecentCache(bytesMax);
  }

  /** @throws EngineError script-syntax, each time: errors are not cached */
  get(source: string, options: ScriptOptions): CompiledScript {
    const { kind, parameters = [], functions = [], name = "" } = options;
    // Unambiguous, whatever the texts contain: the cache is shared by all databases.
    const key = JSON.stringify([kind, source, parameters, functions, name]);
    const known = this.#scripts.get(key);
    if (known !== undefined) return known;
    const compiled = compileScript(source, options);
    this.#scripts.set(key, compiled, scriptBytes + bytesPerCharacter * key.length);
    return compiled;
  }
}

/** One for the process: compiled scripts do not depend on the database. */
export const scriptCache = new ScriptCache();
