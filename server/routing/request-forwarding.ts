/**
 * Requests of a cluster: each runs on the node that has what it needs, whichever node it has come to. What another node
 * must do is sent there, its reply is sent back, both as they come.
 *
 * Invariants:
 * - A request is passed on once: the node that it comes to runs it or refuses it (`misplacedHeader`), and the one that it
 *   came from looks up its place again.
 * - A request that another node may have taken is not sent again, unless it only reads.
 * - Nothing of the body is read before it is known where it goes.
 * - Rights are looked up where a request comes to, and again where it runs.
 * - A copy answers a read when it shows all that clients of the same node were shown before; it is waited for a little,
 *   then the leader answers.
 */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { EngineError } from "../../engine/base/errors.ts";
import type { ClusterView, ReplicaState } from "../cluster/cluster-view.ts";
import type { PeerLink, PeerReply, PeerSocket } from "../cluster/peer-link.ts";
import { type Exchange, isBodyless } from "../http/exchange.ts";
import { RequestError } from "../http/request-error.ts";
import { noContentType, type ReplyHeaders } from "../http/response.ts";
import { hasPermission } from "../security/access.ts";
import { addressHeader, callerHeader, forwardedHeader, leastHeader } from "./forwarded-requests.ts";
import { type Need, needOf, type Place, placeOf } from "./placement.ts";
import type { Route } from "./route.ts";

/** In a reply: the node has done nothing, since it is not the one that the request needs. */
export const misplacedHeader = "x-jackdaw-misplaced";
/** In a reply: how much the copy shows that has answered. */
export const positionHeader = "x-jackdaw-place";

/** Milliseconds that a request waits until somebody leads its database. */
const leaderWaitMs = 5_000;
/** Milliseconds between two tries, when nothing is heard meanwhile. */
const retryMs = 200;
/** Bytes of a body that is collected, so that it can be sent again. */
const collectedBytesMax = 64 * 1024;
/** Milliseconds without a heartbeat after which a request to a node is given up. */
const silenceMs = 10_000;
const lookMs = 1_000;

/** Of one connection, or told anew on the next. Those of browsers and of other nodes were looked at here. */
const ownHeaders: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "host",
  "expect",
  "origin",
  "content-length",
]);
const ownReplyHeaders: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "trailer",
  "date",
  "raven-server-version",
  "service-server-version",
  "request-time",
]);

/** The state of the database and the node for it. */
interface Found {
  readonly state: ReplicaState;
  readonly place: Place;
}

/** A request over all its tries. */
interface ForwardedAttempts {
  readonly exchange: Exchange;
  need: Need;
  readonly cluster: ClusterView;
  readonly deadlineMs: number;
  /** Where it was sent to without being done. */
  readonly failed: Set<string>;
  /** Was it tried here, without being done? */
  hasFailedHere: boolean;
}

type Run = () => Promise<void> | void;

export class RequestForwarder {
  readonly #peers: () => PeerLink | undefined;
  readonly #now: () => number;
  /** Woken after each change of the cluster. */
  readonly #waiting = new Set<() => void>();
  readonly #listened = new WeakSet<ClusterView>();

  constructor(peers: () => PeerLink | undefined, now = () => performance.now()) {
    this.#peers = peers;
    this.#now = now;
  }

  /**
   * Runs a request where it belongs; `here` runs it on this node.
   * @param database the one in its path
   * @throws EngineError not-leader, node-unreachable, outcome-unknown; RequestError 503 of a request that was passed on
   * already
   */
  run(
    cluster: ClusterView,
    exchange: Exchange,
    route: Route,
    database: string | undefined,
    here: (isConfirmed: boolean) => Promise<void> | void,
  ): Promise<void> | void {
    const need = needOf(exchange, route, database);
    // Who may not see the database is refused by the handler.
    if (need === undefined || !hasPermission(exchange.identity, need.database, 1))
      return here(false);
    const state = cluster.find(need.database);
    if (state === undefined) return here(false);
    const run = () => here(need.copies === "confirmed");
    const place = placeOf(need, state, cluster);
    if (place === "here" && state.role === "leader" && need.copies !== "confirmed") return run();
    const deadlineMs = this.#now() + leaderWaitMs;
    const failed = new Set<string>();
    const passing = { exchange, need, cluster, deadlineMs, failed, hasFailedHere: false };
    return this.#runFrom(passing, { place, state }, run);
  }

