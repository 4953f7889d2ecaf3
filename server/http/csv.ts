/**
 * Rows as comma-separated values, in the format of RavenDB 7.2.7's exports: the first row determines the columns,
 * objects have one column per member, text is quoted, and numbers keep their stored spelling.
 */
import { quoteString } from "../../engine/base/json/escape.ts";
import { findMember, ValueSpan } from "../../engine/base/json/field-access.ts";

const metadataKey = "@metadata";
/** Metadata members that the server generates. */
const derivedKeys = new Set([
  ...["@id", "@change-vector", "@last-modified", "@flags", "@index-score"],
  ...["@attachments", "@counters", "@timeseries"],
]);

/** The cells of a row by column, as CSV text. */
type Cells = ReadonlyMap<string, string>;

/** The cells of a row; `text` is its stored text, which has the original spelling of numbers. */
export function rowCells(row: Readonly<Record<string, unknown>>, text: Buffer): Cells {
  const cells = new Map<string, string>();
  const metadata = row[metadataKey] as Readonly<Record<string, unknown>> | undefined;
  const id = metadata?.["@id"];
  if (typeof id === "string") cells.set("@id", quoted(id));
  for (const [key, value] of Object.entries(row)) {
    if (key !== metadataKey) addCells(cells, key, value, text, 0, key);
  }
  for (const [key, value] of Object.entries(metadata ?? {})) {
    if (!derivedKeys.has(key)) cells.set(`${metadataKey}.${key}`, cellText(value, ""));
  }
  return cells;
}

function addCells(
  cells: Map<string, string>,
  column: string,
  value: unknown,
  text: Buffer,
  at: number,
  key: string,
): void {
  const span = new ValueSpan();
  if (!findMember(text, at, quoteString(key), span)) return;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    cells.set(column, cellText(value, text.toString("utf8", span.from, span.to)));
    return;
  }
  const from = span.from;
  for (const [name, member] of Object.entries(value)) {
    addCells(cells, `${column}.${name}`, member, text, from, name);
  }
}

function cellText(value: unknown, spelling: string): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return spelling === "" ? String(value) : spelling;
  if (typeof value === "string") return quoted(value);
  return quoted(spelling === "" ? JSON.stringify(value) : spelling);
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

/** Formats the lines of one table. */
export class CsvRows {
  #columns: readonly string[] | null;
  #isFirst = true;

  /** @param columns the columns in order; empty: those of the first row */
  constructor(columns: readonly string[] = []) {
    this.#columns = columns.length === 0 ? null : columns;
  }

  /** The line of a row; the first is preceded by the header. */
  textOf(cells: Cells): string {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    this.#columns ??= [...cells.keys()];
    const line = this.#columns.map((column) => cells.get(column) ?? "").join(",");
    return isFirst ? `${this.#columns.map(headerCell).join(",")}\r\n${line}\r\n` : `${line}\r\n`;
  }
}

function headerCell(column: string): string {
  return /[",\r\n]/.test(column) ? quoted(column) : column;
}
