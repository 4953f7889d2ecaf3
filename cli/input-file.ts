/** Files that a command reads. */
import { readFile } from "node:fs/promises";
import { getSystemErrorMap } from "node:util";
import { Failure } from "./failure.ts";

/** @throws Failure usage that names the file and says why */
export async function readInput(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  }
}

export function unreadable(path: string, error: unknown): Failure {
  return new Failure("usage", `${path} cannot be read: ${reasonOf(error)}`, { cause: error });
}

/** `no such file or directory`: without the call and the path, which are told already. */
export function reasonOf(error: unknown): string {
  const { errno, message } = error as { errno?: number; message: string };
  return (errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1]) ?? message;
}
