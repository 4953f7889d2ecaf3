/**
 * The configuration of a `nats-server` that Jackdaw starts. Pure. Its format takes JSON, whose strings need no quoting of
 * another kind.
 *
 * Invariants:
 * - Clients come in on loopback only, with a password that is made at each start; nodes over routes, each knowing the
 *   other by its certificate, or on loopback.
 * - Every append is on disk before it is acknowledged (`sync_interval: always`).
 */
import { hostOfRoute, isLoopback } from "../../settings/cluster-settings.ts";

/** The largest message, with its headers. */
export const payloadBytesMax = 8 * 1024 * 1024;
/** Memory of consumers; streams are in files. */
const memoryStoreBytesMax = 256 * 1024 * 1024;
/** Bytes that may wait for one client: several pulls of a follower, and then it counts as stuck. */
const pendingBytesMax = 64 * 1024 * 1024;
/** The account of Jackdaw's streams: part of the paths below the store. */
export const accountName = "JACKDAW";
export const systemAccountName = "SYS";

export interface ServerOptions {
  /** Unique in the cluster, and the same at each start: JetStream knows its replicas by it. */
  readonly name: string;
  readonly storeFolder: string;
  readonly pidPath: string;
  readonly clientPort: number;
  readonly monitoringPort: number;
  readonly user: string;
  readonly password: string;
  readonly systemUser: string;
  readonly systemPassword: string;
  /** `host:port` of all nodes; of one alone, no cluster is made. */
  readonly routes: readonly string[];
  readonly ownRoute: string;
  /** undefined: the routes are on loopback. */
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
    // Clients of one node have nothing to look for at another's: they are on its loopback.
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
 * Which of `routes` is this machine's, whose addresses are `own`. `addressesOf` resolves a host.
 * @returns undefined when it is none of them, or several are
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

/** The version that `nats-server --version` prints: `nats-server: v2.15.1`; null: it is none. */
export function versionIn(text: string): string | null {
  return /\bv?(\d+\.\d+\.\d+)\b/.exec(text)?.[1] ?? null;
}

/** Older ones lose or mix up streams. */
export const oldestVersion = "2.15.1";

export function isRecent(version: string): boolean {
  const numbers = version.split(/[.-]/).map(Number);
  for (const [at, least] of oldestVersion.split(".").map(Number).entries()) {
    const number = numbers[at] ?? 0;
    if (number !== least) return number > least;
  }
  return true;
}

export interface ServerLine {
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

/** Said of the passwords in a file that is made anew at each start and that nobody else can read. */
const needless = "Plaintext passwords detected";
/** Another node is not there at the moment; it is tried again. */
const passing = "Error trying to connect to route";

/** A line that nats-server prints, `[1234] [WRN] text`; one of another form counts as an error: a panic, the shell's. */
export function serverLine(line: string): ServerLine {
  const [, letters = "", text] = /^\[\d+\] (?:[\d/]+ [\d:.]+ )?\[(\w{3})\] (.*)$/.exec(line) ?? [];
  if (text === undefined) return { level: "Error", text: line };
  if (text.startsWith(needless)) return { level: "Info", text };
  if (text.startsWith(passing)) return { level: "Warn", text };
  return { level: levels[letters] ?? "Info", text };
}
