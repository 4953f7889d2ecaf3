/** Query results as a chart: bars by row, or lines. The address has the fields and the type. */
import { useMemo } from "preact/hooks";
import { counted } from "../../base/format.ts";
import { lazy } from "../../base/lazy.tsx";
import { address, setQuery } from "../../base/router.ts";
import { Empty } from "../../components/messages.tsx";
import { type Field, fieldsOf, isDate, valueAt } from "../../json/fields.ts";
import type { ResultRow } from "../result-cells.tsx";
import { idOf } from "../result-table.tsx";

const LineChart = lazy(async () => (await import("../../components/line-chart.tsx")).LineChart);

/** As many as are rendered well within a frame of 50 ms. */
const barsMax = 100;
/** Number of colours. */
const seriesMax = 3;
const offeredMax = 12;

const number = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
const format = (value: number) => number.format(value);

interface Charted {
  readonly label: string;
  /** For lines: a number, or the time in seconds since 1970; null if the value is neither. */
  readonly position: number | null;
  readonly values: readonly (number | null)[];
}

const idField: Field = { name: "Id", path: ["@metadata", "@id"], type: "text" };

export function ResultChart({ rows }: { rows: readonly ResultRow[] }) {
  const { query } = address.value;
  const fields = useMemo(() => fieldsOf(rows), [rows]);
  const numbers = fields.filter(({ type }) => type === "number");
  const labels = useMemo(() => labelsOf(fields, rows), [fields, rows]);
  const by = labels.find(({ name }) => name === query.get("by")) ?? labels[0];
  const wanted = (query.get("values") ?? numbers[0]?.name ?? "").split(",").slice(0, seriesMax);
  const values = numbers.filter(({ name }) => wanted.includes(name));
  const charted = useMemo(
    () => (by === undefined ? [] : rows.map((row) => chartedRow(row, by, values))),
    [rows, by, wanted.join()],
  );
  if (by === undefined || numbers.length === 0) {
    return (
      <Empty icon="perf" title="No numbers">
        <p>
          A chart shows fields with numbers, for example{" "}
          <code>group by Country select Country, count() as Count</code>.
        </p>
      </Empty>
    );
  }
  const asked = query.get("chart") ?? (by.type === "text" ? "bars" : "lines");
  const toggle = (name: string) => {
    const names = values.map((one) => one.name);
    const next = names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
    if (next.length > 0) setQuery({ values: next.slice(-seriesMax).join(",") });
  };
  return (
    <div class="scroll grow chart">
      <div class="row wraps">
        <fieldset class="seg" aria-label="Chart type">
          {["bars", "lines"].map((kind) => (
            <button
              key={kind}
              type="button"
              aria-pressed={asked === kind}
              onClick={() => setQuery({ chart: kind })}
            >
              {kind === "bars" ? "Bars" : "Lines"}
            </button>
          ))}
        </fieldset>
        <label class="row">
          <span class="muted">By</span>
          <select
            class="btn"
            value={by.name}
            onChange={({ currentTarget }) => setQuery({ by: currentTarget.value })}
          >
            {labels.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {numbers.slice(0, offeredMax).map(({ name }) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={values.some((one) => one.name === name)}
              onChange={() => toggle(name)}
            />
            {name}
          </label>
        ))}
      </div>
      {asked === "bars" ? (
        <Bars by={by.name} names={values.map(({ name }) => name)} charted={charted} />
      ) : (
        <Lines by={by} names={values.map(({ name }) => name)} charted={charted} />
      )}
    </div>
  );
}

/** Returns the fields that can name the rows, the best one first: times, texts, the id, numbers. */
function labelsOf(fields: readonly Field[], rows: readonly ResultRow[]): Field[] {
  const ofType = (type: Field["type"]) => fields.filter((one) => one.type === type);
  const id = rows.some((row) => idOf(row) !== "") ? [idField] : [];
  return [...ofType("date"), ...ofType("text"), ...id, ...ofType("number")];
}

function chartedRow(row: ResultRow, by: Field, values: readonly Field[]): Charted {
  const label = valueAt(row, by.path);
  return {
    label: isDate(label) ? label.replace(/T00:00:00.*|\.0+Z?$/, "") : String(label ?? "null"),
    position: typeof label === "number" ? label : isDate(label) ? Date.parse(label) / 1000 : null,
    values: values.map(({ path }) => {
      const value = valueAt(row, path);
      return typeof value === "number" ? value : null;
    }),
  };
}

interface ChartProperties {
  readonly names: readonly string[];
  readonly charted: readonly Charted[];
}

/** Bars beside their numbers, as a table. */
function Bars({ by, names, charted }: ChartProperties & { by: string }) {
  const shown = charted.slice(0, barsMax);
  const all = shown.flatMap(({ values }) => values.filter((value) => value !== null));
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const percent = (value: number) => `${(100 * value) / (high - low || 1)}%`;
  return (
    <>
      <Key names={names} />
      <table class="bars" aria-label={`${names.join(", ")} by ${by}`}>
        <thead class="hidden-label">
          <tr>
            <th>{by}</th>
            <th>{names.join(", ")}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ label, values }, at) => (
            <tr key={String(at)}>
              <td class="cut" title={label}>
                {label}
              </td>
              <td>
                {values.map((value, n) => (
                  <div key={names[n]} class="bar-line">
                    {value !== null && (
                      <>
                        <span>
                          <i
                            class={"abc"[n]}
                            style={{
                              marginLeft: percent(Math.min(0, value) - low),
                              width: percent(Math.abs(value)),
                            }}
                          />
                        </span>
                        <span class="num">{format(value)}</span>
                      </>
                    )}
                  </div>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {charted.length > shown.length && (
        <p class="muted">
          The first {barsMax} of {counted(charted.length, "row")}; lines show all.
        </p>
      )}
    </>
  );
}

function Key({ names }: { names: readonly string[] }) {
  return (
    <p class="key">
      {names.map((name, n) => (
        <span key={name} class={"abc"[n]}>
          <i />
          {name}
        </span>
      ))}
    </p>
  );
}

function Lines({ by, names, charted }: ChartProperties & { by: Field }) {
  const isValue = by.type !== "text";
  const drawn = useMemo(() => {
    const placed = charted.map((row, at) => ({ ...row, at: isValue ? row.position : at }));
    const known = placed.filter(({ at }) => at !== null) as (Charted & { at: number })[];
    const sorted = known.sort((a, b) => a.at - b.at);
    return {
      positions: sorted.map(({ at }) => at),
      labels: isValue ? undefined : sorted.map(({ label }) => label),
      series: names.map((name, n) => ({
        name,
        values: sorted.map(({ values }) => values[n] ?? null),
      })),
    };
  }, [charted, isValue]);
  const { positions, labels, series } = drawn;
  const ranges = series.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: no values`;
    return `${name}: between ${format(Math.min(...known))} and ${format(Math.max(...known))}`;
  });
  return (
    <LineChart
      label={`${counted(positions.length, "row")} by ${by.name}; ${ranges.join("; ")}`}
      positions={positions}
      isTime={by.type === "date"}
      names={labels}
      series={series}
      format={format}
    />
  );
}
