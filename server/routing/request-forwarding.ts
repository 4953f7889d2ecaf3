/**
 * Request forwarding in a cluster: a request runs on the node that has the required data, whichever node receives it. The
 * receiving node streams the request there, and streams the reply back.
 *
 * Invariants:
 * - A request is forwarded once: the target runs it or refuses it (`misplacedHeader`), and the forwarding node then selects
 *   a target again.
 * - A request that a target may have received is not resent, unless it only reads.
 * - The body is not read before the target is known.
 * - Rights are checked on the receiving node and again on the target.
 * - A copy answers a read if it shows everything that clients of the same node were shown before. If it does not after a
 *   short wait, the leader answers.
 */

import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { EngineError } from "../../engine/base/errors.ts";
import { collectBytes } from "../../engine/base/memory/collect-bytes.ts";
import type { ClusterView, ReplicaState } from "../cluster/cluster-view.ts";
import type { PeerLink, PeerReply, PeerSocket } from "../cluster/peer-link.ts";
import { type Exchange, isBodyless } from "../http/exchange.ts";
import { RequestError } from "../http/request-error.ts";
import { hopByHopHeaders, noContentType, type ReplyHeaders } from "../http/response.ts";
import { hasPermission } from "../security/access.ts";
import { addressHeader, callerHeader, forwardedHeader, leastHeader } from "./forwarded-requests.ts";
import { type Need, needOf, type Place, placeOf } from "./placement.ts";
import type { Route } from "./route.ts";

/** Reply header: the node has done nothing, because it is not the one that the request needs. */
const misplacedHeader = "x-jackdaw-misplaced";
/** Reply header: position of the copy that answered. */
export const positionHeader = "x-jackdaw-place";

/** Maximum time that a request waits for a leader of its database, in milliseconds. */
const leaderWaitMs = 5_000;
/** Interval of attempts without events of the cluster, in milliseconds. */
const retryMs = 200;
/** Maximum size of a body that is buffered for resending, in bytes. */
const collectedBytesMax = 64 * 1024;
/** Time without a heartbeat after which a request to a node is aborted, in milliseconds. */
const silenceMs = 10_000;
const lookMs = 1_000;

/** Headers of one connection, or set again on the next. Those for browsers and nodes were evaluated here. */
const ownHeaders: ReadonlySet<string> = new Set([
  ...hopByHopHeaders,
  "http2-settings",
  "host",
  "expect",
  "origin",
  "content-length",
]);
const ownReplyHeaders: ReadonlySet<string> = new Set([
  ...hopByHopHeaders,
  "date",
  "raven-server-version",
  "service-server-version",
  "request-time",
]);

/** The state of the database, and the target node. */
interface Found {
  readonly state: ReplicaState;
  readonly place: Place;
}

/** A request over all its attempts. */
interface Forwarding {
  readonly exchange: Exchange;
  need: Need;
  readonly cluster: ClusterView;
  readonly deadlineMs: number;
  /** Tags of nodes where an attempt failed without any effect. */
  readonly failed: Set<string>;
  /** Whether an attempt on this node failed without any effect. */
  hasFailedHere: boolean;
}

type Run = () => Promise<void> | void;

export class RequestForwarder {
  readonly #peers: () => PeerLink | undefined;
  readonly #now: () => number;
  /** Callbacks to call after the next change of the cluster. */
  readonly #waiting = new Set<() => void>();
  readonly #listened = new WeakSet<ClusterView>();

  constructor(peers: () => PeerLink | undefined, now = () => performance.now()) {
    this.#peers = peers;
    this.#now = now;
  }

  /**
   * Runs a request on the right node; `here` runs it on this node.
   * @param database the database in its path
   * @throws EngineError not-leader, node-unreachable, outcome-unknown; RequestError 503 if another node forwarded it here
   */
  run(
    cluster: ClusterView,
    exchange: Exchange,
    route: Route,
    database: string | undefined,
    here: (isConfirmed: boolean) => Promise<void> | void,
  ): Promise<void> | void {
    const need = needOf(exchange, route, database);
    // The handler refuses callers who may not see the database.
    if (need === undefined || !hasPermission(exchange.identity, need.database, 1))
      return here(false);
    const state = cluster.find(need.database);
    if (state === undefined) return here(false);
    const run = () => here(need.copies === "confirmed");
    const place = placeOf(need, state, cluster);
    if (place === "here" && state.role === "leader" && need.copies !== "confirmed") return run();
    const deadlineMs = this.#now() + leaderWaitMs;
    const failed = new Set<string>();
    const forwarding = { exchange, need, cluster, deadlineMs, failed, hasFailedHere: false };
    return this.#runWithRetries(forwarding, { place, state }, run);
  }

