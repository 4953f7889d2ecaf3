/**
 * A process that owns a folder: opens it, writes documents sequentially, and prints a line on standard output for each
 * acknowledged write. It ends when it loses the folder, or at a line on standard input.
 *
 * Arguments: the folder, and as JSON `silenceMs`, the `prefix` of ids, and simulated properties of the machine.
 */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { openFolder } from "../../engine/api/database/open-folder.ts";
import { EngineError } from "../../engine/base/errors.ts";

import { ownFacts } from "../../engine/base/platform/lock/holder-facts.ts";
import { nodeEnvironment } from "../../engine/base/platform/node-environment.ts";

export interface LockChildOptions {
  readonly silenceMs?: number;
  readonly prefix: string;
  /** Pretends to be another machine with this boot id, on a shared file system. */
  readonly bootId?: string;
  /** Milliseconds between writes. */
  readonly pauseMs?: number;
}

const [folder = "", json = ""] = process.argv.slice(2);
const options = JSON.parse(json) as LockChildOptions;
const { silenceMs, prefix, bootId, pauseMs = 5 } = options;

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

const environment = nodeEnvironment({
  silenceMs,
  ...(bootId === undefined
    ? {}
    : {
        isLocalFolder: async () => false,
        facts: async () => ({ ...(await ownFacts()), bootId, host: bootId }),
      }),
});

const startMs = performance.now();
try {
  const engine = await openFolder({ folder, environment });
  const lost = (error: Error): void => {
    say(`lost ${error.message}`);
    process.exit(22);
  };
  engine.lost.then(lost, lost);
  let isEnding = false;
  createInterface({ input: process.stdin }).on("line", () => {
    isEnding = true;
  });
  const { databases } = engine;
  const database = (await databases.find("db")) ?? (await databases.create("db", {}));
  say(`open ${Math.round(performance.now() - startMs)}`);
  for (let number = 1; !isEnding; number++) {
    await database.put(`${prefix}/${number}`, { number });
    say(`${prefix}/${number}`);
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  await engine.close();
  say("closed");
  process.exit(0);
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
  // If the folder was lost, the handler above reports it.
  if (error.code === "database-stopped") await new Promise((resolve) => setTimeout(resolve, 1000));
  say(`${error.code} ${error.message}`);
  process.exit(13);
}
