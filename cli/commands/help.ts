/** `jackdaw help`: what there is, and what a command does; the settings under `help serve`. */
import { settings } from "../../server/settings/setting-table.ts";
import { optionsOf, parseCommand, usageOf } from "../arguments.ts";
import type { Command, Surroundings } from "../command.ts";
import { failureCodes, failureMeanings } from "../failure.ts";

export async function run({ arguments: words, table, print }: Surroundings): Promise<void> {
  if (words.length === 0) print(overview(table));
  else print(helpOf(parseCommand([...words, "--help"], table).command));
}

/** All commands in a line each, and the exit codes. */
export function overview(table: readonly Command[]): string {
  const width = Math.max(...table.map((command) => usageOf(command).length));
  return [
    "Usage: jackdaw COMMAND [ARGUMENTS] [OPTIONS]",
    "",
    ...table.map((command) => `  ${usageOf(command).padEnd(width)}  ${command.about}`),
    "",
    "Every command has --help, and --json where it prints data. The server is found by --url, JACKDAW_URL, or beside",
    "the data folder of a local one.",
    "",
    "Exit codes: 0 done",
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
  if (command.name === "serve") lines.push(...howSettingsAreGiven, "", ...settingLines());
  else lines.push(...optionLines(command));
  return [...lines, "", `Example: ${command.example}`].join("\n");
}

const howSettingsAreGiven = [
  "Without any, it listens on this machine only, keeps its data in ./data, and makes the certificates that it needs. Settings",
  "are flags (--DataDir=./data), variables (RAVEN_DataDir), or members of settings.json, which --config-path=FILE names",
  "elsewhere; the first of these decides. 'jackdaw config' shows what they come to, 'jackdaw doctor' whether it would start.",
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
