/** Where in a cluster a request runs: on this node, or on which other one. Decided before its body is read. */
import type { ClusterView, ReplicaState } from "../cluster/cluster-view.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Copies, Route } from "./route.ts";

/** A node, by its tag; "nowhere": on the leader, and nobody leads now. */
export type Place = "here" | "nowhere" | { readonly tag: string };

/** What a request needs. */
export interface Need {
  /** The name of the database that it is about, in any case. */
  readonly database: string;
  readonly copies: Copies;
  /** The node that is wanted for what any can do; undefined: any. */
  readonly wanted: string | undefined;
}

/**
 * What a request needs that matches `route`; undefined: it is of this node.
 * @param database the one in its path
 */
export function needOf(
  exchange: Exchange,
  route: Route,
  database: string | undefined,
): Need | undefined {
  const name = database ?? namedIn(exchange, route);
  if (name === undefined) return undefined;
  const own = typeof route.copies === "function" ? route.copies(exchange) : route.copies;
  const copies = own ?? usualCopies(route);
  // When the wanted node cannot answer, the one that passes the request on sends it to another.
  const isChosen = exchange.origin !== undefined && copies === "any";
  const wanted = isChosen ? undefined : exchange.header("x-ravendb-request-node");
  return { database: name, copies, wanted: wanted?.trim().toUpperCase() };
}

function namedIn({ query }: Exchange, { about }: Route): string | undefined {
  return about === undefined ? undefined : query.get(about) || undefined;
}

/** What a route needs that does not tell. */
export function usualCopies({ kind, method }: Route): Copies {
  return kind === "websocket" || method === "GET" || method === "HEAD" ? "any" : "leader";
}

/** Where a request runs that needs `need` of a database in this state. */
export function placeOf(need: Need, state: ReplicaState, cluster: ClusterView): Place {
  const { role, leaderTag } = state;
  const needsLeader = need.copies === "leader" || need.copies === "confirmed";
  if (needsLeader) {
    if (role === "leader") return "here";
    // Its own tag without the role: it has just begun to lead, or has just ended.
    return leaderTag === null || leaderTag === cluster.tag ? "nowhere" : { tag: leaderTag };
  }
  const { members } = state.registered;
  const { wanted } = need;
  if (wanted !== undefined && wanted !== cluster.tag && members.includes(wanted)) {
    return { tag: wanted };
  }
  const isSound = role !== "stopped" && state.isComplete;
  if (role !== null && (isSound || need.copies === "here")) return "here";
  const others = members.filter((tag) => tag !== cluster.tag);
  const isLedElsewhere = leaderTag !== null && leaderTag !== cluster.tag;
  // Until it is known what others must show, only the leader surely does.
  const isAny = Number.isFinite(state.mustShow);
  const other = isLedElsewhere ? leaderTag : isAny ? heardLast(others, cluster) : undefined;
  if (other !== undefined) return { tag: other };
  return role === null ? "nowhere" : "here";
}

function heardLast(tags: readonly string[], cluster: ClusterView): string | undefined {
  const age = (tag: string) => cluster.lastHeartbeat(tag)?.ageMs ?? Number.MAX_SAFE_INTEGER;
  return tags.reduce<string | undefined>(
    (best, tag) => (best === undefined || age(tag) < age(best) ? tag : best),
    undefined,
  );
}