  /**
   * Opens a web socket on the right node. @returns undefined if this is the right node; "refused" if a refusal was relayed
   * @throws as `run`
   */
  async connect(
    cluster: ClusterView,
    exchange: Exchange,
    route: Route,
    database: string | undefined,
  ): Promise<PeerSocket | "refused" | undefined> {
    const need = needOf(exchange, route, database);
    const state = need === undefined ? undefined : cluster.find(need.database);
    if (need === undefined || state === undefined) return undefined;
    const place = placeOf(need, state, cluster);
    if (place === "here") return undefined;
    const peers = this.#peers();
    if (exchange.origin !== undefined) throw misplaced(state);
    if (place === "nowhere" || peers === undefined) throw noLeader(state);
    const { tag } = place;
    const found = await peers.upgrade(tag, {
      method: "GET",
      target: exchange.target,
      headers: {
        // HTTP/2 has no key.
        "sec-websocket-key": randomBytes(16).toString("base64"),
        "sec-websocket-version": "13",
        ...headersFor(exchange, cluster.tag),
        upgrade: "websocket",
      },
      signal: exchange.signal,
    });
    exchange.passedTo = tag;
    if ("socket" in found) return found;
    await sendBack(exchange, found);
    return "refused";
  }

  async #runWithRetries(forwarding: Forwarding, first: Found, here: Run): Promise<void> {
    const { exchange, cluster, deadlineMs, failed } = forwarding;
    let found = first;
    let error: unknown;
    for (;;) {
      const { state } = found;
      let { place } = found;
      if (
        place === "here" &&
        !showsEnough(forwarding, state) &&
        !(await soonShows(forwarding, state))
      ) {
        const { leaderTag } = state;
        const isElsewhere = leaderTag !== null && leaderTag !== cluster.tag;
        place = isElsewhere ? { tag: leaderTag } : "nowhere";
      }
      if (place === "here") {
        if (await runHere(forwarding, here)) return;
        found = this.#place(forwarding);
        continue;
      }
      if (exchange.origin !== undefined) throw misplaced(state);
      if (place !== "nowhere") {
        const outcome = await this.#try(place.tag, forwarding, state);
        if (outcome.isDone) return;
        failed.add(place.tag);
        error = outcome.error;
      }
      if (exchange.aborted) return;
      if (this.#now() >= deadlineMs) throw error ?? noLeader(state);
      await this.#whenChanged(cluster, Math.min(retryMs, deadlineMs - this.#now()));
      found = this.#place(forwarding);
    }
  }

  /** @throws EngineError database-missing if it was deleted meanwhile */
  #place({ need, cluster, failed }: Forwarding): Found {
    const state = cluster.find(need.database);
    if (state === undefined) {
      throw new EngineError("database-missing", `Database '${need.database}' does not exist.`);
    }
    const place = placeOf(need, state, cluster);
    const isRead = need.copies === "any" || need.copies === "here";
    if (!isRead || typeof place === "string" || !failed.has(place.tag)) return { state, place };
    // Other members can serve the read as well.
    const other = state.registered.members.find((tag) => tag !== cluster.tag && !failed.has(tag));
    if (other !== undefined) return { state, place: { tag: other } };
    failed.clear();
    return { state, place };
  }

  /** Waits for the next change of the cluster, at most `ms`. */
  #whenChanged(cluster: ClusterView, ms: number): Promise<void> {
    if (!this.#listened.has(cluster)) {
      this.#listened.add(cluster);
      cluster.onChange(() => {
        for (const wake of [...this.#waiting]) wake();
      });
    }
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, Math.max(1, ms));
      this.#waiting.add(wake);
    });
  }

  /** @returns isDone false if no node has done anything, so that the request can be resent @throws otherwise */
  async #try(
    tag: string,
    forwarding: Forwarding,
    state: ReplicaState,
  ): Promise<{ readonly isDone: true } | { readonly isDone: false; readonly error: unknown }> {
    const { exchange, cluster, need } = forwarding;
    const peers = this.#peers();
    if (peers === undefined) throw noLeader(state);
    const body = await bodyFor(exchange);
    const given = new AbortController();
    const watch = setInterval(() => {
      if (isGone(tag, cluster)) given.abort(new Error("no heartbeats"));
    }, lookMs);
    const onClosed = () => given.abort();
    exchange.signal.addEventListener("abort", onClosed, { once: true });
    const isRead = exchange.method === "GET" || exchange.method === "HEAD";
    try {
      const reply = await peers.send(tag, {
        method: exchange.method,
        target: exchange.target,
        headers: { ...headersFor(exchange, cluster.tag), ...leastOf(forwarding, state) },
        ...(body === undefined ? {} : { body: body.content }),
        signal: given.signal,
        headMs: Number.POSITIVE_INFINITY,
      });
      if (reply.headers[misplacedHeader] !== undefined) {
        reply.body.destroy();
        if (body?.isTaken === true) throw noLeader(state);
        return { isDone: false, error: noLeader(state) };
      }
      exchange.passedTo = tag;
      const shown = reply.headers[positionHeader];
      if (typeof shown === "string") cluster.answered(shown);
      await sendBack(exchange, reply);
      return { isDone: true };
    } catch (error) {
      if (exchange.aborted) return { isDone: true };
      if (exchange.isReplied) throw unreachableError(tag, error);
      if (isNotLeading(error)) throw error;
      // The client caused the error, for example by sending too slowly.
      if (body?.failure instanceof RequestError) throw body.failure;
      const wasSent = (error as EngineError).details?.["wasSent"] !== false;
      if ((wasSent && !isRead) || body?.isTaken === true)
        throw uncertain(tag, need, wasSent, error);
      return { isDone: false, error: unreachableError(tag, error) };
    } finally {
      clearInterval(watch);
      exchange.signal.removeEventListener("abort", onClosed);
    }
  }
}

