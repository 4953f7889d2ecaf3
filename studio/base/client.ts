/**
 * Requests to the server that serves the studio.
 *
 * - Replies with an ETag are cached in memory and revalidated; concurrent GET requests for the same path are sent
 *   once.
 * - An error reply becomes a `ServerError`; a request that does not reach the server becomes an `OfflineError`.
 */

import { signal } from "@preact/signals";
import { sentenceOf } from "./server-message.ts";
import { requestSession, sessionHeaders } from "./session.ts";

/** Error reply of the server. */
export class ServerError extends Error {
  readonly status: number;
  /** Name of the exception, for example `Raven.Client.Exceptions.ConcurrencyException`. */
  readonly type: string;
  readonly hint: string | undefined;
  /** The message verbatim, with the position; `message` is a sentence. */
  readonly detail: string;
  /** The map or reduce that the error is about; undefined for other errors. */
  readonly text: string | undefined;

  constructor(status: number, body: ErrorBody) {
    const detail = body.Message ?? `The server returned status ${status}.`;
    super(sentenceOf(detail));
    this.detail = detail;
    this.status = status;
    this.type = body.Type ?? "";
    this.hint = body.hint;
    this.text = body.ProblematicText;
  }
}

export class OfflineError extends Error {}

export interface ErrorBody {
  readonly Message?: string;
  readonly Type?: string;
  readonly hint?: string;
  readonly ProblematicText?: string;
}

interface Reply<T> {
  readonly body: T;
  readonly etag: string | null;
  readonly status: number;
}

/** Whether the last request reached the server, with its description and duration. */
export const connection = signal<{
  readonly isOnline: boolean;
  readonly last: { readonly what: string; readonly ms: number } | null;
}>({ isOnline: true, last: null });

const cacheBytesMax = 32 * 1024 * 1024;

interface CacheEntry {
  readonly etag: string;
  readonly text: string;
}

/** Cache in order of use, oldest first. */
const cache = new Map<string, CacheEntry>();
let cacheBytes = 0;
const pending = new Map<string, Promise<Reply<unknown>>>();

/** Like `get`, but returns the text of the body. */
export function getText(path: string, signal?: AbortSignal): Promise<Reply<string>> {
  return fetchText("GET", path, signal === undefined ? {} : { signal });
}

/** Returns the body of a GET reply, from the cache if it is unchanged. */
export function get<T>(path: string, signal?: AbortSignal): Promise<Reply<T>> {
  // A request that its caller can abort is not shared.
  if (signal !== undefined) return fetchJson<T>("GET", path, { signal });
  let found = pending.get(path);
  if (found === undefined) {
    found = fetchJson<unknown>("GET", path, {}).finally(() => pending.delete(path));
    pending.set(path, found);
  }
  return found as Promise<Reply<T>>;
}

interface RequestOptions {
  readonly json?: unknown;
  /** Text to send verbatim instead of `json`. */
  readonly text?: string;
  /** Data to send verbatim with its own content type. */
  readonly data?: Blob | FormData;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export async function send<T>(
  method: string,
  path: string,
  sent: RequestOptions = {},
): Promise<Reply<T>> {
  return await fetchJson<T>(method, path, sent);
}

/** Like `send`, but returns the text of the body, for numbers that `JSON.parse` would round. */
export async function sendText(
  method: string,
  path: string,
  sent: RequestOptions = {},
): Promise<Reply<string>> {
  return await fetchText(method, path, sent);
}

/** Returns the body of a reply as a stream. */
export async function openStream(
  method: string,
  path: string,
  sent: RequestOptions = {},
): Promise<ReadableStream<Uint8Array>> {
  const response = await request(method, path, sent, {});
  if (!response.ok) throw new ServerError(response.status, errorBody(await response.text()));
  if (response.body === null) throw new OfflineError("The reply has no body.");
  return response.body;
}

async function fetchJson<T>(method: string, path: string, sent: RequestOptions): Promise<Reply<T>> {
  const { body, etag, status } = await fetchText(method, path, sent);
  return { body: (body === "" ? null : JSON.parse(body)) as T, etag, status };
}

/** Sends a request. @throws OfflineError */
async function request(
  method: string,
  path: string,
  sent: RequestOptions,
  extra: Readonly<Record<string, string>>,
): Promise<Response> {
  const json = sent.json === undefined ? undefined : JSON.stringify(sent.json);
  const body = sent.text ?? json ?? sent.data;
  const session = await sessionHeaders();
  const headers: Record<string, string> = { ...extra, ...sent.headers, ...session };
  // Other origins cannot send this header without a CORS preflight (docs/security.md).
  if (method !== "GET") headers["X-Jackdaw-Studio"] = "1";
  if (typeof body === "string") headers["Content-Type"] ??= "application/json";
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      cache: "no-store",
      ...(body === undefined ? {} : { body }),
      ...(sent.signal === undefined ? {} : { signal: sent.signal }),
    });
  } catch (error) {
    throw offline(error, sent);
  }
  if (response.status !== 401) return response;
  const { Type } = errorBody(await response.clone().text());
  const isSignedIn = Type === "Jackdaw.NotSignedIn" && (await requestSession(session));
  return isSignedIn ? await request(method, path, sent, extra) : response;
}

/** Returns the error to throw when the server is unreachable. */
function offline(error: unknown, { signal }: RequestOptions): unknown {
  if (signal?.aborted) return error;
  connection.value = { ...connection.peek(), isOnline: false };
  return new OfflineError("The server is unreachable.", { cause: error });
}

async function fetchText(
  method: string,
  path: string,
  sent: RequestOptions,
): Promise<Reply<string>> {
  const kept = method === "GET" ? cache.get(path) : undefined;
  const startedMs = performance.now();
  const response = await request(
    method,
    path,
    sent,
    kept === undefined ? {} : { "If-None-Match": kept.etag },
  );
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    throw offline(error, sent);
  }
  const what = `${method} ${path.split("?")[0]?.split("/").at(-1) ?? ""}`;
  // `jackdaw studio` replies with 502 if the server is unreachable.
  const isOnline = response.status !== 502;
  connection.value = { isOnline, last: { what, ms: performance.now() - startedMs } };
  if (response.status === 304 && kept !== undefined) {
    cacheReply(path, kept);
    return { body: kept.text, etag: kept.etag, status: 200 };
  }
  if (!response.ok) {
    throw new ServerError(response.status, errorBody(text));
  }
  const etag = response.headers.get("etag");
  if (method === "GET" && etag !== null) cacheReply(path, { etag, text });
  return { body: text, etag, status: response.status };
}

function errorBody(text: string): ErrorBody {
  try {
    return JSON.parse(text) as ErrorBody;
  } catch {
    return text === "" ? {} : { Message: text };
  }
}

function cacheReply(path: string, kept: CacheEntry): void {
  cacheBytes -= 2 * (cache.get(path)?.text.length ?? 0);
  cache.delete(path);
  cache.set(path, kept);
  cacheBytes += 2 * kept.text.length;
  for (const [oldest, { text }] of cache) {
    if (cacheBytes <= cacheBytesMax) return;
    cacheBytes -= 2 * text.length;
    cache.delete(oldest);
  }
}
