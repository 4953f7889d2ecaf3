/**
 * Which of RavenDB's two engines an index is asked to answer like. There is one engine here, which answers like Corax; of
 * what Lucene tells beside, it tells the scores of documents.
 */
import type { OpenIndex } from "./indexing/open-index.ts";
import { StaticIndex } from "./indexing/static-index.ts";
import type { JsonObject } from "./json/json-object.ts";

export type SearchEngine = "Corax" | "Lucene";

/** @param record the database's record: its settings say it, or the index's own configuration does. */
export function searchEngineOf(record: JsonObject, index: OpenIndex): SearchEngine {
  const key = `Indexing.${index.isStatic ? "Static" : "Auto"}.SearchEngineType`;
  const own = index instanceof StaticIndex ? index.definition.configuration[key] : undefined;
  const settings = (record["Settings"] ?? {}) as JsonObject;
  return String(own ?? settings[key]).toLowerCase() === "lucene" ? "Lucene" : "Corax";
}
