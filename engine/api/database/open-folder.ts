/** Opens a data folder, or databases in memory: its lock, its catalog, and the database of the server itself. */

import { systemDatabaseName } from "../../base/database-name.ts";
import type { DirectoryLock, Environment, Report } from "../../base/environment.ts";
import { makeDurableDirectory } from "../../base/platform/durable-directory.ts";
import { FencedFiles } from "../../base/platform/fenced-files.ts";
import { nodeEnvironment } from "../../base/platform/node-environment.ts";
import { DatabaseCatalog, type IdleOptions } from "./database-catalog.ts";
import { DatabaseReplication, type ReplicationOptions } from "./database-replication.ts";
import type { DatabaseOptions, OpenDatabase } from "./open-database.ts";
import { SystemDatabase } from "./system-database.ts";

export interface FolderOptions {
  /** Folder of the databases; left out: all are in memory and gone when the process ends. */
  readonly folder?: string | undefined;
  /** Left out: this process's clock, random bytes and files. */
  readonly environment?: Environment;
  readonly database?: DatabaseOptions;
  /** Reports errors outside requests to the operator. */
  readonly report?: Report | undefined;
  /**
   * When idle databases are closed; left out: never. An embedding program that sets this must call `databases.find`
   * before each use.
   */
  readonly idle?: IdleOptions;
  /** Left out: every database has one copy only. */
  readonly replication?: FolderReplication | undefined;
}

/** Determines which databases are copies of those of other nodes. Called at each opening of a database. */
export interface FolderReplication {
  /** Null: there is only one copy. */
  of(name: string): ReplicationOptions | null;
  /** Of the database that all nodes of the cluster share: its own values. */
  readonly cluster: ReplicationOptions;
}

/** The databases of one data folder, and the durable values of the server itself. */
export interface OpenFolder {
  readonly databases: DatabaseCatalog;
  /**
   * A database without documents, for the server's own data: certificates, identity, settings. Read this property for
   * each use: when it has stopped, it is replaced.
   */
  readonly system: OpenDatabase;
  /** The database of the cluster's values, and nothing else; null: there is no cluster. It is opened on first use. */
  readonly cluster: DatabaseCatalog | null;
  readonly environment: Environment;
  /**
   * Resolves when another process has acquired the folder: nothing is written from then on, and reads may return old
   * data.
   */
  readonly lost: Promise<Error>;
  /** Makes everything durable and releases the folder. */
  close(): Promise<void>;
}

/**
 * Opens the data folder. Its databases are opened on first use.
 * @throws EngineError database-locked when another process has it, database-damaged
 */
export async function openFolder(options: FolderOptions = {}): Promise<OpenFolder> {
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
  { database, report, idle, replication }: FolderOptions,
): Promise<OpenFolder> {
  const options = report === undefined ? database : { ...database, report };
  const inside = (name: string): string | null => (folder === null ? null : `${folder}/${name}`);
  const replicated = (of: (name: string) => ReplicationOptions | null): DatabaseOptions => ({
    ...options,
    replicate: (name) => {
      const found = of(name);
      if (found === null) return null;
      return new DatabaseReplication(found, { ...environment, report: report ?? ignore });
    },
  });
  const system = await SystemDatabase.open(environment, inside(systemDatabaseName), options);
  const catalogs: DatabaseCatalog[] = [];
  const close = async () => {
    try {
      for (const catalog of catalogs) await catalog.close();
    } finally {
      await system.close();
    }
  };
  try {
    const own = replication === undefined ? options : replicated((name) => replication.of(name));
    const databases = await DatabaseCatalog.open(environment, inside("Databases"), own, idle);
    catalogs.push(databases);
    let cluster: DatabaseCatalog | null = null;
    if (replication !== undefined) {
      const shared = replicated(() => replication.cluster);
      cluster = await DatabaseCatalog.open(environment, inside("Cluster"), shared);
      catalogs.push(cluster);
    }
    return {
      databases,
      get system() {
        return system.current;
      },
      cluster,
      environment,
      lost: new Promise((resolve) => lock?.onLost(resolve)),
      close: () => close().finally(() => lock?.release()),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function ignore(): void {}
