/** The route table: the routes of every resource, joined. `RouteTable` asserts that they are distinct. */
import { attachmentRoutes } from "./endpoints/attachments.ts";
import { batchRoutes } from "./endpoints/batch.ts";
import { bulkInsertRoutes } from "./endpoints/bulk-insert.ts";
import { certificateRoutes } from "./endpoints/certificates.ts";
import { changeRoutes } from "./endpoints/changes.ts";
import { compareExchangeRoutes } from "./endpoints/compare-exchange.ts";
import { counterRoutes } from "./endpoints/counters.ts";
import { databaseConfigurationRoutes } from "./endpoints/database-configuration.ts";
import { databaseMaintenanceRoutes } from "./endpoints/database-maintenance.ts";
import { databaseRoutes } from "./endpoints/databases.ts";
import { documentStreamRoutes } from "./endpoints/document-streams.ts";
import { documentRoutes } from "./endpoints/documents.ts";
import { etlRoutes } from "./endpoints/etl.ts";
import { identityRoutes } from "./endpoints/identities.ts";
import { indexChangeRoutes } from "./endpoints/index-changes.ts";
import { indexRoutes } from "./endpoints/indexes.ts";
import { infoPackageRoutes } from "./endpoints/info-packages.ts";
import { multiGetRoutes } from "./endpoints/multi-get.ts";
import { operationRoutes } from "./endpoints/operations.ts";
import { patchRoutes } from "./endpoints/patches.ts";
import { queryRoutes } from "./endpoints/queries.ts";
import { revisionRoutes } from "./endpoints/revisions.ts";
import { sampleDataRoutes } from "./endpoints/sample-data.ts";
import { serverConfigurationRoutes } from "./endpoints/server-configuration.ts";
import { serverInfoRoutes } from "./endpoints/server-info.ts";
import { setOperationRoutes } from "./endpoints/set-operations.ts";
import { smugglerRoutes } from "./endpoints/smuggler.ts";
import { sorterAndAnalyzerRoutes } from "./endpoints/sorters-analyzers.ts";
import { statisticsRoutes } from "./endpoints/statistics.ts";
import { subscriptionRoutes } from "./endpoints/subscriptions.ts";
import { taskRoutes } from "./endpoints/tasks.ts";
import { timeSeriesRoutes } from "./endpoints/time-series.ts";
import { timeSeriesConfigurationRoutes } from "./endpoints/time-series-configuration.ts";
import { welcomeRoutes } from "./endpoints/welcome.ts";
import type { Route } from "./route.ts";

export const routes: readonly Route[] = [
  ...welcomeRoutes,
  ...serverInfoRoutes,
  ...serverConfigurationRoutes,
  ...certificateRoutes,
  ...infoPackageRoutes,
  ...databaseRoutes,
  ...databaseMaintenanceRoutes,
  ...documentRoutes,
  ...documentStreamRoutes,
  ...multiGetRoutes,
  ...statisticsRoutes,
  ...changeRoutes,
  ...operationRoutes,
  ...databaseConfigurationRoutes,
  ...batchRoutes,
  ...revisionRoutes,
  ...bulkInsertRoutes,
  ...attachmentRoutes,
  ...counterRoutes,
  ...timeSeriesRoutes,
  ...timeSeriesConfigurationRoutes,
  ...identityRoutes,
  ...compareExchangeRoutes,
  ...patchRoutes,
  ...queryRoutes,
  ...indexRoutes,
  ...indexChangeRoutes,
  ...sorterAndAnalyzerRoutes,
  ...setOperationRoutes,
  ...smugglerRoutes,
  ...sampleDataRoutes,
  ...subscriptionRoutes,
  ...taskRoutes,
  ...etlRoutes,
];
