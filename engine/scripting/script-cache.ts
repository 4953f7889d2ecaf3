/**
 * A cache of compiled scripts by text and use: a repeated script is compiled once. The least recently used ones are
 * evicted first.
 */
import { compiledScriptsMax } from "../base/limits.ts";
import { type CompiledScript, compileScript, type ScriptOptions } from "./script.ts";

export class ScriptCache {
  readonly #scripts = new Map<string, CompiledScript>();

  /** @throws EngineError script-syntax */
  get(source: string, options: ScriptOptions): CompiledScript {
    const key = JSON.stringify([
      options.kind,
      source,
      options.parameters ?? [],
      options.functions ?? [],
      options.name ?? "",
    ]);
    const known = this.#scripts.get(key);
    if (known !== undefined) {
      // Maps keep insertion order: the first key is the least recently used.
      this.#scripts.delete(key);
      this.#scripts.set(key, known);
      return known;
    }
    const compiled = compileScript(source, options);
    this.#scripts.set(key, compiled);
    if (this.#scripts.size > compiledScriptsMax) {
      const [oldest] = this.#scripts.keys();
      if (oldest !== undefined) this.#scripts.delete(oldest);
    }
    return compiled;
  }
}

/** One for the process: compiled scripts do not depend on the database. */
export const scriptCache = new ScriptCache();
