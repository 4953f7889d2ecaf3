/**
 * Which of RavenDB's two engines an index is configured to emulate. There is a single engine here, which answers like
 * Corax; for Lucene it additionally reports the scores of documents.
 */

import type { JsonObject } from "../../base/json/json-object.ts";
import type { OpenIndex } from "../../indexing/open-index.ts";
import { StaticIndex } from "../../indexing/static-index.ts";

export type SearchEngine = "Corax" | "Lucene";

/** @param record the database record. Its settings apply unless the index has a configuration of its own. */
export function searchEngineOf(record: JsonObject, index: OpenIndex): SearchEngine {
  const key = index.isStatic
    ? "Indexing.Static.SearchEngineType"
    : "Indexing.Auto.SearchEngineType";
  const own = index instanceof StaticIndex ? index.definition.configuration[key] : undefined;
  const settings = (record["Settings"] ?? {}) as JsonObject;
  const chosen = own ?? settings[key];
  if (chosen === undefined) return "Corax";
  return String(chosen).toLowerCase() === "lucene" ? "Lucene" : "Corax";
}
