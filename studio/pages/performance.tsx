/** Performance plots of the last minutes, hour or day, or of a range of times; and current requests. */
import { useMemo, useState } from "preact/hooks";
import { bytes, shortCount, when } from "../base/format.ts";
import { identity, may } from "../base/identity.ts";
import { type MetricColumns, plottedColumns } from "../base/metrics.ts";
import { useResource } from "../base/resource.ts";
import { address, href, setQuery } from "../base/router.ts";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import type { PlotEvent, PlotRange } from "../components/plot.tsx";
import { PlotPanel } from "../components/plot-panel.tsx";
import { numeric, Table } from "../components/table.tsx";
import { database as lastDatabase } from "../shell/database.ts";
import { usePage } from "../shell/page.ts";
import { operationTitle } from "./operation-facts.ts";
import { Requests, type SlowQuery } from "./performance-requests.tsx";
import { StorageParts } from "./storage-parts.tsx";

interface HttpThread {
  readonly BusyShare: number;
  readonly Connections: number;
  readonly QueuedBytes: number;
}

/** An event that may explain a change of the metrics. */
interface Marked {
  readonly At: string;
  readonly Kind: string;
  readonly Text: string;
  readonly Database: string | null;
  readonly OperationId: number | null;
}

interface Figures extends MetricColumns {
  /** Of the server; empty if HTTP runs on the engine thread. */
  readonly HttpThreads?: readonly HttpThread[];
  readonly SlowQueries?: readonly SlowQuery[];
  readonly Events: readonly Marked[];
}

const ranges = [
  { key: "5m", text: "5 min", pollMs: 1_000, lengthMs: 300_000 },
  { key: "1h", text: "1 h", pollMs: 10_000, lengthMs: 3_600_000 },
  { key: "24h", text: "24 h", pollMs: 60_000, lengthMs: 86_400_000 },
] as const;

const noQueries: readonly SlowQuery[] = [];

