/**
 * Definitions of ETL tasks and of the connection strings that they name: members of a database's record, kept for clients
 * that write and read them. Nothing here moves a document. Shapes and texts are those of RavenDB 7.2.7.
 *
 * Invariants:
 * - A task's id is the index of the command that made it: no two tasks of a server have the same.
 */
import { nodeTag } from "../engine/database-state.ts";
import { EngineError } from "../engine/errors.ts";
import type { JsonObject } from "./json-body.ts";
import type { Database } from "./services.ts";

/** What there are connection strings to; each has a map in the record, `RavenConnectionStrings`. */
export const connectionTypes = [
  "Raven",
  "Sql",
  "Olap",
  "ElasticSearch",
  "Queue",
  "Snowflake",
  "Ai",
] as const;
export type ConnectionType = (typeof connectionTypes)[number];

/** Where ETL goes to; each has a list in the record, `RavenEtls`, and `RavenEtl` is the type of its tasks. */
const etlTypes = ["Raven", "Sql", "Olap", "ElasticSearch", "Queue", "Snowflake"] as const;
export type EtlType = (typeof etlTypes)[number];

const notCarriedOut =
  "This server keeps the definition of the task, and does not carry it out: ETL is not supported.";

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

/** The ETL type of a task's type (`SqlEtl`); undefined when it is another kind of task. */
export function etlTypeOfTask(taskType: string): EtlType | undefined {
  const name = /^(.+)Etl$/i.exec(taskType)?.[1]?.toLowerCase();
  return etlTypes.find((known) => known.toLowerCase() === name);
}

/** By name, as they were sent. */
export function connectionStringsOf(record: JsonObject, type: ConnectionType): JsonObject {
  return (record[`${type}ConnectionStrings`] ?? {}) as JsonObject;
}

export function etlsOf(record: JsonObject, type: EtlType): readonly JsonObject[] {
  return (record[`${type}Etls`] ?? []) as JsonObject[];
}

/** All ETL tasks with their types. */
export function allEtls(record: JsonObject): readonly (readonly [EtlType, JsonObject])[] {
  return etlTypes.flatMap((type) =>
    etlsOf(record, type).map((definition) => [type, definition] as const),
  );
}

/** The record with `definition` under its id, in place of one of the same id. */
export function withEtl(record: JsonObject, type: EtlType, definition: JsonObject): JsonObject {
  const others = etlsOf(record, type).filter(({ TaskId }) => TaskId !== definition["TaskId"]);
  return { ...record, [`${type}Etls`]: [...others, definition] };
}

export function withoutEtl(record: JsonObject, type: EtlType, id: number): JsonObject {
  const left = etlsOf(record, type).filter(({ TaskId }) => TaskId !== id);
  return { ...record, [`${type}Etls`]: left };
}

/** A task by its id, else by its name. */
export function findEtl(
  database: Database,
  type: EtlType,
  id: number | undefined,
  name: string | undefined,
): JsonObject | undefined {
  return etlsOf(database.settings, type).find(({ TaskId, Name }) =>
    id === undefined ? Name === name : TaskId === id,
  );
}

/** What clients are told of a task. */
export function etlInfo(
  database: Database,
  baseUrl: string,
  type: EtlType,
  definition: JsonObject,
): JsonObject {
  const name = String(definition["ConnectionStringName"] ?? "");
  const to = (connectionStringsOf(database.settings, type)[name] ?? {}) as JsonObject;
  return {
    TaskId: definition["TaskId"],
    TaskType: `${type}Etl`,
    ResponsibleNode: { NodeTag: nodeTag, NodeUrl: baseUrl, ResponsibleNode: null },
    TaskState: definition["Disabled"] === true ? "Disabled" : "Enabled",
    TaskConnectionStatus: "NotActive",
    TaskName: definition["Name"],
    MentorNode: definition["MentorNode"] ?? null,
    PinToMentorNode: definition["PinToMentorNode"] === true,
    Error: notCarriedOut,
    ConnectionStringName: name,
    ...(type === "Raven"
      ? {
          DestinationUrl: null,
          DestinationDatabase: to["Database"] ?? null,
          TopologyDiscoveryUrls: to["TopologyDiscoveryUrls"] ?? [],
        }
      : {}),
    Configuration: definition,
  };
}
