/**
 * Parses query requests, from a JSON body or from the address. The parameters remain JSON text, because it represents a
 * 64-bit integer exactly, unlike a JavaScript number.
 */
import { EngineError } from "../../engine/base/errors.ts";
import { quoteString } from "../../engine/base/json/escape.ts";
import {
  decodeString,
  findMember,
  skipString,
  skipValue,
  ValueSpan,
  valueKind,
} from "../../engine/base/json/field-access.ts";
import { andThen } from "../../engine/base/scheduling/steps.ts";
import { workLimits } from "../../engine/base/scheduling/work-budget.ts";
import {
  type ProjectionBehavior,
  projectionBehaviors,
  type QueryOptions,
  readMinified,
} from "../../engine/engine.ts";
import type { Exchange } from "../http/exchange.ts";
import { parseTimeSpanMs } from "../http/request.ts";

/** A query's text and options. */
export interface QueryRequest {
  readonly text: string;
  readonly options: QueryOptions;
}

const queryKey = quoteString("Query");
const quote = 0x22;
const objectOpen = 0x7b;
/** First byte of `null`; no other literal of JSON has it. */
const firstOfNull = 0x6e;
const int32Max = 2_147_483_647;

/** Parses `{"Query","QueryParameters",…}`. @throws EngineError json-…, invalid-operation without a query */
export function queryOfBody(exchange: Exchange): QueryRequest | Promise<QueryRequest> {
  return andThen(queryBody(exchange), parseQueryBody);
}

/** Parses the body of a query. @throws EngineError as `queryOfBody` */
export function parseQueryBody(body: Buffer): QueryRequest | Promise<QueryRequest> {
  return andThen(readMinified(body), queryOfText);
}

/** Returns the body, which is scanned several times and so must not be large. @throws EngineError work-limit */
export function queryBody(exchange: Exchange): Buffer | Promise<Buffer> {
  refuseLarge(Number(exchange.header("content-length") ?? 0));
  return andThen(exchange.bufferedBody(), smallBody);
}

function smallBody(body: Buffer): Buffer {
  refuseLarge(body.length);
  return body;
}

function refuseLarge(bytes: number): void {
  const { requestBytesMax } = workLimits;
  if (!(bytes > requestBytesMax)) return;
  throw new EngineError(
    "work-limit",
    `The request of a query exceeds the limit of ${Math.floor(requestBytesMax / 1024 / 1024)} MB. Request less ` +
      "per query, or raise the setting Query.MaxRequestSizeInMb.",
  );
}

/** Parses `{"Query":{"Query","QueryParameters",…}}`. @throws EngineError bad-request, and as `queryOfBody` */
export function wrappedQueryOfBody(exchange: Exchange): QueryRequest | Promise<QueryRequest> {
  return andThen(andThen(queryBody(exchange), readMinified), queryOfWrapped);
}

function queryOfWrapped(text: Buffer): QueryRequest {
  const inner = new ValueSpan();
  if (!findMember(text, 0, queryKey, inner) || valueKind(text, inner.from) === "null") {
    throw new EngineError("bad-request", "Missing 'Query' property.");
  }
  if (text[inner.from] !== objectOpen) {
    throw new EngineError("invalid-format", "The 'Query' property is not an object.");
  }
  return queryOfObject(text, inner.from);
}

/** Parses the query of a GET request. @throws EngineError invalid-argument */
export function queryOfAddress(exchange: Exchange): QueryRequest {
  const { query } = exchange;
  const text = query.get("query");
  if (text === undefined || text.trim() === "") throw noQuery();
  const parametersText = query.get("parameters") || null;
  const pageSize = query.int("pageSize", undefined);
  return {
    text,
    options: {
      parametersText,
      start: query.int("start", undefined),
      pageSize: pageSize ?? int32Max,
      waitForNonStale: query.bool("waitForNonStaleResults", false),
      timeoutMs: query.long("waitForNonStaleResultsTimeoutInMs", undefined),
      skipDuplicateChecking: query.bool("skipDuplicateChecking", false),
    },
  };
}

