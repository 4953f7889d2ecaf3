/**
 * The time series configuration in a database record: value names, by collection and series. Shapes and texts are those
 * of RavenDB 7.2.7. Policies (retention, rollups) are refused, since they are not implemented.
 */
import { EngineError } from "../../engine/base/errors.ts";
import type { Exchange } from "../http/exchange.ts";
import { type JsonObject, jsonBody } from "../http/json-body.ts";
import { jsonContentType } from "../http/response.ts";
import type { DatabaseContext, Method, Route } from "../routing/route.ts";
import type { Access } from "../security/access.ts";

type Handle = (exchange: Exchange, context: DatabaseContext) => Promise<void> | void;

function route(method: Method, path: string, access: Access, handle: Handle): Route {
  return { kind: "database", method, path: `/databases/:database/${path}`, access, handle };
}

export const timeSeriesConfigurationRoutes: readonly Route[] = [
  route("GET", "timeseries/config", "read", getConfiguration),
  route("POST", "timeseries/names/config", "database-admin", putNames),
  route("POST", "admin/timeseries/config", "database-admin", putConfiguration),
  route("PUT", "admin/timeseries/policy", "database-admin", refusePolicies),
  route("DELETE", "admin/timeseries/policy", "database-admin", refusePolicies),
];

type Names = Record<string, Record<string, readonly string[]>>;

/** GET timeseries/config: 404 until it is set */
function getConfiguration(exchange: Exchange, { database }: DatabaseContext): void {
  const kept = database.settings["TimeSeries"] ?? null;
  if (kept === null) exchange.reply(404, { "content-type": jsonContentType });
  else exchange.replyJson(200, kept);
}

/** POST timeseries/names/config `{"Collection","TimeSeries","ValueNames":[…],"Update"?}` */
async function putNames(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  const collection = requiredText(body, "Collection");
  const series = requiredText(body, "TimeSeries");
  const names = namesOf(body["ValueNames"]);
  await change(exchange, context, (named) => {
    const key = keyLike(named, collection);
    const ofCollection = named[key] ?? {};
    const known = keyLike(ofCollection, series);
    if (ofCollection[known] !== undefined && body["Update"] !== true) {
      throw new EngineError(
        "invalid-operation",
        `Failed to update the names for time-series '${series}' in collection '${collection}', they already exists.`,
      );
    }
    return { ...named, [key]: { ...ofCollection, [known]: names } };
  });
}

/** POST admin/timeseries/config `{"Collections","NamedValues"}`: replaces the configuration */
async function putConfiguration(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const body = await jsonBody(exchange);
  for (const rule of Object.values((body["Collections"] as object | null) ?? {})) {
    const { Policies, RawPolicy } = (rule ?? {}) as { Policies?: unknown[]; RawPolicy?: unknown };
    const isBare = (RawPolicy ?? null) === null && (Policies ?? []).length === 0;
    if (!isBare) refusePolicies();
  }
  const named: Names = {};
  for (const [collection, series] of Object.entries((body["NamedValues"] as object | null) ?? {})) {
    named[collection] = {};
    for (const [name, values] of Object.entries((series as object | null) ?? {})) {
      named[collection][name] = namesOf(values);
    }
  }
  await change(exchange, context, () => named);
}

async function change(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  next: (named: Names) => Names,
): Promise<void> {
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => {
    const kept = (record["TimeSeries"] ?? {}) as JsonObject;
    const NamedValues = next((kept["NamedValues"] ?? {}) as Names);
    const TimeSeries = { Collections: {}, PolicyCheckFrequency: null, NamedValues };
    return { ...record, TimeSeries, ChangedIndex: index };
  });
  exchange.replyJson(200, { RaftCommandIndex: index });
}

/** The key of `object` that equals `name` in any letter case; `name` itself when there is none. */
function keyLike(object: object, name: string): string {
  const lower = name.toLowerCase();
  return Object.keys(object).find((key) => key.toLowerCase() === lower) ?? name;
}

function requiredText(body: JsonObject, key: string): string {
  const value = body[key];
  if (typeof value === "string" && value !== "") return value;
  throw new EngineError("invalid-argument", `Value cannot be null. (Parameter '${key}')`);
}

function namesOf(value: unknown): string[] {
  const names = Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];
  if (names.length > 0) return names;
  throw new EngineError("invalid-argument", "ValueNames can't be empty.");
}

/** @throws EngineError not-supported */
function refusePolicies(): never {
  throw new EngineError(
    "not-supported",
    "Policies of time series (retention and rollups) are not supported by this server.",
  );
}
