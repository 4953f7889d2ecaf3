/** Starts a server from its settings, and stops it. Independent of the process: no arguments, signals or exit codes. */
import { randomUUID } from "node:crypto";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { bareHost } from "../../certs/hosts.ts";
import { setWorkLimits } from "../../engine/base/scheduling/work-budget.ts";
import { type FolderReplication, nodeEnvironment, setScriptLimits } from "../../engine/engine.ts";
import { backupFigures } from "../backups/backup-figures.ts";
import { Backups } from "../backups/backups.ts";
import type { ClusterView } from "../cluster/cluster-view.ts";
import { CommandIndex } from "../databases/command-index.ts";
import { HttpService } from "../listening/http-service.ts";
import { AuditLog } from "../logging/audit-log.ts";
import { type Log, silentLog } from "../logging/log.ts";
import { Health } from "../monitoring/health.ts";
import type { ConnectionKind, MetricsHost } from "../monitoring/metrics.ts";
import { Monitoring } from "../monitoring/monitoring.ts";
import { RequestObserver } from "../monitoring/request-observer.ts";
import { Dispatcher } from "../routing/dispatcher.ts";
import type { Route } from "../routing/route.ts";
import { RouteTable } from "../routing/router.ts";
import type { ServerServices } from "../routing/services.ts";
import { CertificateStore } from "../security/certificate-store.ts";
import {
  type CertificateReports,
  PresentedCertificate,
} from "../security/presented-certificate.ts";
import type { ServerCertificate } from "../security/server-certificate.ts";
import type { Config, UnsecuredAccess } from "../settings/config.ts";
import { listenErrorOf } from "../settings/listen-error.ts";
import type { ServerAddress } from "../settings/server-address.ts";
import { StartError } from "../settings/start-error.ts";
import type { ValueStore } from "../settings/value-store.ts";
import { TcpServer } from "../subscriptions/tcp-server.ts";
import { ClusterMonitoring } from "./cluster-monitoring.ts";
import { type ClusterServices, prepareCluster } from "./cluster-node.ts";
import { openFilesWarnings } from "./open-files.ts";
import { registerOwn } from "./own-certificates.ts";
import { readRavenStudio } from "./ravendb-studio.ts";
import { announce } from "./running-file.ts";
import type { Storage } from "./storage.ts";

export interface RunningServer {
  readonly services: ServerServices;
  readonly address: ServerAddress;
  /** The certificate currently presented; undefined: unsecured. */
  readonly certificate: ServerCertificate | undefined;
  /** Lines for the operator. */
  readonly warnings: readonly string[];
  /** Resolves when another process has taken the data folder. */
  readonly lost: Promise<Error>;
  /** Checks the certificate files for changes now. @returns whether they changed. @throws StartError */
  reloadCertificate(): Promise<boolean>;
  /** Allows the process to exit while the server runs. */
  unref(): void;
  /** Finishes requests in flight, flushes, then resolves. */
  stop(): Promise<void>;
}

interface StartOptions {
  readonly config: Config;
  readonly routes: readonly Route[];
  /** `replication` is undefined on a single node. */
  readonly openStorage: (config: Config, replication?: FolderReplication) => Promise<Storage>;
  /** If omitted, nothing is logged. */
  readonly log?: Log;
  /** Logs an error whose details no reply may show. */
  readonly logError: (reference: string, error: unknown) => void;
  /** Reports to the operator that the presented certificate changed, or could not be changed. */
  readonly certificateReports?: CertificateReports;
}

/** @throws StartError */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { config } = options;
  checkScheme(config);
  setScriptLimits(config.scripts);
  setWorkLimits(config.queries);
  const node = await prepareCluster(config, options.log ?? silentLog());
  // First, so that no certificates are created in a folder that another process owns.
  const storage = await options.openStorage(config, node?.replication);
  let shown: PresentedCertificate | undefined;
  let clustered: ClusterServices | undefined;
  try {
    if (config.serverUrl.protocol !== "http:") {
      shown = await PresentedCertificate.open(config, options.certificateReports ?? silent);
    }
    clustered = await node?.open(storage, shown);
    return await serve(options, shown, storage, clustered);
  } catch (error) {
    shown?.close();
    await endStorage(storage, clustered);
    throw error;
  }
}

async function endStorage(storage: Storage, clustered: ClusterServices | undefined): Promise<void> {
  await clustered?.stop();
  await storage.close();
  await clustered?.close();
}

