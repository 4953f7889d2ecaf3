/**
 * One open database, as the server and programs see it: requests and answers as plain data, rows as streams, events.
 * Transactions, keyspaces and the bytes of records are not exposed.
 */
import type { Report } from "../base/environment.ts";
import type { JsonObject } from "../base/json/json-object.ts";
import { type ReplicationMark, replicationMarkKey } from "../state/keyspaces/replication-marks.ts";
import type { Operations } from "../state/store/operations.ts";
import type { DiskWrite } from "../storage/log/disk-writes.ts";
import { Attachments } from "./attachments.ts";
import { Batches } from "./batches.ts";
import { BulkInserts } from "./bulk-inserts.ts";
import { Changes } from "./changes.ts";
import { Replication } from "./cluster/replication.ts";
import { CompareExchange } from "./compare-exchange.ts";
import { Counters } from "./counters.ts";
import {
  type DatabaseMeters,
  databaseMeters,
  type MonitoredFigures,
  monitoredFigures,
} from "./database/monitored-figures.ts";
import type { OpenDatabase } from "./database/open-database.ts";
import { Documents } from "./documents.ts";
import { Identities } from "./identities.ts";
import { Indexes } from "./indexes.ts";
import { Patches } from "./patches.ts";
import { Queries } from "./queries.ts";
import { Revisions } from "./revisions.ts";
import { SetOperations } from "./set-operations.ts";
import { Shipping } from "./shipping.ts";
import { Smuggler } from "./smuggler.ts";
import { Statistics } from "./statistics.ts";
import { Subscriptions } from "./subscriptions.ts";
import { TimeSeries } from "./time-series.ts";

/** Releases the entered database; must be called once. */
export interface Guest {
  release(): void;
}

const faces = new WeakMap<OpenDatabase, Database>();
const opened = new WeakMap<Database, OpenDatabase>();

/** Returns the open database of a façade. For tests: the surface of the engine does not expose it. */
export function openedDatabase(face: Database): OpenDatabase {
  return opened.get(face) as OpenDatabase; // set by the constructor
}

export class Database {
  readonly name: string;
  readonly attachments: Attachments;
  readonly batches: Batches;
  readonly bulkInserts: BulkInserts;
  readonly changes: Changes;
  readonly compareExchange: CompareExchange;
  readonly counters: Counters;
  readonly documents: Documents;
  readonly identities: Identities;
  readonly indexes: Indexes;
  readonly operations: Operations;
  readonly patches: Patches;
  readonly queries: Queries;
  /** Null: this is the only copy. */
  readonly replication: Replication | null;
  readonly revisions: Revisions;
  readonly setOperations: SetOperations;
  readonly shipping: Shipping;
  readonly smuggler: Smuggler;
  readonly statistics: Statistics;
  readonly subscriptions: Subscriptions;
  readonly timeSeries: TimeSeries;
  readonly #database: OpenDatabase;

  private constructor(database: OpenDatabase) {
    this.#database = database;
    opened.set(this, database);
    this.name = database.name;
    this.attachments = new Attachments(database);
    this.batches = new Batches(database);
    this.bulkInserts = new BulkInserts(database);
    this.changes = new Changes(database);
    this.compareExchange = new CompareExchange(database);
    this.counters = new Counters(database);
    this.documents = new Documents(database);
    this.identities = new Identities(database);
    this.indexes = new Indexes(database);
    this.operations = database.operations;
    this.patches = new Patches(database);
    this.queries = new Queries(database);
    this.replication = database.replication === null ? null : new Replication(database.replication);
    this.revisions = new Revisions(database);
    this.setOperations = new SetOperations(database);
    this.shipping = new Shipping(database);
    this.smuggler = new Smuggler(database);
    this.statistics = new Statistics(database);
    this.subscriptions = new Subscriptions(database);
    this.timeSeries = new TimeSeries(database);
  }

  /** Returns the face of `database`: always the same one. */
  static of(database: OpenDatabase): Database {
    let face = faces.get(database);
    if (face === undefined) {
      face = new Database(database);
      faces.set(database, face);
    }
    return face;
  }

