/**
 * The time series configuration in a database record: value names, by collection and series, and the policies of
 * collections: retention and rollups. Shapes and texts are those of RavenDB 7.2.7.
 */
import { EngineError } from "../../../engine/base/errors.ts";
import { parsePolicyFrequency, parseSeriesCollections } from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import { jsonContentType } from "../../http/response.ts";
import { type DatabaseContext, databaseRoute, type Route } from "../../routing/route.ts";

export const timeSeriesConfigurationRoutes: readonly Route[] = [
  databaseRoute("GET", "timeseries/config", "read", getConfiguration),
  databaseRoute("POST", "timeseries/names/config", "database-admin", putNames),
  databaseRoute("POST", "admin/timeseries/config", "database-admin", putConfiguration),
  databaseRoute("PUT", "admin/timeseries/policy", "database-admin", putPolicy),
  databaseRoute("DELETE", "admin/timeseries/policy", "database-admin", deletePolicy),
];

type Names = Record<string, Record<string, readonly string[]>>;

/** GET timeseries/config: 404 until it is set */
function getConfiguration(exchange: Exchange, { database }: DatabaseContext): void {
  const kept = database.settings["TimeSeries"] ?? null;
  if (kept === null) exchange.reply(404, { "content-type": jsonContentType });
  else exchange.replyJson(200, kept);
}

/** POST timeseries/names/config `{"Collection","TimeSeries","ValueNames":[…],"Update"?}`: names the values of a series */
async function putNames(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const collection = requiredText(body, "Collection");
  const series = requiredText(body, "TimeSeries");
  const names = namesOf(body["ValueNames"]);
  await change(exchange, context, (kept) => {
    const named = kept.NamedValues;
    const key = keyLike(named, collection);
    const ofCollection = named[key] ?? {};
    const known = keyLike(ofCollection, series);
    if (ofCollection[known] !== undefined && body["Update"] !== true) {
      throw new EngineError(
        "invalid-operation",
        `Failed to update the names for time-series '${series}' in collection '${collection}', they already exists.`,
      );
    }
    return { ...kept, NamedValues: { ...named, [key]: { ...ofCollection, [known]: names } } };
  });
}

/** POST admin/timeseries/config `{"Collections","PolicyCheckFrequency","NamedValues"}`: replaces the configuration */
async function putConfiguration(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const Collections = parseSeriesCollections((body["Collections"] ?? {}) as JsonObject);
  const PolicyCheckFrequency = parsePolicyFrequency(body["PolicyCheckFrequency"]);
  const NamedValues: Names = {};
  for (const [collection, series] of Object.entries((body["NamedValues"] as object | null) ?? {})) {
    NamedValues[collection] = {};
    for (const [name, values] of Object.entries((series as object | null) ?? {})) {
      NamedValues[collection][name] = namesOf(values);
    }
  }
  await change(exchange, context, () => ({ Collections, PolicyCheckFrequency, NamedValues }));
}

/** PUT admin/timeseries/policy?collection=… `{"Name","AggregationTime","RetentionTime"}`: adds or replaces one */
async function putPolicy(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const collection = exchange.query.required("collection");
  const policy = await jsonBody(exchange);
  const isRaw = String(policy["Name"]).toLowerCase() === rawPolicyName;
  await changePolicies(exchange, context, collection, (rule) =>
    isRaw
      ? { ...rule, RawPolicy: policy }
      : { ...rule, Policies: [...without(rule, String(policy["Name"])), policy] },
  );
}

/** DELETE admin/timeseries/policy?collection=…&name=…: removes a policy of a collection */
async function deletePolicy(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const collection = exchange.query.required("collection");
  const name = exchange.query.required("name");
  const { database } = context;
  const { Collections } = (database.settings["TimeSeries"] ?? {}) as { Collections?: object };
  const isKnown = keyLike(Collections ?? {}, collection) in (Collections ?? {});
  if (!isKnown) {
    exchange.reply(200, { "content-type": jsonContentType });
    return;
  }
  const isRaw = name.toLowerCase() === rawPolicyName;
  await changePolicies(exchange, context, collection, (rule) =>
    isRaw ? { ...rule, RawPolicy: null } : { ...rule, Policies: without(rule, name) },
  );
}

const rawPolicyName = "rawpolicy";

/** Returns the policies of a collection except the one of this name. */
function without({ Policies }: JsonObject, name: string): JsonObject[] {
  const lower = name.toLowerCase();
  return ((Policies ?? []) as JsonObject[]).filter(
    (policy) => String(policy["Name"]).toLowerCase() !== lower,
  );
}

function changePolicies(
  exchange: Exchange,
  context: DatabaseContext,
  collection: string,
  next: (rule: JsonObject) => JsonObject,
): Promise<void> {
  return change(exchange, context, (kept) => {
    const { Collections } = kept;
    const key = keyLike(Collections, collection);
    const rule = next((Collections[key] ?? {}) as JsonObject);
    return { ...kept, Collections: { ...Collections, ...parseSeriesCollections({ [key]: rule }) } };
  });
}

interface Configuration extends JsonObject {
  readonly Collections: JsonObject;
  readonly PolicyCheckFrequency: string | null;
  readonly NamedValues: Names;
}

async function change(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  next: (kept: Configuration) => Configuration,
): Promise<void> {
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => {
    const {
      Collections = {},
      PolicyCheckFrequency = null,
      NamedValues = {},
    } = (record["TimeSeries"] ?? {}) as Partial<Configuration>;
    const TimeSeries = next({ Collections, PolicyCheckFrequency, NamedValues });
    return { ...record, TimeSeries, ChangedIndex: index };
  });
  exchange.replyJson(200, { RaftCommandIndex: index });
}

/** Returns the key of `object` that equals `name` in any letter case, or `name` itself. */
function keyLike(object: object, name: string): string {
  const lower = name.toLowerCase();
  return Object.keys(object).find((key) => key.toLowerCase() === lower) ?? name;
}

function requiredText(body: JsonObject, key: string): string {
  const value = body[key];
  if (typeof value === "string" && value !== "") return value;
  throw new EngineError("argument-null", `Value cannot be null. (Parameter '${key}')`);
}

function namesOf(value: unknown): string[] {
  const names = Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];
  if (names.length > 0) return names;
  throw new EngineError("invalid-argument", "ValueNames can't be empty.");
}
