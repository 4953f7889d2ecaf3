/**
 * Definitions of ETL tasks and queue sinks, and of their connection strings: members of a database's record, which clients
 * write and read. No task is run. Shapes and texts are those of RavenDB 7.2.7.
 *
 * Invariants:
 * - A task's id is the index of the command that created it, so it is unique within a server.
 */

import { EngineError } from "../../engine/base/errors.ts";
import type { Database } from "../../engine/engine.ts";
import type { JsonObject } from "../http/json-body.ts";

/** Types of connection strings; each has a map in the record, e.g. `RavenConnectionStrings`. */
export const connectionTypes = [
  "Raven",
  "Sql",
  "Olap",
  "ElasticSearch",
  "Queue",
  "Snowflake",
  "Ai",
] as const;
type ConnectionType = (typeof connectionTypes)[number];

/** Destinations of ETL; each has a list in the record, e.g. `RavenEtls`, and a task type, e.g. `RavenEtl`. */
const etlTypes = ["Raven", "Sql", "Olap", "ElasticSearch", "Queue", "Snowflake"] as const;
type EtlType = (typeof etlTypes)[number];

/** The tasks stored here: ETL, and queue sinks, which consume messages from a queue. */
const taskKinds = [...etlTypes, "QueueSink"] as const;
export type TaskKind = (typeof taskKinds)[number];

function taskTypeOf(kind: TaskKind): string {
  return kind === "QueueSink" ? kind : `${kind}Etl`;
}

function notCarriedOut(kind: TaskKind): string {
  const what = kind === "QueueSink" ? "queue sinks are" : "ETL is";
  return `This server stores the definition of the task but does not run it: ${what} not supported.`;
}

/** @throws EngineError not-supported */
export function connectionTypeOf(text: string): ConnectionType {
  const type = connectionTypes.find((known) => known.toLowerCase() === text.toLowerCase());
  if (type !== undefined) return type;
  throw new EngineError("not-supported", `Unknown Connection string type: ${text}`);
}

/** The ETL type of a definition. @throws EngineError not-supported */
export function etlTypeOf(text: string): EtlType {
  const type = etlTypes.find((known) => known.toLowerCase() === text.toLowerCase());
  if (type !== undefined) return type;
  throw new EngineError("not-supported", `Unknown ETL configuration type: ${text}`);
}

/** Returns the category of a task type (`SqlEtl`, `QueueSink`), or undefined for other tasks. */
export function taskKindOf(taskType: string): TaskKind | undefined {
  const lower = taskType.toLowerCase();
  return taskKinds.find((kind) => taskTypeOf(kind).toLowerCase() === lower);
}

/** Returns the type of connection string that tasks of this category reference. */
export function connectionTypeOfTask(kind: TaskKind): ConnectionType {
  return kind === "QueueSink" ? "Queue" : kind;
}

/** Returns connection strings by name, as sent. */
export function connectionStringsOf(record: JsonObject, type: ConnectionType): JsonObject {
  return (record[`${type}ConnectionStrings`] ?? {}) as JsonObject;
}

export function definitionsOf(record: JsonObject, kind: TaskKind): readonly JsonObject[] {
  return (record[`${taskTypeOf(kind)}s`] ?? []) as JsonObject[];
}

/** Returns all tasks with their categories. */
export function allDefinitions(record: JsonObject): readonly (readonly [TaskKind, JsonObject])[] {
  return taskKinds.flatMap((kind) =>
    definitionsOf(record, kind).map((definition) => [kind, definition] as const),
  );
}

/** Returns the record with `definition`, which replaces the one with the same id. */
export function withDefinition(
  record: JsonObject,
  kind: TaskKind,
  definition: JsonObject,
): JsonObject {
  const others = definitionsOf(record, kind).filter(
    ({ TaskId }) => TaskId !== definition["TaskId"],
  );
  return { ...record, [`${taskTypeOf(kind)}s`]: [...others, definition] };
}

export function withoutDefinition(record: JsonObject, kind: TaskKind, id: number): JsonObject {
  const left = definitionsOf(record, kind).filter(({ TaskId }) => TaskId !== id);
  return { ...record, [`${taskTypeOf(kind)}s`]: left };
}

/** Finds a task by id or, without one, by name. */
export function findDefinition(
  database: Database,
  kind: TaskKind,
  id: number | undefined,
  name: string | undefined,
): JsonObject | undefined {
  return definitionsOf(database.settings, kind).find(({ TaskId, Name }) =>
    id === undefined ? Name === name : TaskId === id,
  );
}

/** Returns the description of a task for clients. */
export function definitionInfo(
  database: Database,
  baseUrl: string,
  kind: TaskKind,
  definition: JsonObject,
): JsonObject {
  const name = String(definition["ConnectionStringName"] ?? "");
  const known = connectionStringsOf(database.settings, connectionTypeOfTask(kind));
  const to = (known[name] ?? {}) as JsonObject;
  return {
    TaskId: definition["TaskId"],
    TaskType: taskTypeOf(kind),
    ResponsibleNode: { NodeTag: database.nodeTag, NodeUrl: baseUrl, ResponsibleNode: null },
    TaskState: definition["Disabled"] === true ? "Disabled" : "Enabled",
    TaskConnectionStatus: "NotActive",
    TaskName: definition["Name"],
    MentorNode: definition["MentorNode"] ?? null,
    PinToMentorNode: definition["PinToMentorNode"] === true,
    Error: notCarriedOut(kind),
    ...(kind === "QueueSink" ? { BrokerType: definition["BrokerType"] ?? null } : {}),
    ConnectionStringName: name,
    ...(kind === "QueueSink" ? { Url: brokerUrlOf(to) } : {}),
    ...(kind === "Raven"
      ? {
          DestinationUrl: null,
          DestinationDatabase: to["Database"] ?? null,
          TopologyDiscoveryUrls: to["TopologyDiscoveryUrls"] ?? [],
        }
      : {}),
    Configuration: definition,
  };
}

/** Returns the address of a queue, without credentials, or null if the connection string has none. */
function brokerUrlOf(connection: JsonObject): string | null {
  const { KafkaConnectionSettings, RabbitMqConnectionSettings } = connection;
  const servers = ((KafkaConnectionSettings ?? {}) as JsonObject)["BootstrapServers"];
  const address = ((RabbitMqConnectionSettings ?? {}) as JsonObject)["ConnectionString"];
  if (typeof servers === "string") return servers;
  return typeof address === "string" ? address.slice(address.lastIndexOf("@") + 1) : null;
}