/** Returns whether the local copy is at the required position. Requests for this node in particular require none. */
function showsEnough(forwarding: Forwarding, state: ReplicaState): boolean {
  if (forwarding.need.copies !== "any" || state.role === "leader") return true;
  return state.visible >= leastHere(forwarding, state);
}

/** Waits briefly until the local copy is at the required position. */
function soonShows(forwarding: Forwarding, state: ReplicaState): Promise<boolean> {
  const { need, cluster } = forwarding;
  const least = leastHere(forwarding, state);
  if (!Number.isFinite(least)) return Promise.resolve(false);
  return cluster.whenVisible(need.database, least, retryMs);
}

/** Returns the position that the receiving node requires. */
function leastHere({ exchange }: Forwarding, { mustShow }: ReplicaState): number {
  return exchange.origin === undefined ? mustShow : Number(exchange.header(leastHeader) ?? 0);
}

/** Header with the position that the target must show unless it leads. While it is not known, "Infinity": only the leader answers. */
function leastOf({ need }: Forwarding, { mustShow }: ReplicaState): Record<string, string> {
  return need.copies === "any" && mustShow > 0 ? { [leastHeader]: String(mustShow) } : {};
}

/** @returns false if nothing was done and the leader can run it @throws otherwise */
async function runHere(forwarding: Forwarding, here: Run): Promise<boolean> {
  const { exchange, need } = forwarding;
  exchange.isRepeatable = true;
  try {
    await here();
    return true;
  } catch (error) {
    // A copy cannot do everything, such as creating an index for a query, and the leader may have changed.
    if (!isNotLeading(error) || !canRepeat(exchange) || forwarding.hasFailedHere) throw error;
  }
  forwarding.hasFailedHere = true;
  if (need.copies !== "confirmed") forwarding.need = { ...need, copies: "leader" };
  return false;
}

/** The body of a request to another node. */
interface ForwardedBody {
  readonly content: Buffer | Readable;
  /** Whether any of it was read, so that it cannot be resent. */
  readonly isTaken: boolean;
  /** Error that ended the reading early. */
  readonly failure: unknown;
}

