/** Page 8: performance plots of the last minutes, hour or day, or of the hour around a time; and current requests. */
import { useMemo, useState } from "preact/hooks";
import { bytes, shortCount, when } from "../base/format.ts";
import { identity, may } from "../base/identity.ts";
import { lazy } from "../base/lazy.tsx";
import { useResource } from "../base/resource.ts";
import { address, href, setQuery } from "../base/router.ts";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { numeric, Table } from "../components/table.tsx";
import { database as lastDatabase } from "../shell/database.ts";
import { usePage } from "../shell/page.ts";
import { Requests, type SlowQuery } from "./performance-requests.tsx";

const Plot = lazy(async () => (await import("../components/plot.tsx")).Plot);

interface HttpThread {
  readonly BusyShare: number;
  readonly Connections: number;
  readonly QueuedBytes: number;
}

interface Figures {
  /** Of the server; empty if HTTP runs on the engine thread. */
  readonly HttpThreads?: readonly HttpThread[];
  readonly StepInMs: number;
  readonly From: string;
  /** Undefined for servers with another format at this address. */
  readonly Columns?: Readonly<Record<string, readonly (number | null)[]>>;
  readonly SlowQueries?: readonly SlowQuery[];
  readonly Events: readonly {
    readonly At: string;
    readonly Kind: string;
    readonly Text: string;
    readonly Database: string | null;
  }[];
}

const ranges = [
  { key: "5m", text: "5 min", pollMs: 1_000 },
  { key: "1h", text: "1 h", pollMs: 10_000 },
  { key: "24h", text: "24 h", pollMs: 60_000 },
] as const;

const noQueries: readonly SlowQuery[] = [];

/** Half of the shown range around a time, in milliseconds. */
const aroundMs = 1_800_000;

interface PlotKind {
  readonly title: string;
  readonly unit: string;
  readonly columns: readonly (readonly [column: string, name: string])[];
  /** Column shown as text beside the plot. */
  readonly beside?: readonly [column: string, unit: string];
  readonly isBytes?: true;
  /** True for a plot of the server, which is also shown on the page of a database. */
  readonly isOfServer?: true;
  format(value: number): string;
}

const ms = (value: number) => (value < 10 ? value.toFixed(1) : shortCount(Math.round(value)));
const rate = (value: number) =>
  value < 10 ? String(Math.round(value * 10) / 10) : shortCount(value);

const kinds: readonly PlotKind[] = [
  {
    title: "Requests",
    unit: "per second",
    columns: [
      ["Requests", "all"],
      ["Failed", "failed"],
    ],
    format: rate,
  },
  {
    title: "Latency",
    unit: "ms",
    columns: [
      ["LatencyP99", "p99"],
      ["LatencyP95", "p95"],
      ["LatencyP50", "p50"],
    ],
    format: ms,
  },
  {
    title: "Written",
    unit: "per second",
    columns: [["WrittenBytes", "bytes"]],
    beside: ["Changes", "changes per second"],
    isBytes: true,
    format: bytes,
  },
  {
    title: "Disk",
    unit: "fsync, ms",
    columns: [
      ["FsyncP99", "p99"],
      ["FsyncP50", "p50"],
    ],
    isOfServer: true,
    format: ms,
  },
  { title: "Index lag", unit: "changes", columns: [["Lag", "maximum"]], format: rate },
  {
    title: "Memory",
    unit: "of the process",
    columns: [
      ["Memory", "process"],
      ["Heap", "heap"],
    ],
    isOfServer: true,
    isBytes: true,
    format: bytes,
  },
];

