/** Page 4: asks in RQL, and shows the answer as a table or as JSON. The text and its parameters are in the address. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, send } from "../base/client.ts";
import { count, counted, milliseconds } from "../base/format.ts";
import { address, href, setQuery } from "../base/router.ts";
import { Icon } from "../components/icon.tsx";
import { Empty, Failure } from "../components/messages.tsx";
import { type Column, VirtualTable } from "../components/virtual-table.tsx";
import { useEditedText } from "../editor/edited-text.ts";
import { CodeEditor } from "../editor/editor.tsx";
import { usePage } from "../shell/page.ts";
import { complete, forgetFields } from "./query-completion.ts";
import { type ResultRow, valueCell } from "./result-cells.tsx";

interface Answer {
  readonly Results: readonly ResultRow[];
  readonly TotalResults: number;
  readonly DurationInMs: number;
  readonly IndexName: string | null;
  readonly IsStale: boolean;
}

interface Asked {
  readonly answer: Answer;
  readonly ms: number;
}

const pageSize = 1000;
const columnsMax = 40;

export function QueryPage({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  usePage("query", [{ text: database, to: href(["db", database, "docs"]) }, { text: "Query" }]);
  const { query } = address.value;
  const edited = useEditedText(query.get("q") ?? "");
  const { text } = edited;
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() => givenValues(query));
  const [asked, setAsked] = useState<Asked | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const view = query.get("view") ?? "table";
  const names = useMemo(() => parametersOf(text), [text]);
  const isUpdate = /\bupdate\s*\{/i.test(text);

  useEffect(() => () => forgetFields(), []);
  const run = async () => {
    if (text.trim() === "" || isUpdate) return;
    running?.abort();
    const abort = new AbortController();
    setRunning(abort);
    setError(null);
    const given = Object.fromEntries(names.map((name) => [`p.${name}`, values[name]]));
    const old = [...query.keys()].filter((key) => key.startsWith("p."));
    setQuery({ ...Object.fromEntries(old.map((key) => [key, undefined])), q: text, ...given });
    const startedMs = performance.now();
    try {
      const parameters = Object.fromEntries(
        names.map((name) => [name, typedValue(values[name] ?? "")]),
      );
      const json = { Query: text, QueryParameters: parameters, PageSize: pageSize };
      const { body } = await send<Answer>("POST", `${base}/queries`, {
        json,
        signal: abort.signal,
      });
      setAsked({ answer: body, ms: performance.now() - startedMs });
    } catch (failed) {
      if (!abort.signal.aborted) setError(failed as Error);
    } finally {
      setRunning((now) => (now === abort ? null : now));
    }
  };
  // An address that was shared shows its answer.
  const first = useRef(run);
  useEffect(() => void first.current(), []);

  return (
    <div class="pane">
      <div class="tools">
        <h1>Query</h1>
        <span class="grow" />
        <fieldset class="seg">
          <legend class="hidden-label">Show the results as</legend>
          {["table", "json"].map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={view === one}
              onClick={() => setQuery({ view: one })}
            >
              {one === "table" ? "Table" : "JSON"}
            </button>
          ))}
        </fieldset>
        {running === null ? (
          <button
            type="button"
            class="btn primary"
            onClick={() => void run()}
            disabled={text.trim() === "" || isUpdate}
          >
            <Icon name="play" />
            Run
          </button>
        ) : (
          <button type="button" class="btn" onClick={() => running.abort()}>
            Cancel
          </button>
        )}
      </div>
      <div class={names.length > 0 ? "ask with-parameters" : "ask"}>
        <CodeEditor
          language="rql"
          label="RQL query"
          text={text}
          revision={edited.revision}
          changed={edited.typed}
          commands={{ "Mod-Enter": () => void run() }}
          complete={(word, before) => complete(base, word, before)}
        />
        {names.length > 0 && <Parameters names={names} values={values} change={setValues} />}
      </div>
      {isUpdate && (
        <p class="note warn edge">
          <Icon name="warn" />
          This changes documents: a query only reads. Patches have a command:{" "}
          <code>jackdaw patch</code>.
        </p>
      )}
      {error !== null && <Failure error={error} retry={() => void run()} />}
      {asked === null && error === null && running === null && (
        <Examples base={base} use={edited.replace} />
      )}
      {asked !== null && (
        <Results asked={asked} view={view} database={database} isBusy={running !== null} />
      )}
    </div>
  );
}

function Parameters({
  names,
  values,
  change,
}: {
  names: readonly string[];
  values: Readonly<Record<string, string>>;
  change: (values: Readonly<Record<string, string>>) => void;
}) {
  return (
    <fieldset class="parameters" aria-label="Parameters">
      {names.map((name) => (
        <label key={name} class="form">
          <code>${name}</code>
          <div class="field">
            <input
              class="mono"
              aria-label={`Value of $${name}`}
              placeholder="a text, or JSON"
              value={values[name] ?? ""}
              onInput={(event) => change({ ...values, [name]: event.currentTarget.value })}
            />
          </div>
        </label>
      ))}
    </fieldset>
  );
}

function Examples({ base, use }: { base: string; use: (text: string) => void }) {
  const [collections, setCollections] = useState<readonly string[]>([]);
  useEffect(() => {
    get<{ Collections: Record<string, number> }>(`${base}/collections/stats`).then(
      ({ body }) => {
        const found = Object.entries(body.Collections).filter(([name]) => !name.startsWith("@"));
        setCollections(found.sort(([, a], [, b]) => b - a).map(([name]) => name));
      },
      () => undefined,
    );
  }, [base]);
  const name = collections[0];
  return (
    <Empty icon="query" title="Ask in RQL">
      <p>
        <kbd>Ctrl Enter</kbd> runs it. A name with a dollar sign is a parameter.
      </p>
      {name !== undefined &&
        [
          `from ${name}`,
          `from ${name} order by id() desc limit 10`,
          `from ${name} where exists(Name)`,
        ].map((text) => (
          <button key={text} type="button" class="btn" onClick={() => use(text)}>
            <code>{text}</code>
          </button>
        ))}
    </Empty>
  );
}

function Results({
  asked: { answer, ms },
  view,
  database,
  isBusy,
}: {
  asked: Asked;
  view: string;
  database: string;
  isBusy: boolean;
}) {
  const rows = answer.Results;
  const columns = useMemo(() => columnsOf(rows, database), [rows, database]);
  const row = useCallback((index: number) => rows[index], [rows]);
  const text = useMemo(() => (view === "json" ? JSON.stringify(rows, null, 4) : ""), [rows, view]);
  return (
    <div class="pane results" aria-busy={isBusy}>
      {rows.length === 0 && <Empty icon="find" title="Nothing found" />}
      {rows.length > 0 && view === "json" && <pre class="source scroll">{text}</pre>}
      {rows.length > 0 && view !== "json" && (
        <VirtualTable
          label="Results"
          columns={columns}
          total={rows.length}
          row={row}
          need={noNeed}
          open={noNeed}
        />
      )}
      <div class="status" role="status">
        <span>
          {counted(answer.TotalResults, "result")}
          {rows.length < answer.TotalResults && `, the first ${count(rows.length)} here`}
        </span>
        {answer.IndexName !== null && <span>{answer.IndexName}</span>}
        <span class="grow" />
        {answer.IsStale && (
          <span class="state warn">
            <Icon name="clock" />
            The index is behind: results may miss the newest
          </span>
        )}
        <span title="On the server, and with the way there and back">
          {milliseconds(answer.DurationInMs)} of {milliseconds(ms)}
        </span>
      </div>
    </div>
  );
}

const noNeed = () => undefined;

function columnsOf(rows: readonly ResultRow[], database: string): Column<ResultRow>[] {
  const sample = rows.slice(0, 100);
  const names = [...new Set(sample.flatMap((row) => Object.keys(row)))].filter(
    (name) => name !== "@metadata",
  );
  const hasIds = sample.some((row) => row["@metadata"]?.["@id"] != null);
  const id: Column<ResultRow> = {
    key: "@id",
    title: "Id",
    width: 200,
    cell: (row) => valueCell(row["@metadata"]?.["@id"], database, true),
  };
  const fields = names.slice(0, columnsMax).map((name): Column<ResultRow> => {
    const lengths = sample.map((row) =>
      typeof row[name] === "object" ? 0 : String(row[name] ?? "").length,
    );
    const longest = Math.max(name.length, ...lengths);
    return {
      key: name,
      title: name,
      width: Math.min(320, Math.max(90, 8 * longest + 26)),
      isNumber: sample.some((row) => typeof row[name] === "number"),
      cell: (row) => valueCell(row[name], database),
    };
  });
  return hasIds ? [id, ...fields] : fields;
}

/** The names behind `$` in the text, outside of quotes. */
function parametersOf(text: string): string[] {
  const bare = text.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\/\/.*|\/\*[\s\S]*?\*\//g, " ");
  return [...new Set([...bare.matchAll(/\$([A-Za-z_]\w*)/g)].map(([, name]) => name as string))];
}

function givenValues(query: URLSearchParams): Record<string, string> {
  const given = [...query].filter(([key]) => key.startsWith("p."));
  return Object.fromEntries(given.map(([key, value]) => [key.slice(2), value]));
}

/** What is typed for a parameter: JSON where it is, else a text. */
function typedValue(typed: string): unknown {
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}
