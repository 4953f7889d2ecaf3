/**
 * `jackdaw dev`: a server for development on this machine, in this process: plain HTTP on the loopback interface, with a
 * first database. Prints how to connect; runs until Ctrl-C.
 *
 * Invariants:
 * - It listens on 127.0.0.1 only: every program that can connect has all rights.
 */
import { once } from "node:events";
import { resolve } from "node:path";
import { returnMemory } from "../../engine/base/memory/memory-return.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import { loadConfig } from "../../server/settings/config.ts";
import { type RunningServer, startServer } from "../../server/startup/run.ts";
import { openStorage } from "../../server/startup/storage.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { openInBrowser } from "../studio/opener.ts";
import { portOr } from "../values.ts";

const defaultPort = 8080;
const defaultFolder = "jackdaw-data";
const defaultDatabase = "dev";

export async function run(context: CommandContext): Promise<void> {
  const { options, print, interrupted } = context;
  const folder = options.is("memory") ? undefined : (options.text("data") ?? defaultFolder);
  const database = options.text("database") ?? defaultDatabase;
  const server = await start(portOr(options.text("port"), defaultPort), folder, context);
  const stopReturning = returnMemory();
  try {
    const { databases } = server.services;
    if (!databases.has(database)) await databases.create(database, { DatabaseName: database });
    const { url } = server.address;
    if (options.is("json")) print(JSON.stringify({ Address: url, Database: database }));
    else linesOf(url, database, folder).forEach(print);
    if (!options.is("json") && !options.is("no-open")) openInBrowser(studioOf(url, database));
    const ended = interrupted.aborted ? undefined : once(interrupted, "abort");
    const lost = await Promise.race([ended, server.lost]);
    if (lost instanceof Error) throw new Failure("failed", lost.message);
  } finally {
    stopReturning();
    await server.stop();
  }
}

/** `folder` undefined: everything stays in memory. @throws Failure */
async function start(
  port: number,
  folder: string | undefined,
  { streams }: CommandContext,
): Promise<RunningServer> {
  const { config } = loadConfig({
    argv: [
      `--ServerUrl=http://127.0.0.1:${port}`,
      ...(folder === undefined ? ["--RunInMemory=true"] : [`--DataDir=${resolve(folder)}`]),
      "--Http.Threads=0",
    ],
    environment: {},
    readFile: () => "",
    defaultFile: "",
  });
  const report = (message: string, cause?: unknown) =>
    void streams.errors.write(`${message}${cause instanceof Error ? `: ${cause.message}` : ""}\n`);
  try {
    return await startServer({
      config,
      routes,
      openStorage: (known, replication) => openStorage(known, report, replication),
      logError: (reference, error) => report(`Error ${reference}`, error),
    });
  } catch (error) {
    throw new Failure("usage", withOptions((error as Error).message), { cause: error });
  }
}

/** Returns the message of an error with the options of this command instead of settings. */
function withOptions(message: string): string {
  return message
    .replace("set ServerUrl to another port", "use another --port")
    .replace("set DataDir to another folder", "use another --data");
}

function studioOf(url: string, database: string): string {
  return `${url}/studio/db/${encodeURIComponent(database)}/docs`;
}

function linesOf(url: string, database: string, folder: string | undefined): string[] {
  return [
    `Jackdaw for development: ${url}`,
    "No certificates: every program on this machine has all rights. For anything else, use 'jackdaw serve'.",
    "",
    `  Studio    ${studioOf(url, database)}`,
    `  Database  ${database}`,
    `  Data      ${folder === undefined ? "in memory: lost when the server stops" : resolve(folder)}`,
    "",
    "Official client (npm i ravendb):",
    "",
    '  import { DocumentStore } from "ravendb";',
    `  const store = new DocumentStore("${url}", "${database}");`,
    "  store.initialize();",
    "",
    "curl:",
    "",
    `  curl -X PUT '${url}/databases/${database}/docs?id=users/2' -d '{"Name":"Bob","@metadata":{"@collection":"Users"}}'`,
    `  curl '${url}/databases/${database}/queries?query=from+Users'`,
    "",
    "Without a server (npm i jackdaw-db):",
    "",
    '  import { openEngine } from "jackdaw-db";',
    "  const engine = await openEngine();",
    `  const database = await engine.database("${database}");`,
    "",
    "Ctrl-C stops the server.",
  ];
}
