/** What the variables of the container say: those of RavenDB's image, in any case, and flags in `RAVEN_ARGS`. */
import { existsSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";

/** Where the images of RavenDB before version 6 had their data. */
const olderFolders = ["/opt/RavenDB/Server/RavenData", "/opt/RavenDB/Server/RavenDB.Data"];

/** The value of a setting, from a flag, a variable, `RAVEN_SETTINGS` or settings.json; undefined: none has it. */
export function given(name, env = process.env) {
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

/** Whether it can be read is for the server to say. */
function settingsOf(env) {
  try {
    return JSON.parse(env.RAVEN_SETTINGS || readFileSync("settings.json", "utf8"));
  } catch {
    return {};
  }
}

/** A folder mounted where older images had their data is the data folder. */
export function dataFolder(env = process.env, folders = olderFolders) {
  return folders.find((folder) => existsSync(folder)) ?? given("DataDir", env);
}

/** Without one, port 8080 of all addresses; where only a private network is allowed, of the container's own. */
export function serverUrl(env = process.env, interfaces = networkInterfaces()) {
  const url = given("ServerUrl", env);
  if (url !== undefined) return url;
  const isPrivate = given("Security.UnsecuredAccessAllowed", env) === "PrivateNetwork";
  const all = Object.values(interfaces).flat();
  const own = all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
  return `http://${isPrivate && own !== undefined ? own : "0.0.0.0"}:8080`;
}

/** Where the server of this container is reached from inside. */
export function insideUrl(env = process.env) {
  const url = new URL(serverUrl(env).split(";")[0]);
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url;
}
