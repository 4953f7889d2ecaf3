/** Rows as lines of CSV (RFC 4180): fields with quotes, commas or line ends are quoted. */
import { type JsonMembers, type JsonNode, JsonNumber, printSource } from "./json-source.ts";

/** Texts that programs for tables may run as formulas. */
const formulaLike = /^[=+\-@\t\r]/;

/** @param asStored texts like formulas stay as they are, in place of getting a `'` in front */
export function csvLine(values: readonly (JsonNode | undefined)[], asStored: boolean): string {
  return `${values.map((value) => quoted(textOf(value, asStored))).join(",")}\r\n`;
}

/** Lists and objects as JSON; null and what is not there are empty. */
function textOf(value: JsonNode | undefined, asStored: boolean): string {
  if (value === undefined || value === null) return "";
  if (value instanceof JsonNumber) return value.digits;
  if (typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : printSource(value, 0);
  return !asStored && formulaLike.test(text) ? `'${text}` : text;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The value at a path, as `ShipTo.City`; a member whose name has dots goes first. */
export function valueAt(members: JsonMembers, path: string): JsonNode | undefined {
  if (members.has(path)) return members.get(path);
  let value: JsonNode | undefined = members;
  for (const name of path.split(".")) {
    if (!(value instanceof Map)) return undefined;
    value = value.get(name);
  }
  return value;
}
