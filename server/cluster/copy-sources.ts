/** Of which nodes a copy of a database is taken. Pure. */
import type { ClusterDatabase, ClusterView } from "./cluster-view.ts";

/** Without a heartbeat for this long a node is not asked. */
const heardMs = 5000;

/** The other members that are heard, with a copy that goes on: the leader first, then who has most of the stream. */
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
