/**
 * The columns of a list of documents: derived from the data, or selected, ordered and resized; stored for each
 * collection.
 */
import type { ComponentChildren } from "preact";
import { ago } from "../../base/format.ts";
import { href } from "../../base/router.ts";
import type { Column } from "../../components/virtual-table.tsx";
import { valueAt } from "../../json/csv.ts";
import { type JsonNode, JsonNumber } from "../../json/json-source.ts";
import { sizeCell, valueCell } from "../result-cells.tsx";
import type { ListRow } from "./list-rows.ts";

/**
 * A column selected by the user, in the format of the address: `Company`, `OrderedAt:90`. Fixed columns only have a
 * width: `@id:400`.
 */
export interface ChosenColumn {
  readonly path: string;
  /** Undefined for automatic width. */
  readonly width: number | undefined;
}

const shownColumnsMax = 8;
const widthMax = 320;
const dateLike = /^\d{4}-\d\d-\d\dT/;
const idLike = /^[A-Za-z][\w-]*\/[\w./-]{1,200}$/;

export function readChosen(text: string | null): ChosenColumn[] | null {
  if (text === null || text === "") return null;
  return text.split(",").map((part) => {
    const [path = "", width] = part.split(":");
    return {
      path: decodeURIComponent(path),
      width: width === undefined ? undefined : Number(width) || undefined,
    };
  });
}

export function writeChosen(chosen: readonly ChosenColumn[]): string {
  return chosen
    .map(({ path, width }) => {
      const name = encodeURIComponent(path);
      return width === undefined ? name : `${name}:${Math.round(width)}`;
    })
    .join(",");
}

/** Returns true for a column that is always shown. */
export function isFixed(path: string): boolean {
  return path === "@id" || path === "@collection" || path === "@last-modified";
}

/** Returns the fields of the columns, comma-separated. */
export function pathsOf(chosen: readonly ChosenColumn[]): string {
  const paths = chosen.map(({ path }) => path);
  return paths.filter((path) => !isFixed(path)).join(",");
}

/** Returns the columns with a changed width. */
export function widened(
  chosen: readonly ChosenColumn[],
  path: string,
  width: number,
): readonly ChosenColumn[] {
  const rest = isFixed(path) ? chosen.filter((one) => one.path !== path) : chosen;
  const next = rest.map((one) => (one.path === path ? { ...one, width } : one));
  return isFixed(path) ? [...next, { path, width }] : next;
}

const key = (database: string, collection: string | undefined) =>
  `jackdaw-columns\n${database}\n${collection ?? ""}`;

export function storedColumns(database: string, collection: string | undefined): string | null {
  return localStorage.getItem(key(database, collection));
}

export function storeColumns(
  database: string,
  collection: string | undefined,
  text: string | undefined,
): void {
  if (text === undefined) localStorage.removeItem(key(database, collection));
  else localStorage.setItem(key(database, collection), text);
}

/** Returns the fields of the rows, the most common first. */
export function fieldsIn(rows: readonly ListRow[]): string[] {
  const counts = new Map<string, number>();
  for (const { members, lists, objects } of rows) {
    for (const name of [...members.keys(), ...lists.keys(), ...objects.keys()])
      if (name !== "@metadata") counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a).map(([name]) => name);
}

/** Returns the default columns. */
export function foundColumns(rows: readonly ListRow[]): ChosenColumn[] {
  return fieldsIn(rows)
    .slice(0, shownColumnsMax)
    .map((path) => ({ path, width: undefined }));
}

/** Returns the common type of a column's values, or undefined. */
function kindOf(path: string, rows: readonly ListRow[]): string | undefined {
  const kinds = new Set<string>();
  for (const row of rows) {
    if (row.lists.has(path)) kinds.add("list");
    else if (row.objects.has(path)) kinds.add("object");
    else {
      const kind = kindOfValue(valueAt(row.members, path));
      if (kind !== undefined) kinds.add(kind);
    }
  }
  return kinds.size === 1 ? [...kinds][0] : kinds.size === 0 ? undefined : "mixed";
}

