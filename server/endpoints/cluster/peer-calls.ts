/**
 * Requests to other nodes of the cluster: forwarded unchanged, or for a part of a reply.
 *
 * Invariants:
 * - The caller's right to the route was checked on this node. A forwarded request names its caller, and is never forwarded
 *   again.
 */

import { EngineError } from "../../../engine/base/errors.ts";
import { collectBytes } from "../../../engine/base/memory/collect-bytes.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { JsonObject } from "../../http/json-body.ts";
import { addressHeader, callerHeader, forwardedHeader } from "../../routing/forwarded-requests.ts";
import type { ServerServices } from "../../routing/services.ts";

/** Maximum size of a reply that is buffered here, in bytes. */
const replyBytesMax = 64 * 1024 * 1024;
const keptHeaders = ["etag", "raven-client-version", "raft-request-id"] as const;

interface PeerResponse {
  readonly status: number;
  /** JSON, or empty. */
  readonly body: Buffer;
}

/** Returns whether another node has forwarded the request, so that this node must answer it. */
export function isForwarded(exchange: Exchange): boolean {
  return exchange.origin !== undefined;
}

/** Sends a request to another node on behalf of the caller of `exchange`. @throws EngineError node-unreachable */
export async function callPeer(
  exchange: Exchange,
  server: ServerServices,
  tag: string,
  request: { readonly method: string; readonly target: string; readonly body?: JsonObject },
): Promise<PeerResponse> {
  const { cluster, peers } = server;
  if (cluster === undefined || peers === undefined) throw new Error("this server is a single node");
  const { identity } = exchange;
  const headers: Record<string, string> = {
    [forwardedHeader]: cluster.tag,
    [addressHeader]: exchange.remoteAddress,
    // A node calls on its own behalf.
    ...(identity.isNode ? {} : { [callerHeader]: identity.thumbprint }),
  };
  for (const name of keptHeaders) {
    const value = exchange.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
  if (body !== undefined) headers["content-type"] = "application/json";
  const { method, target } = request;
  const reply = await peers.send(tag, {
    method,
    target,
    headers,
    signal: exchange.signal,
    ...(body === undefined ? {} : { body }),
  });
  const tooLarge = () =>
    new EngineError("too-large", `The reply of node ${tag} exceeds ${replyBytesMax} bytes.`);
  return { status: reply.status, body: await collectBytes(reply.body, replyBytesMax, tooLarge) };
}

/** Forwards the request to another node; `body` is its body if that was read already. */
export async function forwardToPeer(
  exchange: Exchange,
  server: ServerServices,
  tag: string,
  body?: JsonObject,
): Promise<void> {
  const { method, target } = exchange;
  const answer = await callPeer(exchange, server, tag, {
    method,
    target,
    ...(body === undefined ? {} : { body }),
  });
  replyWith(exchange, answer);
}

export function replyWith(exchange: Exchange, { status, body }: PeerResponse): void {
  if (body.length === 0) exchange.reply(status);
  else exchange.replyJson(status, body);
}
