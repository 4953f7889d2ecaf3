/**
 * The separator of two panes: it can be dragged or moved with arrow keys; a double click or Enter resets it. Its
 * position is stored in this browser. The style reads the size of the preceding pane from `--pane`: per cent of the
 * width, or pixels of the height. The style also defines the limits.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface Properties {
  /** Name under which the position is stored. */
  readonly name: string;
  readonly label: string;
  /** True if the panes are stacked vertically. */
  readonly isRow?: boolean;
}

const step = 16;

export function Separator({ name, label, isRow = false }: Properties) {
  const line = useRef<HTMLDivElement>(null);
  const key = `jackdaw-pane\n${name}`;
  const [kept, setKept] = useState(() => localStorage.getItem(key));
  const [share, setShare] = useState(50);
  useLayoutEffect(() => {
    const panes = line.current?.parentElement;
    if (panes == null) return;
    if (kept === null) {
      localStorage.removeItem(key);
      panes.style.removeProperty("--pane");
    } else {
      localStorage.setItem(key, kept);
      panes.style.setProperty("--pane", kept);
    }
    const { size, whole } = measured();
    if (whole > 0) setShare(Math.round((100 * size) / whole));
  }, [kept]);
  /** Returns the size of the preceding pane and of both panes, in pixels. */
  const measured = () => {
    const before = line.current?.previousElementSibling?.getBoundingClientRect();
    const panes = line.current?.parentElement?.getBoundingClientRect();
    return isRow
      ? { size: before?.height ?? 0, whole: panes?.height ?? 0 }
      : { size: before?.width ?? 0, whole: panes?.width ?? 0 };
  };
  const resize = (size: number) =>
    setKept(isRow ? `${Math.round(size)}px` : `${((100 * size) / measured().whole).toFixed(1)}%`);
  const drag = (event: PointerEvent) => {
    const element = event.currentTarget as HTMLElement;
    element.setPointerCapture(event.pointerId);
    const { size } = measured();
    const from = isRow ? event.clientY : event.clientX;
    element.onpointermove = (moved) =>
      resize(size + (isRow ? moved.clientY : moved.clientX) - from);
    element.onpointerup = () => {
      element.onpointermove = null;
    };
  };
  const pressed = (event: KeyboardEvent) => {
    const [less, more] = isRow ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    if (event.key === less) resize(measured().size - step);
    else if (event.key === more) resize(measured().size + step);
    else if (event.key === "Enter") setKept(null);
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a movable separator is not an <hr>
    <div
      ref={line}
      class="separator"
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={isRow ? "horizontal" : "vertical"}
      aria-valuenow={share}
      aria-valuemin={0}
      aria-valuemax={100}
      title="Drag, or use the arrow keys; double-click to reset"
      onPointerDown={drag}
      onKeyDown={pressed}
      onDblClick={() => setKept(null)}
    />
  );
}
