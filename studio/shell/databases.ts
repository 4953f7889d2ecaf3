/** Names of the visible databases, for the switcher, the palette, and suggestions. */

import { signal } from "@preact/signals";
import { get } from "../base/client.ts";

/** Undefined while loading; null if the server returned an error. */
export const databaseNames = signal<readonly string[] | null | undefined>(undefined);

export async function loadDatabases(): Promise<void> {
  try {
    const { body } = await get<{ Databases: readonly string[] }>("/databases?namesOnly=true");
    databaseNames.value = body.Databases;
  } catch {
    databaseNames.value ??= null;
  }
}
