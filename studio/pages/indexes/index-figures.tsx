/** The content of an index, and its previous definitions. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, send } from "../../base/client.ts";
import { ago, count, counted } from "../../base/format.ts";
import { useResource } from "../../base/resource.ts";
import { address, setQuery } from "../../base/router.ts";
import { Diff } from "../../components/diff.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { Separator } from "../../components/separator.tsx";
import { SearchInput } from "../../components/text-field.tsx";
import type { Column } from "../../components/virtual-table.tsx";
import { type ResultRow, valueCell } from "../result-cells.tsx";
import { ResultTable, type Show } from "../result-table.tsx";
import { codeOf } from "./index-definition.tsx";
import type { Definition, IndexStats } from "./index-info.ts";
import { TermHistogram } from "./term-histogram.tsx";

interface Properties {
  readonly database: string;
  readonly index: IndexStats;
  readonly definition: Definition;
}

const baseOf = (database: string) => `/databases/${encodeURIComponent(database)}`;
const termsOnPage = 100;

export function TermsTab({ database, index }: Properties) {
  const base = baseOf(database);
  const name = encodeURIComponent(index.Name);
  const fields = useResource<readonly { readonly Name: string }[]>(
    `${base}/indexes/debug?name=${name}&op=entries-fields`,
  );
  const names = useMemo(() => (fields.body ?? []).map(({ Name }) => Name), [fields.body]);
  const asked = address.value.query.get("field");
  const field = names.find((one) => one === asked) ?? names[0];
  const [prefix, setPrefix] = useState("");
  if (fields.error !== undefined) return <Failure error={fields.error} />;
  if (fields.body === undefined) return <Skeleton rows={4} />;
  return (
    <>
      <div class="tools">
        <label class="row">
          Field
          <select
            class="btn"
            value={field}
            onChange={(event) => setQuery({ field: event.currentTarget.value })}
          >
            {names.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <div class="field calm">
          <SearchInput
            label="Terms that begin with"
            placeholder="begin with"
            value={prefix}
            change={setPrefix}
          />
        </div>
      </div>
      {field === undefined ? (
        <Empty icon="index" title="The index has no fields yet" />
      ) : (
        <div class="terms">
          <Terms
            key={`${field}\n${prefix}`}
            path={`${base}/indexes/terms?name=${name}&field=${encodeURIComponent(field)}&pageSize=${termsOnPage}`}
            prefix={prefix.toLowerCase()}
          />
          {field !== "id()" && (
            <div class="scroll inset">
              <TermHistogram
                key={field}
                base={base}
                index={index.Name}
                field={field}
                version={index.EntriesCount}
              />
            </div>
          )}
        </div>
      )}
    </>
  );
}

/** The terms of a field in order, loaded page by page. */
function Terms({ path, prefix }: { path: string; prefix: string }) {
  const [terms, setTerms] = useState<readonly string[]>([]);
  const [isWhole, setWhole] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const more = async (after: string, known: readonly string[]) => {
    try {
      const { body } = await get<{ Terms: readonly string[] }>(
        `${path}&fromValue=${encodeURIComponent(after)}`,
      );
      const fitting = body.Terms.filter((term) => term.startsWith(prefix));
      setTerms([...known, ...fitting]);
      setWhole(body.Terms.length < termsOnPage || fitting.length < body.Terms.length);
    } catch (failed) {
      setError(failed as Error);
    }
  };
  // Load the terms after the text that precedes the prefix, because the prefix itself may be a term.
  useEffect(() => void more(before(prefix), []), [path, prefix]);
  if (error !== null) return <Failure error={error} />;
  return (
    <div class="scroll grow">
      <table aria-label="Terms">
        <tbody>
          {terms.map((term) => (
            <tr key={term}>
              <td class="mono">{term}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {isWhole ? (
        <p class="soft inset">
          {terms.length === 0 ? "No terms found." : counted(terms.length, "term")}
        </p>
      ) : (
        terms.length > 0 && (
          <p class="inset">
            <button type="button" class="btn" onClick={() => void more(terms.at(-1) ?? "", terms)}>
              Next {termsOnPage}
            </button>
          </p>
        )
      )}
    </div>
  );
}

/** Returns a text that sorts immediately before all texts with `prefix`. */
function before(prefix: string): string {
  if (prefix === "") return "";
  const last = prefix.charCodeAt(prefix.length - 1);
  return last === 0
    ? prefix.slice(0, -1)
    : `${prefix.slice(0, -1)}${String.fromCharCode(last - 1)}\uffff`;
}

interface EntriesReply {
  readonly Results: readonly ResultRow[];
  readonly TotalResults: number;
}
const entriesMax = 500;

export function EntriesTab({ database, index }: Properties) {
  const [reply, setReply] = useState<EntriesReply | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const { Name, EntriesCount } = index;
  useEffect(() => {
    const abort = new AbortController();
    const json = { Query: `from index '${Name.replaceAll("'", "\\'")}'`, PageSize: entriesMax };
    send<EntriesReply>("POST", `${baseOf(database)}/queries?debug=entries`, {
      json,
      signal: abort.signal,
    }).then(
      ({ body }) => setReply(body),
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [database, Name, EntriesCount]);
  const rows = reply?.Results ?? [];
  const columns = useMemo(() => entryColumns(rows, database), [rows, database]);
  if (error !== null) return <Failure error={error} />;
  if (reply === null) return <Skeleton rows={6} />;
  if (rows.length === 0) return <Empty icon="index" title="The index has no entries" />;
  return (
    <>
      <ResultTable label="Entries" rows={rows} columnsOf={columns} />
      <div class="status" role="status">
        {counted(reply.TotalResults, "entry", "entries")}
        {rows.length < reply.TotalResults && `, the first ${count(rows.length)} here`}
      </div>
    </>
  );
}

function entryColumns(rows: readonly ResultRow[], database: string) {
  const names = [...new Set(rows.slice(0, 100).flatMap((one) => Object.keys(one)))];
  names.sort((a, b) => Number(b === "id()") - Number(a === "id()"));
  return (show: Show): Column<ResultRow>[] =>
    names.map((name) => ({
      key: name,
      title: name,
      width: 200,
      cell: (one) =>
        valueCell(one[name], database, {
          isId: name === "id()",
          show: (value) => show(name, value),
        }),
    }));
}

interface History {
  readonly History: readonly {
    readonly Definition: Definition;
    readonly CreatedAt: string;
    readonly Source: string;
  }[];
}

export function HistoryTab({ database, index, definition }: Properties) {
  const { body, error } = useResource<History>(
    `${baseOf(database)}/indexes/history?name=${encodeURIComponent(index.Name)}`,
  );
  const [chosen, setChosen] = useState(0);
  if (error !== undefined) return <Failure error={error} />;
  if (body === undefined) return <Skeleton rows={3} />;
  const all = body.History;
  const one = all[chosen];
  const older = all[chosen + 1];
  const nowMs = Date.now();
  return (
    <div class="split">
      <div class="scroll">
        <ul class="picks" aria-label="Deployed definitions">
          {all.map(({ CreatedAt, Source }, at) => (
            <li key={CreatedAt}>
              <button
                type="button"
                aria-pressed={at === chosen}
                onClick={() => setChosen(at)}
                title={CreatedAt}
              >
                <b>{ago(CreatedAt, nowMs)}</b>
                <small>
                  from {Source}
                  {at === 0 && ", current"}
                </small>
              </button>
            </li>
          ))}
        </ul>
      </div>
      <Separator name="index-history" label="Resize definitions and difference" />
      <div class="scroll inset">
        {one !== undefined && (
          <Diff
            before={older === undefined ? codeOf(definition) : codeOf(older.Definition)}
            after={codeOf(one.Definition)}
            language="text"
            title={older === undefined ? "Current → this one" : "Previous → this one"}
          />
        )}
      </div>
    </div>
  );
}
