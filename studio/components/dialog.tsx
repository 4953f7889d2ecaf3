/** A modal dialog. `Esc` closes it; it traps focus, and restores the previous focus. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Failure } from "./messages.tsx";

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
  // Runs before painting, so that a visible dialog always has the focus.
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

/** The end of the form in a dialog: its error, and the buttons that cancel and submit. */
export function FormEnd({
  error,
  close,
  isReady,
  isPrimary = true,
  children,
}: {
  error: Error | null;
  close: () => void;
  isReady: boolean;
  isPrimary?: boolean;
  children: ComponentChildren;
}) {
  return (
    <>
      {error !== null && <Failure error={error} />}
      <footer class="row">
        <span class="grow" />
        <button type="button" class="btn" onClick={close}>
          Cancel
        </button>
        <button type="submit" class={isPrimary ? "btn primary" : "btn"} disabled={!isReady}>
          {children}
        </button>
      </footer>
    </>
  );
}
