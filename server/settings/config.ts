/**
 * Settings under RavenDB's names, from flags, environment variables, a file, or defaults, in that order of precedence.
 * Pure: all inputs are passed in. `settingTable` is the one list of supported settings.
 *
 * Invariants:
 * - Names are case-insensitive; `RAVEN_Security_Certificate_Path` is `Security.Certificate.Path`.
 * - A value that cannot be parsed is an error; an unknown name, or one without effect here, is reported on a line.
 */
import {
  batchCommandsMax,
  folderSilenceMs,
  folderSilenceMsMin,
  scriptBytesMax,
  scriptMsMax,
  scriptStepsMax,
} from "../../engine/base/limits.ts";
import { type WorkLimits, workLimits } from "../../engine/base/work-budget.ts";
import { checkNodeTag, nodeTagDefault, type ScriptSettings } from "../../engine/engine.ts";
import {
  type AuditSettings,
  type LogSettings,
  logFormats,
  logLevels,
  type MonitoringSettings,
  readWord,
} from "./log-settings.ts";
import { StartError } from "./start-error.ts";

type Kind = "text" | "bool" | "count" | "seconds" | "url";

interface Setting {
  readonly kind: Kind;
  /** As text; undefined: not set. */
  readonly fallback: string | undefined;
  readonly isSecret?: true;
}

