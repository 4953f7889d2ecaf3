/** THE table: the routes of every resource, joined. `RouteTable` asserts that no two match alike. */
import { certificateRoutes } from "./endpoints/certificates.ts";
import { databaseRoutes } from "./endpoints/databases.ts";
import { documentRoutes } from "./endpoints/documents.ts";
import { infoPackageRoutes } from "./endpoints/info-packages.ts";
import { patchRoutes } from "./endpoints/patches.ts";
import { serverConfigurationRoutes } from "./endpoints/server-configuration.ts";
import { serverInfoRoutes } from "./endpoints/server-info.ts";
import { welcomeRoutes } from "./endpoints/welcome.ts";
import type { Route } from "./route.ts";

export const routes: readonly Route[] = [
  ...welcomeRoutes,
  ...serverInfoRoutes,
  ...serverConfigurationRoutes,
  ...certificateRoutes,
  ...infoPackageRoutes,
  ...databaseRoutes,
  ...documentRoutes,
  ...patchRoutes,
];
