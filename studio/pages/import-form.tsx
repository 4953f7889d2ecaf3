/** Imports a dropped file after a preview: dumps are imported by the server, JSON and CSV document by document. */
import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "../base/client.ts";
import { bytes, count, counted } from "../base/format.ts";
import { useOperation } from "../base/operation.ts";
import { address, href } from "../base/router.ts";
import { type FileRow, formatOf, isDump, rowsOf } from "../base/row-files.ts";
import { type ImportFigures, importRows, type RowImport } from "../base/row-import.ts";
import { FileDrop } from "../components/file-drop.tsx";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { Progress } from "../components/progress.tsx";
import { Table } from "../components/table.tsx";
import { TextField } from "../components/text-field.tsx";
import { ItemChoice, itemsToSend, usualItems } from "./item-choice.tsx";

const accepted = ".ravendbdump,.json,.jsonl,.ndjson,.csv,.gz";

let handedOver: File | null = null;

/** Provides the file for the form that is opened next. */
export function handOver(file: File): void {
  handedOver = file;
}

export function ImportForm({ database }: { database: string }) {
  const [file, setFile] = useState<File | null>(null);
  const [isOfServer, setOfServer] = useState(false);
  const take = async (given: File) => {
    const isRows = formatOf(given.name) !== null && !(await isDump(given));
    setOfServer(!isRows);
    setFile(given);
  };
  useEffect(() => {
    if (handedOver !== null) void take(handedOver);
    handedOver = null;
  }, []);
  return (
    <section class="panel form-panel" aria-label="Import">
      <div class="body stack">
        {file === null ? (
          <FileDrop
            label="File to import"
            accept={accepted}
            hint=".ravendbdump, .json, .jsonl, .csv, also of mongoexport and with .gz"
            take={([first]) => first !== undefined && void take(first)}
          />
        ) : (
          <>
            <div class="row">
              <Icon name="file" />
              <b class="cut">{file.name}</b>
              <span class="muted nowrap">{bytes(file.size)}</span>
              <span class="grow" />
              <button type="button" class="btn quiet" onClick={() => setFile(null)}>
                Another file
              </button>
            </div>
            {isOfServer ? (
              <DumpImport key={file.name} database={database} file={file} />
            ) : (
              <RowsImport key={file.name} database={database} file={file} />
            )}
          </>
        )}
      </div>
    </section>
  );
}

interface DumpFigures {
  readonly Documents?: {
    readonly ReadCount: number;
    readonly SkippedCount?: number;
    readonly ErroredCount?: number;
  };
}

function DumpImport({ database, file }: { database: string; file: File }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const [items, setItems] = useState<ReadonlySet<string>>(usualItems);
  const [script, setScript] = useState("");
  const [id, setId] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isSending, setSending] = useState(false);
  const [result, setResult] = useState<DumpFigures | null>(null);
  // The server registers the operation shortly after the request.
  const { operation } = useOperation<DumpFigures, DumpFigures>(
    id === null || !isSending ? null : `${base}/operations/state?id=${id}`,
  );
  const start = async () => {
    setError(null);
    setSending(true);
    try {
      const { body } = await send<{ Id: number }>("GET", `${base}/operations/next-operation-id`);
      setId(body.Id);
      const form = new FormData();
      const options = {
        OperateOnTypes: itemsToSend(items),
        ...(script.trim() === "" ? {} : { TransformScript: script }),
      };
      form.append("importOptions", new Blob([JSON.stringify(options)]), "blob");
      form.append("file", file, file.name);
      const answer = await send<DumpFigures>(
        "POST",
        `${base}/smuggler/import?operationId=${body.Id}`,
        { data: form },
      );
      setResult(answer.body);
    } catch (failed) {
      setError(failed as Error);
    } finally {
      setSending(false);
    }
  };
  if (result !== null)
    return (
      <Imported
        database={database}
        file={file.name}
        written={result.Documents?.ReadCount ?? 0}
        skipped={result.Documents?.SkippedCount ?? 0}
        failed={result.Documents?.ErroredCount ?? 0}
      />
    );
  if (isSending)
    return (
      <>
        <Progress
          label={`Importing ${file.name}`}
          done={operation?.progress?.Documents?.ReadCount ?? 0}
          total={null}
          unit="documents"
        />
        <div>
          <button
            type="button"
            class="btn"
            onClick={() =>
              id !== null &&
              void send("POST", `${base}/operations/kill?id=${id}`).catch(() => undefined)
            }
          >
            Stop
          </button>
        </div>
      </>
    );
  return (
    <>
      <ItemChoice chosen={items} change={setItems} />
      <label class="form">
        Script to transform each document
        <textarea
          class="field area mono"
          rows={3}
          value={script}
          placeholder="this.Imported = true;"
          spellcheck={false}
          onInput={(event) => setScript(event.currentTarget.value)}
        />
        <small>
          Optional. <code>throw 'skip'</code> skips a document.
        </small>
      </label>
      <p class="soft">
        Documents in the file replace documents with the same id; other documents are unchanged.
      </p>
      {error !== null && <Failure error={error} />}
      <div>
        <button
          type="button"
          class="btn primary"
          disabled={items.size === 0}
          onClick={() => void start()}
        >
          Import {file.name}
        </button>
      </div>
    </>
  );
}

