/**
 * A plot over time, drawn by uPlot. Plots with the same `group` share the crosshair. Colours follow the theme; series
 * also differ by their dashes.
 */
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";
import { theme } from "../base/theme.ts";

interface PlotSeries {
  readonly name: string;
  /** One value per time; null if unknown. */
  readonly values: readonly (number | null)[];
}

interface PlotEvent {
  /** Time in seconds since 1970. */
  readonly at: number;
  readonly text: string;
}

interface Properties {
  /** Description of the plot in a sentence. */
  readonly label: string;
  /** Times in seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly PlotSeries[];
  readonly events: readonly PlotEvent[];
  readonly group: string;
  /** True if the axis uses powers of two. */
  readonly isBytes?: boolean;
  format(value: number): string;
}

const height = 104;
const powersOfTwo = Array.from({ length: 50 }, (_, n) => 2 ** n);
const dashes = [[], [5, 4], [1, 3]] as const;
const colours = ["--series-1", "--series-2", "--series-3"] as const;

export function Plot({ label, times, series, events, group, isBytes, format }: Properties) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const shown = useRef({ events, format });
  shown.current = { events, format };
  const names = series.map(({ name }) => name).join("\n");
  const colour = theme.value;
  useEffect(() => {
    const element = holder.current;
    if (element === null) return undefined;
    const width = Math.max(120, element.clientWidth);
    const made = new UPlot(
      optionsOf(width, names.split("\n"), group, isBytes === true, shown),
      dataOf(times, series),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      made.setSize({ width: Math.max(120, element.clientWidth), height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [names, group, colour]);
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series, events]);
  return <div ref={holder} class="canvas" role="img" aria-label={label} />;
}

function dataOf(times: readonly number[], series: readonly PlotSeries[]): UPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])];
}

function optionsOf(
  width: number,
  names: readonly string[],
  group: string,
  isBytes: boolean,
  shown: { readonly current: Pick<Properties, "events" | "format"> },
): UPlot.Options {
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string) => styles.getPropertyValue(name).trim();
  const font = `10px ${styles.getPropertyValue("--sans")}`;
  const axis = { stroke: colour("--text-3"), font, ticks: { show: false } };
  return {
    width,
    height,
    padding: [8, 4, 0, 18],
    legend: { show: false },
    cursor: { sync: { key: group }, drag: { x: false, y: false }, points: { size: 5 } },
    scales: {
      x: { time: true },
      y: { range: (_plot, _min, max) => [0, top(max, isBytes ? 1024 : 1)] },
    },
    axes: [
      { ...axis, size: 20, grid: { show: false }, space: 60 },
      {
        ...axis,
        side: 1,
        size: 48,
        space: 28,
        grid: { stroke: colour("--line"), width: 1 },
        ...(isBytes ? { incrs: powersOfTwo } : {}),
        values: (_plot, values) => values.map((value) => shown.current.format(value)),
      },
    ],
    series: [
      {},
      ...names.map(
        (name, at): UPlot.Series => ({
          label: name,
          stroke: colour(colours[at % 3] as string), // there are three colours
          width: 1.5,
          dash: [...(dashes[at % 3] as readonly number[])], // there are three dash patterns
          points: { show: false, filter: isolatedPoints, size: 4 },
        }),
      ),
    ],
    hooks: { draw: [(plot) => drawEvents(plot, shown.current.events, colour("--text-3"))] },
  };
}

/** Returns the indexes of isolated values, which no line connects. */
function isolatedPoints({ data }: UPlot, series: number): number[] {
  const values = data[series] ?? [];
  return [...values.keys()].filter(
    (at) => values[at] != null && values[at - 1] == null && values[at + 1] == null,
  );
}

/** Returns an upper bound above the largest value, so that a flat line is not at the edge. */
function top(max: number | null, least: number): number {
  return max === null || !(max > 0) ? least : max * 1.15;
}

/** Draws a vertical line at each event. */
function drawEvents(plot: UPlot, events: readonly PlotEvent[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([2, 3]);
  for (const { at } of events) {
    const left = Math.round(plot.valToPos(at, "x", true));
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
