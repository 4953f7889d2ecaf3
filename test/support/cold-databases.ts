/**
 * Setup for every test file of `npm run stress cold`, see cold.ts. Released memory is overwritten, so late
 * reads of it find garbage.
 */

import { logDefaults } from "../../engine/storage/log/log-defaults.ts";
import { ImagePool } from "../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../engine/storage/segments/segment-cache.ts";

logDefaults.cache = new SegmentCache(0, new ImagePool(true), 1024);
logDefaults.segmentBytesMin = 4096;
logDefaults.segmentBytesMax = 16_384;
