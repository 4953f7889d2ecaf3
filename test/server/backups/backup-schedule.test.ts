/** When a periodic backup runs next. */
import { expect, test } from "vitest";
import { periodicBackup } from "../../../server/backups/backup-configuration.ts";
import { nextRun } from "../../../server/backups/backup-schedule.ts";
import type { BackupHistory } from "../../../server/backups/backup-status.ts";

const at = (day: number, hour: number, minute = 0) =>
  new Date(2026, 2, day, hour, minute).getTime();
const created = at(1, 12);
const none: BackupHistory = {
  lastFullMs: null,
  lastIncrementalMs: null,
  folderName: null,
  error: null,
};

function task(full: string | null, incremental: string | null) {
  const LocalSettings = { FolderPath: "/b" };
  const sent = {
    FullBackupFrequency: full,
    IncrementalBackupFrequency: incremental,
    LocalSettings,
  };
  return periodicBackup(sent, 1, new Date(created));
}

test("the first backup is full, even if an incremental one is due first", () => {
  const daily = task("0 2 * * *", "0 * * * *");
  expect(nextRun(daily, none, created)).toEqual({ atMs: at(1, 13), isFull: true });
  expect(nextRun(task(null, "0 * * * *"), none, created)).toEqual({
    atMs: at(1, 13),
    isFull: true,
  });
  expect(nextRun(task("0 2 * * *", null), none, created)).toEqual({ atMs: at(2, 2), isFull: true });
});

test("incremental backups follow until the next full one, which takes precedence at the same time", () => {
  const daily = task("0 2 * * *", "0 * * * *");
  const full = { ...none, lastFullMs: at(1, 13) };
  expect(nextRun(daily, full, at(1, 13, 1))).toEqual({ atMs: at(1, 14), isFull: false });
  const later = { ...full, lastIncrementalMs: at(2, 1) };
  expect(nextRun(daily, later, at(2, 1, 1))).toEqual({ atMs: at(2, 2), isFull: true });
});

test("a missed backup is due immediately, and once", () => {
  const daily = task("0 2 * * *", null);
  const missed = nextRun(daily, { ...none, lastFullMs: at(2, 2) }, at(9, 12));
  expect(missed).toEqual({ atMs: at(3, 2), isFull: true });
  expect(nextRun(daily, { ...none, lastFullMs: at(9, 12) }, at(9, 12, 1))?.atMs).toBe(at(10, 2));
});

test("if both were missed, a full backup is created", () => {
  const daily = task("0 2 * * *", "0 * * * *");
  const full = { ...none, lastFullMs: at(2, 2) };
  expect(nextRun(daily, full, at(2, 23))).toEqual({ atMs: at(2, 3), isFull: false });
  expect(nextRun(daily, full, at(4, 1))).toEqual({ atMs: at(3, 2), isFull: true });
});

test("continues after the clock was set back", () => {
  const daily = task("0 2 * * *", null);
  expect(nextRun(daily, { ...none, lastFullMs: at(20, 2) }, at(9, 12))?.atMs).toBe(at(10, 2));
});
