/**
 * Opens the server's storage: the engine with its databases, in the data folder or in memory only, and the server's own
 * values, which are stored in the engine's system database.
 *
 * Invariants:
 * - After `close` resolves, everything acknowledged is on disk.
 */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Report } from "../../engine/base/environment.ts";
import { processMemory } from "../../engine/base/memory/memory-budget.ts";
import {
  type Databases,
  type DiskWrite,
  type Engine,
  EngineError,
  type FolderReplication,
  type LogFigures,
  makeFolders,
  nodeEnvironment,
  type Operations,
  openEngine,
  type SharedValues,
  type SystemValues,
} from "../../engine/engine.ts";
import type { Config } from "../settings/config.ts";
import { StartError } from "../settings/start-error.ts";
import type { ValueStore } from "../settings/value-store.ts";

export interface Storage {
  readonly values: ValueStore;
  readonly databases: Databases;
  /** Values that all nodes of the cluster share, or null on a single node. */
  readonly shared: SharedValues | null;
  /** The server's own operations. */
  readonly operations: Operations;
  /** Resolves when another process has taken the data folder. Nothing is written to it after that. */
  readonly lost: Promise<Error>;
  /** Receives errors that belong to no request. */
  readonly report: Report;
  close(): Promise<void>;
}

/**
 * @param report receives errors that belong to no request
 * @param replication undefined for a single node
 * @throws StartError data-folder-unusable, data-folder-locked, data-folder-read-only, data-folder-parent
 */
export async function openStorage(
  config: Config,
  report?: Report,
  replication?: FolderReplication,
): Promise<Storage> {
  if (config.memoryBytesMax !== undefined) processMemory.bytesMax = config.memoryBytesMax;
  if (!config.runInMemory) await prepareFolder(config.dataFolder);
  const engine = await open(config, report, replication);
  return {
    values: new TextValues(engine.values),
    databases: engine.databases,
    shared: engine.shared,
    get operations() {
      return engine.operations;
    },
    lost: engine.lost,
    report: report ?? (() => undefined),
    close: () => engine.close(),
  };
}

async function open(
  config: Config,
  report: Report | undefined,
  replication: FolderReplication | undefined,
): Promise<Engine> {
  try {
    return await openEngine({
      folder: config.runInMemory ? undefined : resolve(config.dataFolder),
      environment: nodeEnvironment({ silenceMs: config.folderSilenceMs }),
      report,
      replication,
      idle: { idleMs: config.databaseIdleMs, checkMs: config.databaseIdleCheckMs },
      database: {
        nodeTag: config.nodeTag,
        maintenance: { tombstoneCleanupIntervalMs: config.tombstoneCleanupIntervalMs },
      },
    });
  } catch (error) {
    const cause = causeOf(error);
    if (!(error instanceof EngineError) || cause !== undefined) {
      throw folderError(config.dataFolder, cause ?? error);
    }
    if (error.code === "database-locked") {
      throw new StartError(
        "data-folder-locked",
        `The data folder ${error.message} Stop that process, or set DataDir to another folder`,
        { cause: error },
      );
    }
    throw new StartError(
      "data-folder-unusable",
      `The data folder ${config.dataFolder} cannot be opened: ${error.message}`,
      { cause: error },
    );
  }
}

/** The server's own values as text. */
class TextValues implements ValueStore {
  readonly #values: SystemValues;

  constructor(values: SystemValues) {
    this.#values = values;
  }

  get(key: string): string | undefined {
    const value = this.#values.get(key);
    return value === undefined ? undefined : JSON.stringify(value);
  }

  put(key: string, jsonText: string): Promise<void> {
    return this.#values.put(key, JSON.parse(jsonText) as unknown);
  }

  delete(key: string): Promise<void> {
    return this.#values.delete(key);
  }

  *entries(prefix: string): Iterable<[string, string]> {
    for (const [key, value] of this.#values.entries(prefix)) yield [key, JSON.stringify(value)];
  }

  diskWrites(after: number): DiskWrite[] {
    return this.#values.diskWrites(after);
  }

  logFigures(): LogFigures {
    return this.#values.logFigures();
  }
}

/** Creates the folder if needed, and checks that it is usable, before anything is written. */
async function prepareFolder(folder: string): Promise<void> {
  try {
    await makeFolders(resolve(folder));
  } catch (error) {
    throw await parentError(folder, error);
  }
  try {
    await access(folder, constants.W_OK | constants.X_OK | constants.R_OK);
  } catch (error) {
    throw folderError(folder, error);
  }
}

/** Returns the reason why a missing folder could not be created. */
async function parentError(folder: string, cause: unknown): Promise<unknown> {
  const path = resolve(folder);
  let parent = dirname(path);
  while (parent !== dirname(parent) && !(await isThere(parent))) parent = dirname(parent);
  if (await isThere(path)) return folderError(folder, cause);
  const { code } = cause as NodeJS.ErrnoException;
  const isFolder = (await stat(parent)).isDirectory();
  if (isFolder && (await isClosed(parent))) {
    return new StartError(
      "data-folder-parent",
      `The data folder ${folder} is not accessible: this user may not enter ${parent} (${code}); grant access, or set DataDir to another`,
      { cause },
    );
  }
  const why = isFolder
    ? `nothing can be created in ${parent} (${code})`
    : `${parent} is not a folder`;
  return new StartError(
    "data-folder-parent",
    `The data folder ${folder} does not exist and cannot be created: ${why}; create it, or set DataDir to another`,
    { cause },
  );
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

/** Returns whether this user may not list the folder. */
async function isClosed(folder: string): Promise<boolean> {
  return await access(folder, constants.X_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "EACCES",
  );
}

/** Returns the error of the system that stopped a database while it was opened, or undefined. */
function causeOf(error: unknown): unknown {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  return systemCodes.has(code) && typeof cause?.code === "string" ? cause : undefined;
}

/** Codes of errors that a file system error may have caused. */
const systemCodes: ReadonlySet<unknown> = new Set([
  "database-stopped",
  "read-failed",
  "storage-failed",
]);

/** Remedies for errors of the system, which replace the general advice. */
const remedies: Readonly<Record<string, string>> = {
  EEXIST: "it is a file: move it away",
  EMFILE: "let this process open more files (ulimit -n, LimitNOFILE)",
  ENFILE: "let this machine open more files (fs.file-max)",
  ENOSPC: "free space on its disk",
  EDQUOT: "raise the disk quota of this user",
};

const readOnlyCodes: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM", "EROFS"]);

/** The start error for a file system error on the folder or something in it. */
function folderError(folder: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  const isReadOnly = readOnlyCodes.has(code);
  return new StartError(
    isReadOnly ? "data-folder-read-only" : "data-folder-unusable",
    `The data folder ${folder} cannot be ${isReadOnly ? "written" : "used"} (${message}); ` +
      `${isReadOnly ? "check its owner and mode" : (remedies[code] ?? "check its content")}, or set DataDir to another`,
    { cause: error },
  );
}
