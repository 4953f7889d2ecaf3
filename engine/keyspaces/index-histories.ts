/**
 * What was deployed as an index, by the lower-cased name of the index and a number that grows: so the entries of one
 * index stand together, the oldest first. What a revision says is the business of index-history.ts.
 */

import type { JsonObject } from "../json/json-object.ts";
import { recordKinds } from "../log/record.ts";
import { compositeKey, EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export function makeIndexHistories(dead: DeadRecordListener): EntryKeyspace<JsonObject> {
  return new EntryKeyspace<JsonObject>("index-histories", recordKinds.indexHistory, dead);
}

/** What the keys of all revisions of an index begin with. */
export function indexHistoryPrefix(name: string): string {
  return compositeKey(name.toLowerCase(), "");
}

export function indexHistoryKey(name: string, number: number): string {
  return indexHistoryPrefix(name) + String(number).padStart(16, "0");
}

/** The number in a key. */
export function indexHistoryNumber(key: string): number {
  return Number(key.slice(-16));
}
