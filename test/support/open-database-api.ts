/** Databases in memory through the engine's public API. */
import { type Database, type Engine, openEngine } from "../../engine/engine.ts";

const engines: Engine[] = [];

/** Closes the databases of the test. For afterEach. */
export async function closeDatabaseApis(): Promise<void> {
  for (const engine of engines.splice(0)) await engine.close();
}

export async function openDatabaseApi(settings: Record<string, unknown> = {}): Promise<Database> {
  const engine = await openEngine();
  engines.push(engine);
  return await engine.databases.create("db", settings);
}

/** Stores a document. @returns its change vector */
export async function putText(
  { documents }: Database,
  id: string,
  body: object,
  collection = "Users",
): Promise<string> {
  const text = { ...body, "@metadata": { "@collection": collection } };
  return (await documents.put(id, Buffer.from(JSON.stringify(text)))).changeVector;
}
