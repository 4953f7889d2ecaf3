/** Formats rows as CSV (RFC 4180): fields with quotes, commas or line breaks are quoted. */
import { type JsonMembers, type JsonNode, JsonNumber, printSource } from "./json-source.ts";

/** Strings that spreadsheet programs may evaluate as formulas. */
const formulaLike = /^[=+\-@\t\r]/;

/** Formats a row. @param asStored keep strings that look like formulas unchanged, instead of prefixing them with `'` */
export function csvLine(values: readonly (JsonNode | undefined)[], asStored: boolean): string {
  return `${values.map((value) => quoted(textOf(value, asStored))).join(",")}\r\n`;
}

/** Returns a cell: lists and objects as JSON; null and missing values as "". */
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

/** Returns the value at a path, for example `ShipTo.City`; a member whose name contains the dots takes precedence. */
export function valueAt(members: JsonMembers, path: string): JsonNode | undefined {
  if (members.has(path)) return members.get(path);
  let value: JsonNode | undefined = members;
  for (const name of path.split(".")) {
    if (!(value instanceof Map)) return undefined;
    value = value.get(name);
  }
  return value;
}
