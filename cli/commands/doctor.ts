/**
 * `jackdaw doctor`: checks whether a server could start here, or the state of the running server. Each check prints a
 * line with the result and, for a problem, the remedy. Changes nothing.
 */
import { X509Certificate } from "node:crypto";
import { constants, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { access, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { totalmem } from "node:os";
import { dirname, join, resolve } from "node:path";
import {
  checkServerCertificate,
  loadServerCertificate,
} from "../../server/security/server-certificate.ts";
import { type Config, loadConfig } from "../../server/settings/config.ts";
import { listenErrorOf } from "../../server/settings/listen-error.ts";
import { openFilesMax, openFilesMin } from "../../server/startup/open-files.ts";
import { readRunningFile } from "../../server/startup/running-file.ts";
import type { Client } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { durationText, type Paint, painter, sizeText } from "../output.ts";
import { versionOf } from "./status.ts";

type State = "ok" | "warn" | "fail";

interface Finding {
  readonly State: State;
  readonly About: string;
  readonly Text: string;
  readonly Advice: string | null;
}

const nodeMin = [20, 19] as const;
const dayMs = 86_400_000;
const warningDays = 30;
const freeBytesMin = 256 * 1024 * 1024;
const freeShareMin = 0.05;
const memoryBytesMin = 512 * 1024 * 1024;
const clockMsMax = 5000;

/** Runs the checks and prints the findings. @throws Failure failed when a finding is `fail` */
export async function run(context: CommandContext): Promise<void> {
  const { options, print, streams, environment } = context;
  const findings = [node(), memory(), openFiles()];
  const config = settingsOf(context, findings);
  if (config !== undefined) {
    const running = await server(context, config, findings);
    await folder(config, running, findings);
    await certificates(config, findings);
    if (!running) await port(config, findings);
  }
  if (options.is("json")) print(JSON.stringify(findings));
  else {
    const paint = painter(streams.output.isTTY === true, environment);
    for (const finding of findings) print(lineOf(finding, paint));
  }
  const failed = findings.filter(({ State }) => State === "fail");
  if (failed.length === 0) return;
  throw new Failure("failed", `Failed checks: ${failed.map(({ About }) => About).join(", ")}`);
}

const colors = { ok: "green", warn: "yellow", fail: "red" } as const;

function lineOf({ State, About, Text, Advice }: Finding, paint: Paint): string {
  const advice = Advice === null ? "" : `: ${Advice}`;
  return `${paint(colors[State], State.padEnd(4))}  ${About.padEnd(11)}  ${Text}${advice}`;
}

const ok = (About: string, Text: string): Finding => ({ State: "ok", About, Text, Advice: null });
const warn = (About: string, Text: string, Advice: string | null): Finding => ({
  State: "warn",
  About,
  Text,
  Advice,
});
const fail = (About: string, Text: string, Advice: string | null): Finding => ({
  State: "fail",
  About,
  Text,
  Advice,
});

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1]);
  const text = `Node ${process.versions.node}, ${process.platform} ${process.arch}`;
  return isNew
    ? ok("node", text)
    : fail("node", text, `install Node ${nodeMin.join(".")} or later`);
}

function memory(): Finding {
  const limit = process.constrainedMemory() ?? 0;
  const isLimited = limit > 0 && limit < totalmem();
  const bytes = isLimited ? limit : totalmem();
  const text = `${sizeText(bytes)}${isLimited ? ", the limit of this container or service" : ""}`;
  return bytes >= memoryBytesMin
    ? ok("memory", text)
    : warn(
        "memory",
        text,
        `provide ${sizeText(memoryBytesMin)} or more; caches are small below that`,
      );
}

function openFiles(): Finding {
  const count = openFilesMax();
  if (count === undefined) return ok("open files", "the limit is unknown on this system");
  return count >= openFilesMin
    ? ok("open files", `${count} at most`)
    : warn(
        "open files",
        `${count} at most`,
        `raise it with 'ulimit -n ${openFilesMin}' or LimitNOFILE=`,
      );
}

