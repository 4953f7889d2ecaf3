/** When a periodic backup runs next, and whether that is a full one. */
import type { PeriodicBackup } from "./backup-configuration.ts";
import type { BackupHistory } from "./backup-status.ts";
import { CronSchedule } from "./cron-schedule.ts";

export interface ScheduledRun {
  /** Milliseconds since 1970; in the past: it is due. */
  readonly atMs: number;
  readonly isFull: boolean;
}

/** Null: never again. A time that a clock set back has put into the future counts as now. */
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
  // Where both are due, the full one has what the incremental one would.
  const isFullFirst = fullMs !== null && (fullMs <= nowMs || fullMs <= (incrementalMs ?? fullMs));
  const isFull = incrementalMs === null || isFullFirst;
  const atMs = isFull ? fullMs : incrementalMs;
  if (atMs === null) return null;
  return { atMs, isFull: isFull || lastFullMs === null };
}

function nextMs(expression: string | null, afterMs: number): number | null {
  return expression === null ? null : new CronSchedule(expression).nextMs(afterMs);
}
