/** The route table: the routes of every resource, joined. `RouteTable` asserts that they are distinct. */

import type { Route } from "../routing/route.ts";
import { clusterCopyRoutes } from "./cluster/cluster-copies.ts";
import { clusterDashboardRoutes } from "./cluster/cluster-dashboard.ts";
import { clusterNodeRoutes } from "./cluster/cluster-nodes.ts";
import { clusterStatusRoutes } from "./cluster/cluster-status.ts";
import { clusterValueRoutes } from "./cluster/cluster-values.ts";
import { backupRoutes } from "./databases/backups.ts";
import { databaseConfigurationRoutes } from "./databases/database-configuration.ts";
import { databaseDebugRoutes } from "./databases/database-debug.ts";
import { databaseMaintenanceRoutes } from "./databases/database-maintenance.ts";
import { databaseRoutes } from "./databases/databases.ts";
import { etlRoutes } from "./databases/etl.ts";
import { operationRoutes } from "./databases/operations.ts";
import { sampleDataRoutes } from "./databases/sample-data.ts";
import { serverWideTaskRoutes } from "./databases/server-wide-tasks.ts";
import { smugglerRoutes } from "./databases/smuggler.ts";
import { statisticsRoutes } from "./databases/statistics.ts";
import { storageReportRoutes } from "./databases/storage-reports.ts";
import { storedItemRoutes } from "./databases/stored-items.ts";
import { taskRoutes } from "./databases/tasks.ts";
import { timeSeriesConfigurationRoutes } from "./databases/time-series-configuration.ts";
import { attachmentRoutes } from "./documents/attachments.ts";
import { batchRoutes } from "./documents/batch.ts";
import { bulkInsertRoutes } from "./documents/bulk-insert.ts";
import { changeRoutes } from "./documents/changes.ts";
import { compareExchangeRoutes } from "./documents/compare-exchange.ts";
import { counterRoutes } from "./documents/counters.ts";
import { documentStreamRoutes } from "./documents/document-streams.ts";
import { documentRoutes } from "./documents/documents.ts";
import { identityRoutes } from "./documents/identities.ts";
import { multiGetRoutes } from "./documents/multi-get.ts";
import { patchRoutes } from "./documents/patches.ts";
import { revisionRoutes } from "./documents/revisions.ts";
import { subscriptionRoutes } from "./documents/subscriptions.ts";
import { timeSeriesRoutes } from "./documents/time-series.ts";
import { indexChangeRoutes } from "./queries/index-changes.ts";
import { indexRoutes } from "./queries/indexes.ts";
import { setOperationRoutes } from "./queries/operations-by-query.ts";
import { queryRoutes } from "./queries/queries.ts";
import { runningQueryRoutes } from "./queries/running-queries.ts";
import { sorterAndAnalyzerRoutes } from "./queries/sorters-analyzers.ts";
import { adminConsoleRoutes } from "./server/admin-console.ts";
import { certificateRoutes } from "./server/certificates.ts";
import { infoPackageRoutes } from "./server/info-packages.ts";
import { liveFigureRoutes } from "./server/live-figures.ts";
import { monitoringRoutes } from "./server/monitoring.ts";
import { rateRoutes } from "./server/rates.ts";
import { serverConfigurationRoutes } from "./server/server-configuration.ts";
import { serverInfoRoutes } from "./server/server-info.ts";
import { welcomeRoutes } from "./server/welcome.ts";
import { studioRoutes } from "./studio/studio.ts";
import { studioPageRoutes } from "./studio/studio-page.ts";
import { studioServerRoutes } from "./studio/studio-server.ts";
import { studioToolRoutes } from "./studio/studio-tools.ts";

export const routes: readonly Route[] = [
  ...welcomeRoutes,
  ...serverInfoRoutes,
  ...serverConfigurationRoutes,
  ...adminConsoleRoutes,
  ...clusterValueRoutes,
  ...certificateRoutes,
  ...clusterCopyRoutes,
  ...infoPackageRoutes,
  ...databaseRoutes,
  ...databaseDebugRoutes,
  ...databaseMaintenanceRoutes,
  ...clusterNodeRoutes,
  ...documentRoutes,
  ...documentStreamRoutes,
  ...multiGetRoutes,
  ...statisticsRoutes,
  ...changeRoutes,
  ...monitoringRoutes,
  ...rateRoutes,
  ...clusterStatusRoutes,
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
  ...backupRoutes,
  ...runningQueryRoutes,
  ...sampleDataRoutes,
  ...studioRoutes,
  ...studioPageRoutes,
  ...studioServerRoutes,
  ...studioToolRoutes,
  ...liveFigureRoutes,
  ...clusterDashboardRoutes,
  ...storageReportRoutes,
  ...storedItemRoutes,
  ...subscriptionRoutes,
  ...taskRoutes,
  ...serverWideTaskRoutes,
  ...etlRoutes,
];
