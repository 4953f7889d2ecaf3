/** The time series segments that a transaction sees. */
import type { SegmentSource } from "../state/keyspaces/time-series/time-series.ts";
import type { Transaction } from "../state/store/transaction.ts";

/** Nothing may be changed during an iteration over it. */
export function segmentsIn(transaction: Transaction): SegmentSource {
  const { timeSeriesSegments } = transaction.keyspaces;
  return {
    up: (prefix, from) => transaction.entriesFrom(timeSeriesSegments, prefix, from),
    down: (prefix, from) => transaction.entriesDownFrom(timeSeriesSegments, prefix, from),
  };
}
