/**
 * Valid requests as seeds for mutations: at least one for each route of the table, several for those with many inputs.
 * Paths are relative to the database unless they begin with a slash.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { routes } from "../../server/endpoints/route-table.ts";

/** A body before serialization. */
export type SeedBody =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "text"; readonly text: string }
  /** Items of an array; each is followed by raw bytes unchanged. */
  | { readonly kind: "bulk"; readonly items: readonly (readonly [item: unknown, raw: string])[] }
  /** Sections of a form: JSON, or text. */
  | { readonly kind: "form"; readonly parts: readonly unknown[] }
  /** A dump with its options; `null`: only the dump. */
  | { readonly kind: "dump"; readonly options: unknown; readonly dump: unknown };

export interface Seed {
  readonly method: string;
  /** With the name of the database. */
  readonly path: string;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly body: SeedBody | undefined;
}

export const databaseName = "fuzz";
/** The root folder of backups. */
export const backupRoot = join(tmpdir(), "jackdaw-fuzz-backups");
const at = "2020-01-01T00:00:00.0000000Z";
const later = "2021-06-01T00:00:00.0000000Z";
const vector = "A:1-AAAAAAAAAAAAAAAAAAAAAA";

const json = (value: unknown): SeedBody => ({ kind: "json", value });

const user = {
  Name: "Ann",
  Age: 30,
  Tags: ["a", "b"],
  Address: { City: "Rome", Zip: "00100" },
  Manager: "users/2",
  Born: at,
  "@metadata": { "@collection": "Users", "@expires": later },
};

export const queries: readonly string[] = [
  "from Users",
  "from Users where Age > 20 and Name = 'Ann' order by Age as long desc",
  "from Users as u where u.Address.City in ('Rome', $p) select u.Name, u.Age as Old",
  "from Users where search(Name, 'a* b') or startsWith(Name, 'A') limit 1, 5",
  "from Users where exists(Tags) and not Tags all in ('a') include Manager",
  "from Users group by Age where count() > 0 select count() as Count, key() as Age",
  "from Users as u load u.Manager as m select { n: u.Name, m: m.Name }",
  "declare function f(x) { return { y: x.Age * 2 }; } from Users as u select f(u)",
  "from index 'Users/ByName' where Name = 'Ann' select Name",
  "from index 'Users/Count' order by Count as long",
  "from @all_docs where id() = 'users/1'",
  "from Users where between(Age, 1, 50) and regex(Name, '^A') order by score()",
  "from Users where lucene(Name, 'An*') select distinct Name",
  "from Users select timeseries(from HeartRate between '2019' and '2022' group by '1 day' select min(), max())",
  "from Users include counters('likes'), timeseries('HeartRate', last(1, 'day')), revisions('2020-01-01T00:00:00')",
  "from Users where boost(Age = 30, 2.5) and fuzzy(Name = 'Anm', 0.5) and proximity(search(Name, 'a b'), 2)",
  "from Users where id() in ($ids) and Age != null filter Age > 10 filter_limit 5",
  "from Users where startsWith(id(), 'users/') and endsWith(Name, 'n') and true",
  "from Users order by random(), custom(Name, 'sorter'), Name as alphanumeric",
  "from Users where spatial.within(spatial.point(Lat, Lon), spatial.circle(1, 2, 3))",
  "from Users where moreLikeThis(id() = 'users/1')",
  "from index 'Users/ByName' where moreLikeThis(id() = 'users/1', '{\"MinimumWordLength\":2}') limit 2",
  "from index 'Users/ByName' select facet(Name, sum(Age) as S, '{\"PageSize\":2}'), facet(Age < 20, Age >= 20) as A",
  "from Users select suggest(Name, $name, '{\"Accuracy\":0.2}') as N",
  "from Users select highlight(Name, 18, 2), suggest(Name, 'An'), facet(Age)",
];

