/** Runs one command line. Independent of the process: streams, environment variables and the signal are passed in. */

import type { Variables } from "../server/settings/setting-sources.ts";
import { StartError } from "../server/settings/start-error.ts";
import { parseCommand } from "./arguments.ts";
import { Client } from "./client.ts";
import type { CommandContext, Streams } from "./command.ts";
import { commandTable } from "./command-table.ts";
import { findConnection } from "./connection.ts";
import { Failure } from "./failure.ts";

/** Runs a command. @returns the exit code */
export async function runCommand(
  words: readonly string[],
  streams: Streams,
  environment: Variables,
  interrupted: AbortSignal,
): Promise<number> {
  const print = (line: string) => void streams.output.write(`${line}\n`);
  let client: Client | undefined;
  try {
    const {
      command,
      arguments: given,
      options,
      isHelpRequested,
    } = parseCommand(words, commandTable);
    if (isHelpRequested || command.name === "serve") {
      print((await import("./commands/help.ts")).helpOf(command));
      return 0;
    }
    const context: CommandContext = {
      command,
      table: commandTable,
      arguments: given,
      options,
      streams,
      environment,
      interrupted,
      print,
      client: () => {
        client ??= new Client(findConnection(options, environment));
        return client;
      },
      database: () => {
        const name = options.text("database") ?? environment["JACKDAW_DATABASE"];
        if (name) return name;
        throw new Failure(
          "usage",
          "No database selected; use -d NAME. 'jackdaw databases' lists all databases",
        );
      },
    };
    await (await command.load()).run(context);
    return 0;
  } catch (error) {
    return reportError(error, words, streams);
  } finally {
    client?.close();
  }
}

/** Prints an error on one line, and with --verbose its stack trace. */
function reportError(error: unknown, words: readonly string[], { errors }: Streams): number {
  const failure = asFailure(error);
  const { message } = failure;
  errors.write(
    `jackdaw: ${message.endsWith("?") ? message : `${message.replace(/[.!]+$/, "")}.`}\n`,
  );
  if (words.includes("--verbose") || words.includes("-v")) {
    const { cause } = failure;
    errors.write(`${failure.stack}\n${cause instanceof Error ? `${cause.stack}\n` : ""}`);
  }
  return failure.exitCode;
}

function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const kind = error instanceof StartError ? "usage" : "failed";
  return new Failure(kind, (error as Error).message.split("\n")[0] ?? "", { cause: error });
}
