/** A backup, verification, or restore in progress, and its result. */
import { useEffect, useState } from "preact/hooks";
import {
  type Backup,
  type BackupDefinition,
  type BackupRun,
  backupOfPoint,
  backupOfRun,
  type RestorePoint,
  rememberVerified,
  startVerification,
} from "../base/backup-tasks.ts";
import { get, send } from "../base/client.ts";
import { counted } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { useOperation } from "../base/operation.ts";
import { useResource } from "../base/resource.ts";
import { href } from "../base/router.ts";
import { sentenceOf } from "../base/server-message.ts";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { Progress } from "../components/progress.tsx";
import { showToast } from "../components/toast.tsx";

export type Work =
  | {
      readonly kind: "backup";
      readonly id: number;
      /** Schedule of the backup; null for a manual backup. */
      readonly taskId: number | null;
      readonly folder: string | null;
    }
  | {
      readonly kind: "verification";
      readonly made: Backup;
      /** Key of an encrypted backup. */
      readonly key: string;
      /** Operation id; null if it has not started. */
      readonly id: number | null;
    }
  | { readonly kind: "restore"; readonly id: number; readonly name: string };

interface Figures {
  readonly Documents?: { readonly ReadCount: number };
  readonly Verification?: {
    readonly IsValid: boolean;
    readonly Problems: readonly string[];
    readonly Counts: { readonly Documents: number };
  };
}

export function BackupWork({
  database,
  work,
  change,
  close,
}: {
  database: string;
  work: Work;
  change: (work: Work) => void;
  close: () => void;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const ofDatabase = work.kind === "backup" ? `${base}/operations` : "/operations";
  const path = work.id === null ? null : `${ofDatabase}/state?id=${work.id}`;
  const { operation, error: lost } = useOperation<Figures, Figures>(path);
  const [error, setError] = useState<Error | null>(null);
  const { body: stats } = useResource<{ CountOfDocuments: number }>(
    work.kind === "backup" ? `${base}/stats/essential` : null,
  );
  const isMade = work.kind === "backup" && operation?.status === "completed";
  useEffect(() => {
    if (work.kind !== "verification" || work.id !== null) return;
    startVerification(work.made, work.key).then((id) => change({ ...work, id }), setError);
  }, [work]);
  useEffect(() => {
    if (!isMade || work.kind !== "backup") return;
    // A new backup is verified immediately, by restoring it temporarily.
    const end = () => {
      showToast(`${database} was backed up`);
      close();
    };
    if (!may("operator")) end();
    else {
      newestOf(database, work).then(
        (made) =>
          made === null || made.isEncrypted
            ? end()
            : change({ kind: "verification", made, key: "", id: null }),
        setError,
      );
    }
  }, [isMade]);
  const verification = operation?.result?.Verification;
  useEffect(() => {
    if (work.kind === "verification" && verification?.IsValid === true) rememberVerified(work.made);
  }, [verification]);

  const done = operation?.progress?.Documents?.ReadCount ?? 0;
  const title = titleOf(database, work);
  if (error !== null || lost !== undefined)
    return <Failure error={error ?? (lost as Error)} retry={close} />;
  if (operation?.status === "failed")
    return (
      <div class="note bad" role="alert">
        <Icon name="bad" />
        <span class="grow">{sentenceOf(operation.error?.Message ?? "")}</span>
        <Close close={close} />
      </div>
    );
  if (operation?.status === "cancelled")
    return (
      <div class="note" role="status">
        <span class="grow">{title}: stopped. Partial results were removed.</span>
        <Close close={close} />
      </div>
    );
  if (operation?.status === "completed" && work.kind === "restore")
    return (
      <div class="note" role="status">
        <Icon name="check" />
        <span class="grow">
          {work.name} is restored, with{" "}
          {counted(operation.result?.Documents?.ReadCount ?? 0, "document")}.
        </span>
        <a class="btn" href={href(["db", work.name, "docs"])}>
          Open {work.name}
        </a>
        <Close close={close} />
      </div>
    );
  if (verification !== undefined)
    return (
      <div class={verification.IsValid ? "note" : "note bad"} role="status">
        <Icon name={verification.IsValid ? "check" : "bad"} />
        <span class="grow">
          {verification.IsValid
            ? `Verified: a test restore contains all ${counted(verification.Counts.Documents, "document")}.`
            : verification.Problems.join(" ")}
        </span>
        <Close close={close} />
      </div>
    );
  const stop = () =>
    work.id !== null &&
    send(
      "POST",
      work.kind === "backup"
        ? `${base}/operations/kill?id=${work.id}`
        : `/admin/operations/kill?id=${work.id}`,
    ).catch(setError);
  return (
    <section class="panel" aria-label={title}>
      <div class="body stack">
        <div class="row">
          <b class="grow">{title}</b>
          <button type="button" class="btn quiet" onClick={() => void stop()}>
            Stop
          </button>
        </div>
        <Progress
          label={title}
          done={done}
          total={work.kind === "backup" ? (stats?.CountOfDocuments ?? null) : null}
          unit="documents"
        />
      </div>
    </section>
  );
}

function Close({ close }: { close: () => void }) {
  return (
    <button type="button" class="btn quiet icon" aria-label="Close" onClick={close}>
      <Icon name="x" />
    </button>
  );
}

function titleOf(database: string, work: Work): string {
  if (work.kind === "backup") return `Backing up ${database}`;
  if (work.kind === "restore") return `Restoring ${work.name}`;
  return "Verifying the backup with a test restore";
}

/** Returns the newest backup; null if it is not in a folder. */
async function newestOf(
  database: string,
  { taskId, folder }: { readonly taskId: number | null; readonly folder: string | null },
): Promise<Backup | null> {
  // Backups in S3 are not listed here.
  if (taskId === null && folder === null) return null;
  if (taskId === null) {
    const { body } = await send<{ List: RestorePoint[] }>(
      "POST",
      "/admin/restore/points?type=Local",
      { json: { FolderPath: folder } },
    );
    const mine = body.List.find((one) => one.DatabaseName.toLowerCase() === database.toLowerCase());
    return mine === undefined ? null : backupOfPoint(mine);
  }
  const query = `name=${encodeURIComponent(database)}&taskId=${taskId}`;
  const [definition, history] = await Promise.all([
    get<BackupDefinition>(`/periodic-backup?${query}`),
    get<{ Runs: BackupRun[] }>(`/periodic-backup/history?${query}`),
  ]);
  const [run] = history.body.Runs;
  const into = definition.body.LocalSettings?.FolderPath ?? null;
  const made = run === undefined ? null : backupOfRun(run, into);
  return made?.location == null ? null : made;
}
