/** Computes the time and the type of the next run of a periodic backup. */
import type { PeriodicBackup } from "./backup-configuration.ts";
import type { BackupHistory } from "./backup-status.ts";
import { CronSchedule } from "./cron-schedule.ts";

export interface ScheduledRun {
  /** Milliseconds since the Unix epoch. A time in the past means that the run is due. */
  readonly atMs: number;
  readonly isFull: boolean;
}

/** Returns null if it never runs again. A future time after the clock was set back counts as now. */
export function nextRun(
  task: PeriodicBackup,
  { lastFullMs, lastIncrementalMs }: BackupHistory,
  nowMs: number,
): ScheduledRun | null {
  const createdMs = Date.parse(task.CreatedAt) || nowMs;
  const after = (ms: number | null) => Math.min(ms ?? createdMs, nowMs);
  const fullMs = nextMs(task.FullBackupFrequency, after(lastFullMs));
  const last = Math.max(lastFullMs ?? 0, lastIncrementalMs ?? 0);
  const incrementalMs = nextMs(task.IncrementalBackupFrequency, after(last === 0 ? null : last));
  if (fullMs === null && incrementalMs === null) return null;
  // If both are due, the full backup contains everything that the incremental one would.
  const isFullFirst = fullMs !== null && (fullMs <= nowMs || fullMs <= (incrementalMs ?? fullMs));
  const isFull = incrementalMs === null || isFullFirst;
  const atMs = isFull ? fullMs : incrementalMs;
  if (atMs === null) return null;
  return { atMs, isFull: isFull || lastFullMs === null };
}

function nextMs(expression: string | null, afterMs: number): number | null {
  return expression === null ? null : new CronSchedule(expression).nextMs(afterMs);
}
