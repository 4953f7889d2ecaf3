/** Export and import of RavenDB dumps as uncompressed text. */
import { type Database as OpenDatabase, parseDumpOptions } from "../engine/engine.ts";
import type { DumpOptions } from "./surface.ts";

export function exportedDump(
  { smuggler }: OpenDatabase,
  options: DumpOptions,
): AsyncGenerator<Uint8Array> {
  return smuggler.export(optionsOf(options));
}

/** Imports a dump. @throws EngineError json-invalid and others; transactions committed before the error remain */
export async function importDump(
  database: OpenDatabase,
  dump: AsyncIterable<Uint8Array>,
  options: DumpOptions,
): Promise<void> {
  // The embedding program has full rights.
  const settings = {
    mayChangeRecord: true,
    mayDeployCSharp: true,
    nextIndex: async () => Number(database.settings["ChangedIndex"] ?? 0) + 1,
  };
  await database.smuggler.import(buffers(dump), optionsOf(options), settings);
}

async function* buffers(dump: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const { buffer, byteOffset, length } of dump) {
    yield Buffer.from(buffer, byteOffset, length);
  }
}

function optionsOf({ collections = [] }: DumpOptions) {
  return parseDumpOptions({ Collections: [...collections] });
}
