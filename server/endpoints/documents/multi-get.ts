/**
 * Runs several reads in one request: each passes routing and authorization as if the caller had sent it separately.
 *
 * Where RavenDB 7.2.7 sends `null` for missing documents, official clients of both versions fail; this server sends an
 * empty result, with the same status.
 */
import { EngineError } from "../../../engine/base/errors.ts";
import { isObject } from "../../../engine/base/json/json-object.ts";
import { JsonText } from "../../../engine/base/json/json-text.ts";
import { pauseIfDue } from "../../../engine/base/scheduling/time-slices.ts";
import { errorStatus } from "../../http/error-status.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type CapturedReply, InternalExchange } from "../../http/internal-exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { GatheringRoom } from "../../http/reply-room.ts";
import { noRoomForReplies } from "../../http/request-error.ts";
import { errorBody } from "../../http/response.ts";
import { type DatabaseContext, databasePrefix, type Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";

const path = `${databasePrefix}multi_get`;
/** Maximum size of all results together, in bytes: they are buffered in memory. */
const replyBytesMax = 32 * 1024 * 1024;

const badRequestType = "Raven.Client.Exceptions.BadRequestException";

/** Number of truncated results after which the remaining requests are not run, because their results would not fit either. */
const cutMax = 16;

export const multiGetRoutes: readonly Route[] = [
  { kind: "database", method: "POST", path, access: "read", copies: "any", handle: postMultiGet },
];

interface Item {
  readonly method: string;
  readonly path: string;
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** POST multi_get, body `{"Requests":[{"Url","Query","Method"?,"Headers"?,"Content"?}]}`: the replies of several requests */
async function postMultiGet(exchange: Exchange, { server }: DatabaseContext): Promise<void> {
  // Checked by type, however the path was spelled: each level of nesting would hold the replies of all levels below it.
  if (exchange instanceof InternalExchange) {
    throw new EngineError("bad-request", "A multi_get cannot contain another one.");
  }
  const requests = (await jsonBody(exchange))["Requests"];
  if (requests === null) throw new EngineError("null-reference", "'Requests' is null.");
  if (requests === undefined) {
    throw new EngineError(
      "invalid-argument",
      "Request should have a property name 'Requests' which is mandatory.",
    );
  }
  if (!Array.isArray(requests)) {
    throw new EngineError("invalid-format", "'Requests' must be an array.");
  }
  const room = new GatheringRoom(2 * replyBytesMax);
  try {
    await answerAll(exchange, server, requests, room);
  } finally {
    room.release();
  }
}

/** @throws RequestError 503 if memory for the results is not available */
async function answerAll(
  exchange: Exchange,
  server: ServerServices,
  requests: readonly unknown[],
  room: GatheringRoom,
): Promise<void> {
  const text = new JsonText(4096).addText('{"Results":[');
  let cutCount = 0;
  for (const [position, request] of requests.entries()) {
    if (position > 0) text.addText(",");
    await pauseIfDue();
    const item = itemOf(request);
    if (item === undefined) {
      text.addText("{}");
      continue;
    }
    const refusal = refusalOf(item);
    if (refusal !== undefined) {
      text.addText(`{"Result":${refusal.error},"StatusCode":${refusal.status},"Headers":{}}`);
      continue;
    }
    if (cutCount > cutMax) {
      addResult(text, item, undefined);
      continue;
    }
    const inner = new InternalExchange(exchange, item, replyBytesMax - text.length);
    await server.dispatch(inner);
    const captured = await inner.captureReply();
    if (captured === undefined) cutCount++;
    addResult(text, item, captured);
    if (!room.holds(text.length)) throw noRoomForReplies();
    if (exchange.isClosed) return;
  }
  exchange.replyJson(200, text.addText("]}").bytes);
}

/** Returns undefined without a URL or query. @throws EngineError null-reference, invalid-format if it is not an object */
function itemOf(request: unknown): Item | undefined {
  if (request === null) throw new EngineError("null-reference", "An item of 'Requests' is null.");
  if (!isObject(request)) {
    throw new EngineError("invalid-format", "An item of 'Requests' is not an object.");
  }
  const { Url, Method, Headers, Content } = request;
  const Query = request["Query"] === null ? "" : request["Query"];
  if (typeof Url !== "string" || typeof Query !== "string") return undefined;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(Headers ?? {})) {
    if (typeof value === "string") headers[name.toLowerCase()] = value;
  }
  const method = typeof Method === "string" && Method !== "" ? Method.toUpperCase() : "GET";
  const content = typeof Content === "string" ? Content : JSON.stringify(Content ?? undefined);
  // Bodies carry queries and long lists of ids, not writes.
  const body = method === "POST" ? { body: Buffer.from(content ?? "") } : {};
  const target = Url + (Query === "" || Query.startsWith("?") ? Query : `?${Query}`);
  return { method, path: Url, target, headers, ...body };
}

/**
 * The error, as JSON, and the status of an item that is not a read; undefined when it may run. A PUT or a PATCH has no
 * body in a multi_get: RavenDB 7.2.7 answers that its JSON ends early.
 */
function refusalOf({ method, target }: Item): { error: string; status: number } | undefined {
  if (method === "GET" || method === "POST" || method === "HEAD") return undefined;
  const isBodyless = method === "PUT" || method === "PATCH";
  const type = isBodyless ? errorStatus["json-truncated"].type : badRequestType;
  const message = `A multi_get contains reads only: ${method} is not executed.`;
  return { error: errorBody(target, type, message), status: isBodyless ? 500 : 400 };
}

function addResult(text: JsonText, item: Item, captured: CapturedReply | undefined): void {
  if (captured === undefined) {
    const error = errorBody(
      item.target,
      "System.Exception",
      "The reply was cut off: it is too large for a multi_get.",
    );
    text.addText(`{"Result":${error},"StatusCode":500,"Headers":{}}`);
    return;
  }
  const { status, headers, body } = captured;
  const isJson = String(headers["content-type"] ?? "").startsWith("application/json");
  text.addText('{"Result":');
  if (body.length > 0 && isJson) text.addBytes(body);
  else text.addText(status === 404 ? emptyResultOf(item.path) : "null");
  const { etag } = headers;
  const shown = etag === undefined ? "" : `"ETag":${JSON.stringify(etag)}`;
  text.addText(`,"StatusCode":${isJson ? itemStatus(status, body) : status},"Headers":{${shown}}}`);
}

/** Types of errors for which RavenDB 7.2.7 replies 400. */
const badRequestTypes: ReadonlySet<unknown> = new Set([
  badRequestType,
  "Raven.Client.Exceptions.Routing.RouteNotFoundException",
]);

/** Returns the status of a reply as in RavenDB 7.2.7's multi_get, where it is part of the JSON. */
function itemStatus(status: number, body: Buffer): number {
  if (status !== 400) return status;
  const { Type } = JSON.parse(body.toString()) as { readonly Type?: unknown };
  return badRequestTypes.has(Type) ? 400 : 500;
}

/** RavenDB 7.2.7 replies null for a missing document, which makes lazy loads of its official client fail. */
function emptyResultOf(itemPath: string): string {
  return itemPath.endsWith("/docs") ? '{"Results":[null],"Includes":{}}' : "null";
}