  /**
   * Marks a request as in progress: the database is not closed as idle, and the documents that the request has found
   * stay valid.
   * @param isLong it may last for hours, and uses no found document beyond the current tick of the event loop
   */
  enter(isLong: boolean): Guest {
    const guest = this.#database.enter();
    if (isLong) return guest;
    const hold = this.#database.state.documents.hold();
    return {
      release: () => {
        guest.release();
        hold.release();
      },
    };
  }

  /** The change vector of the database: "" before the first write. */
  get changeVector(): string {
    return this.#database.changeVector;
  }

  /** Returns the change vector of a change of this copy. */
  changeVectorAt(etag: number): string {
    return this.#database.state.changeVectorAt(etag);
  }

  /** 32 hexadecimal digits: the same for all copies of a database. */
  get id(): string {
    return this.#database.databaseId.toString("hex");
  }

  /** 22 characters: identifies the database in change vectors. */
  get databaseId(): string {
    return this.#database.state.origin.hash;
  }

  /** The tag of this node: `A` unless set. Of a database with several copies, change vectors have the tag of another. */
  get nodeTag(): string {
    return this.#database.replication?.tag ?? this.originTag;
  }

  /** The tag in its change vectors: the tag of the node that created it, regardless of which nodes have copies now. */
  get originTag(): string {
    return this.#database.state.origin.nodeTag;
  }

  /** `A-<database id>`: the key of this database's part in the values of counters and incremental time series. */
  get partKey(): string {
    return this.#database.state.origin.partKey;
  }

  /** 22 characters: identifies the cluster transactions of this database. */
  get clusterTransactionId(): string {
    return this.#database.clusterTransactionId;
  }

  /** The etag of the newest visible change; 0 before the first write. */
  get lastEtag(): number {
    return this.#database.state.committedEtag;
  }

  /** Position of its log in a stream, also if it is no longer replicated; null if it was never replicated. */
  get mark(): ReplicationMark | null {
    return this.#database.state.keyspaces.replication.get(replicationMarkKey) ?? null;
  }

  /** Bytes of its log, on disk or in memory. */
  get sizeBytes(): number {
    return this.#database.sizeBytes;
  }

  /** Sizes and counts for monitoring. Cost: O(segments of the log + indexes + subscriptions). */
  figures(): MonitoredFigures {
    return monitoredFigures(this.#database);
  }

  /** Counts of writes and of the work of indexes, with their rates. Cost: O(indexes). */
  meters(): DatabaseMeters {
    return databaseMeters(this.#database);
  }

  /** Returns the newest writes to its files after number `after`, oldest first; none of a database in memory. */
  diskWrites(after: number): DiskWrite[] {
    return this.#database.diskWrites(after);
  }

  /** Microseconds since 1970, by the clock of the engine. */
  nowMicros(): number {
    return this.#database.state.nowMicros();
  }

  /** Whether it is configured to refuse requests. */
  get isDisabled(): boolean {
    return this.#database.isDisabled;
  }

  /** Whether it has begun to close. */
  get hasEnded(): boolean {
    return this.#database.hasEnded;
  }

  /** @throws EngineError database-stopped when it serves no longer */
  assertServing(): void {
    this.#database.assertServing();
  }

  /** Reclaims the space of records that are no longer needed. @throws EngineError disk-full, database-stopped */
  async compact(): Promise<void> {
    await this.#database.compact();
  }

  /** Purges the tombstones that nothing needs. @returns their number @throws EngineError disk-full, database-stopped */
  purgeTombstones(): Promise<number> {
    return this.#database.maintenance.cleanTombstones();
  }

  /** Reports errors outside of requests to the operator. */
  get report(): Report {
    return this.#database.report;
  }

  /** The database's settings record, as last put. */
  get settings(): JsonObject {
    return this.#database.settings;
  }

  /**
   * Replaces the settings record with the result of `change` for the newest record; `change` must have no side effect.
   * Resolves when the new record is durable. @returns the new record
   */
  changeSettings(change: (record: JsonObject) => JsonObject): Promise<JsonObject> {
    return this.#database.changeSettings(change);
  }
}
