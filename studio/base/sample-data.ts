/** Creates databases, and imports the sample data. */
import { send } from "./client.ts";

export async function createDatabase(name: string): Promise<void> {
  await send("PUT", `/admin/databases?name=${encodeURIComponent(name)}`, {
    json: { DatabaseName: name },
  });
}

/** Imports the sample data into an empty database. */
export async function putSampleData(database: string): Promise<void> {
  await send("POST", `/databases/${encodeURIComponent(database)}/studio/sample-data`);
}
