/** Rates of requests, writes and indexes, in the shape of RavenDB 7.2.7, to be written by `jsonOfNumbers`. */
import type { Meter } from "../../engine/base/scheduling/meter.ts";
import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type { Database } from "../../engine/engine.ts";
import type { JsonObject } from "../http/json-body.ts";
import { doubleNumber } from "./number-texts.ts";

/** Finished requests, and the sum of their durations in milliseconds. */
export interface RequestMeters {
  readonly requests: Meter;
  readonly ms: Meter;
}

const kinds = {
  Docs: "documents",
  Attachments: "attachments",
  Counters: "counters",
  TimeSeries: "timeSeries",
} as const;
const measures = { PutsPerSec: "puts", BytesPutsPerSec: "bytes" } as const;
type Measure = keyof typeof measures;

/** Returns the rates of the databases together, and those of `requests`; null: there were none. */
export function metricsRow(
  databases: readonly Database[],
  requests: RequestMeters | null,
  concurrentCount: number,
): JsonObject {
  const nowMicros = Date.now() * 1000;
  const row = (meters: readonly Meter[]) => meterRow(meters, nowMicros);
  const all = databases.map((database) => database.meters());
  const perSecond = requests?.requests.perSecond(60, nowMicros) ?? 0;
  const msPerSecond = requests?.ms.perSecond(60, nowMicros) ?? 0;
  const averageMs = perSecond === 0 ? 0 : msPerSecond / perSecond;
  return {
    Requests: {
      RequestsPerSec: row(requests === null ? [] : [requests.requests]),
      ConcurrentRequestsCount: concurrentCount,
      AverageDuration: doubleNumber(Math.round(averageMs * 100) / 100),
    },
    ...writeRows(databases, ["PutsPerSec", "BytesPutsPerSec"], row),
    MapIndexes: { IndexedPerSec: row(all.flatMap(({ indexed }) => indexed)) },
    MapReduceIndexes: {
      MappedPerSec: row(all.flatMap(({ mapped }) => mapped)),
      ReducedPerSec: row(all.flatMap(({ reduced }) => reduced)),
    },
  };
}

/** Returns rates of writes, with those of each tenth of a second of the last 15 minutes in which something was written. */
export function recentWritesRow(database: Database, measure: Measure): JsonObject {
  const nowMicros = Date.now() * 1000;
  return writeRows([database], [measure], (meters) => ({
    ...meterRow(meters, nowMicros),
    Raw: Object.fromEntries(
      meters
        .flatMap((meter) => [...meter.recent(nowMicros)])
        .map(([atMicros, rate]) => [formatTimestamp(atMicros), rounded(rate)]),
    ),
  }));
}

function writeRows(
  databases: readonly Database[],
  names: readonly Measure[],
  row: (meters: readonly Meter[]) => JsonObject,
): JsonObject {
  const all = databases.map((database) => database.meters().writes);
  const ofKind = (kind: (typeof kinds)[keyof typeof kinds]) =>
    names.map((name) => [name, row(all.map((writes) => writes[kind][measures[name]]))]);
  return Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [name, Object.fromEntries(ofKind(kind))]),
  );
}

/** Adds up meters. */
function meterRow(meters: readonly Meter[], nowMicros: number): JsonObject {
  const sum = (of: (meter: Meter) => number) => meters.reduce((all, one) => all + of(one), 0);
  const over = (seconds: number) => rounded(sum((meter) => meter.perSecond(seconds, nowMicros)));
  return {
    Current: over(1),
    Count: sum(({ count }) => count),
    MeanRate: rounded(sum((meter) => meter.meanPerSecond(nowMicros))),
    OneMinuteRate: over(60),
    FiveMinuteRate: over(300),
    FifteenMinuteRate: over(900),
  };
}

function rounded(rate: number): string | number {
  return doubleNumber(Math.round(rate * 10) / 10);
}
