/** Cluster status, and the operator's actions on it; the same steps as `jackdaw cluster` (cli/commands/cluster.ts). */
import { get, send } from "./client.ts";

export interface ClusterStatus {
  readonly IsClustered: true;
  readonly NodeTag: string;
  /** Leader of the cluster's membership changes; null if there is no leader. */
  readonly Leader: string | null;
  readonly Epoch: number;
  readonly Nodes: readonly ClusterNode[];
  readonly Databases: readonly ClusterDatabase[];
  /** Undefined if the caller has no access. */
  readonly Nats?: Nats | null;
}

/** Status of a server with or without a cluster. */
export type ServerStatus = ClusterStatus | { readonly IsClustered: false };

export interface ClusterNode {
  readonly Tag: string;
  readonly Url: string;
  readonly IsHere: boolean;
  readonly IsRegistered: boolean;
  readonly IsHeard: boolean;
  readonly LastHeardInMs: number | null;
  readonly Version: string | null;
}

export interface ClusterDatabase {
  readonly Name: string;
  readonly Leader: string | null;
  readonly Epoch: number;
  readonly Members: readonly Copy[];
  readonly Trouble: string | null;
}

export interface Copy {
  readonly Tag: string;
  /** Null if its node is unreachable. */
  readonly Role: string | null;
  /** Lag, in messages; null if unknown. */
  readonly Behind: number | null;
}

interface Nats {
  readonly IsConnected: boolean;
  readonly Server: string | null;
  readonly Version: string | null;
  readonly Replicas: number;
  readonly Restarts: number;
  readonly Scrub: {
    readonly Failure: string | null;
    readonly Problems: readonly {
      readonly Database: string | null;
      readonly Server: string;
      readonly Problem: string;
    }[];
  } | null;
}

export const statusPath = "/cluster/status";

/** A problem that needs the operator's attention. */
interface Problem {
  readonly isBad: boolean;
  readonly text: string;
  readonly more: string;
}

export function problemsOf(status: ServerStatus | undefined): Problem[] {
  if (!status?.IsClustered) return [];
  const { NodeTag, Leader, Nodes, Databases, Nats } = status;
  const bad = (text: string, more: string) => ({ isBad: true, text, more });
  const problems: Problem[] = [];
  if (Nats?.IsConnected === false)
    problems.push(bad("NATS is not connected", `Node ${NodeTag} cannot write until it is.`));
  if (Leader === null)
    problems.push(
      bad(
        "The cluster has no leader",
        "Most nodes, or NATS servers, cannot connect to each other.",
      ),
    );
  for (const { Tag, IsRegistered, IsHeard } of Nodes) {
    if (IsRegistered && !IsHeard)
      problems.push(
        bad(
          `Node ${Tag} is unreachable`,
          "It is down, or disconnected. Another failure may stop all writes.",
        ),
      );
    if (!IsRegistered)
      problems.push({
        isBad: false,
        text: `Node ${Tag} is not a member of the cluster`,
        more: "It is running, and was removed earlier.",
      });
  }
  for (const { Name, Leader: leader, Members, Trouble: problem } of Databases) {
    const stopped = Members.filter(({ Role }) => Role === "stopped").map(({ Tag }) => Tag);
    if (leader === null) problems.push(bad(`${Name} has no leader`, "Reads succeed; writes fail."));
    if (stopped.length > 0)
      problems.push(bad(`A copy of ${Name} has stopped: ${stopped.join(", ")}`, problem ?? ""));
    else if (problem !== null) problems.push(bad(`${Name} on ${NodeTag}`, problem));
  }
  for (const { Server, Database, Problem } of Nats?.Scrub?.Problems ?? [])
    problems.push(bad(`NATS, ${Server}`, [Database, Problem].filter(Boolean).join(": ")));
  if (Nats?.Scrub?.Failure != null)
    problems.push({ isBad: false, text: "The NATS scrub failed", more: Nats.Scrub.Failure });
  return problems;
}

