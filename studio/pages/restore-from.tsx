/** Lists the backups in a folder of the server or in S3, also those made elsewhere, and restores one. */
import { useRef, useState } from "preact/hooks";
import { type Backup, backupOfPoint, type RestorePoint } from "../base/backup-tasks.ts";
import { send } from "../base/client.ts";
import { counted, moment } from "../base/format.ts";
import { Dialog, FormEnd } from "../components/dialog.tsx";
import { actionsColumn, Table } from "../components/table.tsx";
import { PlaceFields, s3Settings, useTarget } from "./backup-target.tsx";
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
  const { typed, setTyped, isReady } = useTarget(null, folder);
  const [points, setPoints] = useState<readonly RestorePoint[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [chosen, setChosen] = useState<RestorePoint | null>(null);
  const s3 = typed.target === "s3" ? s3Settings(typed.s3) : undefined;
  const list = async () => {
    setError(null);
    setPoints(null);
    try {
      const json = s3 ?? { FolderPath: typed.folder };
      const path = `/admin/restore/points?type=${s3 === undefined ? "Local" : "S3"}`;
      const { body } = await send<{ List: RestorePoint[] }>("POST", path, { json });
      setPoints(body.List);
      if (s3 === undefined && body.List.length > 0) found?.(typed.folder);
    } catch (failed) {
      setError(failed as Error);
    }
  };
  if (chosen !== null) {
    const made: Backup = backupOfPoint(chosen, s3);
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
          if (isReady) void list();
        }}
      >
        <PlaceFields
          label="Place"
          typed={typed}
          change={(next) => {
            setTyped(next);
            setPoints(null);
          }}
          hint="Lists backups of all databases in it, also those of the command line and of other servers."
        />
        <FormEnd error={error} close={close} isReady={isReady} isPrimary={points === null}>
          Show backups
        </FormEnd>
      </form>
      {points?.length === 0 && <p role="status">No backup is there.</p>}
      {points !== null && points.length > 0 && (
        <div class="panel scroll">
          <Table
            kind="lines"
            label="Backups found"
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
