/** Lists the backups in a folder of the server, also those made elsewhere, and restores one. */
import { useRef, useState } from "preact/hooks";
import { type Backup, backupOfPoint, type RestorePoint } from "../base/backup-tasks.ts";
import { send } from "../base/client.ts";
import { counted, moment } from "../base/format.ts";
import { Dialog, FormEnd } from "../components/dialog.tsx";
import { actionsColumn, Table } from "../components/table.tsx";
import { BackupWork, type Work } from "./backup-work.tsx";
import { RestoreDialog } from "./restore-dialog.tsx";

const shownMax = 100;

export function RestoreFrom({
  folder,
  found,
  started,
  close,
}: {
  /** Initial folder. */
  folder: string;
  /** Called with a folder that could be listed. */
  found?: (folder: string) => void;
  started: (operationId: number, name: string) => void;
  close: () => void;
}) {
  const [typed, setTyped] = useState(folder);
  const [points, setPoints] = useState<readonly RestorePoint[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [chosen, setChosen] = useState<RestorePoint | null>(null);
  const list = async () => {
    setError(null);
    setPoints(null);
    try {
      const json = { FolderPath: typed };
      const path = "/admin/restore/points?type=Local";
      const { body } = await send<{ List: RestorePoint[] }>("POST", path, { json });
      setPoints(body.List);
      if (body.List.length > 0) found?.(typed);
    } catch (failed) {
      setError(failed as Error);
    }
  };
  if (chosen !== null) {
    const made: Backup = backupOfPoint(chosen);
    return (
      <RestoreDialog made={made} database={chosen.DatabaseName} started={started} close={close} />
    );
  }
  return (
    <Dialog title="Restore a backup" close={close} isBig={points !== null}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed !== "") void list();
        }}
      >
        <label class="form">
          Folder on the server
          <div class="field">
            <input
              autofocus
              value={typed}
              placeholder="/var/backups/jackdaw"
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </div>
          <small>
            Lists backups of all databases in it, also those of the command line and of other
            servers.
          </small>
        </label>
        <FormEnd error={error} close={close} isReady={typed !== ""} isPrimary={points === null}>
          Show backups
        </FormEnd>
      </form>
      {points?.length === 0 && <p role="status">The folder contains no backup.</p>}
      {points !== null && points.length > 0 && (
        <div class="panel scroll">
          <Table
            kind="lines"
            label="Backups in the folder"
            columns={["Database", "Time", "Type", actionsColumn]}
          >
            {points.slice(0, shownMax).map((point) => (
              <tr key={`${point.Location} ${point.FileName}`}>
                <td class="l1" title={point.Location}>
                  {point.DatabaseName}
                </td>
                <td class="l2">{moment(backupOfPoint(point).time)}</td>
                <td class="l0">
                  {point.IsIncremental ? "Changes" : "Full"}
                  {point.IsEncrypted ? ", encrypted" : ""}
                </td>
                <td class="act">
                  <button type="button" class="btn quiet" onClick={() => setChosen(point)}>
                    Restore…
                  </button>
                </td>
              </tr>
            ))}
          </Table>
          {points.length > shownMax && (
            <p class="soft">and {counted(points.length - shownMax, "more backup")}</p>
          )}
        </div>
      )}
    </Dialog>
  );
}

/** A restore on a page that is not about one database: the question, then the progress and the result. */
export function ServerRestore({ close }: { close: () => void }) {
  const [work, setWork] = useState<Work | null>(null);
  const hasStarted = useRef(false);
  if (work !== null) return <BackupWork database="" work={work} change={setWork} close={close} />;
  return (
    <RestoreFrom
      folder=""
      close={() => !hasStarted.current && close()}
      started={(id, name) => {
        hasStarted.current = true;
        setWork({ kind: "restore", id, name });
      }}
    />
  );
}
