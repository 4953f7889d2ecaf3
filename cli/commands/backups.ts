/**
 * `jackdaw backup`, `restore`, `verify` and `compact`: operations of the server that are waited for; and the tasks that back a
 * database up by themselves.
 */
import { resolve } from "node:path";
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { waitForOperation } from "../operations.ts";
import { painter, tableLines } from "../output.ts";
import { wholeNumber } from "../values.ts";

interface Started {
  readonly OperationId: number;
}

export async function run(surroundings: Surroundings): Promise<void> {
  await runs[surroundings.command.name]?.(surroundings);
}

const runs: Readonly<Record<string, (surroundings: Surroundings) => Promise<void>>> = {
  backup,
  "backup status": status,
  "backup remove": remove,
  restore,
  verify,
  compact,
};

async function backup(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client, database, options, print } = surroundings;
  const FolderPath = resolve(given[0] ?? "");
  const name = database();
  const seconds = options.text("continuous");
  const body = { BackupType: "Backup", LocalSettings: { FolderPath } };
  if (seconds !== undefined) {
    const IntervalInSec = wholeNumber(seconds, "--continuous");
    const put = (await client().json(inDatabase(name, "admin/periodic-backup"), {
      method: "POST",
      body: { ...body, Continuous: { IntervalInSec } },
    })) as { TaskId: number };
    print(
      options.is("json")
        ? JSON.stringify(put)
        : `${name} is backed up to ${FolderPath} every ${IntervalInSec} s: task ${put.TaskId}; 'jackdaw backup status -d ${name}' tells how it is`,
    );
    return;
  }
  const path = inDatabase(name, "admin/backup");
  const started = (await client().json(path, { method: "POST", body })) as Started;
  await ended(surroundings, name, started, `${name} was backed up to ${FolderPath}`);
}

interface Task {
  readonly TaskId: number;
  readonly TaskType: string;
  readonly TaskName: string;
  readonly TaskState: string;
  readonly Error: string | null;
  readonly LastFullBackup: string | null;
  readonly LastIncrementalBackup: string | null;
  readonly OnGoingBackup: object | null;
  readonly NextBackup: { readonly DateTime: string } | null;
  readonly FullBackupFrequency: string | null;
  readonly IncrementalBackupFrequency: string | null;
}

async function status(surroundings: Surroundings): Promise<void> {
  const { client, database, options, print, streams, environment } = surroundings;
  const name = database();
  const reply = await client().json(inDatabase(name, "tasks"));
  const { OngoingTasks } = reply as { OngoingTasks: Task[] };
  const tasks = OngoingTasks.filter(({ TaskType }) => TaskType === "Backup");
  if (options.is("json")) {
    print(JSON.stringify(tasks));
    return;
  }
  const rows = tasks.map((task) => [
    task.TaskId,
    task.TaskName,
    stateOf(task),
    task.LastFullBackup?.slice(0, 19) ?? "never",
    task.LastIncrementalBackup?.slice(0, 19) ?? "never",
    task.NextBackup?.DateTime.slice(0, 19) ?? "-",
  ]);
  const paint = painter(streams.output.isTTY === true, environment);
  const header = ["task", "name", "state", "last full", "last incremental", "next"];
  for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
  for (const { TaskId, Error: error } of tasks) {
    if (error) print(`${paint("red", `task ${TaskId}`)}: ${error.split("\n")[0]}`);
  }
}

function stateOf({ TaskState, Error: error, OnGoingBackup }: Task): string {
  if (TaskState !== "Enabled") return "disabled";
  if (error) return "failing";
  return OnGoingBackup === null ? "waiting" : "running";
}

async function remove({ arguments: given, client, database, options, print }: Surroundings) {
  const id = wholeNumber(given[0] ?? "", "TASK");
  const found = await client().send(inDatabase(database(), "task"), {
    query: { key: id, type: "Backup" },
    accepts: [404],
  });
  if (found.status === 404) {
    throw new Failure("missing", `There is no task ${id}; 'jackdaw backup status' lists them`);
  }
  const query = { id, type: "Backup" };
  await client().send(inDatabase(database(), "admin/tasks"), { method: "DELETE", query });
  print(
    options.is("json") ? JSON.stringify({ TaskId: id }) : `Task ${id} is removed; its files stay`,
  );
}

/** What to restore, for the server. */
function source({ arguments: given, options }: Surroundings) {
  return {
    Type: "Local",
    BackupLocation: resolve(given[0] ?? ""),
    PointInTime: options.text("at"),
    DisableOngoingTasks: true,
  };
}

async function restore(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client } = surroundings;
  const [, DatabaseName] = given;
  const body = { ...source(surroundings), DatabaseName };
  const path = "/admin/restore/database";
  const started = (await client().json(path, { method: "POST", body })) as Started;
  const done = `${DatabaseName} was restored from ${body.BackupLocation}`;
  await ended(surroundings, undefined, started, done);
}

async function compact(surroundings: Surroundings): Promise<void> {
  const { client, database } = surroundings;
  const body = { DatabaseName: database(), Documents: true };
  const started = await client().json("/admin/compact", { method: "POST", body });
  await ended(surroundings, undefined, started as Started, `${database()} was compacted`);
}

async function ended(
  surroundings: Surroundings,
  database: string | undefined,
  { OperationId }: Started,
  done: string,
): Promise<void> {
  const { Result } = await waitForOperation(surroundings, database, OperationId);
  surroundings.print(surroundings.options.is("json") ? JSON.stringify(Result) : done);
}

interface Verification {
  readonly IsValid: boolean;
  readonly Kind: string;
  readonly Problems: readonly string[];
  readonly Counts: Readonly<Record<string, number>>;
  readonly Expected: Readonly<Record<string, number>> | null;
  readonly Compared: {
    readonly Database: string;
    readonly IsEqual: boolean;
    readonly Differences: readonly { Kind: string; Backup: number; Database: number }[];
  } | null;
}

/** @throws Failure failed when the backup is not what it should be */
async function verify(surroundings: Surroundings): Promise<void> {
  const { client, options, print, streams, environment } = surroundings;
  const body = { ...source(surroundings), CompareWith: options.text("compare") };
  const path = "/admin/backups/verify";
  const started = (await client().json(path, { method: "POST", body })) as Started;
  const state = await waitForOperation(surroundings, undefined, started.OperationId);
  const sent = state.Result?.["Verification"] as Verification;
  const { IsValid, Problems, Counts, Expected, Compared } = sent;
  if (options.is("json")) print(JSON.stringify(sent));
  else {
    const paint = painter(streams.output.isTTY === true, environment);
    const rows = Object.entries(Counts).map(([kind, count]) => [
      kind,
      count,
      Expected?.[kind] ?? "",
    ]);
    const header = ["", "restored", "expected"];
    for (const line of tableLines(header, rows, streams.output.columns, paint)) print(line);
    for (const problem of Problems) print(`${paint("red", "problem")}: ${problem}`);
    for (const one of Compared?.Differences ?? []) {
      const { Kind, Backup, Database } = one;
      print(
        `${paint("red", "different")}: ${Kind}: ${Backup} in the backup, ${Database} in ${Compared?.Database}`,
      );
    }
    if (Compared?.IsEqual === true) print(`The backup has what ${Compared.Database} has`);
  }
  if (!IsValid) throw new Failure("failed", `${body.BackupLocation} is not what it should be`);
  if (Compared?.IsEqual === false) {
    throw new Failure(
      "failed",
      `${body.BackupLocation} differs from ${Compared.Database}, which may have changed since`,
    );
  }
  if (!options.is("json")) print(`${body.BackupLocation} is good`);
}
