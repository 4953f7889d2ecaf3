/**
 * Entry point of the command line, except for `serve`, which bin/jackdaw starts directly. The only file here that
 * accesses the process.
 */
import { failureCodes } from "./failure.ts";
import { runCommand } from "./run.ts";

async function main(): Promise<void> {
  const words = process.argv.slice(2);
  const [first = "help"] = words;
  const interruption = new AbortController();
  process.on("SIGINT", () => {
    if (interruption.signal.aborted) process.exit(failureCodes.interrupted);
    interruption.abort();
  });
  const streams = { input: process.stdin, output: process.stdout, errors: process.stderr };
  const wanted = first.startsWith("-") ? ["help"] : words;
  process.exitCode = await runCommand(wanted, streams, process.env, interruption.signal);
}

// `jackdaw query … | head` closes the pipe early.
process.stdout.on("error", () => process.exit(0));

main().catch((error: unknown) => {
  console.error(error);
  process.exit(failureCodes.failed);
});
