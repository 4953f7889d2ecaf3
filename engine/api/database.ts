/**
 * One open database, as the server and programs see it: requests and answers as plain data, rows as streams, events.
 * Transactions, keyspaces and the bytes of records stay behind it.
 */
import type { OpenDatabase } from "../database/open-database.ts";
import type { JsonObject } from "../json/json-object.ts";
import { Attachments } from "./attachments.ts";
import { Documents } from "./documents.ts";
import { Identities } from "./identities.ts";
import { Queries } from "./queries.ts";
import { Revisions } from "./revisions.ts";
import { TimeSeries } from "./time-series.ts";

/** Releases what was entered; once. */
export interface Guest {
  release(): void;
}

const faces = new WeakMap<OpenDatabase, Database>();
const opened = new WeakMap<Database, OpenDatabase>();

/** What is behind a face. For tests: the surface of the engine does not have it. */
export function openedDatabase(face: Database): OpenDatabase {
  return opened.get(face) as OpenDatabase; // set by the constructor
}

export class Database {
  readonly name: string;
  readonly attachments: Attachments;
  readonly documents: Documents;
  readonly identities: Identities;
  readonly queries: Queries;
  readonly revisions: Revisions;
  readonly timeSeries: TimeSeries;
  readonly #database: OpenDatabase;

  private constructor(database: OpenDatabase) {
    this.#database = database;
    opened.set(this, database);
    this.name = database.name;
    this.attachments = new Attachments(database);
    this.documents = new Documents(database);
    this.identities = new Identities(database);
    this.queries = new Queries(database);
    this.revisions = new Revisions(database);
    this.timeSeries = new TimeSeries(database);
  }

  /** The face of `database`: always the same one. */
  static of(database: OpenDatabase): Database {
    let face = faces.get(database);
    if (face === undefined) {
      face = new Database(database);
      faces.set(database, face);
    }
    return face;
  }

  /**
   * Marks a request as in progress: the database is not closed as idle, and what the request has found stays valid.
   * @param isLong it may last for hours, and keeps nothing that it found from one turn of the event loop to the next
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

  /** 22 characters: identifies the database in change vectors. */
  get databaseId(): string {
    return this.#database.state.databaseHash;
  }

  /** 22 characters: identifies the cluster transactions of this database. */
  get clusterTransactionId(): string {
    return this.#database.clusterTransactionId;
  }

  /** Bytes of its log, on disk or in memory. */
  get sizeBytes(): number {
    return this.#database.sizeBytes;
  }

  /** Microseconds since 1970, by the clock of the engine. */
  nowMicros(): number {
    return this.#database.state.nowMicros();
  }

  /** Is it configured to refuse requests? */
  get isDisabled(): boolean {
    return this.#database.isDisabled;
  }

  /** The database's settings record, as last put. */
  get settings(): JsonObject {
    return this.#database.settings;
  }

  /**
   * Replaces the settings record with what `change` makes of the newest one; `change` must have no other effect.
   * Resolves when the new record is durable. @returns the new record
   */
  changeSettings(change: (record: JsonObject) => JsonObject): Promise<JsonObject> {
    return this.#database.changeSettings(change);
  }
}
