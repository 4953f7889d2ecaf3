/** Tasks and connection strings of all databases: always empty, because they belong to one database here. Shapes are those of RavenDB 7.2.7. */
import { connectionTypes } from "../../databases/etl-definitions.ts";
import type { Exchange } from "../../http/exchange.ts";
import { RequestError } from "../../http/request-error.ts";
import type { Route } from "../../routing/route.ts";

const ofServer = { kind: "server", method: "GET" } as const;
const configuration = "/admin/configuration/server-wide";

/** RavenDB's types of tasks, as it spells them. */
const taskTypes: readonly string[] = [
  "Backup",
  "CdcSink",
  "ElasticSearchEtl",
  "EmbeddingsGeneration",
  "GenAi",
  "OlapEtl",
  "PullReplicationAsHub",
  "PullReplicationAsSink",
  "QueueEtl",
  "QueueSink",
  "RavenEtl",
  "Replication",
  "SnowflakeEtl",
  "SqlEtl",
  "Subscription",
];
/** The types that RavenDB supports for all databases. */
const serverWideTypes: readonly string[] = ["Backup", "Replication"];

export const serverWideTaskRoutes: readonly Route[] = [
  { ...ofServer, path: "/admin/server-wide/tasks", access: "operator", handle: getTasks },
  {
    ...ofServer,
    path: `${configuration}/backup`,
    access: "operator",
    handle: getBackups,
  },
  {
    ...ofServer,
    path: `${configuration}/tasks`,
    access: "operator",
    handle: getDefinitions,
  },
  {
    ...ofServer,
    path: `${configuration}/connection-strings`,
    access: "operator",
    handle: getConnectionStrings,
  },
];

/** GET /admin/server-wide/tasks[?type]: always empty */
function getTasks(exchange: Exchange): void {
  checkType(exchange.query.get("type") || undefined);
  exchange.replyJson(200, { Tasks: [] });
}

/** GET /admin/configuration/server-wide/backup: always empty */
function getBackups(exchange: Exchange): void {
  exchange.replyJson(200, { Results: [] });
}

/** GET /admin/configuration/server-wide/tasks?type=Backup|Replication: always empty */
function getDefinitions(exchange: Exchange): void {
  const type = exchange.query.required("type");
  checkType(type);
  if (!serverWideTypes.includes(type)) {
    throw new RequestError(
      400,
      "System.ArgumentOutOfRangeException",
      `Specified argument was out of the range of valid values. (Parameter 'Task type '${type} isn't suppported')`,
    );
  }
  exchange.replyJson(200, { Results: [] });
}

function checkType(type: string | undefined): void {
  if (type === undefined || taskTypes.includes(type)) return;
  throw new RequestError(400, "System.ArgumentException", `${type} is unknown task type.`);
}

/** GET /admin/configuration/server-wide/connection-strings[?type]: always empty */
function getConnectionStrings(exchange: Exchange): void {
  const type = exchange.query.get("type") ?? "";
  const isKnown = ["None", ...connectionTypes].some(
    (one) => one.toLowerCase() === type.toLowerCase(),
  );
  if (type !== "" && !isKnown) {
    throw new RequestError(
      400,
      "Raven.Client.Exceptions.BadRequestException",
      `Unknown connection string type: ${type}`,
    );
  }
  exchange.replyJson(200, { Results: [] });
}
