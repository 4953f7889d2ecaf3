/** Selects the nodes from which a copy of a database can be fetched. Pure. */
import type { ClusterDatabase, ClusterView } from "./cluster-view.ts";

/** Time without a heartbeat after which a node is not queried, in milliseconds. */
const heardMs = 5000;

/** Returns the other members with heartbeats and a running copy: the leader first, then by the amount of the stream they have. */
export function copySources(
  cluster: Pick<ClusterView, "tag" | "lastHeartbeat">,
  { id, members }: Pick<ClusterDatabase, "id" | "members">,
  leaderTag: string | null,
): string[] {
  const found: { readonly tag: string; readonly applied: number }[] = [];
  for (const tag of members) {
    const heartbeat = tag === cluster.tag ? undefined : cluster.lastHeartbeat(tag);
    const replica = heartbeat?.databases.get(id);
    if (heartbeat === undefined || replica === undefined) continue;
    if (heartbeat.ageMs > heardMs || replica.role === "stopped") continue;
    const applied = tag === leaderTag ? Number.POSITIVE_INFINITY : replica.applied;
    found.push({ tag, applied });
  }
  return found.sort((one, other) => other.applied - one.applied).map(({ tag }) => tag);
}
