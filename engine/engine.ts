/**
 * The public surface of the engine: what an embedding program, and server/, may use. It knows nothing of HTTP.
 *
 *     const engine = await openEngine({ folder: "./data" });
 *     const database = await engine.databases.create("shop", {});
 *     const stored = await database.put("users/1", { Name: "Ann", "@metadata": { "@collection": "Users" } });
 *     // stored.changeVector is "A:1-…"
 *     await database.get("users/1");   // { Name: "Ann", "@metadata": { "@collection": "Users", "@id": "users/1", … } }
 *     await engine.close();
 */

import { systemDatabaseName } from "./base/database-name.ts";
import type { DirectoryLock, Environment, Report } from "./base/environment.ts";
import { Database, type DatabaseOptions } from "./database/database.ts";
import { DatabaseCatalog, type IdleOptions } from "./database/database-catalog.ts";
import { SystemDatabase } from "./database/system-database.ts";
import { makeDurableDirectory } from "./platform/durable-directory.ts";
import { FencedFiles } from "./platform/fenced-files.ts";
import { nodeEnvironment } from "./platform/node-environment.ts";

export interface EngineOptions {
  /** Folder of the databases; left out: all are in memory and gone when the process ends. */
  readonly folder?: string | undefined;
  /** Left out: this process's clock, random bytes and files. */
  readonly environment?: Environment;
  readonly database?: DatabaseOptions;
  /** Reports to the operator what goes wrong outside requests. */
  readonly report?: Report | undefined;
  /**
   * When idle databases are closed; left out: never. An embedding program that sets this must call `databases.find`
   * before each use.
   */
  readonly idle?: IdleOptions;
}

/** The databases of one data folder, and the durable values of the server itself. */
export interface Engine {
  readonly databases: DatabaseCatalog;
  /**
   * A database without documents, for the server's own data: certificates, identity, settings. Read this property for
   * each use: when it has stopped, it is replaced.
   */
  readonly system: Database;
  readonly environment: Environment;
  /**
   * Resolves when another process has taken the folder: nothing is written from then on, and reads may return old data.
   */
  readonly lost: Promise<Error>;
  /** Makes everything durable and releases the folder. */
  close(): Promise<void>;
}

/**
 * Opens the data folder. Its databases are opened on first use.
 * @throws EngineError database-locked when another process has it, database-damaged
 */
export async function openEngine(options: EngineOptions = {}): Promise<Engine> {
  const environment = options.environment ?? nodeEnvironment();
  const { folder } = options;
  if (folder === undefined) return await openContents(environment, null, null, options);
  await makeDurableDirectory(environment.files, folder);
  const lock = await environment.files.lockDirectory(folder);
  try {
    const files = new FencedFiles(environment.files, lock);
    return await openContents({ ...environment, files }, folder, lock, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function openContents(
  environment: Environment,
  folder: string | null,
  lock: DirectoryLock | null,
  { database, report, idle }: EngineOptions,
): Promise<Engine> {
  const options = report === undefined ? database : { ...database, report };
  const inside = (name: string): string | null => (folder === null ? null : `${folder}/${name}`);
  const system = await SystemDatabase.open(environment, inside(systemDatabaseName), options);
  try {
    const databases = await DatabaseCatalog.open(environment, inside("Databases"), options, idle);
    return {
      databases,
      get system() {
        return system.current;
      },
      environment,
      lost: new Promise((resolve) => lock?.onLost(resolve)),
      close: async () => {
        try {
          await databases.close();
        } finally {
          await system.close().finally(() => lock?.release());
        }
      },
    };
  } catch (error) {
    await system.close();
    throw error;
  }
}

export { EngineError, type ErrorCode } from "./base/errors.ts";
export { type SalvagedDatabase, salvageDatabase } from "./database/salvage-database.ts";
export { type DumpOptions, parseDumpOptions, wholeDump } from "./smuggler/dump-options.ts";
export { exportDump } from "./smuggler/export.ts";
export { importDump } from "./smuggler/import.ts";
export { SmugglerResult } from "./smuggler/smuggler-result.ts";
export type { DatabaseOptions, Environment };
export { Database, DatabaseCatalog };
