// biome-ignore-all lint/a11y/useSemanticElements: only visible rows exist, so this is not a table element
// biome-ignore-all lint/a11y/useFocusableInteractive: rows receive the focus, cells and headers do not
/**
 * A virtualized table: only visible rows are in the document. All rows have the same height.
 *
 * Invariants:
 * - The scrolled area is at most `heightMax` high, because browsers have limits. With more rows, one pixel of the
 *   scroll bar represents more than one pixel of the table.
 * - One row is the current row; arrow keys, Home, End and the page keys move it, Enter opens it (the WAI-ARIA grid
 *   pattern).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useMoreColumns } from "./more-columns.ts";

export interface Column<R> {
  readonly key: string;
  readonly title: ComponentChildren;
  readonly width: number;
  readonly isNumber?: boolean;
  /** Type of the values, shown after the title: `text`, `date`. */
  readonly kind?: string | undefined;
  /** True if the header is a button that sorts by the column. */
  readonly canSort?: boolean;
  cell(row: R): ComponentChildren;
}

interface Properties<R> {
  readonly label: string;
  readonly columns: readonly Column<R>[];
  readonly total: number;
  /** Returns a row, or undefined while it is loading. */
  row(index: number): R | undefined;
  /** Called with the range of visible and soon visible rows. */
  need(from: number, to: number): void;
  open(row: R): void;
  /** Index of the initial current row. */
  readonly start?: number;
  /** True if the table receives the focus when mounted. */
  readonly isFocused?: boolean;
  /** Called when the current row changes. */
  moved?(index: number): void;
  /** Called for keys that the table does not handle; `preventDefault` marks a key as handled. */
  keyed?(event: KeyboardEvent, row: R | undefined, index: number): void;
  readonly selection?: Selection<R>;
  readonly sort?: Sort;
  sortBy?(key: string): void;
  /** Called when the user resizes a column, by its edge or by Shift and an arrow key on its header. */
  resize?(key: string, width: number): void;
  /**
   * Called when the user moves a column before another one (null: to the end), by dragging or by Alt and an arrow
   * key.
   */
  reorder?(key: string, before: string | null): void;
}

export interface Sort {
  readonly key: string;
  readonly isDescending: boolean;
}

export interface Selection<R> {
  /** State of the checkbox in the header. */
  readonly state: "none" | "some" | "all";
  has(row: R): boolean;
  /** Toggles a row; with `isRange`, all rows from the last toggled row to it. */
  toggle(index: number, isRange: boolean): void;
  toggleAll(): void;
  name(row: R): string;
}

const heightMax = 10_000_000;
const headHeight = 30;
const extraRows = 8;
const selectionWidth = 36;

