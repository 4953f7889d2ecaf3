/**
 * The server's dependencies as small interfaces: durable values, databases, certificates, and routes. Handlers reach them
 * through `context.server`.
 */
import type { Database, Databases, Operations } from "../../engine/engine.ts";
import type { Backups } from "../backups/backups.ts";
import type { ClusterHistory } from "../cluster/cluster-history.ts";
import type { ClusterView } from "../cluster/cluster-view.ts";
import type { OpenCopies } from "../cluster/open-copies.ts";
import type { PeerLink } from "../cluster/peer-link.ts";
import type { CommandIndex } from "../databases/command-index.ts";
import type { Exchange } from "../http/exchange.ts";
import type { StaticFiles } from "../http/static-files.ts";
import type { AuditLog } from "../logging/audit-log.ts";
import type { Log } from "../logging/log.ts";
import type { Monitoring } from "../monitoring/monitoring.ts";
import type { RequestObserver } from "../monitoring/request-observer.ts";
import type { CertificateStore } from "../security/certificate-store.ts";
import type { PresentedCertificate } from "../security/presented-certificate.ts";
import type { Config } from "../settings/config.ts";
import type { ServerAddress } from "../settings/server-address.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { RouteTable } from "./router.ts";

/** The databases of this server. Implemented by `Databases`; tests may supply their own. */
export interface DatabaseDirectory {
  /**
   * Returns the database of that name, in any letter case. Returns a promise only if it must be opened first.
   * @throws EngineError database-damaged, database-locked, database-stopped
   */
  find(name: string): Database | undefined | Promise<Database | undefined>;
  has(name: string): boolean;
  /** Names of all databases, spelled as created. */
  names(): readonly string[];
  /** Open databases. Does not open any. */
  opened(): readonly Database[];
  /** When each was used last. */
  uses: Databases["uses"];
  /** Reasons why databases cannot be used now, by name. */
  failures(): ReadonlyMap<string, Error>;
  /** @throws EngineError database-name-invalid, database-exists */
  create(name: string, record: Readonly<Record<string, unknown>>): Promise<Database>;
  /** Creates a database from the files of a continuous backup: see `Databases`. */
  createFromShipped: Databases["createFromShipped"];
  /** @returns false if it does not exist */
  delete(name: string): Promise<boolean>;
}

/** Use of a certificate since the server's start. */
export interface CertificateUse {
  /** Number of open connections. */
  readonly openCount: number;
  /** Time of the last use, on the clock of `performance.now()`, or null. */
  readonly usedMs: number | null;
}

/** State that outlives a request. */
export interface ServerServices {
  readonly config: Config;
  readonly values: ValueStore;
  readonly databases: DatabaseDirectory;
  /** The server's own operations; each database has its own too. */
  readonly operations: Operations;
  readonly commandIndex: CommandIndex;
  readonly backups: Backups;
  /** Undefined on a single node. */
  readonly cluster: ClusterView | undefined;
  /** Requests to other nodes; undefined on a single node. */
  readonly peers: PeerLink | undefined;
  /** Recent events of the cluster; undefined on a single node. */
  readonly clusterHistory: ClusterHistory | undefined;
  /** Copies that other nodes are fetching from this one; undefined on a single node. */
  readonly copies: OpenCopies | undefined;
  readonly certificates: CertificateStore;
  /** The server's certificate; undefined if unsecured. */
  readonly presentedCertificate: PresentedCertificate | undefined;
  readonly routes: RouteTable;
  readonly log: Log;
  readonly audit: AuditLog;
  readonly requests: RequestObserver;
  readonly monitoring: Monitoring;
  readonly address: ServerAddress;
  /** A copy of RavenDB's Studio, served instead of ours. */
  readonly ravenStudio: StaticFiles | undefined;
  /** A GUID, the same on every run with the same data folder. */
  readonly serverId: string;
  /** A GUID of the cluster whose only node this is, the same on every run. */
  readonly topologyId: string;
  readonly startedAt: Date;
  readonly certificateUse: (thumbprint: string) => CertificateUse;
  /** Runs an exchange through routing, access checks, and error handling, as if received from a connection. */
  readonly dispatch: (exchange: Exchange) => Promise<void>;
}
