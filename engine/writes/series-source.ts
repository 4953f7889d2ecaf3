/** The time series segments that a transaction sees. */
import type { SegmentSource } from "../keyspaces/time-series.ts";
import type { Transaction } from "../store/transaction.ts";

/** Nothing may be changed during an iteration over it. */
export function segmentsIn(transaction: Transaction): SegmentSource {
  const { timeSeriesSegments } = transaction.keyspaces;
  return {
    up: (prefix, from) => transaction.entriesFrom(timeSeriesSegments, prefix, from),
    down: (prefix, from) => transaction.entriesDownFrom(timeSeriesSegments, prefix, from),
  };
}
