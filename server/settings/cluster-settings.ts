/**
 * The settings of a cluster, as values: which servers of NATS replicate the logs, and how they are reached. Without any
 * of them a server is a single node.
 *
 * Invariants:
 * - Nothing goes over a network without TLS: plain TCP is accepted on loopback addresses only.
 * - No address holds a password, so that addresses can be logged.
 */
import { StartError } from "./start-error.ts";

export interface NatsTls {
  /** The node's certificate and key, PEM; both or neither. */
  readonly certificatePath: string | undefined;
  readonly keyPath: string | undefined;
  /** The authority that has issued the certificates of the others; undefined: those of the system. */
  readonly authorityPath: string | undefined;
}

export interface ClusterSettings {
  /** Servers of NATS that run by themselves; empty: the one of `routes` is started. */
  readonly urls: readonly URL[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** Of the system account, for the scrub; undefined: there is none. */
  readonly systemUser: string | undefined;
  readonly systemPassword: string | undefined;
  /** `host:port` where the `nats-server` of each node listens for those of the others. */
  readonly routes: readonly string[];
  /** The one of `routes` that is this node's; undefined: to be found by the addresses of this machine. */
  readonly ownRoute: string | undefined;
  /** The file of `nats-server`; undefined: looked for on the path. */
  readonly natsPath: string | undefined;
  /** undefined: plain TCP on loopback. */
  readonly tls: NatsTls | undefined;
}

type ClusterName =
  | "Cluster.Nats.Url"
  | "Cluster.Nats.User"
  | "Cluster.Nats.Password"
  | "Cluster.Nats.SystemUser"
  | "Cluster.Nats.SystemPassword"
  | "Cluster.Nats.CertificatePath"
  | "Cluster.Nats.KeyPath"
  | "Cluster.Nats.CaPath"
  | "Cluster.Nats.Path"
  | "Cluster.Nats.Route"
  | "Cluster.Routes";

/** undefined: none of them is given, so this is a single node. @throws StartError setting-invalid */
export function readCluster(
  text: (name: ClusterName) => string | undefined,
): ClusterSettings | undefined {
  const urls = listOf(text("Cluster.Nats.Url")).map(readNatsUrl);
  const routes = listOf(text("Cluster.Routes")).map((route) => readRoute("Cluster.Routes", route));
  if (urls.length === 0 && routes.length === 0) return undefined;
  if (urls.length > 0 && routes.length > 0) {
    throw invalid(
      "Cluster.Nats.Url and Cluster.Routes are both set: give the address of servers that run, or the routes of those that are started, not both",
    );
  }
  if (routes.length === 2) {
    throw invalid(
      "Cluster.Routes has two addresses: a cluster of two stops when either is gone, so give three, or one",
    );
  }
  const ownText = text("Cluster.Nats.Route") || undefined;
  const ownRoute = ownText === undefined ? undefined : readRoute("Cluster.Nats.Route", ownText);
  if (ownRoute !== undefined && urls.length === 0 && !routes.includes(ownRoute)) {
    throw invalid(`Cluster.Nats.Route ${ownRoute} is not one of Cluster.Routes (${routes})`);
  }
  const settings = {
    urls,
    user: text("Cluster.Nats.User") || undefined,
    password: text("Cluster.Nats.Password") || undefined,
    systemUser: text("Cluster.Nats.SystemUser") || undefined,
    systemPassword: text("Cluster.Nats.SystemPassword") || undefined,
    routes,
    ownRoute,
    natsPath: text("Cluster.Nats.Path") || undefined,
    tls: readTls(text),
  };
  checkSecured(settings);
  return settings;
}

function readTls(text: (name: ClusterName) => string | undefined): NatsTls | undefined {
  const certificatePath = text("Cluster.Nats.CertificatePath") || undefined;
  const keyPath = text("Cluster.Nats.KeyPath") || undefined;
  const authorityPath = text("Cluster.Nats.CaPath") || undefined;
  if ((certificatePath === undefined) !== (keyPath === undefined)) {
    throw invalid("Cluster.Nats.CertificatePath and Cluster.Nats.KeyPath need each other");
  }
  if (certificatePath === undefined && authorityPath === undefined) return undefined;
  return { certificatePath, keyPath, authorityPath };
}

/** @throws StartError setting-invalid where others could read along or get in */
function checkSecured({ urls, routes, tls }: ClusterSettings): void {
  const open = urls.find(
    (url) => tls === undefined && url.protocol !== "tls:" && !isLoopback(url.hostname),
  );
  if (open !== undefined) {
    throw invalid(
      `Cluster.Nats.Url ${open.host} is not on this machine and would be reached without TLS: use tls://, or set Cluster.Nats.CaPath, and Cluster.Nats.CertificatePath and KeyPath`,
    );
  }
  const far = routes.find((route) => !isLoopback(hostOfRoute(route)));
  if (far === undefined) return;
  if (tls?.certificatePath === undefined || tls.authorityPath === undefined) {
    throw invalid(
      `Cluster.Routes ${far} is not on this machine, so the nodes must know each other by certificates: set Cluster.Nats.CertificatePath, Cluster.Nats.KeyPath and Cluster.Nats.CaPath`,
    );
  }
}

/** `host:port`, a host of IPv6 in brackets. */
export function hostOfRoute(route: string): string {
  return route.slice(0, route.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
}

export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return bare === "localhost" || bare === "::1" || /^127\.\d+\.\d+\.\d+$/.test(bare);
}

function listOf(text: string | undefined): string[] {
  return (text ?? "").split(/[,;\s]+/).filter((one) => one !== "");
}

function readNatsUrl(text: string): URL {
  let url: URL;
  try {
    url = new URL(text.includes("://") ? text : `nats://${text}`);
  } catch (error) {
    throw invalid(`Cluster.Nats.Url '${text}' is no address like nats://host:4222`, error);
  }
  if (url.protocol !== "nats:" && url.protocol !== "tls:") {
    throw invalid(`Cluster.Nats.Url has the scheme '${url.protocol}': use nats:// or tls://`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid(
      `Cluster.Nats.Url ${url.host} holds credentials: set Cluster.Nats.User and Cluster.Nats.Password instead`,
    );
  }
  if (url.hostname === "") throw invalid(`Cluster.Nats.Url '${text}' names no host`);
  return url;
}

function readRoute(name: ClusterName, text: string): string {
  const port = Number(/^(?:[^:[\]/@]+|\[[\da-fA-F:]+\]):(\d{1,5})$/.exec(text)?.[1]);
  if (port >= 1 && port <= 65_535) return text;
  throw invalid(`${name} '${text}' is not host:port, e.g. 10.0.0.1:6222`);
}

function invalid(message: string, cause?: unknown): StartError {
  return new StartError("setting-invalid", message, { cause });
}
