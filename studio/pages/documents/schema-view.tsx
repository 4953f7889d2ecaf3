/** The schema of a collection, from a sample of its documents: types, frequency, ranges and values of its fields. */
import { useEffect, useRef, useState } from "preact/hooks";
import { openStream } from "../../base/client.ts";
import { count, counted } from "../../base/format.ts";
import { address, href, setQuery } from "../../base/router.ts";
import { Failure, Skeleton } from "../../components/messages.tsx";
import { numeric, Table } from "../../components/table.tsx";
import {
  FieldSample,
  histogram,
  rangeType,
  type SchemaRow,
  schemaRows,
  topValues,
} from "../../json/schema.ts";
import { StreamedRows } from "../../json/streamed-rows.ts";
import { quoted } from "./list-rows.ts";

interface Properties {
  readonly base: string;
  readonly database: string;
  readonly collection: string;
  /** Number of documents in the collection. */
  readonly total: number;
}

const sizes = [1000, 10_000] as const;
/** A sample of a larger collection consists of this many parts with equal distances. */
const parts = 10;
/** Maximum length of the documents of a sample, in UTF-16 code units. */
const charactersMax = 64 * 1024 * 1024;
/** Documents are processed for this long before the page can react, in milliseconds. */
const sliceMs = 10;
const rowsMax = 150;
/** Objects with at most this many fields are opened at first. */
const openedMax = 12;
const bins = 24;
const topMax = 5;
/** Numbers with at most this many values are shown by value. */
const fewValues = 8;

export function SchemaView({ base, database, collection, total }: Properties) {
  const size = Number(address.value.query.get("sample")) === sizes[1] ? sizes[1] : sizes[0];
  const { sample, isDone, error, retry } = useSample(base, collection, total, size);
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const isOpen = (path: string, field: FieldSample) =>
    toggled.get(path) ?? field.fields.size <= openedMax;
  const rows = sample === null ? [] : schemaRows(sample, isOpen, rowsMax);
  return (
    <div class="pane grow">
      <div class="tools">
        <h1>{collection}</h1>
        <span class="muted" role="status">
          {sample !== null && sampleText(sample.count, total, isDone)}
        </span>
        <span class="grow" />
        <label class="row">
          <span class="muted">Sample</span>
          <select
            class="btn"
            value={size}
            onChange={({ currentTarget: { value } }) => setQuery({ sample: value })}
          >
            {sizes.map((one) => (
              <option key={one} value={one}>
                {counted(one, "document")}
              </option>
            ))}
          </select>
        </label>
        <a class="btn" href={href(["db", database, "docs", collection])}>
          Documents
        </a>
      </div>
      {error !== null && <Failure error={error} retry={retry} />}
      {sample === null && error === null && <Skeleton rows={12} />}
      {sample !== null && (
        <div class="scroll grow">
          <div class="schema">
            <Table
              kind="data"
              label={`Fields of ${collection}`}
              columns={["Field", "Type", numeric("Frequency"), "Range", "Values"]}
            >
              {rows.map((row) => (
                <FieldRow
                  key={row.path}
                  row={row}
                  isOpen={isOpen(row.path, row.field)}
                  toggle={() =>
                    setToggled(new Map(toggled).set(row.path, !isOpen(row.path, row.field)))
                  }
                  to={(condition) =>
                    href(["db", database, "docs", collection], { where: condition })
                  }
                />
              ))}
            </Table>
          </div>
          {rows.length === rowsMax && (
            <p class="note edge">
              Showing the first {rowsMax} fields. Collapse some to see the rest.
            </p>
          )}
        </div>
      )}
    </div>
  );
}

function sampleText(read: number, total: number, isDone: boolean): string {
  if (!isDone) return `Reading: ${counted(read, "document")}`;
  if (read >= total) return `All ${counted(read, "document")}`;
  return `A sample of ${count(read)} of ${counted(total, "document")}`;
}

/** Reads the sample again only if the collection or the size changes, not while documents change. */
function useSample(base: string, collection: string, total: number, size: number) {
  const [state, setState] = useState<{ sample: FieldSample; isDone: boolean } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  const latest = useRef(total);
  latest.current = total;
  useEffect(() => {
    const abort = new AbortController();
    setError(null);
    const read = async () => {
      const sample = new FieldSample();
      const all = latest.current;
      const starts = Array.from({ length: all > size ? parts : 1 }, (_, part) =>
        Math.floor((part * all) / parts),
      );
      let characters = 0;
      for (const start of starts) {
        if (characters > charactersMax) break;
        const range = { start, length: Math.ceil(size / starts.length) };
        characters += await readPart(base, collection, range, sample, abort.signal);
        if (abort.signal.aborted) return;
        setState({ sample, isDone: false });
      }
      setState({ sample, isDone: true });
    };
    read().catch((failed: Error) => {
      if (!abort.signal.aborted) setError(failed);
    });
    return () => abort.abort();
  }, [base, collection, size, round]);
  return {
    sample: state?.sample ?? null,
    isDone: state?.isDone === true,
    error,
    retry: () => setRound(round + 1),
  };
}

