/** RavenDB's dumps of a database inside a program, as plain text. */
import { type Database as OpenDatabase, parseDumpOptions } from "../engine/engine.ts";
import type { DumpOptions } from "./surface.ts";

export function exportedDump(
  { smuggler }: OpenDatabase,
  options: DumpOptions,
): AsyncGenerator<Uint8Array> {
  return smuggler.export(optionsOf(options));
}

/** @throws EngineError json-invalid and others; the transactions before that are kept */
export async function importDump(
  database: OpenDatabase,
  dump: AsyncIterable<Uint8Array>,
  options: DumpOptions,
): Promise<void> {
  // The program could do all of this by itself.
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
