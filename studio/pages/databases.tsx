/** The databases of the server; creates and deletes databases. */

import { useEffect, useState } from "preact/hooks";
import { type BackupTask, lastBackupMs } from "../base/backup-tasks.ts";
import { get, send } from "../base/client.ts";
import { type ServerStatus, statusPath } from "../base/cluster.ts";
import { ago, bytes, count, counted } from "../base/format.ts";
import { identity, may } from "../base/identity.ts";
import { lazy } from "../base/lazy.tsx";
import { useResource } from "../base/resource.ts";
import { address, href, open, setQuery } from "../base/router.ts";
import { AccessDenied } from "../components/access-denied.tsx";
import { Confirmation } from "../components/confirmation.tsx";
import { Dialog, FormEnd } from "../components/dialog.tsx";
import { Icon } from "../components/icon.tsx";
import { Menu, type MenuItem } from "../components/menu.tsx";
import { Empty, Failure, Skeleton } from "../components/messages.tsx";
import { actionsColumn, numeric, Table } from "../components/table.tsx";
import { SearchInput, TextField } from "../components/text-field.tsx";
import { forgetDatabase } from "../shell/database.ts";
import { usePage } from "../shell/page.ts";
import { Aside, type DatabaseFacts, type ServerFigures } from "./databases-attention.tsx";
import { FirstStart } from "./first-start.tsx";

const ServerRestore = lazy(async () => (await import("./all.ts")).ServerRestore);

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
  const [isRestoring, setRestoring] = useState(false);
  const [deleting, setDeleting] = useState<Row | null>(null);
  const cluster = useCluster();
  const figures = useResource<ServerFigures>(
    may("operator") ? "/admin/metrics/history?range=5m" : null,
    pollMs,
  );
  const filter = address.value.query.get("filter") ?? "";
  const reload = () => {
    list.reload();
    states.reload();
  };
  const byName = new Map(states.body?.Databases.map((state) => [state.Name, state]));
  const rows = (list.body?.Databases ?? []).map((one) => ({ ...one, state: byName.get(one.Name) }));
  const shown = rows.filter(({ Name }) => Name.toLowerCase().includes(filter.toLowerCase()));
  const details = useDetails(rows);
  const { failed, message, act } = useActions(reload);
  return (
    <div class="page">
      <div class="head wraps">
        <h1>Databases</h1>
        <span class="muted cut">
          {list.body === undefined ? "" : counted(rows.length, "database")}
        </span>
        <span class="grow" />
        {rows.length > 0 && (
          <div class="field calm filter">
            <Icon name="find" kind="muted" />
            <SearchInput
              label="Filter by name"
              placeholder="Filter by name"
              value={filter}
              change={(text) => setQuery({ filter: text })}
            />
          </div>
        )}
        {may("operator") && (
          <button type="button" class="btn" onClick={() => setRestoring(true)}>
            Restore…
          </button>
        )}
        {may("operator") && (
          <button type="button" class="btn primary" onClick={() => setMaking(true)}>
            <Icon name="plus" />
            New database
          </button>
        )}
      </div>
      {isRestoring && <ServerRestore close={() => setRestoring(false)} />}
      {list.error !== undefined && <Failure error={list.error} retry={list.reload} />}
      {list.isLoading && <Skeleton rows={5} />}
      {list.body !== undefined &&
        rows.length === 0 &&
        (may("operator") ? (
          <FirstStart restore={() => setRestoring(true)} />
        ) : (
          identity.value !== null && <AccessDenied title="No database is visible to you" />
        ))}
      {rows.length > 0 && shown.length === 0 && (
        <Empty icon="find" title={`No database name contains "${filter}"`} />
      )}
      {rows.length > 0 && (
        <div class="with-aside">
          <div class="stack">
            {failed !== null && <Failure error={failed} />}
            {message !== "" && (
              <p role="status" class="note">
                {message}
              </p>
            )}
            {shown.length > 0 && (
              <DatabaseTable
                rows={shown}
                details={details}
                cluster={cluster}
                remove={setDeleting}
                act={act}
              />
            )}
          </div>
          <Aside
            databases={databaseFacts(rows, details)}
            figures={figures.body}
            cluster={cluster}
          />
        </div>
      )}
      {isMaking && <NewDatabase close={() => setMaking(false)} />}
      {deleting !== null && (
        <DeleteDatabase
          row={deleting}
          lastBackupMs={details.get(deleting.Name)?.lastBackupMs}
          close={() => setDeleting(null)}
          reload={reload}
        />
      )}
    </div>
  );
}

