/** Notification of a completed action, shown for six seconds. Errors are shown where they occur instead. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  /** Action that reverts. */
  readonly action: { readonly text: string; run(): void } | undefined;
}

const shownMax = 3;
const shownMs = 6000;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

export function showToast(text: string, action?: Toast["action"]): void {
  lastId++;
  toasts.value = [...toasts.peek(), { id: lastId, text, action }].slice(-shownMax);
}

function drop(id: number): void {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((toast) => (
        <One key={toast.id} toast={toast} />
      ))}
    </div>
  );
}

function One({ toast: { id, text, action } }: { toast: Toast }) {
  const [isHeld, setHeld] = useState(false);
  useEffect(() => {
    if (isHeld) return undefined;
    const timer = setTimeout(() => drop(id), shownMs);
    return () => clearTimeout(timer);
  }, [id, isHeld]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: hovering only delays the removal
    <div
      class="toast"
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={() => setHeld(false)}
      onFocusCapture={() => setHeld(true)}
      onBlurCapture={() => setHeld(false)}
    >
      <Icon name="check" kind="ok" />
      <span>{text}</span>
      {action !== undefined && (
        <button
          type="button"
          class="btn quiet"
          onClick={() => {
            drop(id);
            action.run();
          }}
        >
          {action.text}
        </button>
      )}
      <button type="button" class="btn quiet icon" aria-label="Close" onClick={() => drop(id)}>
        <Icon name="x" />
      </button>
    </div>
  );
}
