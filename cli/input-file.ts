/** Files that a command reads. */
import { readFile, stat } from "node:fs/promises";
import { getSystemErrorMap } from "node:util";
import { Failure } from "./failure.ts";

/** Reads a file. @throws Failure usage with the path and the reason */
export async function readInput(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Returns the size of a file, in bytes. @throws Failure usage */
export async function sizeOfInput(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): Failure {
  return new Failure("usage", `${path} cannot be read: ${reasonOf(error)}`, { cause: error });
}

/** Returns the reason of a system error without the call and the path: `no such file or directory`. */
export function reasonOf(error: unknown): string {
  const { errno, message } = error as { errno?: number; message: string };
  return (errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1]) ?? message;
}