function settingsOf(context: CommandContext, findings: Finding[]): Config | undefined {
  const { options, environment } = context;
  const given = options.text("config-path");
  const data = options.text("data") ?? (environment["JACKDAW_DATA"] || undefined);
  try {
    const { config, warnings } = loadConfig({
      argv: [
        ...(given === undefined ? [] : [`--config-path=${given}`]),
        ...(data === undefined ? [] : [`--DataDir=${data}`]),
      ],
      environment,
      readFile: (name) => readFileSync(name, "utf8"),
      defaultFile: resolve("settings.json"),
    });
    for (const line of warnings) findings.push(warn("settings", line, null));
    const count = config.given.size;
    if (warnings.length === 0)
      findings.push(ok("settings", `${count} set, others have default values`));
    return config;
  } catch (error) {
    findings.push(fail("settings", (error as Error).message, null));
    return undefined;
  }
}

/** Checks the specified server, or the server of the data folder. @returns true if it is running */
async function server(
  { client, options, environment }: CommandContext,
  config: Config,
  findings: Finding[],
): Promise<boolean> {
  const isNamed = Boolean(options.text("url") ?? environment["JACKDAW_URL"]);
  const announced = readRunningFile(resolve(config.dataFolder));
  if (!isNamed && announced === undefined) {
    findings.push(ok("server", "no server is running on this data folder"));
    return false;
  }
  try {
    const sentMs = Date.now();
    const answer = await client().send("/build/version");
    const version = versionOf(JSON.parse(answer.text) as Readonly<Record<string, unknown>>);
    findings.push(ok("server", `${client().url.origin} is running, version ${version}`));
    findings.push(clock(answer.headers.date, sentMs));
    findings.push(...(await databases(client())));
    return true;
  } catch (error) {
    const { message } = error as Error;
    if (isNamed || isAlive(announced?.ProcessId)) findings.push(fail("server", message, null));
    else {
      const text = `${announced?.Url} is announced in the data folder but not running`;
      findings.push(warn("server", text, "it was not shut down cleanly; restart it"));
    }
    return false;
  }
}

/** Checks that all databases can be opened. */
async function databases(client: Client): Promise<Finding[]> {
  const answer = await client.send("/databases", { accepts: [403] });
  if (answer.status === 403) return [];
  const { Databases } = JSON.parse(answer.text) as {
    Databases: { Name: string; LoadError?: string | null }[];
  };
  const broken = Databases.filter(({ LoadError }) => LoadError);
  if (broken.length > 0) {
    return broken.map(({ Name, LoadError }) =>
      fail("database", `${Name} cannot be opened`, String(LoadError)),
    );
  }
  return [ok("databases", `${Databases.length}, all can be opened`)];
}

