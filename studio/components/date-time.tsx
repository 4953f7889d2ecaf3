/** A field for a date and a time of day, in local time. */
import { useState } from "preact/hooks";

interface Properties {
  readonly label: string;
  /** Initial time, in milliseconds since the Unix epoch; null for none. */
  readonly initial: number | null;
  readonly hint?: string | undefined;
  /** Called with null if the field is empty or incomplete. */
  change(timeMs: number | null): void;
}

export function DateTime({ label, initial, hint, change }: Properties) {
  const [text, setText] = useState(() => (initial === null ? "" : localText(initial)));
  return (
    <label class="form">
      {label}
      <div class="field">
        <input
          type="datetime-local"
          step="1"
          value={text}
          onInput={({ currentTarget: { value } }) => {
            setText(value);
            const timeMs = new Date(value).getTime();
            change(Number.isNaN(timeMs) ? null : timeMs);
          }}
        />
      </div>
      {hint !== undefined && <small>{hint}</small>}
    </label>
  );
}

/** Returns a local time in the format of the input. */
function localText(timeMs: number): string {
  const shifted = new Date(timeMs - new Date(timeMs).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}
