/**
 * The configuration of a server, parsed and checked from the given settings. Pure: all inputs are passed in.
 *
 * Invariants:
 * - An invalid value or an unknown name prevents the start. A setting of RavenDB without effect here is reported in a
 *   line.
 */
import { availableParallelism } from "node:os";
import { folderSilenceMsMin } from "../../engine/base/limits.ts";
import { checkNodeTag, nodeTagDefault } from "../../engine/base/names.ts";
import type { WorkLimits } from "../../engine/base/scheduling/work-budget.ts";
import type { ScriptSettings } from "../../engine/engine.ts";
import { type ClusterSettings, readCluster } from "./cluster-settings.ts";
import {
  type AuditSettings,
  type LogSettings,
  logFormats,
  logLevels,
  type MonitoringSettings,
  readWord,
} from "./log-settings.ts";
import { nearestName } from "./nearest-name.ts";
import { type GivenSetting, readSettings, type SettingSources } from "./setting-sources.ts";
import { type SettingName, settings } from "./setting-table.ts";
import { StartError } from "./start-error.ts";
import { unsupportedSetting } from "./unsupported-settings.ts";

export type UnsecuredAccess = "None" | "Local" | "PrivateNetwork" | "PublicNetwork";

export interface Config {
  readonly serverUrl: URL;
  readonly tcpUrl: URL | undefined;
  readonly publicServerUrl: URL | undefined;
  readonly publicTcpUrl: URL | undefined;
  /** This node's tag in change vectors and replies. */
  readonly nodeTag: string;
  /** How logs are replicated, or undefined on a single node. */
  readonly cluster: ClusterSettings | undefined;
  /** Maximum absence of a node for which the streams retain messages, in milliseconds. */
  readonly trimAfterAbsenceMs: number;
  readonly dataFolder: string;
  readonly runInMemory: boolean;
  readonly studioPath: string | undefined;
  readonly certificatePath: string | undefined;
  /** Undefined if not given, which differs from empty. */
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
  /** Time without a heartbeat from this process after which another process may take its data folder, in milliseconds. */
  readonly folderSilenceMs: number;
  /** Idle time after which a database is closed, and how often that is checked. */
  readonly databaseIdleMs: number;
  readonly databaseIdleCheckMs: number;
  readonly tombstoneCleanupIntervalMs: number;
  /** Folder that must contain all backups, or undefined for any. */
  readonly backupRoot: string | undefined;
  /** Number of threads for TLS and HTTP; 0 runs both on the engine thread. */
  readonly httpThreads: number;
  /** The process's memory budget (engine/base/memory/memory-budget.ts), or undefined to derive it from the machine. */
  readonly memoryBytesMax: number | undefined;
  /** Every given setting, under its known or given name, including those without effect. */
  readonly given: ReadonlyMap<string, GivenSetting>;
}

/** Maximum number of HTTP threads. */
const httpThreadsMax = 4;

export interface HttpLimits {
  readonly bodyBytesMax: number;
  /** Maximum size of a body that contains instructions instead of data to store, in bytes. */
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
  /** Maximum size of unread replies and of bodies being collected, over the whole process, in bytes. */
  readonly heldReplyBytesMax: number;
  readonly heldBodyBytesMax: number;
  readonly compressReplies: boolean;
}

interface LoadedConfig {
  readonly config: Config;
  /** Lines for the operator about requested features that are missing. */
  readonly warnings: readonly string[];
  /** Lines about harmless settings without effect, which test drivers pass to every server. */
  readonly notes: readonly string[];
}

/** @throws StartError setting-invalid, url-scheme-unknown */
export function loadConfig(sources: SettingSources): LoadedConfig {
  const given = readSettings(sources);
  const { warnings, notes } = linesAbout([...given.keys()]);
  return { config: buildConfig(given), warnings: [...listWarnings(given), ...warnings], notes };
}

/**
 * Returns one line for each group of settings without effect. @throws StartError setting-invalid for a name that is neither
 * a setting nor one of RavenDB's
 */
function linesAbout(names: readonly string[]): Pick<LoadedConfig, "warnings" | "notes"> {
  const groups = new Map<string, { readonly names: string[]; readonly isWarning: boolean }>();
  for (const name of names) {
    if (Object.hasOwn(settings, name)) continue;
    const foreign = unsupportedSetting(name);
    if (foreign === undefined) throw unknownSetting(name);
    const group = groups.get(foreign.reason) ?? { names: [], isWarning: foreign.isWarning };
    groups.set(foreign.reason, group);
    group.names.push(name);
  }
  const warnings: string[] = [];
  const notes: string[] = [];
  for (const [reason, { names: idle, isWarning }] of groups) {
    const lines = isWarning ? warnings : notes;
    lines.push(`Without effect here: ${idle.join(", ")} (${reason}).`);
  }
  return { warnings, notes };
}

function unknownSetting(name: string): StartError {
  const near = nearestName(name, Object.keys(settings));
  const hint = near === undefined ? "" : `; did you mean '${near}'?`;
  return new StartError(
    "setting-invalid",
    `Unknown setting '${name}'${hint === "" ? ";" : hint} 'jackdaw help serve' lists all`,
  );
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
    tcpUrl: readUrl("ServerUrl.Tcp", tcpUrlText(firstUrl(text("ServerUrl.Tcp")), serverUrl)),
    publicServerUrl: readUrl("PublicServerUrl", text("PublicServerUrl")),
    publicTcpUrl: readUrl("PublicServerUrl.Tcp", text("PublicServerUrl.Tcp")),
    nodeTag: readNodeTag(text("Cluster.NodeTag") ?? nodeTagDefault),
    cluster: readCluster(text),
    trimAfterAbsenceMs: number("Cluster.TrimAfterAbsenceInHours") * 3_600_000,
    dataFolder: text("DataDir") || "./data",
    runInMemory: readBool("RunInMemory", text("RunInMemory")),
    studioPath: text("Studio.Path") || undefined,
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
    httpThreads: readHttpThreads(text("Http.Threads")),
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
    `Server.FolderSilenceInSec must be at least ${folderSilenceMsMin / 1000}: a busy process must not be mistaken for a dead one`,
  );
}

/** Below this limit, running work would wait for memory that it holds itself. */
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

/**
 * The number of HTTP threads; 0: HTTP runs on the engine's thread. Windows cannot share a listening socket, so that one
 * thread is the maximum there. @throws StartError setting-invalid
 */
function readHttpThreads(text: string | undefined): number {
  const shareableMax = process.platform === "win32" ? 1 : httpThreadsMax;
  if (text === undefined) return Math.min(availableParallelism() - 1, shareableMax);
  const count = readNumber("Http.Threads", text);
  if (count > httpThreadsMax) {
    throw new StartError("setting-invalid", `Http.Threads must be at most ${httpThreadsMax}`);
  }
  return Math.min(count, shareableMax);
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

/** RavenDB accepts several URLs, separated by semicolons; this server uses only the first. */
function firstUrl(text: string | undefined): string | undefined {
  return text?.split(";")[0]?.trim();
}

/** A port alone, as in RavenDB's image, is combined with the host of `ServerUrl`. */
function tcpUrlText(text: string | undefined, { hostname }: URL): string | undefined {
  return text !== undefined && /^\d+$/.test(text) ? `tcp://${hostname}:${text}` : text;
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
  // RavenDB's value is a list of flags; the widest one applies.
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
