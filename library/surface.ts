/**
 * Public types of the package `jackdaw-db`. The build writes this file, the errors and library.ts into one
 * declaration file, which needs no types of other packages.
 *
 * Invariants:
 * - No type of the engine, of Node or of the DOM is used: programs compile without `@types/node`.
 */

/** A JSON object with any members. */
export interface JsonObject {
  [key: string]: unknown;
}

/** Metadata of a document. The members listed here are set by the engine; others are set by the program. */
export interface Metadata {
  readonly "@id": string;
  /** Collection; `@empty` or absent for a document without one. */
  readonly "@collection"?: string;
  /** Changes with each write of the document. */
  readonly "@change-vector": string;
  /** ISO 8601, in UTC, with seven decimals. */
  readonly "@last-modified": string;
  readonly [key: string]: unknown;
}

/** A document as a plain object with its metadata. */
export type Document<T> = T & { "@metadata": Metadata };

/** A query row. A projection has the metadata of its document; a row of a `group by` has no id. */
export type Row<T> = T & { "@metadata": Partial<Metadata> };

/** The members of `AbortSignal` that the library uses. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface EngineOptions {
  /**
   * Folder of the databases, created if absent. If omitted, databases are kept in memory until the engine is closed.
   */
  readonly folder?: string;
  /** Receives errors of background work. If omitted, they are dropped. */
  readonly report?: (message: string, cause?: unknown) => void;
}

/** The databases of one folder. A folder belongs to one engine at a time. */
export interface Engine {
  /**
   * Opens the database of that name, in any letter case, or creates it.
   * @throws EngineError database-name-invalid, database-damaged
   */
  database(name: string): Promise<Database>;
  /** Returns the names of all databases in alphabetical order. */
  databaseNames(): string[];
  /** Deletes a database with all its files. Resolves to false if it does not exist. */
  deleteDatabase(name: string): Promise<boolean>;
  /** Resolves when another process has taken over the folder; nothing is written after that. */
  readonly lost: Promise<Error>;
  /** Makes all writes durable, closes change streams, and releases the folder. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A database. Promises of writes resolve when the write is durable. */
export interface Database {
  readonly name: string;

  /**
   * Returns a document, or null if it does not exist. Numbers beyond the precision of a double are rounded; `getText`
   * returns them exactly.
   * @throws EngineError record-damaged
   */
  get<T = JsonObject>(id: string): Promise<Document<T> | null>;
  /** Returns the JSON text of a document, with the original text of its numbers, or null if it does not exist. */
  getText(id: string): Promise<string | null>;
  /**
   * Stores a document, given as an object or as JSON text. If the id ends with `/`, the engine appends a number; if
   * it ends with `|`, the engine appends the next number of a sequence.
   * @throws EngineError concurrency, collection-mismatch, json-invalid, json-not-object, invalid-argument
   */
  put(id: string, document: object | string, options?: PutOptions): Promise<Stored>;
  /** Deletes a document. Resolves to false if it does not exist. @throws EngineError concurrency */
  delete(id: string, options?: DeleteOptions): Promise<boolean>;
  /**
   * Changes a document by a script, in which `this` is the document and `args` holds `options.args`.
   * @throws EngineError script-syntax, script-failed, concurrency
   */
  patch<T = JsonObject>(id: string, script: string, options?: PatchOptions): Promise<Patched<T>>;
  /**
   * Runs commands in order in one transaction: either all of them take effect or none does.
   * @throws EngineError of the first command that fails
   */
  batch(commands: readonly Command[]): Promise<CommandResult[]>;

  /**
   * Creates an RQL query, which runs when its rows are read. `parameters` are the values of `$name`; a bigint is
   * passed exactly.
   *
   *     for await (const user of database.query<User>("from Users where Age > $age", { age: 30 })) …
   *
   * @throws (when read) EngineError query-syntax, query-invalid, index-missing, script-failed
   */
  query<T = JsonObject>(
    rql: string,
    parameters?: Readonly<Record<string, unknown>>,
    options?: QueryOptions,
  ): Query<T>;

  /**
   * Streams documents that are stored or deleted from now on, each after its write is durable. The stream closes when
   * the engine is closed. It fails when its signal is aborted, when the database is deleted, and when too many
   * changes are unread.
   * @throws (when read) the signal's reason, EngineError overloaded, database-stopped
   */
  changes(options?: ChangesOptions): AsyncIterableIterator<Change>;

  /**
   * Adds `by` (1 by default) to a counter of a document. Resolves to the new value. @throws EngineError
   * document-missing
   */
  incrementCounter(id: string, name: string, by?: number | bigint): Promise<bigint>;
  /** Returns the counters of a document by name. */
  counters(id: string): Promise<Record<string, bigint>>;
  /** Deletes a counter. Resolves to false if it does not exist. */
  deleteCounter(id: string, name: string): Promise<boolean>;

  /** Stores an attachment of a document. @throws EngineError document-missing */
  putAttachment(
    id: string,
    name: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options?: AttachmentOptions,
  ): Promise<AttachmentFacts>;
  /** Returns an attachment, whose content is read on request, or null if it does not exist. */
  attachment(id: string, name: string): Promise<Attachment | null>;
  /** Deletes an attachment. Resolves to false if it does not exist. */
  deleteAttachment(id: string, name: string): Promise<boolean>;

