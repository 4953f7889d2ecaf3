/**
 * Three-way merge of a document by field: concurrent changes of two users to the same version, and the merged
 * document.
 */
import { type JsonMembers, type JsonNode, JsonNumber, printSource } from "./json-source.ts";

/** A changed field; undefined values mean that the field is absent. */
interface FieldChange {
  /** Path of member names from the root. Lists are compared as a whole. */
  readonly path: readonly string[];
  readonly base: JsonNode | undefined;
  readonly theirs: JsonNode | undefined;
  readonly mine: JsonNode | undefined;
  /** True if both changed the field to different values. */
  readonly isConflict: boolean;
}

/** Compares two values; the order of members is ignored. */
export function isSame(a: JsonNode | undefined, b: JsonNode | undefined): boolean {
  if (a === b) return true;
  if (a instanceof JsonNumber) return b instanceof JsonNumber && a.digits === b.digits;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((one, n) => isSame(one, b[n]));
  }
  if (!(a instanceof Map) || !(b instanceof Map) || a.size !== b.size) return false;
  return [...a].every(([name, value]) => b.has(name) && isSame(value, b.get(name)));
}

/** Returns the fields in which `theirs` or `mine` differs from `base`. */
export function changesOf(
  base: JsonMembers,
  theirs: JsonMembers,
  mine: JsonMembers,
): FieldChange[] {
  const found: FieldChange[] = [];
  collect([], base, theirs, mine, found);
  return found;
}

function collect(
  path: readonly string[],
  base: JsonMembers,
  theirs: JsonMembers,
  mine: JsonMembers,
  found: FieldChange[],
): void {
  for (const name of new Set([...base.keys(), ...theirs.keys(), ...mine.keys()])) {
    const [before, other, own] = [base.get(name), theirs.get(name), mine.get(name)];
    if (isSame(before, other) && isSame(before, own)) continue;
    const at = [...path, name];
    if (before instanceof Map && other instanceof Map && own instanceof Map) {
      collect(at, before, other, own, found);
      continue;
    }
    const isConflict = !isSame(before, other) && !isSame(before, own) && !isSame(other, own);
    found.push({ path: at, base: before, theirs: other, mine: own, isConflict });
  }
}

/**
 * Returns `theirs` with my changes; conflicts are resolved in my favour if their path (as JSON text) is in
 * `keepMine`.
 */
export function merged(
  theirs: JsonMembers,
  changes: readonly FieldChange[],
  keepMine: ReadonlySet<string>,
): JsonMembers {
  const result = copied(theirs);
  for (const { path, base, mine, isConflict } of changes) {
    const isMine = isConflict ? keepMine.has(JSON.stringify(path)) : !isSame(base, mine);
    if (isMine) put(result, path, mine);
  }
  return result;
}

function copied(members: JsonMembers): JsonMembers {
  return new Map(
    [...members].map(([name, value]) => [name, value instanceof Map ? copied(value) : value]),
  );
}

function put(
  members: JsonMembers,
  [name, ...rest]: readonly string[],
  value: JsonNode | undefined,
): void {
  if (name === undefined) return;
  const inner = members.get(name);
  if (rest.length > 0 && inner instanceof Map) put(inner, rest, value);
  else if (value === undefined) members.delete(name);
  else members.set(name, value);
}

/** Formats a value on one line, for a cell. */
export function shortText(value: JsonNode | undefined): string {
  if (value === undefined) return "–";
  const text = printSource(value, 0);
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
