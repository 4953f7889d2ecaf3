/**
 * Reads the configuration of the container: environment variables of RavenDB's image, case-insensitive, and flags in
 * `RAVEN_ARGS`.
 */
import { existsSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";

/** Data folders of RavenDB images before version 6. */
const olderFolders = ["/opt/RavenDB/Server/RavenData", "/opt/RavenDB/Server/RavenDB.Data"];

/** Returns a setting from a flag, a variable, `RAVEN_SETTINGS` or settings.json; undefined if it is not set. */
export function settingValue(name, env = process.env) {
  const wanted = name.toLowerCase();
  const words = (env.RAVEN_ARGS ?? "").split(/\s+/);
  for (const [at, word] of words.entries()) {
    const [, flag, value] = /^--?([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (flag?.toLowerCase() === wanted) return value ?? words[at + 1];
  }
  return found(env, `raven_${wanted.replaceAll(".", "_")}`) ?? found(settingsOf(env), wanted);
}

function found(values, key) {
  return Object.entries(values).find(([name]) => name.toLowerCase() === key)?.[1];
}

/** Returns the parsed settings, or none if they are invalid; the server reports the error. */
function settingsOf(env) {
  try {
    return JSON.parse(env.RAVEN_SETTINGS || readFileSync("settings.json", "utf8"));
  } catch {
    return {};
  }
}

/** Returns the data folder: a folder mounted at the path of older images, or the setting `DataDir`. */
export function dataFolder(env = process.env, folders = olderFolders) {
  return folders.find((folder) => existsSync(folder)) ?? settingValue("DataDir", env);
}

/**
 * Returns the URL to listen on: the setting, or port 8080 of all addresses, or of the container's address if only
 * private access is allowed.
 */
export function serverUrl(env = process.env, interfaces = networkInterfaces()) {
  const url = settingValue("ServerUrl", env);
  if (url !== undefined) return url;
  const isPrivate = settingValue("Security.UnsecuredAccessAllowed", env) === "PrivateNetwork";
  const all = Object.values(interfaces).flat();
  const own = all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
  return `http://${isPrivate && own !== undefined ? own : "0.0.0.0"}:8080`;
}

/** Returns the URL of the server from inside the container. */
export function insideUrl(env = process.env) {
  const url = new URL(serverUrl(env).split(";")[0]);
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url;
}
