/**
 * The database record in a dump: the exported parts, and those that an import applies. Keys and their order are those
 * of RavenDB 7.2.7.
 */
import type { JsonObject } from "../json/json-object.ts";

/** Keys of a dump's record, with the values of parts that were never set. */
const defaults: JsonObject = {
  UnusedDatabaseIds: [],
  LockMode: "Unlock",
  ConflictSolverConfig: null,
  Settings: {},
  Revisions: null,
  TimeSeries: null,
  DocumentsCompression: null,
  Expiration: null,
  DataArchival: null,
  RemoteAttachments: null,
  Refresh: null,
  Client: null,
  Sorters: {},
  Analyzers: {},
  IndexesHistory: {},
  RavenConnectionStrings: {},
  SqlConnectionStrings: {},
  PeriodicBackups: [],
  ExternalReplications: [],
  RavenEtls: [],
  SqlEtls: [],
  HubPullReplications: [],
  SinkPullReplications: [],
  OlapConnectionStrings: {},
  OlapEtls: [],
  ElasticSearchConnectionStrings: {},
  ElasticSearchEtls: [],
  QueueConnectionStrings: {},
  QueueEtls: [],
  SnowflakeConnectionStrings: {},
  SnowflakeEtls: [],
  QueueSinks: [],
  CdcSinks: [],
  EmbeddingsGenerations: [],
  AiConnectionStrings: {},
  AiAgents: [],
  GenAis: [],
};

/** Parts that an import applies: key in the record, word in `OperateOnDatabaseRecordType`, name in the result. */
const importedParts = [
  { key: "Settings", type: "settings", name: "Settings" },
  { key: "Revisions", type: "revisions", name: "RevisionsConfiguration" },
  { key: "Expiration", type: "expiration", name: "ExpirationConfiguration" },
  { key: "Refresh", type: "refresh", name: "RefreshConfiguration" },
  { key: "Client", type: "client", name: "ClientConfiguration" },
  { key: "LockMode", type: "lockmode", name: "LockMode" },
] as const;

/** @param record the database's settings record. */
export function exportedRecord(name: string, record: JsonObject): JsonObject {
  const exported: Record<string, unknown> = { DatabaseName: name, Encrypted: false };
  for (const [key, value] of Object.entries(defaults)) exported[key] = record[key] ?? value;
  exported["Settings"] = Object.entries((record["Settings"] ?? {}) as JsonObject).map(
    ([key, value]) => ({ [key]: value }),
  );
  return exported;
}

/** The changes that an import makes to a record. */
export interface RecordChange {
  readonly parts: JsonObject;
  /** Names of the parts in results. */
  readonly names: readonly string[];
}

/**
 * @param dumped the dump's record. @param types lower-cased words of `OperateOnDatabaseRecordType`; null: all.
 */
export function recordChange(dumped: JsonObject, types: ReadonlySet<string> | null): RecordChange {
  const parts: Record<string, unknown> = {};
  const names: string[] = [];
  for (const { key, type, name } of importedParts) {
    const value = dumped[key];
    if (types !== null && !types.has(type)) continue;
    const taken = key === "Settings" ? settingsOf(value) : value;
    const isUsable = key === "LockMode" ? typeof taken === "string" : isObject(taken);
    if (!isUsable) continue;
    parts[key] = taken;
    names.push(name);
  }
  return { parts, names };
}

/** Dumps contain a list of objects with one key each. */
function settingsOf(value: unknown): JsonObject | null {
  const list = Array.isArray(value) ? value : [value];
  const settings = Object.assign({}, ...list.filter(isObject)) as JsonObject;
  return Object.keys(settings).length === 0 ? null : settings;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
