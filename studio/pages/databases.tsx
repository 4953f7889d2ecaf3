/** Page 1: the databases of the server; makes and deletes them. */
import { useState } from "preact/hooks";
import { send } from "../base/client.ts";
import { bytes, count, counted } from "../base/format.ts";
import { useResource } from "../base/resource.ts";
import { address, href, open, setQuery } from "../base/router.ts";
import { Dialog } from "../components/dialog.tsx";
import { Icon } from "../components/icon.tsx";
import { Bones, Empty, Failure } from "../components/messages.tsx";
import { forgetDatabase } from "../shell/database.ts";
import { usePage } from "../shell/page.ts";

interface Listed {
  readonly Name: string;
  readonly IsDisabled: boolean;
  readonly IndexesCount: number;
}

interface State {
  readonly Name: string;
  readonly DocumentsCount: number | null;
  readonly IndexingErrors: number;
  readonly TotalSize: { readonly SizeInBytes: number } | null;
  readonly LoadError?: string | null;
}

interface Row extends Listed {
  readonly state: State | undefined;
}

const pollMs = 5000;

export function DatabasesPage() {
  usePage("databases", [{ text: "Databases" }]);
  const list = useResource<{ Databases: Listed[] }>("/studio-tasks/databases", pollMs);
  const states = useResource<{ Databases: State[] }>("/studio-tasks/databases/state", pollMs);
  const [isMaking, setMaking] = useState(false);
  const [deleting, setDeleting] = useState<Row | null>(null);
  const filter = address.value.query.get("filter") ?? "";
  const reload = () => {
    list.reload();
    states.reload();
  };
  const byName = new Map(states.body?.Databases.map((state) => [state.Name, state]));
  const rows = (list.body?.Databases ?? []).map((one) => ({ ...one, state: byName.get(one.Name) }));
  const shown = rows.filter(({ Name }) => Name.toLowerCase().includes(filter.toLowerCase()));
  return (
    <div class="page">
      <div class="head">
        <h1>Databases</h1>
        <span class="muted cut">
          {list.body === undefined ? "" : counted(rows.length, "database")}
        </span>
        <span class="grow" />
        {rows.length > 0 && (
          <div class="field calm filter">
            <Icon name="find" kind="muted" />
            <input
              type="search"
              placeholder="Filter by name"
              aria-label="Filter by name"
              value={filter}
              onInput={(event) => setQuery({ filter: event.currentTarget.value })}
            />
          </div>
        )}
        <button type="button" class="btn primary" onClick={() => setMaking(true)}>
          <Icon name="plus" />
          New database
        </button>
      </div>
      {list.error !== undefined && <Failure error={list.error} retry={list.reload} />}
      {list.isLoading && <Bones rows={5} />}
      {list.body !== undefined && rows.length === 0 && (
        <Empty icon="dbs" title="The server is running. It has no database yet.">
          <p>
            A database holds documents, their indexes and their files. It takes a second to make
            one.
          </p>
          <button type="button" class="btn" onClick={() => setMaking(true)}>
            Make a database
          </button>
        </Empty>
      )}
      {rows.length > 0 && shown.length === 0 && (
        <Empty icon="find" title={`No database's name has "${filter}" in it`} />
      )}
      {shown.length > 0 && <DatabaseTable rows={shown} remove={setDeleting} />}
      {isMaking && <NewDatabase close={() => setMaking(false)} />}
      {deleting !== null && (
        <DeleteDatabase
          row={deleting}
          close={(isGone) => {
            setDeleting(null);
            if (isGone) reload();
          }}
        />
      )}
    </div>
  );
}

