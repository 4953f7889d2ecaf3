/**
 * The package `jackdaw-db`: the engine as a library, without HTTP and certificates. Its types are in surface.ts.
 *
 *     const engine = await openEngine({ folder: "./data" });
 *     const shop = await engine.database("shop");
 *     await shop.put("users/1", { Name: "Ann" }, { collection: "Users" });
 *     await shop.get("users/1"); // { Name: "Ann", "@metadata": { "@collection": "Users", "@id": "users/1", … } }
 *     await engine.close();
 */
import {
  nodeEnvironment,
  openEngine as openStorage,
  salvageDatabase as salvage,
} from "../engine/engine.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import type { Engine, EngineOptions, SalvagedDatabase } from "./surface.ts";

/**
 * Opens the databases of a folder, or an engine in memory.
 * @throws EngineError database-locked when another process has locked the folder, database-damaged
 */
export async function openEngine(options: EngineOptions = {}): Promise<Engine> {
  const { folder, report } = options;
  return new EmbeddedEngine(await openStorage({ folder, report }));
}

/**
 * Copies all readable data of a damaged database into a new one. `source` is the folder of the database, which must
 * not be open and is not changed; `target` must be absent or an empty folder.
 * @throws EngineError database-locked, database-missing, database-exists, disk-full
 */
export function salvageDatabase(source: string, target: string): Promise<SalvagedDatabase> {
  return salvage(nodeEnvironment(), source, target);
}

export { EngineError, type ErrorCode } from "../engine/base/errors.ts";
export type * from "./surface.ts";
