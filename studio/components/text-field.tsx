/** Inputs of one line. */
import type { ComponentChildren } from "preact";

interface InputProperties {
  value: string;
  change: (value: string) => void;
  type?: "datetime-local" | "number" | "password" | "text";
  class?: string;
  placeholder?: string;
  autofocus?: boolean;
  autocomplete?: "off";
  min?: string;
  step?: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

/** An input with a visible label. `hint` is shown below. */
export function TextField({
  label,
  hint,
  change,
  type = "text",
  ...input
}: InputProperties & { label: ComponentChildren; hint?: ComponentChildren }) {
  return (
    <label class="form">
      {label}
      <div class="field">
        <input
          {...input}
          type={type as "text"}
          onInput={(event) => change(event.currentTarget.value)}
        />
      </div>
      {hint !== undefined && <small>{hint}</small>}
    </label>
  );
}

/** An input that filters a list. */
export function SearchInput({
  label,
  placeholder = "Filter",
  value,
  change,
}: Pick<InputProperties, "value" | "change" | "placeholder"> & { label: string }) {
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onInput={(event) => change(event.currentTarget.value)}
    />
  );
}
