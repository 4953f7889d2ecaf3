/**
 * The policies of time series in the record of a database: retention of entries, and the coarser series into which they
 * are rolled up. Each policy aggregates the series of the previous policy; the first policy aggregates the raw series.
 * Rules and error texts equal those of RavenDB 7.2.7.
 *
 *   { "Collections": { "Users": { "Disabled", "Policies": [{ "Name", "AggregationTime", "RetentionTime" }],
 *     "RawPolicy": { "Name": "rawpolicy", "RetentionTime" } } }, "PolicyCheckFrequency", "NamedValues" }
 *
 * A time is `{ "Value", "Unit" }` in seconds or months; unit None: the greatest, which is never reached.
 *
 * Invariants:
 * - A configuration from `parseSeriesCollections` has the policies of each collection in the order of their times.
 */
import { foldedName } from "../../../base/case-folding.ts";
import { EngineError } from "../../../base/errors.ts";
import type { JsonObject } from "../../../base/json/json-object.ts";
import { timeSpanMicros } from "../revision-rules.ts";

/** A duration: seconds or calendar months, at least 1; null: without end. */
export type SeriesTime = { readonly unit: "Second" | "Month"; readonly value: number } | null;

export interface SeriesPolicy {
  readonly name: string;
  readonly aggregation: NonNullable<SeriesTime>;
  readonly retention: SeriesTime;
}

export interface CollectionPolicies {
  /** From the finest. */
  readonly policies: readonly SeriesPolicy[];
  readonly rawRetention: SeriesTime;
}

/** Separator of the name of a raw series and the name of a policy. */
export const rollupSeparator = "@";
/** Numbers of a rollup for each value of the raw series, in this order. */
export const rollupParts = ["First", "Last", "Min", "Max", "Sum", "Count"] as const;
const rawPolicyName = "rawpolicy";

const daySeconds = 86_400;
/** Days of so many successive months, at least and at most. */
const daysMin = [0, 28, 59, 89, 120, 150, 181, 212, 242, 273, 303, 334];
const daysMax = [0, 31, 62, 92, 123, 153, 184, 215, 245, 276, 306, 337];
const defaultFrequencyMs = 600_000;

export function isRollup(name: string): boolean {
  return name.includes(rollupSeparator);
}

export function rollupName(rawName: string, policy: SeriesPolicy): string {
  return `${rawName}${rollupSeparator}${policy.name}`;
}

/** Returns the policies of a collection in the database's record, in any case; null: none, or they are disabled. */
export function policiesOf(settings: JsonObject, collection: string): CollectionPolicies | null {
  const { Collections } = (settings["TimeSeries"] ?? {}) as { Collections?: JsonObject | null };
  const lower = foldedName(collection);
  for (const [name, rule] of Object.entries(Collections ?? {})) {
    if (foldedName(name) === lower) return policiesIn(rule as JsonObject | null);
  }
  return null;
}

/** Returns the collections with policies that are not disabled. */
export function collectionsWithPolicies(settings: JsonObject): string[] {
  const { Collections } = (settings["TimeSeries"] ?? {}) as { Collections?: JsonObject | null };
  return Object.entries(Collections ?? {})
    .filter(([, rule]) => policiesIn(rule as JsonObject | null) !== null)
    .map(([name]) => name);
}

function policiesIn(rule: JsonObject | null): CollectionPolicies | null {
  if (rule === null || rule["Disabled"] === true) return null;
  const { Policies, RawPolicy } = rule as { Policies?: JsonObject[]; RawPolicy?: JsonObject };
  const policies = (Policies ?? []).map((policy) => ({
    name: policy["Name"] as string,
    aggregation: timeOf(policy["AggregationTime"]) as NonNullable<SeriesTime>,
    retention: timeOf(policy["RetentionTime"]),
  }));
  const rawRetention = timeOf(RawPolicy?.["RetentionTime"]);
  return policies.length === 0 && rawRetention === null ? null : { policies, rawRetention };
}

/** Returns milliseconds between two checks. */
export function policyFrequencyMs(settings: JsonObject): number {
  const { PolicyCheckFrequency } = (settings["TimeSeries"] ?? {}) as JsonObject;
  return typeof PolicyCheckFrequency === "string"
    ? spanMs(PolicyCheckFrequency)
    : defaultFrequencyMs;
}

