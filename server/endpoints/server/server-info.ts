/** Server information: version, nodes, routes, statistics. Shapes are those of RavenDB 7.2.7. */
import { readFile } from "node:fs/promises";
import { arch, cpus, platform, release, totalmem } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterMember, ClusterView } from "../../cluster/cluster-view.ts";
import { isHeard, ownState } from "../../cluster/topology.ts";
import { dateText, timeSpanText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { databaseMissing, forbidden } from "../../http/request-error.ts";
import { interfaceVersion } from "../../http/response.ts";
import { type Context, databasePrefix, type Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { hasPermission, refusalMessage } from "../../security/access.ts";
import { productVersion } from "../../settings/product-version.ts";
import { usedCertificates } from "./certificates.ts";

/** Maximum delay of `getDelayed`, in milliseconds. */
const delayMsMax = 60_000;

export const serverInfoRoutes: readonly Route[] = [
  {
    kind: "server",
    method: "GET",
    path: "/build/version",
    access: "valid-user",
    inPackage: true,
    handle: getBuildVersion,
  },
  {
    kind: "server",
    method: "GET",
    path: "/cluster/node-info",
    access: "valid-user",
    inPackage: true,
    handle: getNodeInfo,
  },
  {
    kind: "server",
    method: "GET",
    path: "/cluster/topology",
    access: "valid-user",
    inPackage: true,
    handle: getClusterTopology,
  },
  { kind: "server", method: "GET", path: "/info/tcp", access: "valid-user", handle: getTcpInfo },
  {
    kind: "server",
    method: "GET",
    path: "/info/remote-task/tcp",
    access: "valid-user",
    copies: "leader",
    about: "database",
    handle: getRemoteTaskTcpInfo,
  },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/info/tcp",
    access: "read",
    copies: "leader",
    handle: getTcpInfo,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/test/delay",
    access: "operator",
    handle: getDelayed,
  },
  {
    kind: "server",
    method: "GET",
    path: "/debug/routes",
    access: "valid-user",
    inPackage: true,
    handle: getRoutes,
  },
  {
    kind: "server",
    method: "GET",
    path: "/debug/server-id",
    access: "valid-user",
    inPackage: true,
    handle: getServerId,
  },
  {
    kind: "server",
    method: "GET",
    path: "/license/status",
    access: "valid-user",
    inPackage: true,
    handle: getLicenseStatus,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/stats",
    access: "operator",
    inPackage: true,
    handle: getAdminStats,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/memory/stats",
    access: "operator",
    inPackage: true,
    handle: getMemoryStats,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/proc/stats",
    access: "operator",
    inPackage: true,
    handle: getProcessStats,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/proc/status",
    access: "operator",
    handle: getProcessStatus,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/cpu/stats",
    access: "operator",
    inPackage: true,
    handle: getProcessorTimes,
  },
];

const versionParts = interfaceVersion.split(".");
export const build = {
  BuildVersion: Number(versionParts[3]),
  ProductVersion: versionParts.slice(0, 2).join("."),
  CommitHash: `jackdaw ${productVersion}`,
  FullVersion: versionParts.slice(0, 3).join("."),
};
const gigabyte = 1024 ** 3;

function nodeDetails(): Readonly<Record<string, unknown>> {
  const memory = totalmem() / gigabyte;
  return {
    NumberOfCores: cpus().length,
    InstalledMemoryInGb: memory,
    UsableMemoryInGb: memory,
    BuildInfo: { ...build, AssemblyVersion: interfaceVersion },
    OsInfo: {
      Type: platform() === "darwin" ? "macOS" : platform() === "win32" ? "Windows" : "Linux",
      FullName: `${platform()} ${release()}`,
      Version: release(),
      BuildVersion: release(),
      Is64Bit: arch().endsWith("64"),
    },
  };
}

/** The first member of several admin replies. */
export function replyMetadata(server: ServerServices): Readonly<Record<string, unknown>> {
  return {
    DateTime: dateText(new Date()),
    WebUrl: server.address.url,
    NodeTag: server.config.nodeTag,
  };
}

function leadershipReason(server: ServerServices): string {
  return `Leader, I'm the only one in the cluster, so I'm the leader (at ${americanText(server.startedAt)})`;
}

/** 11/24/2026 10:00:00 */
function americanText(at: Date): string {
  const [date = "", time = ""] = dateText(at).split(/[T.]/);
  const [year, month, day] = date.split("-");
  return `${month}/${day}/${year} ${time}`;
}

/** GET /build/version: the version of RavenDB's interface that this server speaks */
function getBuildVersion(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, build, { "server-startup-time": dateText(server.startedAt) });
}

/** GET /cluster/node-info: this node */
function getNodeInfo(exchange: Exchange, { server }: Context): void {
  const { cluster } = server;
  const state = cluster === undefined ? "Leader" : ownState(cluster);
  exchange.replyJson(200, {
    NodeTag: server.config.nodeTag,
    TopologyId: cluster === undefined ? server.topologyId : cluster.topologyId,
    Certificate: server.certificates.serverCertificate?.raw.toString("base64") ?? null,
    ClusterStatus: null,
    ...nodeDetails(),
    ServerId: server.serverId,
    CurrentState: state,
    ServerRole: state === "Passive" ? "None" : "Member",
    HasFixedPort: server.config.serverUrl.port !== "0",
    ServerSchemaVersion: 71000,
    LastStateChangeReason: stateReason(server),
  });
}

