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
import { Database, type DatabaseOptions } from "./database.ts";
import { DatabaseCatalog, type IdleOptions } from "./database-catalog.ts";
import { systemDatabaseName } from "./database-name.ts";
import { makeDurableDirectory } from "./durable-directory.ts";
import type { DirectoryLock, Environment, Report } from "./environment.ts";
import { FencedFiles } from "./fenced-files.ts";
import { nodeEnvironment } from "./node-environment.ts";
import { SystemDatabase } from "./system-database.ts";

export interface EngineOptions {
  /** Where databases are kept; left out: all are in memory and gone when the process ends. */
  readonly folder?: string | undefined;
  /** The outside world; left out: this process's. */
  readonly environment?: Environment;
  readonly database?: DatabaseOptions;
  /** Where the operator is told of what goes wrong beside requests. */
  readonly report?: Report | undefined;
  /**
   * When databases that nobody uses are closed; left out: never. Who embeds the engine and asks for this calls
   * `databases.find` anew for each use.
   */
  readonly idle?: IdleOptions;
}

/** The databases of one data folder, and the durable values of the server itself. */
export interface Engine {
  readonly databases: DatabaseCatalog;
  /**
   * A database without documents, for what belongs to the server: certificates, its identity, its settings. Ask for it each
   * time: when it has stopped, another one takes its place.
   */
  readonly system: Database;
  readonly environment: Environment;
  /** Resolves when another process has taken the folder: nothing is written any more, and what is read may be old. */
  readonly lost: Promise<Error>;
  /** Makes everything durable and lets go of the folder. */
  close(): Promise<void>;
}

/**
 * Opens the data folder. Databases in it are opened when they are first used.
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

export { EngineError, type ErrorCode } from "./errors.ts";
export { type SalvagedDatabase, salvageDatabase } from "./salvage-database.ts";
export { type DumpOptions, parseDumpOptions, wholeDump } from "./smuggler/dump-options.ts";
export { exportDump } from "./smuggler/export.ts";
export { importDump } from "./smuggler/import.ts";
export { SmugglerResult } from "./smuggler/smuggler-result.ts";
export type { DatabaseOptions, Environment };
export { Database, DatabaseCatalog };
