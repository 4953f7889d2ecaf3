/**
 * The process entry point: reads arguments and environment, starts the server, and stops it on a signal, a `shutdown`
 * line on standard input, or the exit of the parent process. The only file that reads the environment, prints, or sets
 * exit codes.
 *
 * Invariants:
 * - "Server available on: <url>" is printed on a line of its own, once requests are answered.
 * - A reason not to start is one line on standard error and has its own exit code (start-error.ts).
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { returnMemory } from "../engine/base/memory/memory-return.ts";
import { routes } from "./endpoints/route-table.ts";
import type { Log } from "./logging/log.ts";
import { openProcessLog } from "./logging/process-log.ts";
import { type Config, loadConfig } from "./settings/config.ts";
import { exitCodes, StartError } from "./settings/start-error.ts";
import { type RunningServer, startServer } from "./startup/run.ts";
import { startupLines } from "./startup/startup-lines.ts";
import { openStorage } from "./startup/storage.ts";

const parentCheckMs = 1000;

async function main(): Promise<void> {
  const { config, warnings, notes } = loadConfig({
    argv: process.argv.slice(2),
    environment: process.env,
    readFile: (path) => readFileSync(path, "utf8"),
    defaultFile: resolve("settings.json"),
  });
  const log = await openProcessLog(config.logs, process.stderr);
  processLog = log;
  const warn = (line: string) => log.warn(line);
  warnings.forEach(warn);
  for (const note of notes) print(`Note: ${note}`);
  const certificateReports = { changed: print, failed: warn };
  const server = await startServer({
    config,
    routes,
    openStorage: (known, replication) => openStorage(known, log.report, replication),
    log,
    logError: log.logError,
    certificateReports,
  });
  server.warnings.forEach(warn);
  stopWhenTold(server, config, log);
  server.lost.then(endAtOnce, endAtOnce);
  returnMemory();
  print(startupLines(server).join("\n"));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Undefined until the settings are read. */
let processLog: Log | undefined;

/** Logs an error without a request; before the log is open, on standard error. */
function logError(reference: string, error: unknown): void {
  if (processLog !== undefined) processLog.logError(reference, error);
  else console.error(`Error ${reference}:`, error);
}

/** Stops because another process owns the data folder now: nothing can be written, and reads would return stale data. */
function endAtOnce(reason: Error): void {
  console.error(`Stopped: ${reason.message} Start again when the other process has exited.`);
  process.exit(exitCodes["data-folder-lost"]);
}

function stopWhenTold(server: RunningServer, config: Config, log: Log): void {
  let isStopping = false;
  const stop = () => {
    if (isStopping) return;
    isStopping = true;
    server.stop().then(
      () => log.close().finally(() => process.exit(0)),
      (error: unknown) => {
        log.logError("while stopping", error);
        void log.close().finally(() => process.exit(exitCodes.unexpected));
      },
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", () => {
    if (isStopping) process.exit(130); // second signal: acknowledged writes are durable anyway
    stop();
  });
  // Closing the terminal stops the server; without a terminal SIGHUP reloads the certificate.
  process.on("SIGHUP", () => (process.stdin.isTTY ? stop() : reloadCertificate(server, log)));
  const input = createInterface({ input: process.stdin });
  input.on("line", (line) => {
    if (/^\s*shutdown(\s+no-confirmation)?\s*$/i.test(line)) stop();
  });
  process.stdin.on("error", () => undefined); // closed: no more commands
  const { parentProcessId } = config;
  if (parentProcessId === undefined) return;
  setInterval(() => {
    if (!isAlive(parentProcessId)) stop();
  }, parentCheckMs).unref();
}

function reloadCertificate(server: RunningServer, log: Log): void {
  if (server.certificate === undefined) return;
  server.reloadCertificate().then(
    (isOther) => {
      if (!isOther) print("The server certificate has not changed");
    },
    (error: unknown) =>
      log.warn(`The server certificate is unchanged: ${(error as Error).message}.`),
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

// A closed output pipe is no reason to stop.
process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);
// An unhandled rejection in one request must not stop the server for the others. Exceptions outside promises still end
// the process, because the state they leave is unknown.
process.on("unhandledRejection", (error) => logError("outside of a request", error));

main().catch((error: unknown) => {
  if (error instanceof StartError) {
    console.error(`Cannot start: ${error.message}.`);
    process.exit(error.exitCode);
  }
  logError("while starting", error);
  process.exit(exitCodes.unexpected);
});
