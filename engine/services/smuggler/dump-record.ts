/**
 * The database record in a dump: the exported parts, and the parts that an import applies. Keys and their order equal
 * those of RavenDB 7.2.7.
 */
import { isObject, type JsonObject } from "../../base/json/json-object.ts";

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

/** Mark in the record of our backups: sections other than documents and their parts are complete. */
const completeMark = "HasCompleteSections";

/** Returns whether this beginning of a dump's text identifies it as one of our backups. */
export function hasCompleteSections(head: string): boolean {
  return /^\{"BuildVersion":\d+,"DatabaseRecord":\{"HasCompleteSections":true,/.test(head);
}

/** @param record the database's settings record. */
export function exportedRecord(name: string, record: JsonObject, isBackup: boolean): JsonObject {
  const exported: Record<string, unknown> = {
    ...(isBackup ? { [completeMark]: true } : {}),
    DatabaseName: name,
    Encrypted: false,
  };
  for (const [key, value] of Object.entries(defaults)) exported[key] = record[key] ?? value;
  exported["Settings"] = Object.entries((record["Settings"] ?? {}) as JsonObject).map(
    ([key, value]) => ({ [key]: value }),
  );
  return exported;
}

/** Keys that a restored database has unchanged: all except the keys that its engine derives. */
const restoredKeys = Object.keys(defaults).filter(
  (key) => key !== "IndexesHistory" && !importedParts.some((part) => part.key === key),
);

/** The changes that an import makes to a record. */
interface RecordChange {
  readonly parts: JsonObject;
  /** Names of the parts in results. */
  readonly names: readonly string[];
}

/**
 * @param dumped the dump's record. @param types lower-cased words of `OperateOnDatabaseRecordType`; null: all.
 * @param isRestore all parts are restored, including parts that an import leaves out
 */
export function recordChange(
  dumped: JsonObject,
  types: ReadonlySet<string> | null,
  isRestore: boolean,
): RecordChange {
  const parts: Record<string, unknown> = {};
  const names: string[] = [];
  for (const { key, type, name } of importedParts) {
    const value = dumped[key];
    if (types !== null && !types.has(type)) continue;
    const taken = takenPart(key, value);
    if (taken === null) continue;
    parts[key] = taken;
    names.push(name);
  }
  if (isRestore) {
    for (const key of restoredKeys) {
      const value = dumped[key];
      if (typeof value === "object" && value !== null) parts[key] = value;
    }
  }
  return { parts, names };
}

/** Returns the value of a part to store; null to omit it. */
function takenPart(key: (typeof importedParts)[number]["key"], value: unknown): unknown {
  if (key === "LockMode") return lockModes.find((mode) => mode === value) ?? "Unlock";
  if (key === "Settings") return settingsOf(value);
  if (!isObject(value)) return null;
  return key === "Revisions" ? wholeRules(value) : value;
}

const lockModes = ["Unlock", "PreventDeletesIgnore", "PreventDeletesError"] as const;

/** Returns a revisions configuration whose rules have all members. */
function wholeRules(sent: JsonObject): JsonObject {
  const whole = (rule: unknown) => (isObject(rule) ? { ...unsetRule, ...rule } : null);
  const collections = isObject(sent["Collections"]) ? sent["Collections"] : {};
  const rules = Object.entries(collections).map(([name, rule]) => [name, whole(rule)]);
  return {
    ...sent,
    Default: whole(sent["Default"]),
    Collections: Object.fromEntries(rules) as object,
  };
}

const unsetRule = {
  Disabled: false,
  MinimumRevisionsToKeep: null,
  MinimumRevisionAgeToKeep: null,
  PurgeOnDelete: false,
  MaximumRevisionsToDeleteUponDocumentUpdate: null,
};

/** Dumps contain a list of objects with one key each. */
function settingsOf(value: unknown): JsonObject | null {
  const list = Array.isArray(value) ? value : [value];
  const settings = Object.assign({}, ...list.filter(isObject)) as JsonObject;
  return Object.keys(settings).length === 0 ? null : settings;
}
