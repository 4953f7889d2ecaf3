/** The route table: the routes of every resource, joined. `RouteTable` asserts that they are distinct. */

import type { Route } from "../routing/route.ts";
import { adminConsoleRoutes } from "./admin-console.ts";
import { attachmentRoutes } from "./attachments.ts";
import { backupRoutes } from "./backups.ts";
import { batchRoutes } from "./batch.ts";
import { bulkInsertRoutes } from "./bulk-insert.ts";
import { certificateRoutes } from "./certificates.ts";
import { changeRoutes } from "./changes.ts";
import { clusterCopyRoutes } from "./cluster-copies.ts";
import { clusterDashboardRoutes } from "./cluster-dashboard.ts";
import { clusterNodeRoutes } from "./cluster-nodes.ts";
import { clusterStatusRoutes } from "./cluster-status.ts";
import { clusterValueRoutes } from "./cluster-values.ts";
import { compareExchangeRoutes } from "./compare-exchange.ts";
import { counterRoutes } from "./counters.ts";
import { databaseConfigurationRoutes } from "./database-configuration.ts";
import { databaseDebugRoutes } from "./database-debug.ts";
import { databaseMaintenanceRoutes } from "./database-maintenance.ts";
import { databaseRoutes } from "./databases.ts";
import { documentStreamRoutes } from "./document-streams.ts";
import { documentRoutes } from "./documents.ts";
import { etlRoutes } from "./etl.ts";
import { identityRoutes } from "./identities.ts";
import { indexChangeRoutes } from "./index-changes.ts";
import { indexRoutes } from "./indexes.ts";
import { infoPackageRoutes } from "./info-packages.ts";
import { liveFigureRoutes } from "./live-figures.ts";
import { monitoringRoutes } from "./monitoring.ts";
import { multiGetRoutes } from "./multi-get.ts";
import { operationRoutes } from "./operations.ts";
import { setOperationRoutes } from "./operations-by-query.ts";
import { patchRoutes } from "./patches.ts";
import { queryRoutes } from "./queries.ts";
import { revisionRoutes } from "./revisions.ts";
import { runningQueryRoutes } from "./running-queries.ts";
import { sampleDataRoutes } from "./sample-data.ts";
import { serverConfigurationRoutes } from "./server-configuration.ts";
import { serverInfoRoutes } from "./server-info.ts";
import { serverWideTaskRoutes } from "./server-wide-tasks.ts";
import { smugglerRoutes } from "./smuggler.ts";
import { sorterAndAnalyzerRoutes } from "./sorters-analyzers.ts";
import { statisticsRoutes } from "./statistics.ts";
import { storageReportRoutes } from "./storage-reports.ts";
import { studioRoutes } from "./studio.ts";
import { studioPageRoutes } from "./studio-page.ts";
import { studioServerRoutes } from "./studio-server.ts";
import { studioToolRoutes } from "./studio-tools.ts";
import { subscriptionRoutes } from "./subscriptions.ts";
import { taskRoutes } from "./tasks.ts";
import { timeSeriesRoutes } from "./time-series.ts";
import { timeSeriesConfigurationRoutes } from "./time-series-configuration.ts";
import { welcomeRoutes } from "./welcome.ts";

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
  ...subscriptionRoutes,
  ...taskRoutes,
  ...serverWideTaskRoutes,
  ...etlRoutes,
];
