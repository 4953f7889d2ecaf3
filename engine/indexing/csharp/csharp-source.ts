/**
 * The source that a map in C# enumerates: documents, counters or time series.
 */
import { foldedName } from "../../base/case-folding.ts";
import { csharpError } from "./csharp-error.ts";
import type { Call, Expression } from "./csharp-tree.ts";

/** The enumerated source: `docs.Users`, `counters.Users.Likes`. No collections, and `item` null: all. */
export interface Source {
  /** As the text spells it. */
  readonly name: string;
  /** The function that declares a map of the source. */
  readonly declaration: string;
  readonly collections: readonly string[];
  readonly item: string | null;
}

/** Returns the function that declares a map of this source, in any case except for documents; undefined if the name is not a source. */
function declarationOf(name: string): string | undefined {
  if (name === "docs") return "map";
  const lower = name.toLowerCase();
  if (lower === "counters") return "counters.map";
  return lower === "timeseries" ? "timeSeries.map" : undefined;
}

export function isSource(name: string): boolean {
  return declarationOf(name) !== undefined;
}

/** Returns the source that an expression of `text` names, or null. @throws EngineError index-compilation */
export function sourceOf(text: string, expression: Expression): Source | null {
  if (expression.kind === "call") return entitiesOf(expression);
  const path: string[] = [];
  let at: Expression = expression;
  while (at.kind !== "name") {
    if (at.kind === "member") path.unshift(at.name);
    else if (at.kind === "index" && at.index.kind === "literal") {
      path.unshift(String(at.index.value));
    } else return null;
    at = at.object;
  }
  const { name } = at;
  const declaration = declarationOf(name);
  if (declaration === undefined) return null;
  const [collection, item, more] = path;
  const pathMax = name === "docs" ? 1 : 2;
  if (path.length > pathMax || more !== undefined) {
    throw csharpError(text, at.at, `'${name}' has no such member`);
  }
  const collections = collection === undefined ? [] : [collection];
  return { name, declaration, collections, item: item ?? null };
}

/** `docs.WhereEntityIs("Cats", "Dogs")`, or null. */
function entitiesOf({ callee, args }: Call): Source | null {
  if (callee.kind !== "member" || callee.name !== "WhereEntityIs") return null;
  const names = args.flatMap((arg) => (arg.kind === "array" ? arg.items : [arg]));
  const collections = names.flatMap((arg) =>
    arg.kind === "literal" && typeof arg.value === "string" ? [arg.value] : [],
  );
  const isOfDocs = callee.object.kind === "name" && callee.object.name === "docs";
  const count = new Set(collections.map((one) => foldedName(one))).size;
  const isWhole = names.length > 0 && count === names.length;
  return isOfDocs && isWhole ? { name: "docs", declaration: "map", collections, item: null } : null;
}

/** Returns whether the outermost clause enumerates something else than the documents, counters or time series. */
export function startsElsewhere(tree: Expression): boolean {
  const first = tree.kind === "query" ? tree.clauses[0] : undefined;
  if (first?.kind !== "from") return false;
  let base = first.source;
  for (;;) {
    if (base.kind === "call") base = base.callee;
    else if (base.kind === "member" || base.kind === "index") base = base.object;
    else if (base.kind === "cast") base = base.value;
    else return base.kind !== "name" || !isSource(base.name);
  }
}

/** Returns whether the expression is derived from the source of the map or reduce. */
export function isOfSource(node: Expression): boolean {
  let base = node;
  for (;;) {
    if (base.kind === "call") base = base.callee;
    else if (base.kind === "member" || base.kind === "index") base = base.object;
    else return base.kind === "name" && (base.name === "docs" || base.name === "results");
  }
}
