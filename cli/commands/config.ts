/** `jackdaw config`: lists every setting of a server started in this folder, and the source of its value. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { loadConfig } from "../../server/settings/config.ts";
import { settings } from "../../server/settings/setting-table.ts";
import { StartError } from "../../server/settings/start-error.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { painter, tableLines } from "../output.ts";

export async function run(context: CommandContext): Promise<void> {
  const { options, environment, print, streams } = context;
  const path = options.text("config-path");
  const { config, warnings, notes } = loaded({
    argv: path === undefined ? [] : [`--config-path=${path}`],
    environment,
    readFile: (name) => readFileSync(name, "utf8"),
    defaultFile: resolve("settings.json"),
  });
  const rows = Object.entries(settings).map(([name, { fallback, isSecret, unit, about }]) => {
    const given = config.given.get(name);
    const value = given?.value ?? fallback ?? null;
    const shown = isSecret && value !== null ? "***" : value;
    return {
      Name: name,
      Value: shown,
      Unit: unit ?? null,
      Source: given?.source ?? "default",
      About: about,
    };
  });
  if (options.is("json")) {
    print(JSON.stringify(rows));
    return;
  }
  const paint = painter(streams.output.isTTY === true, environment);
  const cells = rows.map(({ Name, Value, Unit, Source }) => [
    Name,
    [Value, Value === null ? null : Unit].filter((part) => part !== null).join(" "),
    Source,
  ]);
  for (const line of tableLines(["setting", "value", "from"], cells, streams.output.columns, paint))
    print(line);
  for (const line of [...warnings, ...notes]) print(line);
}

function loaded(sources: Parameters<typeof loadConfig>[0]): ReturnType<typeof loadConfig> {
  try {
    return loadConfig(sources);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    throw new Failure("usage", error.message, { cause: error });
  }
}
