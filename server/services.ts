/**
 * What the server needs from the world around it, as small interfaces: durable values of its own and the databases.
 * Handlers reach all of it through `context.server`.
 */
import type { Database } from "../engine/database.ts";
import type { Operations } from "../engine/operations.ts";
import type { CertificateStore } from "./certificate-store.ts";
import type { CommandIndex } from "./command-index.ts";
import type { Config } from "./config.ts";
import type { Exchange } from "./exchange.ts";
import type { RouteTable } from "./router.ts";
import type { ServerAddress } from "./server-address.ts";
import type { ShownCertificate } from "./shown-certificate.ts";
import type { ValueStore } from "./value-store.ts";

/** The databases of this server. `DatabaseCatalog` is it; tests may bring their own. */
export interface DatabaseDirectory {
  /**
   * The database of that name, in any letter case. A promise only when it has to be opened first.
   * @throws EngineError database-damaged, database-locked, database-stopped
   */
  find(name: string): Database | undefined | Promise<Database | undefined>;
  has(name: string): boolean;
  /** Names of all databases, as they were created. */
  names(): readonly string[];
  /** @throws EngineError database-name-invalid, database-exists */
  create(name: string, record: Readonly<Record<string, unknown>>): Promise<Database>;
  /** @returns false when there is none. */
  delete(name: string): Promise<boolean>;
}

/** Everything that outlives a request. */
export interface ServerServices {
  readonly config: Config;
  readonly values: ValueStore;
  readonly databases: DatabaseDirectory;
  /** Operations of the server itself; those of a database are the database's. */
  readonly operations: Operations;
  readonly commandIndex: CommandIndex;
  readonly certificates: CertificateStore;
  /** The certificate of the server; undefined: unsecured. */
  readonly shownCertificate: ShownCertificate | undefined;
  readonly routes: RouteTable;
  readonly address: ServerAddress;
  /** A GUID, the same in every run on the same data folder. */
  readonly serverId: string;
  /** Likewise, of the cluster that this one node is. */
  readonly topologyId: string;
  readonly startedAt: Date;
  /** Sends an exchange through routing, access and error handling, as if it had come over the wire. */
  readonly dispatch: (exchange: Exchange) => Promise<void>;
}