function nodesOf(
  clustered: ClusterServices | undefined,
): Pick<ServerServices, "cluster" | "peers" | "clusterHistory" | "copies"> {
  return {
    cluster: clustered?.cluster,
    peers: clustered?.peers,
    clusterHistory: clustered?.history,
    copies: clustered?.copies,
  };
}

const silent: CertificateReports = { changed: () => undefined, failed: () => undefined };

async function serve(
  { config, routes, logError, log = silentLog() }: StartOptions,
  presentedCertificate: PresentedCertificate | undefined,
  storage: Storage,
  clustered: ClusterServices | undefined,
): Promise<RunningServer> {
  const shared = clustered ?? singleNode(storage);
  const certificates = new CertificateStore(shared.values, config.wellKnownAdmins);
  const certificate = presentedCertificate?.current;
  await registerOwn(certificates, certificate, clustered?.cluster, log);
  let address: ServerAddress | undefined;
  const backups = makeBackups(config, storage, shared, clustered?.cluster);
  const { serverId, topologyId } = await durableIds(storage.values);
  const audit = await AuditLog.open(config.auditLog, log.auditFailed);
  const requests = new RequestObserver(routes, log, audit, config.logs);
  const monitoring = makeMonitoring({
    ...{ config, routes, storage, log, audit, requests },
    ...{ presentedCertificate, certificates, backups },
    connections: () => connectionsOf(server, tcpServer),
    http: () => server,
    view: () => services.cluster,
  });
  const services: ServerServices = {
    config,
    ...{ values: shared.values, databases: shared.databases },
    get operations() {
      return storage.operations;
    },
    commandIndex: shared.commandIndex,
    backups,
    ...nodesOf(clustered),
    certificates,
    presentedCertificate,
    routes: new RouteTable(routes),
    log,
    audit,
    requests,
    monitoring,
    get address() {
      return listening(address);
    },
    ravenStudio: readRavenStudio(config.studioPath),
    serverId,
    get topologyId() {
      return clustered?.cluster.topologyId ?? topologyId;
    },
    startedAt: new Date(),
    certificateUse: (thumbprint) => server.certificateUse(thumbprint),
    dispatch: (exchange) => dispatcher.dispatch(exchange),
  };
  const dispatcher = new Dispatcher(services, logError);
  const server = new HttpService(services, dispatcher);
  const tcpServer = new TcpServer(services, logError);
  const close = closing({ backups, tcpServer, server, monitoring, audit });
  try {
    await backups.start();
    await monitoring.start(config.monitoring.url);
    address = await listen(server, tcpServer, config, certificate);
  } catch (error) {
    await close(0);
    throw error;
  }
  clustered?.serve(address);
  const withdraw = await announce(dataFolderOf(config), address.url);
  showNew(presentedCertificate, [server, tcpServer], certificates);
  return {
    services,
    address,
    get certificate() {
      return presentedCertificate?.current;
    },
    warnings: [...(certificate?.warnings ?? []), ...placeWarnings(config)],
    lost: storage.lost,
    reloadCertificate: () => presentedCertificate?.reload() ?? Promise.resolve(false),
    unref: () => {
      for (const one of [server, tcpServer, monitoring]) one.unref();
    },
    stop: async () => {
      monitoring.health.stop();
      presentedCertificate?.close();
      await close(config.shutdownTimeoutMs);
      await backups.finish();
      await withdraw();
      await endStorage(storage, clustered);
    },
  };
}

interface Ended {
  readonly backups: Backups;
  readonly tcpServer: TcpServer;
  readonly server: HttpService;
  readonly monitoring: Monitoring;
  readonly audit: AuditLog;
}

/** Closes the listeners and the background tasks. */
function closing({ backups, tcpServer, server, monitoring, audit }: Ended) {
  return async (timeoutMs: number) => {
    backups.close();
    tcpServer.close();
    await server.close(timeoutMs);
    monitoring.close();
    await audit.close();
  };
}

/** Presents new certificates when their files change. */
function showNew(
  shown: PresentedCertificate | undefined,
  listeners: readonly (HttpService | TcpServer)[],
  certificates: CertificateStore,
): void {
  shown?.onChange((next) => {
    for (const one of listeners) one.setCertificate(next.tls);
    // The caller may be using the replaced certificate: the reply is sent before its rights are revoked.
    setImmediate(() => certificates.setServerCertificate(next.certificate));
  });
}

