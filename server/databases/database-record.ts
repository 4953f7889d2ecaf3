/**
 * The record of a database as clients see it: the members sent by its creator, completed with the members that every
 * record has. Keys and their order are those of RavenDB 7.2.7.
 */

import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type {
  AutomaticIndexInfo,
  Database,
  DeployedDefinition,
  IndexDefinition,
} from "../../engine/engine.ts";
import type { JsonObject } from "../http/json-body.ts";

/** The stored part of a record; the rest is derived. */
export interface KeptRecord extends JsonObject {
  DatabaseName: string;
  /** The index of the command that created the database. */
  CreatedIndex: number;
  /** The index of the last change to the record: its ETag. */
  ChangedIndex: number;
  /** ISO time with 7 digits. */
  CreatedAt: string;
}

/** `DatabaseState` of a database that is being restored and serves no requests yet. */
export const restoringState = "RestoreInProgress";

/** Keys that clients cannot set, because they are derived from the database. */
const derivedKeys: ReadonlySet<string> = new Set([
  "DatabaseName",
  "CreatedIndex",
  "ChangedIndex",
  "CreatedAt",
  "Topology",
  "Etag",
  "EtagForBackup",
  "DatabaseState",
  "IndexesHistory",
  "DeletionInProgress",
  "SupportedFeatures",
]);

const defaults: Readonly<JsonObject> = {
  Sharding: null,
  ConflictSolverConfig: null,
  SchemaValidation: null,
  DocumentsCompression: null,
  Sorters: {},
  Analyzers: {},
  Indexes: {},
  IndexesHistory: {},
  AutoIndexes: {},
  Settings: {},
  Revisions: null,
  RevisionsBin: null,
  TimeSeries: null,
  RevisionsForConflicts: null,
  Expiration: null,
  Refresh: null,
  DataArchival: null,
  RemoteAttachments: null,
  Integrations: null,
  PeriodicBackups: [],
  ExternalReplications: [],
  SinkPullReplications: [],
  HubPullReplications: [],
  RavenConnectionStrings: {},
  SqlConnectionStrings: {},
  OlapConnectionStrings: {},
  ElasticSearchConnectionStrings: {},
  QueueConnectionStrings: {},
  SnowflakeConnectionStrings: {},
  AiConnectionStrings: {},
  AiAgents: [],
  RavenEtls: [],
  SqlEtls: [],
  ElasticSearchEtls: [],
  OlapEtls: [],
  QueueEtls: [],
  QueueSinks: [],
  CdcSinks: [],
  SnowflakeEtls: [],
  EmbeddingsGenerations: [],
  GenAis: [],
  Client: null,
  Studio: null,
  TruncatedClusterTransactionCommandsCount: 0,
  UnusedDatabaseIds: [],
};

/** Members of periodic backup definitions that records omit: their parents, and their names. */
const backupSecrets = {
  BackupEncryptionSettings: ["Key"],
  S3Settings: ["AwsSecretKey", "AwsSessionToken"],
  GlacierSettings: ["AwsSecretKey", "AwsSessionToken"],
  AzureSettings: ["AccountKey", "SasToken"],
  GoogleCloudSettings: ["GoogleCredentialsJson"],
  FtpSettings: ["Password"],
} as const;

/** Returns a definition of a periodic backup with null in place of its secrets. */
export function withoutBackupSecrets(definition: unknown): unknown {
  if (typeof definition !== "object" || definition === null) return definition;
  const kept: Record<string, unknown> = { ...definition };
  for (const [settings, names] of Object.entries(backupSecrets)) {
    const found = kept[settings];
    if (typeof found !== "object" || found === null) continue;
    kept[settings] = { ...found, ...Object.fromEntries(names.map((name) => [name, null])) };
  }
  return kept;
}

/** Returns the record to store for a record that a client sent. */
export function keptRecord(
  name: string,
  sent: JsonObject,
  previous: KeptRecord | undefined,
  index: number,
  now: string,
): KeptRecord {
  const kept: KeptRecord = {
    DatabaseName: name,
    CreatedIndex: previous?.CreatedIndex ?? index,
    ChangedIndex: index,
    CreatedAt: previous?.CreatedAt ?? now,
  };
  const state = previous?.["DatabaseState"];
  if (state !== undefined) kept["DatabaseState"] = state;
  for (const [key, value] of Object.entries(sent)) {
    if (derivedKeys.has(key) || value === null) continue;
    const isTasks = key === "PeriodicBackups" && Array.isArray(value);
    kept[key] = isTasks ? value.map(withoutBackupSecrets) : value;
  }
  return kept;
}

export function recordOf(database: Database): KeptRecord {
  return database.settings as KeptRecord;
}

/** The nodes of a database. */
export interface DatabaseNodes {
  readonly members: readonly string[];
  readonly promotables: readonly string[];
  readonly rehabs: readonly string[];
  /** Reasons why nodes are not members, by tag, with RavenDB's names and sentences. */
  readonly promotablesStatus: Readonly<Record<string, string>>;
  readonly demotionReasons: Readonly<Record<string, string>>;
  /** The index of the command that last changed them, and the term of the leader. */
  readonly index: number;
  readonly term: number;
}

/** Returns the node of a database with one copy, on this node. */
export function onlyNode(database: Database): DatabaseNodes {
  return {
    members: [database.nodeTag],
    promotables: [],
    rehabs: [],
    promotablesStatus: {},
    demotionReasons: {},
    index: recordOf(database).CreatedIndex,
    term: 1,
  };
}