export function VirtualTable<R>(properties: Properties<R>) {
  const { label, total, need, start = 0, selection, isFocused = false } = properties;
  const { columns, setDragged } = useDragged(properties.columns);
  const scroller = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const { view, rowHeight } = useView(scroller);
  useMoreColumns(body);
  const { current, latest, setCurrent } = useCurrent(start, properties.moved);
  const hasMoved = useRef(isFocused);
  const wholeHeight = total * rowHeight;
  const shownHeight = Math.min(wholeHeight, heightMax);
  const space = Math.max(0, view.height - headHeight);
  // Table pixels per pixel of the scroll bar.
  const scale = shownHeight > space ? (wholeHeight - space) / (shownHeight - space) : 1;
  const top = view.top * scale;
  const first = Math.max(0, Math.floor(top / rowHeight) - extraRows);
  const last = Math.min(total, Math.ceil((top + space) / rowHeight) + extraRows);

  useEffect(() => need(first, last), [first, last, need]);

  useFirstRow(properties.sort, () => {
    scroller.current?.scrollTo({ top: 0 });
    setCurrent(0);
  });

  // The previous position was restored.
  const isAtStart = useRef(start === 0);
  useEffect(() => {
    const element = scroller.current;
    if (isAtStart.current || element === null || total === 0) return;
    isAtStart.current = true;
    element.scrollTop = Math.max(0, start * rowHeight - space / 2) / scale;
  }, [total]);

  useCurrentInView(scroller, hasMoved, latest, { top, rowHeight, space, scale });

  const move = (to: number) => {
    hasMoved.current = true;
    setCurrent(Math.max(0, Math.min(total - 1, to)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = stepOf(event, Math.max(1, Math.floor(space / rowHeight) - 1), total);
    if (step !== undefined) {
      event.preventDefault();
      move(latest.current + step);
    } else keyOnRow(event, properties, latest.current);
  };
  const widths = columns.map(({ width }) => width);
  if (selection !== undefined) widths.unshift(selectionWidth);
  const wholeWidth = widths.reduce((sum, width) => sum + width, 0);
  const template = widths.map((width) => `${width}px`).join(" ");
  const rows = [];
  for (let index = first; index < last; index++) {
    rows.push(
      <Row
        key={index}
        properties={properties}
        index={index}
        isCurrent={index === current}
        focused={setCurrent}
        style={{
          gridTemplateColumns: template,
          transform: `translateY(${index * rowHeight - top + view.top}px)`,
        }}
      />,
    );
  }
  return (
    <div
      ref={scroller}
      class="vtable"
      role="grid"
      aria-label={label}
      aria-rowcount={total + 1}
      aria-colcount={widths.length}
      aria-multiselectable={selection === undefined ? undefined : true}
      onKeyDown={onKeyDown}
    >
      <HeadRow properties={{ ...properties, columns }} template={template} drag={setDragged} />
      <div
        ref={body}
        class="vbody"
        style={{ height: `${shownHeight}px`, width: `${wholeWidth}px` }}
      >
        {rows}
      </div>
    </div>
  );
}

interface Mutable<T> {
  current: T;
}

/** Scrolls to the current row after the user has moved, and focuses it. */
function useCurrentInView(
  scroller: { readonly current: HTMLDivElement | null },
  hasMoved: Mutable<boolean>,
  latest: { readonly current: number },
  view: Readonly<Record<"top" | "rowHeight" | "space" | "scale", number>>,
): void {
  const { top, rowHeight, space, scale } = view;
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || !hasMoved.current) return;
    const at = latest.current * rowHeight;
    if (at < top) element.scrollTop = at / scale;
    else if (at + rowHeight > top + space) element.scrollTop = (at + rowHeight - space) / scale;
    const row = element.querySelector<HTMLElement>(`[aria-rowindex="${latest.current + 2}"]`);
    // The row is rendered after scrolling to it.
    if (row === null) return;
    hasMoved.current = false;
    row.focus({ preventScroll: true });
  });
}

/** Another order begins with the first row. */
function useFirstRow(sort: Sort | undefined, goToFirst: () => void): void {
  const order = `${sort?.key} ${sort?.isDescending}`;
  const shown = useRef(order);
  useEffect(() => {
    if (shown.current === order) return;
    shown.current = order;
    goToFirst();
  }, [order]);
}

/** The current row for rendering, and for keys, which may arrive several times before the next rendering. */
function useCurrent(start: number, moved: ((index: number) => void) | undefined) {
  const [current, render] = useState(start);
  const latest = useRef(start);
  const setCurrent = (index: number) => {
    if (index !== latest.current) moved?.(index);
    latest.current = index;
    render(index);
  };
  return { current, latest, setCurrent };
}