/** Returns the address that this client used, because clients of a single node continue with it. */
function getClusterTopology(exchange: Exchange, { server }: Context): void {
  const { Topology, Leader, NodeTag, CurrentTerm, NodeLicenseDetails, Status, CurrentState } =
    clusterTopologyOf(server, exchange.baseUrl);
  const { Etag } = Topology;
  const leadingMs = server.clusterHistory?.leadingMs;
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    Topology: {
      TopologyId: Topology.TopologyId,
      AllNodes: Topology.Members,
      Members: Topology.Members,
      Promotables: {},
      Watchers: {},
      LastNodeId: Topology.LastNodeId,
      Etag,
    },
    Etag,
    Leader,
    LeaderShipDuration:
      leadingMs === undefined ? Date.now() - server.startedAt.getTime() : leadingMs,
    CurrentState,
    NodeTag,
    ServerRole: CurrentState === "Passive" ? "None" : "Member",
    CurrentTerm,
    NodeLicenseDetails,
    LastStateChangeReason: stateReason(server),
    Status,
  });
}

function stateReason(server: ServerServices): string {
  const { clusterHistory } = server;
  if (clusterHistory === undefined) return leadershipReason(server);
  const { state, atMs, reason } = clusterHistory.current;
  return `${state}, ${reason} (at ${americanText(new Date(atMs))})`;
}

/** Returns the topology as its notification contains it. `url` is that of a single node. */
export function clusterTopologyOf(server: ServerServices, url: string) {
  const { cluster, config } = server;
  const { nodeTag } = config;
  const members =
    cluster === undefined
      ? [[nodeTag, url] as const]
      : cluster.members().map((member) => [member.tag, member.url] as const);
  return {
    Topology: {
      TopologyId: cluster === undefined ? server.topologyId : cluster.topologyId,
      Members: Object.fromEntries(members),
      Promotables: {},
      Watchers: {},
      LastNodeId: members.at(-1)?.[0] ?? nodeTag,
      Etag: cluster?.index ?? 1,
    },
    Leader: cluster === undefined ? nodeTag : cluster.leaderTag,
    NodeTag: nodeTag,
    Status: cluster === undefined ? {} : otherNodes(cluster),
    CurrentTerm: cluster?.epoch ?? 1,
    NodeLicenseDetails: {
      [nodeTag]: { UtilizedCores: cpus().length, MaxUtilizedCores: null, ...nodeDetails() },
    },
    CurrentState: cluster === undefined ? "Leader" : ownState(cluster),
  };
}

/** Returns the states of the other nodes, according to their heartbeats. */
function otherNodes(cluster: ClusterView): Readonly<Record<string, unknown>> {
  const others = cluster.members().filter(({ tag }) => tag !== cluster.tag);
  const row = ({ tag }: ClusterMember) => {
    const ageMs = cluster.lastHeartbeat(tag)?.ageMs;
    const Connected = isHeard(cluster, tag);
    return {
      Name: tag,
      Connected,
      ErrorDetails: Connected ? null : silenceText(tag, ageMs),
      LastReply: ageMs === undefined ? null : dateText(new Date(Date.now() - ageMs)),
    };
  };
  return Object.fromEntries(others.map((member) => [member.tag, row(member)]));
}

function silenceText(tag: string, ageMs: number | undefined): string {
  if (ageMs === undefined) return `Node ${tag} has sent no heartbeats since this node was started.`;
  return `Node ${tag} has sent no heartbeats for ${Math.round(ageMs / 1000)} s.`;
}

/** The address of the subscription protocol. */
function getTcpInfo(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, tcpInfo(exchange, server));
}

/** GET /info/remote-task/tcp?database=…&remote-task=…: the address of the subscription protocol, for a task elsewhere */
function getRemoteTaskTcpInfo(exchange: Exchange, { server }: Context): void {
  const database = exchange.query.required("database");
  exchange.query.required("remote-task");
  if (!hasPermission(exchange.identity, database, 1)) {
    throw forbidden(refusalMessage(exchange.identity, undefined, database));
  }
  const isVerified = exchange.query.bool("verify-database", false);
  if (isVerified && !server.databases.has(database)) throw databaseMissing(database);
  exchange.replyJson(200, tcpInfo(exchange, server));
}

/** The TCP address of this server, or its port on the host name that the client used. */
function tcpInfo(exchange: Exchange, server: ServerServices): Readonly<Record<string, unknown>> {
  const { tcpUrl, tcpPort } = server.address;
  const url = tcpUrl ?? `tcp://${exchange.authority.replace(/:\d*$/, "")}:${tcpPort}`;
  return {
    Url: url,
    Certificate: server.certificates.serverCertificate?.raw.toString("base64") ?? null,
    NodeTag: server.config.nodeTag,
    ServerId: server.serverId,
    Urls: [url],
  };
}

