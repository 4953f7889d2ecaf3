/**
 * Periodic backups: definitions in the records of databases, and a timer that runs the backups that are due.
 *
 *   values["server/periodic-backups/<name>"]   name of a database with enabled definitions, so that a starting server
 *                                              knows which databases to open
 *
 * Invariants:
 * - A backup is due once for each time of its schedule, or immediately if the server was not running then. A failed run is
 *   retried after a minute, then at increasing intervals.
 * - An incremental backup continues the last full one of its task; if it cannot, a full one is made.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import type { FileSystem, Report } from "../../engine/base/environment.ts";
import { EngineError } from "../../engine/base/errors.ts";
import type { Database, StartedOperation } from "../../engine/engine.ts";
import type { JsonObject } from "../http/json-body.ts";
import { RequestError } from "../http/request-error.ts";
import type { ValueStore } from "../settings/value-store.ts";
import {
  hasDestination,
  isContinuous,
  type PeriodicBackup,
  periodicBackup,
  periodicBackupsOf,
  periodicFolder,
} from "./backup-configuration.ts";
import {
  destinationOf,
  keptSecrets,
  type OpenDestination,
  type SecretStore,
  withSecrets,
} from "./backup-destination.ts";
import { backupFilesIn, checkedFolder, type FolderRules } from "./backup-folder.ts";
import type { BackupRunner, FinishedBackup } from "./backup-runner.ts";
import { nextRun, type ScheduledRun } from "./backup-schedule.ts";
import {
  type EndedRun,
  historyOf,
  markAfter,
  markAfterFailure,
  runsOf,
  shownStatus,
} from "./backup-status.ts";
import { type BackupStorage, isEncryptedWith } from "./backup-storage.ts";
import { ContinuousBackups } from "./continuous-backups.ts";
import { removeOldBackups } from "./retention.ts";

const prefix = "server/periodic-backups/";
const checkMsMax = 30_000;
const lookSoonMs = 200;
const retryMsMin = 60_000;
const retryMsMax = 3_600_000;

/** The dependencies of periodic backups. */
interface PeriodicHost {
  readonly databases: {
    has(name: string): boolean;
    find(name: string): Database | undefined | Promise<Database | undefined>;
  };
  readonly values: ValueStore;
  readonly rules: FolderRules;
  readonly report: Report;
  readonly runner: BackupRunner;
  readonly files: FileSystem;
  readonly secrets: SecretStore;
  /** Returns whether another node of the cluster runs the backups of this database. */
  isElsewhere(name: string): boolean;
  nextIndex(): Promise<number>;
  nowMs(): number;
}

/** A run in progress. */
interface RunningBackup {
  readonly startedMs: number;
  readonly isFull: boolean;
  readonly operationId: number;
  /** Set when it was stopped to run later. */
  delayedUntilMs: number | null;
}

/** A delay of the next run of a task. */
interface Postponed {
  /** Failed runs since the last success. */
  readonly count: number;
  /** The earliest time of the next run. */
  readonly retryMs: number;
}

export class PeriodicBackups {
  readonly #host: PeriodicHost;
  /** Names of the databases with enabled definitions. */
  readonly #watched = new Map<string, string>();
  readonly #running = new Map<string, RunningBackup>();
  readonly #postponed = new Map<string, Postponed>();
  /** Duties at the last `reload`. */
  #seenDuties = "";
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | null = null;
  #isClosed = false;
  /** Tasks without a schedule, which run continuously. */
  readonly #continuous: ContinuousBackups;

