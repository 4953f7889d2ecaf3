/** A table with a line of column labels. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { useMoreColumns } from "./more-columns.ts";

interface LabeledColumn {
  readonly label: string;
  readonly class?: string;
  /** Only screen readers show the label. */
  readonly isHidden?: boolean;
}

type Column = string | LabeledColumn;

/** A column of numbers. */
export function numeric(label: string): LabeledColumn {
  return { label, class: "num" };
}

/** The column of the buttons of a row. */
export const actionsColumn: LabeledColumn = { label: "Actions", isHidden: true };

export function Table({
  kind,
  label,
  columns,
  children,
}: {
  kind?: "data" | "lines";
  /** Label of the table for screen readers. */
  label: string;
  /** Columns in order; false for a column that is not shown. */
  columns: readonly (Column | false)[];
  /** The rows. */
  children: ComponentChildren;
}) {
  const table = useRef<HTMLTableElement>(null);
  useMoreColumns(table);
  const shown = columns.filter((column) => column !== false);
  return (
    <table ref={table} class={kind} aria-label={label}>
      <thead>
        <tr>
          {shown.map((column) => heading(typeof column === "string" ? { label: column } : column))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

function heading({ label, class: kind, isHidden }: LabeledColumn) {
  return (
    <th key={label} class={kind}>
      {isHidden ? <span class="hidden-label">{label}</span> : label}
    </th>
  );
}
