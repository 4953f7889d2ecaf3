/**
 * The state of a cluster as the server tells it, and what an operator does with it: the same steps as `jackdaw cluster`
 * takes (cli/commands/cluster.ts).
 */
import { get, send } from "./client.ts";

export interface ClusterStatus {
  readonly IsClustered: true;
  readonly NodeTag: string;
  /** Of the changes of the cluster itself; null: nobody. */
  readonly Leader: string | null;
  readonly Epoch: number;
  readonly Nodes: readonly ClusterNode[];
  readonly Databases: readonly ClusterDatabase[];
  /** Undefined: the caller is not told. */
  readonly Nats?: Nats | null;
}

/** Of any server. */
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
  /** Null: its node is not heard. */
  readonly Role: string | null;
  /** Messages; null: not known. */
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

/** What somebody must do something about. */
export interface Trouble {
  readonly isBad: boolean;
  readonly text: string;
  readonly more: string;
}

export function troublesOf(status: ServerStatus | undefined): Trouble[] {
  if (!status?.IsClustered) return [];
  const { NodeTag, Leader, Nodes, Databases, Nats } = status;
  const bad = (text: string, more: string) => ({ isBad: true, text, more });
  const troubles: Trouble[] = [];
  if (Nats?.IsConnected === false)
    troubles.push(bad("NATS is not reached", `Node ${NodeTag} can write nothing until it is.`));
  if (Leader === null)
    troubles.push(
      bad("Nobody leads the cluster", "Most nodes, or servers of NATS, do not reach each other."),
    );
  for (const { Tag, IsRegistered, IsHeard } of Nodes) {
    if (IsRegistered && !IsHeard)
      troubles.push(
        bad(
          `Node ${Tag} is silent`,
          "It is down, or cut off. The next failure may stop all writes.",
        ),
      );
    if (!IsRegistered)
      troubles.push({
        isBad: false,
        text: `Node ${Tag} is not of the cluster`,
        more: "It runs, and was taken out before.",
      });
  }
  for (const { Name, Leader: leader, Members, Trouble: told } of Databases) {
    const stopped = Members.filter(({ Role }) => Role === "stopped").map(({ Tag }) => Tag);
    if (leader === null)
      troubles.push(bad(`Nobody leads ${Name}`, "Reading works; nothing is written."));
    if (stopped.length > 0)
      troubles.push(bad(`A copy of ${Name} has stopped: ${stopped.join(", ")}`, told ?? ""));
    else if (told !== null) troubles.push(bad(`${Name} on ${NodeTag}`, told));
  }
  for (const { Server, Database, Problem } of Nats?.Scrub?.Problems ?? [])
    troubles.push(bad(`NATS, ${Server}`, [Database, Problem].filter(Boolean).join(": ")));
  if (Nats?.Scrub?.Failure != null)
    troubles.push({ isBad: false, text: "NATS cannot be looked at", more: Nats.Scrub.Failure });
  return troubles;
}

/** Below this copies count as equal: under writes each is a little behind. */
const behindMax = 1_000;

/** Who should lead a database that `tag` leads: of the copies that are up to date, the one that leads least. */
export function successorOf(
  { Databases }: ClusterStatus,
  { Members }: ClusterDatabase,
  tag: string,
): string | undefined {
  const led = ({ Tag }: Copy) => Databases.filter(({ Leader }) => Leader === Tag).length;
  const lag = ({ Behind }: Copy) => Math.floor((Behind ?? 0) / behindMax);
  return Members.filter(({ Tag, Role }) => Tag !== tag && Role === "follower").sort(
    (one, other) => lag(one) - lag(other) || led(one) - led(other),
  )[0]?.Tag;
}

const pollMs = 250;
const patienceMs = 30_000;

/** Waits until the cluster `isSo`. @throws Error `what` it is not in time */
async function until(isSo: (status: ClusterStatus) => boolean, what: string): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (performance.now() < endMs) {
    const { body } = await get<ServerStatus>(statusPath);
    // A node that was taken out itself is a single one from its next start on.
    if (!body.IsClustered || isSo(body)) return;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Error(`${what} after ${patienceMs / 1000} s. It may come still: look again.`);
}

/** Resolves when that copy leads. */
export async function lead(name: string, node: string): Promise<void> {
  await send("POST", `/admin/cluster/transfer?${new URLSearchParams({ name, node })}`);
  await until(
    ({ Databases }) => Databases.some(({ Name, Leader }) => Name === name && Leader === node),
    `${node} does not lead ${name}`,
  );
}

/** Has others lead what a node leads, so that nobody waits until it is missed. */
export async function handOver(tag: string): Promise<void> {
  for (;;) {
    const { body: status } = await get<ServerStatus>(statusPath);
    const led = status.IsClustered
      ? status.Databases.find(({ Leader }) => Leader === tag)
      : undefined;
    if (led === undefined) return;
    const to = successorOf(status as ClusterStatus, led, tag);
    if (to === undefined)
      throw new Error(
        `No other copy of ${led.Name} is up to date, so ${tag} must go on leading it.`,
      );
    await lead(led.Name, to);
  }
}

export async function removeNode({ Tag, IsHeard }: ClusterNode): Promise<void> {
  if (IsHeard) await handOver(Tag);
  await send("DELETE", `/admin/cluster/node?nodeTag=${Tag}`);
  await until(
    ({ NodeTag, Nodes }) =>
      NodeTag === Tag || !Nodes.some((one) => one.Tag === Tag && one.IsRegistered),
    `${Tag} is not out of the cluster`,
  );
}

export async function addNode({ Tag, Url }: ClusterNode): Promise<void> {
  await send("PUT", `/admin/cluster/node?${new URLSearchParams({ url: Url, tag: Tag })}`);
  await until(
    ({ Nodes }) => Nodes.some((one) => one.Tag === Tag && one.IsRegistered),
    `${Tag} is not of the cluster`,
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
