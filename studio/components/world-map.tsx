/**
 * Points and outlines on a map with coast lines (Natural Earth, public domain), in the Mercator projection. Dragging and
 * arrow keys move it; buttons, `+` and `-` zoom, `0` fits.
 */
import {
  type GeoPermissibleObjects,
  geoCircle,
  geoDistance,
  geoGraticule,
  geoMercator,
  geoPath,
} from "d3-geo";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import land110 from "world-atlas/land-110m.json";
import { count } from "../base/format.ts";
import { Icon } from "./icon.tsx";

/** Degrees east and north. */
export type Position = readonly [longitude: number, latitude: number];

/** A circle, or a polygon whose sides are straight in degrees. */
export type Area =
  | { readonly center: Position; readonly km: number }
  | { readonly corners: readonly Position[] };

interface Properties {
  /** Description in a sentence. */
  readonly label: string;
  readonly points: readonly Position[];
  readonly areas: readonly Area[];
  /** Index of the marked point. */
  readonly marked: number | null;
  mark(point: number | null): void;
}

interface View {
  readonly zoom: number;
  /** Distance from the center of the data, in radians of the projection. */
  readonly x: number;
  readonly y: number;
}

const whole: View = { zoom: 1, x: 0, y: 0 };
const margin = 24;
const radius = 4.5;
/** Pixels per radian, at which a picture is a few kilometers wide. */
const scaleMax = 2_000_000;
/** Initial scale of a single point: about 1,500 km. */
const initialScaleMax = 4_000;
const nearPixels = 14;
/** Distance that an arrow key moves the map. */
const keyPixels = 60;
const earthKm = 6371;
const topology = land110 as unknown as Topology<{ land: GeometryCollection }>;
const land = feature(topology, topology.objects.land);

export function WorldMap({ label, points, areas, marked, mark }: Properties) {
  const holder = useRef<HTMLDivElement>(null);
  const note = useId();
  const { width, height } = useSize(holder);
  const [view, setView] = useState(whole);
  const outlines = useMemo(() => areas.map(outlineOf), [areas]);
  const fit = useMemo(
    () => fitted(points, outlines, width, height),
    [points, outlines, width, height],
  );
  const scale = Math.min(scaleMax, Math.max(width / (2 * Math.PI), fit.scale * view.zoom));
  // The map ends half a turn from the middle.
  const limit = Math.max(0, Math.PI - width / (2 * scale));
  const center = Math.max(-limit, Math.min(limit, fit.x + view.x));
  // The sides of coast lines are short: resampling them changes nothing that is visible.
  const projection = geoMercator()
    .precision(0)
    .rotate([-fit.middle, 0])
    .scale(scale)
    .translate([width / 2 - scale * center, height / 2 - scale * (fit.y + view.y)]);
  const path = geoPath(projection);
  const drawn = (shape: GeoPermissibleObjects) => path(shape) ?? "";
  const spots = points.map((point) => spotOf(projection, point));
  const nearest = ({ clientX, clientY }: MouseEvent) => {
    const { left = 0, top = 0 } = holder.current?.getBoundingClientRect() ?? {};
    const distances = spots.map(([x, y]) => Math.hypot(x + left - clientX, y + top - clientY));
    const least = Math.min(...distances);
    return least <= nearPixels ? distances.indexOf(least) : null;
  };
  const zoom = (factor: number) =>
    setView({ ...view, zoom: Math.min(scaleMax / fit.scale, view.zoom * factor) });
  const move = (x: number, y: number) =>
    setView({ ...view, x: center - fit.x + x / scale, y: view.y + y / scale });
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => move(-keyPixels, 0),
    ArrowRight: () => move(keyPixels, 0),
    ArrowUp: () => move(0, -keyPixels),
    ArrowDown: () => move(0, keyPixels),
    "+": () => zoom(2),
    "=": () => zoom(2),
    "-": () => zoom(0.5),
    "0": () => setView(whole),
  };
  const chosen = marked === null ? undefined : spots[marked];
  return (
    <div class="map">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields */}
      <div
        ref={holder}
        class="map-holder"
        role="group"
        aria-label="Map"
        aria-describedby={note}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move the map
        tabIndex={0}
        onKeyDown={(event) => press(event, keys)}
      >
        {width > 0 && (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the table of places has the same for the keyboard
          <svg
            width={width}
            height={height}
            role="img"
            aria-label={label}
            onPointerDown={(event) => drag(event, view, scale, setView)}
            onClick={(event) => mark(nearest(event))}
          >
            <path class="graticule" d={drawn(graticule(projection, width, height))} />
            <path class="land" d={drawn(land)} />
            {outlines.map((line, at) => (
              <path key={at} class="outline" d={drawn(lineOf(line))} />
            ))}
            <path
              class="spots"
              d={spots
                .filter(([x, y]) => x > -9 && x < width + 9 && y > -9 && y < height + 9)
                .map(([x, y]) => circle(x, y, radius))
                .join("")}
            />
            {chosen !== undefined && (
              <path class="spots marked" d={circle(chosen[0], chosen[1], radius + 3)} />
            )}
          </svg>
        )}
        <div class="map-buttons">
          <button type="button" class="btn icon" aria-label="Zoom in" onClick={() => zoom(2)}>
            <Icon name="plus" />
          </button>
          <button type="button" class="btn icon" aria-label="Zoom out" onClick={() => zoom(0.5)}>
            −
          </button>
          <button type="button" class="btn" onClick={() => setView(whole)}>
            Fit
          </button>
        </div>
      </div>
      <p id={note} class="muted">
        {widthText(projection, width, height)}Arrow keys move the map, + and − zoom, 0 fits.
      </p>
    </div>
  );
}

