import { expect, test } from "vitest";
import type { Database } from "../../../engine/engine.ts";
import { backupFigures } from "../../../server/backups/backup-figures.ts";
import type { PeriodicBackups } from "../../../server/backups/periodic-backups.ts";

const database = {} as Database;

function figures(statuses: readonly (object | null)[], disabled: readonly number[] = []) {
  const periodic = {
    list: () => statuses.map((_, TaskId) => ({ TaskId, Disabled: disabled.includes(TaskId) })),
    status: (_: Database, taskId: number) => statuses[taskId] ?? null,
  };
  return backupFigures(periodic as unknown as PeriodicBackups, database);
}

const full = "2026-11-23T10:00:00.0000000Z";
const later = "2026-11-23T12:00:00.0000000Z";

test("reports the last backup of each enabled task, and whether it failed", () => {
  const failed = { LastFullBackup: full, Error: { Exception: "no room" } };
  expect(
    figures([null, { LastFullBackup: full, LastIncrementalBackup: later }, failed, null], [3]),
  ).toMatchObject([
    { taskId: 0, lastMs: null, hasFailed: false, behindSeconds: null },
    { taskId: 1, lastMs: Date.parse("2026-11-23T12:00:00Z"), hasFailed: false },
    { taskId: 2, lastMs: Date.parse("2026-11-23T10:00:00Z"), hasFailed: true },
  ]);
});

test("reports the delay of a continuous backup, if it is known", () => {
  const status = (BehindInSec: unknown, WaitingBytes: unknown) => ({
    Continuous: { BehindInSec, WaitingBytes },
  });
  expect(figures([status(3, 700), status(null, null)])).toMatchObject([
    { behindSeconds: 3, waitingBytes: 700 },
    { behindSeconds: null, waitingBytes: null },
  ]);
});

test("reports a limited number of tasks", () => {
  expect(figures(Array.from({ length: 500 }, () => null)).length).toBeLessThan(50);
});
