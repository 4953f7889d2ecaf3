/**
 * Documents in files of lines: JSON lines and CSV. Knows nothing of servers.
 *
 * In CSV the first line names the columns, `Address.City` is a field of an object, and `@id` and `@metadata.@collection` are
 * the id and the collection. A cell in quotes is a text, or an array or object as JSON; one without is a number, true, false or
 * null if it is spelled like one, else a text; an empty one is left out.
 */
import { pipeline, type Readable } from "node:stream";
import { type Cell, Members, spellingOf } from "./csv-cells.ts";
import { Failure } from "./failure.ts";
import { type Piece, piecesOf } from "./json-pieces.ts";

/** Characters of one document. */
const lineBytesMax = 64 * 1024 * 1024;

/** One document of a file, and where it was found. */
export interface FileRow {
  readonly line: number;
  readonly id: string | undefined;
  readonly collection: string | undefined;
  /** The document as JSON, with the spelling of its numbers. */
  readonly text: string;
  /** The value of a field at the top. */
  readonly field: (name: string) => unknown;
}

type Fields = Record<string, unknown>;

/** Lines without their ends; U+2028 ends none. @throws Failure failed for one that is too long */
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

/** @throws Failure failed, naming the line */
export async function* jsonLines(source: Readable): AsyncGenerator<FileRow> {
  for await (const { line, text } of linesOf(source)) {
    if (text.trim() === "") continue;
    let fields: Fields;
    try {
      fields = JSON.parse(text) as Fields;
    } catch (error) {
      throw new Failure("failed", `line ${line} is no JSON (${(error as Error).message})`, {
        cause: error,
      });
    }
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      throw new Failure("failed", `line ${line} is no document: it must be an object`);
    }
    yield rowOf(line, text.trim(), fields);
  }
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

/** `isText`: every cell is a text. @throws Failure failed, naming the line */
export async function* csvRows(source: Readable, isText: boolean): AsyncGenerator<FileRow> {
  const { parse } = await import("csv-parse");
  const parser = parse({
    bom: true,
    info: true,
    max_record_size: lineBytesMax,
    // Counted here: an error of the parser drops the lines before it, too.
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
        const counts = `${record.length} cells, and the header ${columns.length}`;
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
  if (twice !== undefined) throw new Failure("failed", `line 1: two columns are called '${twice}'`);
  return names;
}

function csvRow(
  columns: readonly string[],
  cells: readonly Cell[],
  line: number,
  isText: boolean,
): FileRow {
  const root = new Members();
  let id: string | undefined;
  for (const [at, name] of columns.entries()) {
    const cell = cells[at] as Cell; // as many as columns
    if (name === "@id") id = cell.value === "" ? undefined : cell.value;
    else if (cell.isQuoted || cell.value !== "")
      root.add(name.split("."), spellingOf(cell, isText));
  }
  const text = root.toString();
  if (columns.some((name) => name.startsWith("@metadata"))) {
    const row = rowOf(line, text, JSON.parse(text) as Fields);
    return { ...row, id: id ?? row.id };
  }
  // Most rows are never parsed.
  const field = (name: string) => (JSON.parse(text) as Fields)[name];
  return { line, id, collection: undefined, text, field };
}

/** The cells of a document by column. Objects in it are columns of their own. */
export function cellsOf(document: string): Map<string, string> {
  const cells = new Map<string, string>();
  const fields = piecesOf(document);
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

function addCells(cells: Map<string, string>, before: string, fields: readonly Piece[]): void {
  for (const { name, text } of fields) {
    const column = before + name;
    const inner = text.startsWith("{") ? piecesOf(text) : [];
    if (inner.length > 0) addCells(cells, `${column}.`, inner);
    else if (text.startsWith('"')) cells.set(column, csvText(JSON.parse(text) as string));
    else cells.set(column, /^[[{]/.test(text) ? csvText(text) : text);
  }
}

/** In quotes, always: so it is a text for whoever reads it. */
export function csvText(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
