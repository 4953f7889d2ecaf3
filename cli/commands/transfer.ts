/**
 * `jackdaw export` and `import`: dumps use the smuggler (dumps.ts); JSON, JSON Lines and CSV use streams and bulk
 * insert, for documents only.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { PassThrough, pipeline, Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { sizeOfInput } from "../input-file.ts";
import { inCollection } from "../json-text.ts";
import { countText } from "../output.ts";
import { ProgressLine, rateText } from "../progress.ts";
import {
  cellsOf,
  csvRows,
  csvText,
  type FileRow,
  jsonArray,
  jsonLines,
  linesOf,
} from "../row-files.ts";
import { ByteCounter, run as runDump } from "./dumps.ts";

const formats = ["dump", "json", "jsonl", "csv"] as const;
type Format = (typeof formats)[number];

/** Maximum characters of bulk-insert commands per chunk. */
const chunkLength = 64 * 1024;
const columnsMax = 10_000;

export async function run(context: CommandContext): Promise<void> {
  const { command, arguments: given, options } = context;
  const path = given[0] ?? "";
  const format = formatOf(path, options.text("format"));
  if (format === "dump") await runDump(context);
  else if (command.name === "export") await exportRows(context, path, format);
  else await importRows(context, path, format);
}

/** @throws Failure usage */
function formatOf(path: string, given: string | undefined): Format {
  if (given !== undefined) {
    const format = formats.find((one) => one === given);
    if (format !== undefined) return format;
    throw new Failure("usage", `--format '${given}' must be one of ${formats.join(", ")}`);
  }
  const ending = /\.(json|jsonl|ndjson|csv)(\.gz)?$/i.exec(path)?.[1]?.toLowerCase();
  if (ending === "ndjson") return "jsonl";
  return formats.find((one) => one === ending) ?? "dump";
}

const isZipped = (path: string) => path.toLowerCase().endsWith(".gz");

/** Exports to a partial file, which is renamed when it is complete. */
async function exportRows(context: CommandContext, path: string, format: Format): Promise<void> {
  const { options, print, interrupted } = context;
  const partial = `${path}.partial`;
  const progress = new ProgressLine(context);
  const counted = { rows: 0 };
  try {
    const lines = documentLines(context, counted, progress);
    if (format === "jsonl") await writeLines(partial, isZipped(path), lines);
    else if (format === "json") await writeLines(partial, isZipped(path), arrayLines(lines));
    else {
      // The columns are known only after all documents were read.
      const columns = new Set<string>();
      await writeLines(`${partial}.rows`, false, collectColumns(lines, columns));
      await writeLines(partial, isZipped(path), csvLines(`${partial}.rows`, [...columns]));
    }
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    if (interrupted.aborted) throw new Failure("interrupted", "Interrupted; no file was written");
    if (error instanceof Failure) throw error;
    const why = `The export failed before it was complete (${(error as Error).message}); no file was written`;
    throw new Failure("failed", why, { cause: error });
  } finally {
    progress.end();
    await rm(`${partial}.rows`, { force: true });
  }
  const { rows } = counted;
  print(
    options.is("json")
      ? JSON.stringify({ File: path, Documents: rows })
      : `${path}  ${rows} documents`,
  );
}

/** Yields the stored documents as lines of JSON. */
async function* documentLines(
  { client, database, options, interrupted }: CommandContext,
  counted: { rows: number },
  progress: ProgressLine,
): AsyncGenerator<string> {
  const collections = options.all("collection");
  const query = options.text("query");
  if (query !== undefined && collections.length > 0) {
    throw new Failure("usage", "Specify either --query or --collection, not both");
  }
  const queries =
    query === undefined ? collections.map((one) => `from ${JSON.stringify(one)}`) : [query];
  const requests =
    queries.length === 0
      ? [{ path: "streams/docs" }]
      : queries.map((Query) => ({ path: "streams/queries", method: "POST", body: { Query } }));
  for (const { path, ...request } of requests) {
    const more = { query: { format: "jsonl" }, signal: interrupted };
    const response = await client().open(inDatabase(database(), path), { ...request, ...more });
    for await (const { text } of linesOf(response)) {
      if (text.startsWith('{"Stats":') && path === "streams/queries") continue;
      if (text === "") continue;
      counted.rows++;
      const { rows } = counted;
      progress.show(() => rateText(rows, undefined, progress.elapsedMs, countText));
      yield path === "streams/queries" ? text.slice('{"Item":'.length, -1) : text;
    }
  }
}

/** Yields the lines of a JSON array. */
async function* arrayLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let last: string | undefined;
  for await (const line of lines) {
    yield last === undefined ? "[" : `${last},`;
    last = line;
  }
  if (last === undefined) yield "[";
  else yield last;
  yield "]";
}

