/** `jackdaw help`: lists the commands, or describes a command; `help serve` also lists the settings. */
import { settings } from "../../server/settings/setting-table.ts";
import { optionsOf, parseCommand, usageOf } from "../arguments.ts";
import type { Command, CommandContext } from "../command.ts";
import { failureCodes, failureMeanings } from "../failure.ts";

export async function run({ arguments: words, table, print }: CommandContext): Promise<void> {
  if (words.length === 0) print(overview(table));
  else print(helpOf(parseCommand([...words, "--help"], table).command));
}

/** Returns one line per command, and the exit codes. */
export function overview(table: readonly Command[]): string {
  const width = Math.max(...table.map((command) => usageOf(command).length));
  return [
    "Usage: jackdaw COMMAND [ARGUMENTS] [OPTIONS]",
    "",
    ...table.map((command) => `  ${usageOf(command).padEnd(width)}  ${command.about}`),
    "",
    "Every command accepts --help, and --json if it prints data. The server is selected by --url or JACKDAW_URL; otherwise",
    "it is the local server of the data folder.",
    "",
    "Exit codes: 0 success",
    ...Object.entries(failureCodes).map(
      ([kind, code]) =>
        `${String(code).padStart(13)} ${failureMeanings[kind as keyof typeof failureMeanings]}`,
    ),
  ].join("\n");
}

export function helpOf(command: Command): string {
  const lines = [
    `Usage: jackdaw ${usageOf(command)}${command.name === "serve" ? " [--SETTING=VALUE…]" : " [OPTIONS]"}`,
    "",
    `${command.about[0]?.toUpperCase()}${command.about.slice(1)}.`,
    "",
  ];
  if (command.name === "serve") lines.push(...settingsIntroduction, "", ...settingLines());
  else lines.push(...optionLines(command));
  return [...lines, "", `Example: ${command.example}`].join("\n");
}

const settingsIntroduction = [
  "By default, the server listens on the loopback interface, stores its data in ./data, and generates certificates. Settings",
  "are flags (--DataDir=./data), environment variables (RAVEN_DataDir), or members of settings.json (or of",
  "--config-path=FILE), in this order of precedence. 'jackdaw config' shows the resulting values, 'jackdaw doctor' checks them.",
];

function optionLines(command: Command): string[] {
  const rows = Object.entries(optionsOf(command)).map(([name, { short, value, about }]) => {
    const long = value === undefined ? `--${name}` : `--${name} ${value}`;
    return [short === undefined ? `    ${long}` : `-${short}, ${long}`, about] as const;
  });
  const width = Math.max(...rows.map(([shown]) => shown.length));
  return rows.map(([shown, about]) => `  ${shown.padEnd(width)}  ${about}`);
}

function settingLines(): string[] {
  const lines: string[] = [];
  let last = "";
  for (const [name, { group, fallback, unit, about }] of Object.entries(settings)) {
    if (group !== last) lines.push(...(last === "" ? [] : [""]), group);
    last = group;
    const shown = fallback ? `=${fallback}${unit === undefined ? "" : ` (${unit})`}` : "";
    lines.push(`  --${name}${shown}`, `      ${about}`);
  }
  return lines;
}
