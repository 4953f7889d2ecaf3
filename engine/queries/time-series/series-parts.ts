/**
 * A series as queries read it: its raw entries, preceded by the rollups of entries whose retention time has passed.
 * Each time belongs to one part, and no entry is counted twice: a group with deleted raw entries is read from its
 * rollup.
 */
import {
  type CollectionPolicies,
  isRollup,
  rollupName,
  type SeriesTime,
} from "../../state/keyspaces/time-series/series-policies.ts";
import {
  type SegmentSource,
  segmentPrefix,
  segmentsBetween,
  timeMax,
  timeMin,
} from "../../state/keyspaces/time-series/time-series.ts";
import { addPeriod, type Period, startOfGroup } from "./time-period.ts";

/** Entries of one stored series. Times are inclusive. */
export interface SeriesPart {
  readonly prefix: string;
  readonly isRollup: boolean;
  readonly from: number;
  readonly to: number;
}

export function periodOf({ unit, value }: NonNullable<SeriesTime>): Period {
  return unit === "Month"
    ? { kind: "months", count: value }
    : { kind: "milliseconds", length: value * 1000 };
}

/**
 * Returns the parts of a series in time order; empty if the series does not exist. `policies`: of its collection, or
 * null
 */
export function seriesParts(
  segments: SegmentSource,
  documentId: string,
  name: string,
  policies: CollectionPolicies | null,
): SeriesPart[] {
  const prefix = segmentPrefix(documentId, name);
  let first = firstTime(segments, prefix);
  const isOwn = isRollup(name) || policies === null;
  if (isOwn) {
    const whole = { prefix, isRollup: isRollup(name), from: timeMin, to: timeMax };
    return first === null ? [] : [whole];
  }
  const parts: SeriesPart[] = [];
  let finer: { readonly prefix: string; readonly isRollup: boolean } = { prefix, isRollup: false };
  let retention = policies.rawRetention;
  let to = timeMax;
  for (const policy of policies.policies) {
    // Without a retention, all of the finer one is there.
    if (retention === null && first !== null) break;
    const coarser = { prefix: segmentPrefix(documentId, rollupName(name, policy)), isRollup: true };
    const coarserFirst = firstTime(segments, coarser.prefix);
    if (coarserFirst !== null) {
      const period = periodOf(policy.aggregation);
      if (first !== null) {
        const start = startOfGroup(first, period);
        if (coarserFirst < first) {
          const from = hasEntry(segments, coarser.prefix, start) ? addPeriod(start, period) : start;
          if (from <= to) parts.unshift({ ...finer, from, to });
          to = Math.min(to, from - 1);
          first = coarserFirst;
          finer = coarser;
        }
      } else {
        first = coarserFirst;
        finer = coarser;
      }
    }
    retention = policy.retention;
  }
  if (first !== null) parts.unshift({ ...finer, from: timeMin, to });
  return parts;
}

function firstTime(segments: SegmentSource, prefix: string): number | null {
  for (const [, { first }] of segments.up(prefix, prefix)) return first;
  return null;
}

function hasEntry(segments: SegmentSource, prefix: string, time: number): boolean {
  for (const [, segment] of segmentsBetween(segments, prefix, time, time)) {
    const entries = segment.unpack();
    if (entries.times[entries.countBefore(time)] === time) return true;
  }
  return false;
}