export const scripts: readonly string[] = [
  "this.Age = this.Age + 1;",
  "this.Name = this.Name.toUpperCase() + args.p; delete this.Tags;",
  "for (let i = 0; i < 3; i++) this.Tags.push(i);",
  "put('users/', { Name: 'New', '@metadata': { '@collection': 'Users' } });",
  "put(id(this) + '/copy', this); del('orders/1');",
  "incrementCounter(this, 'likes', 2); this.likes = counter(this, 'likes');",
  "timeseries(this, 'HeartRate').append(new Date(0), [1, 2], 'tag');",
  "timeseries(this, 'INC:Beats').increment('2020-01-01', 1); timeseries(this, 'HeartRate').delete();",
  "const m = load(this.Manager); if (m) this.Boss = m.Name; else throw new Error('none');",
  "this['@metadata']['@expires'] = '2030-01-01T00:00:00.0000000Z'; output(this);",
  "this.x = JSON.parse(JSON.stringify(this)); this.d = new Date(2020, 1, 1).toISOString();",
  "this.y = this.Tags.map(t => t + '!').filter(t => /a/.test(t)).sort().join(',');",
  "this.z = cmpxchg('key') || args.list[0]; this.n = Number('1e400') / 0;",
  "attachments(this).getAll; this.c = compareDates(this.Born, '2020-01-01T00:00:00.0000000Z');",
];

const series = {
  Name: "HeartRate",
  Appends: [
    { Timestamp: at, Values: [60, 61.5], Tag: "watch" },
    { Timestamp: later, Values: [70] },
  ],
  Deletes: [{ From: at, To: at }],
  Increments: [],
};
const counterOperations = {
  DocumentId: "users/1",
  Operations: [
    { Type: "Increment", CounterName: "likes", Delta: 1 },
    { Type: "Get", CounterName: "likes" },
    { Type: "Delete", CounterName: "gone" },
  ],
};

const commands = [
  { Type: "PUT", Id: "users/3", Document: user, ChangeVector: null },
  { Type: "PUT", Id: "users/", Document: { Name: "b" } },
  {
    Type: "PATCH",
    Id: "users/1",
    Patch: { Script: scripts[0], Values: { p: 1 } },
    PatchIfMissing: null,
  },
  { Type: "DELETE", Id: "users/9", ChangeVector: null },
  { Type: "DELETE", Id: "temp/", IdPrefixed: true },
  { Type: "Counters", Id: "users/1", Counters: counterOperations },
  { Type: "TimeSeries", Id: "users/1", TimeSeries: series },
  {
    Type: "TimeSeriesCopy",
    Id: "users/1",
    Name: "HeartRate",
    DestinationId: "users/2",
    DestinationName: "HeartRate",
  },
  {
    Type: "AttachmentCOPY",
    Id: "users/1",
    Name: "file.txt",
    DestinationId: "users/2",
    DestinationName: "copy.txt",
  },
  {
    Type: "AttachmentMOVE",
    Id: "users/2",
    Name: "copy.txt",
    DestinationId: "users/2",
    DestinationName: "moved.txt",
  },
  { Type: "AttachmentDELETE", Id: "users/2", Name: "moved.txt" },
  { Type: "ForceRevisionCreation", Id: "users/1" },
  {
    Type: "JsonPatch",
    Id: "users/1",
    JsonPatch: { Operations: [{ op: "add", path: "/n", value: 1 }] },
  },
  {
    Type: "BatchPATCH",
    Ids: [{ Id: "users/1" }, { Id: "users/2" }],
    Patch: { Script: scripts[0] },
  },
];

