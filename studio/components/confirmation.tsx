/** A confirmation dialog for irreversible actions. Errors of the server are shown in the dialog, which stays open. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import { Failure } from "./messages.tsx";
import { TextField } from "./text-field.tsx";

export function Confirmation({
  title,
  yes,
  no = "Cancel",
  typed = "",
  act,
  close,
  children,
}: {
  title: string;
  yes: string;
  no?: string;
  /** Text to type before the action is enabled. */
  typed?: string;
  /** The action; the dialog is closed when it completes. */
  act: () => unknown;
  close: () => void;
  children: ComponentChildren;
}) {
  const [text, setText] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    try {
      await act();
      close();
    } catch (failed) {
      setError(failed as Error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close} isAlert>
      {children}
      {typed !== "" && (
        <TextField
          label={
            <span>
              Type <code>{typed}</code> to continue
            </span>
          }
          value={text}
          change={setText}
        />
      )}
      {error !== null && <Failure error={error} />}
      <footer class="row">
        <span class="grow" />
        <button type="button" class="btn" onClick={close}>
          {no}
        </button>
        <button
          type="button"
          class="btn danger full"
          disabled={isBusy || text !== typed}
          onClick={() => void go()}
        >
          {yes}
        </button>
      </footer>
    </Dialog>
  );
}