  constructor(host: PeriodicHost) {
    this.#host = host;
    this.#continuous = new ContinuousBackups({
      report: host.report,
      destination: (database, task) => this.#destination(database, task),
      nowMs: () => host.nowMs(),
      lookSoon: () => this.#checkIn(lookSoonMs),
    });
  }

  /** Starts to run backups when they are due. */
  start(): void {
    this.#readWatched();
    this.#checkIn(0);
  }

  /** Checks again: another node may have changed definitions, or the responsible nodes may have changed. */
  reload(): void {
    this.#readWatched();
    const duties = this.#duties();
    if (duties === this.#seenDuties) return;
    this.#seenDuties = duties;
    this.#checkIn(lookSoonMs);
  }

  #readWatched(): void {
    this.#watched.clear();
    for (const [, text] of this.#host.values.entries(prefix)) {
      const name = JSON.parse(text) as string;
      this.#watched.set(foldedName(name), name);
    }
  }

  /** Returns the duties of this node as comparable text. */
  #duties(): string {
    return [...this.#watched.keys()]
      .map((name) => `${name}/${this.#host.isElsewhere(name)}`)
      .join();
  }

  /** Stops starting backups. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Lets continuous backups write the last commits. Called after `close` and after the last write. */
  async finish(): Promise<void> {
    await this.#checking;
    await this.#continuous.finish();
  }

  /** Returns the status of a task after its last runs, or null before the first. */
  status(database: Database, taskId: number): JsonObject | null {
    const running = this.#continuous.find(database, taskId);
    if (running !== undefined) return running.status();
    const refusal = this.#continuous.refusal(database, taskId);
    const last = shownStatus(database.smuggler.backupMark(taskId)?.status);
    return refusal === undefined ? last : { TaskId: taskId, Error: { Exception: refusal } };
  }

  /** Returns the last runs of a task, newest first; none for a continuous one. */
  runs(database: Database, taskId: number): readonly unknown[] {
    return runsOf(database.smuggler.backupMark(taskId)?.status);
  }

  list(database: Database): PeriodicBackup[] {
    return periodicBackupsOf(database.settings);
  }

  find(database: Database, taskId: number | undefined, name?: string): PeriodicBackup | undefined {
    return this.list(database).find((task) =>
      taskId === undefined ? task.Name === name : task.TaskId === taskId,
    );
  }

  /** Returns the run of a task in progress. */
  running(database: Database, taskId: number): RunningBackup | undefined {
    return this.#running.get(keyOf(database, taskId));
  }

  /** Returns the next run of a task, or null. */
  next(database: Database, task: PeriodicBackup): ScheduledRun | null {
    if (task.Disabled || !hasDestination(task)) return null;
    const history = historyOf(database.smuggler.backupMark(task.TaskId)?.status);
    const found = nextRun(task, history, this.#host.nowMs());
    const retryMs = this.#postponed.get(keyOf(database, task.TaskId))?.retryMs ?? 0;
    return found === null ? null : { ...found, atMs: Math.max(found.atMs, retryMs) };
  }

  /**
   * Stores a new definition, or replaces the one with the sent `TaskId`.
   * @returns the index of the command, and the id of the task @throws EngineError, RequestError
   */
  async put(database: Database, sent: JsonObject): Promise<{ index: number; taskId: number }> {
    const given = Number(sent["TaskId"] ?? 0);
    const replaced = Number.isSafeInteger(given) && given > 0 ? given : undefined;
    const now = new Date(this.#host.nowMs());
    const definition = periodicBackup(sent, replaced ?? 1, now);
    const folder = periodicFolder(definition);
    if (folder !== null) await checkedFolder(folder, this.#host.rules);
    const { secrets } = this.#host;
    const before = replaced === undefined ? undefined : this.find(database, replaced);
    const own = keptSecrets(sent, before, secrets.of(database.name, replaced ?? 0));
    if (hasDestination(definition)) await destinationOf(this.#host, withSecrets(definition, own));
    const index = await this.#host.nextIndex();
    let taskId = replaced ?? index;
    while (replaced === undefined && this.find(database, taskId) !== undefined) taskId++;
    await secrets.put(database.name, taskId, own);
    this.#continuous.forgetTask(database, taskId);
    await this.#change(database, index, (tasks) => {
      const previous = tasks.find(({ TaskId }) => TaskId === replaced);
      const task = periodicBackup(sent, taskId, now);
      const kept = { ...task, CreatedAt: previous?.CreatedAt ?? task.CreatedAt };
      const others = tasks.filter(({ TaskId }) => TaskId !== taskId);
      return [...others, kept];
    });
    this.#postponed.delete(keyOf(database, taskId));
    return { index, taskId };
  }

  /** Has no effect for an unknown task, as in RavenDB. @returns the index of the command */
  async setDisabled(database: Database, taskId: number, isDisabled: boolean): Promise<number> {
    const index = await this.#host.nextIndex();
    const task = this.find(database, taskId);
    if (task !== undefined)
      void periodicBackup({ ...task, Disabled: isDisabled }, taskId, new Date(0));
    await this.#change(database, index, (tasks) =>
      tasks.map((one) => (one.TaskId === taskId ? { ...one, Disabled: isDisabled } : one)),
    );
    return index;
  }

  /** Deletes a task and its status, but not its backups. @returns the index of the command */
  async delete(database: Database, taskId: number): Promise<number> {
    const index = await this.#host.nextIndex();
    await this.#change(database, index, (tasks) => tasks.filter(({ TaskId }) => TaskId !== taskId));
    await this.#host.secrets.delete(database.name, taskId);
    await database.smuggler.putBackupMark(taskId, undefined);
    this.#postponed.delete(keyOf(database, taskId));
    return index;
  }

  /** Must be called when definitions may have changed otherwise: the record was replaced, imported, or restored. */
  async recordChanged(database: Database): Promise<void> {
    const key = foldedName(database.name);
    const isWatched = this.list(database).some(({ Disabled }) => !Disabled);
    if (isWatched !== this.#watched.has(key)) {
      if (isWatched) await this.#host.values.put(prefix + key, JSON.stringify(database.name));
      else await this.#host.values.delete(prefix + key);
      if (isWatched) this.#watched.set(key, database.name);
      else this.#watched.delete(key);
    }
    if (!isWatched) this.#continuous.forget(database.name);
    this.#checkIn(0);
  }

  /**
   * Runs a task now.
   * @throws RequestError for an unknown task, or while another backup runs; EngineError invalid-operation
   */
  async runNow(
    database: Database,
    taskId: number,
    isFull: boolean,
    operationId: number | undefined,
    startedBy?: string,
  ): Promise<StartedOperation> {
    const task = this.find(database, taskId);
    if (task === undefined) {
      throw new RequestError(
        408,
        "System.TimeoutException",
        `There is no backup task with the id ${taskId}.`,
      );
    }
    if (task.Disabled) {
      throw new EngineError("invalid-operation", `Backup task id: ${taskId} is disabled`);
    }
    if (isContinuous(task)) {
      throw new EngineError(
        "invalid-operation",
        `Backup task id: ${taskId} is a continuous backup, which is always running. GET /periodic-backup/status returns its progress.`,
      );
    }
    return await this.#run(database, task, isFull, operationId, false, startedBy);
  }

  /**
   * Stops the run of a task, and makes it due again after `ms` milliseconds; until a restart of the server, if that is earlier.
   * @throws EngineError invalid-operation if it is not running
   */
  delay(database: Database, taskId: number, ms: number): void {
    const running = this.running(database, taskId);
    if (running === undefined) {
      throw new EngineError(
        "invalid-operation",
        `Fail to delay backup task with task id '${taskId}', the operation with that number isn't registered`,
      );
    }
    running.delayedUntilMs = this.#host.nowMs() + ms;
    database.operations.kill(running.operationId);
  }

  /** @throws EngineError if the destination is not usable */
  async #destination(database: Database, task: PeriodicBackup): Promise<OpenDestination> {
    const own = this.#host.secrets.of(database.name, task.TaskId);
    try {
      return await destinationOf(this.#host, withSecrets(task, own));
    } catch (error) {
      const needsKey = task.BackupEncryptionSettings !== null && own.Key === null;
      const needsSecret = task.S3Settings !== null && own.AwsSecretKey === null;
      if (!needsKey && !needsSecret) throw error;
      throw new EngineError(
        "invalid-operation",
        `The ${needsKey ? "encryption key" : "secret key for S3"} of the backup task '${task.Name}' is not known to this server, because records and backups contain no secrets. Send the definition again with the secret (POST admin/periodic-backup).`,
        { cause: error },
      );
    }
  }

  async #change(
    database: Database,
    index: number,
    change: (tasks: readonly PeriodicBackup[]) => readonly PeriodicBackup[],
  ): Promise<void> {
    await database.changeSettings((record) => ({
      ...record,
      PeriodicBackups: change(periodicBackupsOf(record)),
      ChangedIndex: index,
    }));
    await this.recordChanged(database);
  }

  /** `isDue`: started by the schedule, so failures are reported to the operator. */
  async #run(
    database: Database,
    task: PeriodicBackup,
    wantsFull: boolean,
    operationId: number | undefined,
    isDue: boolean,
    startedBy?: string,
  ): Promise<StartedOperation> {
    const { runner } = this.#host;
    const taskId = task.TaskId;
    const key = keyOf(database, taskId);
    const destination = await this.#destination(database, task);
    const { place, key: encryptionKey } = destination;
    const continued = wantsFull ? null : await this.#continued(database, taskId, destination);
    const startedMs = this.#host.nowMs();
    const isFull = continued === null;
    const plan = {
      description: `${isFull ? "Full" : "Incremental"} backup task: '${task.Name}'. Database: '${database.name}'`,
      taskName: task.Name,
      place,
      key: encryptionKey,
      startedBy,
      continued,
    };
    const ended = (id: number): EndedRun => ({
      taskId,
      nodeTag: database.nodeTag,
      operationId: id,
      startedMs,
      endedMs: this.#host.nowMs(),
      isFull,
      isEncrypted: encryptionKey !== null,
      isToS3: task.S3Settings !== null,
      changeVector: database.changeVector,
    });
    let id = operationId ?? 0;
    const finished = async (backup: FinishedBackup): Promise<void> => {
      const previous = database.smuggler.backupMark(taskId);
      // The status of a task that was deleted meanwhile is not stored.
      if (this.find(database, taskId) === undefined) return;
      await database.smuggler.putBackupMark(taskId, markAfter(previous, ended(id), backup));
      if (!isFull) return;
      // The backup succeeds even if old ones cannot be removed.
      await removeOldBackups(place, database, task, this.#host.nowMs()).catch((error: unknown) =>
        this.#host.report(`Old backups of database '${database.name}' could not be removed`, error),
      );
    };
    id = operationId ?? (await database.operations.nextId());
    const started = await runner.start(database, plan, id, finished);
    const running: RunningBackup = {
      startedMs,
      isFull,
      operationId: started.id,
      delayedUntilMs: null,
    };
    this.#running.set(key, running);
    void started.ended.then(async ({ error }) => {
      this.#running.delete(key);
      if (error === undefined) {
        const { count = 0 } = this.#postponed.get(key) ?? {};
        this.#postponed.delete(key);
        if (count > 0) {
          this.#host.report(
            `Backups of task '${task.Name}' of database '${database.name}' succeed again`,
          );
        }
      } else if (running.delayedUntilMs !== null) {
        this.#postponed.set(key, { count: 0, retryMs: running.delayedUntilMs });
      } else await this.#failed(database, ended(id), error, isDue);
      this.#checkIn(0);
    });
    return started;
  }

  /** Returns the backup that an incremental one can continue, or null. */
  async #continued(
    database: Database,
    taskId: number,
    { place, key }: OpenDestination,
  ): Promise<{ readonly place: BackupStorage; readonly etag: number } | null> {
    const mark = database.smuggler.backupMark(taskId);
    const { folderName } = historyOf(mark?.status);
    const etag = mark?.etag ?? 0;
    if (folderName === null || !database.smuggler.hasDeletionsSince(etag)) return null;
    const own = place.within(folderName);
    const files = await backupFilesIn(own);
    const last = files.at(-1);
    if (last === undefined || files.every(({ isIncremental }) => isIncremental)) return null;
    // All files of a folder must have the same key.
    if (files.some(({ isEncrypted }) => isEncrypted !== (key !== null))) return null;
    if (key !== null && !(await isEncryptedWith(key, own, last.name))) return null;
    return { place: own, etag };
  }

  /** Records a failure and the time of the next attempt. A run aborted by the closing of its database is due again after reopening. */
  async #failed(database: Database, run: EndedRun, error: unknown, isTold: boolean): Promise<void> {
    const isClosing = error instanceof EngineError && error.code === "database-stopped";
    if (isClosing || database.hasEnded) return;
    const key = keyOf(database, run.taskId);
    const count = (this.#postponed.get(key)?.count ?? 0) + 1;
    const waitMs = Math.min(retryMsMax, retryMsMin * 2 ** (count - 1));
    this.#postponed.set(key, { count, retryMs: this.#host.nowMs() + waitMs });
    const message = error instanceof Error ? error.message : String(error);
    if (isTold) this.#host.report(`A backup of database '${database.name}' failed`, error);
    if (this.find(database, run.taskId) === undefined) return;
    const previous = database.smuggler.backupMark(run.taskId);
    await database.smuggler
      .putBackupMark(run.taskId, markAfterFailure(previous, run, message))
      .catch(() => undefined); // the database is closing, or its disk is full
  }

  #checkIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed || this.#watched.size === 0) return;
    this.#timer = setTimeout(() => void this.check(), Math.min(ms, checkMsMax));
    this.#timer.unref();
  }

  /** Starts due backups one at a time. Resolves when all databases were checked. */
  check(): Promise<void> {
    this.#checking ??= this.#checkAll().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async #checkAll(): Promise<void> {
    let waitMs = checkMsMax;
    for (const name of [...this.#watched.values()]) {
      if (this.#isClosed) return;
      waitMs = Math.min(waitMs, await this.#checkDatabase(name));
    }
    this.#checkIn(waitMs);
  }

  /** @returns milliseconds until a task of the database may be due */
  async #checkDatabase(name: string): Promise<number> {
    try {
      if (this.#host.isElsewhere(name)) {
        this.#continuous.forget(name);
        return checkMsMax;
      }
      const database = this.#host.databases.has(name)
        ? await this.#host.databases.find(name)
        : undefined;
      if (database === undefined) {
        this.#watched.delete(foldedName(name));
        this.#continuous.forget(name);
        await this.#host.secrets.deleteAll(name);
        await this.#host.values.delete(prefix + foldedName(name));
        return checkMsMax;
      }
      await this.#continuous.follow(database, this.list(database));
      if (database.isDisabled) return checkMsMax;
      let waitMs = checkMsMax;
      for (const task of this.list(database)) {
        const due = this.next(database, task);
        if (due === null || this.#running.has(keyOf(database, task.TaskId))) continue;
        const leftMs = due.atMs - this.#host.nowMs();
        if (leftMs > 0) waitMs = Math.min(waitMs, leftMs);
        else if (!this.#host.runner.isBusy) await this.#runDue(database, task, due.isFull);
      }
      return waitMs;
    } catch (error) {
      this.#host.report(`The backups of database '${name}' could not be checked`, error);
      return checkMsMax;
    }
  }

  async #runDue(database: Database, task: PeriodicBackup, isFull: boolean): Promise<void> {
    try {
      await this.#run(database, task, isFull, undefined, true);
    } catch (error) {
      const nowMs = this.#host.nowMs();
      const run = {
        taskId: task.TaskId,
        nodeTag: database.nodeTag,
        operationId: 0,
        startedMs: nowMs,
        endedMs: nowMs,
        isFull,
        isEncrypted: task.BackupEncryptionSettings !== null,
        isToS3: task.S3Settings !== null,
        changeVector: database.changeVector,
      };
      await this.#failed(database, run, error, true);
    }
  }
}

function keyOf(database: Database, taskId: number): string {
  return `${foldedName(database.name)}/${taskId}`;
}