const dump = {
  BuildVersion: 72051,
  DatabaseRecord: { DatabaseName: "x", Revisions: { Default: { Disabled: false } } },
  Docs: [
    { ...user, "@metadata": { ...user["@metadata"], "@id": "users/4", "@change-vector": vector } },
  ],
  RevisionDocuments: [
    {
      Name: "old",
      "@metadata": {
        "@collection": "Users",
        "@id": "users/4",
        "@change-vector": vector,
        "@last-modified": at,
        "@flags": "HasRevisions, Revision",
      },
    },
  ],
  Tombstones: [{ Key: "users/8", Type: "Document", Collection: "Users" }],
  Indexes: [
    {
      Type: "Map",
      IndexDefinition: { Name: "Dumped", Maps: ["from u in docs.Users select new { u.Name }"] },
    },
  ],
  Identities: [{ Key: "users|", Value: "7" }],
  CompareExchange: [{ Key: "key", Value: '{"Object":1}' }],
  CompareExchangeTombstones: [{ Key: "gone" }],
  CounterGroups: [
    {
      DocId: "users/1",
      Values: { "@dbIds": ["x"], "@names": { likes: "Likes" }, "@vals": { likes: [5, 1] } },
    },
  ],
  Counters: [{ DocId: "users/1", Name: "old", Value: 3 }],
  Subscriptions: [{ SubscriptionName: "dumped", Query: "from Users" }],
  TimeSeriesDeletedRanges: [{ DocId: "users/1", Name: "HeartRate", From: at, To: at }],
};

const index = {
  Name: "Users/ByName",
  Maps: ["from u in docs.Users select new { u.Name, City = u.Address.City }"],
  Fields: { Name: { Indexing: "Search", Storage: "Yes" } },
  Configuration: {},
  Priority: "Normal",
  LockMode: "Unlock",
};
const jsIndex = {
  Name: "Users/Count",
  Maps: ["map('Users', u => ({ City: u.Address.City, Count: 1 }))"],
  Reduce:
    "groupBy(x => x.City).aggregate(g => ({ City: g.key, Count: g.values.reduce((s, v) => s + v.Count, 0) }))",
  OutputReduceToCollection: "Counts",
  PatternForOutputReduceToCollectionReferences: "counts/{City}",
  PatternReferencesCollectionName: "CountRefs",
};

function withQuery(text: string): object {
  return {
    Query: text,
    QueryParameters: { p: "Rome", ids: ["users/1", "users/2"] },
    Start: 0,
    PageSize: 10,
  };
}

const scripted = { Script: scripts[1], Values: { p: "x", list: [1, "a", null] } };
const bulkItems = [
  [{ Id: "users/5", Type: "PUT", Document: user }, ""],
  [{ Id: "users/1", Type: "Counters", Counters: counterOperations }, ""],
  [
    {
      Id: "users/1",
      Type: "TimeSeriesBulkInsert",
      TimeSeries: { Name: "HeartRate", TimeFormat: "UnixTimeInMs", Appends: [[1, 2, 3, 4, "tag"]] },
    },
    "",
  ],
  [{ Type: "HeartBeat" }, ""],
  [
    {
      Id: "users/1",
      Type: "AttachmentPUT",
      Name: "bulk.bin",
      ContentType: "t/x",
      ContentLength: 5,
    },
    "hello",
  ],
] as const;
const etl = {
  Name: "etl",
  ConnectionStringName: "raven",
  Transforms: [{ Name: "t", Collections: ["Users"], Script: "loadToUsers(this)" }],
};