function queryOfText(text: Buffer): QueryRequest {
  return queryOfObject(text, 0);
}

/** Parses the query in the minified JSON object at `at`; of a repeated name, the first member counts. */
function queryOfObject(text: Buffer, at: number): QueryRequest {
  memberStarts.fill(0);
  for (let i = at + 1; text[i] === quote; ) {
    const keyEnd = skipString(text, i);
    const member = memberNames.indexOf(decodeString(text, i, keyEnd));
    if (member >= 0 && memberStarts[member] === 0) memberStarts[member] = keyEnd + 1;
    i = skipValue(text, keyEnd + 1) + 1;
  }
  const query = memberIn(text, 0);
  if (typeof query !== "string" || query.trim() === "") throw noQuery();
  return {
    text: query,
    options: {
      parametersText: parametersIn(text, memberStarts[1] as number),
      start: integer(memberIn(text, 2), "Start"),
      pageSize: integer(memberIn(text, 3), "PageSize"),
      waitForNonStale: boolean(memberIn(text, 4), "WaitForNonStaleResults"),
      timeoutMs: milliseconds(memberIn(text, 5)),
      skipDuplicateChecking: boolean(memberIn(text, 6), "SkipDuplicateChecking"),
      projectionBehavior: behavior(memberIn(text, 7)),
    },
  };
}

/** The members that are parsed, and the positions of their values in the current request, or 0. */
const memberNames = [
  "Query",
  "QueryParameters",
  "Start",
  "PageSize",
  "WaitForNonStaleResults",
  "WaitForNonStaleResultsTimeout",
  "SkipDuplicateChecking",
  "ProjectionBehavior",
];
const memberStarts = new Uint32Array(memberNames.length);

/** Returns the value of a member by its position in `memberNames`. */
function memberIn(text: Buffer, member: number): unknown {
  const from = memberStarts[member] as number; // member < length
  if (from === 0) return undefined;
  const to = skipValue(text, from);
  if (text[from] === quote) return decodeString(text, from, to);
  return JSON.parse(text.utf8Slice(from, to)) as unknown;
}

/** Returns the text of the parameters, or null. @throws EngineError invalid-format */
function parametersIn(text: Buffer, from: number): string | null {
  if (from === 0 || text[from] === firstOfNull) return null;
  if (text[from] === objectOpen) return text.utf8Slice(from, skipValue(text, from));
  throw new EngineError("invalid-format", "'QueryParameters' is not an object.");
}

function noQuery(): EngineError {
  return new EngineError("invalid-operation", "Index query does not contain 'Query' field.");
}

function integer(value: unknown, name: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  // RavenDB 7.2.7 converts other numbers, texts and booleans.
  const number = typeof value === "object" || value === "" ? Number.NaN : Math.trunc(Number(value));
  if (Number.isFinite(number)) return number;
  throw new EngineError("invalid-format", `'${name}' is not a whole number.`);
}

/** @throws EngineError invalid-format */
function boolean(value: unknown, name: string): boolean {
  if (typeof value === "boolean" || typeof value === "number") return Boolean(value);
  const word = String(value ?? false).toLowerCase();
  if (word === "true" || word === "false") return word === "true";
  throw new EngineError("invalid-format", `Could not convert '${name}' to System.Boolean`);
}

/** @throws EngineError invalid-format */
function behavior(value: unknown): ProjectionBehavior | undefined {
  if (value === undefined || value === null) return undefined;
  const found = projectionBehaviors.find((known) => known === value);
  if (found !== undefined) return found;
  throw new EngineError("invalid-format", `'${String(value)}' is not a ProjectionBehavior.`);
}

/** Clients send milliseconds or the text of a time span. */
function milliseconds(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return undefined;
  const parsed = parseTimeSpanMs(value);
  if (parsed !== undefined && !Number.isNaN(parsed)) return parsed;
  throw new EngineError("invalid-format", `Could not convert '${value}' to System.TimeSpan`);
}
