/** The words of RQL that editors complete and highlight. Imports nothing: the studio bundles it. */

export const rqlKeywords: readonly string[] =
  "from index where and or not in all between as select distinct order by group load include update declare function timeseries filter filter_limit limit offset nulls first last true false null asc desc long double string alphaNumeric".split(
    " ",
  );

/** Methods in the spelling of examples. function-table.ts has a record for each. */
export const rqlMethods: readonly string[] =
  "id search exact startsWith endsWith exists lucene regex boost fuzzy proximity intersect moreLikeThis spatial.within spatial.contains spatial.disjoint spatial.intersects spatial.circle spatial.wkt spatial.point spatial.distance vector.search count sum avg min max key array facet suggest score random custom highlight explanations timings cmpxchg counters counter counterRaw timeseries revisions last now today".split(
    " ",
  );
