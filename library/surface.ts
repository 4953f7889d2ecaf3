/**
 * What programs see of the package `jackdaw-db`: types only, in words of their own. The build puts this file, the errors
 * and library.ts into one declaration file, which needs no other package's types.
 *
 * Invariants:
 * - Nothing here is a type of the engine, of Node or of the DOM: a program compiles without `@types/node`.
 */

/** A JSON object whose members are not described. */
export interface JsonObject {
  [key: string]: unknown;
}

/** What the engine keeps about a document. The members listed here are the engine's; others are the program's. */
export interface Metadata {
  readonly "@id": string;
  /** `@empty` or absent when the document names none. */
  readonly "@collection"?: string;
  /** Changes with each write of the document. */
  readonly "@change-vector": string;
  /** ISO 8601, in UTC, with seven decimals. */
  readonly "@last-modified": string;
  readonly [key: string]: unknown;
}

/** A document as it is read: a plain object, with its metadata. */
export type Document<T> = T & { "@metadata": Metadata };

/** A row of a query. A projection has the metadata of its document; a row of a `group by` has no id. */
export type Row<T> = T & { "@metadata": Partial<Metadata> };

/** What is used of an `AbortSignal`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface EngineOptions {
  /** Folder of the databases, created when it is absent. Left out: they are in memory, and end with the engine. */
  readonly folder?: string;
  /** Told what goes wrong in the background. Left out: nobody is told. */
  readonly report?: (message: string, cause?: unknown) => void;
}

/** The databases of one folder. A folder belongs to one engine at a time. */
export interface Engine {
  /**
   * Opens the database of that name, in any letter case, or creates it.
   * @throws EngineError database-name-invalid, database-damaged
   */
  database(name: string): Promise<Database>;
  /** The names of all databases, in the order of the alphabet. */
  databaseNames(): string[];
  /** Deletes a database with all its files. Resolves to false when there is none. */
  deleteDatabase(name: string): Promise<boolean>;
  /** Resolves when another process has taken the folder: nothing is written from then on. */
  readonly lost: Promise<Error>;
  /** Makes everything durable and releases the folder. Loops over changes end. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One database. Each promise of a write resolves when the write is durable. */
export interface Database {
  readonly name: string;

  /**
   * A document; null when there is none. Numbers beyond the precision of a double are rounded: see `getText`.
   * @throws EngineError record-damaged
   */
  get<T = JsonObject>(id: string): Promise<Document<T> | null>;
  /** The JSON text of a document, with its numbers as they were written; null when there is none. */
  getText(id: string): Promise<string | null>;
  /**
   * Stores a document, an object or its JSON text. An id that ends with `/` gets a number appended by the engine, one that
   * ends with `|` the next one of a sequence.
   * @throws EngineError concurrency, collection-mismatch, json-invalid, json-not-object, invalid-argument
   */
  put(id: string, document: object | string, options?: PutOptions): Promise<Stored>;
  /** Deletes a document. Resolves to false when there was none. @throws EngineError concurrency */
  delete(id: string, options?: DeleteOptions): Promise<boolean>;
  /**
   * Changes a document by a script, in which `this` is the document and `args` are `options.args`.
   * @throws EngineError script-syntax, script-failed, concurrency
   */
  patch<T = JsonObject>(id: string, script: string, options?: PatchOptions): Promise<Patched<T>>;
  /**
   * Does all commands in one transaction, in order, or none of them.
   * @throws EngineError that of the first command that fails
   */
  batch(commands: readonly Command[]): Promise<CommandResult[]>;

  /**
   * Runs a query in RQL when its rows are read. `parameters` are the values of `$name` in it; a bigint keeps its digits.
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
   * Documents that are stored or deleted from now on, each once its write is durable. The loop ends when the engine is
   * closed, and fails when its signal is aborted, when the database is deleted, and when it falls too far behind.
   * @throws (when read) the signal's reason, EngineError overloaded, database-stopped
   */
  changes(options?: ChangesOptions): AsyncIterableIterator<Change>;

  /** Adds to a counter of a document, 1 unless told. Resolves to the new value. @throws EngineError document-missing */
  incrementCounter(id: string, name: string, by?: number | bigint): Promise<bigint>;
  /** The counters of a document by name. */
  counters(id: string): Promise<Record<string, bigint>>;
  /** Resolves to false when there was no such counter. */
  deleteCounter(id: string, name: string): Promise<boolean>;