async function* collectColumns(
  lines: AsyncIterable<string>,
  columns: Set<string>,
): AsyncGenerator<string> {
  for await (const line of lines) {
    for (const column of cellsOf(line).keys()) columns.add(column);
    if (columns.size > columnsMax) {
      throw new Failure(
        "failed",
        `The documents have more than ${columnsMax} fields; export JSON lines instead`,
      );
    }
    yield line;
  }
}

async function* csvLines(path: string, columns: readonly string[]): AsyncGenerator<string> {
  yield columns.map((name) => (/[",\r\n]/.test(name) ? csvText(name) : name)).join(",");
  for await (const { text } of linesOf(createReadStream(path))) {
    const cells = cellsOf(text);
    yield columns.map((name) => cells.get(name) ?? "").join(",");
  }
}

async function writeLines(
  path: string,
  zips: boolean,
  lines: AsyncIterable<string>,
): Promise<void> {
  const file = createWriteStream(path);
  const target = zips ? createGzip() : file;
  if (zips) target.pipe(file as never);
  const written = finished(file);
  written.catch(() => undefined);
  try {
    for await (const line of lines) {
      if (!target.write(`${line}\n`)) await Promise.race([once(target, "drain"), written]);
    }
  } catch (error) {
    file.destroy();
    throw error;
  }
  target.end();
  await written;
}

async function importRows(context: CommandContext, path: string, format: Format): Promise<void> {
  const { client, database, options, print } = context;
  const passed = new ByteCounter(context, await sizeOfInput(path));
  const state: Sent = { rows: 0, failure: null };
  try {
    const source = isZipped(path) ? createGunzip() : new PassThrough();
    // An error of the pipeline also fails reads of `source`, which may start later.
    source.on("error", () => undefined);
    pipeline(createReadStream(path), passed.stream, source, () => undefined);
    const isExtended = options.is("mongodb");
    const rows =
      format === "csv"
        ? csvRows(source, options.is("text"))
        : (format === "json" ? jsonArray : jsonLines)(source, isExtended);
    const { Id } = (await client().json(
      inDatabase(database(), "operations/next-operation-id"),
    )) as {
      Id: number;
    };
    await client().send(inDatabase(database(), "bulk_insert"), {
      method: "POST",
      query: { id: Id },
      headers: { "content-type": "application/json" },
      body: Readable.from(commandChunks(context, rows, state), { objectMode: false }),
    });
  } finally {
    passed.end();
  }
  const { rows, failure } = state;
  if (failure !== null) {
    const kind = failure instanceof Failure ? failure.kind : "failed";
    const what = `${path}: ${failure.message.replace(/\.$/, "")}`;
    throw new Failure(kind, `${what}; the preceding ${rows} documents were stored`, {
      cause: failure,
    });
  }
  print(options.is("json") ? JSON.stringify({ Documents: rows }) : `${rows} documents`);
}

interface Sent {
  rows: number;
  /** Error that stopped reading the file. Rows before it are stored. */
  failure: Error | null;
}

/** Yields the commands of a bulk insert in chunks. */
async function* commandChunks(
  { options, interrupted }: CommandContext,
  rows: AsyncIterable<FileRow>,
  sent: Sent,
): AsyncGenerator<string> {
  const rule = {
    collection: options.text("collection"),
    idField: options.text("id-field"),
    idPrefix: options.text("id-prefix") ?? "",
  };
  let chunk = "[";
  try {
    for await (const row of rows) {
      if (interrupted.aborted) throw new Failure("interrupted", "Interrupted");
      chunk += `${sent.rows === 0 ? "" : ","}${commandOf(row, rule)}`;
      sent.rows++;
      if (chunk.length < chunkLength) continue;
      yield chunk;
      chunk = "";
    }
  } catch (error) {
    sent.failure = error as Error;
  }
  yield `${chunk}]`;
}

interface Rule {
  readonly collection: string | undefined;
  readonly idField: string | undefined;
  readonly idPrefix: string;
}

/**
 * Returns the command for a row. @throws Failure failed for a row without a collection, or without the field of the
 * id
 */
function commandOf(row: FileRow, { collection: given, idField, idPrefix }: Rule): string {
  const collection = row.collection ?? given;
  if (collection === undefined) {
    throw new Failure(
      "failed",
      `line ${row.line} has no collection; specify one with --collection`,
    );
  }
  const id = idOf(row, idField) ?? `${collection.toLowerCase()}/${randomUUID()}`;
  const document = row.collection === undefined ? inCollection(row.text, collection) : row.text;
  return `{"Id":${JSON.stringify(idPrefix + id)},"Type":"PUT","Document":${document}}`;
}

function idOf(row: FileRow, field: string | undefined): string | undefined {
  if (field === undefined) return row.id;
  const value = row.field(field);
  if (typeof value === "string" && value !== "") return value;
  if (typeof value === "number") return String(value);
  throw new Failure("failed", `line ${row.line} has no '${field}' for its id`);
}
