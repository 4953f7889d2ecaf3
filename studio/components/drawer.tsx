/**
 * A panel beside a list, which stays usable; on narrow screens it covers the page. `Esc` closes it and restores the
 * previous focus.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface Properties {
  readonly title: string;
  /** Label for screen readers, if the title is not sufficient. */
  readonly label?: string;
  /** False if the list keeps the focus, because its keys select the displayed item. */
  readonly takesFocus?: boolean;
  close(): void;
  readonly children: ComponentChildren;
}

/** Must follow a `.page` element inside an element with class `beside`. */
export function Drawer({ title, label = title, takesFocus = true, close, children }: Properties) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    if (takesFocus) ref.current?.focus();
    return () => {
      // Do not move the focus if it is elsewhere.
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
