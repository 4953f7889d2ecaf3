/** Queries that this browser remembers: those that ran, those that were saved under a name, and long ones by their hash. */

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
/** Characters of a text that an address may have. */
export const addressLengthMax = 2000;
/** Longer ones are not kept in the history. */
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

/** What does not fit into the browser's store is forgotten. */
function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    localStorage.removeItem(key);
  }
}

/** The newest first. */
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

/** By name. */
export function savedQueries(database: string): readonly SavedQuery[] {
  return read(keyOf("saved", database));
}

/** Takes the place of one of the same name. */
export function save(database: string, query: SavedQuery): void {
  const others = savedQueries(database).filter(({ name }) => name !== query.name);
  const all = [...others, query].sort((a, b) => a.name.localeCompare(b.name));
  write(keyOf("saved", database), JSON.stringify(all.slice(0, savedMax)));
}

export function forgetSaved(database: string, name: string): void {
  const others = savedQueries(database).filter((one) => one.name !== name);
  write(keyOf("saved", database), JSON.stringify(others));
}

/** The text of an address; one that is too long for it is kept here, and the address has its hash. */
export function addressText(text: string): string {
  if (text.length <= addressLengthMax) return text;
  const hash = hashOf(text);
  write(textKey(hash), text);
  return `@${hash}`;
}

/** The reverse; null: another browser has it. */
export function textOfAddress(given: string): string | null {
  return /^@[0-9a-z]{1,14}$/.test(given) ? localStorage.getItem(textKey(given.slice(1))) : given;
}

/** 53 bits of it, FNV-like: names a text among the few of one browser. */
function hashOf(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36);
}