function spotOf(projection: Projection, position: Position): [x: number, y: number] {
  return projection([...position]) ?? [Number.NaN, Number.NaN];
}

function circle(x: number, y: number, r: number): string {
  return `M${(x - r).toFixed(1)},${y.toFixed(1)}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`;
}

function lineOf(line: readonly Position[]): GeoPermissibleObjects {
  return { type: "LineString", coordinates: line.map((one) => [...one]) };
}

/** Points per side of a polygon. */
const sidePoints = 16;

/** Returns a closed line. */
function outlineOf(area: Area): readonly Position[] {
  if ("center" in area) {
    const degrees = ((area.km / earthKm) * 180) / Math.PI;
    const [ring = []] = geoCircle()
      .center([...area.center])
      .radius(degrees)
      .precision(3)().coordinates;
    return ring as [number, number][];
  }
  return area.corners.flatMap(([fromEast, fromNorth], at, all) => {
    const [toEast, toNorth] = all[(at + 1) % all.length] as Position; // the remainder is an index
    return Array.from({ length: sidePoints }, (_, n): Position => {
      const share = n / (sidePoints - 1);
      return [fromEast + share * (toEast - fromEast), fromNorth + share * (toNorth - fromNorth)];
    });
  });
}

/** Returns the projection that shows all points and outlines, by default the world. */
function fitted(
  points: readonly Position[],
  outlines: readonly (readonly Position[])[],
  width: number,
  height: number,
) {
  const all = [...points, ...outlines.flat()];
  const middle = middleOf(all.map(([longitude]) => longitude));
  const projection = geoMercator().rotate([-middle, 0]).scale(1).translate([0, 0]);
  const spots = all.map((one) => spotOf(projection, one));
  const [xs, ys] = [spots.map(([x]) => x), spots.map(([, y]) => Math.max(-3, Math.min(3, y)))];
  if (all.length === 0) return { middle, scale: width / (2 * Math.PI), x: 0, y: 0 };
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const scale = Math.min(
    initialScaleMax,
    (width - 2 * margin) / (right - left),
    (height - 2 * margin) / (bottom - top),
  );
  return { middle, scale, x: (left + right) / 2, y: (top + bottom) / 2 };
}

/** Returns the mean longitude if all are within 120 degrees of it, so that no picture is cut there; otherwise 0. */
function middleOf(longitudes: readonly number[]): number {
  const angles = longitudes.map((one) => (one * Math.PI) / 180);
  const sum = (of: (angle: number) => number) => angles.reduce((all, one) => all + of(one), 0);
  const middle = (Math.atan2(sum(Math.sin), sum(Math.cos)) * 180) / Math.PI;
  const isNear = longitudes.every((one) => Math.abs(((one - middle + 540) % 360) - 180) < 120);
  return isNear ? middle : 0;
}

type Projection = ReturnType<typeof geoMercator>;

const gridSteps = [30, 10, 5, 1, 0.5, 0.1, 0.05, 0.01];

/** Returns lines of latitude and longitude in the picture, at most ten in a direction. */
function graticule(projection: Projection, width: number, height: number) {
  const [east = 180, north = 85] = projection.invert?.([width, 0]) ?? [];
  const [west = -180, south = -85] = projection.invert?.([0, height]) ?? [];
  const across = Math.min(360, (projection.scale() > 0 ? width / projection.scale() : 0) * 57.3);
  const step = gridSteps.findLast((one) => across / one <= 10) ?? 30;
  const first = across >= 350 ? -180 : west;
  const last = across >= 350 ? 180 : east < west ? east + 360 : east;
  return geoGraticule()
    .extent([
      [first, Math.max(-89, south)],
      [last, Math.min(89, north)],
    ])
    .step([step, step])();
}

function widthText(projection: Projection, width: number, height: number): string {
  const [left, right] = [
    [width / 2 - 50, height / 2],
    [width / 2 + 50, height / 2],
  ].map((spot) => projection.invert?.(spot as [number, number]));
  if (left == null || right == null) return "";
  const km = (geoDistance(left, right) * earthKm * width) / 100;
  return `${count(Number(km.toPrecision(2)))} km wide in the middle. `;
}

function press(event: KeyboardEvent, keys: Readonly<Record<string, () => void>>): void {
  const act = keys[event.key];
  if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
}

function drag(
  { currentTarget, pointerId, clientX, clientY }: PointerEvent,
  view: View,
  scale: number,
  setView: (view: View) => void,
): void {
  const element = currentTarget as SVGSVGElement;
  element.setPointerCapture(pointerId);
  element.onpointermove = (moved) =>
    setView({
      ...view,
      x: view.x - (moved.clientX - clientX) / scale,
      y: view.y - (moved.clientY - clientY) / scale,
    });
  element.onpointerup = () => {
    element.onpointermove = null;
  };
}

function useSize(holder: { readonly current: HTMLElement | null }) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = holder.current;
    if (element === null) return undefined;
    const resized = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    resized();
    const observer = new ResizeObserver(resized);
    observer.observe(element);
    return () => observer.disconnect();
  }, [holder]);
  return size;
}
