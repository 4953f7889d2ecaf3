/**
 * Scripts for callers: compile a patch, a projection, declared functions or an index's definition once, run it many
 * times. The room's public surface.
 *
 * Independent of the database: documents, parameters and `ScriptHost` are supplied by the caller, which also caches
 * compiled scripts by their text.
 *
 * Invariants:
 * - a compiled script keeps no state of a run except hints: runs may be nested and repeated;
 * - every run ends with an outcome or an `EngineError`, regardless of the script.
 */

import { EngineError } from "../base/errors.ts";
import { scriptWorkPerMs } from "../base/limits.ts";
import { globals } from "./built-ins/built-ins.ts";
import { csharpGlobals } from "./csharp/csharp-functions.ts";
import { indexGlobals } from "./index-functions.ts";
import { completions, type Expression, Frame, type Statement } from "./language/script-code.ts";
import { ScriptCompiler } from "./language/script-compiler.ts";
import {
  type Node,
  parseBody,
  parseWholeExpression,
  positionOfOffset,
} from "./language/script-parser.ts";
import {
  callFunction,
  defaultLimits,
  isArray,
  isFunction,
  isObject,
  isReference,
  kinds,
  newObject,
  Run,
  recursionExceeded,
  type ScriptArray,
  type ScriptFunction,
  type ScriptLimits,
  type ScriptObject,
  ScriptThrow,
  type Slot,
  setOwn,
  type Value,
} from "./language/script-values.ts";
import type { ScriptContext, ScriptHost } from "./script-host.ts";
import { isChanged, type ScriptDocument, valueText } from "./values/script-document.ts";
import { ShapeHint } from "./values/shape-hint.ts";
import { valueOfText } from "./values/text-source.ts";
import { numberText } from "./values/value-text.ts";

/**
 * - patch: a function body; `this` is the document;
 * - projection: one expression, such as the object literal of `select { … }`;
 * - function: declarations only; `name` is called with the arguments of the run;
 * - index: statements that declare the maps or the reduce of an index, see index-script.ts;
 * - csharp-index: like index, generated from C# (indexing/csharp).
 */
type ScriptKind = "patch" | "projection" | "function" | "index" | "csharp-index";

export interface ScriptOptions {
  readonly kind: ScriptKind;
  /** Names that the arguments of a run are bound to: aliases of a query. */
  readonly parameters?: readonly string[];
  /** Sources of declared functions (`function f(x) { … }`), and of an index's additional sources. */
  readonly functions?: readonly string[];
  /** For kind "function": which declared function is called. */
  readonly name?: string;
}

/** Values of `$x` and `args.x`, from an object's JSON text. May be shared by many runs. */
export class ScriptParameters {
  private readonly text: string;
  private object: ScriptObject | null = null;

  /** `text`: valid JSON of an object. */
  constructor(text: string) {
    this.text = text;
  }

  static readonly none = new ScriptParameters("{}");

  /** Returns the values, parsed again if an earlier script modified them. */
  values(): ScriptObject {
    if (this.object === null || isChanged(this.object)) {
      const value = valueOfText(this.text);
      this.object = isObject(value) ? value : newObject();
    }
    return this.object;
  }
}

export interface RunInput {
  readonly host: ScriptHost;
  /** `this` of a patch; null elsewhere. It holds the outcome: `changed()`, `bodyText()`. */
  readonly document?: ScriptDocument | null;
  /** Values for the names in `ScriptOptions.parameters`: documents' roots, or undefined for missing ones. */
  readonly args?: readonly Value[];
  readonly parameters?: ScriptParameters;
  readonly limits?: ScriptLimits;
  /** An earlier run for the same document: both share the limits of one. */
  readonly after?: Run | null;
}

/** The result of a run. */
export interface Outcome {
  /** The value of a projection or function; the returned value, or undefined, for a patch. */
  readonly value: Value;
  /** The run's account, for printing its values and for measuring. */
  readonly run: Run;
}

/** The main code of a script, run after its functions are created. */
type Main =
  | { readonly kind: "statement"; readonly code: Statement }
  | { readonly kind: "expression"; readonly code: Expression }
  | { readonly kind: "call"; readonly slot: number };

