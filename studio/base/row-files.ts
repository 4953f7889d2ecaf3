/**
 * Streams documents from JSON, JSON Lines and CSV files in the browser. Numbers keep their digits. A JSON file contains
 * an array of objects, or objects one after the other; exports of MongoDB have either format.
 *
 * The first line of CSV contains the column names. `Address.City` is a field of an object; `@id` is the id. A quoted
 * cell is a string, or an array or object in JSON. An unquoted cell is a number, true, false or null if it has that
 * syntax, otherwise a string; empty unquoted cells are omitted. The command line uses the same rules.
 */
import { type Cell, cellJson, JsonBuilder } from "../../cli/csv-cells.ts";
import { fromMongoDocument } from "../../cli/extended-json.ts";

export interface FileRow {
  /** Line number of the first line. */
  readonly line: number;
  /** JSON text of the document. */
  readonly text: string;
  readonly id: string | undefined;
}

/** A malformed file; the message contains the line number. */
class RowError extends Error {}

type RowFormat = "json" | "jsonl" | "csv";

/** Returns the format of a file name; null for formats that the server imports. `orders.jsonl.gz` is JSON Lines. */
export function formatOf(name: string): RowFormat | null {
  const ending = /\.(json|jsonl|ndjson|csv)(\.gz)?$/i.exec(name)?.[1]?.toLowerCase();
  if (ending === "json" || ending === "csv") return ending;
  return ending === undefined ? null : "jsonl";
}

/** Returns whether a JSON file is a dump of a database, which the server imports. */
export async function isDump(file: Blob): Promise<boolean> {
  return /^\s*\{\s*"BuildVersion"/.test(await file.slice(0, 100).text());
}

/** Maximum length of a document or a CSV line, in UTF-16 code units. */
const lengthMax = 64 * 1024 * 1024;

/**
 * Yields the rows of a file; calls `passed` with the number of bytes read. With `isExtended`, converts MongoDB extended
 * JSON. @throws RowError
 */
export async function* rowsOf(
  file: Blob & { readonly name: string },
  isExtended: boolean,
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
  const format = formatOf(file.name);
  if (format === "csv") yield* csvRows(pieces(texts));
  else {
    const source = format === "json" ? objectsOf(pieces(texts)) : linesOf(pieces(texts));
    for await (const { line, text } of source) yield jsonRow(line, text, isExtended);
  }
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

interface NumberedText {
  readonly line: number;
  readonly text: string;
}

/** Yields the lines of a text that are not blank. @throws RowError */
async function* linesOf(source: AsyncIterable<string>): AsyncGenerator<NumberedText> {
  let line = 0;
  let held = "";
  for await (const piece of source) {
    const lines = (held + piece).split("\n");
    held = lines.pop() as string; // a split gives one at least
    if (held.length > lengthMax) throw new RowError(`Line ${line + lines.length + 1} is too long.`);
    for (const text of lines) {
      line++;
      if (text.trim() !== "") yield { line, text: text.trim() };
    }
  }
  if (held.trim() !== "") yield { line: line + 1, text: held.trim() };
}

/** Yields the texts of the objects of an array, or of objects one after the other. @throws RowError */
async function* objectsOf(source: AsyncIterable<string>): AsyncGenerator<NumberedText> {
  const scan = new ObjectScan();
  for await (const piece of source) yield* scan.objectsIn(piece);
  scan.end();
}

/** Finds the ends of objects in the pieces of a text. Between objects, it checks brackets and commas. */
class ObjectScan {
  #line = 1;
  #firstLine = 1;
  #held = "";
  /** Number of open braces and brackets of the object. */
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  /** What may follow between objects. */
  #state: "start" | "objects" | "first" | "element" | "separator" | "end" = "start";

  *objectsIn(piece: string): Generator<NumberedText> {
    let from = 0;
    for (let at = 0; at < piece.length; at++) {
      const unit = piece[at] as string;
      if (unit === "\n") this.#line++;
      if (this.#depth === 0) {
        this.#between(unit);
        if (this.#depth > 0) from = at;
      } else if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInText) {
        if (unit === "\\") this.#isEscaped = true;
        else if (unit === '"') this.#isInText = false;
      } else if (unit === '"') this.#isInText = true;
      else if (unit === "{" || unit === "[") this.#depth++;
      else if ((unit === "}" || unit === "]") && --this.#depth === 0) {
        yield { line: this.#firstLine, text: this.#held + piece.slice(from, at + 1) };
        this.#held = "";
      }
    }
    if (this.#depth === 0) return;
    this.#held += piece.slice(from);
    if (this.#held.length > lengthMax)
      throw new RowError(`The document at line ${this.#firstLine} is too long.`);
  }

  /** Called after the last piece. @throws RowError */
  end(): void {
    if (this.#depth > 0)
      throw new RowError(`The text ends in the document at line ${this.#firstLine}.`);
    if (this.#state === "first" || this.#state === "element" || this.#state === "separator")
      throw new RowError(`The array is not closed at line ${this.#line}.`);
  }

  #between(unit: string): void {
    if (/[\s\uFEFF]/.test(unit)) return;
    const state = this.#state;
    if (unit === "[" && state === "start") this.#state = "first";
    else if (unit === "]" && (state === "first" || state === "separator")) this.#state = "end";
    else if (unit === "," && state === "separator") this.#state = "element";
    else if (unit === "{" && state !== "separator" && state !== "end") {
      this.#state = state === "start" || state === "objects" ? "objects" : "separator";
      this.#firstLine = this.#line;
      this.#depth = 1;
    } else throw new RowError(`Line ${this.#line}: expected a JSON object, but found ${unit}`);
  }
}

function jsonRow(line: number, trimmed: string, isExtended: boolean): FileRow {
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
  if (isExtended) return { line, ...fromMongoDocument(trimmed) };
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
