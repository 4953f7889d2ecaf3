/** `jackdaw salvage`: copies the readable data of a damaged database into a new folder, without a server. */
import { resolve } from "node:path";
import { EngineError, nodeEnvironment, salvageDatabase } from "../../engine/engine.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";

export async function run({ arguments: given, options, print }: CommandContext): Promise<void> {
  const [source = "", target = ""] = given;
  try {
    const found = await salvageDatabase(nodeEnvironment(), resolve(source), resolve(target));
    if (options.is("json")) {
      print(JSON.stringify(found));
      return;
    }
    const { documents, revisions, entries, losses, orphans, lostContents } = found;
    print(`${documents} documents, ${revisions} revisions, ${entries} other entries`);
    for (const { file, offset, length, reason } of losses) {
      print(`lost: ${file}, ${length} bytes at offset ${offset}: ${reason}`);
    }
    for (const name of orphans) print(`document lost: ${name}`);
    for (const name of lostContents) print(`attachment content lost: ${name}`);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { code, message } = error;
    if (code === "database-locked") {
      const what = `${message.replace(/\.$/, "")}; stop the server first, or salvage a copy`;
      throw new Failure("conflict", what, { cause: error });
    }
    const kind = code === "database-missing" ? "missing" : "failed";
    throw new Failure(kind, message, { cause: error });
  }
}
