/**
 * The settings of a cluster as values: the NATS servers that replicate the logs, and their addresses. Without any of them
 * the server is a single node.
 *
 * Invariants:
 * - Networks require TLS: plain TCP is accepted on loopback addresses only.
 * - No address contains a password, so addresses can be logged.
 */
import { StartError } from "./start-error.ts";

export interface NatsTls {
  /** PEM files of the node's certificate and key; both or neither. */
  readonly certificatePath: string | undefined;
  readonly keyPath: string | undefined;
  /** CA of the other nodes' certificates, or undefined for the system's CAs. */
  readonly authorityPath: string | undefined;
}

export interface ClusterSettings {
  /** External NATS servers; if empty, this node starts the one of `routes`. */
  readonly urls: readonly URL[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** User of the system account, for the scrub, or undefined. */
  readonly systemUser: string | undefined;
  readonly systemPassword: string | undefined;
  /** Addresses where the nodes' `nats-server` processes listen for each other, as `host:port`. */
  readonly routes: readonly string[];
  /** This node's entry in `routes`, or undefined to detect it from the addresses of this machine. */
  readonly ownRoute: string | undefined;
  /** Path of `nats-server`, or undefined to search the path. */
  readonly natsPath: string | undefined;
  /** Undefined for plain TCP on loopback. */
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

/** Returns undefined on a single node, without any of these settings. @throws StartError setting-invalid */
export function readCluster(
  text: (name: ClusterName) => string | undefined,
): ClusterSettings | undefined {
  const urls = listOf(text("Cluster.Nats.Url")).map(readNatsUrl);
  const routes = listOf(text("Cluster.Routes")).map((route) => readRoute("Cluster.Routes", route));
  if (urls.length === 0 && routes.length === 0) return undefined;
  if (urls.length > 0 && routes.length > 0) {
    throw invalid(
      "Cluster.Nats.Url and Cluster.Routes are both set. Set the addresses of external servers, or the routes of servers to start, but not both",
    );
  }
  if (routes.length === 2) {
    throw invalid(
      "Cluster.Routes has two addresses: a cluster of two stops when either node fails. Set three, or one",
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
    throw invalid("Cluster.Nats.CertificatePath and Cluster.Nats.KeyPath must be set together");
  }
  if (certificatePath === undefined && authorityPath === undefined) return undefined;
  return { certificatePath, keyPath, authorityPath };
}

/** @throws StartError setting-invalid if traffic could be read or servers accessed by others */
function checkSecured({ urls, routes, tls }: ClusterSettings): void {
  const open = urls.find(
    (url) => tls === undefined && url.protocol !== "tls:" && !isLoopback(url.hostname),
  );
  if (open !== undefined) {
    throw invalid(
      `Cluster.Nats.Url ${open.host} is not on this machine and would be contacted without TLS. Use tls://, or set Cluster.Nats.CaPath, and Cluster.Nats.CertificatePath and KeyPath`,
    );
  }
  const far = routes.find((route) => !isLoopback(hostOfRoute(route)));
  if (far === undefined) return;
  if (tls?.certificatePath === undefined || tls.authorityPath === undefined) {
    throw invalid(
      `Cluster.Routes ${far} is not on this machine, so the nodes must authenticate each other with certificates. Set Cluster.Nats.CertificatePath, Cluster.Nats.KeyPath and Cluster.Nats.CaPath`,
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
    throw invalid(`Cluster.Nats.Url '${text}' is not an address like nats://host:4222`, error);
  }
  if (url.protocol !== "nats:" && url.protocol !== "tls:") {
    throw invalid(`Cluster.Nats.Url has the scheme '${url.protocol}': use nats:// or tls://`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid(
      `Cluster.Nats.Url ${url.host} contains credentials: set Cluster.Nats.User and Cluster.Nats.Password instead`,
    );
  }
  if (url.hostname === "") throw invalid(`Cluster.Nats.Url '${text}' has no host`);
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
