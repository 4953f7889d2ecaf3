/** Decides which node of a cluster runs a request, before its body is read. */
import type { ClusterView, ReplicaState } from "../cluster/cluster-view.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Copies, Route } from "./route.ts";

/** "here", the tag of another node, or "nowhere" if the request needs the leader and none is known. */
export type Place = "here" | "nowhere" | { readonly tag: string };

/** The requirements of a request. */
export interface Need {
  /** Name of the database that the request concerns, in any case. */
  readonly database: string;
  readonly copies: Copies;
  /** Preferred node of a request that any node can serve, or undefined. */
  readonly wanted: string | undefined;
}

/**
 * Returns the requirements of a request, or undefined if this node runs it in any case.
 * @param database the database in its path
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
  // If the preferred node cannot answer, the forwarding node selects another one.
  const isChosen = exchange.origin !== undefined && copies === "any";
  const wanted = isChosen ? undefined : exchange.header("x-ravendb-request-node");
  return { database: name, copies, wanted: wanted?.trim().toUpperCase() };
}

function namedIn({ query }: Exchange, { about }: Route): string | undefined {
  return about === undefined ? undefined : query.get(about) || undefined;
}

/** Returns the default of `copies` of a route. */
function usualCopies({ kind, method }: Route): Copies {
  return kind === "websocket" || method === "GET" || method === "HEAD" ? "any" : "leader";
}

/** Returns the node that runs a request with requirements `need` for a database in this state. */
export function placeOf(need: Need, state: ReplicaState, cluster: ClusterView): Place {
  const { role, leaderTag } = state;
  const needsLeader = need.copies === "leader" || need.copies === "confirmed";
  if (needsLeader) {
    if (role === "leader") return "here";
    // This node's own tag without the role means that its leadership has just begun or ended.
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
  // Until the required position is known, only the leader certainly has it.
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
