/**
 * Opens what a server keeps: the engine with its databases, in the data folder or in memory only, and the server's
 * own values, which are in the engine's system database.
 *
 * Invariants:
 * - After `close` resolves, everything acknowledged is on the disk.
 */
import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { type Engine, EngineError, openEngine } from "../engine/engine.ts";
import type { Operations } from "../engine/operations.ts";
import type { Config } from "./config.ts";
import type { DatabaseDirectory, ValueStore } from "./services.ts";
import { StartError } from "./start-error.ts";

export interface Storage {
  readonly values: ValueStore;
  readonly databases: DatabaseDirectory;
  /** Operations of the server itself. */
  readonly operations: Operations;
  close(): Promise<void>;
}

/** @throws StartError data-folder-unusable, data-folder-locked */
export async function openStorage(config: Config): Promise<Storage> {
  if (!config.runInMemory) await prepareFolder(config.dataFolder);
  const engine = await open(config);
  return {
    values: new SystemValues(engine),
    databases: engine.databases,
    operations: engine.system.operations,
    close: () => engine.close(),
  };
}

async function open(config: Config): Promise<Engine> {
  try {
    return await openEngine({
      folder: config.runInMemory ? undefined : resolve(config.dataFolder),
    });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.code === "database-locked") {
      throw new StartError(
        "data-folder-locked",
        `${error.message} Stop that process, or set DataDir to another folder`,
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

/** The server's own values in the system database. */
class SystemValues implements ValueStore {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  get(key: string): string | undefined {
    const value = this.#engine.system.state.keyspaces.values.get(key);
    return value === undefined ? undefined : JSON.stringify(value);
  }

  put(key: string, jsonText: string): Promise<void> {
    return this.#change(key, JSON.parse(jsonText) as unknown);
  }

  delete(key: string): Promise<void> {
    return this.#change(key, undefined);
  }

  *entries(prefix: string): Iterable<[string, string]> {
    const { values } = this.#engine.system.state.keyspaces;
    for (const [key, value] of values.withPrefix(prefix)) yield [key, JSON.stringify(value)];
  }

  async #change(key: string, value: unknown): Promise<void> {
    await this.#engine.system.write((transaction) => {
      transaction.putEntry(transaction.keyspaces.values, key, value);
    });
  }
}

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
