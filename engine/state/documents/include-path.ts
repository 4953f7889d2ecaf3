/**
 * The ids of other documents that a document references under an include path.
 *
 *   path    := part ('.' part)* suffix?
 *   part    := name '[]'? | '$Keys' | '$Values' '[]'?
 *   suffix  := '(' prefix ')' | '[' text with '{0}' ']'
 *
 * As on RavenDB 7.2.7: a path traverses arrays with or without `[]`; after `[]` the strings of the array itself count
 * too; without a suffix only strings are ids. With a suffix, numbers are ids as well, and strings count both with it
 * and without it; but inside an array without `[]` the suffix is ignored.
 */
import { EngineError } from "../../base/errors.ts";

/** A path, split once. */
export interface IncludePath {
  readonly parts: readonly IncludePart[];
  /** Formats a value as an id; null when the value is an id itself. */
  readonly format: { readonly before: string; readonly after: string } | null;
}

interface IncludePart {
  readonly name: string;
  readonly isArray: boolean;
}

/** @throws EngineError not-supported for two `[]` in a row */
export function parseIncludePath(text: string): IncludePath {
  let path = text;
  let format: IncludePath["format"] = null;
  const prefix = /^(.*)\(([^()]*)\)$/.exec(path);
  const pattern = /^(.*)\[([^[\]]*)\{0\}([^[\]]*)\]$/.exec(path);
  if (prefix !== null) {
    path = prefix[1] ?? "";
    format = { before: prefix[2] ?? "", after: "" };
  } else if (pattern !== null) {
    path = pattern[1] ?? "";
    format = { before: pattern[2] ?? "", after: pattern[3] ?? "" };
  }
  if (path.includes("[][]")) {
    throw new EngineError("not-supported", `Invalid collection separator in a given path: ${text}`);
  }
  const parts = path.split(".").map((part) => {
    const isArray = part.endsWith("[]");
    return { name: isArray ? part.slice(0, -2) : part, isArray };
  });
  return { parts, format };
}

/** Calls `found` with each id under `path` in `document`, in order, with duplicates. */
export function includedIds(
  document: unknown,
  path: IncludePath,
  found: (id: string) => void,
): void {
  walk(document, path, 0, found);
}

function walk(value: unknown, path: IncludePath, depth: number, found: (id: string) => void): void {
  if (depth === path.parts.length) {
    addIds(value, path, found);
    return;
  }
  if (Array.isArray(value)) {
    const wasMarked = depth > 0 && path.parts[depth - 1]?.isArray === true;
    const within = wasMarked || path.format === null ? path : { parts: path.parts, format: null };
    for (const item of value) {
      if (typeof item === "object") walk(item, within, depth, found);
      else if (wasMarked) addIds(item, path, found);
    }
    return;
  }
  if (typeof value !== "object" || value === null) return;
  const part = path.parts[depth] as IncludePart; // depth < length
  if (part.name === "$Keys") {
    for (const key of Object.keys(value)) addIds(key, path, found);
  } else if (part.name === "$Values") {
    for (const item of Object.values(value)) {
      if (depth + 1 < path.parts.length && !part.isArray) continue;
      walk(item, path, depth + 1, found);
    }
  } else if (Object.hasOwn(value, part.name)) {
    walk((value as Record<string, unknown>)[part.name], path, depth + 1, found);
  }
}

function addIds(value: unknown, path: IncludePath, found: (id: string) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) if (!Array.isArray(item)) addIds(item, path, found);
    return;
  }
  const { format } = path;
  if (typeof value === "string") {
    if (value === "") return;
    if (format !== null) found(format.before + value + format.after);
    found(value);
  } else if (typeof value === "number" && format !== null) {
    found(format.before + value + format.after);
  }
}

/**
 * Returns the strings under a dotted path of `include revisions`: one, or those of an array.
 * @throws EngineError invalid-operation if the document lacks the field
 */
export function changeVectorsAt(document: unknown, path: string): string[] {
  let value: unknown = document;
  for (const name of path.split(".")) {
    const members = typeof value === "object" && value !== null ? value : {};
    if (!Object.hasOwn(members, name)) {
      throw new EngineError(
        "invalid-operation",
        `Field \`${path}\` (which is mentioned inside \`include revisions(..)\`) is missing in document.`,
      );
    }
    value = (members as Record<string, unknown>)[name];
  }
  return (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string");
}
