/** The metrics of the backups of an open database. */
import type { Database } from "../../engine/engine.ts";
import type { JsonObject } from "../http/json-body.ts";
import { historyOf } from "./backup-status.ts";
import type { PeriodicBackups } from "./periodic-backups.ts";

/** Maximum number of reported tasks per database. */
const tasksMax = 20;

interface BackupFigures {
  readonly taskId: number;
  /** Start of the last successful backup, or time of the last copied commit, in milliseconds since the Unix epoch, or null. */
  readonly lastMs: number | null;
  readonly hasFailed: boolean;
  /** Lag of a continuous backup, or null if it is not continuous or the lag is not known yet. */
  readonly behindSeconds: number | null;
  readonly waitingBytes: number | null;
}

/** Returns the metrics of the enabled tasks. */
export function backupFigures(periodic: PeriodicBackups, database: Database): BackupFigures[] {
  const tasks = periodic.list(database).filter(({ Disabled }) => !Disabled);
  return tasks.slice(0, tasksMax).map(({ TaskId: taskId }) => {
    const status = periodic.status(database, taskId);
    const { lastFullMs, lastIncrementalMs, error } = historyOf(status);
    const times = [lastFullMs, lastIncrementalMs].filter((ms) => ms !== null);
    const continuous = status?.["Continuous"] as JsonObject | undefined;
    return {
      taskId,
      lastMs: times.length === 0 ? null : Math.max(...times),
      hasFailed: error !== null,
      behindSeconds: numberOf(continuous?.["BehindInSec"]),
      waitingBytes: numberOf(continuous?.["WaitingBytes"]),
    };
  });
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
