/** Exports a database, or some of its collections, to a file. */
import { useState } from "preact/hooks";
import { send } from "../base/client.ts";
import { saveDownload } from "../base/download.ts";
import { bytes } from "../base/format.ts";
import { useResource } from "../base/resource.ts";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { ItemChoice, itemsToSend, usualItems } from "./item-choice.tsx";

const formats = [
  { key: "dump", text: "Everything (.ravendbdump)" },
  { key: "jsonl", text: "Documents as JSON Lines (.jsonl)" },
  { key: "csv", text: "Documents as a table (.csv)" },
] as const;
type Format = (typeof formats)[number]["key"];

export function ExportForm({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const stats = useResource<{ Collections: Record<string, number> }>(`${base}/collections/stats`);
  const names = Object.entries(stats.body?.Collections ?? {})
    .filter(([, documents]) => documents > 0)
    .map(([name]) => name);
  const [format, setFormat] = useState<Format>("dump");
  const [items, setItems] = useState<ReadonlySet<string>>(usualItems);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [script, setScript] = useState("");
  const { running, received, saved, error, start, setError } = useExport();
  const one = [...chosen][0];
  const checkScript = async () => {
    if (script.trim() === "" || format !== "dump") return;
    try {
      await send("POST", `${base}/smuggler/validate-options`, {
        json: { TransformScript: script },
      });
      setError(null);
    } catch (failed) {
      setError(failed as Error);
    }
  };
  const toggle = (name: string) => {
    const next = new Set(format === "csv" ? [] : chosen);
    if (!chosen.has(name)) next.add(name);
    else next.delete(name);
    setChosen(next);
  };
  const needsOne = format === "csv" && one === undefined;
  return (
    <section class="panel form-panel" aria-label="Export">
      <div class="body stack">
        <label class="form">
          As
          <select
            class="field"
            value={format}
            onChange={(event) => {
              setFormat(event.currentTarget.value as Format);
              setChosen(new Set());
            }}
          >
            {formats.map(({ key, text }) => (
              <option key={key} value={key}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {format === "dump" && <ItemChoice chosen={items} change={setItems} />}
        {names.length > 0 && (
          <fieldset class="choices">
            <legend>{format === "csv" ? "Collection" : "Only these collections"}</legend>
            {names.map((name) => (
              <label key={name} class="check">
                <input
                  type={format === "csv" ? "radio" : "checkbox"}
                  name="collection"
                  checked={chosen.has(name)}
                  onChange={() => toggle(name)}
                />
                <span class="cut">{name}</span>
              </label>
            ))}
          </fieldset>
        )}
        {format === "dump" && (
          <label class="form">
            Script to transform each document
            <textarea
              class="field area mono"
              rows={3}
              value={script}
              placeholder="delete this.Secret;"
              spellcheck={false}
              onInput={(event) => setScript(event.currentTarget.value)}
              onBlur={() => void checkScript()}
            />
            <small>Optional; the documents in the database are unchanged.</small>
          </label>
        )}
        <p class="soft">
          {format === "dump"
            ? "A consistent snapshot, compressed with gzip. RavenDB can import it."
            : "A consistent snapshot, uncompressed. Only dumps contain attachments, counters and revisions."}
        </p>
        {error !== null && <Failure error={error} />}
        {saved !== null && (
          <div class="note" role="status">
            <Icon name="check" />
            <span>
              {saved} was downloaded, {bytes(received)}.
            </span>
          </div>
        )}
        <div class="row">
          {running === null ? (
            <button
              type="button"
              class="btn primary"
              disabled={needsOne || (format === "dump" && items.size === 0)}
              onClick={() =>
                void start(requestOf({ base, database, format, items, chosen, script }))
              }
            >
              Export {database}
            </button>
          ) : (
            <>
              <button type="button" class="btn" onClick={() => running.abort()}>
                Stop
              </button>
              <span class="muted" aria-live="off">
                {bytes(received)} received
              </span>
            </>
          )}
        </div>
      </div>
    </section>
  );
}

function useExport() {
  const [running, setRunning] = useState<AbortController | null>(null);
  const [received, setReceived] = useState(0);
  const [saved, setSaved] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const start = async (request: ReturnType<typeof requestOf>) => {
    const abort = new AbortController();
    setRunning(abort);
    setReceived(0);
    setSaved(null);
    setError(null);
    try {
      setSaved(await saveDownload({ ...request, signal: abort.signal, received: setReceived }));
    } catch (failed) {
      if (!abort.signal.aborted) setError(failed as Error);
    } finally {
      setRunning(null);
    }
  };
  return { running, received, saved, error, start, setError };
}

interface Wanted {
  readonly base: string;
  readonly database: string;
  readonly format: Format;
  readonly items: ReadonlySet<string>;
  readonly chosen: ReadonlySet<string>;
  readonly script: string;
}

function requestOf({ base, database, format, items, chosen, script }: Wanted) {
  const collections = [...chosen];
  if (format === "dump")
    return {
      method: "POST",
      path: `${base}/smuggler/export`,
      json: {
        OperateOnTypes: itemsToSend(items),
        ...(collections.length === 0 ? {} : { Collections: collections }),
        ...(script.trim() === "" ? {} : { TransformScript: script }),
      },
      name: `${database}.ravendbdump`,
    };
  if (format === "jsonl" && collections.length === 0)
    return { method: "GET", path: `${base}/streams/docs?format=jsonl`, name: `${database}.jsonl` };
  const quoted = collections.map((name) => JSON.stringify(name));
  const Query =
    quoted.length === 1
      ? `from ${quoted[0]}`
      : `from @all_docs where @metadata.@collection in (${quoted.join(", ")})`;
  return {
    method: "POST",
    path: `${base}/streams/queries?format=${format}`,
    json: { Query },
    name: `${collections.length === 1 ? collections[0] : database}.${format}`,
    // Each line of a query stream contains the document as a member.
    ...(format === "jsonl" ? { line: documentOf } : {}),
  };
}

function documentOf(line: string): string {
  if (line.startsWith('{"Stats":')) return "";
  return line.startsWith('{"Item":') ? line.slice('{"Item":'.length, -1) : line;
}
