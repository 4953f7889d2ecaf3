/** Form for a backup schedule: times, target, and retention. */
import { useState } from "preact/hooks";
import { type BackupDefinition, scheduleText } from "../base/backup-tasks.ts";
import { send } from "../base/client.ts";
import { moment } from "../base/format.ts";
import { useResource } from "../base/resource.ts";
import { Dialog, FormEnd } from "../components/dialog.tsx";
import { TextField } from "../components/text-field.tsx";
import { TargetFields, type TypedTarget, targetSettings, useTarget } from "./backup-target.tsx";

/** Common schedules; cron expressions use the server's local time. */
const kinds = [
  {
    key: "weekly",
    text: "Every night at 02:00, full on Sunday",
    full: "0 2 * * 0",
    changes: "0 2 * * *",
  },
  { key: "nightly", text: "Every night at 02:00, full", full: "0 2 * * *", changes: "" },
  {
    key: "hourly",
    text: "Every hour, full on Sunday at 02:00",
    full: "0 2 * * 0",
    changes: "0 * * * *",
  },
  { key: "continuous", text: "Continuous", full: "", changes: "" },
  { key: "own", text: "Custom schedule", full: "", changes: "" },
] as const;
type Kind = (typeof kinds)[number]["key"];

function keptDays(definition: BackupDefinition | null): string {
  if (definition === null) return "30";
  return /^(\d+)/.exec(definition.RetentionPolicy?.MinimumBackupAgeToKeep ?? "")?.[1] ?? "";
}

function kindOf(definition: BackupDefinition | null): Kind {
  if (definition === null) return "weekly";
  if (definition.Continuous !== undefined) return "continuous";
  const { FullBackupFrequency: full, IncrementalBackupFrequency: changes } = definition;
  const found = kinds.find((one) => one.full === (full ?? "") && one.changes === (changes ?? ""));
  return found?.key ?? "own";
}

interface Typed {
  readonly name: string;
  readonly kind: Kind;
  readonly full: string;
  readonly changes: string;
  readonly interval: string;
  readonly keepDays: string;
}

/** Returns the definition to send; options that the form does not show are unchanged. */
function definitionOf(before: BackupDefinition | null, typed: Typed, target: TypedTarget): object {
  const { kind, keepDays } = typed;
  const times = kind === "own" ? typed : kinds.find((one) => one.key === kind);
  const interval = { ...before?.Continuous, IntervalInSec: Number(typed.interval) };
  return {
    ...before,
    Name: typed.name,
    BackupType: "Backup",
    ...targetSettings(target, before),
    FullBackupFrequency: times?.full || null,
    IncrementalBackupFrequency: times?.changes || null,
    RetentionPolicy:
      keepDays === ""
        ? { Disabled: true, MinimumBackupAgeToKeep: null }
        : { Disabled: false, MinimumBackupAgeToKeep: `${Number(keepDays)}.00:00:00` },
    Continuous: kind === "continuous" ? interval : null,
  };
}

export function ScheduleForm({
  database,
  definition,
  saved,
  close,
}: {
  database: string;
  /** Null for a new schedule. */
  definition: BackupDefinition | null;
  saved: () => void;
  close: () => void;
}) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const [name, setName] = useState(definition?.Name ?? "Nightly");
  const target = useTarget(definition, "");
  const [kind, setKind] = useState<Kind>(() => kindOf(definition));
  const [full, setFull] = useState(definition?.FullBackupFrequency ?? "0 2 * * 0");
  const [changes, setChanges] = useState(definition?.IncrementalBackupFrequency ?? "");
  const [interval, setInterval] = useState(String(definition?.Continuous?.IntervalInSec ?? 10));
  const [keepDays, setKeepDays] = useState(() => keptDays(definition));
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const config = `${base}/admin/periodic-backup/config`;
  const root = useResource<{ LocalRootPath: string | null }>(config).body?.LocalRootPath;
  const save = async () => {
    setBusy(true);
    try {
      const typed = { name, kind, full, changes, interval, keepDays };
      const json = definitionOf(definition, typed, target.typed);
      await send("POST", `${base}/admin/periodic-backup`, { json });
      saved();
      close();
    } catch (failed) {
      setError(failed as Error);
      setBusy(false);
    }
  };
  const isReady = name !== "" && target.isReady && !isBusy;
  return (
    <Dialog
      title={`${definition === null ? "New schedule" : "Schedule"} ${definition?.Name ?? ""}`}
      close={close}
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void save();
        }}
      >
        <TextField label="Name" value={name} change={setName} autofocus />
        <TargetFields
          typed={target.typed}
          change={target.setTyped}
          root={root}
          isStored={definition !== null}
        />
        <label class="form">
          When
          <select
            class="field"
            value={kind}
            onChange={(event) => setKind(event.currentTarget.value as Kind)}
          >
            {kinds.map((one) => (
              <option key={one.key} value={one.key}>
                {one.text}
              </option>
            ))}
          </select>
          {kind === "continuous" && (
            <small>
              Changes are copied every few seconds, and the database can be restored as of any time.
            </small>
          )}
        </label>
        {kind === "own" && (
          <>
            <CronField label="Full backups" value={full} change={setFull} />
            <CronField label="Changes since" value={changes} change={setChanges} />
          </>
        )}
        {kind === "continuous" && (
          <TextField
            label="Seconds between copies"
            value={interval}
            change={setInterval}
            type="number"
            min="1"
          />
        )}
        <TextField
          label="Days to keep backups"
          value={keepDays}
          change={setKeepDays}
          hint="Empty: keep all."
          type="number"
          min="1"
        />
        <FormEnd error={error} close={close} isReady={isReady}>
          {isBusy ? "Saving" : "Save schedule"}
        </FormEnd>
      </form>
    </Dialog>
  );
}

interface Occurrence {
  readonly IsValid: boolean;
  readonly Utc?: string;
  readonly ErrorMessage?: string;
}

/** Fields of a cron expression, with its description. */
function CronField({
  label,
  value,
  change,
}: {
  label: string;
  value: string;
  change: (value: string) => void;
}) {
  const next = useResource<Occurrence>(
    value.trim() === ""
      ? null
      : `/studio-tasks/next-cron-expression-occurrence?expression=${encodeURIComponent(value)}`,
  ).body;
  const hint = next?.Utc === undefined ? "" : `${scheduleText(value)}; next ${moment(next.Utc)}`;
  return (
    <label class="form">
      {label}
      <div class="field">
        <input
          class="mono"
          value={value}
          placeholder="never"
          onInput={(event) => change(event.currentTarget.value)}
        />
      </div>
      <small class={next?.IsValid === false ? "bad" : ""}>
        {next?.IsValid === false ? next.ErrorMessage : hint || "minute hour day month weekday"}
      </small>
    </label>
  );
}