/** GET /admin/test/delay?value=…: 200 after that many milliseconds, for testing client timeouts */
async function getDelayed(exchange: Exchange): Promise<void> {
  const delayMs = exchange.query.int("value", undefined);
  if (delayMs === undefined) exchange.query.required("value");
  await sleep(Math.min(Math.max(0, delayMs ?? 0), delayMsMax), undefined, {
    signal: exchange.signal,
  }).catch(() => undefined); // the client disconnected
  exchange.reply(200);
}

/** Every route, with methods and access level: those whose replies are in the info packages, and the others. */
function getRoutes(exchange: Exchange, { server }: Context): void {
  const paths = new Map<string, Route[]>();
  for (const route of server.routes.routes) {
    const path = route.path.replace(databasePrefix, "/databases/*/");
    paths.set(path, [...(paths.get(path) ?? []), route]);
  }
  const sorted = [...paths].sort(([one], [other]) => (one < other ? -1 : 1));
  const rows = (isDebug: boolean) =>
    sorted
      .filter(([, routes]) => routes.some(({ inPackage }) => inPackage === true) === isDebug)
      .map(([Path, routes]) => ({
        Path,
        Methods: routes.map(({ method }) => method).join(", "),
        Access: [...new Set(routes.map(({ access }) => access))].join(", "),
      }));
  exchange.replyJson(200, { Debug: rows(true), Production: rows(false) });
}

/** GET /debug/server-id: the id that this server generated at its first start */
function getServerId(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, { "@metadata": replyMetadata(server), ServerId: server.serverId });
}

/** No license exists: nothing is limited or expires. */
function getLicenseStatus(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, {
    Id: null,
    LicensedTo: null,
    Status: "No license is needed",
    Expired: false,
    UpgradeRequired: null,
    FirstServerStartDate: dateText(server.startedAt),
    Attributes: null,
    ErrorMessage: null,
    Type: "None",
    Version: null,
    Expiration: null,
    SubscriptionExpiration: null,
    MaxMemory: 0,
    MaxCores: cpus().length,
    MaxClusterSize: 1,
    ...features,
  });
}

/** Features of this server that RavenDB's Studio offers only with a licence. */
const features = {
  HasPeriodicBackup: true,
  HasCloudBackups: true,
  HasEncryptedBackups: true,
  HasClientConfiguration: true,
  HasReadOnlyCertificates: true,
  HasConcurrentDataSubscriptions: true,
  HasRevisionsInSubscriptions: true,
  HasTimeSeriesRollupsAndRetention: true,
  CanSetupDefaultRevisionsConfiguration: true,
} as const;

/** GET /admin/stats: the start time of the server, its numbers of databases and certificates, and the use of these */
function getAdminStats(exchange: Exchange, { server }: Context): void {
  const used = usedCertificates(server).map((one) => [one.Thumbprint, one.LastUsed]);
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    UpTime: timeSpanText(Date.now() - server.startedAt.getTime()),
    StartUpTime: dateText(server.startedAt),
    Databases: server.databases.names().length,
    Certificates: server.certificates.list().length,
    LastRequestTimePerCertificate: Object.fromEntries(used),
  });
}

/** GET /admin/debug/memory/stats: the memory of the process */
function getMemoryStats(exchange: Exchange, { server }: Context): void {
  const usage = process.memoryUsage();
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    WorkingSet: usage.rss,
    HeapTotal: usage.heapTotal,
    HeapUsed: usage.heapUsed,
    External: usage.external,
    ArrayBuffers: usage.arrayBuffers,
    PhysicalMemory: totalmem(),
    // Files are read, not mapped.
    Mappings: [],
  });
}

/** GET /admin/debug/proc/stats: the processor time of the process */
function getProcessStats(exchange: Exchange, { server }: Context): void {
  const usage = process.resourceUsage();
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    ProcessId: process.pid,
    NodeVersion: process.version,
    UpTime: timeSpanText(process.uptime() * 1000),
    UserProcessorTimeMs: Math.round(usage.userCPUTime / 1000),
    SystemProcessorTimeMs: Math.round(usage.systemCPUTime / 1000),
    MaxWorkingSet: usage.maxRSS * 1024,
  });
}

/** GET /admin/debug/proc/status: the status of the process as Linux reports it; empty on other systems */
async function getProcessStatus(exchange: Exchange): Promise<void> {
  const text = await readFile("/proc/self/status", "utf8").catch(() => "");
  exchange.reply(200, { "content-type": "text/plain" }, text);
}

/** GET /admin/debug/cpu/stats: the processor time of the process; it has no thread pool of .NET */
function getProcessorTimes(exchange: Exchange, { server }: Context): void {
  const { user, system } = process.cpuUsage();
  const CpuStats = {
    ProcessName: "node",
    PrivilegedProcessorTime: timeSpanText(system / 1000),
    TotalProcessorTime: timeSpanText((user + system) / 1000),
    UserProcessorTime: timeSpanText(user / 1000),
  };
  const own = { CpuStats: [CpuStats], ThreadPoolStats: [] };
  exchange.replyJson(200, { "@metadata": replyMetadata(server), ...own });
}
