/**
 * The server's own durable values in one small file, replaced as a whole at each change. In memory only when no file is given.
 *
 * Invariants:
 * - The file is always the state before or after a change, never between: it is written beside, synced and renamed.
 * - Changes are written one after the other; what comes while one is being written goes into the next together.
 */
import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { ValueStore } from "./services.ts";
import { StartError } from "./start-error.ts";

export class FileValueStore implements ValueStore {
  private readonly path: string | undefined;
  private readonly durable: Map<string, string>;
  private writing: Promise<void>;
  /** Changes that wait for the running write: key -> text, null to delete. */
  private waiting: Map<string, string | null> | undefined;
  private nextWrite: Promise<void>;

  private constructor(path: string | undefined, values: Map<string, string>) {
    this.path = path;
    this.durable = values;
    this.writing = Promise.resolve();
    this.waiting = undefined;
    this.nextWrite = this.writing;
  }

  /** Opens `path`, whose folder exists; undefined keeps everything in memory. @throws StartError data-folder-unusable */
  static async open(path: string | undefined): Promise<FileValueStore> {
    if (path === undefined) return new FileValueStore(undefined, new Map());
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT") throw error;
      return new FileValueStore(path, new Map());
    }
    try {
      const values = JSON.parse(text) as Record<string, string>;
      return new FileValueStore(path, new Map(Object.entries(values)));
    } catch (error) {
      throw new StartError(
        "data-folder-unusable",
        `${path} is damaged (${(error as Error).message}); restore it, or move it away to start without registered certificates`,
        { cause: error },
      );
    }
  }

  get(key: string): string | undefined {
    return this.durable.get(key);
  }

  put(key: string, jsonText: string): Promise<void> {
    return this.change(key, jsonText);
  }

  delete(key: string): Promise<void> {
    return this.change(key, null);
  }

  *entries(prefix: string): Iterable<[string, string]> {
    const keys = [...this.durable.keys()].filter((key) => key.startsWith(prefix)).sort();
    for (const key of keys) yield [key, this.durable.get(key) as string];
  }

  /** Resolves when no change is being written any more. */
  settled(): Promise<void> {
    return this.writing;
  }

  private change(key: string, text: string | null): Promise<void> {
    if (this.waiting === undefined) {
      const batch = new Map<string, string | null>();
      this.waiting = batch;
      this.nextWrite = this.writing.then(() => {
        this.waiting = undefined;
        return this.write(batch);
      });
      // One failed change does not stop the next.
      this.writing = this.nextWrite.catch(() => undefined);
    }
    this.waiting.set(key, text);
    return this.nextWrite;
  }

  private async write(batch: ReadonlyMap<string, string | null>): Promise<void> {
    const values = new Map(this.durable);
    for (const [key, text] of batch) {
      if (text === null) values.delete(key);
      else values.set(key, text);
    }
    if (this.path !== undefined) await replaceFile(this.path, values);
    for (const [key, text] of batch) {
      if (text === null) this.durable.delete(key);
      else this.durable.set(key, text);
    }
  }
}

async function replaceFile(path: string, values: ReadonlyMap<string, string>): Promise<void> {
  const partial = `${path}.partial`;
  const file = await open(partial, "w", 0o600);
  try {
    await file.writeFile(JSON.stringify(Object.fromEntries(values), null, 1));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, path);
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
