/**
 * Reads documents from JSON, JSON Lines and CSV files. Independent of servers.
 *
 * The first line of CSV contains the column names. `Address.City` is a field of an object; `@id` and
 * `@metadata.@collection` are the id and the collection. A quoted cell is a string, or an array or object in JSON. An
 * unquoted cell is a number, true, false or null if it has that syntax, otherwise a string; empty unquoted cells are
 * omitted.
 */
import { pipeline, type Readable } from "node:stream";
import { type Cell, cellJson, JsonBuilder } from "./csv-cells.ts";
import { fromMongoDocument } from "./extended-json.ts";
import { Failure } from "./failure.ts";
import { type JsonMember, jsonMembers } from "./json-text.ts";

/** Maximum line length, in bytes. */
const lineBytesMax = 64 * 1024 * 1024;

/** A document of a file, with its line number. */
export interface FileRow {
  readonly line: number;
  readonly id: string | undefined;
  readonly collection: string | undefined;
  /** JSON text of the document, with the original text of its numbers. */
  readonly text: string;
  /** Returns the value of a top-level field. */
  readonly field: (name: string) => unknown;
}

type Fields = Record<string, unknown>;

/** Yields lines without line breaks; U+2028 is not a line break. @throws Failure failed for a line that is too long */
export async function* linesOf(source: Readable): AsyncGenerator<{ line: number; text: string }> {
  let line = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  const taken = () => {
    const text = Buffer.concat(held).toString("utf8").replace(/\r$/, "");
    held = [];
    heldBytes = 0;
    line++;
    return { line, text: line === 1 ? text.replace(/^\uFEFF/, "") : text };
  };
  for await (const chunk of source as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      held.push(chunk.subarray(from, end));
      yield taken();
      from = end + 1;
    }
    held.push(chunk.subarray(from));
    heldBytes += chunk.length - from;
    if (heldBytes > lineBytesMax) {
      throw new Failure("failed", `line ${line + 1} is longer than ${lineBytesMax} bytes`);
    }
  }
  if (heldBytes > 0) yield taken();
}

/**
 * Yields the documents of a JSON Lines file. With `isExtended`, converts MongoDB extended JSON. @throws Failure failed with
 * the line number
 */
export async function* jsonLines(source: Readable, isExtended = false): AsyncGenerator<FileRow> {
  for await (const { line, text } of linesOf(source)) {
    if (text.trim() !== "") yield jsonRow(line, text.trim(), isExtended);
  }
}

/** Yields the documents of a JSON file: an array of objects, or objects one after the other. As `jsonLines` otherwise. */
export async function* jsonArray(source: Readable, isExtended = false): AsyncGenerator<FileRow> {
  for await (const { line, text } of valuesOf(source)) yield jsonRow(line, text, isExtended);
}

function jsonRow(line: number, text: string, isExtended: boolean): FileRow {
  const fields = objectOf(line, text);
  if (isExtended) {
    const { id: mongoId, text: document } = fromMongoDocument(text);
    return { ...rowOf(line, document, objectOf(line, document)), id: mongoId };
  }
  const { _id: id } = fields;
  if (typeof id === "object" && id !== null && "$oid" in id) {
    throw new Failure("failed", `line ${line} is MongoDB extended JSON; convert it with --mongodb`);
  }
  return rowOf(line, text, fields);
}

function objectOf(line: number, text: string): Fields {
  let fields: Fields;
  try {
    fields = JSON.parse(text) as Fields;
  } catch (error) {
    throw new Failure("failed", `line ${line} is not valid JSON (${(error as Error).message})`, {
      cause: error,
    });
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    throw new Failure("failed", `line ${line} is not a JSON object`);
  }
  return fields;
}

const [lineFeed, quote, backslash, comma] = [10, 34, 92, 44];
const [openBracket, closeBracket, openBrace, closeBrace] = [91, 93, 123, 125];

/**
 * Yields the text of each value of an array, or of values one after the other, with the line on which it begins.
 * Hot: every byte of a file is visited.
 */
async function* valuesOf(source: Readable): AsyncGenerator<{ line: number; text: string }> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let line = 1;
  let firstLine = 1;
  let depth = 0;
  let isInArray = false;
  let isInText = false;
  let isEscaped = false;
  let isFirst = true;
  /** What precedes in the array. */
  let before: "bracket" | "value" | "comma" = "bracket";
  const taken = () => {
    const text = Buffer.concat(held)
      .toString("utf8")
      .replace(/^\uFEFF/, "")
      .trim();
    held = [];
    heldBytes = 0;
    return { line: firstLine, text };
  };
  for await (const chunk of source as AsyncIterable<Buffer>) {
    let from = 0;
    const hold = (end: number) => {
      held.push(chunk.subarray(from, end));
      heldBytes += end - from;
      from = end;
    };
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte === lineFeed) line++;
      if (isInText) {
        if (isEscaped) isEscaped = false;
        else if (byte === backslash) isEscaped = true;
        else if (byte === quote) isInText = false;
      } else if (byte === quote) isInText = true;
      else if (byte === openBracket && isFirst) {
        isInArray = true;
        held = [];
        from = at + 1;
      } else if (byte === openBrace || byte === openBracket) {
        if (depth === 0 && isInArray && before === "value") {
          throw new Failure("failed", `line ${line}: a comma is missing between two values`);
        }
        if (depth++ === 0) firstLine = line;
      } else if (depth > 0 && (byte === closeBrace || byte === closeBracket)) {
        if (--depth > 0) continue;
        hold(at + 1);
        before = "value";
        yield taken();
      } else if (depth === 0 && isInArray && (byte === comma || byte === closeBracket)) {
        hold(at);
        from = at + 1;
        isInArray = byte === comma;
        const value = taken();
        if (value.text !== "") yield { ...value, line };
        else if (before === "comma" || (before === "bracket" && isInArray)) {
          throw new Failure("failed", `line ${line}: a value of the array is missing`);
        }
        before = "comma";
      }
      if (isFirst && byte !== undefined && byte > 32 && byte < 128) isFirst = false;
    }
    hold(chunk.length);
    if (heldBytes > lineBytesMax) {
      throw new Failure(
        "failed",
        `the value at line ${firstLine} is longer than ${lineBytesMax} bytes`,
      );
    }
  }
  const { text } = taken();
  if (text === "" && isInArray)
    throw new Failure("failed", `line ${line}: the array is not closed`);
  if (text !== "") yield { line: depth > 0 ? firstLine : line, text };
}