function listening(address: ServerAddress | undefined): ServerAddress {
  if (address === undefined) throw new Error("the server does not listen yet");
  return address;
}

/** Returns the data folder; undefined if the server runs in memory. */
function dataFolderOf({ runInMemory, dataFolder }: Config): string | undefined {
  return runInMemory ? undefined : resolve(dataFolder);
}

/** The values that the nodes of a cluster share. */
type SharedParts = Pick<ServerServices, "values" | "databases" | "commandIndex">;

function singleNode({ values, databases }: Storage): SharedParts {
  return { values, databases, commandIndex: CommandIndex.of(values) };
}

function makeBackups(
  config: Config,
  storage: Storage,
  shared: SharedParts,
  cluster: ClusterView | undefined,
): Backups {
  const backups = new Backups({
    databases: shared.databases,
    ownDatabases: storage.databases,
    operations: () => storage.operations,
    values: shared.values,
    files: nodeEnvironment().files,
    rules: {
      root: config.backupRoot,
      dataFolder: dataFolderOf(config),
    },
    report: storage.report,
    isElsewhere: (name) => {
      if (cluster === undefined) return false;
      const state = cluster.find(name);
      if (state !== undefined) return state.role !== "leader";
      // One of the nodes removes the remains of a deleted database.
      return !shared.databases.has(name) && cluster.leaderTag !== cluster.tag;
    },
    nextIndex: () => shared.commandIndex.next(),
  });
  cluster?.onChange(() => backups.periodic.reload());
  return backups;
}

function connectionsOf(server: HttpService, tcp: TcpServer): Record<ConnectionKind, number> {
  return { ...server.connectionCounts(), tcp: tcp.connectionCount };
}

/** The components that monitoring reads. */
interface Monitored extends Pick<StartOptions, "config" | "routes"> {
  readonly storage: Storage;
  readonly log: Log;
  readonly audit: AuditLog;
  readonly requests: RequestObserver;
  readonly connections: () => Readonly<Record<ConnectionKind, number>>;
  readonly http: MetricsHost["http"];
  readonly presentedCertificate: PresentedCertificate | undefined;
  readonly certificates: CertificateStore;
  readonly backups: Backups;
  readonly view: () => ClusterView | undefined;
}

function makeMonitoring(monitored: Monitored): Monitoring {
  const { config, routes, storage, log, audit, requests } = monitored;
  const { connections, presentedCertificate, certificates, backups } = monitored;
  const cluster = new ClusterMonitoring(monitored.view, log);
  const dataFolder = config.runInMemory ? undefined : resolve(config.dataFolder);
  const opened = () => storage.databases.opened();
  const troubles = () => storage.databases.failures();
  const clusterTrouble = () => cluster.notReady();
  return new Monitoring({
    routes,
    requests,
    health: new Health({ dataFolder, opened, troubles, clusterTrouble }, log),
    databasesMax: config.monitoring.databasesMax,
    databaseCount: () => storage.databases.names().length,
    opened,
    connections,
    http: monitored.http,
    certificateEndMs: () => {
      const own = presentedCertificate?.current.certificate;
      return own === undefined ? undefined : Date.parse(own.validTo);
    },
    clientCertificates: () => [...certificates.expiries()],
    backups: (database) => backupFigures(backups.periodic, database),
    droppedLogLines: () => log.droppedCount + audit.droppedCount,
    operations: () => storage.operations,
    cluster,
    operationsRunning: () =>
      storage.operations.list().filter(({ state: { status } }) => status === "running").length,
  });
}

async function listen(
  server: HttpService,
  tcpServer: TcpServer,
  config: Config,
  certificate: ServerCertificate | undefined,
): Promise<ServerAddress> {
  const { serverUrl, tcpUrl, publicTcpUrl } = config;
  const host = bareHost(serverUrl.hostname);
  const isSecure = certificate !== undefined;
  const port = await listenOn(server, serverUrl, isSecure ? 443 : 80, certificate);
  const tcpPort = await listenOn(tcpServer, tcpUrl ?? anyPortOf(serverUrl), 0, certificate);
  const shown = isEverywhere(host) ? hostname() : host;
  const own = `${isSecure ? "https" : "http"}://${bracketed(shown)}:${port}`;
  const tcpHost = tcpUrl === undefined ? host : bareHost(tcpUrl.hostname);
  const ownTcp = isEverywhere(tcpHost) ? undefined : `tcp://${bracketed(tcpHost)}:${tcpPort}`;
  return {
    isSecure,
    url: config.publicServerUrl?.origin ?? own,
    host: shown,
    port,
    tcpUrl: publicTcpUrl?.href.replace(/\/$/, "") ?? ownTcp,
    tcpPort,
  };
}

