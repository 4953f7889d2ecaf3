/** The current database, or the last one visited on pages of the server. */

import { signal } from "@preact/signals";
import { address } from "../base/router.ts";

const key = "jackdaw-database";

export const database = signal<string | null>(sessionStorage.getItem(key));

address.subscribe(({ path: [area, name] }) => {
  if (area !== "db" || name === undefined) return;
  database.value = name;
  sessionStorage.setItem(key, name);
});

/** Called when the database no longer exists. */
export function forgetDatabase(name: string): void {
  if (database.peek() !== name) return;
  database.value = null;
  sessionStorage.removeItem(key);
}
