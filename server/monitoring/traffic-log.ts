/**
 * Logs finished requests selected by RavenDB 7.2.7's configuration of its traffic watch. As in RavenDB, the configuration
 * lasts until the server stops.
 *
 * Invariants:
 * - No part of a document and no value of a query is logged: a line contains the same data as the messages of watchers.
 * - An empty list, or 0, is no restriction.
 */
import type { Exchange } from "../http/exchange.ts";
import type { JsonObject } from "../http/json-body.ts";
import { RequestError } from "../http/request-error.ts";
import type { Log } from "../logging/log.ts";
import { detailsOf, trafficKind } from "./traffic-watch.ts";

const modes = ["None", "Off", "ToLogFile"] as const;
/** RavenDB's names of the types of requests. */
const changeTypes: readonly string[] = [
  "None",
  "Queries",
  "Operations",
  "MultiGet",
  "BulkDocs",
  "Index",
  "Counters",
  "Hilo",
  "Subscriptions",
  "Streams",
  "Documents",
  "TimeSeries",
  "Notifications",
  "ClusterCommands",
];

/** The configuration as sent and returned. Database names are compared case-insensitively, all other values exactly. */
interface TrafficConfiguration {
  readonly TrafficWatchMode: (typeof modes)[number];
  readonly Databases: readonly string[] | null;
  readonly StatusCodes: readonly number[] | null;
  readonly MinimumResponseSizeInBytes: number;
  readonly MinimumRequestSizeInBytes: number;
  readonly MinimumDurationInMs: number;
  readonly HttpMethods: readonly string[] | null;
  readonly ChangeTypes: readonly string[] | null;
  readonly CertificateThumbprints: readonly string[] | null;
}

/** @throws RequestError 400, with RavenDB's types and texts */
export function trafficConfigurationOf(sent: JsonObject): TrafficConfiguration {
  return {
    TrafficWatchMode: modeOf(sent["TrafficWatchMode"] ?? "None"),
    Databases: listOf(sent["Databases"], String),
    StatusCodes: listOf(sent["StatusCodes"], statusOf),
    MinimumResponseSizeInBytes: leastOf(sent["MinimumResponseSizeInBytes"]),
    MinimumRequestSizeInBytes: leastOf(sent["MinimumRequestSizeInBytes"]),
    MinimumDurationInMs: leastOf(sent["MinimumDurationInMs"]),
    HttpMethods: listOf(sent["HttpMethods"], String),
    ChangeTypes: listOf(sent["ChangeTypes"], changeTypeOf),
    CertificateThumbprints: listOf(sent["CertificateThumbprints"], String),
  };
}

export class TrafficLog {
  configuration: TrafficConfiguration = {
    TrafficWatchMode: "Off",
    Databases: null,
    StatusCodes: null,
    MinimumResponseSizeInBytes: 0,
    MinimumRequestSizeInBytes: 0,
    MinimumDurationInMs: 0,
    HttpMethods: null,
    ChangeTypes: null,
    CertificateThumbprints: null,
  };
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  get isOn(): boolean {
    return this.configuration.TrafficWatchMode === "ToLogFile";
  }

  /** Records a finished request. `pattern` is the path of its route, or "". */
  ended(exchange: Exchange, pattern: string, ms: number): void {
    const { method, status, replyBytes, identity, databaseName } = exchange;
    const requestBytes = Number(exchange.header("content-length") ?? 0) || 0;
    const type = trafficKind(method, pattern);
    const wanted = this.configuration;
    const fits =
      has(wanted.Databases?.map(lower), databaseName?.toLowerCase()) &&
      has(wanted.StatusCodes, status) &&
      has(wanted.HttpMethods, method) &&
      has(wanted.ChangeTypes, type) &&
      has(wanted.CertificateThumbprints, identity.thumbprint) &&
      replyBytes >= wanted.MinimumResponseSizeInBytes &&
      requestBytes >= wanted.MinimumRequestSizeInBytes &&
      ms >= wanted.MinimumDurationInMs;
    if (!fits) return;
    this.#log.info("traffic", {
      event: "traffic",
      method,
      route: pattern || null,
      database: databaseName ?? null,
      status,
      ms: Math.round(ms * 1000) / 1000,
      requestBytes,
      replyBytes,
      type,
      about: detailsOf(exchange, pattern),
      address: exchange.remoteAddress,
      thumbprint: identity.thumbprint || null,
    });
  }
}

function has<T>(list: readonly T[] | null | undefined, value: T | undefined): boolean {
  if (list === null || list === undefined || list.length === 0) return true;
  return value !== undefined && list.includes(value);
}

function lower(text: string): string {
  return text.toLowerCase();
}

function modeOf(sent: unknown): TrafficConfiguration["TrafficWatchMode"] {
  const mode = modes.find((one) => one === sent);
  if (mode !== undefined) return mode;
  throw notConverted(sent, "Raven.Client.ServerWide.Operations.TrafficWatch.TrafficWatchMode");
}

/** @param sent null and undefined count as empty */
function listOf<T>(sent: unknown, itemOf: (item: unknown) => T): readonly T[] {
  if (sent === undefined || sent === null) return [];
  if (!Array.isArray(sent)) throw notConverted(sent, "Sparrow.Json.BlittableJsonReaderArray");
  return sent.map(itemOf);
}

function statusOf(sent: unknown): number {
  const code = Number(sent);
  if (Number.isFinite(code)) return Math.trunc(code);
  throw notCast(`Unable to convert '${String(sent)}' to a double`);
}

function changeTypeOf(sent: unknown): string {
  if (sent === null) return "None";
  if (typeof sent !== "string") {
    const type = "Raven.Client.Documents.Changes.TrafficWatchChangeType";
    throw notCast(`Invalid cast from 'System.Int64' to '${type}'.`);
  }
  if (changeTypes.includes(sent)) return sent;
  const message = `Requested value '${sent}' was not found.`;
  throw new RequestError(400, "System.ArgumentException", message);
}

/** Truncates fractions; a missing value is 0. */
function leastOf(sent: unknown): number {
  const value = sent ?? 0;
  const least = typeof value === "object" ? Number.NaN : Number(value);
  if (Number.isFinite(least)) return Math.trunc(least);
  throw notConverted(sent, "System.Int64");
}

function notCast(message: string): RequestError {
  return new RequestError(400, "System.InvalidCastException", message);
}

function notConverted(sent: unknown, type: string): RequestError {
  const text = typeof sent === "string" ? sent : JSON.stringify(sent);
  const message = `Could not convert Sparrow.Json.LazyStringValue ('${text}') to ${type}`;
  return new RequestError(400, "System.FormatException", message);
}