/** Returns the topology of a database, with the keys in the order of the record, or of the creation reply. */
export function databaseTopology(
  database: Database,
  inRecord: boolean,
  nodes = onlyNode(database),
): JsonObject {
  const kept = recordOf(database);
  const stamp = { Index: nodes.index, Term: nodes.term, LeadersTicks: -2 };
  const ids = {
    DatabaseTopologyIdBase64: database.databaseId,
    ClusterTransactionIdBase64: database.clusterTransactionId,
  };
  const tags = { Members: nodes.members, Promotables: nodes.promotables, Rehabs: nodes.rehabs };
  const count = nodes.members.length + nodes.promotables.length + nodes.rehabs.length;
  if (inRecord) {
    return {
      ...tags,
      PredefinedMentors: {},
      DemotionReasons: nodes.demotionReasons,
      PromotablesStatus: nodes.promotablesStatus,
      Stamp: stamp,
      DynamicNodesDistribution: false,
      ReplicationFactor: count,
      PriorityOrder: [],
      NodesModifiedAt: kept.CreatedAt,
      ...ids,
    };
  }
  return {
    ...tags,
    Stamp: stamp,
    NodesModifiedAt: kept.CreatedAt,
    PromotablesStatus: nodes.promotablesStatus,
    DemotionReasons: nodes.demotionReasons,
    DynamicNodesDistribution: false,
    ReplicationFactor: count,
    ...ids,
    PriorityOrder: [],
  };
}

/** Returns the whole record, as in `GET /admin/databases?name=`. */
export function fullRecord(database: Database, nodes = onlyNode(database)): JsonObject {
  const kept = recordOf(database);
  const record: JsonObject = {
    DatabaseName: database.name,
    Disabled: kept["Disabled"] === true,
    Encrypted: false,
    EtagForBackup: 0,
    DeletionInProgress: {},
    RollingIndexes: {},
    DatabaseState: kept["DatabaseState"] ?? "Normal",
    LockMode: kept["LockMode"] ?? "Unlock",
    Topology: databaseTopology(database, true, nodes),
  };
  for (const [key, value] of Object.entries(defaults)) record[key] = kept[key] ?? value;
  const { indexes } = database;
  const deployed = indexes.list().filter(({ isStatic }) => isStatic);
  record["Indexes"] = Object.fromEntries(
    deployed.map(({ name }) => [name, indexes.definition(name)]),
  );
  record["IndexesHistory"] = historiesJson(database);
  record["AutoIndexes"] = Object.fromEntries(
    indexes.listAutomatic().map((index) => [index.name, automaticIndexRow(index)]),
  );
  record["SupportedFeatures"] = [
    "HashedRevisionPk",
    "PullReplicationCompositeChangeVectors",
    "ThrowControlCharactersInIdentifier",
  ];
  record["Etag"] = kept.ChangedIndex;
  return record;
}

/** As in RavenDB, the roll-out is `null` for the newest of all definitions, and `{}` for the others. */
function historiesJson(database: Database): JsonObject {
  const histories = [...database.indexes.histories()];
  const newest = Math.max(...histories.map(([, [first]]) => first?.createdAtMicros ?? 0));
  const row = ({ definition, source, createdAtMicros }: DeployedDefinition) => ({
    Definition: definition,
    Source: source,
    CreatedAt: formatTimestamp(createdAtMicros),
    RollingDeployment: createdAtMicros === newest ? null : {},
  });
  return Object.fromEntries(histories.map(([name, revisions]) => [name, revisions.map(row)]));
}

function automaticIndexRow({ definition, name, type, priority }: AutomaticIndexInfo): JsonObject {
  const { fields, groupBy } = definition;
  const aggregates = groupBy?.aggregates ?? [];
  const keys = groupBy?.keys ?? [];
  const sums = aggregates.map((one) => [
    one.name,
    fieldRow(
      { isQuoted: one.kind === "sum" && one.isQuoted },
      one.kind === "sum" ? "Sum" : "Count",
    ),
  ]);
  return {
    ClusterState: { LastIndex: 0, LastStateIndex: 0, LastRollingDeploymentIndex: 0 },
    Type: type,
    Collection: definition.collection,
    MapFields: Object.fromEntries([
      ...fields.map((field) => [field.name, fieldRow(field, "None")]),
      ...sums,
    ]),
    GroupByFields: Object.fromEntries(
      keys.map((key) => [
        key.name,
        {
          ...fieldRow(key, "None"),
          GroupByArrayBehavior: key.isWholeArray ? "ByContent" : "ByIndividualValues",
        },
      ]),
    ),
    GroupByFieldNames: keys.map((key) => key.name),
    Name: name,
    Priority: priority,
    State: null,
  };
}

function fieldRow(
  field: Partial<IndexDefinition["fields"][number]>,
  aggregation: "None" | "Sum" | "Count",
): JsonObject {
  const kinds = [
    field.hasSearch === true ? "Search" : "",
    field.hasExact === true ? "Exact" : "",
    field.hasHighlight === true ? "Highlighting" : "",
  ].filter((kind) => kind !== "");
  return {
    Storage: "No",
    Indexing: kinds.length === 0 ? "Default" : kinds.join(", "),
    Aggregation: aggregation,
    Spatial: null,
    Vector: null,
    GroupByArrayBehavior: "NotApplicable",
    Suggestions: field.hasSuggest === true,
    IsNameQuoted: field.isQuoted === true,
  };
}
