/**
 * Tabs over a panel. The page keeps which one is chosen, in its address; the arrows, Home and End move the choice and the
 * focus with it (the tabs pattern of WAI-ARIA).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count as written } from "../base/format.ts";

export interface Tab<K extends string> {
  readonly key: K;
  readonly text: string;
  /** Beside the name; undefined: not known, or none is worth telling. */
  readonly count?: number | undefined;
  /** The count is of errors. */
  readonly isErrored?: boolean;
}

interface Properties<K extends string> {
  /** What the tabs are of, for screen readers. */
  readonly label: string;
  /** Of the page's own, one for each row of tabs; `panel(name, …)` has the same. */
  readonly name: string;
  readonly tabs: readonly Tab<K>[];
  readonly chosen: K;
  choose(key: K): void;
  /** Behind the tabs, in the same line. */
  readonly children?: ComponentChildren;
}

export function Tabs<K extends string>({
  label,
  name,
  tabs,
  chosen,
  choose,
  children,
}: Properties<K>) {
  const list = useRef<HTMLDivElement>(null);
  const isMoved = useRef(false);
  useEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>('[aria-selected="true"]');
    tab?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
    if (isMoved.current) tab?.focus();
    isMoved.current = false;
  }, [chosen]);
  const onKeyDown = (event: KeyboardEvent) => {
    const to = moved(
      event.key,
      tabs.findIndex(({ key }) => key === chosen),
      tabs.length,
    );
    const tab = to === undefined ? undefined : tabs[to];
    if (tab === undefined) return;
    event.preventDefault();
    isMoved.current = true;
    choose(tab.key);
  };
  return (
    <div class="tabs">
      <div ref={list} role="tablist" class="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map(({ key, text, count, isErrored = false }) => (
          <button
            key={key}
            type="button"
            role="tab"
            id={`${name}-tab-${key}`}
            aria-selected={key === chosen}
            aria-controls={key === chosen ? `${name}-panel` : undefined}
            tabIndex={key === chosen ? 0 : -1}
            onClick={() => choose(key)}
          >
            {text}
            {count !== undefined && <small class={isErrored ? "bad" : ""}>{written(count)}</small>}
          </button>
        ))}
      </div>
      {children}
    </div>
  );
}

/** Attributes of the element that shows what the chosen tab is about. */
export function panel(name: string, chosen: string) {
  return {
    role: "tabpanel",
    id: `${name}-panel`,
    "aria-labelledby": `${name}-tab-${chosen}`,
  } as const;
}

/** The place that a key leads to; the ends are joined. */
function moved(key: string, at: number, length: number): number | undefined {
  if (key === "ArrowRight") return (at + 1) % length;
  if (key === "ArrowLeft") return (at - 1 + length) % length;
  if (key === "Home") return 0;
  return key === "End" ? length - 1 : undefined;
}
