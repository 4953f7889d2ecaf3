/**
 * Opens what a server keeps: its own values and the databases, in the data folder or in memory only.
 *
 * Invariants:
 * - After `close` resolves, everything acknowledged is on the disk.
 */
import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "./config.ts";
import { FileValueStore } from "./file-value-store.ts";
import type { DatabaseDirectory, ValueStore } from "./services.ts";
import { StartError } from "./start-error.ts";

export interface Storage {
  readonly values: ValueStore;
  readonly databases: DatabaseDirectory;
  close(): Promise<void>;
}

/** @throws StartError data-folder-unusable, data-folder-locked */
export async function openStorage(config: Config): Promise<Storage> {
  if (!config.runInMemory) await prepareFolder(config.dataFolder);
  const path = config.runInMemory ? undefined : join(config.dataFolder, "server.json");
  const values = await FileValueStore.open(path);
  return { values, databases: noDatabases, close: () => values.settled() };
}

const noDatabases: DatabaseDirectory = { find: () => undefined, names: () => [] };

async function prepareFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK | constants.X_OK | constants.R_OK);
  } catch (error) {
    throw new StartError(
      "data-folder-unusable",
      `The data folder ${folder} cannot be written (${(error as Error).message}); ` +
        "check its owner and mode, or set DataDir to another",
      { cause: error },
    );
  }
}
