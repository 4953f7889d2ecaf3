/** Streams the documents of a query to a file, as CSV or JSON Lines. */
import { useEffect, useRef, useState } from "preact/hooks";
import { openStream } from "../../base/client.ts";
import { count, counted } from "../../base/format.ts";
import { Failure } from "../../components/messages.tsx";
import { Popover } from "../../components/popover.tsx";
import { csvLine, valueAt } from "../../json/csv.ts";
import { type JsonMembers, memberOf, parseSource, printSource } from "../../json/json-source.ts";
import { StreamedRows } from "../../json/streamed-rows.ts";

interface ExportAsk {
  readonly base: string;
  readonly text: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** File name without extension. */
  readonly name: string;
  /** CSV columns besides the id. */
  readonly fields: readonly string[];
}

type Format = "csv" | "jsonl";

/** Approximate size of the chunks into which lines are joined, in characters. */
const chunkCharacters = 1 << 18;

export function Export({ ask, total }: { ask: ExportAsk; total: number }) {
  const [format, setFormat] = useState<Format>("csv");
  const [asStored, setAsStored] = useState(false);
  const [done, setDone] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const start = async (close: () => void) => {
    const abort = new AbortController();
    running.current = abort;
    setError(null);
    setDone(0);
    try {
      await exported(ask, format, asStored, abort.signal, setDone);
      close();
    } catch (failed) {
      if (!abort.signal.aborted) setError(failed as Error);
    } finally {
      setDone(null);
    }
  };
  return (
    <Popover text="Export" icon="backup">
      {(close) => (
        <>
          <fieldset class="seg">
            <legend class="hidden-label">Format</legend>
            {(["csv", "jsonl"] as const).map((one) => (
              <button
                key={one}
                type="button"
                aria-pressed={format === one}
                onClick={() => setFormat(one)}
              >
                {one === "csv" ? "CSV" : "JSON lines"}
              </button>
            ))}
          </fieldset>
          {format === "csv" && (
            <label class="row">
              <input
                type="checkbox"
                checked={asStored}
                onChange={(event) => setAsStored(event.currentTarget.checked)}
              />
              <span>As stored</span>
            </label>
          )}
          {format === "csv" && (
            <p class="muted">
              {asStored
                ? "Values like =1+1 are unchanged: spreadsheet programs may evaluate them as formulas."
                : "Values that begin with = + - @ are prefixed with ', so that they are not evaluated as formulas."}
            </p>
          )}
          {error !== null && <Failure error={error} />}
          {done === null ? (
            <button type="button" class="btn primary" onClick={() => void start(close)}>
              Export {counted(total, "document")}
            </button>
          ) : (
            <div class="row">
              <span class="grow">{count(done)} written</span>
              <button type="button" class="btn" onClick={() => running.current?.abort()}>
                Cancel
              </button>
            </div>
          )}
        </>
      )}
    </Popover>
  );
}

async function exported(
  { base, text, parameters, name, fields }: ExportAsk,
  format: Format,
  asStored: boolean,
  signal: AbortSignal,
  tell: (rows: number) => void,
): Promise<void> {
  const json = { Query: text, QueryParameters: parameters };
  const body = await openStream("POST", `${base}/streams/queries`, { json, signal });
  const reader = body
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  const streamed = new StreamedRows();
  const pieces: Blob[] = [];
  let lines = format === "csv" ? csvLine(["id", ...fields], true) : "";
  let rows = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    for (const row of streamed.push(value)) {
      rows++;
      const members = parseSource(row) as JsonMembers;
      lines +=
        format === "csv"
          ? csvLine(
              [
                memberOf(members.get("@metadata"), "@id"),
                ...fields.map((path) => valueAt(members, path)),
              ],
              asStored,
            )
          : `${printSource(members, 0)}\n`;
      if (lines.length < chunkCharacters) continue;
      pieces.push(new Blob([lines]));
      lines = "";
    }
    tell(rows);
  }
  pieces.push(new Blob([lines]));
  const type = format === "csv" ? "text/csv" : "application/x-ndjson";
  save(new Blob(pieces, { type }), `${name}.${format}`);
}

/** Saves a file in the browser. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: removes control characters from file names
  link.download = name.replace(/[/\\\u0000-\u001f\u007f]/g, "-").replace(/^\.+/, "");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
