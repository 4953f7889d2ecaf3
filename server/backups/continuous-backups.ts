/** The continuous backups of all databases: started and stopped as databases and their tasks are opened, changed, and closed. */
import { foldedName } from "../../engine/base/case-folding.ts";
import type { Report } from "../../engine/base/environment.ts";
import type { Database } from "../../engine/engine.ts";
import { isContinuous, type PeriodicBackup } from "./backup-configuration.ts";
import type { OpenDestination } from "./backup-destination.ts";
import { ContinuousBackup } from "./continuous-backup.ts";

/** The dependencies of continuous backups. */
interface ContinuousBackupsHost {
  readonly report: Report;
  /** Opens the destination of a task. @throws EngineError if it is not usable */
  destination(database: Database, task: PeriodicBackup): Promise<OpenDestination>;
  nowMs(): number;
  /** A database must be found again. */
  lookSoon(): void;
}

export class ContinuousBackups {
  readonly #host: ContinuousBackupsHost;
  readonly #running = new Map<string, ContinuousBackup>();
  /** Reasons why tasks cannot run. */
  readonly #refused = new Map<string, string>();
  #isClosed = false;

  constructor(host: ContinuousBackupsHost) {
    this.#host = host;
  }

  /** Returns the running backup of a task. */
  find(database: Database, taskId: number): ContinuousBackup | undefined {
    return this.#running.get(keyOf(database.name, taskId));
  }

  /** Returns the reason why the task cannot run, or undefined. */
  refusal(database: Database, taskId: number): string | undefined {
    return this.#refused.get(keyOf(database.name, taskId));
  }

  /** Starts and stops backups according to the tasks of an open database. */
  async follow(database: Database, tasks: readonly PeriodicBackup[]): Promise<void> {
    const wanted = new Map(
      tasks
        .filter((task) => !task.Disabled && isContinuous(task) && !database.isDisabled)
        .map((task) => [keyOf(database.name, task.TaskId), task]),
    );
    for (const [key, running] of this.#running) {
      if (running.database.name !== database.name) continue;
      const task = wanted.get(key);
      const isSame =
        running.database === database && JSON.stringify(task) === JSON.stringify(running.task);
      if (isSame) wanted.delete(key);
      else this.#end(key, running);
    }
    const begun: ContinuousBackup[] = [];
    for (const [key, task] of wanted) {
      const destination = await this.#destination(key, database, task);
      if (this.#isClosed) return;
      if (destination === null) continue;
      const backup = new ContinuousBackup(
        { ...this.#host, nowMs: () => this.#host.nowMs(), ended: () => this.#ended(key) },
        database,
        task,
        destination,
      );
      this.#running.set(key, backup);
      begun.push(backup);
    }
    if (begun.length === 0) return;
    void Promise.all(begun.map(({ resumed }) => resumed)).then(() => database.shipping.resumed());
  }

  /** Stops the backup of a task. It restarts at the next check of the databases. */
  forgetTask(database: Database, taskId: number): void {
    const key = keyOf(database.name, taskId);
    const running = this.#running.get(key);
    if (running !== undefined) this.#end(key, running);
  }

  /** Returns null if the destination is not usable, which is logged. */
  async #destination(
    key: string,
    database: Database,
    task: PeriodicBackup,
  ): Promise<OpenDestination | null> {
    try {
      const found = await this.#host.destination(database, task);
      this.#refused.delete(key);
      return found;
    } catch (error) {
      const { message } = error as Error;
      if (this.#refused.get(key) !== message) {
        this.#host.report(
          `The continuous backup '${task.Name}' of database '${database.name}' cannot run`,
          error,
        );
      }
      this.#refused.set(key, message);
      return null;
    }
  }

  /** Stops the backups of a closed or deleted database. */
  forget(name: string): void {
    for (const [key, running] of this.#running) {
      if (foldedName(running.database.name) === foldedName(name)) this.#end(key, running);
    }
  }

  /** Writes the last commits, and stops all backups. Called after the last write, before databases are closed. */
  async finish(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#running.values()].map((running) => running.finish()));
    this.#running.clear();
  }

  #end(key: string, running: ContinuousBackup): void {
    running.close();
    this.#running.delete(key);
  }

  #ended(key: string): void {
    this.#running.delete(key);
    this.#host.lookSoon();
  }
}

function keyOf(name: string, taskId: number): string {
  return `${foldedName(name)}/${taskId}`;
}
