/** Options of logs that all databases of the process share. */
import { segmentBytesMax, segmentBytesMin } from "../../base/limits.ts";
import { processMemory } from "../../base/memory/memory-budget.ts";
import { SegmentCache } from "../segments/segment-cache.ts";

/** Tests of uncached reads set others before the first database is opened. */
export const logDefaults = {
  cache: new SegmentCache(processMemory),
  segmentBytesMin,
  segmentBytesMax,
};
