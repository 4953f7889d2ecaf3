/** Recent and saved queries of this browser. */
import { useState } from "preact/hooks";
import { ago, counted, milliseconds } from "../../base/format.ts";
import { Dialog } from "../../components/dialog.tsx";
import { Icon } from "../../components/icon.tsx";
import { SearchInput } from "../../components/text-field.tsx";
import {
  forgetHistory,
  forgetSaved,
  history,
  type PastQuery,
  type SavedQuery,
  save,
  savedQueries,
} from "./query-memory.ts";

type Values = Readonly<Record<string, string>>;

interface Properties {
  readonly database: string;
  close(): void;
  use(text: string, values: Values): void;
}

export function HistoryDialog({ database, close, use }: Properties) {
  const [all, setAll] = useState<readonly PastQuery[]>(() => history(database));
  const [filter, setFilter] = useState("");
  const wanted = filter.toLowerCase();
  const nowMs = Date.now();
  const shown = all.filter(({ text }) => text.toLowerCase().includes(wanted));
  return (
    <Dialog title="Recent queries" close={close} isBig>
      <p class="soft">The last 200 queries are stored in this browser, without results.</p>
      <div class="field">
        <SearchInput label="Filter history" value={filter} change={setFilter} />
      </div>
      {shown.length === 0 && <p class="soft">No queries.</p>}
      <ul class="picks" aria-label="History">
        {shown.map(({ text, values, atMs, ms, total }) => (
          <li key={atMs}>
            <button type="button" onClick={() => use(text, values)}>
              <code>{text}</code>
              <small>
                {ago(atMs, nowMs)} · {counted(total, "result")} · {milliseconds(ms)}
              </small>
            </button>
          </li>
        ))}
      </ul>
      <div class="row">
        <button
          type="button"
          class="btn danger"
          disabled={all.length === 0}
          onClick={() => {
            forgetHistory(database);
            setAll([]);
          }}
        >
          Clear
        </button>
        <span class="grow" />
        <button type="button" class="btn" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

export function SavedDialog({
  database,
  close,
  use,
  text,
  values,
}: Properties & { readonly text: string; readonly values: Values }) {
  const [all, setAll] = useState<readonly SavedQuery[]>(() => savedQueries(database));
  const [name, setName] = useState("");
  const trimmed = name.trim();
  const keep = () => {
    if (trimmed === "" || text.trim() === "") return;
    save(database, { name: trimmed, text, values });
    setAll(savedQueries(database));
    setName("");
  };
  const isThere = all.some((one) => one.name === trimmed);
  return (
    <Dialog title="Saved queries" close={close} isBig>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          keep();
        }}
      >
        <div class="field grow">
          <input
            aria-label="Name of this query"
            placeholder="A name for the query in the editor"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <button type="submit" class="btn primary" disabled={trimmed === "" || text.trim() === ""}>
          {isThere ? "Replace it" : "Save it"}
        </button>
      </form>
      {all.length === 0 && (
        <p class="soft">None yet. Saved queries are stored in this browser, for this database.</p>
      )}
      <ul class="picks" aria-label="Saved queries">
        {all.map((one) => (
          <li key={one.name}>
            <button type="button" onClick={() => use(one.text, one.values)}>
              <b>{one.name}</b>
              <code>{one.text}</code>
            </button>
            <button
              type="button"
              class="btn quiet icon"
              aria-label={`Delete ${one.name}`}
              onClick={() => {
                forgetSaved(database, one.name);
                setAll(savedQueries(database));
              }}
            >
              <Icon name="x" />
            </button>
          </li>
        ))}
      </ul>
      <div class="row">
        <span class="grow" />
        <button type="button" class="btn" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