/** Handles a key that does not move: opens or selects the row, or forwards the key to the page. */
function keyOnRow<R>(event: KeyboardEvent, properties: Properties<R>, index: number): void {
  const { selection } = properties;
  const found = properties.row(index);
  // Enter on a link or button in the table belongs to that element.
  const isOwn = (event.target as Element | null)?.closest("a, button") === null;
  if (event.key === "Enter" && isOwn) {
    if (found !== undefined) properties.open(found);
  } else if (selection !== undefined && event.key === "x" && !isWithControl(event)) {
    event.preventDefault();
    selection.toggle(index, false);
  } else if (selection !== undefined && event.key === "a" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    selection.toggleAll();
  } else properties.keyed?.(event, found, index);
}

/** Width of a column while its edge is dragged. */
interface Dragged {
  readonly key: string;
  readonly width: number;
}

type Drag = (dragged: Dragged | null) => void;

/** Returns the columns with the width of the column being resized. */
function useDragged<R>(columns: readonly Column<R>[]) {
  const [dragged, setDragged] = useState<Dragged | null>(null);
  if (dragged === null) return { columns, setDragged };
  const shown = columns.map((one) => (one.key === dragged.key ? { ...one, ...dragged } : one));
  return { columns: shown, setDragged };
}

interface HeadRowProperties<R> {
  properties: Properties<R>;
  template: string;
  drag: Drag;
}

function HeadRow<R>({ properties, template, drag }: HeadRowProperties<R>) {
  const { columns, selection } = properties;
  return (
    <div role="row" class="vhead" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
      {selection !== undefined && (
        <div key="selected" role="columnheader" class="vcell tight">
          <AllBox selection={selection} />
        </div>
      )}
      {columns.map((column) => (
        <Head key={column.key} column={column} properties={properties} drag={drag} />
      ))}
    </div>
  );
}

interface RowProperties<R> {
  properties: Properties<R>;
  index: number;
  isCurrent: boolean;
  focused: (index: number) => void;
  style: Readonly<Record<string, string>>;
}

function Row<R>({ properties, index, isCurrent, focused, style }: RowProperties<R>) {
  const { columns, selection } = properties;
  const found = properties.row(index);
  const isSelected = found !== undefined && selection?.has(found) === true;
  return (
    <div
      role="row"
      class="vrow"
      aria-rowindex={index + 2}
      aria-selected={selection === undefined ? undefined : isSelected}
      tabIndex={isCurrent ? 0 : -1}
      onFocus={() => focused(index)}
      style={style}
    >
      {selection !== undefined && (
        <div key="selected" role="gridcell" class="vcell tight">
          {found !== undefined && <SelectBox selection={selection} row={found} index={index} />}
        </div>
      )}
      {columns.map((column) => (
        <div key={column.key} role="gridcell" class={column.isNumber ? "vcell num" : "vcell"}>
          {found === undefined ? <span class="bone" /> : column.cell(found)}
        </div>
      ))}
    </div>
  );
}

function isWithControl(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}

interface BoxProperties<R> {
  selection: Selection<R>;
  row: R;
  index: number;
}

function SelectBox<R>({ selection, row, index }: BoxProperties<R>) {
  return (
    <input
      type="checkbox"
      tabIndex={-1}
      aria-label={`Select ${selection.name(row)}`}
      checked={selection.has(row)}
      onClick={(event) => selection.toggle(index, event.shiftKey)}
    />
  );
}

function AllBox<R>({ selection }: { selection: Selection<R> }) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (box.current !== null) box.current.indeterminate = selection.state === "some";
  });
  return (
    <input
      ref={box}
      type="checkbox"
      aria-label="Select these rows"
      checked={selection.state === "all"}
      onChange={selection.toggleAll}
    />
  );
}

const dragType = "text/x-jackdaw-column";
const widthMin = 48;
const widthStep = 16;

interface HeadProperties<R> {
  column: Column<R>;
  properties: Properties<R>;
  drag: Drag;
}