/** Adds documents to the sample. @returns the number of characters read */
async function readPart(
  base: string,
  collection: string,
  range: { readonly start: number; readonly length: number },
  sample: FieldSample,
  signal: AbortSignal,
): Promise<number> {
  const json = { Query: `from ${quoted(collection)} limit ${range.start}, ${range.length}` };
  const body = await openStream("POST", `${base}/streams/queries`, { json, signal });
  const reader = body
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  const streamed = new StreamedRows();
  let characters = 0;
  let untilMs = performance.now() + sliceMs;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return characters;
    characters += value.length;
    for (const row of streamed.push(value)) {
      sample.add(JSON.parse(row));
      if (performance.now() < untilMs) continue;
      await new Promise((resolve) => setTimeout(resolve));
      untilMs = performance.now() + sliceMs;
    }
    if (characters > charactersMax) {
      await reader.cancel();
      return characters;
    }
  }
}

interface RowProperties {
  readonly row: SchemaRow;
  readonly isOpen: boolean;
  toggle(): void;
  /** Returns the address of the documents that match a condition. */
  to(condition: string): string;
}

function FieldRow({ row, isOpen, toggle, to }: RowProperties) {
  const { name, path, level, field, of } = row;
  const share = of === 0 ? 0 : field.count / of;
  const types = [...field.types].sort(([, a], [, b]) => b - a);
  const shown = name === "[]" ? "each element" : name;
  return (
    <tr>
      <td class="mono" style={{ paddingLeft: `${12 + 16 * level}px` }} title={path}>
        {field.fields.size > 0 ? (
          <button type="button" class="link" aria-expanded={isOpen} onClick={toggle}>
            <span class="twist" aria-hidden="true">
              {isOpen ? "▾" : "▸"}
            </span>
            {shown}
          </button>
        ) : (
          <>
            <span class="twist" />
            {shown}
          </>
        )}
        {field.hasMoreFields && <span class="muted"> and more</span>}
      </td>
      <td>
        {types.map(([type, number]) => (
          <span key={type} class="chip">
            {type}
            {types.length > 1 && ` ${percent(number / field.count)}`}
          </span>
        ))}
      </td>
      <td class="num">
        {name === "[]" ? (
          <span class="muted">{count(field.count)}</span>
        ) : (
          <>
            {percent(share)}
            <div class="track" aria-hidden="true">
              <i style={{ width: `${100 * Math.min(1, share)}%` }} />
            </div>
          </>
        )}
      </td>
      <td>{rangeText(field)}</td>
      <td>
        <Values row={row} to={to} />
      </td>
    </tr>
  );
}

function Values({ row: { path, field }, to }: Pick<RowProperties, "row" | "to">) {
  const type = rangeType(field);
  const isByValue = type === "number" && !field.hasMoreValues && field.values.size <= fewValues;
  if (type !== null && !isByValue && field.high > field.low) return <Histogram field={field} />;
  const top = topValues(field, topMax);
  const isPlain = /^[A-Za-z_]\w*((\[\])?\.[A-Za-z_]\w*)*(\[\])?$/.test(path);
  const isText = field.types.has("text") || field.types.has("id");
  return (
    <ul class="tops" aria-label={`Top values of ${path}`}>
      {top.map(([text, number]) => (
        <li key={text}>
          {isPlain && text.length < 60 ? (
            <a class="cut" title={text} href={to(`${path} = ${isText ? quoted(text) : text}`)}>
              {text === "" ? "(empty)" : text}
            </a>
          ) : (
            <span class="cut" title={text}>
              {text}
            </span>
          )}
          <div class="track" aria-hidden="true">
            <i style={{ width: `${(100 * number) / field.count}%` }} />
          </div>
          <span class="num muted">{percent(number / field.count)}</span>
        </li>
      ))}
    </ul>
  );
}

const barWidth = 8;
const barHeight = 32;

function Histogram({ field }: { field: FieldSample }) {
  const counts = histogram(field, bins);
  const most = Math.max(1, ...counts);
  const bars = counts.map((number, at) => {
    const height = number === 0 ? 0 : Math.max(1, (barHeight * number) / most);
    return `M${at * barWidth},${barHeight}v${-height.toFixed(1)}h${barWidth - 1}V${barHeight}z`;
  });
  const modes = counts.indexOf(Math.max(...counts));
  const step = (field.high - field.low) / bins;
  const form = (value: number) => rangeValue(field, value);
  return (
    <svg
      class="histogram"
      width={bins * barWidth}
      height={barHeight}
      role="img"
      aria-label={`Histogram from ${form(field.low)} to ${form(field.high)}, most between ${form(field.low + modes * step)} and ${form(field.low + (modes + 1) * step)}`}
    >
      <path d={bars.join("")} />
    </svg>
  );
}

const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });

function rangeValue(field: FieldSample, value: number): string {
  if (rangeType(field) === "date") return new Date(value).toISOString().slice(0, 10);
  return short.format(value);
}

function rangeText(field: FieldSample): string {
  const type = rangeType(field);
  if (type !== null) {
    const [low, high] = [rangeValue(field, field.low), rangeValue(field, field.high)];
    const range = low === high ? low : `${low} to ${high}`;
    return type === "list" ? `${range} elements` : range;
  }
  if (field.values.size === 0) return "";
  const distinct = `${count(field.values.size)} distinct`;
  return field.hasMoreValues ? `more than ${distinct}` : distinct;
}

function percent(share: number): string {
  if (share > 0 && share < 0.01) return "< 1 %";
  if (share < 1 && share > 0.99) return "> 99 %";
  return `${Math.round(100 * share)} %`;
}