/** Lag below which copies count as equally up to date, in messages. Under writes every copy lags a little. */
const lagMax = 1_000;

/**
 * Returns the node to lead a database instead of `tag`: an up-to-date copy on the node that leads the fewest
 * databases.
 */
function successorOf(
  { Databases }: ClusterStatus,
  { Members }: ClusterDatabase,
  tag: string,
): string | undefined {
  const led = ({ Tag }: Copy) => Databases.filter(({ Leader }) => Leader === Tag).length;
  const lag = ({ Behind }: Copy) => Math.floor((Behind ?? 0) / lagMax);
  return Members.filter(({ Tag, Role }) => Tag !== tag && Role === "follower").sort(
    (one, other) => lag(one) - lag(other) || led(one) - led(other),
  )[0]?.Tag;
}

const pollMs = 250;
const timeoutMs = 30_000;

/** Polls the status until `isSo` returns true. @throws Error with `what` after the timeout */
async function until(isSo: (status: ClusterStatus) => boolean, what: string): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (performance.now() < endMs) {
    const { body } = await get<ServerStatus>(statusPath);
    // A removed node is a single node after its next start.
    if (!body.IsClustered || isSo(body)) return;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Error(`${what} after ${timeoutMs / 1000} s. It may still complete: check again.`);
}

/** Transfers the leadership of a database, and waits for it. */
export async function lead(name: string, node: string): Promise<void> {
  await send("POST", `/admin/cluster/transfer?${new URLSearchParams({ name, node })}`);
  await until(
    ({ Databases }) => Databases.some(({ Name, Leader }) => Name === name && Leader === node),
    `${node} does not lead ${name}`,
  );
}

/** Transfers all leaderships of a node, so that no database waits for an election. */
export async function transferLeaderships(tag: string): Promise<void> {
  for (;;) {
    const { body: status } = await get<ServerStatus>(statusPath);
    const led = status.IsClustered
      ? status.Databases.find(({ Leader }) => Leader === tag)
      : undefined;
    if (led === undefined) return;
    const to = successorOf(status as ClusterStatus, led, tag);
    if (to === undefined)
      throw new Error(
        `No other copy of ${led.Name} is up to date, so ${tag} must continue to lead it.`,
      );
    await lead(led.Name, to);
  }
}

export async function removeNode({ Tag, IsHeard }: ClusterNode): Promise<void> {
  if (IsHeard) await transferLeaderships(Tag);
  await send("DELETE", `/admin/cluster/node?nodeTag=${Tag}`);
  await until(
    ({ NodeTag, Nodes }) =>
      NodeTag === Tag || !Nodes.some((one) => one.Tag === Tag && one.IsRegistered),
    `${Tag} was not removed from the cluster`,
  );
}

export async function addNode({ Tag, Url }: ClusterNode): Promise<void> {
  await send("PUT", `/admin/cluster/node?${new URLSearchParams({ url: Url, tag: Tag })}`);
  await until(
    ({ Nodes }) => Nodes.some((one) => one.Tag === Tag && one.IsRegistered),
    `${Tag} is not a member of the cluster`,
  );
}

const copiesOf = (status: ClusterStatus, name: string) =>
  status.Databases.find(({ Name }) => Name === name)?.Members ?? [];

export async function addCopy(name: string, node: string): Promise<void> {
  await send("PUT", `/admin/databases/node?${new URLSearchParams({ name, node })}`);
  await until(
    (status) => copiesOf(status, name).some(({ Tag }) => Tag === node),
    `${node} has no copy of ${name}`,
  );
}

export async function removeCopy(name: string, node: string): Promise<void> {
  await send("DELETE", "/admin/databases", {
    json: { DatabaseNames: [name], HardDelete: true, FromNodes: [node] },
  });
  await until(
    (status) => !copiesOf(status, name).some(({ Tag }) => Tag === node),
    `${node} still has a copy of ${name}`,
  );
}