const noArguments: readonly Value[] = [];

type Entry = ((frame: Frame) => void) | null;

export class CompiledScript {
  readonly source: string;
  readonly options: ScriptOptions;
  /** The checked syntax tree of the main code; null for kind "function". For `fieldsRead`, `simpleUpdates`. */
  readonly tree: Node | null;
  /** Expected property names in the documents that this script runs on. */
  readonly hint = new ShapeHint();
  /** The hint for documents that it loads. */
  private readonly loadedHint = new ShapeHint();
  private readonly functions: string;
  private readonly slotCount: number;
  private readonly entries: readonly Entry[];
  private readonly prelude: Statement | null = null;
  private readonly main: Main;

  constructor(source: string, options: ScriptOptions) {
    this.source = source;
    this.options = options;
    const compiler = new ScriptCompiler(
      globalsOf(options.kind),
      options.parameters ?? [],
      options.kind === "index",
      options.kind === "projection",
    );
    const { root } = compiler;
    const entries: Entry[] = [];
    this.functions = (options.functions ?? []).join("\n");
    if (this.functions !== "") {
      const tree = parseBody(this.functions);
      compiler.add(this.functions, tree);
      compiler.use(this.functions, true);
      entries.push(compiler.entry(root));
      root.functions.length = 0;
      this.prelude = compiler.sequence(tree.body, root);
    }
    compiler.use(source, false);
    if (options.kind === "function") {
      this.tree = null;
      this.main = { kind: "call", slot: declaredSlot(compiler, options.name ?? "") };
    } else {
      this.tree = options.kind === "projection" ? parseWholeExpression(source) : parseBody(source);
      compiler.add(source, this.tree);
      entries.push(compiler.entry(root));
      this.main =
        this.tree.type === "Program"
          ? { kind: "statement", code: compiler.sequence(this.tree.body, root) }
          : { kind: "expression", code: compiler.expression(this.tree, root) };
    }
    this.entries = entries;
    this.slotCount = root.slotCount;
  }

  /**
   * Runs the script. Its changes to `input.document` are in the document.
   * @throws EngineError script-failed (thrown, out of steps or memory), script-recursion, and the errors of the host
   * and the patch functions
   */
  run(input: RunInput): Outcome {
    const document = input.document ?? null;
    const context: ScriptContext = { host: input.host, document, loadedHint: this.loadedHint };
    const parameters = (input.parameters ?? ScriptParameters.none).values();
    const run = new Run(input.limits ?? defaultLimits, context, parameters);
    if (document !== null) document.run = run;
    try {
      return { value: this.execute(run, document, input.args ?? noArguments), run };
    } catch (error) {
      throw this.failure(error, run, document);
    } finally {
      run.end();
    }
  }

  /** Calls a function returned by an earlier run of this script, in a new run: an index's map. */
  call(callee: ScriptFunction, input: RunInput): Outcome {
    const document = input.document ?? null;
    const parameters = (input.parameters ?? ScriptParameters.none).values();
    const context: ScriptContext = { host: input.host, document, loadedHint: this.loadedHint };
    const run = new Run(input.limits ?? defaultLimits, context, parameters);
    if (input.after) run.continueFrom(input.after);
    const args = [...(input.args ?? [])];
    try {
      return { value: callFunction(run, callee, undefined, args), run };
    } catch (error) {
      throw this.failure(error, run, document);
    } finally {
      run.end();
    }
  }

  /**
   * Calls a function on the account of an earlier run, with a new step count: processing a map's outputs is charged to
   * the mapped document.
   */
  continue(run: Run, callee: ScriptFunction, args: Value[]): Value {
    const { stepsLeft } = run;
    run.stepsLeft = run.limits.stepsMax;
    try {
      return callFunction(run, callee, undefined, args);
    } catch (error) {
      throw this.failure(error, run, null);
    } finally {
      run.stepsLeft = stepsLeft;
    }
  }