/** Returns undefined if the request has no body. @throws RequestError as `Exchange.body` */
async function bodyFor(exchange: Exchange): Promise<ForwardedBody | undefined> {
  if (!exchange.hasBody) return undefined;
  const collected = exchange.collectedBody;
  if (collected !== undefined) return whole(collected);
  if (Number(exchange.header("content-length") ?? Number.NaN) <= collectedBytesMax) {
    return whole(await exchange.bodyAsSent());
  }
  let isTaken = false;
  let failure: unknown;
  async function* chunks(): AsyncGenerator<Buffer> {
    isTaken = true;
    try {
      yield* exchange.chunksAsSent();
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  return {
    content: Readable.from(chunks(), { objectMode: false }),
    get isTaken() {
      return isTaken;
    },
    get failure() {
      return failure;
    },
  };
}

function whole(content: Buffer): ForwardedBody {
  return { content, isTaken: false, failure: undefined };
}

function headersFor(exchange: Exchange, ownTag: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of exchange.headers()) {
    if (ownHeaders.has(name) || name.startsWith("x-jackdaw-") || name.startsWith("sec-fetch-")) {
      continue;
    }
    headers[name] = value;
  }
  if (exchange.isBodyDecoded) delete headers["content-encoding"];
  const length = exchange.header("content-length");
  if (length !== undefined && !exchange.isBodyDecoded) headers["content-length"] = length;
  headers[forwardedHeader] = ownTag;
  headers[addressHeader] = exchange.remoteAddress;
  const { identity } = exchange;
  // A node's certificate has the same rights as this node's.
  if (!identity.isNode) headers[callerHeader] = identity.thumbprint;
  return headers;
}

/** @throws if the other node disconnects before its reply is complete, and nothing was relayed yet */
async function sendBack(exchange: Exchange, { status, headers, body }: PeerReply): Promise<void> {
  const out: Record<string, string | number | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    const isOwn = ownReplyHeaders.has(name) || name.startsWith("x-jackdaw-");
    if (value !== undefined && !isOwn) out[name] = value;
  }
  const length = Number(headers["content-length"] ?? Number.NaN);
  if (exchange.method === "HEAD" || isBodyless(status) || length === 0) {
    body.resume();
    exchange.reply(status, typed(out));
    return;
  }
  if (length <= collectedBytesMax) {
    exchange.reply(status, typed(out), await collectBytes(body));
    return;
  }
  if (exchange.aborted) {
    body.destroy();
    return;
  }
  // A stream with its own content type keeps it.
  out["content-type"] ??= "application/octet-stream";
  const stream = exchange.stream(status, out);
  for await (const chunk of body) {
    await stream.write(chunk as Buffer);
    if (stream.isClosed) break;
  }
  await stream.end();
}

function typed(headers: ReplyHeaders): ReplyHeaders {
  return headers["content-type"] === undefined
    ? { ...headers, "content-type": noContentType }
    : headers;
}

/** Returns whether the request and its body can be resent. */
function canRepeat(exchange: Exchange): boolean {
  return !exchange.isReplied && !exchange.aborted && exchange.collectedBody !== undefined;
}

function isNotLeading(error: unknown): boolean {
  return error instanceof EngineError && error.code === "not-leader";
}

/** Returns whether the node was removed, or has stopped sending heartbeats. */
function isGone(tag: string, cluster: ClusterView): boolean {
  if (!cluster.members().some((member) => member.tag === tag)) return true;
  return (cluster.lastHeartbeat(tag)?.ageMs ?? 0) > silenceMs;
}

const noLeaderType = "Raven.Client.Exceptions.Cluster.NoLeaderException";

/** Tells the forwarding node to select a target again. */
function misplaced(state: ReplicaState | undefined): RequestError {
  const headers = { [misplacedHeader]: "1", "retry-after": "1" };
  return new RequestError(503, noLeaderType, messageOf(state), { headers });
}

function noLeader(state: ReplicaState): EngineError {
  return new EngineError("not-leader", messageOf(state), { details: { retryAfterSeconds: 1 } });
}

function messageOf(state: ReplicaState | undefined): string {
  const name = state?.registered.name ?? "";
  const leader = state?.leaderTag ?? null;
  return leader === null
    ? `No node leads database '${name}' at the moment, and nothing was done. A leader is elected within seconds if more than half of the nodes run.`
    : `Node ${leader} leads database '${name}', and did not accept the request. Nothing was done.`;
}

function unreachableError(tag: string, cause: unknown): EngineError {
  if (cause instanceof EngineError && cause.code === "node-unreachable") return cause;
  return new EngineError("node-unreachable", `Node ${tag} did not respond.`, {
    cause,
    details: { retryAfterSeconds: 1 },
  });
}

function uncertain(tag: string, { database }: Need, wasSent: boolean, cause: unknown): EngineError {
  if (!wasSent) return unreachableError(tag, cause);
  return new EngineError(
    "outcome-unknown",
    `Node ${tag} disconnected before it replied: the request for database '${database}' may or may not have been executed. ` +
      "Read before you write again.",
    { cause, details: { retryAfterSeconds: 1 } },
  );
}