  /**
   * Asks the node where a web socket belongs for it. @returns undefined: it belongs here; or the refusal was sent back
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
        // Over HTTP/2 there is no key.
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

  async #runFrom(passing: ForwardedAttempts, first: Found, here: Run): Promise<void> {
    const { exchange, cluster, deadlineMs, failed } = passing;
    let found = first;
    let error: unknown;
    for (;;) {
      const { state } = found;
      let { place } = found;
      if (place === "here" && !showsEnough(passing, state) && !(await soonShows(passing, state))) {
        const { leaderTag } = state;
        const isElsewhere = leaderTag !== null && leaderTag !== cluster.tag;
        place = isElsewhere ? { tag: leaderTag } : "nowhere";
      }
      if (place === "here") {
        if (await runHere(passing, here)) return;
        found = this.#place(passing);
        continue;
      }
      if (exchange.origin !== undefined) throw misplaced(state);
      if (place !== "nowhere") {
        const outcome = await this.#try(place.tag, passing, state);
        if (outcome.isDone) return;
        failed.add(place.tag);
        error = outcome.error;
      }
      if (exchange.aborted) return;
      if (this.#now() >= deadlineMs) throw error ?? noLeader(state);
      await this.#changed(cluster, Math.min(retryMs, deadlineMs - this.#now()));
      found = this.#place(passing);
    }
  }

  /** @throws EngineError database-missing: it was deleted meanwhile */
  #place({ need, cluster, failed }: ForwardedAttempts): Found {
    const state = cluster.find(need.database);
    if (state === undefined) {
      throw new EngineError("database-missing", `Database '${need.database}' does not exist.`);
    }
    const place = placeOf(need, state, cluster);
    const isRead = need.copies === "any" || need.copies === "here";
    if (!isRead || typeof place === "string" || !failed.has(place.tag)) return { state, place };
    // The others can do it as well.
    const other = state.registered.members.find((tag) => tag !== cluster.tag && !failed.has(tag));
    if (other !== undefined) return { state, place: { tag: other } };
    failed.clear();
    return { state, place };
  }

  /** Waits for the next change of the cluster, `ms` at most. */
  #changed(cluster: ClusterView, ms: number): Promise<void> {
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

  /** @returns not done: nobody has done anything, and it can be sent again. @throws else */
  async #try(
    tag: string,
    passing: ForwardedAttempts,
    state: ReplicaState,
  ): Promise<{ readonly isDone: true } | { readonly isDone: false; readonly error: unknown }> {
    const { exchange, cluster, need } = passing;
    const peers = this.#peers();
    if (peers === undefined) throw noLeader(state);
    const body = await bodyFor(exchange);
    const given = new AbortController();
    const watch = setInterval(() => {
      if (isGone(tag, cluster)) given.abort(new Error("it is silent"));
    }, lookMs);
    const onClosed = () => given.abort();
    exchange.signal.addEventListener("abort", onClosed, { once: true });
    const isRead = exchange.method === "GET" || exchange.method === "HEAD";
    try {
      const reply = await peers.send(tag, {
        method: exchange.method,
        target: exchange.target,
        headers: { ...headersFor(exchange, cluster.tag), ...leastOf(passing, state) },
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
      // What the client sends is at fault, or how slowly.
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

/** Does the copy here show what it must? Of what is asked of this node, whatever it has, nothing is expected. */
function showsEnough(passing: ForwardedAttempts, state: ReplicaState): boolean {
  if (passing.need.copies !== "any" || state.role === "leader") return true;
  return state.visible >= leastHere(passing, state);
}

/** Waits for it a little. */
function soonShows(passing: ForwardedAttempts, state: ReplicaState): Promise<boolean> {
  const { need, cluster } = passing;
  const least = leastHere(passing, state);
  if (!Number.isFinite(least)) return Promise.resolve(false);
  return cluster.whenVisible(need.database, least, retryMs);
}

/** What the node must have been shown that the client has come to. */
function leastHere({ exchange }: ForwardedAttempts, { mustShow }: ReplicaState): number {
  return exchange.origin === undefined ? mustShow : Number(exchange.header(leastHeader) ?? 0);
}

/** What another node must show, which may not lead. "Infinity", while that is not known: only the leader answers. */
function leastOf({ need }: ForwardedAttempts, { mustShow }: ReplicaState): Record<string, string> {
  return need.copies === "any" && mustShow > 0 ? { [leastHeader]: String(mustShow) } : {};
}

/** @returns false: nothing was done, and the leader can do it. @throws else */
async function runHere(passing: ForwardedAttempts, here: Run): Promise<boolean> {
  const { exchange, need } = passing;
  exchange.isRepeatable = true;
  try {
    await here();
    return true;
  } catch (error) {
    // What a copy cannot do, such as making an index for a query, and what has a new leader by now.
    if (!isNotLeading(error) || !canRepeat(exchange) || passing.hasFailedHere) throw error;
  }
  passing.hasFailedHere = true;
  if (need.copies !== "confirmed") passing.need = { ...need, copies: "leader" };
  return false;
}

/** The body of a request to another node. */
interface PassedBody {
  readonly content: Buffer | Readable;
  /** Has any of it been read, so that it cannot be sent again? */
  readonly isTaken: boolean;
  /** Why its reading ended early. */
  readonly failure: unknown;
}

/** Undefined: it has none. @throws RequestError as `Exchange.body` */
async function bodyFor(exchange: Exchange): Promise<PassedBody | undefined> {
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

function whole(content: Buffer): PassedBody {
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
  // A node's certificate is this node's, or as good as it.
  if (!identity.isNode) headers[callerHeader] = identity.thumbprint;
  return headers;
}

/** @throws when the other node ends before its reply does, and nothing was sent back yet */
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
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk as Buffer);
    exchange.reply(status, typed(out), Buffer.concat(chunks));
    return;
  }
  if (exchange.aborted) {
    body.destroy();
    return;
  }
  // A stream with a type of its own is sent as it is.
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

/** Can the request be made again, with its body? */
function canRepeat(exchange: Exchange): boolean {
  return !exchange.isReplied && !exchange.aborted && exchange.collectedBody !== undefined;
}

function isNotLeading(error: unknown): boolean {
  return error instanceof EngineError && error.code === "not-leader";
}

/** A node that was removed, or of which nothing is heard any more. */
function isGone(tag: string, cluster: ClusterView): boolean {
  if (!cluster.members().some((member) => member.tag === tag)) return true;
  return (cluster.lastHeartbeat(tag)?.ageMs ?? 0) > silenceMs;
}

const noLeaderType = "Raven.Client.Exceptions.Cluster.NoLeaderException";

/** For the node that has passed the request on: it looks again. */
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
    ? `No node leads database '${name}' at the moment: nothing was done. One will within seconds, if more than half of the nodes run.`
    : `Node ${leader} leads database '${name}', and has not taken the request: nothing was done.`;
}

function unreachableError(tag: string, cause: unknown): EngineError {
  if (cause instanceof EngineError && cause.code === "node-unreachable") return cause;
  return new EngineError("node-unreachable", `Node ${tag} did not answer.`, {
    cause,
    details: { retryAfterSeconds: 1 },
  });
}

function uncertain(tag: string, { database }: Need, wasSent: boolean, cause: unknown): EngineError {
  if (!wasSent) return unreachableError(tag, cause);
  return new EngineError(
    "outcome-unknown",
    `Node ${tag} ended before it had answered: what was asked of database '${database}' may have been done or not. ` +
      "Read before you write again.",
    { cause, details: { retryAfterSeconds: 1 } },
  );
}