const previewRows = 5;
const previewColumns = 8;

function RowsImport({ database, file }: { database: string; file: File }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const [isExtended, setExtended] = useState(false);
  const preview = usePreview(file, isExtended, setExtended);
  const [collection, setCollection] = useState(
    () => address.peek().query.get("collection") ?? collectionOf(file.name),
  );
  const [idField, setIdField] = useState("");
  const [skipsExisting, setSkipsExisting] = useState(false);
  const { figures, running, ended, error, start } = useRowImport();
  if (ended !== null && figures !== null)
    return (
      <Imported
        database={database}
        file={file.name}
        written={figures.written}
        skipped={figures.skipped}
        failed={0}
        isStopped={ended === "stopped"}
      />
    );
  if (running !== null)
    return (
      <>
        <Progress
          label={`Importing ${file.name}`}
          done={figures?.bytes ?? 0}
          total={file.size}
          unit="bytes"
        />
        <div class="row muted">
          <span class="grow">
            {count(figures?.written ?? 0)} written · {count(figures?.skipped ?? 0)} skipped
          </span>
          <button type="button" class="btn quiet" onClick={() => running.abort()}>
            Stop
          </button>
        </div>
      </>
    );
  return (
    <>
      {preview.error !== null && <Failure error={preview.error} />}
      {preview.rows.length > 0 && <PreviewTable rows={preview.rows} />}
      <div class="two-fields">
        <TextField
          label="Collection"
          value={collection}
          change={setCollection}
          hint="For documents without one."
        />
        <label class="form">
          Id field
          <select
            class="field"
            value={idField}
            onChange={(event) => setIdField(event.currentTarget.value)}
          >
            <option value="">@id of the row, or generated by the server</option>
            {preview.columns.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {formatOf(file.name) !== "csv" && (
        <label class="check">
          <input
            type="checkbox"
            checked={isExtended}
            onChange={(event) => setExtended(event.currentTarget.checked)}
          />
          <span>
            Export of MongoDB: <code>_id</code> is the id, and types such as <code>$date</code> are
            converted
          </span>
        </label>
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={skipsExisting}
          onChange={(event) => setSkipsExisting(event.currentTarget.checked)}
        />
        <span>Keep existing documents unchanged</span>
      </label>
      {error !== null && (
        <>
          <Failure error={error} />
          <p class="soft">
            {counted(figures?.written ?? 0, "document")} before it{" "}
            {figures?.written === 1 ? "was" : "were"} written.
          </p>
        </>
      )}
      <div>
        <button
          type="button"
          class="btn primary"
          disabled={preview.rows.length === 0}
          onClick={() => void start({ file, base, collection, idField, skipsExisting, isExtended })}
        >
          Import {file.name}
        </button>
      </div>
    </>
  );
}

function useRowImport() {
  const [figures, setFigures] = useState<ImportFigures | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [ended, setEnded] = useState<"done" | "stopped" | null>(null);
  const [error, setError] = useState<Error | null>(null);
  // Leaving the page aborts the import, because the browser reads the file.
  useEffect(() => () => running?.abort(), [running]);
  const start = async (wanted: Omit<RowImport, "signal" | "reportProgress">) => {
    const abort = new AbortController();
    setRunning(abort);
    setError(null);
    setFigures(null);
    let shownMs = 0;
    const reportProgress = (now: ImportFigures) => {
      if (performance.now() - shownMs < 100) return;
      shownMs = performance.now();
      setFigures(now);
    };
    try {
      setFigures(await importRows({ ...wanted, signal: abort.signal, reportProgress }));
      setEnded(abort.signal.aborted ? "stopped" : "done");
    } catch (failed) {
      if (abort.signal.aborted) setEnded("stopped");
      else setError(failed as Error);
    } finally {
      setRunning(null);
    }
  };
  return { figures, running, ended, error, start };
}

/** Reads the first rows of a file, and its columns. `detected` is called for extended JSON of MongoDB. */
function usePreview(file: File, isExtended: boolean, detected: (isExtended: boolean) => void) {
  const [rows, setRows] = useState<readonly FileRow[]>([]);
  const [error, setError] = useState<Error | null>(null);
  const isDetecting = useRef(true);
  useEffect(() => {
    let isLeft = false;
    const look = async () => {
      const found: FileRow[] = [];
      try {
        for await (const row of rowsOf(file, isExtended, () => undefined)) {
          found.push(row);
          if (isDetecting.current && /^\{\s*"_id"\s*:/.test(row.text)) detected(true);
          isDetecting.current = false;
          if (found.length >= previewRows || isLeft) break;
        }
      } catch (failed) {
        if (!isLeft) setError(failed as Error);
      }
      if (!isLeft) setRows(found);
    };
    void look();
    return () => {
      isLeft = true;
    };
  }, [file, isExtended]);
  const columns = [...new Set(rows.flatMap(({ text }) => Object.keys(JSON.parse(text) as object)))];
  return { rows, error, columns: columns.filter((name) => name !== "@metadata") };
}

function PreviewTable({ rows }: { rows: readonly FileRow[] }) {
  const documents = rows.map(({ text }) => JSON.parse(text) as Record<string, unknown>);
  const names = [...new Set(documents.flatMap((one) => Object.keys(one)))].filter(
    (name) => name !== "@metadata",
  );
  const shown = names.slice(0, previewColumns);
  return (
    <div class="panel scroll">
      <Table
        kind="data"
        label="The first rows"
        columns={[
          "Id",
          ...shown,
          names.length > shown.length && `and ${names.length - shown.length} more`,
        ]}
      >
        {documents.map((one, at) => (
          <tr key={rows[at]?.line}>
            <td class="mono">{rows[at]?.id ?? <span class="nil">generated</span>}</td>
            {shown.map((name) => (
              <td key={name}>{cellText(one[name])}</td>
            ))}
            {names.length > shown.length && <td />}
          </tr>
        ))}
      </Table>
    </div>
  );
}

function cellText(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value).slice(0, 200);
}

/** Suggests a collection: `Orders` for `orders-2025.jsonl`. */
function collectionOf(name: string): string {
  const word = /^[\p{L}_]+/u.exec(name)?.[0] ?? "";
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

function Imported({
  database,
  file,
  written,
  skipped,
  failed,
  isStopped = false,
}: {
  database: string;
  file: string;
  written: number;
  skipped: number;
  failed: number;
  isStopped?: boolean;
}) {
  const rest = [
    ...(skipped > 0 ? [`${count(skipped)} skipped`] : []),
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
  ].join(", ");
  return (
    <div class={failed > 0 ? "note warn" : "note"} role="status">
      <Icon name={failed > 0 ? "warn" : "check"} />
      <span class="grow">
        {isStopped ? "Stopped. " : ""}
        {counted(written, "document")} imported from {file}
        {rest === "" ? "." : `, ${rest}.`}
      </span>
      <a class="btn" href={href(["db", database, "docs"])}>
        Show documents
      </a>
    </div>
  );
}
