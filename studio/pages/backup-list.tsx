/** Backup schedules and backups of a database: back up now, restore, verify. */
import { useEffect, useState } from "preact/hooks";
import {
  type Backup,
  type BackupDefinition,
  type BackupRun,
  type BackupTask,
  backupOfPoint,
  backupOfRun,
  definitionText,
  isVerified,
  type RestorePoint,
  type StartedOperation,
} from "../base/backup-tasks.ts";
import { send } from "../base/client.ts";
import { ago, bytes, counted, moment, took, until } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { sentenceOf } from "../base/server-message.ts";
import { Confirmation } from "../components/confirmation.tsx";
import { Dialog, FormEnd } from "../components/dialog.tsx";
import { Icon } from "../components/icon.tsx";
import { Failure, Skeleton } from "../components/messages.tsx";
import { actionsColumn, numeric, Table } from "../components/table.tsx";
import { TargetFields, targetSettings, useTarget } from "./backup-target.tsx";
import { BackupWork, type Work } from "./backup-work.tsx";
import { RestoreDialog } from "./restore-dialog.tsx";
import { RestoreFrom } from "./restore-from.tsx";
import { ScheduleForm } from "./schedule-form.tsx";

interface Counts {
  readonly CountOfDocuments: number;
  readonly CountOfIndexes: number;
  readonly CountOfAttachments: number;
}

const pollMs = 5000;

/** The folder of manual backups; its path is stored in this browser. */
const folderKey = (database: string) => `jackdaw-backup-folder ${database}`;

/** Returns true for an enabled schedule that is not continuous. */
function isRunnable({ TaskState, FullBackupFrequency }: BackupTask): boolean {
  return TaskState === "Enabled" && FullBackupFrequency !== null;
}

