/**
 * Setup for every test file: released and borrowed record memory is overwritten, so that late reads
 * of it find garbage. `npm run stress cold` does the same (cold-databases.ts).
 */

import { processMemory } from "../../engine/base/memory/memory-budget.ts";
import { logDefaults } from "../../engine/storage/log/log-defaults.ts";
import { ImagePool } from "../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../engine/storage/segments/segment-cache.ts";

logDefaults.cache = new SegmentCache(processMemory, new ImagePool(true));
