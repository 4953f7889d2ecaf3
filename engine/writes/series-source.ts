/** The segments of time series that a transaction sees. */
import type { SegmentSource } from "../keyspaces/time-series.ts";
import type { Transaction } from "../transaction.ts";

/** Nothing may be changed while something of it is gone through. */
export function segmentsIn(transaction: Transaction): SegmentSource {
  const { timeSeriesSegments } = transaction.keyspaces;
  return {
    up: (prefix, from) => transaction.entriesFrom(timeSeriesSegments, prefix, from),
    down: (prefix, from) => transaction.entriesDownFrom(timeSeriesSegments, prefix, from),
  };
}
