/**
 * Engine error code -> HTTP status and the type name that clients of the interface map to an exception.
 *
 * RavenDB 7.2.7 answers 500 to most client errors; here they are 400 with the same type, because clients decide by the
 * type. RavenDB's status is kept where clients depend on it: 409 and 503. An error is never 404: clients read that as
 * "the result is null".
 */
import type { ErrorCode } from "../../engine/base/errors.ts";

interface ErrorStatus {
  readonly status: number;
  /** Full .NET type name; clients examine its prefix and its last segment. */
  readonly type: string;
}

const client = "Raven.Client.Exceptions";

export const errorStatus: Readonly<Record<ErrorCode, ErrorStatus>> = {
  "invalid-argument": { status: 400, type: "System.ArgumentException" },
  "argument-null": { status: 400, type: "System.ArgumentNullException" },
  "null-reference": { status: 400, type: "System.NullReferenceException" },
  "out-of-range": { status: 400, type: "System.ArgumentOutOfRangeException" },
  "invalid-format": { status: 400, type: "System.FormatException" },
  "invalid-cast": { status: 400, type: "System.InvalidCastException" },
  "invalid-operation": { status: 400, type: "System.InvalidOperationException" },
  "bad-request": { status: 400, type: `${client}.BadRequestException` },
  "not-supported": { status: 400, type: "System.NotSupportedException" },
  "access-refused": { status: 400, type: "System.UnauthorizedAccessException" },
  "too-large": { status: 413, type: "System.ArgumentException" },

  "json-invalid": { status: 400, type: "System.IO.InvalidDataException" },
  "json-truncated": { status: 400, type: "System.IO.EndOfStreamException" },
  "json-not-object": { status: 400, type: "Sparrow.Exceptions.InvalidStartOfObjectException" },
  "json-escape": { status: 400, type: "System.InvalidOperationException" },

  concurrency: { status: 409, type: `${client}.ConcurrencyException` },
  "document-missing": { status: 400, type: `${client}.Documents.DocumentDoesNotExistException` },
  "collection-mismatch": {
    status: 400,
    type: `${client}.Documents.DocumentCollectionMismatchException`,
  },
  "attachment-missing": {
    status: 400,
    type: `${client}.Documents.Attachments.AttachmentDoesNotExistException`,
  },
  "counter-overflow": {
    status: 400,
    type: `${client}.Documents.Counters.CounterOverflowException`,
  },
  "series-value-invalid": {
    status: 400,
    type: "Raven.Server.Documents.TimeSeries.NanValueException",
  },
  "series-out-of-range": { status: 400, type: "System.ArgumentOutOfRangeException" },
  "compare-exchange-key-too-big": {
    status: 400,
    type: `${client}.CompareExchangeKeyTooBigException`,
  },
  "compare-exchange-key-invalid": {
    status: 400,
    type: `${client}.CompareExchangeInvalidKeyException`,
  },
  "cluster-concurrency": {
    status: 409,
    type: `${client}.ClusterTransactionConcurrencyException`,
  },
  "command-invalid": { status: 400, type: "Raven.Server.Exceptions.InvalidCommandTypeException" },
  "raft-apply": { status: 400, type: "Raven.Server.Rachis.RachisApplyException" },

  "database-missing": { status: 400, type: `${client}.Database.DatabaseDoesNotExistException` },
  "database-exists": { status: 409, type: `${client}.ConcurrencyException` },
  "database-disabled": { status: 503, type: `${client}.Database.DatabaseDisabledException` },
  "database-name-invalid": { status: 400, type: `${client}.BadRequestException` },
  "database-damaged": { status: 503, type: `${client}.Database.DatabaseLoadFailureException` },
  "database-locked": { status: 503, type: `${client}.Database.DatabaseLoadFailureException` },
  "folder-lost": { status: 503, type: `${client}.Database.DatabaseLoadFailureException` },
  "database-stopped": { status: 503, type: `${client}.Database.DatabaseLoadFailureException` },
  "disk-full": { status: 503, type: "Sparrow.Server.Exceptions.DiskFullException" },
  "backup-damaged": { status: 400, type: "System.IO.InvalidDataException" },
  "record-damaged": { status: 500, type: "System.IO.InvalidDataException" },
  "file-failed": { status: 500, type: "System.IO.IOException" },
  "storage-failed": { status: 503, type: "System.IO.IOException" },
  "read-failed": { status: 503, type: "System.IO.IOException" },

  "not-leader": { status: 503, type: `${client}.Cluster.NoLeaderException` },
  "outcome-unknown": { status: 503, type: `${client}.Cluster.NoLeaderException` },
  "stream-unavailable": { status: 503, type: `${client}.Cluster.NoLeaderException` },
  "node-unreachable": { status: 503, type: `${client}.Cluster.NodeIsPassiveException` },

  "work-limit": { status: 400, type: `${client}.RavenException` },
  "memory-full": { status: 503, type: `${client}.ServerLoadFailureException` },

  "query-syntax": {
    status: 400,
    type: "Raven.Server.Documents.Queries.Parser.QueryParser+ParseException",
  },
  "lucene-syntax": { status: 400, type: "Lucene.Net.QueryParsers.ParseException" },
  "query-invalid": { status: 400, type: `${client}.InvalidQueryException` },
  "index-missing": {
    status: 400,
    type: `${client}.Documents.Indexes.IndexDoesNotExistException`,
  },
  "summary-index-missing": {
    status: 400,
    type: `${client}.Documents.Indexes.IndexDoesNotExistException`,
  },
  "sorter-missing": {
    status: 400,
    type: `${client}.Documents.Sorters.SorterDoesNotExistException`,
  },
  "shape-invalid": { status: 400, type: "Spatial4n.Exceptions.InvalidShapeException" },
  "spatial-unsupported": {
    status: 400,
    type: "Lucene.Net.Spatial.Queries.UnsupportedSpatialOperation",
  },
  "index-invalid": { status: 400, type: `${client}.Documents.Indexes.IndexInvalidException` },
  "index-creation": { status: 400, type: `${client}.Documents.Indexes.IndexCreationException` },
  "index-output": { status: 400, type: "System.AggregateException" },
  "index-deletion": { status: 400, type: `${client}.Documents.Indexes.IndexDeletionException` },
  "index-compilation": {
    status: 400,
    type: `${client}.Documents.Compilation.IndexCompilationException`,
  },
  "sorter-compilation": {
    status: 400,
    type: `${client}.Documents.Compilation.SorterCompilationException`,
  },
  "analyzer-compilation": {
    status: 400,
    type: `${client}.Documents.Compilation.AnalyzerCompilationException`,
  },
  "index-stale": { status: 400, type: "System.InvalidOperationException" },
  "method-missing": { status: 400, type: "System.MissingMethodException" },
  "script-failed": { status: 400, type: `${client}.Documents.Patching.JavaScriptException` },
  "script-syntax": { status: 400, type: `${client}.Documents.Patching.JavaScriptParseException` },
  "script-recursion": { status: 400, type: "Jint.Runtime.RecursionDepthOverflowException" },
  "regex-invalid": {
    status: 400,
    type: "System.Text.RegularExpressions.RegexParseException",
  },
  "operation-missing": { status: 400, type: "System.ArgumentException" },
  "operation-cancelled": { status: 400, type: "System.OperationCanceledException" },
  "query-killed": { status: 500, type: "System.OperationCanceledException" },

  "subscription-missing": {
    status: 400,
    type: `${client}.Documents.Subscriptions.SubscriptionDoesNotExistException`,
  },
  "subscription-in-use": {
    status: 400,
    type: `${client}.Documents.Subscriptions.SubscriptionInUseException`,
  },
  "subscription-closed": {
    status: 400,
    type: `${client}.Documents.Subscriptions.SubscriptionClosedException`,
  },
  "subscription-invalid": {
    status: 400,
    type: `${client}.Documents.Subscriptions.SubscriptionInvalidStateException`,
  },
  "subscription-name-invalid": {
    status: 400,
    type: `${client}.Documents.Subscriptions.SubscriptionNameException`,
  },
  "subscription-changed": {
    status: 400,
    type: `${client}.Documents.Subscriptions.SubscriptionChangeVectorUpdateConcurrencyException`,
  },

  overloaded: { status: 503, type: `${client}.RavenException` },
  timeout: { status: 408, type: `${client}.RavenTimeoutException` },
};
