/** The values of a document as cells of a table. Shapes as of `studio/collections/preview`. */
import type { ComponentChildren } from "preact";
import { valueCell } from "./result-cells.tsx";

export interface PreviewRow {
  readonly "@metadata": {
    readonly "@id": string;
    readonly "@collection"?: string;
    readonly "@last-modified": string;
    /** Numbers of elements of lists, and of members of objects. */
    readonly $a: Readonly<Record<string, number>>;
    readonly $o: Readonly<Record<string, number>>;
  };
  readonly [field: string]: unknown;
}

export interface Preview {
  readonly TotalResults: number;
  readonly AvailableColumns: readonly string[];
  readonly Results: readonly PreviewRow[];
}

export function cellOf(row: PreviewRow, name: string, database: string): ComponentChildren {
  const { $a: lists, $o: objects } = row["@metadata"];
  const length = lists[name];
  if (length !== undefined) return <span class="obj">[ {length} ]</span>;
  const members = objects[name];
  if (members !== undefined) return <span class="obj">{`{ ${members} }`}</span>;
  return valueCell(row[name], database);
}

/** Pixels that most values of a column need. */
export function widthOf(name: string, sample: readonly PreviewRow[]): number {
  const lengths = sample.map((row) => String(row[name] ?? "").length).sort((a, b) => a - b);
  const usual = lengths[Math.floor(lengths.length * 0.9)] ?? 0;
  return Math.min(320, Math.max(90, 8 * Math.max(usual, name.length) + 26));
}
