/**
 * Imports the rows of a file as documents, in sequential batches.
 *
 * Invariants:
 * - Each batch is atomic; batches before a failed batch remain stored.
 * - If existing documents are to be kept, documents created concurrently are kept, too.
 */
import { get, ServerError, send } from "./client.ts";
import { type FileRow, rowsOf } from "./row-files.ts";

export interface RowImport {
  readonly file: File;
  /** Base path: `/databases/<name>`. */
  readonly base: string;
  /** Collection of rows without one. */
  readonly collection: string;
  /** Name of the id field; "": ids are generated for rows without `@id`. */
  readonly idField: string;
  readonly skipsExisting: boolean;
  /** True for MongoDB extended JSON. */
  readonly isExtended: boolean;
  readonly signal: AbortSignal;
  reportProgress(figures: ImportFigures): void;
}

export interface ImportFigures {
  /** Bytes read from the file. */
  readonly bytes: number;
  readonly read: number;
  readonly written: number;
  readonly skipped: number;
}

const batchRowsMax = 1000;
const batchLengthMax = 4 * 1024 * 1024;

/** Imports a file. @throws RowError, ServerError, OfflineError */
export async function importRows(wanted: RowImport): Promise<ImportFigures> {
  let figures: ImportFigures = { bytes: 0, read: 0, written: 0, skipped: 0 };
  const tell = (change: Partial<ImportFigures>) => {
    figures = { ...figures, ...change };
    wanted.reportProgress(figures);
  };
  let rows: FileRow[] = [];
  let length = 0;
  const write = async () => {
    const count = rows.length;
    const written = await writeBatch(wanted, rows);
    tell({ written: figures.written + written, skipped: figures.skipped + count - written });
    rows = [];
    length = 0;
  };
  const source = rowsOf(wanted.file, wanted.isExtended, (bytes) =>
    tell({ bytes: figures.bytes + bytes }),
  );
  for await (const row of source) {
    if (wanted.signal.aborted) return figures;
    rows.push(row);
    length += row.text.length;
    if (rows.length < batchRowsMax && length < batchLengthMax) continue;
    tell({ read: figures.read + rows.length });
    await write();
  }
  tell({ read: figures.read + rows.length });
  if (rows.length > 0) await write();
  return figures;
}

/** Writes a batch. @returns the number of written documents */
async function writeBatch(wanted: RowImport, rows: readonly FileRow[]): Promise<number> {
  const commands = rows.map((row) => ({ id: idOf(wanted, row), row }));
  for (;;) {
    const known = wanted.skipsExisting ? await existing(wanted, commands) : new Set<string>();
    const wanting = commands.filter(({ id }) => !known.has(id.toLowerCase()));
    if (wanting.length === 0) return 0;
    try {
      await send("POST", `${wanted.base}/bulk_docs`, {
        text: `{"Commands":[${wanting.map((one) => putOf(wanted, one)).join(",")}]}`,
        signal: wanted.signal,
      });
      return wanting.length;
    } catch (error) {
      // A document of the batch was created concurrently.
      const isOvertaken = error instanceof ServerError && error.status === 409;
      if (!isOvertaken || !wanted.skipsExisting) throw error;
    }
  }
}

/** Returns the id of a row. The server completes ids that end with "/". */
function idOf({ idField, collection }: RowImport, row: FileRow): string {
  if (idField !== "") {
    const value = (JSON.parse(row.text) as Record<string, unknown>)[idField];
    if (typeof value === "string" || typeof value === "number") return String(value);
  }
  return row.id ?? `${collection === "" ? "" : collection.toLowerCase()}/`;
}

function putOf(
  { collection, skipsExisting }: RowImport,
  { id, row }: { readonly id: string; readonly row: FileRow },
): string {
  const expected = skipsExisting && !id.endsWith("/") ? ',"ChangeVector":""' : "";
  const text = withCollection(row.text, collection);
  return `{"Type":"PUT","Id":${JSON.stringify(id)}${expected},"Document":${text}}`;
}

/** Adds the collection to a document without metadata; other text is unchanged. */
function withCollection(text: string, collection: string): string {
  if (collection === "" || "@metadata" in (JSON.parse(text) as object)) return text;
  const metadata = `"@metadata":{"@collection":${JSON.stringify(collection)}}`;
  const rest = text.slice(1).trimStart();
  return `{${metadata}${rest.startsWith("}") ? "" : ","}${rest}`;
}

/** Returns those ids, in lower case, that have a document. */
async function existing(
  { base, signal }: RowImport,
  commands: readonly { readonly id: string }[],
): Promise<Set<string>> {
  const ids = commands.map(({ id }) => id).filter((id) => !id.endsWith("/"));
  const found = new Set<string>();
  // Limited by the length of a URL.
  for (let from = 0; from < ids.length; from += 100) {
    const query = ids
      .slice(from, from + 100)
      .map((id) => `id=${encodeURIComponent(id)}`)
      .join("&");
    const { body } = await get<{ Results: ({ "@metadata": { "@id": string } } | null)[] } | null>(
      `${base}/docs?metadataOnly=true&${query}`,
      signal,
    ).catch((error: unknown) => {
      if (error instanceof ServerError && error.status === 404) return { body: null };
      throw error;
    });
    for (const row of body?.Results ?? [])
      if (row !== null) found.add(row["@metadata"]["@id"].toLowerCase());
  }
  return found;
}