/** `database` is null for the server. */
export function PerformancePage({ database }: { database: string | null }) {
  usePage(
    "performance",
    database === null
      ? [{ text: "Performance" }]
      : [{ text: database, to: href(["db", database, "docs"]) }, { text: "Performance" }],
  );
  const { query } = address.value;
  const range = ranges.find(({ key }) => key === query.get("range")) ?? ranges[0];
  const [isHeld, setHeld] = useState(false);
  const [isTable, setTable] = useState(false);
  const mayServer = may("operator");
  const moment = Date.parse(query.get("at") ?? "");
  const isThen = !Number.isNaN(moment);
  const thenMs = moment + aroundMs > Date.now() ? ranges[1].pollMs : 0;
  const pollMs = isThen ? thenMs : isHeld ? 0 : range.pollMs;
  const wanted = isThen ? around(moment) : `range=${range.key}`;
  const own = useResource<Figures>(
    database === null ? null : `/databases/${encodeURIComponent(database)}/metrics?${wanted}`,
    pollMs,
  );
  const all = useResource<Figures>(mayServer ? `/admin/metrics?${wanted}` : null, pollMs);
  const main = database === null ? all : own;
  const untilMs = isThen ? moment + aroundMs : Number.POSITIVE_INFINITY;
  const allShown = useMemo(() => before(all.body, untilMs), [all.body, untilMs]);
  const mainShown = useMemo(() => before(main.body, untilMs), [main.body, untilMs]);
  return (
    <div class="page">
      <div class="head wraps">
        <h1>Performance</h1>
        <Whose database={database} />
        <fieldset class="seg" aria-label="Range">
          {ranges.map(({ key, text }) => (
            <button
              key={key}
              type="button"
              aria-pressed={!isThen && key === range.key}
              onClick={() => setQuery({ range: key, at: undefined })}
            >
              {text}
            </button>
          ))}
        </fieldset>
        <Moment at={isThen ? moment : null} />
        <span class="grow" />
        <button type="button" class="btn" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? "As plots" : "As tables"}
        </button>
        {!isThen && (
          <button type="button" class="btn" aria-pressed={isHeld} onClick={() => setHeld(!isHeld)}>
            <Icon name={isHeld ? "play" : "pause"} />
            {isHeld ? "Resume updates" : "Pause updates"}
          </button>
        )}
      </div>
      {main.error !== undefined && <Failure error={main.error} retry={main.reload} />}
      {database === null && identity.value !== null && !mayServer && (
        <p class="muted">
          Metrics of the server require operator access. Each database has its own metrics.
        </p>
      )}
      {isThen && mainShown !== undefined && isBlank(mainShown) && (
        <p role="status" class="note">
          No metrics exist for the hour around {when(moment)}. Metrics are kept for 24 hours, since
          the server start.
        </p>
      )}
      <div class="plots">
        {kinds.map((kind) => {
          const figures = kind.isOfServer === true ? allShown : mainShown;
          return figures?.Columns === undefined ? null : (
            <OnePlot key={kind.title} kind={kind} figures={figures} isTable={isTable} />
          );
        })}
      </div>
      {mayServer && !isThen && <HttpThreads threads={all.body?.HttpThreads ?? []} />}
      {mayServer && !isThen && (
        <Requests
          database={database}
          isHeld={isHeld}
          logged={main.body?.SlowQueries ?? noQueries}
        />
      )}
    </div>
  );
}