function rowOf(line: number, text: string, fields: Fields): FileRow {
  const metadata = (fields["@metadata"] ?? {}) as Fields;
  const texts = (name: string) => (typeof metadata[name] === "string" ? metadata[name] : undefined);
  return {
    line,
    id: texts("@id"),
    collection: texts("@collection"),
    text,
    field: (name) => (Object.hasOwn(fields, name) ? fields[name] : undefined),
  };
}

/** Yields the rows of a CSV file. With `isText`, every cell is a string. @throws Failure failed with the line number */
export async function* csvRows(source: Readable, isText: boolean): AsyncGenerator<FileRow> {
  const { parse } = await import("csv-parse");
  const parser = parse({
    bom: true,
    info: true,
    max_record_size: lineBytesMax,
    // The number of cells is checked below: an error of the parser would discard preceding lines.
    relax_column_count: true,
    skip_empty_lines: true,
    cast: (value, { quoting }): Cell => ({ value, isQuoted: quoting }),
  });
  let columns: string[] | null = null;
  try {
    for await (const { record, info } of pipeline(
      source,
      parser,
      () => undefined,
    ) as AsyncIterable<{
      record: Cell[];
      info: { lines: number };
    }>) {
      if (columns === null) {
        columns = headerOf(record);
        continue;
      }
      if (record.length !== columns.length) {
        const counts = `${record.length} cells; the header has ${columns.length}`;
        throw new Failure("failed", `line ${info.lines} has ${counts}`);
      }
      yield csvRow(columns, record, info.lines, isText);
    }
  } catch (error) {
    const { code, lines, message } = error as { code?: string; lines?: number; message: string };
    if (code?.startsWith("CSV_") !== true) throw error;
    throw new Failure("failed", lines === undefined ? message : `line ${lines}: ${message}`, {
      cause: error,
    });
  }
}

function headerOf(cells: readonly Cell[]): string[] {
  const names = cells.map(({ value }) => value.trim());
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (names.includes("")) throw new Failure("failed", "line 1: a column has no name");
  if (twice !== undefined) throw new Failure("failed", `line 1: duplicate column '${twice}'`);
  return names;
}

function csvRow(
  columns: readonly string[],
  cells: readonly Cell[],
  line: number,
  isText: boolean,
): FileRow {
  const root = new JsonBuilder();
  let id: string | undefined;
  for (const [at, name] of columns.entries()) {
    const cell = cells[at] as Cell; // as many as columns
    if (name === "@id") id = cell.value === "" ? undefined : cell.value;
    else if (cell.isQuoted || cell.value !== "") root.add(name.split("."), cellJson(cell, isText));
  }
  const text = root.toString();
  if (columns.some((name) => name.startsWith("@metadata"))) {
    const row = rowOf(line, text, JSON.parse(text) as Fields);
    return { ...row, id: id ?? row.id };
  }
  // Parse only on request: most rows are never parsed.
  const field = (name: string) => (JSON.parse(text) as Fields)[name];
  return { line, id, collection: undefined, text, field };
}

/** Returns the cells of a document by column. Objects in it become columns with dotted names. */
export function cellsOf(document: string): Map<string, string> {
  const cells = new Map<string, string>();
  const fields = jsonMembers(document);
  const metadata = fields.findLast(({ name }) => name === "@metadata")?.text ?? "{}";
  const { "@id": id, "@collection": collection } = JSON.parse(metadata) as Fields;
  if (typeof id === "string") cells.set("@id", csvText(id));
  if (typeof collection === "string" && collection !== "@empty") {
    cells.set("@metadata.@collection", csvText(collection));
  }
  addCells(
    cells,
    "",
    fields.filter(({ name }) => name !== "@metadata"),
  );
  return cells;
}

function addCells(cells: Map<string, string>, before: string, fields: readonly JsonMember[]): void {
  for (const { name, text } of fields) {
    const column = before + name;
    const inner = text.startsWith("{") ? jsonMembers(text) : [];
    if (inner.length > 0) addCells(cells, `${column}.`, inner);
    else if (text.startsWith('"')) cells.set(column, csvText(JSON.parse(text) as string));
    else cells.set(column, /^[[{]/.test(text) ? csvText(text) : text);
  }
}

/** Returns a quoted CSV cell, which readers treat as a string. */
export function csvText(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
