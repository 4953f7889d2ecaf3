/**
 * Collects settings from flags, environment variables, and a file, in that order of precedence, under RavenDB's names. Values
 * are text here; config.ts parses them. Pure: all inputs are passed in.
 *
 * Invariants:
 * - Names are case-insensitive; `RAVEN_Security_Certificate_Path` is `Security.Certificate.Path`.
 */

import { settings } from "./setting-table.ts";
import { StartError } from "./start-error.ts";
import { ravenImageVariables } from "./unsupported-settings.ts";

export interface GivenSetting {
  readonly value: string;
  readonly source: "flag" | "environment" | "file";
}

export interface Variables {
  /** Additional flags, separated by whitespace. */
  readonly RAVEN_ARGS?: string | undefined;
  /** The text of a settings file. */
  readonly RAVEN_SETTINGS?: string | undefined;
  readonly [name: string]: string | undefined;
}

/** The inputs that contain settings. */
export interface SettingSources {
  /** Arguments after the program name. */
  readonly argv: readonly string[];
  readonly environment: Variables;
  /** Reads a settings file. @throws errors of node:fs if it cannot be read */
  readonly readFile: (path: string) => string;
  /** File to read without `--config-path`, if it exists. */
  readonly defaultFile: string;
}

/** Returns every given setting, under its known name, or as given. @throws StartError setting-invalid */
export function readSettings(sources: SettingSources): Map<string, GivenSetting> {
  const flags = readFlags(sources.argv, sources.environment);
  const path = flags.get("config-path") ?? flags.get("c");
  flags.delete("config-path");
  flags.delete("c");
  const given = new Map<string, GivenSetting>();
  const names = new Map<string, string>();
  const put = (name: string, value: string, source: GivenSetting["source"]) => {
    const known = knownNames.get(name.toLowerCase()) ?? names.get(name.toLowerCase()) ?? name;
    names.set(name.toLowerCase(), known);
    given.set(known, { value, source });
  };
  for (const [name, value] of readSettingsFile(path, sources)) put(name, value, "file");
  for (const [name, value] of readEnvironment(sources.environment)) put(name, value, "environment");
  for (const [name, value] of flags) put(name, value, "flag");
  return given;
}

const knownNames = new Map(Object.keys(settings).map((name) => [name.toLowerCase(), name]));

/** `--Name=value`, `--Name value`, `--Flag` alone is "true". @throws StartError setting-invalid */
function readFlags(argv: readonly string[], environment: Variables): Map<string, string> {
  const flags = new Map<string, string>();
  const extra = environment.RAVEN_ARGS?.split(/\s+/).filter((part) => part !== "") ?? [];
  const all = [...extra, ...argv];
  for (let position = 0; position < all.length; position++) {
    const argument = all[position] as string;
    const match = /^--?([^=]+)(?:=(.*))?$/s.exec(argument);
    if (match === null) {
      throw new StartError(
        "setting-invalid",
        `'${argument}' is not a setting; settings are given as --Name=value, e.g. --DataDir=./data`,
      );
    }
    const [, name = "", value] = match;
    if (value !== undefined) {
      flags.set(name, value);
      continue;
    }
    const next = all[position + 1];
    if (next !== undefined && !next.startsWith("--")) {
      flags.set(name, next);
      position++;
    } else {
      flags.set(name, "true");
    }
  }
  return flags;
}

/** Variables with the prefix of settings that are not settings. */
const otherVariables = new Set(["raven_args", "raven_settings", ...ravenImageVariables]);

function* readEnvironment(environment: Variables): Generator<[string, string]> {
  const json = environment.RAVEN_SETTINGS;
  if (json) yield* flatten(parseSettings(json, "the variable RAVEN_SETTINGS"), "");
  for (const [variable, value] of Object.entries(environment)) {
    const lower = variable.toLowerCase();
    if (!lower.startsWith("raven_") || otherVariables.has(lower) || value === undefined) continue;
    yield [variable.slice(6).replaceAll("_", "."), value];
  }
}

function* readSettingsFile(
  path: string | undefined,
  sources: SettingSources,
): Generator<[string, string]> {
  let text: string;
  try {
    text = sources.readFile(path ?? sources.defaultFile);
  } catch (error) {
    if (path === undefined && (error as { code?: unknown }).code === "ENOENT") return;
    const reason = (error as Error).message;
    throw new StartError(
      "setting-invalid",
      `The settings file ${path ?? sources.defaultFile} cannot be read: ${reason}`,
      { cause: error },
    );
  }
  if (text.trim() === "") return;
  yield* flatten(parseSettings(text, path ?? sources.defaultFile), "");
}

function parseSettings(text: string, where: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch (error) {
    throw new StartError(
      "setting-invalid",
      `The settings in ${where} are not JSON: ${(error as Error).message}`,
      { cause: error },
    );
  }
  throw new StartError(
    "setting-invalid",
    `The settings in ${where} must be a JSON object of names and values, e.g. {"DataDir": "./data"}`,
  );
}

/** `{"Security": {"Certificate": {"Path": "x"}}}` -> `Security.Certificate.Path`. Lists become `a;b`. */
function* flatten(value: Record<string, unknown>, prefix: string): Generator<[string, string]> {
  for (const [name, item] of Object.entries(value)) {
    const full = `${prefix}${name.replaceAll(":", ".")}`;
    if (Array.isArray(item)) yield [full, item.join(";")];
    else if (typeof item === "object" && item !== null) {
      yield* flatten(item as Record<string, unknown>, `${full}.`);
    } else if (item !== null) yield [full, String(item)];
  }
}