function DatabaseTable({ rows, remove }: { rows: readonly Row[]; remove: (row: Row) => void }) {
  return (
    <div class="panel scroll">
      <table class="lines" aria-label="Databases">
        <thead>
          <tr>
            <th>Name</th>
            <th>State</th>
            <th class="num">Documents</th>
            <th class="num">Size</th>
            <th class="num">Indexes</th>
            <th>
              <span class="hidden-label">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.Name}>
              <td class="l1">
                <a href={href(["db", row.Name, "docs"])}>{row.Name}</a>
              </td>
              <td class="l2">
                <DatabaseState row={row} />
              </td>
              <td class="num l3">
                {row.state?.DocumentsCount == null ? "" : count(row.state.DocumentsCount)}
              </td>
              <td class="num l0">
                {row.state?.TotalSize == null ? "" : bytes(row.state.TotalSize.SizeInBytes)}
              </td>
              <td class="num l0">{count(row.IndexesCount)}</td>
              <td class="act">
                <button
                  type="button"
                  class="btn quiet danger"
                  aria-label={`Delete ${row.Name}`}
                  onClick={() => remove(row)}
                >
                  Delete…
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function DatabaseState({ row: { IsDisabled, state } }: { row: Row }) {
  if (IsDisabled)
    return (
      <span class="state muted">
        <Icon name="pause" />
        Switched off
      </span>
    );
  if (state?.LoadError)
    return (
      <span class="state bad" title={state.LoadError}>
        <Icon name="bad" />
        Cannot be opened
      </span>
    );
  const errors = state?.IndexingErrors ?? 0;
  if (errors > 0)
    return (
      <span class="state bad">
        <Icon name="bad" />
        {counted(errors, "index error")}
      </span>
    );
  return (
    <span class="state ok">
      <Icon name="check" />
      Online
    </span>
  );
}

function NewDatabase({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const check = useResource<{ IsValid: boolean; ErrorMessage: string | null }>(
    name === ""
      ? null
      : `/studio-tasks/is-valid-name?type=Database&name=${encodeURIComponent(name)}`,
  );
  const problem = check.body?.IsValid === false ? check.body.ErrorMessage : null;
  const make = async () => {
    setBusy(true);
    try {
      const record = { DatabaseName: name };
      await send("PUT", `/admin/databases?name=${encodeURIComponent(name)}&replicationFactor=1`, {
        json: record,
      });
      open(href(["db", name, "docs"]));
      close();
    } catch (failed) {
      setError(failed as Error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="New database" close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (name !== "" && problem === null) void make();
        }}
      >
        <label class="form">
          Name
          <div class="field">
            <input
              autofocus
              value={name}
              aria-describedby="name-problem"
              aria-invalid={problem !== null}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </div>
        </label>
        <p id="name-problem" class={problem === null ? "muted" : "bad"} aria-live="polite">
          {problem ?? "Letters, digits, dots, dashes and underscores."}
        </p>
        {error !== null && <Failure error={error} />}
        <footer class="row">
          <span class="grow" />
          <button type="button" class="btn" onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            class="btn primary"
            disabled={name === "" || problem !== null || isBusy}
          >
            {isBusy ? "Making" : `Make ${name === "" ? "it" : name}`}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function DeleteDatabase({ row, close }: { row: Row; close: (isGone: boolean) => void }) {
  const { Name: name, state, IndexesCount } = row;
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const remove = async () => {
    try {
      await send("DELETE", "/admin/databases", {
        json: { DatabaseNames: [name], HardDelete: true },
      });
      forgetDatabase(name);
      close(true);
    } catch (failed) {
      setError(failed as Error);
    }
  };
  const documents =
    state?.DocumentsCount == null ? "Its documents" : counted(state.DocumentsCount, "document");
  const size = state?.TotalSize == null ? "" : ` and ${bytes(state.TotalSize.SizeInBytes)} on disk`;
  return (
    <Dialog title={`Delete the database ${name}?`} close={() => close(false)} isAlert>
      <p>
        {documents}, {counted(IndexesCount, "index", "indexes")}
        {size} go, and open connections are closed. This cannot be undone.
      </p>
      <label class="form">
        <span>
          Type <code>{name}</code> to go on
        </span>
        <div class="field">
          <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </div>
      </label>
      {error !== null && <Failure error={error} />}
      <footer class="row">
        <span class="grow" />
        <button type="button" class="btn" onClick={() => close(false)}>
          Cancel
        </button>
        <button
          type="button"
          class="btn danger full"
          disabled={typed !== name}
          onClick={() => void remove()}
        >
          Delete {name}
        </button>
      </footer>
    </Dialog>
  );
}
