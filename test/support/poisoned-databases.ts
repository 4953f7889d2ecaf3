/**
 * Setup for every test file: released and borrowed record memory is overwritten, so that late reads
 * of it find garbage. `npm run stress cold` does the same (cold-databases.ts).
 */

import { processMemory } from "../../engine/base/memory-budget.ts";
import { ImagePool } from "../../engine/log/image-pool.ts";
import { logDefaults } from "../../engine/log/log-defaults.ts";
import { SegmentCache } from "../../engine/log/segment-cache.ts";

logDefaults.cache = new SegmentCache(processMemory, new ImagePool(true));
