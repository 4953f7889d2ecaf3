// biome-ignore-all lint/a11y/useSemanticElements: only the rows that are seen exist, so this is no table element
// biome-ignore-all lint/a11y/useFocusableInteractive: rows have the focus, cells and heads do not
/**
 * A table of any number of rows of one height, of which only those that are seen are in the document.
 *
 * Invariants:
 * - The scrolled area is at most `heightMax` high, as browsers have limits: with more rows, a pixel of the scroll bar is
 *   more than a pixel of the table.
 * - One row is the current one; the arrows, Home, End and the page keys move it, Enter opens it (the grid pattern of WAI-ARIA).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<R> {
  readonly key: string;
  readonly title: ComponentChildren;
  readonly width: number;
  readonly isNumber?: boolean;
  cell(row: R): ComponentChildren;
}

interface Properties<R> {
  readonly label: string;
  readonly columns: readonly Column<R>[];
  readonly total: number;
  /** Undefined: not there yet. */
  row(index: number): R | undefined;
  /** These rows are seen, or will be soon. */
  need(from: number, to: number): void;
  open(row: R): void;
}

const heightMax = 10_000_000;
const headHeight = 30;
const extraRows = 8;

export function VirtualTable<R>({ label, columns, total, row, need, open }: Properties<R>) {
  const scroller = useRef<HTMLDivElement>(null);
  const { view, rowHeight } = useView(scroller);
  const [current, setCurrent] = useState(0);
  const hasMoved = useRef(false);
  const wholeHeight = total * rowHeight;
  const shownHeight = Math.min(wholeHeight, heightMax);
  const space = Math.max(0, view.height - headHeight);
  // A pixel of the scroll bar, in pixels of the table.
  const scale = shownHeight > space ? (wholeHeight - space) / (shownHeight - space) : 1;
  const top = view.top * scale;
  const first = Math.max(0, Math.floor(top / rowHeight) - extraRows);
  const last = Math.min(total, Math.ceil((top + space) / rowHeight) + extraRows);

  useEffect(() => need(first, last), [first, last, need]);

  useEffect(() => {
    const element = scroller.current;
    if (element === null || !hasMoved.current) return;
    hasMoved.current = false;
    const at = current * rowHeight;
    if (at < top) element.scrollTop = at / scale;
    else if (at + rowHeight > top + space) element.scrollTop = (at + rowHeight - space) / scale;
    element
      .querySelector<HTMLElement>(`[aria-rowindex="${current + 2}"]`)
      ?.focus({ preventScroll: true });
  });

  const move = (to: number) => {
    hasMoved.current = true;
    setCurrent(Math.max(0, Math.min(total - 1, to)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = stepOf(event, Math.max(1, Math.floor(space / rowHeight) - 1), total);
    if (step !== undefined) {
      event.preventDefault();
      move(current + step);
    } else if (event.key === "Enter" && !(event.target instanceof HTMLAnchorElement)) {
      const found = row(current);
      if (found !== undefined) open(found);
    }
  };
  const wholeWidth = columns.reduce((sum, { width }) => sum + width, 0);
  const template = columns.map(({ width }) => `${width}px`).join(" ");
  const rows = [];
  for (let index = first; index < last; index++) {
    const found = row(index);
    rows.push(
      <div
        key={index}
        role="row"
        class="vrow"
        aria-rowindex={index + 2}
        tabIndex={index === current ? 0 : -1}
        onFocus={() => setCurrent(index)}
        style={{
          gridTemplateColumns: template,
          transform: `translateY(${index * rowHeight - top + view.top}px)`,
        }}
      >
        {columns.map((column) => (
          <div key={column.key} role="gridcell" class={column.isNumber ? "vcell num" : "vcell"}>
            {found === undefined ? <span class="bone" /> : column.cell(found)}
          </div>
        ))}
      </div>,
    );
  }
  return (
    <div
      ref={scroller}
      class="vtable"
      role="grid"
      aria-label={label}
      aria-rowcount={total + 1}
      aria-colcount={columns.length}
      onKeyDown={onKeyDown}
    >
      <div role="row" class="vhead" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map((column) => (
          <div key={column.key} role="columnheader" class={column.isNumber ? "vcell num" : "vcell"}>
            {column.title}
          </div>
        ))}
      </div>
      <div class="vbody" style={{ height: `${shownHeight}px`, width: `${wholeWidth}px` }}>
        {rows}
      </div>
    </div>
  );
}

/** What is seen of the scroller, and the height of its rows, which depends on the width of the window. */
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

/** By how many rows a key moves the current one. */
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