function isAlive(processId: number | undefined): boolean {
  if (processId === undefined) return false;
  try {
    return process.kill(processId, 0);
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

function clock(date: string | undefined, sentMs: number): Finding {
  const apartMs = Math.abs(Date.parse(date ?? "") - sentMs);
  if (Number.isNaN(apartMs)) return warn("clock", "the server sent no time", null);
  return apartMs <= clockMsMax
    ? ok("clock", "in sync with the server's clock")
    : warn("clock", `${durationText(apartMs)} off the server's clock`, "synchronize both with NTP");
}

async function folder(config: Config, isRunning: boolean, findings: Finding[]): Promise<void> {
  if (config.runInMemory) {
    findings.push(ok("data folder", "none: RunInMemory"));
    return;
  }
  const path = resolve(config.dataFolder);
  let existing = path;
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing);
  try {
    await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as { code?: string };
    const text = `${existing} cannot be written (${code})`;
    findings.push(fail("data folder", text, "check its owner and mode, or set DataDir to another"));
    return;
  }
  const state =
    existing !== path ? "will be created" : isRunning ? "is in use by the server" : usageOf(path);
  findings.push(ok("data folder", `${path} ${state}`));
  findings.push(await space(existing), times(path));
}

/** Describes the content of the folder. The lock is not tested, because locking would change the folder. */
function usageOf(path: string): string {
  const databases = join(path, "Databases");
  const count = existsSync(databases) ? readdirSync(databases).length : 0;
  return `is writable, ${count} databases`;
}

async function space(path: string): Promise<Finding> {
  const { bavail, blocks, bsize } = await statfs(path);
  const [free, all] = [bavail * bsize, blocks * bsize];
  const text = `${sizeText(free)} of ${sizeText(all)} are free`;
  if (free < freeBytesMin)
    return fail("disk", text, "free disk space, or set DataDir to a larger disk");
  return free < all * freeShareMin ? warn("disk", text, "free disk space soon") : ok("disk", text);
}

/**
 * Checks for files with a future modification time, which means that the clock was set back. Change vectors and
 * certificates depend on the clock.
 */
function times(path: string): Finding {
  const system = join(path, "System", "MANIFEST");
  const newestMs = existsSync(system) ? statSync(system).mtimeMs : 0;
  return newestMs > Date.now() + clockMsMax
    ? fail(
        "time",
        `${system} was modified at ${new Date(newestMs).toISOString()}`,
        "the clock is slow: correct it",
      )
    : ok("time", new Date().toISOString());
}

async function certificates(config: Config, findings: Finding[]): Promise<void> {
  if (config.serverUrl.protocol === "http:") {
    findings.push(
      warn(
        "certificate",
        "none: the server is unsecured",
        "use https:// in ServerUrl where others can reach it",
      ),
    );
    return;
  }
  const own = join(resolve(config.dataFolder), "certs");
  const path = config.certificatePath ?? join(own, "server.crt");
  if (config.certificatePath === undefined && !existsSync(path)) {
    findings.push(ok("certificate", "will be generated at the first start"));
    return;
  }
  try {
    const loaded = await loadServerCertificate(path, config.certificatePassword);
    const endings = checkServerCertificate(loaded);
    const until = new Date(loaded.certificate.validTo).toISOString().slice(0, 10);
    if (endings.length === 0) findings.push(ok("certificate", `${path} is valid until ${until}`));
    for (const text of endings) findings.push(warn("certificate", text, "jackdaw cert renew"));
    for (const text of loaded.warnings) findings.push(warn("certificate", text, null));
    const host = (config.publicServerUrl ?? config.serverUrl).hostname.replace(/^\[|\]$/g, "");
    const isNamed = loaded.certificate.checkHost(host) ?? loaded.certificate.checkIP(host);
    const isEverywhere = host === "0.0.0.0" || host === "::";
    if (isNamed === undefined && !isEverywhere) {
      findings.push(
        warn(
          "certificate",
          `it does not include ${host}`,
          "clients will reject it: install a certificate for this host",
        ),
      );
    }
  } catch (error) {
    findings.push(fail("certificate", (error as Error).message, null));
  }
  const names = existsSync(own) ? readdirSync(own) : [];
  for (const name of names.filter((one) => /^(ca|admin\.client\..*)\.crt$/.test(one))) {
    findings.push(dates(join(own, name)));
  }
}

/** Checks the validity of a generated CA or administrator certificate. */
function dates(path: string): Finding {
  try {
    const untilMs = Date.parse(new X509Certificate(readFileSync(path)).validTo);
    const text = `${path} is valid until ${new Date(untilMs).toISOString().slice(0, 10)}`;
    const advice = path.endsWith("ca.crt")
      ? "move the folder certs away, restart, and distribute the new files to all clients"
      : "create a new certificate with 'jackdaw cert make NAME --clearance admin'";
    if (untilMs < Date.now()) return fail("certificate", text, advice);
    return untilMs - Date.now() < warningDays * dayMs
      ? warn("certificate", text, advice)
      : ok("certificate", text);
  } catch (error) {
    return fail("certificate", `${path} cannot be read (${(error as Error).message})`, null);
  }
}

/** Checks that a server can listen on the configured port. */
async function port({ serverUrl }: Config, findings: Finding[]): Promise<void> {
  const isSecure = serverUrl.protocol === "https:";
  const number = serverUrl.port === "" ? (isSecure ? 443 : 80) : Number(serverUrl.port);
  const host = serverUrl.hostname.replace(/^\[|\]$/g, "");
  const listener = createServer();
  try {
    await new Promise<void>((done, failed) => {
      listener.once("error", failed);
      listener.listen({ port: number, host, exclusive: true }, done);
    });
    findings.push(ok("port", `${serverUrl.origin} is free`));
  } catch (error) {
    findings.push(fail("port", listenErrorOf(serverUrl.origin, "ServerUrl", error).message, null));
  } finally {
    listener.close();
  }
}
