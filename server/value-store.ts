/** Durable values of the server itself (certificates, settings): text by key. Few and small. */
export interface ValueStore {
  get(key: string): string | undefined;
  /** Resolves when the value is on the disk; `get` sees it at the latest then. */
  put(key: string, jsonText: string): Promise<void>;
  delete(key: string): Promise<void>;
  /** All whose key begins with `prefix`, in the order of keys. */
  entries(prefix: string): Iterable<[string, string]>;
}
