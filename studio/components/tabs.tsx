/**
 * Tabs over a panel. The page stores the selection in its address; arrow keys, Home and End move the selection and
 * the focus (the WAI-ARIA tabs pattern).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count as written } from "../base/format.ts";

interface Tab<K extends string> {
  readonly key: K;
  readonly text: string;
  /** Count shown after the name; undefined if unknown or not relevant. */
  readonly count?: number | undefined;
  /** True if the count is a number of errors. */
  readonly isErrored?: boolean;
}

interface Properties<K extends string> {
  /** Label of the tabs for screen readers. */
  readonly label: string;
  /** Id prefix, unique in the page; `panel(name, …)` uses the same. */
  readonly name: string;
  readonly tabs: readonly Tab<K>[];
  readonly chosen: K;
  choose(key: K): void;
  /** Content after the tabs, in the same line. */
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

/** Returns the attributes of the panel of the selected tab. */
export function panel(name: string, chosen: string) {
  return {
    role: "tabpanel",
    id: `${name}-panel`,
    "aria-labelledby": `${name}-tab-${chosen}`,
  } as const;
}

/** Returns the index that a key moves to, with wraparound. */
function moved(key: string, at: number, length: number): number | undefined {
  if (key === "ArrowRight") return (at + 1) % length;
  if (key === "ArrowLeft") return (at - 1 + length) % length;
  if (key === "Home") return 0;
  return key === "End" ? length - 1 : undefined;
}
