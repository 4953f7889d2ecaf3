/**
 * Deployed index definitions, keyed by the lower-cased name of the index and an ascending number: so the entries of one
 * index are adjacent, oldest first. index-history.ts interprets them.
 */

import { foldedName } from "../../base/case-folding.ts";
import type { JsonObject } from "../../base/json/json-object.ts";
import { recordKinds } from "../../base/record.ts";
import { compositeKey, EntryKeyspace, numberKey, numberOfKey } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export function makeIndexHistories(dead: DeadRecordListener): EntryKeyspace<JsonObject> {
  return new EntryKeyspace<JsonObject>("index-histories", recordKinds.indexHistory, dead);
}

/** Returns the common prefix of the keys of all revisions of an index. */
export function indexHistoryPrefix(name: string): string {
  return compositeKey(foldedName(name), "");
}

export function indexHistoryKey(name: string, number: number): string {
  return indexHistoryPrefix(name) + numberKey(number);
}

/** The number in a key. */
export const indexHistoryNumber = numberOfKey;
