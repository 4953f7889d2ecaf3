/**
 * The process: arguments and environment in, a running server out, until a signal, a word on standard input, or the end of the
 * parent. The only file that reads the environment, prints, or sets exit codes.
 *
 * Invariants:
 * - "Server available on: <url>" is a line of its own, printed when requests are answered.
 * - A reason not to start is one line on standard error, and an exit code of its own (start-error.ts).
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Config, loadConfig } from "./config.ts";
import { returnMemory } from "./memory-return.ts";
import { routes } from "./route-table.ts";
import { type RunningServer, startServer } from "./run.ts";
import { exitCodes, StartError } from "./start-error.ts";
import { startupLines } from "./startup-lines.ts";
import { openStorage } from "./storage.ts";

const parentCheckMs = 1000;

async function main(): Promise<void> {
  const { config, warnings, notes } = loadConfig({
    argv: process.argv.slice(2),
    environment: process.env,
    readFile: (path) => readFileSync(path, "utf8"),
    defaultFile: resolve("settings.json"),
  });
  warnings.forEach(warn);
  for (const note of notes) print(`Note: ${note}`);
  const certificateReports = { changed: print, failed: warn };
  const server = await startServer({
    config,
    routes,
    openStorage: (known) => openStorage(known, report),
    logError,
    certificateReports,
  });
  server.warnings.forEach(warn);
  stopWhenTold(server, config);
  server.lost.then(endAtOnce, endAtOnce);
  returnMemory();
  print(startupLines(server).join("\n"));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function warn(text: string): void {
  console.error(`Warning: ${text}`);
}

/** What the engine tells: a line, and the whole of what caused it. */
function report(message: string, cause?: unknown): void {
  const time = new Date().toISOString();
  console.error(
    cause === undefined ? `${time} ${message}.` : `${time} ${message}: ${textOf(cause)}`,
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function logError(reference: string, error: unknown): void {
  console.error(`Error ${reference}: ${textOf(error)}`);
}

/** The data folder is another's: there is nothing to be saved, and what could still be read would be old. */
function endAtOnce(reason: Error): void {
  console.error(`Stopped: ${reason.message} Start again when the other one has ended.`);
  process.exit(exitCodes["data-folder-lost"]);
}

function stopWhenTold(server: RunningServer, config: Config): void {
  let isStopping = false;
  const stop = () => {
    if (isStopping) return;
    isStopping = true;
    server.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logError("while stopping", error);
        process.exit(exitCodes.unexpected);
      },
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", () => {
    if (isStopping) process.exit(130); // asked twice: what is acknowledged is safe anyway
    stop();
  });
  // A terminal that is closed takes its server along; without one the signal asks to look at the certificate again.
  process.on("SIGHUP", () => (process.stdin.isTTY ? stop() : reloadCertificate(server)));
  const input = createInterface({ input: process.stdin });
  input.on("line", (line) => {
    if (/^\s*shutdown(\s+no-confirmation)?\s*$/i.test(line)) stop();
  });
  process.stdin.on("error", () => undefined); // closed: then nobody types
  const { parentProcessId } = config;
  if (parentProcessId === undefined) return;
  setInterval(() => {
    if (!isAlive(parentProcessId)) stop();
  }, parentCheckMs).unref();
}

function reloadCertificate(server: RunningServer): void {
  if (server.certificate === undefined) return;
  server.reloadCertificate().then(
    (isOther) => {
      if (!isOther) print("The server certificate is the same as before");
    },
    (error: unknown) =>
      warn(`The server certificate stays as it was: ${(error as Error).message}.`),
  );
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code !== "ESRCH";
  }
}

// A reader of our output that goes away is no reason to stop.
process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);
// One request's promise that nobody waited for must not take the server from the others. What is thrown outside of
// promises still ends the process: nothing is known then of the state it left.
process.on("unhandledRejection", (error) => logError("outside of a request", error));

main().catch((error: unknown) => {
  if (error instanceof StartError) {
    console.error(`Cannot start: ${error.message}.`);
    process.exit(error.exitCode);
  }
  logError("while starting", error);
  process.exit(exitCodes.unexpected);
});
