/** Making a database, and filling one with the sample shop. */
import { send } from "./client.ts";

export async function makeDatabase(name: string): Promise<void> {
  await send("PUT", `/admin/databases?name=${encodeURIComponent(name)}`, {
    json: { DatabaseName: name },
  });
}

/** The database must be empty. */
export async function putSampleData(database: string): Promise<void> {
  await send("POST", `/databases/${encodeURIComponent(database)}/studio/sample-data`);
}
