/** A question on a terminal. */
import { createInterface } from "node:readline/promises";
import type { Streams } from "./command.ts";

/** Returns true if input and output are terminals. */
export function isInteractive({ input, output }: Streams): boolean {
  return input.isTTY === true && output.isTTY === true;
}

export async function askQuestion({ input, output }: Streams, question: string): Promise<string> {
  const terminal = createInterface({ input, output });
  try {
    return (await terminal.question(question)).trim();
  } finally {
    terminal.close();
  }
}