/** @returns the port. @throws StartError port-in-use, address-unavailable */
async function listenOn(
  server: HttpService | TcpServer,
  url: URL,
  defaultPort: number,
  certificate: ServerCertificate | undefined,
): Promise<number> {
  const host = bareHost(url.hostname);
  // "localhost" may resolve to either address family.
  const hosts = host === "localhost" ? ["127.0.0.1", "::1"] : [host];
  const port = url.port === "" ? defaultPort : Number(url.port);
  try {
    return await server.listen(hosts, port, certificate?.tls);
  } catch (error) {
    const setting = url.protocol === "tcp:" ? "ServerUrl.Tcp" : "ServerUrl";
    throw listenErrorOf(url.href, setting, error);
  }
}

function anyPortOf({ hostname: host }: URL): URL {
  return new URL(`tcp://${host}:0`);
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}

async function durableIds(
  values: ValueStore,
): Promise<Pick<ServerServices, "serverId" | "topologyId">> {
  return {
    serverId: await durableId(values, "server/id"),
    topologyId: await durableId(values, "server/topology-id"),
  };
}

/** A GUID that is generated once and stored. */
async function durableId(values: ValueStore, key: string): Promise<string> {
  const known = values.get(key);
  if (known !== undefined) return JSON.parse(known) as string;
  const made = randomUUID();
  await values.put(key, JSON.stringify(made));
  return made;
}

/** @throws StartError certificate-without-tls, unsecured-not-allowed */
function checkScheme(config: Config): void {
  const { url } = config.monitoring;
  if (url !== undefined) checkReach(config, url, "Monitoring.ServerUrl");
  if (config.serverUrl.protocol === "https:") return;
  if (config.certificatePath !== undefined) {
    throw new StartError(
      "certificate-without-tls",
      `Security.Certificate.Path is set, but ServerUrl ${config.serverUrl.origin} is without TLS; ` +
        "write https:// there, or leave the certificate out",
    );
  }
  const { serverUrl, tcpUrl = serverUrl } = config;
  for (const one of [serverUrl, tcpUrl]) checkReach(config, one, "ServerUrl");
}

/** @throws StartError unsecured-not-allowed */
function checkReach(config: Config, { href, hostname: host }: URL, setting: string): void {
  const needed = reachOf(bareHost(host));
  if (reaches.indexOf(config.unsecuredAccessAllowed) >= reaches.indexOf(needed)) return;
  const [what, instead] =
    setting === "ServerUrl"
      ? ["do everything", "use https:// for ServerUrl"]
      : ["read the metrics", `choose an address of this machine for ${setting}`];
  throw new StartError(
    "unsecured-not-allowed",
    `Without TLS everybody who reaches ${href.replace(/\/$/, "")} could ${what}; ${instead}, ` +
      `or allow it with --Security.UnsecuredAccessAllowed=${needed}`,
  );
}

const reaches: readonly UnsecuredAccess[] = ["None", "Local", "PrivateNetwork", "PublicNetwork"];

/** The widest scope from which `host` can be reached. */
function reachOf(host: string): UnsecuredAccess {
  if (host === "localhost" || host === "::1" || host.startsWith("127.")) return "Local";
  const isPrivate =
    /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.)/.test(host) ||
    (isIP(host) === 6 && /^(f[cd]|fe[89ab])/i.test(host));
  return isPrivate ? "PrivateNetwork" : "PublicNetwork";
}

function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Of the machine and the network. */
function placeWarnings(config: Config): string[] {
  return [...exposureWarnings(config), ...openFilesWarnings()];
}

function exposureWarnings(config: Config): string[] {
  const host = bareHost(config.serverUrl.hostname);
  if (config.serverUrl.protocol === "https:" || reachOf(host) === "Local") return [];
  return [
    `No certificates are asked for: everybody who reaches ${config.serverUrl.origin} may do everything.`,
  ];
}
