/**
 * Rows as comma-separated values, in the format of RavenDB 7.2.7's exports: the first row determines the columns,
 * objects have one column per member, text is quoted, and numbers keep their stored spelling.
 */
import { type Member, membersOf } from "../../engine/base/json/object-members.ts";

const metadataKey = "@metadata";
/** Metadata members that the server generates. */
const derivedKeys = new Set([
  ...["@id", "@change-vector", "@last-modified", "@flags", "@index-score"],
  ...["@attachments", "@counters", "@timeseries"],
]);
/** Objects nested deeper are cells of JSON text: each level repeats the names of its parents. */
const depthMax = 64;

/** The cells of a row by column, as CSV text. */
type Cells = ReadonlyMap<string, string>;

/** Returns the cells of a row. `text`: as stored. */
export function rowCells(text: Buffer): Cells {
  const cells = new Map<string, string>();
  let metadata: Member | undefined;
  for (const [key, member] of namedMembers(text, 0)) if (key === metadataKey) metadata = member;
  const ofMetadata = metadata?.kind === "object" ? [...namedMembers(text, metadata.from)] : [];
  const id = ofMetadata.find(([key, { kind }]) => key === "@id" && kind === "string");
  if (id !== undefined) cells.set("@id", cellText(text, id[1]));
  addCells(cells, "", text, 0, 0);
  for (const [key, member] of ofMetadata) {
    if (!derivedKeys.has(key)) cells.set(`${metadataKey}.${key}`, cellText(text, member));
  }
  return cells;
}

function addCells(
  cells: Map<string, string>,
  prefix: string,
  text: Buffer,
  at: number,
  depth: number,
): void {
  for (const [key, member] of namedMembers(text, at)) {
    if (depth === 0 && key === metadataKey) continue;
    if (member.kind === "object" && depth < depthMax) {
      addCells(cells, `${prefix}${key}.`, text, member.from, depth + 1);
    } else cells.set(prefix + key, cellText(text, member));
  }
}

/** The members of the object at `at`, with their names. */
function* namedMembers(text: Buffer, at: number): Generator<[key: string, member: Member]> {
  for (const member of membersOf(text, at)) {
    if (member !== null) yield [stringIn(text, member.keyFrom, member.keyTo), member];
  }
}

function cellText(text: Buffer, { kind, from, to }: Member): string {
  if (kind === "null") return "";
  const spelling = text.toString("utf8", from, to);
  if (kind === "boolean") return spelling === "true" ? "True" : "False";
  if (kind === "number") return spelling;
  return quoted(kind === "string" ? stringIn(text, from, to) : spelling);
}

/** The string whose text, with its quotes, is [from, to). */
function stringIn(text: Buffer, from: number, to: number): string {
  return JSON.parse(text.toString("utf8", from, to)) as string;
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