  /** Returns the settings of the database, with RavenDB's names: `Expiration`, `Revisions`, … */
  settings(): Promise<JsonObject>;
  /** Replaces the settings with the object that `change` returns. */
  changeSettings(change: (settings: JsonObject) => JsonObject): Promise<JsonObject>;

  /** Exports the database at this moment as an uncompressed RavenDB dump. */
  exportDump(options?: DumpOptions): AsyncIterable<Uint8Array>;
  /** Imports a RavenDB dump, which must not be compressed. */
  importDump(dump: AsyncIterable<Uint8Array>, options?: DumpOptions): Promise<void>;
}

export interface PutOptions {
  /** Collection of a document given as an object. If omitted, the collection in its `@metadata`. */
  readonly collection?: string;
  /** Change vector that the stored document must have; null: the document must not exist. If omitted, not checked. */
  readonly expected?: string | null;
}

export interface DeleteOptions {
  /** Change vector that the stored document must have. If omitted, not checked. */
  readonly expected?: string;
}

export interface PatchOptions {
  readonly args?: Readonly<Record<string, unknown>>;
  readonly expected?: string;
  /** Document to store if the document does not exist. */
  readonly orCreate?: object;
}

export interface Stored {
  /** Stored id; ids that end with `/` or `|` are completed. */
  readonly id: string;
  readonly collection: string;
  readonly changeVector: string;
}

export interface Patched<T> {
  readonly status: "patched" | "created" | "unchanged" | "missing";
  /** Document after the patch; null if it does not exist. */
  readonly document: Document<T> | null;
}

/** One command of a batch. */
export type Command =
  | {
      readonly type: "put";
      readonly id: string;
      readonly document: object | string;
      readonly collection?: string;
      readonly expected?: string | null;
    }
  | { readonly type: "delete"; readonly id: string; readonly expected?: string }
  | {
      readonly type: "patch";
      readonly id: string;
      readonly script: string;
      readonly args?: Readonly<Record<string, unknown>>;
      readonly expected?: string;
    }
  | {
      readonly type: "increment";
      readonly id: string;
      readonly counter: string;
      readonly by?: number | bigint;
    };

export interface CommandResult {
  readonly id: string;
  /** Null if nothing was stored: after a deletion, or a patch without changes. */
  readonly changeVector: string | null;
}

export interface QueryOptions {
  /** Time to wait for stale indexes, in milliseconds; 0: do not wait. If omitted, 15,000. */
  readonly waitMs?: number;
  readonly signal?: AbortSignalLike;
}

/**
 * A query that runs each time it is read. A loop over it receives rows as they are found; the query pauses while the
 * loop is busy, and stops when the loop is left.
 */
export interface Query<T> extends AsyncIterable<Row<T>> {
  toArray(): Promise<Row<T>[]>;
  /** Returns the first row, or null if the result is empty. */
  first(): Promise<Row<T> | null>;
  /** Returns all rows, with information about the result as a whole. */
  result(): Promise<QueryResult<T>>;
  /** Returns the rows as JSON text, with the original text of their numbers. */
  texts(): AsyncIterable<string>;
}

export interface QueryResult<T> {
  readonly rows: Row<T>[];
  /** Number of matches before `limit`; -1 if they were not counted. */
  readonly totalResults: number;
  /** Index used; a name that begins with `collection/` for a scan of a collection. */
  readonly indexName: string;
  /** True if the index was still stale after the wait. */
  readonly isStale: boolean;
  /** Documents included by the query, by id. */
  readonly includes: Readonly<Record<string, Document<JsonObject>>>;
}

export interface ChangesOptions {
  /** Only changes in this collection. */
  readonly collection?: string;
  /** Only changes of documents whose id begins with this prefix. */
  readonly idPrefix?: string;
  readonly signal?: AbortSignalLike;
}

export interface Change {
  readonly type: "put" | "delete";
  readonly id: string;
  readonly collection: string;
  readonly changeVector: string;
}

export interface AttachmentOptions {
  readonly contentType?: string;
}

export interface AttachmentFacts {
  readonly name: string;
  readonly contentType: string;
  /** Size, in bytes. */
  readonly size: number;
  /** BLAKE2b-256 of the content, in Base64. */
  readonly hash: string;
  readonly changeVector: string;
}

export interface Attachment extends AttachmentFacts {
  /** Streams the content in chunks. @throws (when read) EngineError record-damaged */
  stream(): AsyncIterable<Uint8Array>;
  /** Returns the whole content. */
  bytes(): Promise<Uint8Array>;
}

export interface DumpOptions {
  /** Only these collections. */
  readonly collections?: readonly string[];
}

/** Result of a salvage. */
export interface SalvagedDatabase {
  readonly documents: number;
  readonly revisions: number;
  /** Number of counters, attachments, time series, identities and other entries. */
  readonly entries: number;
  /** Unreadable ranges of the log. Data stored there may be missing or appear in an older version. */
  readonly losses: readonly SalvageLoss[];
  /** Entries dropped because their document is lost: `document/name`. */
  readonly orphans: readonly string[];
  /** Attachments with lost or damaged content: `document/name`. Their names are kept. */
  readonly lostContents: readonly string[];
  /** New names of collections whose names are lost. */
  readonly renamedCollections: readonly string[];
}

export interface SalvageLoss {
  readonly file: string;
  readonly offset: number;
  readonly length: number;
  readonly reason: string;
}
