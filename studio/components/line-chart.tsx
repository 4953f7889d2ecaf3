/** Lines over numbers, times or the names of rows, drawn by uPlot, with the values at the pointer. */
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { theme } from "../base/theme.ts";

interface Properties {
  /** Description in a sentence. */
  readonly label: string;
  /** Positions, ascending: numbers, or seconds since 1970 if `isTime`. */
  readonly positions: readonly number[];
  readonly isTime: boolean;
  /** Names of the positions 0, 1, 2 …; undefined if the positions are values. */
  readonly names?: readonly string[] | undefined;
  readonly series: readonly LineSeries[];
  format(value: number): string;
}

interface LineSeries {
  readonly name: string;
  /** One value per position; null for a gap. */
  readonly values: readonly (number | null)[];
}

const height = 320;
const nameLength = 14;
const dashes = [[], [6, 4], [2, 3]] as const;
const wholeSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

export function LineChart({ label, positions, isTime, names, series, format }: Properties) {
  const holder = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const colour = theme.value;
  useEffect(() => {
    const element = holder.current;
    if (element === null) return undefined;
    const width = () => Math.max(120, element.clientWidth);
    const data: UPlot.AlignedData = [[...positions], ...series.map(({ values }) => [...values])];
    const options = optionsOf({ isTime, names, series, format });
    const made = new UPlot(
      {
        ...options,
        width: width(),
        hooks: { setCursor: [(plot) => setAt(plot.cursor.idx ?? null)] },
      },
      data,
      element,
    );
    const observer = new ResizeObserver(() => made.setSize({ width: width(), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [positions, isTime, names, series, format, colour]);
  const position = at === null ? undefined : positions[at];
  const place =
    position === undefined
      ? "Point at the lines to see values"
      : (names?.[position] ?? (isTime ? new Date(position * 1000).toLocaleString() : position));
  return (
    <>
      <p class="key">
        <span class="cut">{place}</span>
        {series.map(({ name, values }, n) => (
          <span key={name} class={"abc"[n]}>
            <i />
            {name} {at !== null && values[at] != null && <b>{format(values[at])}</b>}
          </span>
        ))}
      </p>
      <div ref={holder} class="line-canvas" role="img" aria-label={label} />
    </>
  );
}

function optionsOf({
  isTime,
  names,
  series,
  format,
}: Pick<Properties, "isTime" | "names" | "series" | "format">): Omit<UPlot.Options, "width"> {
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string) => styles.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--text-3"),
    font: `11px ${styles.getPropertyValue("--sans")}`,
    ticks: { show: false },
    grid: { stroke: colour("--line"), width: 1 },
  };
  const named =
    names === undefined
      ? {}
      : {
          incrs: wholeSteps,
          space: 90,
          values: (_plot: UPlot, splits: number[]) =>
            splits.map((split) => (names[split] ?? "").slice(0, nameLength)),
        };
  return {
    height,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: isTime } },
    axes: [
      { ...axis, size: 40, grid: { show: false }, ...named },
      { ...axis, size: 64, values: (_plot, values) => values.map(format) },
    ],
    series: [
      {},
      ...series.map(({ name, values }, at): UPlot.Series => {
        const stroke = colour(`--series-${at + 1}`);
        return {
          label: name,
          stroke,
          width: 1.5,
          dash: [...(dashes[at] ?? [])],
          points: { show: values.length <= 60, size: 5, fill: stroke },
        };
      }),
    ],
  };
}
