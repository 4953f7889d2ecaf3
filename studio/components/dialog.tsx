/** A question over the page. `Esc` closes it; focus stays in it, and goes back to where it was. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Dialog({
  title,
  close,
  isAlert = false,
  isBig = false,
  children,
}: {
  title: string;
  close: () => void;
  isAlert?: boolean;
  isBig?: boolean;
  children: ComponentChildren;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  // Before it is painted: it is never seen without being the one that has the keys.
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => (before as HTMLElement | null)?.focus();
  }, []);
  return (
    <dialog
      ref={ref}
      class={isBig ? "dialog big" : "dialog"}
      role={isAlert ? "alertdialog" : "dialog"}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <div class="in">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
