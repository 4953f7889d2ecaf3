/**
 * `jackdaw backup`, `restore`, `verify` and `compact`: runs operations of the server and waits for them; manages
 * backup tasks.
 */
import { join, resolve } from "node:path";
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { readInput } from "../input-file.ts";
import { waitForOperation } from "../operations.ts";
import { painter, tableLines } from "../output.ts";
import { wholeNumber } from "../values.ts";

interface Started {
  readonly OperationId: number;
}

export async function run(context: CommandContext): Promise<void> {
  await runs[context.command.name]?.(context);
}

const runs: Readonly<Record<string, (context: CommandContext) => Promise<void>>> = {
  backup,
  "backup status": status,
  "backup remove": remove,
  restore,
  verify,
  compact,
};

async function backup(context: CommandContext): Promise<void> {
  const { arguments: given, client, database, options, print } = context;
  const FolderPath = resolve(given[0] ?? "");
  const name = database();
  const seconds = options.text("continuous");
  const body = {
    BackupType: "Backup",
    LocalSettings: { FolderPath },
    ...(await encryptionOf(context)),
  };
  if (seconds !== undefined) {
    const IntervalInSec = wholeNumber(seconds, "--continuous");
    const put = (await client().json(inDatabase(name, "admin/periodic-backup"), {
      method: "POST",
      body: { ...body, Continuous: { IntervalInSec } },
    })) as { TaskId: number };
    print(
      options.is("json")
        ? JSON.stringify(put)
        : `${name} is backed up to ${FolderPath} every ${IntervalInSec} s: task ${put.TaskId}; 'jackdaw backup status -d ${name}' shows its state`,
    );
    return;
  }
  const path = inDatabase(name, "admin/backup");
  const { OperationId } = (await client().json(path, { method: "POST", body })) as Started;
  const { Result } = await waitForOperation(context, name, OperationId);
  const local = Result?.["LocalBackup"] as Readonly<Record<string, string>> | undefined;
  const made = join(FolderPath, local?.["BackupDirectory"] ?? "");
  print(options.is("json") ? JSON.stringify(Result) : `${name} was backed up to ${made}`);
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

async function status(context: CommandContext): Promise<void> {
  const { client, database, options, print, streams, environment } = context;
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

async function remove({ arguments: given, client, database, options, print }: CommandContext) {
  const id = wholeNumber(given[0] ?? "", "TASK");
  const found = await client().send(inDatabase(database(), "task"), {
    query: { key: id, type: "Backup" },
    accepts: [404],
  });
  if (found.status === 404) {
    throw new Failure(
      "missing",
      `Task ${id} does not exist; 'jackdaw backup status' lists all tasks`,
    );
  }
  const query = { id, type: "Backup" };
  await client().send(inDatabase(database(), "admin/tasks"), { method: "DELETE", query });
  print(
    options.is("json")
      ? JSON.stringify({ TaskId: id })
      : `Task ${id} was removed; its files were kept`,
  );
}

interface RestorePoint {
  readonly Location: string;
  readonly DatabaseName: string;
}

/**
 * Returns the encryption settings of a request, empty if no key is given. @throws Failure usage for an unreadable
 * file
 */
async function encryptionOf({ options }: CommandContext): Promise<object> {
  const path = options.text("encryption-key");
  if (path === undefined) return {};
  const Key = (await readInput(path)).trim();
  return { BackupEncryptionSettings: { EncryptionMode: "UseProvidedKey", Key } };
}

/** Returns the description of the backup to restore. */
async function source(context: CommandContext) {
  const { arguments: given, options } = context;
  const folder = resolve(given[0] ?? "");
  const PointInTime = options.text("at");
  const isWhole = PointInTime === undefined;
  const BackupLocation = isWhole ? await newestIn(context, folder) : folder;
  const encryption = await encryptionOf(context);
  return { Type: "Local", BackupLocation, PointInTime, DisableOngoingTasks: true, ...encryption };
}

/**
 * Returns the folder of the newest backup in `FolderPath`: `backup` creates a subfolder for each backup.
 * @throws Failure usage when there are backups of several databases
 */
async function newestIn({ client, streams }: CommandContext, FolderPath: string): Promise<string> {
  const answer = await client().send("/admin/restore/points", {
    method: "POST",
    query: { type: "Local" },
    body: { FolderPath },
    // Without a backup the folder may hold a continuous one; the restore reports any error.
    accepts: [400, 404, 409, 500],
  });
  if (answer.status !== 200) return FolderPath;
  const { List } = JSON.parse(answer.text) as { List: RestorePoint[] };
  const inside = List.map((point) => ({ ...point, Location: resolve(point.Location) }));
  const [newest] = inside; // the server sorts them
  if (newest === undefined || inside.some(({ Location }) => Location === FolderPath)) {
    return FolderPath;
  }
  const names = [...new Set(inside.map(({ DatabaseName }) => DatabaseName))];
  if (names.length > 1) {
    const folders = names.map((name) => inside.find((one) => one.DatabaseName === name)?.Location);
    throw new Failure(
      "usage",
      `${FolderPath} has backups of several databases; specify one of their folders: ${folders.join(", ")}`,
    );
  }
  if (inside.some(({ Location }) => Location !== newest.Location)) {
    streams.errors.write(`The newest backup there is ${newest.Location}\n`);
  }
  return newest.Location;
}

async function restore(context: CommandContext): Promise<void> {
  const { arguments: given, client } = context;
  const [, DatabaseName] = given;
  const body = { ...(await source(context)), DatabaseName };
  const path = "/admin/restore/database";
  const started = (await client().json(path, { method: "POST", body })) as Started;
  const done = `${DatabaseName} was restored from ${body.BackupLocation}`;
  await printResult(context, undefined, started, done);
}

async function compact(context: CommandContext): Promise<void> {
  const { client, database } = context;
  const body = { DatabaseName: database(), Documents: true };
  const started = await client().json("/admin/compact", { method: "POST", body });
  await printResult(context, undefined, started as Started, `${database()} was compacted`);
}

async function printResult(
  context: CommandContext,
  database: string | undefined,
  { OperationId }: Started,
  done: string,
): Promise<void> {
  const { Result } = await waitForOperation(context, database, OperationId);
  context.print(context.options.is("json") ? JSON.stringify(Result) : done);
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

/**
 * Verifies a backup and prints the result. @throws Failure failed if the backup is invalid or differs from the
 * database
 */
async function verify(context: CommandContext): Promise<void> {
  const { client, options, print, streams, environment } = context;
  const body = { ...(await source(context)), CompareWith: options.text("compare") };
  const path = "/admin/backups/verify";
  const started = (await client().json(path, { method: "POST", body })) as Started;
  const state = await waitForOperation(context, undefined, started.OperationId);
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
    if (Compared?.IsEqual === true) print(`The backup is equal to ${Compared.Database}`);
  }
  if (!IsValid) throw new Failure("failed", `${body.BackupLocation} is invalid`);
  if (Compared?.IsEqual === false) {
    throw new Failure(
      "failed",
      `${body.BackupLocation} differs from ${Compared.Database}, which may have changed since`,
    );
  }
  if (!options.is("json")) print(`${body.BackupLocation} is valid`);
}
