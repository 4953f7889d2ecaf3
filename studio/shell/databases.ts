/** The names of the server's databases that one may see, for the switcher, the palette, and for names that are none. */

import { get } from "../base/client.ts";
import { signal } from "../base/signal.ts";

/** Undefined: being asked for; null: the server did not tell. */
export const databaseNames = signal<readonly string[] | null | undefined>(undefined);

export async function askDatabases(): Promise<void> {
  try {
    const { body } = await get<{ Databases: readonly string[] }>("/databases?namesOnly=true");
    databaseNames.value = body.Databases;
  } catch {
    databaseNames.value ??= null;
  }
}