/** Shift and an arrow key resize the column; Alt and an arrow key move it. */
function headKey<R>(
  event: KeyboardEvent,
  { key, width }: Column<R>,
  { columns, resize, reorder }: Properties<R>,
): void {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (way === undefined || event.ctrlKey || event.metaKey) return;
  if (event.shiftKey && resize !== undefined)
    resize(key, Math.max(widthMin, width + way * widthStep));
  else if (event.altKey && reorder !== undefined) {
    const at = columns.findIndex((one) => one.key === key);
    const next = columns[way < 0 ? at - 1 : at + 2];
    if (columns[at + way] !== undefined) reorder(key, next?.key ?? null);
  } else return;
  event.preventDefault();
}

/** A column header that sorts, can be dragged to another position, and can be resized by its edge. */
function Head<R>({ column, properties, drag }: HeadProperties<R>) {
  const { sort, sortBy, resize, reorder } = properties;
  const { key, title, kind, width, isNumber = false, canSort = false } = column;
  const isSorted = sort?.key === key;
  const isResized = useRef(false);
  const startResize = (event: PointerEvent) => {
    const edge = event.currentTarget as HTMLElement;
    edge.setPointerCapture(event.pointerId);
    isResized.current = true;
    const from = event.clientX;
    let now = width;
    edge.onpointermove = ({ clientX }) => {
      now = Math.max(widthMin, width + clientX - from);
      drag({ key, width: now });
    };
    edge.onpointerup = () => {
      edge.onpointermove = null;
      isResized.current = false;
      drag(null);
      if (now !== width) resize?.(key, now);
    };
  };
  const text = (
    <>
      <span class="cut">{title}</span>
      {kind !== undefined && <small>{kind}</small>}
    </>
  );
  return (
    <div
      role="columnheader"
      class={isNumber ? "vcell num" : "vcell"}
      aria-sort={isSorted ? (sort.isDescending ? "descending" : "ascending") : undefined}
      aria-keyshortcuts={resize && "Shift+ArrowLeft Shift+ArrowRight Alt+ArrowLeft Alt+ArrowRight"}
      draggable={reorder !== undefined}
      onKeyDown={(event) => headKey(event, column, properties)}
      onDragStart={(event) => {
        // The edge is dragged, not the column.
        if (isResized.current) event.preventDefault();
        else event.dataTransfer?.setData(dragType, key);
      }}
      onDragOver={(event) => {
        if (reorder !== undefined && event.dataTransfer?.types.includes(dragType))
          event.preventDefault();
      }}
      onDrop={(event) => {
        const dragged = event.dataTransfer?.getData(dragType) ?? "";
        if (dragged !== "" && dragged !== key) reorder?.(dragged, key);
      }}
    >
      {canSort && sortBy !== undefined ? (
        <button type="button" class="sorts" onClick={() => sortBy(key)}>
          {text}
          {isSorted && <span aria-hidden="true">{sort.isDescending ? "↓" : "↑"}</span>}
        </button>
      ) : (
        <span class="sorts" tabIndex={resize === undefined ? undefined : 0}>
          {text}
        </span>
      )}
      {resize !== undefined && (
        <span class="edge-of-column" aria-hidden="true" onPointerDown={startResize} />
      )}
    </div>
  );
}

/** Returns the visible part of the scroller, and the row height, which depends on the window width. */
function useView(scroller: { readonly current: HTMLDivElement | null }) {
  const [rowHeight, setRowHeight] = useState(32);
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return undefined;
    const scrolled = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const resized = () => {
      scrolled();
      const height = Number.parseFloat(getComputedStyle(element).getPropertyValue("--row"));
      if (height > 0) setRowHeight(height);
    };
    resized();
    const observer = new ResizeObserver(resized);
    observer.observe(element);
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", scrolled);
    };
  }, [scroller]);
  return { view, rowHeight };
}

/** Returns the number of rows by which a key moves the current row. */
function stepOf(event: KeyboardEvent, page: number, total: number): number | undefined {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    j: 1,
    k: -1,
    PageDown: page,
    PageUp: -page,
    Home: -total,
    End: total,
  };
  return steps[event.key];
}