/**
 * Checks the collections of a configuration in a request.
 * @returns them in stored form: with all members, and the policies in the order of their times
 * @throws EngineError invalid-operation, invalid-format, invalid-argument
 */
export function parseSeriesCollections(sent: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(sent).map(([name, rule]) => [name, collectionOf((rule ?? {}) as JsonObject)]),
  );
}

/** @throws EngineError invalid-format, invalid-argument. @returns null when it is not set */
export function parsePolicyFrequency(sent: unknown): string | null {
  if (sent === undefined || sent === null) return null;
  const ms = typeof sent === "string" ? spanMs(sent) : Number.NaN;
  if (Number.isNaN(ms)) throw unfit(sent, "System.TimeSpan");
  if (ms > 0) return sent as string;
  throw new EngineError("invalid-argument", "PolicyCheckFrequency must be positive.");
}

function objectIn(policy: unknown): JsonObject {
  if (typeof policy === "object" && policy !== null) return policy as JsonObject;
  return refuse(`A policy must be an object, not ${JSON.stringify(policy)}.`);
}

function collectionOf(rule: JsonObject): JsonObject {
  const { Disabled, Policies, RawPolicy } = rule;
  const sent = Array.isArray(Policies) ? Policies.map(objectIn) : [];
  const policies = sent.map(policyOf);
  for (const [i, { Name }] of policies.entries()) {
    const lower = foldedName(Name);
    if (policies.findIndex((one) => foldedName(one.Name) === lower) === i) continue;
    refuse(`Policy names must be unique, policy with the name '${Name}' has duplicates.`);
  }
  policies.sort((left, right) => compared(knownTime(left), knownTime(right)));
  const raw = RawPolicy === undefined || RawPolicy === null ? null : (RawPolicy as JsonObject);
  const rawRetention = raw === null ? null : timeIn(raw["RetentionTime"]);
  if (rawRetention === undefined)
    refuse("Retention time of the RawPolicy must be greater than zero");
  checkChain(policies, rawRetention);
  return {
    Disabled: Disabled === true,
    Policies: policies,
    RawPolicy: {
      Name: rawPolicyName,
      RetentionTime: timeJson(rawRetention),
      // Clients read it, though it means nothing.
      AggregationTime: { Value: 0, Unit: "None" },
    },
  };
}

interface KeptPolicy extends JsonObject {
  readonly Name: string;
}

function policyOf(sent: JsonObject): KeptPolicy {
  const { Name } = sent;
  if (typeof Name !== "string") {
    throw new EngineError("invalid-argument", "Value cannot be null. (Parameter 'key')");
  }
  const aggregation = timeIn(sent["AggregationTime"]);
  const retention = timeIn(sent["RetentionTime"]);
  if (Name === "" || isRollup(Name) || foldedName(Name) === rawPolicyName) {
    refuse(
      `'${Name}' is no name of a policy: it may not be empty, '${rawPolicyName}', or contain '${rollupSeparator}'.`,
    );
  }
  if (aggregation === undefined || aggregation === null) {
    refuse(`Aggregation time of '${Name}' must be greater than zero`);
  }
  if (retention === undefined) refuse(`Retention time of '${Name}' must be greater than zero`);
  return { Name, RetentionTime: timeJson(retention), AggregationTime: timeJson(aggregation) };
}

/** Each policy must be a multiple of the one before it, whose entries must be kept until they are rolled up. */
function checkChain(policies: readonly KeptPolicy[], rawRetention: SeriesTime): void {
  let before = { name: rawPolicyName, retention: rawRetention, aggregation: null as SeriesTime };
  for (const policy of policies) {
    const { Name } = policy;
    const aggregation = knownTime(policy);
    if (before.aggregation !== null) {
      if (isSameTime(before.aggregation, aggregation)) {
        refuse(`The policy '${before.name}' has the same aggregation time as the policy '${Name}'`);
      }
      if (!divides(before.aggregation, aggregation)) {
        refuse(
          `The aggregation time of the policy '${Name}' (${timeText(aggregation)}) must be divided by the aggregation time of '${before.name}' (${timeText(before.aggregation)}) without a remainder.`,
        );
      }
    }
    if (before.retention !== null && compared(before.retention, aggregation) < 0) {
      refuse(
        `The policy '${before.name}' has a retention time of '${timeText(before.retention)}' but should be aggregated by policy '${Name}' with the aggregation time frame of ${timeText(aggregation)}`,
      );
    }
    before = { name: Name, retention: timeOf(policy["RetentionTime"]), aggregation };
  }
}

