/**
 * Finds the command in the words of the command line, and parses its options with `parseArgs` of node:util (long and
 * short names, `--name=value`, `--`). Pure.
 */
import { parseArgs } from "node:util";
import { nearestName } from "../server/settings/nearest-name.ts";
import type { Command, Option, Options } from "./command.ts";
import { Failure } from "./failure.ts";

interface Parsed {
  readonly command: Command;
  readonly arguments: readonly string[];
  readonly options: Options;
  readonly isHelpRequested: boolean;
}

const commonOptions: Readonly<Record<string, Option>> = {
  help: { short: "h", about: "show the usage of the command" },
  json: { about: "print JSON" },
  quiet: { short: "q", about: "show no progress" },
  verbose: { short: "v", about: "show the stack trace of an error" },
};

export const connectionOptions: Readonly<Record<string, Option>> = {
  url: { value: "URL", about: "URL of the server; JACKDAW_URL" },
  cert: { value: "FILE", about: "client certificate, PEM; JACKDAW_CERT" },
  key: { value: "FILE", about: "key of the client certificate; JACKDAW_KEY" },
  ca: { value: "FILE", about: "certificate authority to trust; JACKDAW_CA" },
  data: { value: "FOLDER", about: "data folder of a local server; JACKDAW_DATA" },
};

const databaseOption: Readonly<Record<string, Option>> = {
  database: {
    short: "d",
    value: "NAME",
    names: "databases",
    about: "the database; JACKDAW_DATABASE",
  },
};

/** Returns all options of a command, its own options first. */
export function optionsOf(command: Command): Record<string, Option> {
  return {
    ...command.options,
    ...(command.needs === "database" ? databaseOption : {}),
    ...(command.needs === "nothing" ? {} : connectionOptions),
    ...commonOptions,
  };
}

/** Parses a command line. @throws Failure usage */
export function parseCommand(words: readonly string[], table: readonly Command[]): Parsed {
  const { command, rest } = findCommand(words, table);
  const known = optionsOf(command);
  const { values, positionals } = parseOptions(command, known, rest);
  const isHelpRequested = values["help"] === true;
  if (!isHelpRequested) checkCount(command, positionals);
  const one = (name: string) => {
    const value = values[name];
    return Array.isArray(value) ? value.at(-1) : value;
  };
  return {
    command,
    arguments: positionals,
    isHelpRequested,
    options: {
      text: (name) => {
        const value = one(name);
        return typeof value === "string" ? value : undefined;
      },
      all: (name) => {
        const value = values[name];
        return Array.isArray(value) ? value.map(String) : [];
      },
      is: (name) => one(name) === true,
    },
  };
}

/**
 * Finds a command. A group alone (`index`, `cluster`) is the command `list` or `status` of the group. @throws Failure
 * usage
 */
function findCommand(
  words: readonly string[],
  table: readonly Command[],
): { command: Command; rest: readonly string[] } {
  const [first = "", second = ""] = words;
  const exact =
    table.find(({ name }) => name === `${first} ${second}`) ??
    table.find(({ name }) => name === first);
  if (exact !== undefined) {
    return { command: exact, rest: words.slice(exact.name.split(" ").length) };
  }
  const group = table.filter(({ name }) => name.startsWith(`${first} `));
  const list = group.find(({ name }) => name === `${first} list` || name === `${first} status`);
  if (list !== undefined && (second === "" || second.startsWith("-"))) {
    return { command: list, rest: words.slice(1) };
  }
  const isGroup = group.length > 0;
  const choices = isGroup
    ? group.map(({ name }) => name.slice(first.length + 1))
    : [...new Set(table.map(({ name }) => name.split(" ")[0] ?? ""))];
  const near = nearestName(isGroup ? second : first, choices);
  const given = isGroup ? `${first} ${second}`.trim() : first;
  const before = isGroup ? `${first} ` : "";
  throw new Failure(
    "usage",
    near === undefined
      ? `Unknown command '${given}'; 'jackdaw help' lists all commands`
      : `Unknown command '${given}'; did you mean '${before}${near}'? 'jackdaw help' lists all commands`,
  );
}

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

function parseOptions(
  command: Command,
  known: Readonly<Record<string, Option>>,
  rest: readonly string[],
): { values: Values; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { short, value, isRepeated }]) => [
      name,
      {
        type: value === undefined ? ("boolean" as const) : ("string" as const),
        ...(short === undefined ? {} : { short }),
        ...(isRepeated === true ? { multiple: true } : {}),
      },
    ]),
  );
  try {
    return parseArgs({ args: [...rest], options, allowPositionals: true });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    const name = /'--?([^'=\s]+)/.exec(message)?.[1] ?? "";
    const near =
      code === "ERR_PARSE_ARGS_UNKNOWN_OPTION" ? nearestName(name, Object.keys(known)) : undefined;
    const what =
      code === "ERR_PARSE_ARGS_UNKNOWN_OPTION"
        ? `'jackdaw ${command.name}' has no option '${name.length > 1 ? "--" : "-"}${name}'`
        : (message.split(". ")[0] ?? message);
    throw new Failure(
      "usage",
      `${what}${near === undefined ? ";" : `; did you mean '--${near}'?`} 'jackdaw help ${command.name}' lists its options`,
      { cause: error },
    );
  }
}

function checkCount(command: Command, given: readonly string[]): void {
  const needed = command.arguments.filter(({ isOptional }) => !isOptional).length;
  const most = command.arguments.some(({ isRest }) => isRest)
    ? Number.POSITIVE_INFINITY
    : command.arguments.length;
  if (given.length >= needed && given.length <= most) return;
  const missing = command.arguments[given.length];
  const what =
    given.length < needed
      ? `${missing?.name} is missing`
      : `'${given[most]}' is an unexpected argument`;
  throw new Failure("usage", `${what}: jackdaw ${usageOf(command)}`);
}

/** Returns a command with its arguments: `index show NAME`. */
export function usageOf(command: Command): string {
  const words = command.arguments.map(({ name, isOptional, isRest }) => {
    const word = isRest ? `${name}…` : name;
    return isOptional ? `[${word}]` : word;
  });
  return [command.name, ...words].join(" ");
}
