/**
 * The server's own database. When it stops it is reopened from disk, like other databases; until then its state in
 * memory is still read, so that callers can be identified, and writes are refused.
 */

import { systemDatabaseName } from "../../base/database-name.ts";
import type { Environment } from "../../base/environment.ts";
import { type DatabaseOptions, OpenDatabase } from "./open-database.ts";
import { ReopenRateLimit } from "./reopen-rate-limit.ts";

/** A disk error may be transient. */
const retryMs = 60_000;

export class SystemDatabase {
  readonly #environment: Environment;
  readonly #folder: string | null;
  readonly #options: DatabaseOptions;
  readonly #reopenLimit = new ReopenRateLimit();
  #current: OpenDatabase;
  /** The last reopening; never rejects. */
  #reopening: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(
    environment: Environment,
    folder: string | null,
    options: DatabaseOptions,
    current: OpenDatabase,
  ) {
    this.#environment = environment;
    this.#folder = folder;
    this.#options = options;
    this.#current = current;
    this.#keep(current);
  }

  /** @throws EngineError database-damaged, database-locked */
  static async open(
    environment: Environment,
    folder: string | null,
    options: DatabaseOptions = {},
  ): Promise<SystemDatabase> {
    const current = await OpenDatabase.open(environment, systemDatabaseName, folder, options);
    return new SystemDatabase(environment, folder, options, current);
  }

  get current(): OpenDatabase {
    return this.#current;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#reopening;
    await this.#current.close();
  }

  #keep(database: OpenDatabase): void {
    this.#current = database;
    database.whenStopped = (error) => {
      this.#reopening = this.#reopening.then(() => this.#reopen(error));
    };
  }

  async #reopen(cause: Error): Promise<void> {
    const report = this.#options.report ?? (() => undefined);
    const { clock } = this.#environment;
    report("The server's own database has stopped", cause, "database-stopped");
    if (this.#isClosed || this.#folder === null) return;
    const waitMs = this.#reopenLimit.waitMs(clock.monotonicMs());
    if (waitMs > 0) {
      report("It has stopped too often within an hour: it takes no writes until later");
      this.#retryIn(waitMs, cause);
      return;
    }
    this.#reopenLimit.note(clock.monotonicMs());
    try {
      await this.#current.abandon();
      const options = { ...this.#options, log: { ...this.#options.log, mustExist: true } };
      this.#keep(
        await OpenDatabase.open(this.#environment, systemDatabaseName, this.#folder, options),
      );
      report("The server's own database is open again", undefined, "database-reopened");
    } catch (error) {
      report("The server's own database could not be opened again", error);
      this.#retryIn(retryMs, cause);
    }
  }

  /** Unlike other databases it is not opened on request, so it retries on a timer. */
  #retryIn(ms: number, cause: Error): void {
    this.#environment.clock.setTimer(ms, () => {
      this.#reopening = this.#reopening.then(() => this.#reopen(cause));
    });
  }
}
