/** A table of results; a row, or a list or object in it, is shown beside the table. */
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { isSeriesResult } from "../base/series-points.ts";
import { Drawer } from "../components/drawer.tsx";
import { ResultSeries } from "../components/series-figure.tsx";
import { type Column, VirtualTable } from "../components/virtual-table.tsx";
import type { ResultRow } from "./result-cells.tsx";

interface Opened {
  readonly title: string;
  readonly value: object;
}

export type Show = (title: string, value: object) => void;

const noNeed = () => undefined;

/** `columnsOf` must not change between renderings, except with the rows. */
export function ResultTable({
  label,
  rows,
  columnsOf,
}: {
  label: string;
  rows: readonly ResultRow[];
  columnsOf: (show: Show) => Column<ResultRow>[];
}) {
  const [opened, setOpened] = useState<Opened | null>(null);
  useEffect(() => setOpened(null), [rows]);
  const show: Show = (title, value) => setOpened({ title, value });
  const columns = useMemo(() => columnsOf(show), [columnsOf]);
  const row = useCallback((index: number) => rows[index], [rows]);
  return (
    <div class="beside">
      <div class="pane grow">
        <VirtualTable
          label={label}
          columns={columns}
          total={rows.length}
          row={row}
          need={noNeed}
          open={(found) => show(idOf(found) || "Row", found)}
        />
      </div>
      {opened !== null && (
        <Drawer key={opened.title} title={opened.title} close={() => setOpened(null)}>
          {isSeriesResult(opened.value) && (
            <ResultSeries name={opened.title} result={opened.value} />
          )}
          <pre class="peeked">{JSON.stringify(opened.value, null, 4)}</pre>
        </Drawer>
      )}
    </div>
  );
}

export function idOf(row: ResultRow): string {
  return row["@metadata"]?.["@id"] ?? "";
}
