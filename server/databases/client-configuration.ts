/**
 * The configuration that the server sends to clients: one for all databases, and one per database, which takes
 * precedence unless it is disabled. Shapes are those of RavenDB 7.2.7.
 *
 * Invariants:
 * - A database's ETag grows with every change of its effective configuration: clients compare by size.
 */

import { EngineError } from "../../engine/base/errors.ts";
import type { Database } from "../../engine/engine.ts";
import { type JsonObject, parseObject } from "../http/json-body.ts";
import type { ValueStore } from "../settings/value-store.ts";

/** The key of the configuration for all databases. */
export const clientConfigurationKey = "server/client-configuration";

/** ETag before the first configuration. */
const neverPut = -2;

interface EffectiveClientConfiguration {
  /** `neverPut` without a configuration. */
  readonly etag: number;
  readonly configuration: JsonObject | null;
}

/** Returns the configuration to store. @throws EngineError invalid-operation, invalid-format */
export function keptClientConfiguration(sent: JsonObject, etag: number): JsonObject {
  const separator = sent["IdentityPartsSeparator"] ?? null;
  if (separator === "|") {
    throw new EngineError("invalid-operation", "Cannot set identity parts separator to '|'.");
  }
  if (separator !== null && (typeof separator !== "string" || separator.length !== 1)) {
    throw unconvertible(separator, "System.Char");
  }
  const requests = sent["MaxNumberOfRequestsPerSession"] ?? null;
  if (requests !== null && !Number.isInteger(requests))
    throw unconvertible(requests, "System.Int32");
  for (const [key, words] of Object.entries(behaviors)) {
    const behavior = sent[key] ?? null;
    const isKnown = words.some((word) => word.toLowerCase() === String(behavior).toLowerCase());
    if (behavior !== null && !isKnown) throw unconvertible(behavior, `Raven.Client.Http.${key}`);
  }
  return {
    Disabled: sent["Disabled"] === true,
    Etag: etag,
    MaxNumberOfRequestsPerSession: sent["MaxNumberOfRequestsPerSession"] ?? null,
    ReadBalanceBehavior: sent["ReadBalanceBehavior"] ?? null,
    LoadBalanceBehavior: sent["LoadBalanceBehavior"] ?? null,
    LoadBalancerContextSeed: sent["LoadBalancerContextSeed"] ?? null,
    IdentityPartsSeparator: separator,
  };
}

const behaviors = {
  ReadBalanceBehavior: ["None", "RoundRobin", "FastestNode"],
  LoadBalanceBehavior: ["None", "UseSessionContext"],
};

function unconvertible(value: unknown, type: string): EngineError {
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  return new EngineError("invalid-format", `Could not convert '${shown}' to ${type}`);
}

/** Caches the newest parsed configuration: every client request needs it. */
let parsed: { readonly text: string; readonly configuration: JsonObject } | undefined;

/** Returns the configuration for all databases, or undefined. */
export function serverClientConfiguration(values: ValueStore): JsonObject | undefined {
  const text = values.get(clientConfigurationKey);
  if (text === undefined) return undefined;
  if (parsed?.text !== text) parsed = { text, configuration: parseObject(Buffer.from(text)) };
  return parsed.configuration;
}

/** Returns the effective configuration for clients of a database. Cost: two lookups. */
export function clientConfigurationOf(
  database: Database,
  values: ValueStore,
): EffectiveClientConfiguration {
  const own = (database.settings["Client"] ?? null) as JsonObject | null;
  const common = serverClientConfiguration(values);
  if (own === null && common === undefined) return { etag: neverPut, configuration: null };
  const etag = Number(own?.["Etag"] ?? 0) + Number(common?.["Etag"] ?? 0);
  const isOwn = common === undefined || (own !== null && own["Disabled"] !== true);
  return { etag, configuration: isOwn ? own : common };
}
