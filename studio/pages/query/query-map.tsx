/** Query results with coordinates on a map, with the circles and polygons that the query searched, and as a table. */
import { useMemo, useState } from "preact/hooks";
import { counted } from "../../base/format.ts";
import { lazy } from "../../base/lazy.tsx";
import { href } from "../../base/router.ts";
import { Empty } from "../../components/messages.tsx";
import { numeric, Table } from "../../components/table.tsx";
import type { Area, Position } from "../../components/world-map.tsx";
import { type Place, placesOf } from "../../json/fields.ts";
import type { ResultRow } from "../result-cells.tsx";
import { idOf } from "../result-table.tsx";

const WorldMap = lazy(async () => (await import("../../components/world-map.tsx")).WorldMap);

interface Vertex {
  readonly Latitude: number;
  readonly Longitude: number;
}

type Shape =
  | {
      readonly Type: "Circle";
      readonly Center: Vertex;
      readonly Radius: number;
      readonly Units: "Kilometers" | "Miles";
    }
  | { readonly Type: "Polygon"; readonly Vertices: readonly Vertex[] };

/** The spatial part of a reply to a query with `addSpatialProperties=true`. */
export interface SpatialAnswer {
  readonly SpatialProperties?: readonly {
    readonly LatitudeProperty: string;
    readonly LongitudeProperty: string;
  }[];
  readonly SpatialShapes?: readonly Shape[];
}

const tableMax = 200;
const mileKm = 1.609344;

export function placesIn(rows: readonly ResultRow[], { SpatialProperties = [] }: SpatialAnswer) {
  const pairs = SpatialProperties.map(
    ({ LatitudeProperty, LongitudeProperty }) =>
      [LatitudeProperty.split("."), LongitudeProperty.split(".")] as const,
  );
  return placesOf(rows, pairs);
}

export function ResultMap({
  rows,
  spatial,
  database,
}: {
  rows: readonly ResultRow[];
  spatial: SpatialAnswer;
  database: string;
}) {
  const [marked, mark] = useState<number | null>(null);
  const places = useMemo(() => placesIn(rows, spatial), [rows, spatial]);
  const points = useMemo(
    () => places.map(({ latitude, longitude }): Position => [longitude, latitude]),
    [places],
  );
  const areas = useMemo(() => (spatial.SpatialShapes ?? []).map(areaOf), [spatial]);
  if (places.length === 0 && areas.length === 0) {
    return (
      <Empty icon="find" title="No coordinates">
        <p>
          The map shows results with a latitude and a longitude, such as{" "}
          <code>{"{ Latitude, Longitude }"}</code>, or the fields of <code>spatial.point()</code>.
        </p>
      </Empty>
    );
  }
  const place = marked === null ? undefined : places[marked];
  const without = rows.length - places.length;
  return (
    <div class="scroll grow chart">
      <WorldMap
        label={`Map of ${counted(places.length, "result")}${areas.length === 0 ? "" : " and the searched area"}`}
        points={points}
        areas={areas}
        marked={marked}
        mark={mark}
      />
      <p role="status">
        {place === undefined ? (
          <span class="muted">Click a point to see the result.</span>
        ) : (
          <>
            <Name row={rows[place.row]} at={place.row} database={database} /> {positionText(place)}
          </>
        )}{" "}
        {without > 0 && <span class="muted">{counted(without, "row")} without coordinates.</span>}
      </p>
      <details>
        <summary>Places as a table</summary>
        <Table
          kind="data"
          label="Places"
          columns={["Result", numeric("Latitude"), numeric("Longitude")]}
        >
          {places.slice(0, tableMax).map(({ row, latitude, longitude }, at) => (
            <tr key={row} aria-selected={at === marked}>
              <td>
                <Name row={rows[row]} at={row} database={database} />
              </td>
              <td class="num">{latitude}</td>
              <td class="num">{longitude}</td>
            </tr>
          ))}
        </Table>
        {places.length > tableMax && (
          <p class="muted">
            The first {tableMax} of {counted(places.length, "place")}.
          </p>
        )}
      </details>
    </div>
  );
}

function Name({ row, at, database }: { row: ResultRow | undefined; at: number; database: string }) {
  const id = row === undefined ? "" : idOf(row);
  if (id === "") return <>Row {at + 1}</>;
  return (
    <a class="idlink" href={href(["db", database, "doc", id])}>
      {id}
    </a>
  );
}

function positionText({ latitude, longitude }: Place): string {
  return `${latitude.toFixed(4)}, ${longitude.toFixed(4)}`;
}

function areaOf(shape: Shape): Area {
  const positionOf = ({ Latitude, Longitude }: Vertex): Position => [Longitude, Latitude];
  if (shape.Type === "Polygon") return { corners: shape.Vertices.map(positionOf) };
  const { Center, Radius, Units } = shape;
  return { center: positionOf(Center), km: Units === "Miles" ? Radius * mileKm : Radius };
}