/** Maximum number of databases whose details are loaded. */
const detailsMax = 20;
const detailsMs = 60_000;

interface Details {
  /** Time of the last scheduled backup, or null. */
  readonly lastBackupMs: number | null;
  /** Writes per second during the last hour. */
  readonly writes: number;
}

function useDetails(rows: readonly Row[]): ReadonlyMap<string, Details> {
  const [details, setDetails] = useState<ReadonlyMap<string, Details>>(new Map());
  const names = rows
    .filter(({ IsDisabled, state }) => !IsDisabled && !state?.LoadError)
    .slice(0, detailsMax)
    .map(({ Name }) => Name);
  const key = names.join("\n");
  useEffect(() => {
    if (key === "") return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const abort = new AbortController();
    const look = async () => {
      if (!document.hidden) {
        for (const name of key.split("\n")) {
          // Databases that were removed or closed meanwhile are skipped; their rows show the reason.
          const found = await detailsOf(name, abort.signal).catch(() => null);
          if (abort.signal.aborted) return;
          if (found !== null) setDetails((before) => new Map(before).set(name, found));
        }
      }
      timer = setTimeout(look, detailsMs);
    };
    void look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return details;
}

async function detailsOf(name: string, signal: AbortSignal): Promise<Details> {
  const base = `/databases/${encodeURIComponent(name)}`;
  const [tasks, figures] = await Promise.all([
    get<{ OngoingTasks: BackupTask[] }>(`${base}/tasks`, signal),
    get<ServerFigures>(`${base}/metrics/history?range=1h`, signal),
  ]);
  const changes = (figures.body?.Columns?.["Changes"] ?? []).map((one) => one ?? 0);
  return {
    lastBackupMs: lastBackupMs(
      tasks.body.OngoingTasks.filter(({ TaskType }) => TaskType === "Backup"),
    ),
    writes: changes.reduce((sum, one) => sum + one, 0) / Math.max(1, changes.length),
  };
}

function databaseFacts(
  rows: readonly Row[],
  details: ReadonlyMap<string, Details>,
): DatabaseFacts[] {
  return rows.map(({ Name, state }) => ({
    name: Name,
    documents: state?.DocumentsCount ?? 0,
    indexErrors: state?.IndexingErrors ?? 0,
    lastBackupMs: details.get(Name)?.lastBackupMs,
  }));
}

type Action = "switch" | "compact";

/** Enables, disables and compacts databases. */
function useActions(reload: () => void) {
  const [failed, setFailed] = useState<Error | null>(null);
  const [message, setMessage] = useState("");
  const act = async (action: Action, { Name, IsDisabled }: Row) => {
    setFailed(null);
    setMessage("");
    try {
      if (action === "compact") {
        await send("POST", "/admin/compact", {
          json: { DatabaseName: Name, Documents: true, Indexes: [] },
        });
        setMessage(`${Name} is being compacted. Reads and writes continue.`);
      } else {
        await send("POST", `/admin/databases/${IsDisabled ? "enable" : "disable"}`, {
          json: { DatabaseNames: [Name] },
        });
        setMessage(IsDisabled ? `${Name} is enabled.` : `${Name} is disabled and cannot be used.`);
      }
      reload();
    } catch (error) {
      setFailed(error as Error);
    }
  };
  return { failed, message, act };
}

/** Loads the cluster status; reloads it only in a cluster. */
function useCluster(): ServerStatus | undefined {
  const [isClustered, setClustered] = useState(false);
  const { body } = useResource<ServerStatus>(statusPath, isClustered ? pollMs : 0);
  useEffect(() => setClustered(body?.IsClustered === true), [body?.IsClustered]);
  return body;
}

function DatabaseTable({
  rows,
  details,
  cluster,
  remove,
  act,
}: {
  rows: readonly Row[];
  details: ReadonlyMap<string, Details>;
  cluster: ServerStatus | undefined;
  remove: (row: Row) => void;
  act: (action: Action, row: Row) => void;
}) {
  const mayChange = may("operator");
  const isClustered = cluster?.IsClustered === true;
  const nowMs = Date.now();
  return (
    <div class="panel scroll">
      <Table
        kind="lines"
        label="Databases"
        columns={[
          "Name",
          "State",
          numeric("Documents"),
          numeric("Size"),
          numeric("Indexes"),
          isClustered && "Copies",
          numeric("Writes, last hour"),
          "Last backup",
          actionsColumn,
        ]}
      >
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
            {isClustered && <td class="l0">{copiesText(cluster, row.Name)}</td>}
            <td class="num l0">{writesText(details.get(row.Name))}</td>
            <td class="l0">{backupText(details.get(row.Name), nowMs)}</td>
            <td class="act">
              {may("database-admin", row.Name) && (
                <Menu
                  label={`More about ${row.Name}`}
                  items={[
                    {
                      text: "Back up",
                      icon: "backup",
                      choose: () => open(href(["db", row.Name, "backup"])),
                    },
                    ...(mayChange ? changesOf(row, act, remove) : []),
                  ]}
                />
              )}
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function changesOf(
  row: Row,
  act: (action: Action, row: Row) => void,
  remove: (row: Row) => void,
): MenuItem[] {
  return [
    {
      text: row.IsDisabled ? "Enable" : "Disable",
      icon: row.IsDisabled ? "play" : "pause",
      choose: () => act("switch", row),
    },
    { text: "Compact", icon: "disk", choose: () => act("compact", row) },
    { text: "Delete…", icon: "x", isDangerous: true, choose: () => remove(row) },
  ];
}

function copiesText(cluster: ServerStatus | undefined, name: string): string {
  const found = cluster?.IsClustered
    ? cluster.Databases.find(({ Name }) => Name === name)
    : undefined;
  if (found === undefined) return "";
  return `${found.Members.length}, ${found.Leader ?? "nobody"} leads`;
}

function writesText(details: Details | undefined): string {
  if (details === undefined || details.writes === 0) return "–";
  return `${details.writes < 10 ? details.writes.toFixed(1) : count(details.writes)} / s`;
}

function backupText(details: Details | undefined, nowMs: number): string {
  if (details === undefined) return "";
  return details.lastBackupMs === null ? "Never" : ago(details.lastBackupMs, nowMs);
}

function DatabaseState({ row: { IsDisabled, state } }: { row: Row }) {
  if (IsDisabled)
    return (
      <span class="state muted">
        <Icon name="pause" />
        Disabled
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
      await send("PUT", `/admin/databases?name=${encodeURIComponent(name)}`, {
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
        <TextField
          label="Name"
          autofocus
          value={name}
          aria-describedby="name-problem"
          aria-invalid={problem !== null}
          change={setName}
        />
        <p id="name-problem" class={problem === null ? "muted" : "bad"} aria-live="polite">
          {problem ?? "Letters, digits, dots, dashes and underscores."}
        </p>
        <FormEnd error={error} close={close} isReady={name !== "" && problem === null && !isBusy}>
          {isBusy ? "Creating" : `Create ${name === "" ? "database" : name}`}
        </FormEnd>
      </form>
    </Dialog>
  );
}

function DeleteDatabase({
  row: { Name: name, state, IndexesCount },
  lastBackupMs,
  close,
  reload,
}: {
  row: Row;
  /** Undefined if unknown. */
  lastBackupMs: number | null | undefined;
  close: () => void;
  reload: () => void;
}) {
  const remove = async () => {
    await send("DELETE", "/admin/databases", {
      json: { DatabaseNames: [name], HardDelete: true },
    });
    forgetDatabase(name);
    reload();
  };
  const documents =
    state?.DocumentsCount == null ? "Its documents" : counted(state.DocumentsCount, "document");
  const size = state?.TotalSize == null ? "" : ` and ${bytes(state.TotalSize.SizeInBytes)} on disk`;
  return (
    <Confirmation
      title={`Delete the database ${name}?`}
      yes={`Delete ${name}`}
      typed={name}
      close={close}
      act={remove}
    >
      <p>
        {documents}, {counted(IndexesCount, "index", "indexes")}
        {size} go, and open connections are closed.{" "}
        {lastBackupMs === null && <b>It has no scheduled backup. </b>}
        {lastBackupMs != null && `The last backup was created ${ago(lastBackupMs, Date.now())}. `}
        This cannot be undone.
      </p>
    </Confirmation>
  );
}
