/**
 * Streams documents from JSON Lines and CSV files in the browser. Numbers keep their digits.
 *
 * The first line of CSV contains the column names. `Address.City` is a field of an object; `@id` is the id. A quoted
 * cell is a string, or an array or object in JSON. An unquoted cell is a number, true, false or null if it has that
 * syntax, otherwise a string; empty unquoted cells are omitted. The command line uses the same rules.
 */
import { type Cell, cellJson, JsonBuilder } from "../../cli/csv-cells.ts";
export interface FileRow {
  /** Line number of the first line. */
  readonly line: number;
  /** JSON text of the document. */
  readonly text: string;
  readonly id: string | undefined;
}

/** A malformed file; the message contains the line number. */
class RowError extends Error {}

type RowFormat = "jsonl" | "csv";

/** Returns the format of a file name; null for formats that the server imports. `orders.jsonl.gz` is JSON Lines. */
export function formatOf(name: string): RowFormat | null {
  const ending = /\.(jsonl|ndjson|csv)(\.gz)?$/i.exec(name)?.[1]?.toLowerCase();
  return ending === undefined ? null : ending === "csv" ? "csv" : "jsonl";
}

/** Maximum length of a document or a CSV line, in UTF-16 code units. */
const lengthMax = 64 * 1024 * 1024;

/** Yields the rows of a file; calls `passed` with the number of bytes read. @throws RowError */
export async function* rowsOf(
  file: Blob & { readonly name: string },
  passed: (bytes: number) => void,
): AsyncGenerator<FileRow> {
  const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      passed(chunk.byteLength);
      controller.enqueue(chunk);
    },
  });
  let bytes = file.stream().pipeThrough(counting);
  if (/\.gz$/i.test(file.name)) bytes = bytes.pipeThrough(new DecompressionStream("gzip"));
  const texts = bytes.pipeThrough(new TextDecoderStream());
  yield* formatOf(file.name) === "csv" ? csvRows(pieces(texts)) : jsonRows(pieces(texts));
}

async function* pieces(stream: ReadableStream<string>): AsyncGenerator<string> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // If the caller stops early, the rest of the file is not read.
    await reader.cancel().catch(() => undefined);
  }
}

/** Yields the documents of a JSON Lines file. @throws RowError */
async function* jsonRows(source: AsyncIterable<string>): AsyncGenerator<FileRow> {
  let line = 0;
  let held = "";
  for await (const piece of source) {
    const lines = (held + piece).split("\n");
    held = lines.pop() as string; // a split gives one at least
    if (held.length > lengthMax) throw new RowError(`Line ${line + lines.length + 1} is too long.`);
    for (const text of lines) {
      line++;
      const row = jsonRow(line, text);
      if (row !== null) yield row;
    }
  }
  const row = jsonRow(line + 1, held);
  if (row !== null) yield row;
}

function jsonRow(line: number, text: string): FileRow | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  let found: unknown;
  try {
    found = JSON.parse(trimmed);
  } catch (error) {
    throw new RowError(`Line ${line} is not valid JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (typeof found !== "object" || found === null || Array.isArray(found))
    throw new RowError(`Line ${line} is not a JSON object.`);
  const id = (found as { "@metadata"?: { "@id"?: unknown } })["@metadata"]?.["@id"];
  return { line, text: trimmed, id: typeof id === "string" ? id : undefined };
}

/** Yields the rows of a CSV file. @throws RowError */
async function* csvRows(source: AsyncIterable<string>): AsyncGenerator<FileRow> {
  let columns: string[] | null = null;
  for await (const { line, cells } of recordsOf(source)) {
    if (columns === null) {
      columns = cells.map(({ value }) => value.trim());
      const twice = columns.find((name, at) => columns?.indexOf(name) !== at);
      if (columns.includes("")) throw new RowError("Line 1: a column has no name.");
      if (twice !== undefined) throw new RowError(`Line 1: duplicate column "${twice}".`);
    } else if (cells.length !== columns.length) {
      throw new RowError(
        `Line ${line} has ${cells.length} cells; the first line has ${columns.length}.`,
      );
    } else yield csvRow(columns, cells, line);
  }
}

/** Yields the records of CSV (RFC 4180): a quoted cell may contain commas, doubled quotes and line breaks. */
async function* recordsOf(
  source: AsyncIterable<string>,
): AsyncGenerator<{ line: number; cells: Cell[] }> {
  let cells: Cell[] = [];
  let value = "";
  let state: "start" | "plain" | "quoted" | "after" = "start";
  let line = 1;
  let first = 1;
  const endCell = () => {
    const isQuoted = state === "after";
    cells.push({ value: isQuoted ? value : value.replace(/\r$/, ""), isQuoted });
    value = "";
    state = "start";
  };
  for await (const piece of source) {
    for (const unit of piece) {
      if (state === "quoted") {
        if (unit === '"') state = "after";
        else value += unit;
        if (unit === "\n") line++;
      } else if (unit === '"' && state !== "plain") {
        // A quote after a closing quote is a literal quote.
        if (state === "after") value += '"';
        state = "quoted";
      } else if (unit === ",") endCell();
      else if (unit === "\n") {
        line++;
        endCell();
        const isEmpty = cells.length === 1 && cells[0]?.value === "" && !cells[0].isQuoted;
        if (!isEmpty) yield { line: first, cells };
        cells = [];
        first = line;
      } else if (state === "after") {
        if (unit !== "\r") throw new RowError(`Line ${line}: text follows a closing quote.`);
      } else {
        value += unit;
        state = "plain";
      }
      if (value.length > lengthMax) throw new RowError(`Line ${first} is too long.`);
    }
  }
  if (state === "quoted") throw new RowError(`Line ${first}: a quote is not closed.`);
  if (cells.length > 0 || value !== "" || state === "after") {
    endCell();
    yield { line: first, cells };
  }
}

function csvRow(columns: readonly string[], cells: readonly Cell[], line: number): FileRow {
  const root = new JsonBuilder();
  let id: string | undefined;
  for (const [at, name] of columns.entries()) {
    const cell = cells[at] as Cell; // as many as columns
    if (name === "@id") id = cell.value === "" ? undefined : cell.value;
    else if (cell.isQuoted || cell.value !== "") root.add(name.split("."), cellJson(cell, false));
  }
  return { line, text: root.toString(), id };
}