  private execute(run: Run, document: ScriptDocument | null, args: readonly Value[]): Value {
    const { main } = this;
    const slots: Slot[] = main.kind === "call" ? [] : args.slice();
    while (slots.length < this.slotCount) slots.push(undefined);
    const frame = new Frame(slots, null, run, document === null ? undefined : document.root);
    for (const entry of this.entries) if (entry !== null) entry(frame);
    if (this.prelude !== null) this.prelude(frame);
    switch (main.kind) {
      case "call":
        return callFunction(run, slots[main.slot] as ScriptFunction, undefined, [...args]);
      case "expression":
        return main.code(frame);
      case "statement":
        return main.code(frame) === completions.return ? run.result : undefined;
    }
  }

  /** Converts any error of a run to the error for callers. */
  private failure(error: unknown, run: Run, document: ScriptDocument | null): unknown {
    if (error instanceof ScriptThrow) {
      const source = run.at < 0 ? this.functions : this.source;
      const { line, column } = positionOfOffset(source, run.at < 0 ? -1 - run.at : run.at);
      const thrown = thrownText(error.value);
      return new EngineError(
        "script-failed",
        `At ${line}:${column} Script failed for document ID '${document?.id ?? ""}'. ${thrown}`,
        { details: { line, column, thrown } },
      );
    }
    // `levelsLeft` guards the host's stack; if the guard is too generous, the run fails the same way.
    if (error instanceof RangeError && error.message.includes("call stack")) {
      return recursionExceeded(error);
    }
    return error;
  }
}

function globalsOf(kind: ScriptKind): ReadonlyMap<string, Value> {
  if (kind === "csharp-index") return csharpGlobals;
  return kind === "index" ? indexGlobals : globals;
}

function declaredSlot(compiler: ScriptCompiler, name: string): number {
  const binding = compiler.root.bindings.get(name);
  if (binding === undefined || binding.kind !== "function") {
    throw new EngineError("script-syntax", `The function '${name}' is not declared.`);
  }
  return binding.slot;
}

/**
 * Compiles a script. Cost: about 0.1 ms; callers cache the result by its text.
 * @throws EngineError script-syntax, with `details.line` and `details.column`
 */
export function compileScript(source: string, options: ScriptOptions): CompiledScript {
  return new CompiledScript(source, options);
}

/** Characters of a thrown value in the message. */
const thrownLengthMax = 4096;
/** Limits for printing a thrown value: the script may have used up its own. */
const thrownLimits = { ...defaultLimits, workMax: scriptWorkPerMs, bytesMax: 64 * 1024 };

/** Returns a thrown value as the reference server prints it: primitives as text, others as JSON of their properties. */
function thrownText(value: Value): string {
  if (typeof value === "number") return String(value);
  if (!isReference(value)) return String(value).slice(0, thrownLengthMax);
  const run = new Run(thrownLimits, null, newObject());
  try {
    if (isFunction(value)) return JSON.stringify({ length: value.length, name: value.name });
    if (isArray(value)) return valueText(run, arrayAsObject(run, value));
    return valueText(run, value);
  } catch {
    // Too large or not printable: the script has failed anyway.
    return "{}";
  }
}

function arrayAsObject(run: Run, array: ScriptArray): ScriptObject {
  run.grow(array.items.length * 64);
  const made = newObject();
  for (const [i, item] of array.items.entries()) setOwn(made, String(i), item as Value);
  setOwn(made, "length", array.items.length);
  return made;
}

/**
 * Returns the results of a projection or function as JSON objects: one, or several for an array.
 * @throws EngineError invalid-operation for any other result
 */
export function resultTexts(outcome: Outcome): string[] {
  const { value, run } = outcome;
  if (value === null || value === undefined) return [];
  if (isArray(value)) {
    return value.items.flatMap((item) =>
      item === null || item === undefined ? [] : resultTexts({ value: item as Value, run }),
    );
  }
  if (isReference(value) && value.kind !== kinds.function) {
    const text = valueText(run, value, true);
    // A date has no members.
    return [text.startsWith("{") ? text : "{}"];
  }
  const shown = typeof value === "number" ? numberText(value) : String(value);
  throw new EngineError(
    "invalid-operation",
    `Query returning a single function call result must return an object, but got: ${shown.slice(0, 200)}`,
  );
}
