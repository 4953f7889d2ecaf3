/**
 * A plot over time, drawn by uPlot. Plots with the same `group` share the crosshair. Colours follow the theme; series
 * also differ by their dashes.
 */
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";
import { theme } from "../base/theme.ts";

export interface PlotSeries {
  readonly name: string;
  /** One value per time; null if unknown. */
  readonly values: readonly (number | null)[];
  /** Smallest and largest of what each value represents, drawn as an area. */
  readonly bounds?: {
    readonly low: readonly (number | null)[];
    readonly high: readonly (number | null)[];
  };
}

export interface PlotEvent {
  /** Time in seconds since 1970. */
  readonly at: number;
  readonly text: string;
}

/** A range of times in seconds since 1970. */
export type PlotRange = readonly [from: number, to: number];

interface Properties {
  /** Description of the plot in a sentence. */
  readonly label: string;
  /** Times in seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly PlotSeries[];
  /** Drawn as lines with numbers, which begin with 1. Ascending. */
  readonly events?: readonly PlotEvent[];
  readonly group: string;
  /** The times of the horizontal axis; by default those of the data. */
  readonly range?: PlotRange | undefined;
  readonly height?: number;
  /** True if the axis uses powers of two. */
  readonly isBytes?: boolean;
  /** True if the axis need not begin with 0. */
  readonly isFree?: boolean;
  format(value: number): string;
  /** Called with the index of the time at the crosshair, or null. */
  readAt?(index: number | null): void;
  /** Called with the range that the user selected by dragging; null after a double click. */
  zoom?(range: PlotRange | null): void;
}

const powersOfTwo = Array.from({ length: 50 }, (_, n) => 2 ** n);
const dashes = [[], [5, 4], [1, 3]] as const;
const colours = ["--series-1", "--series-2", "--series-3"] as const;
const noEvents: readonly PlotEvent[] = [];

export function Plot(properties: Properties) {
  const { label, times, series, events = noEvents, group, range, height = 112 } = properties;
  const { isBytes = false, isFree = false, zoom } = properties;
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const shown = useRef(properties);
  shown.current = properties;
  const kinds = series.map(({ bounds }) => (bounds === undefined ? "line" : "area")).join(" ");
  const canZoom = zoom !== undefined;
  const colour = theme.value;
  useEffect(() => {
    const element = holder.current;
    if (element === null) return undefined;
    const widthOf = () => Math.max(120, element.clientWidth);
    const made = new UPlot(
      { ...optionsOf(shown, kinds), width: widthOf(), height },
      dataOf(times, series),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: widthOf(), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [kinds, group, isBytes, isFree, canZoom, height, colour]);
  useEffect(
    () => plot.current?.setData(dataOf(times, series)),
    [times, series, events, range?.[0], range?.[1]],
  );
  return (
    <div
      ref={holder}
      class="canvas"
      role="img"
      aria-label={label}
      style={{ height: `${height}px` }}
      onDblClick={() => zoom?.(null)}
    />
  );
}

type Shown = { readonly current: Properties };

/** Data rows in the order of `seriesOptions`. */
function dataOf(times: readonly number[], series: readonly PlotSeries[]): UPlot.AlignedData {
  const rows = series.flatMap(({ values, bounds }) =>
    bounds === undefined ? [values] : [bounds.low, bounds.high, values],
  );
  return [[...times], ...rows.map((values) => [...values])];
}

/** Returns the options without the size. `kinds`: `line` or `area` for each series. */
function optionsOf(shown: Shown, kinds: string): Omit<UPlot.Options, "width" | "height"> {
  const { group, isBytes = false, isFree = false, zoom } = shown.current;
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string) => styles.getPropertyValue(name).trim();
  const font = `10px ${styles.getPropertyValue("--sans")}`;
  const axis = { stroke: colour("--text-3"), font, ticks: { show: false } };
  return {
    padding: [shown.current.events === undefined ? 8 : 16, 4, 0, 24],
    legend: { show: false },
    cursor: {
      // Only the crosshair is shared, not the selection.
      sync: { key: group, filters: { pub: (type) => type === "mousemove", sub: () => true } },
      drag: { x: zoom !== undefined, y: false, setScale: false, dist: 4 },
      points: { size: 5 },
    },
    scales: {
      x: { time: true, range: (_plot, min, max) => [...(shown.current.range ?? [min, max])] },
      y: isFree ? {} : { range: (_plot, _min, max) => [0, top(max, isBytes ? 1024 : 1)] },
    },
    axes: [
      { ...axis, size: 20, grid: { show: false }, space: 52 },
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
    ...seriesOptions(kinds === "" ? [] : kinds.split(" "), colour),
    hooks: {
      draw: [(plot) => drawEvents(plot, shown.current.events ?? noEvents, colour("--text-2"))],
      setCursor: [({ cursor }) => shown.current.readAt?.(cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          const [from, to] = [left, left + width].map((at) => plot.posToVal(at, "x"));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          shown.current.zoom?.([from as number, to as number]);
        },
      ],
    },
  };
}

/** Returns the lines, and areas between two faint lines. */
function seriesOptions(
  kinds: readonly string[],
  colour: (name: string) => string,
): Pick<UPlot.Options, "series" | "bands"> {
  const series: UPlot.Series[] = [{}];
  const bands: UPlot.Band[] = [];
  for (const [at, kind] of kinds.entries()) {
    const stroke = colour(colours[at % 3] as string); // there are three colours
    if (kind === "area") {
      bands.push({ series: [series.length + 1, series.length], fill: `${stroke}33` });
      const edge = { stroke: `${stroke}66`, width: 1, points: { show: false } };
      series.push(edge, { ...edge });
    }
    series.push({
      stroke,
      width: 1.5,
      dash: [...(dashes[at % 3] as readonly number[])], // there are three dash patterns
      points: { show: false, filter: isolatedPoints, size: 4 },
    });
  }
  return { series, bands };
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

/** Minimum distance of two labels, in CSS pixels. */
const labelDistance = 18;

/** Draws a vertical line at each event, with its number above; events that are close to each other share a label. */
function drawEvents(plot: UPlot, events: readonly PlotEvent[], colour: string): void {
  const { ctx, bbox } = plot;
  const scale = UPlot.pxRatio;
  const labels: { left: number; first: number; last: number }[] = [];
  ctx.save();
  ctx.font = `${10 * scale}px sans-serif`;
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.setLineDash([2, 3]);
  for (const [n, { at }] of events.entries()) {
    const left = Math.round(plot.valToPos(at, "x", true));
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
    const before = labels.at(-1);
    if (before !== undefined && left - before.left < labelDistance * scale) before.last = n + 1;
    else labels.push({ left, first: n + 1, last: n + 1 });
  }
  for (const { left, first, last } of labels)
    ctx.fillText(first === last ? `${first}` : `${first}–${last}`, left, bbox.top - 2 * scale);
  ctx.restore();
}