  /** Stores binary content under a name of a document. @throws EngineError document-missing */
  putAttachment(
    id: string,
    name: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options?: AttachmentOptions,
  ): Promise<AttachmentFacts>;
  /** An attachment, whose content is read when it is asked for; null when there is none. */
  attachment(id: string, name: string): Promise<Attachment | null>;
  /** Resolves to false when there was no such attachment. */
  deleteAttachment(id: string, name: string): Promise<boolean>;

  /** The settings of the database, in RavenDB's terms: `Expiration`, `Revisions`, … */
  settings(): Promise<JsonObject>;
  /** Replaces the settings with what `change` makes of them. */
  changeSettings(change: (settings: JsonObject) => JsonObject): Promise<JsonObject>;

  /** The whole database at this moment as the text of a RavenDB dump, not compressed. */
  exportDump(options?: DumpOptions): AsyncIterable<Uint8Array>;
  /** Reads a dump into the database. One that is compressed must be decompressed on the way. */
  importDump(dump: AsyncIterable<Uint8Array>, options?: DumpOptions): Promise<void>;
}

export interface PutOptions {
  /** The collection of a document given as an object. Left out: that in its `@metadata`. */
  readonly collection?: string;
  /** The change vector that the stored document must have; null: it must not exist. Left out: not checked. */
  readonly expected?: string | null;
}

export interface DeleteOptions {
  /** The change vector that the stored document must have. Left out: not checked. */
  readonly expected?: string;
}

export interface PatchOptions {
  readonly args?: Readonly<Record<string, unknown>>;
  readonly expected?: string;
  /** Stored when there is no such document. */
  readonly orCreate?: object;
}

export interface Stored {
  /** As it was stored: ids that end with `/` or `|` are completed. */
  readonly id: string;
  readonly collection: string;
  readonly changeVector: string;
}

export interface Patched<T> {
  readonly status: "patched" | "created" | "unchanged" | "missing";
  /** As it is now; null when there is none. */
  readonly document: Document<T> | null;
}

/** One step of a batch. */
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
  /** Null when nothing was stored: after a deletion, and a patch that changed nothing. */
  readonly changeVector: string | null;
}

export interface QueryOptions {
  /** Milliseconds to wait for indexes that are behind; 0: do not wait. Left out: 15,000. */
  readonly waitMs?: number;
  readonly signal?: AbortSignalLike;
}

/**
 * A query that has not run yet. Each reading runs it. A loop over it gets rows as they are found; while the loop is busy,
 * the query waits, and a loop that is left ends it.
 */
export interface Query<T> extends AsyncIterable<Row<T>> {
  toArray(): Promise<Row<T>[]>;
  /** The first row; null when there is none. */
  first(): Promise<Row<T> | null>;
  /** All rows, with what is known of the result as a whole. */
  result(): Promise<QueryResult<T>>;
  /** The rows as JSON text, with their numbers as they were written. */
  texts(): AsyncIterable<string>;
}

export interface QueryResult<T> {
  readonly rows: Row<T>[];
  /** Matches before `limit`; -1 when they were not counted. */
  readonly totalResults: number;
  /** The index that was used; for a scan of a collection a name that begins with `collection/`. */
  readonly indexName: string;
  /** Was the index behind, although it was waited for? */
  readonly isStale: boolean;
  /** Documents named by an `include`, by id. */
  readonly includes: Readonly<Record<string, Document<JsonObject>>>;
}

export interface ChangesOptions {
  /** Only of this collection. */
  readonly collection?: string;
  /** Only of documents whose ids begin so. */
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
  /** Bytes. */
  readonly size: number;
  /** Base64 of the content's BLAKE2b-256. */
  readonly hash: string;
  readonly changeVector: string;
}

export interface Attachment extends AttachmentFacts {
  /** The content in pieces. @throws (when read) EngineError record-damaged */
  stream(): AsyncIterable<Uint8Array>;
  /** The content as a whole. */
  bytes(): Promise<Uint8Array>;
}

export interface DumpOptions {
  /** Only these collections. */
  readonly collections?: readonly string[];
}

/** The result of a salvage. */
export interface SalvagedDatabase {
  readonly documents: number;
  readonly revisions: number;
  /** Counters, attachments, time series, identities and so on. */
  readonly entries: number;
  /** Unreadable parts of the log. What was stored there may be missing, or appear in an older version. */
  readonly losses: readonly SalvageLoss[];
  /** What belonged to a lost document: `document/name`. It is left out. */
  readonly orphans: readonly string[];
  /** Attachments whose content is lost or damaged: `document/name`. Their names are kept. */
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
