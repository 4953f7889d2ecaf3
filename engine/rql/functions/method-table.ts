/**
 * The methods of conditions, by name. Their meaning is in analyze-where.ts.
 *
 * Invariants:
 * - Keys are in lower case: method names match in any case.
 */

/** The name of each method in messages, by its lower-cased name. */
export const methodNames = {
  id: "Id",
  search: "Search",
  cmpxchg: "CompareExchange",
  boost: "Boost",
  regex: "Regex",
  startswith: "StartsWith",
  endswith: "EndsWith",
  lucene: "Lucene",
  exists: "Exists",
  exact: "Exact",
  intersect: "Intersect",
  count: "Count",
  sum: "Sum",
  avg: "Average",
  min: "Min",
  max: "Max",
  array: "Array",
  highlight: "Highlight",
  explanations: "Explanation",
  timings: "Timings",
  counters: "Counters",
  revisions: "Revisions",
  fuzzy: "Fuzzy",
  proximity: "Proximity",
  timeseries: "TimeSeries",
  last: "Last",
  "spatial.within": "Spatial_Within",
  "spatial.contains": "Spatial_Contains",
  "spatial.disjoint": "Spatial_Disjoint",
  "spatial.intersects": "Spatial_Intersects",
  "spatial.circle": "Spatial_Circle",
  "spatial.wkt": "Spatial_Wkt",
  "spatial.point": "Spatial_Point",
  morelikethis: "MoreLikeThis",
  "vector.search": "VectorSearch",
} as const;

export type MethodKey = keyof typeof methodNames;

/** The key of a method as written, or null when there is no such method. */
export function methodKey(name: string): MethodKey | null {
  const key = name.toLowerCase();
  return Object.hasOwn(methodNames, key) ? (key as MethodKey) : null;
}