/** `METHOD path?query`, and the body. */
const written: readonly (readonly [what: string, body?: SeedBody])[] = [
  ["PUT docs?id=users/1", json(user)],
  ["PUT docs?id=users/", json(user)],
  ["PUT docs?id=users|", json(user)],
  [
    "GET docs?id=users/1&id=users/2&include=Manager&metadataOnly=false&counter=likes&timeseries=HeartRate&from=&to=&cmpxchg=key&revisions=x&revisionsBefore=2020-01-01T00:00:00.0000000Z",
  ],
  [
    "GET docs?startsWith=users/&matches=1|2*&exclude=9*&start=0&pageSize=5&startAfter=users/1&etag=1",
  ],
  ["POST docs?includeCounters=likes", json({ Ids: ["users/1", "users/2"] })],
  ["DELETE docs?id=users/9"],
  ["HEAD docs?id=users/1"],
  ["GET docs/size?id=users/1"],
  [
    "PATCH docs?id=users/1&test=false&debug=true&skipPatchIfChangeVectorMismatch=false",
    json({ Patch: scripted, PatchIfMissing: scripted }),
  ],
  [
    "PATCH json-patch?id=users/1",
    json({
      Operations: [
        { op: "replace", path: "/Name", value: "x" },
        { op: "add", path: "/Tags/-", value: 1 },
        { op: "move", from: "/a", path: "/b" },
        { op: "test", path: "/Age", value: 30 },
      ],
    }),
  ],
  ["GET streams/docs?startsWith=users/&start=0&pageSize=10&format=json"],
  ["GET collections/docs?name=Users&start=0&pageSize=5"],
  ["DELETE collections/docs?name=Temps", json({ ExcludeIds: ["users/1"] })],
  [
    "POST bulk_docs?waitForIndexesTimeout=00:00:00.1&waitForIndexThrow=false&waitForSpecificIndexs=Users/ByName",
    json({ Commands: commands }),
  ],
  [
    "POST bulk_docs",
    json({
      Commands: [
        commands[0],
        { Type: "CompareExchangePUT", Id: "key", Document: { Object: 1 }, Index: 0 },
      ],
      TransactionMode: "ClusterWide",
    }),
  ],
  [
    "POST bulk_docs",
    {
      kind: "form",
      parts: [
        {
          Commands: [
            {
              Type: "AttachmentPUT",
              Id: "users/1",
              Name: "file.txt",
              ContentType: "text/plain",
              ContentLength: 5,
            },
            commands[1],
          ],
        },
        "hello",
      ],
    },
  ],
  ["POST bulk_insert?id=900&skipOverwriteIfUnchanged=false", { kind: "bulk", items: bulkItems }],
  ["POST bulk_insert?id=901", { kind: "bulk", items: bulkItems.slice(0, 2) }],
  ["POST counters", json({ ReplyWithAllNodesValues: false, Documents: [counterOperations] })],
  ["GET counters?docId=users/1&counter=likes&full=true"],
  ["POST timeseries?docId=users/1", json(series)],
  [
    "POST timeseries?docId=users/1",
    json({ Name: "INC:Beats", Increments: [{ Timestamp: at, Values: [1] }] }),
  ],
  [
    `GET timeseries?docId=users/1&name=HeartRate&from=${at}&to=${later}&start=0&pageSize=5&includeDocument=true&includeTags=true&full=true`,
  ],
  [
    `GET timeseries/ranges?docId=users/1&name=HeartRate&from=${at}&to=&name=INC:Beats&from=&to=${later}`,
  ],
  ["GET timeseries/stats?docId=users/1"],
  [
    "PUT attachments?id=users/1&name=file.txt&contentType=text/plain",
    { kind: "text", text: "the content" },
  ],
  ["GET attachments?id=users/1&name=file.txt"],
  ["HEAD attachments?id=users/1&name=file.txt"],
  ["DELETE attachments?id=users/2&name=file.txt"],
  ["POST attachments/bulk", json({ Attachments: [{ DocumentId: "users/1", Name: "file.txt" }] })],
  ["GET queries?query=from Users where Age > 1&start=0&pageSize=5&metadataOnly=true"],
  ["GET streams/queries?query=from Users&format=csv&field=Name&field=Age"],
  [
    "PATCH queries?allowStale=true&staleTimeout=00:00:01&maxOpsPerSec=1000&details=true",
    json({ Query: { Query: "from Users update { this.Age++; }", QueryParameters: { p: 1 } } }),
  ],
  [
    "PATCH queries/test?id=users/1",
    json({ Query: { Query: "from Users update { this.Age++; }" } }),
  ],
  ["DELETE queries?allowStale=true", json(withQuery("from Temps where Age > 100"))],
  ["PUT admin/indexes", json({ Indexes: [index, jsIndex] })],
  ["PUT indexes", json({ Indexes: [{ ...jsIndex, Name: "Users/Other" }] })],
  ["GET indexes?name=Users/ByName&namesOnly=false&start=0&pageSize=5"],
  ["RESET indexes?name=Users/ByName&asSideBySide=false"],
  ["DELETE indexes?name=Users/Other"],
  ["POST indexes/set-lock", json({ IndexNames: ["Users/ByName"], Mode: "Unlock" })],
  ["POST indexes/set-priority", json({ IndexNames: ["Users/ByName"], Priority: "Low" })],
  [
    "GET hilo/next?tag=users&lastBatchSize=32&lastRangeAt=2020-01-01T00:00:00.0000000Z&identityPartsSeparator=/&lastMax=64",
  ],
  ["PUT hilo/return?tag=users&end=64&last=40"],
  ["POST identity/next?name=users"],
  ["POST identity/seed?name=users&value=5&force=false"],
  ["GET cmpxchg?key=key&startsWith=k&start=0&pageSize=5"],
  ["PUT cmpxchg?key=key&index=0", json({ Object: { a: 1 }, "@metadata": {} })],
  ["DELETE cmpxchg?key=key&index=1"],
  [
    "POST multi_get",
    json({
      Requests: [
        {
          Url: "/databases/fuzz/docs",
          Query: "?id=users/1",
          Method: "GET",
          Headers: {},
          Content: null,
        },
        { Url: "/databases/fuzz/queries", Method: "POST", Content: withQuery("from Users") },
      ],
    }),
  ],
  [
    "POST smuggler/import",
    {
      kind: "dump",
      options: {
        OperateOnTypes:
          "DatabaseRecord, Documents, RevisionDocuments, Tombstones, Indexes, Identities, CompareExchange, CounterGroups, Subscriptions, TimeSeries, Attachments",
        MaxStepsForTransformScript: 10000,
        TransformScript: "this.Imported = true;",
      },
      dump,
    },
  ],
  ["POST smuggler/import", { kind: "dump", options: {}, dump }],
  ["POST smuggler/import?operationId=77", { kind: "dump", options: null, dump }],
  [
    "POST smuggler/export",
    json({
      OperateOnTypes: "Documents, Counters, TimeSeries, Identities, CompareExchange",
      Collections: ["Users"],
      TransformScript: "this.x = 1",
      IncludeExpired: true,
    }),
  ],
  ["POST smuggler/validate-options", json({ TransformScript: "this.x = 1" })],
  [
    "PUT subscriptions?id=1",
    json({
      Name: "sub",
      Query: "from Users as u where u.Age > 1 include u.Manager",
      ChangeVector: null,
      MentorNode: null,
      Disabled: false,
    }),
  ],
  [
    "POST subscriptions/update",
    json({ Id: 1, Name: "sub", Query: "from Users", ChangeVector: "DoNotChange", CreateNew: true }),
  ],
  [
    "POST subscriptions/try?pageSize=3&timeLimit=1",
    json({ Query: "from Users", ChangeVector: null }),
  ],
  ["POST subscriptions/drop?name=sub&id=1&workerId=w"],
  ["GET subscriptions?start=0&pageSize=5&name=sub&running=false&history=true&id=1"],
  ["GET subscriptions/state?name=sub&id=1"],
  ["DELETE subscriptions?taskName=dumped"],
  [
    "POST admin/revisions/config",
    json({
      Default: { Disabled: false, MinimumRevisionsToKeep: 3, PurgeOnDelete: false },
      Collections: {
        Users: { Disabled: false, MinimumRevisionsToKeep: 5, MinimumRevisionAgeToKeep: "01:00:00" },
      },
    }),
  ],
  [
    "POST admin/revisions/config/enforce",
    json({ OperationId: 78, IncludeForceCreated: true, Collections: ["Users"] }),
  ],
  ["POST admin/revisions/orphaned/adopt", json({ OperationId: 79, Collections: null })],
  [
    "POST revisions/revert",
    json({ OperationId: 80, Time: at, WindowInSec: 96400, Collections: ["Users"] }),
  ],
  ["POST revisions/revert/docs", json({ IdToChangeVector: { "users/1": vector } })],
  ["GET revisions?id=users/1&start=0&pageSize=5&metadataOnly=false&changeVector=&before="],
  ["GET revisions/bin?start=0&pageSize=5&etag=9"],
  ["GET revisions/count?id=users/1"],
  [
    "DELETE admin/revisions",
    json({
      DocumentIds: ["users/1"],
      RevisionsChangeVectors: [vector],
      RemoveForceCreatedRevisions: true,
      MaxDeletes: 10,
      After: at,
      Before: later,
    }),
  ],
  [
    "POST admin/expiration/config",
    json({ Disabled: false, DeleteFrequencyInSec: 60, MaxItemsToProcess: 10 }),
  ],
  ["POST admin/refresh/config", json({ Disabled: false, RefreshFrequencyInSec: 60 })],
  [
    "POST admin/timeseries/config",
    json({
      Collections: {
        Users: {
          Disabled: true,
          Policies: [{ Name: "p", AggregationTime: "1d", RetentionTime: "2d" }],
        },
      },
      NamedValues: { Users: { HeartRate: ["Bpm"] } },
    }),
  ],
  [
    "PUT admin/configuration/client",
    json({
      Etag: 0,
      Disabled: false,
      MaxNumberOfRequestsPerSession: 30,
      ReadBalanceBehavior: "None",
      IdentityPartsSeparator: "/",
    }),
  ],
  ["PUT admin/sorters", json({ Sorters: [{ Name: "sorter", Code: "class X {}" }] })],
  ["PUT admin/analyzers", json({ Analyzers: [{ Name: "analyzer", Code: "class X {}" }] })],
  [
    "PUT admin/connection-strings",
    json({
      Name: "raven",
      Type: "Raven",
      Database: "x",
      TopologyDiscoveryUrls: ["http://127.0.0.1:1"],
    }),
  ],
  ["PUT admin/etl", json({ ...etl, EtlType: "Raven" })],
  [
    "POST admin/backup",
    json({
      BackupType: "Backup",
      LocalSettings: { FolderPath: `${backupRoot}/one`, Disabled: false },
    }),
  ],
  [
    "POST admin/periodic-backup",
    json({
      Name: "nightly",
      TaskId: 0,
      Disabled: false,
      BackupType: "Backup",
      FullBackupFrequency: "0 2 * * *",
      IncrementalBackupFrequency: "*/10 * * * *",
      LocalSettings: { FolderPath: `${backupRoot}/nightly` },
      S3Settings: null,
      RetentionPolicy: { Disabled: false, MinimumBackupAgeToKeep: "2.00:00:00" },
    }),
  ],
  ["POST admin/backup/database?taskId=1&isFullBackup=false&operationId=901"],
  ["GET /periodic-backup?name=fuzz&taskId=1"],
  ["GET /periodic-backup/status?name=fuzz&taskId=1"],
  ["POST /admin/restore/points?type=Local", json({ FolderPath: `${backupRoot}/one` })],
  [
    "POST /admin/restore/database",
    json({
      Type: "Local",
      DatabaseName: "restored",
      BackupLocation: `${backupRoot}/one`,
      LastFileNameToRestore: null,
      DisableOngoingTasks: true,
      SkipIndexes: false,
    }),
  ],
  ["POST admin/tasks/state?key=1&type=Backup&disable=false"],
  ["DELETE admin/tasks?id=1&type=Backup"],
  ["GET task?key=1&type=Backup"],
  ["GET operations/state?id=900"],
  ["POST operations/kill?id=900"],
  [
    "PUT /admin/databases?name=scratch&replicationFactor=1",
    json({ DatabaseName: "scratch", Settings: {}, Disabled: false, Encrypted: false }),
  ],
  [
    "DELETE /admin/databases",
    json({ DatabaseNames: ["scratch"], HardDelete: true, TimeToWaitForConfirmation: "00:00:01" }),
  ],
  ["POST /admin/databases/set-lock", json({ DatabaseNames: ["scratch"], Mode: "Unlock" })],
  [
    "PUT /admin/configuration/client",
    json({ Etag: 0, Disabled: false, MaxNumberOfRequestsPerSession: 30 }),
  ],
  [
    "PUT /admin/certificates",
    json({
      Name: "c",
      Certificate: "AAAA",
      Permissions: { fuzz: "Read" },
      SecurityClearance: "ValidUser",
      Password: "p",
    }),
  ],
  ["GET /admin/test/delay?value=1"],
];

