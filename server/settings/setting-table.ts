/**
 * The list of supported settings: type of value, default, unit, and description. `jackdaw help serve`, `jackdaw config`, and
 * completion print it, and docs/settings.md is compared with it.
 */
import {
  batchCommandsMax,
  folderSilenceMs,
  scriptBytesMax,
  scriptMsMax,
  scriptStepsMax,
} from "../../engine/base/limits.ts";
import { nodeTagDefault } from "../../engine/base/names.ts";
import { workLimits } from "../../engine/base/scheduling/work-budget.ts";

export type SettingKind = "text" | "bool" | "count" | "seconds" | "url";

export interface Setting {
  /** The heading in docs/settings.md. */
  readonly group:
    | "Addresses"
    | "Cluster"
    | "Data"
    | "Certificates"
    | "Logs and monitoring"
    | "Requests"
    | "Queries"
    | "Scripts"
    | "For tests";
  readonly kind: SettingKind;
  /** As text, or undefined if not set by default. */
  readonly fallback: string | undefined;
  /** Unit of a number, if any. */
  readonly unit?: string;
  readonly isSecret?: true;
  /** One line, with which the row in docs/settings.md begins. */
  readonly about: string;
}

/** Every supported setting. Counts are whole numbers >= 0; seconds, or the given `unit`, may have a fraction. */
const settingTable = {
  ServerUrl: {
    group: "Addresses",
    kind: "url",
    fallback: "https://127.0.0.1:8443",
    about: "where to listen",
  },
  "ServerUrl.Tcp": {
    group: "Addresses",
    kind: "url",
    fallback: undefined,
    about: "where subscriptions are served, tcp://host:port or a port",
  },
  PublicServerUrl: {
    group: "Addresses",
    kind: "url",
    fallback: undefined,
    about: "how clients reach the server, if not by ServerUrl",
  },
  "PublicServerUrl.Tcp": {
    group: "Addresses",
    kind: "url",
    fallback: undefined,
    about: "how clients reach ServerUrl.Tcp",
  },
  "Cluster.NodeTag": {
    group: "Addresses",
    kind: "text",
    fallback: nodeTagDefault,
    about:
      "the name of this node in change vectors, server-made ids and replies: one to four letters from A to Z",
  },
  "Studio.Path": {
    group: "Addresses",
    kind: "text",
    fallback: undefined,
    about: "a copy of RavenDB's Studio, a folder or Raven.Studio.zip, to be served instead of ours",
  },
  "Cluster.Routes": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about:
      "host:port of the nats-server of each node, separated by commas: this node starts its own",
  },
  "Cluster.Nats.Route": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about: "the entry of this node in Cluster.Routes",
  },
  "Cluster.Nats.Path": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about: "the path of nats-server, 2.15.1 or newer",
  },
  "Cluster.Nats.Url": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about:
      "external NATS servers, nats://host:port, separated by commas, instead of Cluster.Routes: all of the cluster",
  },
  "Cluster.Nats.User": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about: "the user of Jackdaw on these servers",
  },
  "Cluster.Nats.Password": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    isSecret: true,
    about: "the password of that user",
  },
  "Cluster.Nats.SystemUser": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about: "a user of their system account, for the state of all replicas",
  },
  "Cluster.Nats.SystemPassword": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    isSecret: true,
    about: "the password of that user",
  },
  "Cluster.Nats.CertificatePath": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about: "the certificate, PEM, that this node presents to NATS servers",
  },
  "Cluster.Nats.KeyPath": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about: "its private key, PEM",
  },
  "Cluster.Nats.CaPath": {
    group: "Cluster",
    kind: "text",
    fallback: undefined,
    about: "the CA that issued the certificates of the other nodes, PEM",
  },
  "Cluster.TrimAfterAbsenceInHours": {
    group: "Cluster",
    kind: "count",
    fallback: "24",
    unit: "hours",
    about:
      "how long the streams of NATS retain messages for an absent node, at most 16 GB for each database",
  },
  DataDir: {
    group: "Data",
    kind: "text",
    fallback: "./data",
    about: "the folder of all durable data",
  },
  RunInMemory: {
    group: "Data",
    kind: "bool",
    fallback: "false",
    about: "store nothing on disk: databases are lost when the server stops",
  },
  "Memory.LimitInMb": {
    group: "Data",
    kind: "count",
    fallback: undefined,
    unit: "MB",
    about: "memory for stored documents, bodies, replies and running work",
  },
  "Server.ShutdownTimeoutInSec": {
    group: "Data",
    kind: "seconds",
    fallback: "7",
    unit: "s",
    about: "how long a stopping server waits for requests in progress",
  },
  "Server.FolderSilenceInSec": {
    group: "Data",
    kind: "seconds",
    fallback: String(folderSilenceMs / 1000),
    unit: "s",
    about:
      "time without a heartbeat of its server after which another one may take the data folder",
  },
  "Databases.MaxIdleTimeInSec": {
    group: "Data",
    kind: "seconds",
    fallback: "900",
    unit: "s",
    about: "a database unused for this long is closed, and reopened by the next request",
  },
  "Databases.FrequencyToCheckForIdleInSec": {
    group: "Data",
    kind: "seconds",
    fallback: "30",
    unit: "s",
    about: "how often the server checks for unused databases",
  },
  "Tombstones.CleanupIntervalInMin": {
    group: "Data",
    kind: "seconds",
    fallback: "5",
    unit: "min",
    about: "how often tombstones are removed that all indexes have processed",
  },
  "Backup.LocalRootPath": {
    group: "Data",
    kind: "text",
    fallback: undefined,
    about: "the folder that must contain all backups, including those to restore",
  },
  "Security.Certificate.Path": {
    group: "Certificates",
    kind: "text",
    fallback: undefined,
    about: "a certificate of your own, PEM or PFX, instead of the generated one",
  },
  "Security.Certificate.Password": {
    group: "Certificates",
    kind: "text",
    fallback: undefined,
    isSecret: true,
    about: "the password of that certificate",
  },
  "Security.UnsecuredAccessAllowed": {
    group: "Certificates",
    kind: "text",
    fallback: "Local",
    about:
      "where a server without TLS may be accessed from: None, Local, PrivateNetwork, PublicNetwork",
  },
  "Security.WellKnownCertificates.Admin": {
    group: "Certificates",
    kind: "text",
    fallback: "",
    about:
      "SHA-1 thumbprints of certificates that are cluster administrators without being registered, separated by ;",
  },
  "Logs.Path": {
    group: "Logs and monitoring",
    kind: "text",
    fallback: undefined,
    about: "a folder for the file server.log",
  },
  "Logs.MinLevel": {
    group: "Logs and monitoring",
    kind: "text",
    fallback: "Info",
    about: "the lowest level that is logged",
  },
  "Logs.Format": {
    group: "Logs and monitoring",
    kind: "text",
    fallback: "auto",
    about: "text or json on standard error",
  },
  "Logs.ArchiveAboveSizeInMb": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: "128",
    unit: "MB",
    about: "a file of that size is archived, and so is one that is a day old",
  },
  "Logs.MaxArchiveDays": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: "3",
    unit: "days",
    about: "after how many days an archive is deleted",
  },
  "Logs.MaxArchiveFiles": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: undefined,
    unit: "files",
    about: "number of retained archives",
  },
  "Logs.EnableArchiveFileCompression": {
    group: "Logs and monitoring",
    kind: "bool",
    fallback: "false",
    about: "compress archives with gzip",
  },
  "Logs.Requests": {
    group: "Logs and monitoring",
    kind: "bool",
    fallback: "false",
    about: "a line for each request",
  },
  "Logs.SlowQueryInMs": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: "1000",
    unit: "ms",
    about: "queries at least this long are logged",
  },
  "Logs.SlowWriteInMs": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: "1000",
    unit: "ms",
    about: "likewise a write",
  },
  "Security.AuditLog.FolderPath": {
    group: "Logs and monitoring",
    kind: "text",
    fallback: undefined,
    about: "a folder for the file audit.log",
  },
  "Security.AuditLog.RetentionTimeInHours": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: "8760",
    unit: "hours",
    about: "after how long its archives are deleted",
  },
  "Security.AuditLog.ArchiveAboveSizeInMb": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: "128",
    unit: "MB",
    about: "as for the log",
  },
  "Security.AuditLog.EnableArchiveFileCompression": {
    group: "Logs and monitoring",
    kind: "bool",
    fallback: "false",
    about: "as for the log",
  },
  "Monitoring.ServerUrl": {
    group: "Logs and monitoring",
    kind: "url",
    fallback: undefined,
    about: "an address, http://host:port, where metrics and health are served without certificates",
  },
  "Monitoring.MaxDatabases": {
    group: "Logs and monitoring",
    kind: "count",
    fallback: "100",
    unit: "databases",
    about: "how many databases have metrics of their own",
  },
  "Http.MaxRequestBodySizeInMb": {
    group: "Requests",
    kind: "count",
    fallback: "160",
    unit: "MB",
    about: "size of a buffered body: documents, batches",
  },
  "Http.MaxRequestHeadersSizeInKb": {
    group: "Requests",
    kind: "count",
    fallback: "32",
    unit: "KB",
    about: "all headers of a request",
  },
  "Http.MaxRequestLineSizeInKb": {
    group: "Requests",
    kind: "count",
    fallback: "16",
    unit: "KB",
    about: "path and query string",
  },
  "Http.Http2.MaxStreamsPerConnection": {
    group: "Requests",
    kind: "count",
    fallback: "100",
    about: "concurrent requests on one HTTP/2 connection",
  },
  "Http.Threads": {
    group: "Requests",
    kind: "count",
    fallback: undefined,
    about:
      "threads for TLS and HTTP beside the engine's, at most 4; 0 runs them on the engine's thread; by default one less than there are processors",
  },
  "Http.MaxConnections": {
    group: "Requests",
    kind: "count",
    fallback: "10000",
    about:
      "open connections: of one certificate three quarters, of one address without a registered certificate one quarter",
  },
  "Http.MaxRequestsInFlight": {
    group: "Requests",
    kind: "count",
    fallback: "4096",
    about: "requests under way",
  },
  "Http.KeepAliveTimeoutInSec": {
    group: "Requests",
    kind: "seconds",
    fallback: "130",
    unit: "s",
    about: "after how long an idle connection is closed",
  },
  "Http.HandshakeTimeoutInSec": {
    group: "Requests",
    kind: "seconds",
    fallback: "10",
    unit: "s",
    about: "time for a TLS handshake",
  },
  "Http.RequestHeadersTimeoutInSec": {
    group: "Requests",
    kind: "seconds",
    fallback: "30",
    unit: "s",
    about: "time for the headers of a request",
  },
  "Http.RequestBodyIdleTimeoutInSec": {
    group: "Requests",
    kind: "seconds",
    fallback: "120",
    unit: "s",
    about: "time without a byte of the body",
  },
  "Http.MinDataRateBytesPerSec": {
    group: "Requests",
    kind: "count",
    fallback: "240",
    unit: "bytes/s",
    about: "minimum rate of a body",
  },
  "Http.MinDataRateGracePeriodInSec": {
    group: "Requests",
    kind: "seconds",
    fallback: "30",
    unit: "s",
    about: "time after which the rate of a body is checked",
  },
  "Http.ResponseStallTimeoutInSec": {
    group: "Requests",
    kind: "seconds",
    fallback: "60",
    unit: "s",
    about: "time without progress of a reply to its client",
  },
  "Http.MaxJsonRequestSizeInMb": {
    group: "Requests",
    kind: "count",
    fallback: "2",
    unit: "MB",
    about: "a body of instructions instead of data: ids to load, multi_get, definitions",
  },
  "Http.MaxBatchCommands": {
    group: "Requests",
    kind: "count",
    fallback: String(batchCommandsMax),
    about: "commands of one bulk_docs, and documents that it deletes by a prefix of their ids",
  },
  "Http.MaxHeldRepliesInMb": {
    group: "Requests",
    kind: "count",
    fallback: "96",
    unit: "MB",
    about: "memory for all unread replies",
  },
  "Http.MaxHeldBodiesInMb": {
    group: "Requests",
    kind: "count",
    fallback: "128",
    unit: "MB",
    about:
      "memory for all bodies in progress: from 1 MB on, each counts twice, because a record is created from it",
  },
  "Http.UseResponseCompression": {
    group: "Requests",
    kind: "bool",
    fallback: "true",
    about:
      "compress replies of 2 KB and more for clients that accept it, and smaller ones for clients that accept one encoding only",
  },
  "Query.MaxWorkInMillions": {
    group: "Queries",
    kind: "count",
    fallback: `${workLimits.unitsMax / 1e6}`,
    unit: "million steps",
    about: "steps of work: processed terms, entries and characters of expressions",
  },
  "Query.MaxMemoryInMb": {
    group: "Queries",
    kind: "count",
    fallback: `${workLimits.bytesMax / 1024 / 1024}`,
    unit: "MB",
    about: "memory for collected data of a query: distinct rows, includes, scores, long lists",
  },
  "Query.MaxClauseCount": {
    group: "Queries",
    kind: "count",
    fallback: `${workLimits.clausesMax}`,
    about: "conditions in the text of a query",
  },
  "Query.MaxTextLengthInKb": {
    group: "Queries",
    kind: "count",
    fallback: `${workLimits.textLengthMax / 1024}`,
    unit: "thousand characters",
    about: "characters of the text of a query",
  },
  "Query.MaxRequestSizeInMb": {
    group: "Queries",
    kind: "count",
    fallback: `${workLimits.requestBytesMax / 1024 / 1024}`,
    unit: "MB",
    about: "the whole request of a query, parameters included",
  },
  "Patching.MaxStepsForScript": {
    group: "Scripts",
    kind: "count",
    fallback: `${scriptStepsMax}`,
    unit: "statements",
    about: "statements of a script for one document",
  },
  "Patching.MaxTimeForScriptInMs": {
    group: "Scripts",
    kind: "count",
    fallback: `${scriptMsMax}`,
    unit: "ms",
    about: "processor time for one document",
  },
  "Patching.MaxMemoryForScriptInMb": {
    group: "Scripts",
    kind: "count",
    fallback: `${scriptBytesMax / 1024 / 1024}`,
    unit: "MB",
    about: "values that the script creates and stores for one document",
  },
  "Testing.ParentProcessId": {
    group: "For tests",
    kind: "count",
    fallback: undefined,
    about: "the server stops when this process exits",
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settingTable;

export const settings: Readonly<Record<SettingName, Setting>> = settingTable;
