/**
 * Details beside a list, which stays usable; at small widths it covers the page. `Esc` closes it, and focus goes back to
 * where it was.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface Properties {
  readonly title: string;
  /** Named to screen readers, where the title alone does not say what it is. */
  readonly label?: string;
  close(): void;
  readonly children: ComponentChildren;
}

/** Stands behind a `.page` inside of an element with the class `beside`. */
export function Drawer({ title, label = title, close, children }: Properties) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.focus();
    return () => {
      // Whoever went on to something else keeps the focus there.
      const isElsewhere = document.activeElement !== document.body;
      if (!isElsewhere && before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <aside
      ref={ref}
      class="drawer"
      aria-label={label}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.preventDefault();
        close();
      }}
    >
      <div class="row">
        <h2 class="grow cut">{title}</h2>
        <button type="button" class="btn quiet icon" aria-label="Close" onClick={close}>
          <Icon name="x" />
        </button>
      </div>
      {children}
    </aside>
  );
}
