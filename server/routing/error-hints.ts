/**
 * Hints for errors: one sentence beside the message, if it adds something. Names are suggested only to callers who may see
 * them.
 *
 * The key `hint` is ours: clients of RavenDB do not read it.
 */

import { closest, distance } from "fastest-levenshtein";
import { EngineError, type ErrorCode } from "../../engine/base/errors.ts";
import { rqlKeywords } from "../../engine/engine.ts";
import { RequestError } from "../http/request-error.ts";
import { nearestName } from "../settings/nearest-name.ts";

/** The names that the caller may see. */
export interface KnownNames {
  databases(): readonly string[];
  /** Index names of the request's database. */
  indexes(): readonly string[];
  /** Fields of one of its indexes, by name in any case. */
  fields(index: string): readonly string[];
}

type Hint = (error: EngineError, names: KnownNames) => string | undefined;

const always =
  (text: string): Hint =>
  () =>
    text;

const hints: Readonly<Partial<Record<ErrorCode, Hint>>> = {
  "query-syntax": placeHint,
  "invalid-argument": fieldHint,
  "invalid-operation": failedIndexHint,
  "index-missing": indexHint,
  "summary-index-missing": indexHint,
  "script-failed": scriptHint,
  "script-syntax": scriptHint,
  concurrency: always(
    "Another client changed it. Load it again, and apply the change to the current version.",
  ),
  "disk-full": always(
    "Reads continue, and deletions free space. Writing resumes by itself when there is space.",
  ),
  timeout: always(
    "Increase the timeout, request less per call, or run it as an operation, which continues without its caller.",
  ),
  "record-damaged": always(
    "The other documents are readable. A backup or a revision may contain this one; 'jackdaw check' lists all damage.",
  ),
};

/** One sentence, or undefined. Never throws. */
export function hintOf(error: unknown, names: KnownNames): string | undefined {
  if (error instanceof EngineError) return hints[error.code]?.(error, names);
  if (!(error instanceof RequestError)) return undefined;
  return error.type.endsWith(".DatabaseDoesNotExistException")
    ? nearHint(quotedIn(error.message)[0], names.databases())
    : undefined;
}

function indexHint({ message }: EngineError, names: KnownNames): string | undefined {
  return nearHint(quotedIn(message)[0], names.indexes());
}

/** Suggests a field of the index for an unknown one. */
function fieldHint({ message }: EngineError, names: KnownNames): string | undefined {
  const found = /^The field '([^']*)' is not indexed in '([^']+)'/.exec(message);
  if (found === null) return undefined;
  const [, field = "", index = ""] = found;
  const fields = names.fields(index).filter((name) => !name.endsWith("()"));
  return (
    nearHint(field, fields) ??
    (fields.length === 0 ? undefined : `'${index}' has ${listed(fields)}.`)
  );
}

function failedIndexHint({ message }: EngineError): string | undefined {
  if (!message.includes(" is marked as errored. ")) return undefined;
  return "indexes/errors lists the failed documents. The index works again after its definition is corrected, or after a reset.";
}

/** RavenDB counts a line feed as the first column of the next line; editors do not. */
function placeHint({ message }: EngineError): string | undefined {
  const found = /^(\d+):(\d+) /.exec(message);
  if (found === null) return undefined;
  const [line, column] = [Number(found[1]), Number(found[2])];
  const place = `The error is at line ${line}, column ${line === 1 ? column : column - 1} of the query.`;
  const keyword = meantKeyword(message);
  return keyword === undefined ? place : `Did you mean '${keyword}'? ${place}`;
}

/** Longer words misspell no keyword. */
const misspelledLengthMax = 32;

/** Returns the keyword that a syntax error misspells: the unexpected word, or the word before it, parsed as an alias. */
function meantKeyword(message: string): string | undefined {
  const got = /^.* but got: (\w+)/.exec(message)?.[1];
  if (got === undefined || got.length > misspelledLengthMax) return undefined;
  const alias = /^\S+ Expected end of query/.test(message)
    ? new RegExp(`(?<!\\bfrom\\s+)\\b(\\w+)\\s+${got}\\b`, "i").exec(message)?.[1]
    : undefined;
  const similar = (word = "") => rqlKeywords.find((keyword) => isMisspelled(word, keyword));
  return similar(got) ?? similar(alias);
}

/** Whether one letter differs, or two letters are swapped. */
function isMisspelled(word: string, keyword: string): boolean {
  const lower = word.toLowerCase();
  const edits = distance(lower, keyword);
  const isSwapped = edits === 2 && [...lower].sort().join("") === [...keyword].sort().join("");
  return lower.length > 2 && keyword.length > 1 && (edits === 1 || isSwapped);
}

function scriptHint({ details }: EngineError): string | undefined {
  const { line, column } = details ?? {};
  if (typeof line !== "number" || typeof column !== "number") return undefined;
  return `The error occurred at line ${line}, column ${column} of the script.`;
}

const nearMax = 3;
const shownMax = 12;

function nearHint(name: string | undefined, known: readonly string[]): string | undefined {
  if (name === undefined || known.length === 0) return undefined;
  const near = nearestName(name, known);
  if (near !== undefined) return `Did you mean '${near}'?`;
  // Part of the name may match: Orders/Old, while Orders/Totals exists.
  const parts = name
    .toLowerCase()
    .split(/[/.]/)
    .filter((part) => part.length > 2);
  const akin = known.filter((one) => parts.some((part) => one.toLowerCase().includes(part)));
  if (akin.length === 0) return undefined;
  const first = closest(name, akin);
  const others = akin.filter((one) => one !== first).slice(0, nearMax - 1);
  return `Did you mean ${[first, ...others].map((one) => `'${one}'`).join(" or ")}?`;
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, shownMax).map((name) => `'${name}'`);
  return shown.join(", ") + (names.length > shownMax ? " and others" : "");
}

function quotedIn(message: string): string[] {
  return [...message.matchAll(/'([^']*)'/g)].map(([, name]) => name ?? "");
}
