/** Queries stored in this browser: recent queries, saved queries, and long texts by their hash. */

export interface PastQuery {
  readonly text: string;
  readonly values: Readonly<Record<string, string>>;
  readonly atMs: number;
  readonly ms: number;
  readonly total: number;
}

export interface SavedQuery {
  readonly name: string;
  readonly text: string;
  readonly values: Readonly<Record<string, string>>;
}

const historyMax = 200;
const savedMax = 200;
/** Maximum length of a text in an address, in characters. */
const addressLengthMax = 2000;
/** Maximum length of a query in the history, in characters. */
const keptLengthMax = 50_000;

const keyOf = (kind: "history" | "saved", database: string) => `jackdaw-query-${kind}-${database}`;
const textKey = (hash: string) => `jackdaw-query-text-${hash}`;

function read<T>(key: string): readonly T[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(found) ? (found as T[]) : [];
  } catch {
    return [];
  }
}

/** Stores a value; ignored if the browser's storage is full. */
function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    localStorage.removeItem(key);
  }
}

/** Returns recent queries, newest first. */
export function history(database: string): readonly PastQuery[] {
  return read(keyOf("history", database));
}

export function remember(database: string, query: PastQuery): void {
  if (query.text.length > keptLengthMax) return;
  const isSame = (one: PastQuery) =>
    one.text === query.text && JSON.stringify(one.values) === JSON.stringify(query.values);
  const others = history(database).filter((one) => !isSame(one));
  write(keyOf("history", database), JSON.stringify([query, ...others].slice(0, historyMax)));
}

export function forgetHistory(database: string): void {
  localStorage.removeItem(keyOf("history", database));
}

/** Returns saved queries by name. */
export function savedQueries(database: string): readonly SavedQuery[] {
  return read(keyOf("saved", database));
}

/** Saves a query, replacing one of the same name. */
export function save(database: string, query: SavedQuery): void {
  const others = savedQueries(database).filter(({ name }) => name !== query.name);
  const all = [...others, query].sort((a, b) => a.name.localeCompare(b.name));
  write(keyOf("saved", database), JSON.stringify(all.slice(0, savedMax)));
}

export function forgetSaved(database: string, name: string): void {
  const others = savedQueries(database).filter((one) => one.name !== name);
  write(keyOf("saved", database), JSON.stringify(others));
}

/** Returns the text for an address; a text that is too long is stored here and replaced by its hash. */
export function addressText(text: string): string {
  if (text.length <= addressLengthMax) return text;
  const hash = hashOf(text);
  write(textKey(hash), text);
  return `@${hash}`;
}

/** Inverse of `addressText`; null if the text is stored in another browser. */
export function textOfAddress(given: string): string | null {
  return /^@[0-9a-z]{1,14}$/.test(given) ? localStorage.getItem(textKey(given.slice(1))) : given;
}

/** Returns a 53-bit FNV-like hash, sufficient for the texts of one browser. */
function hashOf(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36);
}
