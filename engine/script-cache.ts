/**
 * Compiled scripts by their text and use: a script is compiled once, however often it is sent. The least recently
 * used ones go first.
 */
import { compiledScriptsMax } from "./limits.ts";
import { type CompiledScript, compileScript, type ScriptOptions } from "./scripting/script.ts";

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
      // Maps keep the order of insertion: the oldest key is the one not used for longest.
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

/** One for the process: what a script compiles to does not depend on the database. */
export const scriptCache = new ScriptCache();
