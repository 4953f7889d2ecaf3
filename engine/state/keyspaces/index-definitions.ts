/** Index definitions, automatic and static, by lower-cased name, as JSON; indexing/ interprets them. */

import type { JsonObject } from "../../base/json/json-object.ts";
import { recordKinds } from "../../base/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export function makeIndexDefinitions(dead: DeadRecordListener): EntryKeyspace<JsonObject> {
  return new EntryKeyspace<JsonObject>("index-definitions", recordKinds.indexDefinition, dead);
}
