/**
 * `Symbol` for scripts. Symbols are script values of their own class: none is a symbol of the host, and properties under
 * them are in a map of the object that has them.
 *
 * Of the well-known symbols, `iterator` and `toPrimitive` have their effect; the others are ordinary keys.
 *
 * Invariant: `Symbol.for` is a table of its run: scripts share no symbols but the well-known ones, which are immutable.
 */

import { symbolText, toText } from "../language/script-operators.ts";
import { elementsOf, methodTables } from "../language/script-properties.ts";
import {
  addOwn,
  isReference,
  kinds,
  newObject,
  type Run,
  ScriptSymbol,
  throwError,
  traitsOf,
  type Value,
  wellKnown,
} from "../language/script-values.ts";
import { builtIn, namespaceOf, newString } from "./built-in.ts";

const otherNames = [
  "asyncIterator",
  "hasInstance",
  "isConcatSpreadable",
  "match",
  "matchAll",
  "replace",
  "search",
  "species",
  "split",
  "unscopables",
];

function symbolSelf(self: Value): ScriptSymbol {
  if (isReference(self) && self.kind === kinds.symbol) return self;
  return throwError("TypeError", "The method is called on something that is no Symbol");
}

function newSymbol(run: Run, _self: Value, [description]: Value[]): Value {
  run.grow(64);
  return new ScriptSymbol(description === undefined ? undefined : toText(run, description));
}

function symbolFor(run: Run, _self: Value, [key]: Value[]): Value {
  const name = toText(run, key);
  const known = run.registry.get(name);
  if (known !== undefined) return known;
  run.grow(128 + name.length);
  const made = new ScriptSymbol(name);
  run.registry.set(name, made);
  return made;
}

function keyFor(run: Run, _self: Value, [symbol]: Value[]): Value {
  const { description } = symbolSelf(symbol ?? null);
  return description !== undefined && run.registry.get(description) === symbol
    ? description
    : undefined;
}

/** Returns the iterator of a list: its elements are those at the moment of the call. */
function iterate(run: Run, self: Value): Value {
  const elements = elementsOf(run, self);
  let at = 0;
  const made = newObject();
  const next = builtIn("next", 0, (inner) => {
    inner.grow(96);
    const step = newObject();
    const isDone = at >= elements.length;
    addOwn(step, "value", isDone ? undefined : elements[at++]);
    addOwn(step, "done", isDone);
    return step;
  });
  run.grow(256);
  addOwn(made, "next", next);
  traitsOf(made).symbols = new Map([
    [wellKnown.iterator, builtIn("[Symbol.iterator]", 0, () => made)],
  ]);
  return made;
}

export function defineSymbols(globals: Map<string, Value>): void {
  const methods = {
    toString: (run: Run, self: Value) => newString(run, symbolText(symbolSelf(self))),
    valueOf: (_run: Run, self: Value) => symbolSelf(self),
  };
  for (const [name, native] of Object.entries(methods)) {
    methodTables.symbol.set(name, builtIn(name, 0, native));
  }
  methodTables.iterable.set("iterator", builtIn("[Symbol.iterator]", 0, iterate));
  const others = otherNames.map((name) => [name, new ScriptSymbol(`Symbol.${name}`)] as const);
  const symbol = builtIn("Symbol", 0, newSymbol);
  symbol.properties = namespaceOf(
    { for: symbolFor, keyFor },
    { ...wellKnown, ...Object.fromEntries(others) },
  );
  globals.set("Symbol", symbol);
}