export function BackupList({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const tasks = useResource<{ OngoingTasks: BackupTask[] }>(`${base}/tasks`, pollMs);
  const stats = useResource<Counts>(`${base}/stats/essential`);
  const [folder, setFolder] = useState(() => localStorage.getItem(folderKey(database)));
  const [asked, ask] = useState<Asked | null>(null);
  const close = () => ask(null);
  const plan = () => ask({ kind: "schedule", definition: null });
  const find = () => ask({ kind: "find" });
  const restore = (made: Backup) => ask({ kind: "restore", made });
  const { work, setWork, error, runNow } = useWork(base);
  const schedules = (tasks.body?.OngoingTasks ?? []).filter((one) => one.TaskType === "Backup");
  const runnable = schedules.filter(isRunnable);

  const [first, ...others] = runnable;
  const backUp = () =>
    first !== undefined && others.length === 0 ? void runNow(first) : ask({ kind: "now" });
  const showDone = () => {
    setWork(null);
    tasks.reload();
  };
  const verify = (made: Backup) => setWork({ kind: "verification", made, key: "", id: null });
  const hasAny = schedules.length > 0 || folder !== null;
  return (
    <>
      <Head plan={plan} find={find} backUp={backUp} isBusy={work !== null} />
      {error !== null && <Failure error={error} />}
      {tasks.error !== undefined && <Failure error={tasks.error} retry={tasks.reload} />}
      {tasks.isLoading && <Skeleton rows={4} />}
      {work !== null && (
        <BackupWork database={database} work={work} change={setWork} close={showDone} />
      )}
      {tasks.body !== undefined && !hasAny && work === null && (
        <NeverBackedUp database={database} counts={stats.body} plan={plan} find={find} />
      )}
      {schedules.map((task) => (
        <Schedule
          key={task.TaskId}
          database={database}
          task={task}
          edit={(definition) => ask({ kind: "schedule", definition })}
          changed={tasks.reload}
          run={() => void runNow(task)}
          restore={restore}
          verify={verify}
          isBusy={work !== null}
        />
      ))}
      {folder !== null && work === null && (
        <ByHand
          key={folder}
          folder={folder}
          database={database}
          restore={restore}
          verify={verify}
        />
      )}
      {asked !== null && (
        <Question
          database={database}
          asked={asked}
          tasks={runnable}
          folder={folder}
          use={(into) => {
            localStorage.setItem(folderKey(database), into);
            setFolder(into);
          }}
          run={(task) => void runNow(task)}
          saved={tasks.reload}
          begin={setWork}
          close={close}
        />
      )}
    </>
  );
}

/** The open dialog. */
type Asked =
  | { readonly kind: "now" }
  | { readonly kind: "find" }
  | { readonly kind: "schedule"; readonly definition: BackupDefinition | null }
  | { readonly kind: "restore"; readonly made: Backup };

function Question({
  database,
  asked,
  tasks,
  folder,
  use,
  run,
  saved,
  begin,
  close,
}: {
  database: string;
  asked: Asked;
  tasks: readonly BackupTask[];
  folder: string | null;
  /** Called with the folder whose backups are shown from now on. */
  use: (folder: string) => void;
  run: (task: BackupTask) => void;
  saved: () => void;
  begin: (work: Work) => void;
  close: () => void;
}) {
  const started = (id: number, name: string) => begin({ kind: "restore", id, name });
  switch (asked.kind) {
    case "find":
      return <RestoreFrom folder={folder ?? ""} found={use} close={close} started={started} />;
    case "now":
      return (
        <BackUpNow
          database={database}
          tasks={tasks}
          folder={folder ?? ""}
          run={run}
          started={(id, into) => {
            if (into !== null) use(into);
            begin({ kind: "backup", id, taskId: null, folder: into });
          }}
          close={close}
        />
      );
    case "schedule":
      return (
        <ScheduleForm
          database={database}
          definition={asked.definition}
          saved={saved}
          close={close}
        />
      );
    case "restore":
      return (
        <RestoreDialog made={asked.made} database={database} close={close} started={started} />
      );
  }
}

function Head({
  plan,
  find,
  backUp,
  isBusy,
}: {
  plan: () => void;
  find: () => void;
  backUp: () => void;
  isBusy: boolean;
}) {
  return (
    <div class="head wraps">
      <h2>Backups</h2>
      <span class="grow" />
      {may("operator") && (
        <button type="button" class="btn" onClick={find} disabled={isBusy}>
          Restore from elsewhere…
        </button>
      )}
      {may("database-admin") && (
        <>
          {" "}
          <button type="button" class="btn" onClick={plan}>
            <Icon name="plus" />
            New schedule
          </button>
          <button type="button" class="btn primary" onClick={backUp} disabled={isBusy}>
            Back up now
          </button>
        </>
      )}
    </div>
  );
}

/** The action in progress; only one runs at a time. */
function useWork(base: string) {
  const [work, setWork] = useState<Work | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const runNow = async (task: BackupTask) => {
    setError(null);
    try {
      const { body } = await send<StartedOperation>(
        "POST",
        `${base}/admin/backup/database?taskId=${task.TaskId}&isFullBackup=true`,
      );
      setWork({ kind: "backup", id: body.OperationId, taskId: task.TaskId, folder: null });
    } catch (failed) {
      setError(failed as Error);
    }
  };
  return { work, setWork, error, runNow };
}

/** Warning for a database of which no backup is known. */
function NeverBackedUp({
  database,
  counts,
  plan,
  find,
}: {
  database: string;
  counts: Counts | undefined;
  plan: () => void;
  find: () => void;
}) {
  const parts =
    counts === undefined
      ? "all its data"
      : `${counted(counts.CountOfDocuments, "document")}, ${counted(counts.CountOfAttachments, "attachment")} and ${counted(counts.CountOfIndexes, "index", "indexes")}`;
  return (
    <div class="empty">
      <Icon name="warn" kind="warn" />
      <h2>{database} has no backup schedule</h2>
      <p>
        Backups made on the command line or elsewhere are not known to this page until you show
        their folder. If none exists, a failed disk loses {parts}. A schedule creates backups
        automatically, for example every night.
      </p>
      <div class="row">
        {may("database-admin") && (
          <button type="button" class="btn" onClick={plan}>
            Create a schedule
          </button>
        )}
        {may("operator") && (
          <button type="button" class="btn" onClick={find}>
            Show other backups…
          </button>
        )}
      </div>
    </div>
  );
}

function Schedule({
  database,
  task,
  edit,
  changed,
  run,
  restore,
  verify,
  isBusy,
}: {
  database: string;
  task: BackupTask;
  edit: (definition: BackupDefinition) => void;
  changed: () => void;
  run: () => void;
  restore: (made: Backup) => void;
  verify: (made: Backup) => void;
  isBusy: boolean;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const query = `name=${encodeURIComponent(database)}&taskId=${task.TaskId}`;
  const definition = useResource<BackupDefinition>(`/periodic-backup?${query}`, pollMs);
  const history = useResource<{ Runs: BackupRun[] }>(`/periodic-backup/history?${query}`, pollMs);
  const [isDeleting, setDeleting] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const isOn = task.TaskState === "Enabled";
  const act = async (work: () => Promise<unknown>) => {
    setError(null);
    try {
      await work();
      changed();
    } catch (failed) {
      setError(failed as Error);
    }
  };
  const turn = () =>
    act(() =>
      send(
        "POST",
        `${base}/admin/tasks/state?key=${task.TaskId}&type=Backup&disable=${String(isOn)}`,
      ),
    );
  const folder = definition.body?.LocalSettings?.FolderPath ?? null;
  const isContinuous = definition.body?.Continuous !== undefined;
  const made = (history.body?.Runs ?? []).map((one) => backupOfRun(one, folder));
  return (
    <section class="panel" aria-label={task.TaskName}>
      <div class="cap">
        <div class="grow stack-2">
          <h2>{task.TaskName}</h2>
          <p class="soft">
            {definition.body === undefined ? "" : definitionText(definition.body)}{" "}
            {folder === null ? "To S3." : <code>{folder}</code>}
          </p>
        </div>
        <ScheduleState task={task} isContinuous={isContinuous} />
        {may("database-admin") && (
          <>
            {" "}
            {isOn && !isContinuous && (
              <button type="button" class="btn quiet" onClick={run} disabled={isBusy}>
                Run
              </button>
            )}
            <button
              type="button"
              class="btn quiet"
              disabled={definition.body === undefined}
              onClick={() => definition.body !== undefined && edit(definition.body)}
            >
              Edit
            </button>
            <button type="button" class="btn quiet" onClick={() => void turn()}>
              {isOn ? "Disable" : "Enable"}
            </button>
            <button type="button" class="btn quiet danger" onClick={() => setDeleting(true)}>
              Delete…
            </button>
          </>
        )}
      </div>
      {error !== null && <Failure error={error} />}
      {task.Error !== null && task.Error !== "" && (
        <div class="note bad edge" role="status">
          <Icon name="bad" />
          <span>{sentenceOf(task.Error)}</span>
        </div>
      )}
      {isContinuous ? (
        <Continuous query={query} folder={folder} restore={restore} />
      ) : (
        <BackupTable made={made} restore={restore} verify={verify} isBusy={isBusy} />
      )}
      {isDeleting && (
        <Confirmation
          title={`Delete the schedule ${task.TaskName}?`}
          yes={`Delete ${task.TaskName}`}
          no="Cancel"
          close={() => setDeleting(false)}
          act={() => act(() => send("DELETE", `${base}/admin/tasks?id=${task.TaskId}&type=Backup`))}
        >
          <p>Its backups are kept. No further backups are created.</p>
        </Confirmation>
      )}
    </section>
  );
}

function ScheduleState({ task, isContinuous }: { task: BackupTask; isContinuous: boolean }) {
  if (task.TaskState === "Disabled")
    return (
      <span class="state muted">
        <Icon name="pause" />
        Disabled
      </span>
    );
  if (task.OnGoingBackup !== null)
    return (
      <span class="state run">
        <Icon name="run" />
        Running
      </span>
    );
  const next = task.NextBackup;
  const hasFailed = task.Error !== null && task.Error !== "";
  return (
    <span
      class={hasFailed ? "state bad" : "state ok"}
      title={next === null ? "" : moment(next.DateTime)}
    >
      <Icon name={hasFailed ? "bad" : "check"} />
      {isContinuous || next === null ? "On" : `Next ${until(next.DateTime, Date.now())}`}
    </span>
  );
}

interface ContinuousStatus {
  readonly Status: {
    readonly FolderName?: string | null;
    readonly LastFullBackup?: string | null;
    readonly Continuous?: { readonly BehindInSec: number | null; readonly WaitingBytes: number };
  } | null;
}

function Continuous({
  query,
  folder,
  restore,
}: {
  query: string;
  folder: string | null;
  restore: (made: Backup) => void;
}) {
  const { body } = useResource<ContinuousStatus>(`/periodic-backup/status?${query}`, 2000);
  const status = body?.Status;
  const place = status?.FolderName;
  const behind = status?.Continuous?.BehindInSec ?? null;
  if (!place) return <p class="body muted">The first copy is in progress.</p>;
  return (
    <div class="body row">
      <span class="grow">
        {behind === null
          ? "The lag is not known yet."
          : `Lag ${behind} s, ${bytes(status?.Continuous?.WaitingBytes ?? 0)} pending.`}
      </span>
      {folder !== null && may("operator") && (
        <button
          type="button"
          class="btn quiet"
          onClick={() =>
            restore({
              time: status?.LastFullBackup ?? new Date().toISOString(),
              isFull: true,
              isEncrypted: false,
              location: `${folder.replace(/[\\/]+$/, "")}/${place}`,
              file: null,
              bytes: null,
              ms: null,
              error: null,
            })
          }
        >
          Restore…
        </button>
      )}
    </div>
  );
}

/** Backups in the folder of manual backups. */
function ByHand({
  folder,
  database,
  restore,
  verify,
}: {
  folder: string;
  database: string;
  restore: (made: Backup) => void;
  verify: (made: Backup) => void;
}) {
  const [points, setPoints] = useState<RestorePoint[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const mayAsk = may("operator");
  useEffect(() => {
    if (!mayAsk) return undefined;
    const list = () => {
      if (document.hidden) return;
      send<{ List: RestorePoint[] }>("POST", "/admin/restore/points?type=Local", {
        json: { FolderPath: folder },
      }).then(({ body }) => {
        setPoints(body.List);
        setError(null);
      }, setError);
    };
    list();
    // Other programs write to the folder, too.
    const timer = setInterval(list, pollMs);
    return () => clearInterval(timer);
  }, [folder, mayAsk]);
  const made = (points ?? [])
    .filter(({ DatabaseName }) => DatabaseName.toLowerCase() === database.toLowerCase())
    .map((point) => backupOfPoint(point));
  return (
    <section class="panel" aria-label="Manual backups">
      <div class="cap">
        <div class="grow stack-2">
          <h2>Manual backups</h2>
          <p class="soft">
            In <code>{folder}</code>
          </p>
        </div>
      </div>
      {error !== null && <Failure error={error} />}
      {points !== null && (
        <BackupTable made={made} restore={restore} verify={verify} isBusy={false} />
      )}
    </section>
  );
}

function BackupTable({
  made,
  restore,
  verify,
  isBusy,
}: {
  made: readonly Backup[];
  restore: (made: Backup) => void;
  verify: (made: Backup) => void;
  isBusy: boolean;
}) {
  if (made.length === 0) return <p class="body muted">None yet.</p>;
  const nowMs = Date.now();
  return (
    <div class="scroll">
      <Table
        kind="lines"
        label="Backups"
        columns={["Time", "Type", "State", numeric("Size"), numeric("Duration"), actionsColumn]}
      >
        {made.map((one) => (
          <tr key={`${one.time} ${one.file}`}>
            <td class="l1" title={one.time}>
              {moment(one.time)} <span class="muted">{ago(one.time, nowMs)}</span>
            </td>
            <td class="l0">
              {one.isFull ? "Full" : "Changes"}
              {one.isEncrypted ? ", encrypted" : ""}
            </td>
            <td class="l2">
              <BackupState made={one} />
            </td>
            <td class="num l0">{one.bytes === null ? "" : bytes(one.bytes)}</td>
            <td class="num l0">{one.ms === null ? "" : took(one.ms)}</td>
            <td class="act">
              {one.location !== null && may("operator") && (
                <span class="row">
                  {!one.isEncrypted && (
                    <button
                      type="button"
                      class="btn quiet wide-only"
                      disabled={isBusy}
                      onClick={() => verify(one)}
                    >
                      Verify
                    </button>
                  )}
                  <button
                    type="button"
                    class="btn quiet"
                    disabled={isBusy}
                    onClick={() => restore(one)}
                  >
                    Restore…
                  </button>
                </span>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function BackupState({ made }: { made: Backup }) {
  const { error } = made;
  if (error !== null)
    return (
      <span class="state bad" title={sentenceOf(error)}>
        <Icon name="bad" />
        <span class="cut">{sentenceOf(error)}</span>
      </span>
    );
  return (
    <span class="state ok">
      <Icon name="check" />
      {isVerified(made) ? "Verified" : "Completed"}
    </span>
  );
}

/** Selects the target if there is not exactly one schedule. */
function BackUpNow({
  database,
  tasks,
  folder,
  run,
  started,
  close,
}: {
  database: string;
  tasks: readonly BackupTask[];
  folder: string;
  run: (task: BackupTask) => void;
  /** `folder` is null for S3. */
  started: (operationId: number, folder: string | null) => void;
  close: () => void;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const rules = useResource<{ LocalRootPath: string | null }>(
    `${base}/admin/periodic-backup/config`,
  );
  const { typed, setTyped, isReady } = useTarget(null, folder);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const start = async () => {
    setBusy(true);
    try {
      const { body } = await send<StartedOperation>("POST", `${base}/admin/backup`, {
        json: { BackupType: "Backup", ...targetSettings(typed, null) },
      });
      const into = typed.target === "folder" ? typed.folder : null;
      close();
      started(body.OperationId, into);
    } catch (failed) {
      setError(failed as Error);
      setBusy(false);
    }
  };
  const root = rules.body?.LocalRootPath;
  return (
    <Dialog title={`Back up ${database} now`} close={close}>
      {tasks.length > 0 && (
        <div class="stack-2">
          <span class="soft">Use one of its schedules:</span>
          {tasks.map((task) => (
            <button
              key={task.TaskId}
              type="button"
              class="btn"
              onClick={() => {
                close();
                run(task);
              }}
            >
              {task.TaskName}
            </button>
          ))}
        </div>
      )}
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !isBusy) void start();
        }}
      >
        <TargetFields typed={typed} change={setTyped} root={root} isStored={false} />
        <FormEnd error={error} close={close} isReady={isReady && !isBusy}>
          {isBusy ? "Starting" : `Back up ${database}`}
        </FormEnd>
      </form>
    </Dialog>
  );
}
