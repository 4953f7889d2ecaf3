/**
 * The server's dependencies, as small interfaces: its own durable values, the databases, certificates and routes.
 * Handlers reach them through `context.server`.
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
   * The database of that name, in any letter case. A promise only when it must be opened first.
   * @throws EngineError database-damaged, database-locked, database-stopped
   */
  find(name: string): Database | undefined | Promise<Database | undefined>;
  has(name: string): boolean;
  /** Names of all databases, spelled as created. */
  names(): readonly string[];
  /** Those that are open now, with their opening as little touched as they are. */
  opened(): readonly Database[];
  /** Why databases cannot be used now, by their names. */
  troubles(): ReadonlyMap<string, Error>;
  /** @throws EngineError database-name-invalid, database-exists */
  create(name: string, record: Readonly<Record<string, unknown>>): Promise<Database>;
  /** Creates a database of the files of a continuous backup: see `Databases`. */
  createFromShipped: Databases["createFromShipped"];
  /** @returns false when it does not exist */
  delete(name: string): Promise<boolean>;
}

/** What is known of the use of a certificate since the server was started. */
export interface CertificateUse {
  /** Connections that are open. */
  readonly openCount: number;
  /** As `performance.now()`; null: it was not used. */
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
  /** undefined: a single node. */
  readonly cluster: ClusterView | undefined;
  /** The other nodes; undefined: a single node. */
  readonly peers: PeerLink | undefined;
  /** What was seen of the cluster lately; undefined: a single node. */
  readonly clusterHistory: ClusterHistory | undefined;
  /** The copies that other nodes take from this one; undefined: a single node. */
  readonly copies: OpenCopies | undefined;
  readonly certificates: CertificateStore;
  /** The server's certificate; undefined: unsecured. */
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
  /** Likewise, of the cluster whose only node this is. */
  readonly topologyId: string;
  readonly startedAt: Date;
  readonly certificateUse: (thumbprint: string) => CertificateUse;
  /** Runs an exchange through routing, access and error handling, as if it had come over the wire. */
  readonly dispatch: (exchange: Exchange) => Promise<void>;
}
