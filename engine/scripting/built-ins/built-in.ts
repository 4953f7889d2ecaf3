/**
 * Declaration of built-in functions: a name, a parameter count, and host code over script values.
 *
 * Invariant: a built-in is shared by all scripts and immutable: its properties are frozen.
 */

import {
  addOwn,
  isArray,
  isFunction,
  type Native,
  newObject,
  type Run,
  ScriptArray,
  ScriptFunction,
  type Slot,
  throwError,
  traitsOf,
  type Value,
} from "../language/script-values.ts";

export function builtIn(name: string, length: number, native: Native): ScriptFunction {
  return new ScriptFunction(name, length, native, true);
}

/** Adds functions to a method table. */
export function defineAll(
  table: Map<string, ScriptFunction>,
  length: number,
  functions: Readonly<Record<string, Native>>,
): void {
  for (const [name, native] of Object.entries(functions)) {
    table.set(name, builtIn(name, length, native));
  }
}

/** Returns a frozen object of functions and constants: `Math`, or the properties of `Object`. */
export function namespaceOf(
  functions: Readonly<Record<string, Native>>,
  constants: Readonly<Record<string, Value>> = {},
): ReturnType<typeof newObject> {
  const made = newObject();
  for (const [name, native] of Object.entries(functions))
    addOwn(made, name, builtIn(name, 1, native));
  for (const [name, value] of Object.entries(constants)) addOwn(made, name, value);
  traitsOf(made).frozen = true;
  return made;
}

/** Returns a new array of a script, charged to the run. */
export function newArray(run: Run, items: Slot[]): ScriptArray {
  run.grow(64 + items.length * 8);
  return new ScriptArray(items);
}

/** Returns a new string of a script, charged to the run. */
export function newString(run: Run, text: string): string {
  run.grow(32 + text.length);
  return text;
}

export function functionArgument(value: Value): ScriptFunction {
  if (isFunction(value)) return value;
  return throwError("TypeError", "The argument is not a function");
}

export function arraySelf(self: Value): ScriptArray {
  if (isArray(self)) return self;
  return throwError("TypeError", "The method is called on something that is no array");
}