/** Every supported setting. Counts are whole numbers >= 0; seconds may have a fraction. */
export const settingTable = {
  ServerUrl: { kind: "url", fallback: "https://127.0.0.1:8443" },
  "ServerUrl.Tcp": { kind: "url", fallback: undefined },
  PublicServerUrl: { kind: "url", fallback: undefined },
  "PublicServerUrl.Tcp": { kind: "url", fallback: undefined },
  "Cluster.NodeTag": { kind: "text", fallback: nodeTagDefault },
  DataDir: { kind: "text", fallback: "./data" },
  RunInMemory: { kind: "bool", fallback: "false" },
  "Security.Certificate.Path": { kind: "text", fallback: undefined },
  "Security.Certificate.Password": { kind: "text", fallback: undefined, isSecret: true },
  "Security.UnsecuredAccessAllowed": { kind: "text", fallback: "Local" },
  "Security.WellKnownCertificates.Admin": { kind: "text", fallback: "" },
  "Testing.ParentProcessId": { kind: "count", fallback: undefined },
  "Http.MaxRequestBodySizeInMb": { kind: "count", fallback: "160" },
  "Http.MaxRequestHeadersSizeInKb": { kind: "count", fallback: "32" },
  "Http.MaxRequestLineSizeInKb": { kind: "count", fallback: "16" },
  "Http.Http2.MaxStreamsPerConnection": { kind: "count", fallback: "250" },
  "Http.MaxConnections": { kind: "count", fallback: "10000" },
  "Http.MaxRequestsInFlight": { kind: "count", fallback: "4096" },
  "Http.KeepAliveTimeoutInSec": { kind: "seconds", fallback: "130" },
  "Http.HandshakeTimeoutInSec": { kind: "seconds", fallback: "10" },
  "Http.RequestHeadersTimeoutInSec": { kind: "seconds", fallback: "30" },
  "Http.RequestBodyIdleTimeoutInSec": { kind: "seconds", fallback: "120" },
  "Http.MinDataRateBytesPerSec": { kind: "count", fallback: "240" },
  "Http.MinDataRateGracePeriodInSec": { kind: "seconds", fallback: "30" },
  "Http.ResponseStallTimeoutInSec": { kind: "seconds", fallback: "60" },
  "Http.MaxJsonRequestSizeInMb": { kind: "count", fallback: "2" },
  "Http.MaxBatchCommands": { kind: "count", fallback: String(batchCommandsMax) },
  "Http.MaxHeldRepliesInMb": { kind: "count", fallback: "96" },
  "Http.MaxHeldBodiesInMb": { kind: "count", fallback: "128" },
  "Http.UseResponseCompression": { kind: "bool", fallback: "true" },
  "Memory.LimitInMb": { kind: "count", fallback: undefined },
  "Query.MaxWorkInMillions": { kind: "count", fallback: `${workLimits.unitsMax / 1e6}` },
  "Query.MaxMemoryInMb": { kind: "count", fallback: `${workLimits.bytesMax / 1024 / 1024}` },
  "Query.MaxClauseCount": { kind: "count", fallback: `${workLimits.clausesMax}` },
  "Query.MaxTextLengthInKb": { kind: "count", fallback: `${workLimits.textLengthMax / 1024}` },
  "Query.MaxRequestSizeInMb": {
    kind: "count",
    fallback: `${workLimits.requestBytesMax / 1024 / 1024}`,
  },
  "Server.ShutdownTimeoutInSec": { kind: "seconds", fallback: "7" },
  "Server.FolderSilenceInSec": { kind: "seconds", fallback: String(folderSilenceMs / 1000) },
  "Databases.MaxIdleTimeInSec": { kind: "seconds", fallback: "900" },
  "Databases.FrequencyToCheckForIdleInSec": { kind: "seconds", fallback: "30" },
  "Tombstones.CleanupIntervalInMin": { kind: "seconds", fallback: "5" },
  "Backup.LocalRootPath": { kind: "text", fallback: undefined },
  "Logs.Path": { kind: "text", fallback: undefined },
  "Logs.MinLevel": { kind: "text", fallback: "Info" },
  "Logs.Format": { kind: "text", fallback: "auto" },
  "Logs.ArchiveAboveSizeInMb": { kind: "count", fallback: "128" },
  "Logs.MaxArchiveDays": { kind: "count", fallback: "3" },
  "Logs.MaxArchiveFiles": { kind: "count", fallback: undefined },
  "Logs.EnableArchiveFileCompression": { kind: "bool", fallback: "false" },
  "Logs.Requests": { kind: "bool", fallback: "false" },
  "Logs.SlowQueryInMs": { kind: "count", fallback: "1000" },
  "Logs.SlowWriteInMs": { kind: "count", fallback: "1000" },
  "Security.AuditLog.FolderPath": { kind: "text", fallback: undefined },
  "Security.AuditLog.RetentionTimeInHours": { kind: "count", fallback: "8760" },
  "Security.AuditLog.ArchiveAboveSizeInMb": { kind: "count", fallback: "128" },
  "Security.AuditLog.EnableArchiveFileCompression": { kind: "bool", fallback: "false" },
  "Monitoring.ServerUrl": { kind: "url", fallback: undefined },
  "Monitoring.MaxDatabases": { kind: "count", fallback: "100" },
  "Patching.MaxStepsForScript": { kind: "count", fallback: `${scriptStepsMax}` },
  "Patching.MaxTimeForScriptInMs": { kind: "count", fallback: `${scriptMsMax}` },
  "Patching.MaxMemoryForScriptInMb": {
    kind: "count",
    fallback: `${scriptBytesMax / 1024 / 1024}`,
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settingTable;
const settings: Readonly<Record<SettingName, Setting>> = settingTable;

/** Operators who configure an audit log may rely on it, so this one is a warning. */
const auditPrefix = "security.auditlog.";

/**
 * RavenDB settings that are accepted, kept and shown but have no effect here: lower-case name prefix and reason. Each
 * one given is reported on a line with its reason.
 */
const withoutEffect: Readonly<Record<string, string>> = {
  "license.": "there is no licence",
  "setup.": "there is no setup wizard",
  "logs.": "the log has other settings",
  "features.": "what is there is always on",
  "testing.": "they are for RavenDB's own tests",
  "cluster.": "there are no clusters",
  "indexing.": "indexes have limits of their own",
  "databases.": "databases have limits of their own",
  "memory.": "memory has limits of its own",
  "storage.": "the storage is another one",
  [auditPrefix]: "the audit log has other settings",
  "backup.": "backups have no other settings",
  "updates.": "nothing is updated by itself",
};

export type UnsecuredAccess = "None" | "Local" | "PrivateNetwork" | "PublicNetwork";

export interface Config {
  readonly serverUrl: URL;
  readonly tcpUrl: URL | undefined;
  readonly publicServerUrl: URL | undefined;
  readonly publicTcpUrl: URL | undefined;
  /** This node's tag in change vectors and replies. */
  readonly nodeTag: string;
  readonly dataFolder: string;
  readonly runInMemory: boolean;
  readonly certificatePath: string | undefined;
  /** undefined: not given, which differs from empty. */
  readonly certificatePassword: string | undefined;
  readonly unsecuredAccessAllowed: UnsecuredAccess;
  /** SHA-1 thumbprints in capitals: certificates that are cluster admins without being registered. */
  readonly wellKnownAdmins: readonly string[];
  readonly parentProcessId: number | undefined;
  readonly logs: LogSettings;
  readonly auditLog: AuditSettings;
  readonly monitoring: MonitoringSettings;
  readonly limits: HttpLimits;
  /** Limits of one script run. */
  readonly scripts: ScriptSettings;
  /** Limits of one query. */
  readonly queries: WorkLimits;
  readonly shutdownTimeoutMs: number;
  /** Milliseconds without a heartbeat from this process after which another may take its data folder. */
  readonly folderSilenceMs: number;
  /** Idle time after which a database is closed, and how often that is checked. */
  readonly databaseIdleMs: number;
  readonly databaseIdleCheckMs: number;
  readonly tombstoneCleanupIntervalMs: number;
  /** The folder that all backups must be in; undefined: any. */
  readonly backupRoot: string | undefined;
  /** The process's memory budget (engine/base/memory-budget.ts); undefined: derived from the machine. */
  readonly memoryBytesMax: number | undefined;
  /** Every setting that was given, under its known or given name, including those without a meaning in server/. */
  readonly given: ReadonlyMap<string, GivenSetting>;
}

export interface HttpLimits {
  readonly bodyBytesMax: number;
  /** Bytes of a body that holds instructions rather than data to be stored. */
  readonly jsonBytesMax: number;
  readonly batchCommandsMax: number;
  readonly headerBytesMax: number;
  readonly targetLengthMax: number;
  readonly streamsPerConnectionMax: number;
  readonly connectionCountMax: number;
  readonly requestsInFlightMax: number;
  readonly keepAliveMs: number;
  readonly handshakeMs: number;
  readonly headersMs: number;
  readonly bodyIdleMs: number;
  readonly bodyBytesPerSecondMin: number;
  readonly bodyRateGraceMs: number;
  readonly stallMs: number;
  /** Bytes of replies not yet read by their clients, and of bodies being collected, over the whole process. */
  readonly heldReplyBytesMax: number;
  readonly heldBodyBytesMax: number;
  readonly compressReplies: boolean;
}

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

/** Where settings come from. */
export interface SettingSources {
  /** Arguments after the program name. */
  readonly argv: readonly string[];
  readonly environment: Variables;
  /** Reads a settings file. @throws as node:fs does when it cannot be read */
  readonly readFile: (path: string) => string;
  /** The file to read when no `--config-path` is given, if it exists. */
  readonly defaultFile: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** Lines for the operator: mistakes, and requested features that are missing. */
  readonly warnings: readonly string[];
  /** Lines about settings without effect that do not matter: test drivers pass such settings to every server. */
  readonly notes: readonly string[];
}

/** @throws StartError setting-invalid, url-scheme-unknown */
export function loadConfig(sources: SettingSources): LoadedConfig {
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

  const { warnings, notes } = linesAbout([...given.keys()]);
  return { config: buildConfig(given), warnings: [...listWarnings(given), ...warnings], notes };
}

/** One line for all unknown settings, and one for each group of settings without effect. */
function linesAbout(names: readonly string[]): Pick<LoadedConfig, "warnings" | "notes"> {
  const unknown: string[] = [];
  const idle = new Map<string, string[]>();
  for (const name of names) {
    const lower = name.toLowerCase();
    if (knownNames.has(lower)) continue;
    const prefix = Object.keys(withoutEffect).find((one) => lower.startsWith(one));
    if (prefix === undefined) unknown.push(name);
    else idle.set(prefix, [...(idle.get(prefix) ?? []), name]);
  }
  const warnings: string[] = [];
  const notes: string[] = [];
  for (const [prefix, settingNames] of idle) {
    const lines = prefix === auditPrefix ? warnings : notes;
    lines.push(`Without effect here: ${settingNames.join(", ")} (${withoutEffect[prefix]}).`);
  }
  if (unknown.length > 0) {
    warnings.push(`Unknown settings are ignored: ${unknown.join(", ")}. Check their spelling.`);
  }
  return { warnings, notes };
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

/** Variables that carry the prefix but are not settings. */
const otherVariables = new Set(["raven_args", "raven_settings"]);

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

function buildConfig(given: ReadonlyMap<string, GivenSetting>): Config {
  const text = (name: SettingName) => given.get(name)?.value ?? settings[name].fallback;
  const number = (name: SettingName) => readNumber(name, text(name));
  const serverUrl = readUrl("ServerUrl", firstUrl(text("ServerUrl"))) as URL;
  if (serverUrl.protocol !== "https:" && serverUrl.protocol !== "http:") {
    throw new StartError(
      "url-scheme-unknown",
      `ServerUrl ${text("ServerUrl")} has the scheme '${serverUrl.protocol.slice(0, -1)}'; ` +
        "use https:// or http://, e.g. --ServerUrl=https://127.0.0.1:8443",
    );
  }
  return {
    serverUrl,
    tcpUrl: readUrl("ServerUrl.Tcp", firstUrl(text("ServerUrl.Tcp"))),
    publicServerUrl: readUrl("PublicServerUrl", text("PublicServerUrl")),
    publicTcpUrl: readUrl("PublicServerUrl.Tcp", text("PublicServerUrl.Tcp")),
    nodeTag: readNodeTag(text("Cluster.NodeTag") ?? nodeTagDefault),
    dataFolder: text("DataDir") || "./data",
    runInMemory: readBool("RunInMemory", text("RunInMemory")),
    certificatePath: text("Security.Certificate.Path") || undefined,
    certificatePassword: text("Security.Certificate.Password"),
    unsecuredAccessAllowed: readUnsecuredAccess(text("Security.UnsecuredAccessAllowed")),
    wellKnownAdmins: (text("Security.WellKnownCertificates.Admin") ?? "")
      .split(/[;,\s]+/)
      .filter((thumbprint) => thumbprint !== "")
      .map((thumbprint) => thumbprint.toUpperCase()),
    parentProcessId:
      text("Testing.ParentProcessId") === undefined ? undefined : number("Testing.ParentProcessId"),
    logs: readLogs(number, text),
    auditLog: readAuditLog(number, text),
    monitoring: {
      url: readMonitoringUrl(text("Monitoring.ServerUrl")),
      databasesMax: number("Monitoring.MaxDatabases"),
    },
    limits: readLimits(number, text),
    scripts: {
      stepsMax: number("Patching.MaxStepsForScript"),
      msMax: number("Patching.MaxTimeForScriptInMs"),
      bytesMax: number("Patching.MaxMemoryForScriptInMb") * 1024 * 1024,
    },
    queries: {
      unitsMax: number("Query.MaxWorkInMillions") * 1e6,
      bytesMax: number("Query.MaxMemoryInMb") * 1024 * 1024,
      clausesMax: number("Query.MaxClauseCount"),
      textLengthMax: number("Query.MaxTextLengthInKb") * 1024,
      requestBytesMax: number("Query.MaxRequestSizeInMb") * 1024 * 1024,
    },
    shutdownTimeoutMs: number("Server.ShutdownTimeoutInSec") * 1000,
    folderSilenceMs: readSilence(number("Server.FolderSilenceInSec") * 1000),
    databaseIdleMs: number("Databases.MaxIdleTimeInSec") * 1000,
    databaseIdleCheckMs: Math.max(100, number("Databases.FrequencyToCheckForIdleInSec") * 1000),
    tombstoneCleanupIntervalMs: number("Tombstones.CleanupIntervalInMin") * 60_000,
    backupRoot: text("Backup.LocalRootPath") || undefined,
    memoryBytesMax: readMemoryLimit(text("Memory.LimitInMb")),
    given,
  };
}

/** @throws StartError setting-invalid */
function readNodeTag(tag: string): string {
  try {
    checkNodeTag(tag);
    return tag;
  } catch (error) {
    throw new StartError("setting-invalid", `Cluster.NodeTag: ${(error as Error).message}`);
  }
}

/** @throws StartError setting-invalid */
function readSilence(ms: number): number {
  if (ms >= folderSilenceMsMin) return ms;
  throw new StartError(
    "setting-invalid",
    `Server.FolderSilenceInSec must be at least ${folderSilenceMsMin / 1000}: a process that is only busy must not be taken for dead`,
  );
}

/** Below this limit, running work would wait for memory that only it holds. */
const memoryLimitMbMin = 16;

function readMemoryLimit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const megabytes = readNumber("Memory.LimitInMb", text);
  if (megabytes >= memoryLimitMbMin) return megabytes * 1024 * 1024;
  throw new StartError(
    "setting-invalid",
    `Memory.LimitInMb '${text}' must be a number >= ${memoryLimitMbMin}`,
  );
}

function readLimits(
  number: (name: SettingName) => number,
  text: (name: SettingName) => string | undefined,
): HttpLimits {
  return {
    bodyBytesMax: number("Http.MaxRequestBodySizeInMb") * 1024 * 1024,
    jsonBytesMax: number("Http.MaxJsonRequestSizeInMb") * 1024 * 1024,
    batchCommandsMax: number("Http.MaxBatchCommands"),
    headerBytesMax: number("Http.MaxRequestHeadersSizeInKb") * 1024,
    targetLengthMax: number("Http.MaxRequestLineSizeInKb") * 1024,
    streamsPerConnectionMax: number("Http.Http2.MaxStreamsPerConnection"),
    connectionCountMax: number("Http.MaxConnections"),
    requestsInFlightMax: number("Http.MaxRequestsInFlight"),
    keepAliveMs: number("Http.KeepAliveTimeoutInSec") * 1000,
    handshakeMs: number("Http.HandshakeTimeoutInSec") * 1000,
    headersMs: number("Http.RequestHeadersTimeoutInSec") * 1000,
    bodyIdleMs: number("Http.RequestBodyIdleTimeoutInSec") * 1000,
    bodyBytesPerSecondMin: number("Http.MinDataRateBytesPerSec"),
    bodyRateGraceMs: number("Http.MinDataRateGracePeriodInSec") * 1000,
    stallMs: number("Http.ResponseStallTimeoutInSec") * 1000,
    heldReplyBytesMax: number("Http.MaxHeldRepliesInMb") * 1024 * 1024,
    heldBodyBytesMax: number("Http.MaxHeldBodiesInMb") * 1024 * 1024,
    compressReplies: readBool("Http.UseResponseCompression", text("Http.UseResponseCompression")),
  };
}

type Reader<Value> = (name: SettingName) => Value;

function readLogs(number: Reader<number>, text: Reader<string | undefined>): LogSettings {
  const countMax = text("Logs.MaxArchiveFiles");
  const compression = "Logs.EnableArchiveFileCompression";
  return {
    minLevel: readWord("Logs.MinLevel", text("Logs.MinLevel"), logLevels),
    format: readWord("Logs.Format", text("Logs.Format"), logFormats),
    folder: text("Logs.Path") || undefined,
    archives: {
      aboveBytes: Math.max(1, number("Logs.ArchiveAboveSizeInMb")) * 1024 * 1024,
      keepMs: number("Logs.MaxArchiveDays") * 86_400_000,
      countMax: countMax === undefined ? undefined : number("Logs.MaxArchiveFiles"),
      isCompressed: readBool(compression, text(compression)),
    },
    hasRequests: readBool("Logs.Requests", text("Logs.Requests")),
    slowQueryMs: number("Logs.SlowQueryInMs"),
    slowWriteMs: number("Logs.SlowWriteInMs"),
  };
}

function readAuditLog(number: Reader<number>, text: Reader<string | undefined>): AuditSettings {
  const compression = "Security.AuditLog.EnableArchiveFileCompression";
  return {
    folder: text("Security.AuditLog.FolderPath") || undefined,
    archives: {
      aboveBytes: Math.max(1, number("Security.AuditLog.ArchiveAboveSizeInMb")) * 1024 * 1024,
      keepMs: number("Security.AuditLog.RetentionTimeInHours") * 3_600_000,
      countMax: undefined,
      isCompressed: readBool(compression, text(compression)),
    },
  };
}

/** @throws StartError setting-invalid */
function readMonitoringUrl(text: string | undefined): URL | undefined {
  const url = readUrl("Monitoring.ServerUrl", text);
  if (url === undefined || url.protocol === "http:") return url;
  throw new StartError(
    "setting-invalid",
    `Monitoring.ServerUrl '${text ?? ""}' must begin with http://: with TLS, metrics are served at ServerUrl`,
  );
}

/** Warns about lists of which only the first item is used. */
function listWarnings(given: ReadonlyMap<string, GivenSetting>): string[] {
  const urls: readonly SettingName[] = ["ServerUrl", "ServerUrl.Tcp"];
  return urls.flatMap((name) => {
    const [first, ...others] = (given.get(name)?.value ?? "").split(";");
    if (others.length === 0) return [];
    return `Without effect here: all of ${name} but its first address, ${first} (one is served).`;
  });
}

/** RavenDB accepts several URLs, separated by semicolons; only the first is served here. */
function firstUrl(text: string | undefined): string | undefined {
  return text?.split(";")[0]?.trim();
}

function readUrl(name: SettingName, text: string | undefined): URL | undefined {
  if (text === undefined || text === "") return undefined;
  try {
    return new URL(text);
  } catch (error) {
    throw new StartError(
      "setting-invalid",
      `${name} '${text}' is not a URL; write scheme, host and port, e.g. https://127.0.0.1:8443`,
      { cause: error },
    );
  }
}

function readBool(name: SettingName, text: string | undefined): boolean {
  const lower = text?.toLowerCase();
  if (lower === "true") return true;
  if (lower === "false" || lower === undefined || lower === "") return false;
  throw new StartError("setting-invalid", `${name} '${text}' must be true or false`);
}

function readNumber(name: SettingName, text: string | undefined): number {
  const value = Number(text);
  const isWhole = settings[name].kind === "seconds" || Number.isInteger(value);
  if (text === undefined || text.trim() === "" || !isWhole || !(value >= 0) || value > 2 ** 31) {
    throw new StartError("setting-invalid", `${name} '${text ?? ""}' must be a number >= 0`);
  }
  return value;
}

function readUnsecuredAccess(text: string | undefined): UnsecuredAccess {
  const known: readonly UnsecuredAccess[] = ["None", "Local", "PrivateNetwork", "PublicNetwork"];
  // RavenDB's value is a list of flags; the widest one counts.
  const parts = (text ?? "").split(",").map((part) => part.trim().toLowerCase());
  let widest: UnsecuredAccess | undefined;
  for (const access of known) {
    if (parts.includes(access.toLowerCase())) widest = access;
  }
  if (widest === undefined) {
    throw new StartError(
      "setting-invalid",
      `Security.UnsecuredAccessAllowed '${text ?? ""}' must be one of ${known.join(", ")}`,
    );
  }
  return widest;
}
