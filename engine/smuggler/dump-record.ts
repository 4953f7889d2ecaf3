/**
 * The record of a database in a dump: what of it is exported, and what an import takes of one. Keys and their order are
 * those of RavenDB 7.2.7.
 */
import type { JsonObject } from "../json/json-object.ts";

/** Keys of a dump's record with the value of one that was never set. */
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

/** What an import takes: the key in the record, its word in `OperateOnDatabaseRecordType`, its name in the result. */
const importedParts = [
  { key: "Settings", type: "settings", name: "Settings" },
  { key: "Revisions", type: "revisions", name: "RevisionsConfiguration" },
  { key: "Expiration", type: "expiration", name: "ExpirationConfiguration" },
  { key: "Refresh", type: "refresh", name: "RefreshConfiguration" },
  { key: "Client", type: "client", name: "ClientConfiguration" },
  { key: "LockMode", type: "lockmode", name: "LockMode" },
] as const;

/** @param record the database's record of settings. */
export function exportedRecord(name: string, record: JsonObject): JsonObject {
  const exported: Record<string, unknown> = { DatabaseName: name, Encrypted: false };
  for (const [key, value] of Object.entries(defaults)) exported[key] = record[key] ?? value;
  exported["Settings"] = Object.entries((record["Settings"] ?? {}) as JsonObject).map(
    ([key, value]) => ({ [key]: value }),
  );
  return exported;
}

/** What an import changes of a record. */
export interface RecordChange {
  readonly parts: JsonObject;
  /** Names of the parts, as results call them. */
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

/** Dumps have a list of objects with one key each. */
function settingsOf(value: unknown): JsonObject | null {
  const list = Array.isArray(value) ? value : [value];
  const settings = Object.assign({}, ...list.filter(isObject)) as JsonObject;
  return Object.keys(settings).length === 0 ? null : settings;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
