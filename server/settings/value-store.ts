/** Durable values of the server itself (certificates, settings): text by key. Few and small. */
import type { DiskWrite, LogFigures } from "../../engine/engine.ts";

export interface ValueStore {
  get(key: string): string | undefined;
  /** Resolves when the value is on disk; `get` returns it then at the latest. */
  put(key: string, jsonText: string): Promise<void>;
  delete(key: string): Promise<void>;
  /** All entries whose key starts with `prefix`, in key order. */
  entries(prefix: string): Iterable<[string, string]>;
  /** As for a database. */
  diskWrites(after: number): DiskWrite[];
  logFigures(): LogFigures;
}