function kindOfValue(value: JsonNode | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (value instanceof JsonNumber) return "num";
  if (Array.isArray(value)) return "list";
  if (value instanceof Map) return "object";
  if (typeof value === "boolean") return "bool";
  return dateLike.test(value) ? "date" : idLike.test(value) ? "id" : "text";
}

interface ColumnsAsk {
  readonly database: string;
  readonly chosen: readonly ChosenColumn[];
  readonly sample: readonly ListRow[];
  readonly isOfAll: boolean;
  readonly nowMs: number;
  /** Shows the document of a row. */
  peek(row: ListRow): void;
}

export function columnsOf({
  database,
  chosen,
  sample,
  isOfAll,
  nowMs,
  peek,
}: ColumnsAsk): Column<ListRow>[] {
  const shown = chosen.filter(({ path }) => !isFixed(path));
  const widthOf = (path: string) => chosen.find((one) => one.path === path)?.width;
  return [
    {
      key: "@id",
      title: "Id",
      width:
        widthOf("@id") ??
        Math.min(widthMax, Math.max(120, 26 + 8 * longest(sample.map(({ id }) => id)))),
      canSort: true,
      cell: ({ id }) => (
        <a class="idlink" href={href(["db", database, "doc", id])} title={id}>
          {id}
        </a>
      ),
    },
    ...(isOfAll ? [collectionColumn(database, widthOf("@collection"))] : []),
    ...shown.map(({ path, width }): Column<ListRow> => {
      const kind = kindOf(path, sample);
      return {
        key: path,
        title: path,
        kind,
        width: width ?? usualWidth(path, kind, sample),
        isNumber: kind === "num",
        canSort: kind !== "list" && kind !== "object",
        cell: (row) => cellOf(row, path, database, () => peek(row)),
      };
    }),
    {
      key: "@last-modified",
      title: "Changed",
      width: widthOf("@last-modified") ?? 130,
      cell: ({ lastModified }) => (
        <span class="muted" title={lastModified}>
          {ago(lastModified, nowMs)}
        </span>
      ),
    },
  ];
}

function longest(texts: readonly string[]): number {
  return texts.reduce((most, text) => Math.max(most, text.length), 0);
}

/** Returns the width that most values of a column need, in pixels. */
function usualWidth(path: string, kind: string | undefined, sample: readonly ListRow[]): number {
  const lengths = sample
    .map(({ members }) => shownText(valueAt(members, path)).length)
    .sort((a, b) => a - b);
  const usual = lengths[Math.floor(lengths.length * 0.9)] ?? 0;
  const head = path.length + (kind === undefined ? 0 : kind.length + 1);
  return Math.min(widthMax, Math.max(90, 7.5 * Math.max(usual, head) + 26));
}

function shownText(value: JsonNode | undefined): string {
  if (typeof value === "string")
    return /T00:00:00(\.0+)?Z?$/.test(value) ? value.slice(0, 10) : value;
  return value instanceof JsonNumber ? value.digits : "[ 00 ]";
}

function cellOf(row: ListRow, path: string, database: string, show: () => void): ComponentChildren {
  const listed = row.lists.get(path);
  if (listed instanceof JsonNumber) return sizeCell(`[ ${listed.digits} ]`, show);
  const members = row.objects.get(path);
  if (members instanceof JsonNumber) return sizeCell(`{ ${members.digits} }`, show);
  const value = valueAt(row.members, path);
  if (value instanceof JsonNumber) return value.digits;
  if (value instanceof Map) return sizeCell(`{ ${value.size} }`, show);
  return valueCell(value, database, { show });
}

/** Returns the collection column for the list of all documents. */
function collectionColumn(database: string, width = 180): Column<ListRow> {
  return {
    key: "@collection",
    title: "Collection",
    width,
    cell: ({ collection }) =>
      collection === undefined ? null : (
        <a href={href(["db", database, "docs", collection])}>{collection}</a>
      ),
  };
}
