/**
 * Every error with a cause outside this code: the caller's mistake, or the environment's.
 *
 * The list of codes is closed. `server/http/error-status.ts` maps each code to its HTTP status and to the type name
 * that clients know; a code without both does not compile.
 */

/** Error code, grouped by the phase in which the error can occur. */
export type ErrorCode =
  // a value in a request
  | "invalid-argument" // a parameter or field is missing, empty or of the wrong form
  | "argument-null" // a required value is missing
  | "null-reference" // a referenced object does not exist
  | "out-of-range" // a value is not in the set of allowed values
  | "invalid-format" // text that should be a date, an enum member, ... is not
  | "invalid-cast" // a value has a type that its position does not allow
  | "invalid-operation" // the request makes no sense in the present state
  | "bad-request" // the request as a whole is incomplete
  | "not-supported" // understood, but refused
  | "access-refused" // valid, but not allowed here or for this caller
  | "too-large" // over a limit of size, depth or count
  // JSON text
  | "json-invalid" // not JSON; the message has line and column
  | "json-truncated" // ends too early, or is empty
  | "json-not-object" // JSON, but not an object where one is needed
  | "json-escape" // a backslash followed by a character that cannot be escaped
  // documents
  | "concurrency" // the expected change vector is not the current one
  | "document-missing"
  | "collection-mismatch" // a write would move a document to another collection
  | "attachment-missing"
  | "counter-overflow"
  | "series-value-invalid" // an entry of a time series has a value that is not a number (NaN)
  | "series-out-of-range" // an entry of a time series has too many values or too long a tag
  | "compare-exchange-key-too-big"
  | "cluster-concurrency" // a cluster-wide batch met a newer atomic guard or compare-exchange value
  | "command-invalid" // a batch has a command of an unknown type
  | "compare-exchange-key-invalid" // a key that only the database itself may use
  | "raft-apply" // a cluster-wide command that cannot be applied
  // databases
  | "database-missing"
  | "database-exists"
  | "database-disabled"
  | "database-name-invalid"
  | "database-damaged" // its files are damaged; the message names file and offset
  | "database-locked" // another process has its folder
  | "folder-lost" // another process took the folder while this one was silent
  | "database-stopped" // a sync failed, or an invariant did not hold: it serves nothing until it is reopened
  | "storage-failed" // the system reports an error of the device or of its files that may last
  | "disk-full" // writes are refused until there is space; deletes and compaction go on
  | "backup-damaged" // a file of a backup is damaged or missing; the message names it
  | "record-damaged" // one record's checksum is wrong; the message names the document
  | "file-failed" // a file outside of the data folder cannot be read or written
  | "read-failed" // a transient read error: the content is unknown, and a retry may succeed
  // several nodes
  | "not-leader" // another node writes this database, or none does at the moment
  | "outcome-unknown" // a write may have been kept or not: the node stopped leading before it knew
  | "stream-unavailable" // the stream that replicates the log does not answer
  | "node-unreachable" // another node of the cluster does not respond, or is not the registered one
  // work
  | "work-limit" // the request exceeds its limit of work or memory; the message names the setting
  | "memory-full" // the memory for work is in use by other requests
  // queries and scripts
  | "query-syntax"
  | "query-invalid"
  | "lucene-syntax" // the text of lucene() does not follow Lucene's grammar
  | "index-missing"
  | "summary-index-missing" // facets or suggestions of an index that does not exist
  | "index-invalid"
  | "index-creation"
  | "index-output" // a collection that an index may not write its reduced objects to
  | "index-deletion"
  | "index-compilation"
  | "index-stale"
  | "shape-invalid" // coordinates or well-known text that are no shape
  | "spatial-unsupported" // a spatial relation that an index of this kind does not know
  | "sorter-missing"
  | "sorter-compilation"
  | "analyzer-compilation"
  | "script-failed"
  | "script-syntax"
  | "script-recursion"
  | "method-missing" // a script calls a function of an old version; the message has its new name
  | "regex-invalid"
  | "operation-missing"
  | "operation-cancelled"
  | "query-killed"
  // subscriptions
  | "subscription-missing"
  | "subscription-in-use"
  | "subscription-closed"
  | "subscription-invalid"
  | "subscription-name-invalid"
  | "subscription-changed" // its current definition differs from the worker's
  // waiting
  | "overloaded" // not enough memory beside other work; a retry may succeed
  | "timeout";

/** An error for the caller. `details` are extra fields of an error reply (ids, change vectors, ...). */
export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options?: { cause?: unknown; details?: Readonly<Record<string, unknown>> },
  ) {
    super(message, options);
    this.code = code;
    this.details = options?.details;
  }
}

/** An argument of the caller cannot be used. */
export function invalidArgument(message: string): EngineError {
  return new EngineError("invalid-argument", message);
}
