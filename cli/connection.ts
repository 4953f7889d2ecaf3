/**
 * Selects the server and the certificate of a command, from options, environment variables, and the data folder of a
 * local server, which contains its address (server/startup/running-file.ts) and its certificates.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readSettings, type Variables } from "../server/settings/setting-sources.ts";
import { settings } from "../server/settings/setting-table.ts";
import { readRunningFile } from "../server/startup/running-file.ts";
import type { Options } from "./command.ts";
import { Failure } from "./failure.ts";

export interface Connection {
  readonly url: URL;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly ca: string | undefined;
  /** Path of `ca`. */
  readonly caPath?: string | undefined;
}

/** Returns the connection. @throws Failure usage */
export function findConnection(options: Options, environment: Variables): Connection {
  const given = (name: string) =>
    options.text(name) ?? (environment[`JACKDAW_${name.toUpperCase()}`] || undefined);
  const local = localSettings(environment);
  const folder = resolve(given("data") ?? local.dataFolder);
  const found = foundFiles(join(folder, "certs"));
  const url = readUrl(given("url") ?? readRunningFile(folder)?.Url ?? local.url);
  if (url.protocol === "http:") return { url, cert: undefined, key: undefined, ca: undefined };
  // A key belongs to its certificate: both have the same source, or are in one file.
  const pairs = [
    { cert: options.text("cert"), key: options.text("key") },
    {
      cert: environment["JACKDAW_CERT"] || undefined,
      key: environment["JACKDAW_KEY"] || undefined,
    },
    found,
  ];
  const { cert, key = cert } = pairs.find((pair) => pair.cert !== undefined) ?? {};
  const caPath = given("ca") ?? found.ca;
  return {
    url,
    cert: readPem(cert, "--cert"),
    key: readPem(key, "--key"),
    ca: readPem(caPath, "--ca"),
    caPath,
  };
}

/** Returns the data folder and URL of a server started in this folder. */
export function localSettings(environment: Variables): { dataFolder: string; url: string } {
  const given = readSettings({
    argv: [],
    environment,
    readFile: (path) => readFileSync(path, "utf8"),
    defaultFile: resolve("settings.json"),
  });
  const url = given.get("ServerUrl")?.value ?? settings.ServerUrl.fallback ?? "";
  return {
    dataFolder: given.get("DataDir")?.value ?? settings.DataDir.fallback ?? "",
    url: url.split(";")[0] ?? url,
  };
}

function foundFiles(folder: string): { cert?: string; key?: string; ca?: string } {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return {};
  }
  const admin = names.find((name) => /^admin\.client\.certificate\..*\.crt$/.test(name));
  const ca = join(folder, "ca.crt");
  return {
    ...(admin === undefined
      ? {}
      : { cert: join(folder, admin), key: join(folder, admin.replace(/crt$/, "key")) }),
    ...(existsSync(ca) ? { ca } : {}),
  };
}

function readUrl(text: string): URL {
  try {
    const url = new URL(text);
    if (url.protocol === "https:" || url.protocol === "http:") return url;
  } catch {
    // reported below
  }
  throw new Failure("usage", `'${text}' is not a URL; use --url https://HOST:PORT`);
}

function readPem(path: string | undefined, option: string): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { message } = error as Error;
    throw new Failure("usage", `${path} cannot be read (${message}); check ${option}`, {
      cause: error,
    });
  }
}
