/** The result of a query: a table, a chart, a map, JSON, or included documents. */
import { useMemo } from "preact/hooks";
import { count, counted, milliseconds } from "../../base/format.ts";
import { href } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Empty } from "../../components/messages.tsx";
import type { Column } from "../../components/virtual-table.tsx";
import { type ResultRow, valueCell } from "../result-cells.tsx";
import { idOf, ResultTable, type Show } from "../result-table.tsx";
import { ResultChart } from "./query-chart.tsx";
import { ResultMap, type SpatialAnswer } from "./query-map.tsx";

export interface Answer extends SpatialAnswer {
  readonly Results: readonly ResultRow[];
  readonly Includes: Readonly<Record<string, unknown>>;
  readonly TotalResults: number;
  readonly DurationInMs: number;
  readonly IndexName: string | null;
  readonly IsStale: boolean;
}

export interface Asked {
  readonly answer: Answer;
  readonly ms: number;
  /** Body of the request. */
  readonly request: { readonly Query: string; readonly QueryParameters: object };
}

export const views = ["table", "chart", "map", "json", "includes"] as const;
export type View = (typeof views)[number];

const columnsMax = 40;

export function Results({
  asked: { answer, ms, request },
  view,
  database,
  waitForIndex,
}: {
  asked: Asked;
  view: View;
  database: string;
  waitForIndex: () => void;
}) {
  const rows = answer.Results;
  const columns = useMemo(() => columnsOf(rows, database), [rows, database]);
  const text = useMemo(() => (view === "json" ? JSON.stringify(rows, null, 4) : ""), [rows, view]);
  return (
    <>
      {answer.IsStale && (
        <p class="note warn edge">
          <Icon name="clock" />
          <span class="grow">
            {answer.IndexName} is stale: results may miss the newest documents.
          </span>
          <button type="button" class="btn" onClick={waitForIndex}>
            Wait for the index
          </button>
        </p>
      )}
      {view === "includes" && <Includes includes={answer.Includes} database={database} />}
      {view !== "includes" && rows.length === 0 && <Empty icon="find" title="Nothing found" />}
      {view === "json" && rows.length > 0 && <pre class="source scroll">{text}</pre>}
      {view === "table" && rows.length > 0 && (
        <ResultTable label="Results" rows={rows} columnsOf={columns} />
      )}
      {view === "chart" && rows.length > 0 && <ResultChart rows={rows} />}
      {view === "map" && rows.length > 0 && (
        <ResultMap rows={rows} spatial={answer} database={database} />
      )}
      <div class="status" role="status">
        <span>
          {counted(answer.TotalResults, "result")}
          {rows.length < answer.TotalResults && `, the first ${count(rows.length)} here`}
        </span>
        <span title="On the server, and including the network">
          {milliseconds(answer.DurationInMs)} of {milliseconds(ms)}
        </span>
        {answer.IndexName !== null && <span class="cut">{answer.IndexName}</span>}
        <span class="grow" />
        <Streams request={request} database={database} />
        {!answer.IsStale && (
          <span class="state ok">
            <Icon name="check" />
            Up to date
          </span>
        )}
      </div>
    </>
  );
}

/** Downloads all rows, streamed from the server. */
function Streams({ request, database }: { request: Asked["request"]; database: string }) {
  const to = (format: string) => {
    const query = new URLSearchParams({ query: request.Query, format });
    const parameters = JSON.stringify(request.QueryParameters);
    if (parameters !== "{}") query.set("parameters", parameters);
    return `/databases/${encodeURIComponent(database)}/streams/queries?${query}`;
  };
  return (
    <span>
      <span class="wide-only">Stream all to a file: </span>
      <a href={to("csv")} download={`${database}.csv`}>
        CSV
      </a>
      {", "}
      <a href={to("jsonl")} download={`${database}.jsonl`}>
        JSON Lines
      </a>
    </span>
  );
}

const includesMax = 500;

function Includes({ includes, database }: { includes: Answer["Includes"]; database: string }) {
  const all = Object.entries(includes);
  if (all.length === 0) {
    return (
      <Empty icon="link" title="No included documents">
        <p>
          <code>include Company</code> at the end of a query includes the documents that a field
          refers to.
        </p>
      </Empty>
    );
  }
  return (
    <div class="scroll inset grow stack">
      {all.slice(0, includesMax).map(([id, document]) => (
        <details key={id}>
          <summary>
            <a class="idlink" href={href(["db", database, "doc", id])}>
              {id}
            </a>
          </summary>
          <pre class="source">{JSON.stringify(document, null, 4)}</pre>
        </details>
      ))}
      {all.length > includesMax && (
        <p class="soft">and {counted(all.length - includesMax, "more document")}</p>
      )}
    </div>
  );
}

function columnsOf(rows: readonly ResultRow[], database: string) {
  const sample = rows.slice(0, 100);
  const names = [...new Set(sample.flatMap((row) => Object.keys(row)))].filter(
    (name) => name !== "@metadata",
  );
  const hasIds = sample.some((row) => idOf(row) !== "");
  const id: Column<ResultRow> = {
    key: "@id",
    title: "Id",
    width: 200,
    cell: (row) => valueCell(idOf(row), database, { isId: true }),
  };
  const fieldOf = (name: string, show: Show): Column<ResultRow> => {
    const lengths = sample.map((row) =>
      typeof row[name] === "object" ? 0 : String(row[name] ?? "").length,
    );
    const longest = Math.max(name.length, ...lengths);
    return {
      key: name,
      title: name,
      width: Math.min(320, Math.max(90, 8 * longest + 26)),
      isNumber: sample.some((row) => typeof row[name] === "number"),
      cell: (row) =>
        valueCell(row[name], database, {
          show: (value) => show(`${idOf(row)} ${name}`, value),
        }),
    };
  };
  return (show: Show) => [
    ...(hasIds ? [id] : []),
    ...names.slice(0, columnsMax).map((name) => fieldOf(name, show)),
  ];
}
