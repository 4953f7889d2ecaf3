/** History of the prompt, in a file that only its owner can read. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import type { Variables } from "../server/settings/setting-sources.ts";

export const historyLinesMax = 500;
const lineLengthMax = 10_000;

/** Returns the path of the history file, or undefined if `JACKDAW_HISTORY` is `off`. */
export function historyPath(environment: Variables): string | undefined {
  const given = environment["JACKDAW_HISTORY"];
  if (given === "off") return undefined;
  if (given) return given;
  const state = environment["XDG_STATE_HOME"] ?? environment["LOCALAPPDATA"];
  return join(
    state || join(environment["HOME"] || homedir(), ".local", "state"),
    "jackdaw",
    "history",
  );
}

/** Returns the stored lines, oldest first; none if the file cannot be read. */
export async function readHistory(path: string | undefined): Promise<string[]> {
  if (path === undefined) return [];
  try {
    return (await readFile(path, "utf8")).split("\n").filter((line) => line !== "");
  } catch {
    return [];
  }
}

/** Appends lines to the file, which another prompt may have changed meanwhile. Write errors are ignored. */
export async function addHistory(
  path: string | undefined,
  lines: readonly string[],
): Promise<void> {
  if (path === undefined || lines.length === 0) return;
  const short = lines.filter((line) => line.length <= lineLengthMax && !/[\r\n]/.test(line));
  const kept = [...(await readHistory(path)), ...short].slice(-historyLinesMax);
  const partial = `${path}.${process.pid}.partial`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(partial, `${kept.join("\n")}\n`, { mode: 0o600 });
    await rename(partial, path);
  } catch {
    // The history is a convenience.
  }
}