/** Lists the HTTP threads with their load in the last second. */
function HttpThreads({ threads }: { threads: readonly HttpThread[] }) {
  if (threads.length === 0) return null;
  return (
    <section>
      <h2>HTTP threads</h2>
      <Table
        kind="lines"
        label="HTTP threads"
        columns={["Thread", numeric("Busy"), numeric("Connections"), numeric("Unsent replies")]}
      >
        {threads.map(({ BusyShare, Connections, QueuedBytes }, at) => (
          <tr key={String(at)}>
            <td>{at + 1}</td>
            <td class="num">{Math.round(BusyShare * 100)} %</td>
            <td class="num">{Connections}</td>
            <td class="num">{bytes(QueuedBytes)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** Returns the query for the hour around a time, with the finest samples available. */
function around(moment: number): string {
  const fromMs = moment - aroundMs;
  const range = fromMs > Date.now() - 2 * aroundMs ? "1h" : "24h";
  return `range=${range}&since=${new Date(fromMs).toISOString()}`;
}

/** Returns the metrics up to a time. */
function before(figures: Figures | undefined, untilMs: number): Figures | undefined {
  if (figures?.Columns === undefined || untilMs === Number.POSITIVE_INFINITY) return figures;
  const length = Math.max(0, Math.ceil((untilMs - Date.parse(figures.From)) / figures.StepInMs));
  const columns = Object.entries(figures.Columns);
  return {
    ...figures,
    Columns: Object.fromEntries(columns.map(([name, values]) => [name, values.slice(0, length)])),
    Events: figures.Events.filter(({ At }) => Date.parse(At) < untilMs),
  };
}

function isBlank({ Columns = {} }: Figures): boolean {
  return Object.values(Columns).every((values) => values.every((one) => one === null));
}

const dayMs = 86_400_000;

/** Formats a local time for `datetime-local`. */
function localTime(ms: number): string {
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Selects a time of the last day; the address contains it in UTC. */
function Moment({ at }: { at: number | null }) {
  const nowMs = Date.now();
  return (
    <label class="field calm">
      <span class="muted">Around</span>
      <input
        type="datetime-local"
        min={localTime(nowMs - dayMs)}
        max={localTime(nowMs)}
        value={at === null ? "" : localTime(at)}
        onChange={({ currentTarget: { value } }) =>
          setQuery({ at: value && new Date(value).toISOString() })
        }
      />
    </label>
  );
}

/** Selects a database, or the server. */
function Whose({ database }: { database: string | null }) {
  const last = lastDatabase.value;
  if (last === null) return null;
  return (
    <nav class="seg" aria-label="Scope">
      <a
        href={href(["db", last, "performance"])}
        aria-current={database === null ? undefined : "page"}
      >
        {last}
      </a>
      <a href={href(["performance"])} aria-current={database === null ? "page" : undefined}>
        Server
      </a>
    </nav>
  );
}

function OnePlot({
  kind,
  figures,
  isTable,
}: {
  kind: PlotKind;
  figures: Figures;
  isTable: boolean;
}) {
  const { title, unit, columns, beside, isBytes = false, format } = kind;
  const { times, series, events } = useMemo(() => plotted(kind, figures), [kind, figures]);
  const [first] = series;
  const values = (first?.values ?? []).filter((one) => one !== null);
  const last = values.at(-1);
  const words = beside && `${rate(figures.Columns?.[beside[0]]?.at(-1) ?? 0)} ${beside[1]}`;
  const sentence =
    last === undefined
      ? `${title}: no data`
      : `${title}, ${columns[0]?.[1]}: ${format(last)}, between ${format(Math.min(...values))} and ${format(Math.max(...values))} (${unit})${words === undefined ? "" : `; ${words}`}`;
  return (
    <section class="panel plot" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <small>{unit}</small>
        <b>{last === undefined ? "–" : format(last)}</b>
      </header>
      {isTable ? (
        <FigureTable title={title} times={times} series={series} format={format} />
      ) : (
        <Plot
          label={sentence}
          times={times}
          series={series}
          events={events}
          group="performance"
          isBytes={isBytes}
          format={format}
        />
      )}
      <div class="key">
        {columns.map(([column, name], at) => (
          <span key={column} class={"abc"[at]}>
            <i />
            {name}
          </span>
        ))}
        {words !== undefined && <span>{words}</span>}
        {events.length > 0 && <span class="cut">{events.at(-1)?.text}</span>}
      </div>
    </section>
  );
}

function plotted({ columns }: PlotKind, { StepInMs, From, Columns = {}, Events }: Figures) {
  const fromMs = new Date(From).getTime();
  const length = Math.max(0, ...Object.values(Columns).map((values) => values.length));
  const times = Array.from({ length }, (_, at) => (fromMs + at * StepInMs) / 1000);
  const none = times.map(() => null);
  return {
    times,
    series: columns.map(([column, name]) => ({ name, values: Columns[column] ?? none })),
    events: Events.map(({ At, Text }) => ({ at: new Date(At).getTime() / 1000, text: Text })),
  };
}

const tableRows = 30;

/** The newest metrics as a table, for screen readers. */
function FigureTable({
  title,
  times,
  series,
  format,
}: {
  title: string;
  times: readonly number[];
  series: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
  format: (value: number) => string;
}) {
  const rows = times
    .map((time, at) => ({ time, at }))
    .filter(({ at }) => {
      return series.some(({ values }) => values[at] != null);
    });
  return (
    <div class="scroll figures">
      <Table
        kind="data"
        label={title}
        columns={["Time", ...series.map(({ name }) => numeric(name))]}
      >
        {rows
          .slice(-tableRows)
          .reverse()
          .map(({ time, at }) => (
            <tr key={time}>
              <td>{new Date(time * 1000).toLocaleTimeString()}</td>
              {series.map(({ name, values }) => (
                <td key={name} class="num">
                  {values[at] == null ? "" : format(values[at])}
                </td>
              ))}
            </tr>
          ))}
      </Table>
    </div>
  );
}
