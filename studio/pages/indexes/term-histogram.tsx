/** How many entries of an index contain each term of a field: the most frequent terms, or ranges of numbers. */
import { useEffect, useState } from "preact/hooks";
import { send } from "../../base/client.ts";
import { count, counted } from "../../base/format.ts";
import { Failure, Skeleton } from "../../components/messages.tsx";
import { numeric, Table } from "../../components/table.tsx";

interface Facet {
  readonly Values: readonly {
    readonly Range: string;
    readonly Count: number;
    readonly Min?: number;
    readonly Max?: number;
  }[];
  readonly RemainingTermsCount: number;
  readonly RemainingHits: number;
}

interface Bars {
  readonly title: string;
  readonly rows: readonly { readonly text: string; readonly entries: number }[];
  /** What the rows do not contain. */
  readonly rest: string;
}

const termsMax = 20;
const rangesMax = 12;

export function TermHistogram({
  base,
  index,
  field,
  version,
}: {
  base: string;
  index: string;
  field: string;
  /** Changes when the entries of the index do. */
  version: number;
}) {
  const [bars, setBars] = useState<Bars | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    loadBars(base, index, field, abort.signal).then(setBars, (failed: Error) => {
      if (!abort.signal.aborted) setError(failed);
    });
    return () => abort.abort();
  }, [base, index, field, version]);
  if (error !== null) return <Failure error={error} />;
  if (bars === null) return <Skeleton rows={4} />;
  const { title, rows, rest } = bars;
  const most = Math.max(1, ...rows.map(({ entries }) => entries));
  return (
    <section aria-label={title} class="stack">
      <h2>{title}</h2>
      <Table kind="lines" label={title} columns={["Term", "Share", numeric("Entries")]}>
        {rows.map(({ text, entries }) => (
          <tr key={text}>
            <td class="mono break">{text}</td>
            <td>
              <div class="took">
                {entries > 0 && <i style={{ width: `${(entries / most) * 100}%` }} />}
              </div>
            </td>
            <td class="num">{count(entries)}</td>
          </tr>
        ))}
      </Table>
      {rest !== "" && <p class="muted">{rest}</p>}
    </section>
  );
}

async function loadBars(
  base: string,
  index: string,
  field: string,
  signal: AbortSignal,
): Promise<Bars> {
  const ask = async (facets: string) => {
    const json = {
      Query: `from index ${quoted(index)} select ${facets}`,
      QueryParameters: { options: { TermSortMode: "CountDesc", PageSize: termsMax } },
    };
    const { body } = await send<{ Results: readonly Facet[] }>("POST", `${base}/queries`, {
      json,
      signal,
    });
    return body.Results[0] ?? { Values: [], RemainingTermsCount: 0, RemainingHits: 0 };
  };
  const terms = await ask(`facet(${quoted(field)}, $options)`);
  const isNumber = terms.Values.every(
    ({ Range }) => Range.trim() !== "" && Number.isFinite(+Range),
  );
  if (isNumber && terms.RemainingTermsCount > 0 && /^[A-Za-z_][\w.]*$/.test(field)) {
    const [bounds] = (await ask(`facet(min(${field}), max(${field}))`)).Values;
    const ranges = rangesOf(bounds?.Min, bounds?.Max);
    if (ranges.length > 1) {
      const conditions = ranges.map(([from, to], at) =>
        at === ranges.length - 1
          ? `${field} >= ${from}`
          : `${field} >= ${from} and ${field} < ${to}`,
      );
      const { Values } = await ask(`facet(${conditions.join(", ")})`);
      const rows = ranges.map(([from, to], at) => ({
        text: `${from} to ${to}`,
        entries: Values[at]?.Count ?? 0,
      }));
      return { title: "Entries by value", rows, rest: "" };
    }
  }
  const { RemainingTermsCount: more, RemainingHits: hits } = terms;
  return {
    title: "Most frequent terms",
    rows: terms.Values.map(({ Range, Count }) => ({ text: Range, entries: Count })),
    rest:
      more === 0 ? "" : `${counted(more, "other term")} in ${counted(hits, "entry", "entries")}`,
  };
}

function quoted(name: string): string {
  return `'${name.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** Returns ranges of equal, round length that contain all numbers from `min` to `max`. */
function rangesOf(min = 0, max = 0): [from: number, to: number][] {
  if (!(max > min)) return [];
  const least = (max - min) / rangesMax;
  const power = 10 ** Math.floor(Math.log10(least));
  const length = power * ([1, 2, 5].find((one) => one * power >= least) ?? 10);
  const first = Math.floor(min / length);
  const round = (value: number) => Number((value * length).toPrecision(12));
  return Array.from({ length: Math.floor(max / length) - first + 1 }, (_, at) => [
    round(first + at),
    round(first + at + 1),
  ]);
}
