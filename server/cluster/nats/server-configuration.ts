/**
 * The configuration of a `nats-server` that Jackdaw starts. Pure. The format accepts JSON, which avoids other quoting.
 *
 * Invariants:
 * - Clients connect over loopback only, with a password generated at each start. Nodes connect over routes, with mutual
 *   TLS or on loopback.
 * - Every append is on disk before it is acknowledged (`sync_interval: always`).
 */
import { hostOfRoute, isLoopback } from "../../settings/cluster-settings.ts";

/** Maximum message size with headers, in bytes. */
export const payloadBytesMax = 8 * 1024 * 1024;
/** Maximum memory for consumers, in bytes. Streams are stored in files. */
const memoryStoreBytesMax = 256 * 1024 * 1024;
/** Maximum number of bytes pending for one client: several pulls of a follower. A client beyond it counts as stuck. */
const pendingBytesMax = 64 * 1024 * 1024;
/** Account of Jackdaw's streams, a part of the paths in the store. */
export const accountName = "JACKDAW";
export const systemAccountName = "SYS";

export interface ServerOptions {
  /** Unique in the cluster, and the same at each start: JetStream identifies replicas by it. */
  readonly name: string;
  readonly storeFolder: string;
  readonly pidPath: string;
  readonly clientPort: number;
  readonly monitoringPort: number;
  readonly user: string;
  readonly password: string;
  readonly systemUser: string;
  readonly systemPassword: string;
  /** Routes of all nodes, as `host:port`. A single route means no cluster. */
  readonly routes: readonly string[];
  readonly ownRoute: string;
  /** Undefined if the routes are on loopback. */
  readonly tls:
    | {
        readonly certificatePath: string;
        readonly keyPath: string;
        readonly authorityPath: string;
      }
    | undefined;
}

export function serverConfiguration(options: ServerOptions): string {
  const { name, storeFolder, pidPath, clientPort, monitoringPort, routes } = options;
  const configuration = {
    server_name: name,
    listen: `127.0.0.1:${clientPort}`,
    http: `127.0.0.1:${monitoringPort}`,
    pid_file: pidPath,
    logtime: false,
    max_payload: payloadBytesMax,
    max_pending: pendingBytesMax,
    jetstream: {
      store_dir: storeFolder,
      sync_interval: "always",
      max_memory_store: memoryStoreBytesMax,
    },
    accounts: {
      [accountName]: {
        jetstream: "enabled",
        users: [{ user: options.user, password: options.password }],
      },
      [systemAccountName]: {
        users: [{ user: options.systemUser, password: options.systemPassword }],
      },
    },
    system_account: systemAccountName,
    ...(routes.length < 2 ? {} : { cluster: clusterPart(options) }),
  };
  return `${JSON.stringify(configuration, null, 2)}\n`;
}

function clusterPart({ routes, ownRoute, tls }: ServerOptions) {
  return {
    name: "jackdaw",
    listen: ownRoute,
    // Clients connect over the loopback of their own node, and cannot use the servers of other nodes.
    no_advertise: true,
    routes: routes.filter((route) => route !== ownRoute).map((route) => `nats://${route}`),
    ...(tls === undefined
      ? {}
      : {
          tls: {
            cert_file: tls.certificatePath,
            key_file: tls.keyPath,
            ca_file: tls.authorityPath,
            verify: true,
            timeout: 5,
          },
        }),
  };
}

/**
 * Returns the route that belongs to this machine, which has the addresses `own`. `addressesOf` resolves a host.
 * @returns undefined if no route, or several routes, match
 */
export async function findOwnRoute(
  routes: readonly string[],
  own: readonly string[],
  addressesOf: (host: string) => Promise<readonly string[]>,
): Promise<string | undefined> {
  const found: string[] = [];
  for (const route of routes) {
    const host = hostOfRoute(route);
    const addresses = isLoopback(host) ? [host] : await addressesOf(host);
    if (addresses.some((address) => isLoopback(address) || own.includes(address))) {
      found.push(route);
    }
  }
  return found.length === 1 ? found[0] : undefined;
}

/** Parses the output of `nats-server --version`: `nats-server: v2.15.1`. Returns null for other text. */
export function versionIn(text: string): string | null {
  return /\bv?(\d+\.\d+\.\d+)\b/.exec(text)?.[1] ?? null;
}

/** Older versions lose or mix up streams. */
export const oldestVersion = "2.15.1";

export function isRecent(version: string): boolean {
  const numbers = version.split(/[.-]/).map(Number);
  for (const [at, least] of oldestVersion.split(".").map(Number).entries()) {
    const number = numbers[at] ?? 0;
    if (number !== least) return number > least;
  }
  return true;
}

interface ServerLine {
  readonly level: "Debug" | "Info" | "Warn" | "Error";
  readonly text: string;
}

const levels: Readonly<Record<string, ServerLine["level"]>> = {
  DBG: "Debug",
  TRC: "Debug",
  INF: "Info",
  WRN: "Warn",
  ERR: "Error",
  FTL: "Error",
};

/** A warning about passwords in a file that is rewritten at each start and readable only by this user. */
const needless = "Plaintext passwords detected";
/** A warning that another node is not available at the moment; the server retries. */
const passing = "Error trying to connect to route";

/** Parses a log line of nats-server, `[1234] [WRN] text`. A line of another format, such as a panic, counts as an error. */
export function serverLine(line: string): ServerLine {
  const [, letters = "", text] = /^\[\d+\] (?:[\d/]+ [\d:.]+ )?\[(\w{3})\] (.*)$/.exec(line) ?? [];
  if (text === undefined) return { level: "Error", text: line };
  if (text.startsWith(needless)) return { level: "Info", text };
  if (text.startsWith(passing)) return { level: "Warn", text };
  return { level: levels[letters] ?? "Info", text };
}
