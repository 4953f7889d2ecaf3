/** Storage use, and retained tombstones, in the shapes of RavenDB 7.2.7. */
import { foldedName } from "../../../engine/base/case-folding.ts";
import type { Database, IndexDetails } from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { JsonObject } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import { jsonOfNumbers, numberOfText } from "../../replies/number-texts.ts";
import { longReport, shortReport, tablesOf, treesOf } from "../../replies/storage-report.ts";
import type { Context, DatabaseContext, Route } from "../../routing/route.ts";
import { folderOf } from "../server/live-figures.ts";
import { replyMetadata } from "../server/server-info.ts";

const prefix = "/databases/:database";
const shown = { kind: "database", method: "GET", access: "read" } as const;

export const storageReportRoutes: readonly Route[] = [
  {
    ...shown,
    path: `${prefix}/debug/storage/report`,
    inPackage: true,
    copies: "here",
    handle: getReport,
  },
  {
    ...shown,
    path: `${prefix}/debug/storage/environment/report`,
    copies: "here",
    handle: getEnvironment,
  },
  {
    ...shown,
    path: `${prefix}/debug/storage/all-environments/report`,
    inPackage: true,
    copies: "here",
    handle: getEnvironments,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/storage/environment/report",
    access: "operator",
    inPackage: true,
    handle: getServerEnvironment,
  },
  {
    kind: "database",
    method: "GET",
    path: `${prefix}/admin/tombstones/state`,
    access: "database-admin",
    copies: "here",
    handle: getTombstones,
  },
];

/** GET debug/storage/report: the sizes of the files of the database; indexes are in memory */
function getReport(exchange: Exchange, { database, server }: DatabaseContext): void {
  const { name } = database;
  const tables = database.statistics.collections().length;
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    BasePath: folderOf(server, "Databases", name),
    Results: [{ Name: name, Type: "Documents", Report: shortReport(database.figures(), tables) }],
  });
}

/** GET debug/storage/environment/report?name=…&type=Documents: with the collections; 404 for any other */
async function getEnvironment(exchange: Exchange, { database }: DatabaseContext): Promise<void> {
  const { query } = exchange;
  const name = query.required("name");
  const type = query.required("type");
  if (foldedName(name) !== foldedName(database.name) || type.toLowerCase() !== "documents") {
    exchange.reply(404, { "content-type": jsonContentType });
    return;
  }
  const Report = await wholeReport(database);
  exchange.replyJson(200, jsonOfNumbers({ Report, Name: database.name, Type: "Documents" }));
}

/** GET debug/storage/all-environments/report: the report of the only environment */
async function getEnvironments(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const Report = await wholeReport(database);
  const Environments = [{ Environment: database.name, Type: "Documents", Report }];
  const reply = {
    "@metadata": replyMetadata(server),
    DatabaseName: database.name,
    Environments,
  };
  exchange.replyJson(200, jsonOfNumbers(reply));
}

async function wholeReport(database: Database): Promise<JsonObject> {
  const tables = await tablesOf(database);
  return longReport(database.figures(), tables, await treesOf(database));
}

/** GET /admin/debug/storage/environment/report: the sizes of the files with the server's own values */
function getServerEnvironment(exchange: Exchange, { server }: Context): void {
  const reply = {
    "@metadata": replyMetadata(server),
    Environment: "Server",
    Type: "System",
    Report: longReport(server.values.logFigures(), []),
  };
  exchange.replyJson(200, jsonOfNumbers(reply));
}

/** RavenDB's value where nothing retains tombstones: the largest integer of 64 bits. */
const noEtag = numberOfText("9223372036854775807");

interface Keeper {
  readonly Identifier: string;
  readonly Type: "Documents" | "TimeSeries" | "Counters";
  readonly Collection: string;
  readonly Etag: number;
}

/** GET admin/tombstones/state: by collection, the etag up to which its deletions were processed, and the index that lags most */
function getTombstones(exchange: Exchange, { database, server }: DatabaseContext): void {
  const keepers = database.indexes.listDetails().flatMap(keepersOf);
  const collections = database.statistics.collections().map(({ name }) => foldedName(name));
  const least = (type: Keeper["Type"], of: readonly Keeper[]) => {
    const fitting = of.filter((one) => one.Type === type).sort((a, b) => a.Etag - b.Etag);
    return fitting[0];
  };
  const cell = (type: Keeper["Type"], collection: string) => {
    const found = least(
      type,
      keepers.filter(({ Collection }) =>
        ["@all_docs", collection].includes(foldedName(Collection)),
      ),
    );
    return { Component: found?.Identifier ?? null, Etag: found?.Etag ?? noEtag };
  };
  const minimum = (type: Keeper["Type"]) => {
    const ofAll = keepers.filter(({ Collection }) => Collection === "@all_docs");
    return least(type, ofAll)?.Etag ?? noEtag;
  };
  const rows = ["Attachments.Tombstones", "Revisions.Tombstones", ...collections].map((name) => ({
    Collection: name,
    Documents: cell("Documents", name),
    TimeSeries: cell("TimeSeries", name),
    Counters: cell("Counters", name),
  }));
  const text = jsonOfNumbers({
    "@metadata": replyMetadata(server),
    MinAllDocsEtag: minimum("Documents"),
    MinAllTimeSeriesEtag: minimum("TimeSeries"),
    MinAllCountersEtag: minimum("Counters"),
    Results: rows,
    PerSubscriptionInfo: keepers,
  });
  exchange.reply(200, { "content-type": jsonContentType }, text);
}

/** An index retains deletions of documents, and of counters or series that it maps, until it has processed them. */
function keepersOf({ name, source, collections }: IndexDetails): Keeper[] {
  const Identifier = `Index '${name}'`;
  return collections.flatMap((one): Keeper[] => {
    const ofDocuments = { Identifier, Collection: one.name, Etag: one.lastDeletionEtag };
    const keeper: Keeper = { ...ofDocuments, Type: "Documents" };
    if (source !== "TimeSeries" && source !== "Counters") return [keeper];
    return [keeper, { ...ofDocuments, Type: source, Etag: one.lastDocumentEtag }];
  });
}
