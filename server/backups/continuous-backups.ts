/** The continuous backups of all databases: begun, ended and found again as databases and their tasks come and go. */
import type { FileSystem, Report } from "../../engine/base/environment.ts";
import type { Database } from "../../engine/engine.ts";
import { isContinuous, type PeriodicBackup, periodicFolder } from "./backup-configuration.ts";
import { checkedFolder, type FolderRules } from "./backup-folder.ts";
import { ContinuousBackup } from "./continuous-backup.ts";

/** What they need of the server. */
export interface ContinuousBackupsHost {
  readonly files: FileSystem;
  readonly rules: FolderRules;
  readonly report: Report;
  nowMs(): number;
  /** A database has to be found again. */
  lookSoon(): void;
}

export class ContinuousBackups {
  readonly #host: ContinuousBackupsHost;
  readonly #running = new Map<string, ContinuousBackup>();
  #isClosed = false;

  constructor(host: ContinuousBackupsHost) {
    this.#host = host;
  }

  /** The one of a task, while it runs. */
  find(database: Database, taskId: number): ContinuousBackup | undefined {
    return this.#running.get(keyOf(database.name, taskId));
  }

  /** Lets those run that the tasks of an open database want, and no others. */
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
      const path = await checkedFolder(periodicFolder(task) ?? "", this.#host.rules);
      if (this.#isClosed) return;
      const backup = new ContinuousBackup(
        { ...this.#host, nowMs: () => this.#host.nowMs(), ended: () => this.#ended(key) },
        database,
        task,
        path,
      );
      this.#running.set(key, backup);
      begun.push(backup);
    }
    if (begun.length === 0) return;
    void Promise.all(begun.map(({ resumed }) => resumed)).then(() => database.shipping.resumed());
  }

  /** The database is there no longer. */
  forget(name: string): void {
    for (const [key, running] of this.#running) {
      if (running.database.name.toLowerCase() === name.toLowerCase()) this.#end(key, running);
    }
  }

  /** Writes what was committed last, and ends all. After the last write, before databases are closed. */
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
  return `${name.toLowerCase()}/${taskId}`;
}
