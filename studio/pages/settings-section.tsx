/** A section of the settings: a form for one configuration of the server. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, ServerError } from "../base/client.ts";
import { Failure } from "../components/messages.tsx";

/** Loads, edits and saves a configuration; members that the form does not show are unchanged. */
export function useConfiguration<T extends object>(
  path: string,
  unset: T,
  write: (value: T) => Promise<unknown>,
  shown: (answer: unknown) => T | null = (answer) => answer as T | null,
) {
  const [stored, setStored] = useState<T | null>(null);
  const [value, setValue] = useState<T>(unset);
  const [error, setError] = useState<Error | null>(null);
  const [isSaved, setSaved] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    get<unknown>(path, abort.signal)
      .then(({ body }) => shown(body))
      .catch((failed: unknown) => {
        // The configuration was never set.
        if (failed instanceof ServerError && failed.status === 404) return null;
        throw failed;
      })
      .then((found) => {
        setStored(found ?? unset);
        setValue(found ?? unset);
      })
      .catch((failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      });
    return () => abort.abort();
  }, [path]);
  const change = (next: T) => {
    setValue(next);
    setSaved(false);
  };
  const save = async () => {
    setError(null);
    try {
      await write(value);
      setStored(value);
      setSaved(true);
    } catch (failed) {
      setError(failed as Error);
    }
  };
  const isChanged = stored !== null && JSON.stringify(stored) !== JSON.stringify(value);
  return { value, change, save, isChanged, isSaved, error, isThere: stored !== null };
}

export function Section({
  title,
  about,
  state,
  children,
}: {
  title: string;
  about: string;
  state: {
    readonly save: () => Promise<void>;
    readonly isChanged: boolean;
    readonly isSaved: boolean;
    readonly error: Error | null;
    readonly isThere: boolean;
  };
  children: ComponentChildren;
}) {
  return (
    <section class="panel form-panel" aria-label={title}>
      <form
        class="body stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (state.isChanged) void state.save();
        }}
      >
        <div class="stack-2">
          <h2>{title}</h2>
          <p class="soft">{about}</p>
        </div>
        {state.isThere && children}
        {state.error !== null && <Failure error={state.error} />}
        <div class="row">
          <button type="submit" class="btn" disabled={!state.isChanged}>
            Save {title.toLowerCase()}
          </button>
          <span role="status" class="muted">
            {state.isSaved ? "Saved" : ""}
          </span>
        </div>
      </form>
    </section>
  );
}

export function NumberField({
  label,
  hint,
  value,
  change,
}: {
  label: string;
  hint?: string;
  value: number | null;
  change: (value: number | null) => void;
}) {
  return (
    <label class="form">
      {label}
      <div class="field">
        <input
          type="number"
          min="1"
          value={value ?? ""}
          onInput={({ currentTarget: { value: text } }) =>
            change(text === "" ? null : Number(text))
          }
        />
      </div>
      {hint !== undefined && <small>{hint}</small>}
    </label>
  );
}

/** Adds a collection to a list in a form. */
export function AddCollection({
  known,
  add,
}: {
  known: readonly string[];
  add: (collection: string) => void;
}) {
  const [name, setName] = useState("");
  return (
    <div class="row">
      <div class="field grow">
        <input
          aria-label="Collection"
          placeholder="Collection"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </div>
      <button
        type="button"
        class="btn"
        disabled={name === "" || known.includes(name)}
        onClick={() => {
          add(name);
          setName("");
        }}
      >
        Add
      </button>
    </div>
  );
}

export function Enabled({
  isEnabled,
  change,
}: {
  isEnabled: boolean;
  change: (isEnabled: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isEnabled}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      <span>Enabled</span>
    </label>
  );
}