export const writtenSeeds: readonly Seed[] = [
  ...written.map(([what, body]) => seedOf(what, body)),
  ...queries.map((text) =>
    seedOf(
      "POST queries?waitForNonStaleResultsTimeoutInMs=50&includeServerSideQuery=true&debug=explain",
      json(withQuery(text)),
    ),
  ),
  ...queries.map((text) => seedOf("POST streams/queries?format=json", json(withQuery(text)))),
  ...scripts.map((Script) =>
    seedOf(
      "PATCH docs?id=users/1&debug=true",
      json({ Patch: { Script, Values: { p: 1, list: ["a"] } } }),
    ),
  ),
];

/** Names of parameters that some route reads. */
export const parameterNames: readonly string[] = [
  "id",
  "name",
  "pageSize",
  "start",
  "type",
  "docId",
  "taskName",
  "metadataOnly",
  "key",
  "etag",
  "value",
  "to",
  "from",
  "tag",
  "startsWith",
  "operationId",
  "namesOnly",
  "full",
  "format",
  "debug",
  "counter",
  "changeVector",
  "workerId",
  "test",
  "waitForNonStaleResultsTimeoutInMs",
  "waitForIndexesTimeout",
  "waitForReplicasTimeout",
  "numberOfReplicasToWaitFor",
  "txMode",
  "transformationName",
  "timeLimit",
  "startAfter",
  "staleTimeout",
  "skipPatchIfChangeVectorMismatch",
  "skipDuplicateChecking",
  "running",
  "revisionsBefore",
  "revisions",
  "replicationFactor",
  "query",
  "parameters",
  "operateOnTypes",
  "op",
  "noreply",
  "maxOpsPerSec",
  "matches",
  "lastRangeAt",
  "lastMax",
  "lastBatchSize",
  "index",
  "includeTags",
  "includeServerSideQuery",
  "include",
  "identityPartsSeparator",
  "fromValue",
  "force",
  "field",
  "excludes",
  "exclude",
  "disableAtomicDocumentWrites",
  "details",
  "database",
  "contentType",
  "connectionStringName",
  "connectionString",
  "configurationName",
  "cmpxchg",
  "before",
  "allowStale",
  "disable",
  "url",
  "thumbprint",
  "timeseries",
  "timeseriestime",
  "timeseriescount",
  "count",
  "fileName",
  "etagFrom",
  "asSideBySide",
  "waitForSpecificIndex",
];

/** Routes without a seed above get one with only the path. */
export const seeds: readonly Seed[] = [...writtenSeeds, ...unwritten()];

function unwritten(): Seed[] {
  const known = new Set(writtenSeeds.map(({ method, path }) => `${method} ${path}`));
  return routes
    .filter(({ kind }) => kind !== "websocket")
    .map(({ method, path }) => ({
      method,
      path: path.replace(":database", databaseName).replace(/\/\*$/, "/x"),
      query: [],
      body: undefined,
    }))
    .filter(({ method, path }) => !known.has(`${method} ${path}`));
}

function seedOf(what: string, body: SeedBody | undefined): Seed {
  const [, method = "", target = ""] = /^(\S+) (.*)$/s.exec(what) ?? [];
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? [] : target.slice(mark + 1).split("&");
  return {
    method,
    path: path.startsWith("/") ? path : `/databases/${databaseName}/${path}`,
    query: query.map((pair) => {
      const equals = pair.indexOf("=");
      return [pair.slice(0, equals), pair.slice(equals + 1)] as const;
    }),
    body,
  };
}