function knownTime(policy: JsonObject): NonNullable<SeriesTime> {
  return timeOf(policy["AggregationTime"]) as NonNullable<SeriesTime>; // checked
}

/** Returns a time in stored form. */
function timeOf(kept: unknown): SeriesTime {
  const { Value, Unit } = (kept ?? {}) as { Value?: number; Unit?: string };
  if (Value === undefined || (Unit !== "Second" && Unit !== "Month")) return null;
  return { unit: Unit, value: Value };
}

/**
 * Returns a time from a request: infinite without a unit, 0 without a value; undefined if it is missing, or not above
 * zero. @throws EngineError invalid-format
 */
function timeIn(sent: unknown): SeriesTime | undefined {
  if (sent === undefined || sent === null) return undefined;
  if (typeof sent !== "object") throw unfit(sent, "Sparrow.Json.BlittableJsonReaderObject");
  const { Value: value, Unit: unit } = sent as { Value?: unknown; Unit?: unknown };
  const Value = value ?? 0;
  const Unit = unit ?? "None";
  if (!Number.isSafeInteger(Value)) throw unfit(Value, "System.Int32");
  if (Unit !== "Second" && Unit !== "Month" && Unit !== "None") {
    throw unfit(Unit, "Sparrow.TimeValueUnit");
  }
  if ((Value as number) <= 0) return undefined;
  return Unit === "None" ? null : { unit: Unit, value: Value as number };
}

function timeJson(time: SeriesTime): JsonObject {
  if (time === null) return { Value: 2_147_483_647, Unit: "None" };
  return { Value: time.value, Unit: time.unit };
}

function isSameTime(left: NonNullable<SeriesTime>, right: NonNullable<SeriesTime>): boolean {
  return left.unit === right.unit && left.value === right.value;
}

function divides(inner: NonNullable<SeriesTime>, outer: NonNullable<SeriesTime>): boolean {
  if (inner.unit === outer.unit) return outer.value % inner.value === 0;
  return inner.unit === "Second" && daySeconds % inner.value === 0;
}

/** @throws EngineError invalid-operation when the number of days in a month decides */
function compared(left: NonNullable<SeriesTime>, right: NonNullable<SeriesTime>): number {
  if (left.unit === right.unit) return left.value - right.value;
  if (left.unit === "Second") return -comparedMonths(right.value, left.value, left, right);
  return comparedMonths(left.value, right.value, left, right);
}

function comparedMonths(
  months: number,
  seconds: number,
  left: NonNullable<SeriesTime>,
  right: NonNullable<SeriesTime>,
): number {
  const years = Math.floor(months / 12);
  const rest = months % 12;
  if (seconds < (years * 365 + (daysMin[rest] as number)) * daySeconds) return 1;
  if (seconds > (years * 366 + (daysMax[rest] as number)) * daySeconds) return -1;
  return refuse(
    `Unable to compare ${timeText(left)} with ${timeText(right)}, since a month might have different number of days.`,
  );
}

/** Formats `60 minutes`: in the largest unit with a value above one. */
function timeText({ unit, value }: NonNullable<SeriesTime>): string {
  const units =
    unit === "Month"
      ? ([["year", 12]] as const)
      : ([
          ["days", daySeconds],
          ["hours", 3600],
          ["minutes", 60],
        ] as const);
  const parts: string[] = [];
  let rest = value;
  for (const [name, length] of units) {
    if (unit === "Second" ? rest <= length : rest < length) continue;
    const count = Math.floor(rest / length);
    parts.push(unit === "Month" && count > 1 ? `${count} years` : `${count} ${name}`);
    rest -= count * length;
  }
  if (rest > 0) parts.push(unit === "Month" ? monthText(rest) : `${rest} seconds`);
  return parts.join(" ");
}

function monthText(count: number): string {
  return count === 1 ? "1 month" : `${count} months`;
}

function spanMs(text: string): number {
  return (timeSpanMicros(text) ?? Number.NaN) / 1000;
}

function refuse(message: string): never {
  throw new EngineError("invalid-operation", message);
}

function unfit(value: unknown, type: string): EngineError {
  return new EngineError(
    "invalid-format",
    `Could not convert Sparrow.Json.LazyStringValue ('${String(value)}') to ${type}`,
  );
}