/** Half of the shown range around a time (\`at\`), in milliseconds. */
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
  /** True for a plot that the page of the server omits. */
  readonly isOfDatabase?: true;
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
  {
    title: "Storage",
    unit: "without attachments",
    columns: [
      ["LiveBytes", "live"],
      ["DeadBytes", "dead"],
      ["SnapshotBytes", "snapshots"],
    ],
    isOfDatabase: true,
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
  const then = askedRange(query);
  const isZoomed = query.get("from") !== null && then !== null;
  const finest = then === null ? range : finestRange(then.fromMs);
  const thenMs = then !== null && then.untilMs > Date.now() ? finest.pollMs : 0;
  const pollMs = then !== null ? thenMs : isHeld ? 0 : range.pollMs;
  const since = then === null ? "" : `&since=${new Date(then.fromMs).toISOString()}`;
  const history = `metrics/history?range=${finest.key}${since}`;
  const own = useResource<Figures>(
    database === null ? null : `/databases/${encodeURIComponent(database)}/${history}`,
    pollMs,
  );
  const all = useResource<Figures>(mayServer ? `/admin/${history}` : null, pollMs);
  const main = database === null ? all : own;
  const untilMs = then?.untilMs ?? Number.POSITIVE_INFINITY;
  const allShown = useMemo(() => before(all.body, untilMs), [all.body, untilMs]);
  const mainShown = useMemo(() => before(main.body, untilMs), [main.body, untilMs]);
  const shownRange: PlotRange | undefined =
    then !== null && isZoomed ? [then.fromMs / 1000, then.untilMs / 1000] : undefined;
  const events = mainShown?.Events ?? noEvents;
  const marks = useMemo(
    () => events.map(({ At, Text }): PlotEvent => ({ at: Date.parse(At) / 1000, text: Text })),
    [events],
  );
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
              aria-pressed={then === null && key === range.key}
              onClick={() => setQuery({ range: key, at: undefined, ...noZoom })}
            >
              {text}
            </button>
          ))}
        </fieldset>
        <Moment at={then === null || isZoomed ? null : then.fromMs + aroundMs} />
        {isZoomed && <WholeRange />}
        <span class="grow" />
        <button type="button" class="btn" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? "As plots" : "As tables"}
        </button>
        {then === null && (
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
      {then !== null && mainShown !== undefined && isBlank(mainShown) && (
        <p role="status" class="note">
          {isZoomed
            ? `No metrics exist from ${when(then.fromMs, true)} to ${when(then.untilMs, true)}.`
            : `No metrics exist for the hour around ${when(then.fromMs + aroundMs)}.`}{" "}
          Metrics are kept for 24 hours, since the server start.
        </p>
      )}
      <div class="plots">
        {kinds.map((kind) => {
          const figures = kind.isOfServer === true ? allShown : mainShown;
          const isOther = kind.isOfDatabase === true && database === null;
          return figures?.Columns === undefined || isOther ? null : (
            <OnePlot
              key={kind.title}
              kind={kind}
              figures={figures}
              isTable={isTable}
              events={marks}
              range={shownRange}
            />
          );
        })}
      </div>
      <Markers events={events} />
      {database !== null && <StorageParts database={database} />}
      {mayServer && then === null && <HttpThreads threads={all.body?.HttpThreads ?? []} />}
      {mayServer && then === null && (
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

/** Events in the plots, with the numbers that the plots show. */
function Markers({ events }: { events: readonly Marked[] }) {
  if (events.length === 0) return null;
  return (
    <section>
      <h2>Markers</h2>
      <ol class="markers">
        {events.map(({ At, Kind, Text, Database, OperationId }) => (
          <li key={`${At} ${Text}`}>
            <time datetime={At} title={At}>
              {when(At, true)}
            </time>{" "}
            {Database !== null && OperationId !== null ? (
              <a href={href(["db", Database, "patch", String(OperationId)])}>
                {operationTitle(Kind, Text)}
              </a>
            ) : (
              Text
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

const noEvents: readonly Marked[] = [];
const noZoom = { from: undefined, to: undefined };

function zoomTo(range: PlotRange | null): void {
  const times = range?.map((seconds) => new Date(Math.round(seconds * 1000)).toISOString());
  setQuery({ from: times?.[0], to: times?.[1] });
}

function WholeRange() {
  return (
    <button type="button" class="btn" onClick={() => zoomTo(null)}>
      Whole range
    </button>
  );
}

/** Returns the range in the address: the selected one, or the hour around a time; otherwise null. */
function askedRange(query: URLSearchParams): { fromMs: number; untilMs: number } | null {
  const [fromMs, untilMs, atMs] = ["from", "to", "at"].map((name) =>
    Date.parse(query.get(name) ?? ""),
  ) as [number, number, number];
  if (fromMs < untilMs) return { fromMs, untilMs };
  return Number.isNaN(atMs) ? null : { fromMs: atMs - aroundMs, untilMs: atMs + aroundMs };
}

/** Returns the range with the finest samples that includes a time. */
function finestRange(fromMs: number) {
  const ageMs = Date.now() - fromMs;
  return ranges.find(({ lengthMs }) => ageMs <= lengthMs) ?? ranges[2];
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

const dayMs = ranges[2].lengthMs;

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
          setQuery({ at: value && new Date(value).toISOString(), ...noZoom })
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
  kind: { columns, beside, ...kind },
  figures,
  ...shown
}: {
  kind: PlotKind;
  figures: Figures;
  isTable: boolean;
  events: readonly PlotEvent[];
  range: PlotRange | undefined;
}) {
  const plotted = useMemo(() => plottedColumns(figures, columns), [figures]);
  const text = (at: number | null) =>
    `${rate(figures.Columns?.[beside?.[0] ?? ""]?.at(at ?? -1) ?? 0)} ${beside?.[1]}`;
  return (
    <PlotPanel
      {...kind}
      {...plotted}
      {...shown}
      {...(beside === undefined ? {} : { beside: text })}
      group="performance"
      zoom={zoomTo}
    />
  );
}
