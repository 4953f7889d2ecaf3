/** Options of a restore: the name of the new database, the time, the key. */
import { useState } from "preact/hooks";
import { type Backup, startRestore } from "../base/backup-tasks.ts";
import { useDatabaseName } from "../base/database-name.ts";
import { moment } from "../base/format.ts";
import { Dialog, FormEnd } from "../components/dialog.tsx";
import { TextField } from "../components/text-field.tsx";

export function RestoreDialog({
  made,
  database,
  started,
  close,
}: {
  made: Backup;
  database: string;
  started: (operationId: number, name: string) => void;
  close: () => void;
}) {
  const [name, setName] = useState(`${database}-restored`);
  const [key, setKey] = useState("");
  const [time, setTime] = useState("");
  const [keepsTasks, setKeepsTasks] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const problem = useDatabaseName(name);
  const isReady = name !== "" && problem === null && (!made.isEncrypted || key !== "") && !isBusy;
  const start = async () => {
    setBusy(true);
    try {
      const wanted = time === "" ? "" : new Date(time).toISOString();
      const id = await startRestore(made, { name, key, moment: wanted, keepsTasks });
      started(id, name);
      close();
    } catch (failed) {
      setError(failed as Error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Restore the backup of ${moment(made.time)}`} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void start();
        }}
      >
        <p class="soft">
          It becomes a new database; {database} is unchanged. The new database cannot be opened
          until the restore is complete.
        </p>
        <label class="form">
          Name of the new database
          <div class="field">
            <input
              autofocus
              value={name}
              aria-invalid={problem !== null}
              aria-describedby="restore-problem"
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </div>
          <small id="restore-problem" class={problem === null ? "" : "bad"} aria-live="polite">
            {problem ?? ""}
          </small>
        </label>
        {made.file === null && (
          <TextField
            label="As of"
            type="datetime-local"
            step="1"
            value={time}
            change={setTime}
            hint="Empty: the newest state."
          />
        )}
        {made.isEncrypted && (
          <TextField
            label="Encryption key of the backup, in Base64"
            type="password"
            autocomplete="off"
            value={key}
            change={setKey}
          />
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={keepsTasks}
            onChange={(event) => setKeepsTasks(event.currentTarget.checked)}
          />
          <span>Enable its backup schedules for the new database</span>
        </label>
        <FormEnd error={error} close={close} isReady={isReady}>
          {isBusy ? "Starting" : `Restore ${name}`}
        </FormEnd>
      </form>
    </Dialog>
  );
}
