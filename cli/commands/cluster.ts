/**
 * `jackdaw cluster`: shows the nodes and leaders; adds and removes nodes; transfers leaderships; balances copies;
 * adopts databases that exist on one node only.
 */

import { setTimeout as pause } from "node:timers/promises";
import { foldedName } from "../../engine/base/case-folding.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { durationText, type Paint, painter, tableLines } from "../output.ts";
import { askQuestion, isInteractive } from "../question.ts";
import { numberOr } from "../values.ts";
import { type CopyMove, planCopyMoves } from "./copy-balance.ts";

interface Status {
  readonly IsClustered: boolean;
  readonly NodeTag: string;
  readonly Leader: string | null;
  readonly Epoch: number;
  readonly Nodes: readonly ListedNode[];
  readonly Databases: readonly ListedDatabase[];
  /** Databases that exist only on the responding node. Older servers omit the list. */
  readonly OwnDatabases?: readonly { readonly Name: string; readonly Failure: string | null }[];
  readonly Nats?: Nats | null;
}

interface ListedNode {
  readonly Tag: string;
  readonly Url: string;
  readonly IsHere: boolean;
  readonly IsRegistered: boolean;
  readonly IsHeard: boolean;
  readonly LastHeardInMs: number | null;
  readonly Version: string | null;
}

interface ListedDatabase {
  readonly Name: string;
  readonly Leader: string | null;
  readonly Epoch: number;
  readonly Members: readonly Member[];
  readonly Trouble: string | null;
  readonly Gaps: number;
}

interface Member {
  readonly Tag: string;
  readonly Role: string | null;
  readonly Behind: number | null;
}

interface Nats {
  readonly IsConnected: boolean;
  readonly Server: string | null;
  readonly Version: string | null;
  readonly Replicas: number;
  readonly Scrub: {
    readonly At: string;
    readonly Failure: string | null;
    readonly Problems: readonly {
      readonly Database: string | null;
      readonly Server: string;
      readonly Problem: string;
    }[];
  } | null;
}

const pollMs = 250;
/** Maximum number of databases listed by name. */
const shownDatabases = 10;
/** Time limit for a transfer of a leadership, in milliseconds. */
const transferMs = 30_000;
/** Time limit for a membership change to become visible, in milliseconds. */
const memberMs = 30_000;

export async function run(context: CommandContext): Promise<void> {
  const action = context.command.name.split(" ")[1];
  if (action === "status") await printStatus(context);
  else if (action === "add") await add(context);
  else if (action === "remove") await remove(context);
  else if (action === "adopt") await adopt(context);
  else if (action === "spread") await spread(context);
  else await transfer(context);
}

async function statusOf({ client }: CommandContext): Promise<Status> {
  return (await client().json("/cluster/status")) as Status;
}

/** Returns the status of the cluster. @throws Failure failed for a single node */
async function clusterOf(context: CommandContext): Promise<Status> {
  const status = await statusOf(context);
  if (status.IsClustered) return status;
  throw new Failure(
    "failed",
    `${context.client().url.origin} is a single node; docs/cluster.md describes how to start a cluster`,
  );
}

async function printStatus(context: CommandContext): Promise<void> {
  const { options, print, streams, environment, client } = context;
  const status = await statusOf(context);
  if (options.is("json")) {
    print(JSON.stringify(status));
    return;
  }
  if (!status.IsClustered) {
    print(`${client().url.origin} is a single node (${status.NodeTag}), not part of a cluster`);
    return;
  }
  const paint = painter(streams.output.isTTY === true, environment);
  const width = streams.output.columns;
  print(`Source     ${status.NodeTag}, ${client().url.origin}`);
  const led = status.Leader === null ? paint("red", "none") : status.Leader;
  print(`Leader     ${led}, epoch ${status.Epoch}`);
  if (status.Nats != null) print(`NATS       ${natsText(status.Nats, paint)}`);
  print("");
  const nodeRows = status.Nodes.map((node) => nodeRow(status, node));
  for (const line of tableLines(
    ["node", "url", "version", "leads", "state"],
    nodeRows,
    width,
    paint,
  ))
    print(line);
  print("");
  const rows = status.Databases.map(databaseRow);
  const header = ["database", "leader", "epoch", "copies", "lag", "state"];
  for (const line of tableLines(header, rows, width, paint)) print(line);
  for (const line of problemLines(status)) print(paint("yellow", line));
}

function natsText({ IsConnected, Server, Version, Replicas, Scrub }: Nats, paint: Paint): string {
  if (!IsConnected) return paint("red", "not connected");
  const copies = Replicas === 1 ? "1 copy" : `${Replicas} copies`;
  const server = `${Server ?? "?"} ${Version ?? ""}`.trim();
  const scrub =
    Scrub === null
      ? "not scrubbed yet"
      : Scrub.Failure !== null
        ? paint("yellow", "scrub failed")
        : Scrub.Problems.length > 0
          ? paint("red", `${Scrub.Problems.length} problems`)
          : "ok";
  return `${server}, ${copies} of each stream, ${scrub}`;
}

function nodeRow(status: Status, node: ListedNode): unknown[] {
  const led = status.Databases.filter(({ Leader }) => Leader === node.Tag).length;
  return [node.Tag, node.Url, node.Version ?? "", node.IsRegistered ? led : "", nodeState(node)];
}

function nodeState({ IsHere, IsRegistered, IsHeard, LastHeardInMs }: ListedNode): string {
  if (IsHere) return "responding";
  if (!IsRegistered) return "not a member";
  if (IsHeard) return "reachable";
  return LastHeardInMs === null
    ? "never reachable"
    : `unreachable for ${durationText(LastHeardInMs)}`;
}

function databaseRow(database: ListedDatabase): unknown[] {
  const { Name, Leader, Epoch, Members, Trouble } = database;
  const lag = Members.filter((one) => (one.Behind ?? 0) > 0).map(
    (one) => `${one.Tag} ${one.Behind}`,
  );
  const unreachable = Members.filter(({ Role }) => Role === null).map(({ Tag }) => Tag);
  const stopped = Members.filter(({ Role }) => Role === "stopped").map(({ Tag }) => Tag);
  const state = [
    ...(Leader === null ? ["no leader"] : []),
    ...(stopped.length > 0 || Trouble !== null ? [`stopped on ${stopped.join(", ") || "?"}`] : []),
    ...(unreachable.length > 0 ? [`unreachable: ${unreachable.join(", ")}`] : []),
  ];
  return [
    Name,
    Leader ?? "-",
    Epoch,
    Members.map(({ Tag }) => Tag).join(" "),
    lag.join(", "),
    state.length === 0 ? "ok" : state.join("; "),
  ];
}

/** Returns the problems that need the operator's attention. */
function problemLines({ NodeTag, Nodes, Databases, OwnDatabases, Nats }: Status): string[] {
  const lines = [
    ...Databases.filter(({ Trouble }) => Trouble !== null).map(
      ({ Name, Trouble }) => `${Name} on ${NodeTag}: ${Trouble}`,
    ),
    ...(Nats?.Scrub?.Problems ?? []).map(({ Server, Database, Problem }) =>
      [["NATS", Server, Database].filter((word) => word).join(" "), Problem].join(": "),
    ),
    ...(Nats?.Scrub?.Failure == null ? [] : [`NATS: ${Nats.Scrub.Failure}`]),
    ...(OwnDatabases ?? []).map(({ Name, Failure }) =>
      Failure === null
        ? `${Name} exists on ${NodeTag} only: jackdaw cluster adopt ${Name} ${NodeTag}`
        : `${Name} exists on ${NodeTag} only: ${Failure}`,
    ),
    ...Nodes.filter(({ IsRegistered }) => !IsRegistered).map(
      ({ Tag }) => `${Tag} can be added: jackdaw cluster add ${Tag}`,
    ),
  ];
  return lines.length === 0 ? [] : ["", ...lines];
}

/** Returns the node with this tag or URL. @throws Failure missing */
function nodeNamed({ Nodes }: Status, wanted: string): ListedNode {
  const sameUrl = (url: string) => url.replace(/\/$/, "").toLowerCase();
  const found = Nodes.find(
    ({ Tag, Url }) => Tag === wanted.toUpperCase() || sameUrl(Url) === sameUrl(wanted),
  );
  if (found !== undefined) return found;
  throw new Failure(
    "missing",
    `Node '${wanted}' is unknown. A node to add must be running and connected to the same NATS; 'jackdaw cluster status' lists known nodes`,
  );
}

/** Polls the status until `isSo` returns true. @returns the last status, or null after the timeout */
async function until(
  context: CommandContext,
  timeoutMs: number,
  isSo: (status: Status) => boolean,
): Promise<Status | null> {
  const endMs = performance.now() + timeoutMs;
  while (performance.now() < endMs) {
    if (context.interrupted.aborted) throw new Failure("interrupted", "Interrupted");
    const status = await statusOf(context);
    if (isSo(status)) return status;
    await pause(pollMs);
  }
  return null;
}

async function add(context: CommandContext): Promise<void> {
  const { client, options, print } = context;
  const [wanted = ""] = context.arguments;
  const { Tag, Url, IsRegistered } = nodeNamed(await clusterOf(context), wanted);
  if (IsRegistered) throw new Failure("conflict", `${Tag} is already a member of the cluster`);
  await client().send("/admin/cluster/node", { method: "PUT", query: { url: Url, tag: Tag } });
  const isAdded = ({ Nodes }: Status) =>
    Nodes.some((node) => node.Tag === Tag && node.IsRegistered);
  if ((await until(context, memberMs, isAdded)) === null) {
    throw new Failure(
      "failed",
      `${Tag} was accepted but is not a member yet; check 'jackdaw cluster status' again`,
    );
  }
  print(
    options.is("json")
      ? JSON.stringify({ Tag, Url })
      : `${Tag} is a member of the cluster; move copies of databases to it with 'jackdaw cluster spread'`,
  );
}

/** Removes a node. Its leaderships are transferred first, to minimize the time without a leader. */
async function remove(context: CommandContext): Promise<void> {
  const { client, options, print } = context;
  const [wanted = ""] = context.arguments;
  const status = await clusterOf(context);
  const node = nodeNamed(status, wanted);
  const { Tag, Url } = node;
  if (!node.IsRegistered) throw new Failure("missing", `${Tag} is not a member of the cluster`);
  const copies = status.Databases.filter(({ Members }) => Members.some((one) => one.Tag === Tag));
  await confirmRemoval(context, Tag, copies.length);
  if (node.IsHeard) await transferAll(context, status, Tag);
  await client().send("/admin/cluster/node", { method: "DELETE", query: { nodeTag: Tag } });
  const isRemoved = ({ Nodes }: Status) =>
    !Nodes.some((one) => one.Tag === Tag && one.IsRegistered);
  // A removed node may no longer respond itself.
  if (!node.IsHere && (await until(context, memberMs, isRemoved)) === null) {
    throw new Failure("failed", `The removal of ${Tag} was accepted but is not visible yet`);
  }
  const fewer = copies.map(({ Name, Members }) => ({ Name, Copies: Members.length - 1 }));
  if (options.is("json")) print(JSON.stringify({ Tag, Url, Databases: fewer }));
  else for (const line of [`${Tag} was removed`, ...fewerCopies(fewer)]) print(line);
}

/** Lists databases that lost a copy. Missing copies are not recreated automatically. */
function fewerCopies(
  fewer: readonly { readonly Name: string; readonly Copies: number }[],
): string[] {
  if (fewer.length === 0) return [];
  const shown = fewer.slice(0, shownDatabases).map(({ Name, Copies }) => `${Name} (${Copies})`);
  const rest = fewer.length - shown.length;
  const names = rest === 0 ? shown.join(", ") : `${shown.join(", ")} and ${rest} others`;
  return [
    `These databases lost a copy: ${names}. Recreate missing copies with 'jackdaw cluster spread --copies COUNT'`,
  ];
}

/** Requires the tag of the node, or --yes. @throws Failure usage, failed */
async function confirmRemoval(
  { options, streams }: CommandContext,
  tag: string,
  copies: number,
): Promise<void> {
  if (options.is("yes")) return;
  const what = `Node ${tag} and its copies of ${copies} databases would be removed from the cluster`;
  if (!isInteractive(streams)) throw new Failure("usage", `${what}; add --yes to confirm`);
  const typed = await askQuestion(streams, `${what}. Type its tag: `);
  if (typed.toUpperCase() !== tag) {
    throw new Failure("failed", "The tag does not match; nothing was changed");
  }
}

/** Adds a database that exists only on one node, by default the responding node, to the cluster. */
async function adopt(context: CommandContext): Promise<void> {
  const { client, options, print } = context;
  const [name = "", wanted] = context.arguments;
  const status = await clusterOf(context);
  const { Tag } = nodeNamed(status, wanted ?? status.NodeTag);
  const query = { name, node: Tag };
  await client().send("/admin/cluster/adopt", { method: "POST", query });
  print(
    options.is("json")
      ? JSON.stringify({ Database: name, Node: Tag })
      : `${name} is a database of the cluster, with a copy on ${Tag}; create copies on other nodes with PUT /admin/databases/node?name=${name}&node=…`,
  );
}

/** Transfers the leadership of one database, all leaderships of a node, or as many as needed to balance them. */
async function transfer(context: CommandContext): Promise<void> {
  const { options, print } = context;
  const status = await clusterOf(context);
  const from = options.text("from");
  const isEven = options.is("even");
  const [name, wanted] = context.arguments;
  const modes = [name !== undefined && wanted !== undefined, from !== undefined, isEven];
  if (modes.filter((isGiven) => isGiven).length !== 1 || (name !== undefined && !modes[0])) {
    throw new Failure(
      "usage",
      "Specify a database and a node, --from NODE for all leaderships of a node, or --even to balance the leaderships",
    );
  }
  if (isEven) {
    const moved = await balanceLeaderships(context, status);
    if (options.is("json")) print(JSON.stringify(moved));
    else if (moved.length === 0) print("The leaderships are balanced");
    return;
  }
  if (from !== undefined) {
    const { Tag } = nodeNamed(status, from);
    const moved = await transferAll(context, status, Tag);
    if (options.is("json")) print(JSON.stringify(moved));
    else if (moved.length === 0) print(`${Tag} leads no database`);
    return;
  }
  const database = status.Databases.find((one) => foldedName(one.Name) === foldedName(name ?? ""));
  if (database === undefined) {
    throw new Failure(
      "missing",
      `Database '${name}' does not exist; 'jackdaw databases' lists all databases`,
    );
  }
  const { Tag } = nodeNamed(status, wanted ?? "");
  await lead(context, database.Name, Tag);
  const result = { Database: database.Name, Leader: Tag };
  print(options.is("json") ? JSON.stringify(result) : `${database.Name} is led by ${Tag}`);
}

/** Adds missing copies, then moves copies until all reachable nodes have the same number. */
async function spread(context: CommandContext): Promise<void> {
  const { options, print } = context;
  const { Nodes, Databases } = await clusterOf(context);
  const nodes = Nodes.filter((node) => node.IsRegistered && (node.IsHere || node.IsHeard));
  const placed = Databases.map(({ Name, Leader, Members }) => ({
    name: Name,
    leader: Leader,
    tags: Members.map(({ Tag }) => Tag),
    isSound:
      Leader !== null && Members.every(({ Role }) => Role === "leader" || Role === "follower"),
  }));
  const moves = planCopyMoves(
    nodes.map(({ Tag }) => Tag),
    placed,
    numberOr(options.text("copies"), 0, "--copies"),
  );
  const isJson = options.is("json");
  for (const move of moves) {
    if (!options.is("dry-run")) await moveCopy(context, move);
    if (!isJson) print(moveText(move, options.is("dry-run")));
  }
  const skipped = placed.filter(({ isSound }) => !isSound).map(({ name }) => name);
  if (skipped.length > 0 && !isJson) {
    print(`Skipped, because a copy is not in sync: ${skipped.slice(0, shownDatabases).join(", ")}`);
  }
  const results = moves.map(({ name, from, to }) => ({ Database: name, From: from, To: to }));
  if (isJson) print(JSON.stringify(results));
  else if (moves.length === 0) print("The copies are balanced");
}

function moveText({ name, from, to }: CopyMove, isDry: boolean): string {
  const verb = isDry ? "would have" : "has";
  return `${name} ${verb} a copy on ${to}${from === null ? "" : ` instead of ${from}`}`;
}

/**
 * Removes the old copy after the new one is complete. @throws Failure when a copy is not created or not removed in
 * time
 */
async function moveCopy(context: CommandContext, { name, from, to }: CopyMove): Promise<void> {
  const has = (tag: string) => (status: Status) =>
    status.Databases.some(
      ({ Name, Members }) => Name === name && Members.some(({ Tag }) => Tag === tag),
    );
  const put = { method: "PUT", query: { name, node: to } };
  if (!(await requestUntil(context, "/admin/databases/node", put, has(to)))) {
    throw new Failure(
      "failed",
      `'${name}' has no copy on ${to} yet; check 'jackdaw cluster status' again`,
    );
  }
  await waitForCurrentCopy(context, name, to);
  if (from === null) return;
  const { Databases } = await statusOf(context);
  if (Databases.some(({ Name, Leader }) => Name === name && Leader === from)) {
    await lead(context, name, to);
  }
  const body = { DatabaseNames: [name], FromNodes: [from], HardDelete: true };
  const remove = { method: "DELETE", body };
  const isGone = (status: Status) => !has(from)(status);
  if (await requestUntil(context, "/admin/databases", remove, isGone)) return;
  throw new Failure(
    "failed",
    `'${name}' has a copy on ${to}, but the copy on ${from} was not removed; it may be locked against deletion`,
  );
}

/** Sends a request until `isSo` returns true. Retries on status 503, for example while a new leader is elected. */
async function requestUntil(
  context: CommandContext,
  path: string,
  request: {
    readonly method: string;
    readonly query?: Record<string, string>;
    readonly body?: object;
  },
  isSo: (status: Status) => boolean,
): Promise<boolean> {
  const endMs = performance.now() + transferMs;
  for (;;) {
    const { status } = await context.client().send(path, { ...request, accepts: [503] });
    const isRefused = status === 503;
    if ((await until(context, isRefused ? pollMs : memberMs, isSo)) !== null) return true;
    if (!isRefused || performance.now() > endMs) return false;
  }
}

/** Waits until a new copy is complete, without a time limit as long as its node is reachable. */
async function waitForCurrentCopy(
  context: CommandContext,
  name: string,
  tag: string,
): Promise<void> {
  const query = { name };
  for (;;) {
    const isHeard = ({ Nodes }: Status) => Nodes.some((one) => one.Tag === tag && one.IsHeard);
    if ((await until(context, memberMs, isHeard)) === null) {
      throw new Failure(
        "failed",
        `${tag} is unreachable: its copy of '${name}' is incomplete; the other copies are kept`,
      );
    }
    const { Nodes } = (await context.client().json("/topology", { query })) as {
      Nodes: readonly { readonly ClusterTag: string; readonly ServerRole: string }[];
    };
    if (Nodes.some((one) => one.ClusterTag === tag && one.ServerRole === "Member")) return;
    await pause(pollMs);
  }
}

interface Moved {
  readonly Database: string;
  readonly Leader: string;
}

/** Returns the number of databases that each node leads. */
function ledCounts({ Databases }: Status): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { Leader } of Databases) {
    if (Leader !== null) counts.set(Leader, (counts.get(Leader) ?? 0) + 1);
  }
  return counts;
}

/** Transfers all leaderships of node `tag`. @throws Failure when no other node can lead one of the databases */
async function transferAll(context: CommandContext, status: Status, tag: string): Promise<Moved[]> {
  const counts = ledCounts(status);
  const moved: Moved[] = [];
  for (const database of status.Databases.filter(({ Leader }) => Leader === tag)) {
    const to = successor(database, tag, counts);
    counts.set(to, (counts.get(to) ?? 0) + 1);
    moved.push(await led(context, database.Name, to));
  }
  return moved;
}

/** Transfers leaderships from nodes that lead at least two databases more than another node that can lead them. */
async function balanceLeaderships(context: CommandContext, status: Status): Promise<Moved[]> {
  const counts = ledCounts(status);
  const moved: Moved[] = [];
  const ledBy = new Map(status.Databases.map(({ Name, Leader }) => [Name, Leader]));
  for (let isDone = false; !isDone; ) {
    isDone = true;
    for (const database of status.Databases) {
      const from = ledBy.get(database.Name) ?? null;
      const to = from === null ? undefined : ableMembers(database, from, counts)[0]?.Tag;
      if (from === null || to === undefined) continue;
      const [more, fewer] = [counts.get(from) ?? 0, counts.get(to) ?? 0];
      if (more - fewer < 2) continue;
      counts.set(from, more - 1);
      counts.set(to, fewer + 1);
      moved.push(await led(context, database.Name, to));
      ledBy.set(database.Name, to);
      isDone = false;
    }
  }
  return moved;
}

/** Transfers a leadership and prints the result. */
async function led(context: CommandContext, name: string, node: string): Promise<Moved> {
  await lead(context, name, node);
  if (!context.options.is("json")) context.print(`${name} is led by ${node}`);
  return { Database: name, Leader: node };
}

/** Returns the best node to lead a database instead of `tag`. @throws Failure when no other node can lead */
function successor(
  database: ListedDatabase,
  tag: string,
  counts: ReadonlyMap<string, number>,
): string {
  const [best] = ableMembers(database, tag, counts);
  if (best !== undefined) return best.Tag;
  throw new Failure(
    "conflict",
    `No other copy of '${database.Name}' can lead it now; 'jackdaw cluster status' shows the reason`,
  );
}

/** Returns members that can lead instead of `tag`: up-to-date members first, then members that lead few databases. */
function ableMembers(
  { Members }: ListedDatabase,
  tag: string,
  counts: ReadonlyMap<string, number>,
): Member[] {
  return Members.filter(({ Tag, Role }) => Tag !== tag && Role === "follower").sort(
    (one, other) =>
      Math.floor((one.Behind ?? 0) / lagMax) - Math.floor((other.Behind ?? 0) / lagMax) ||
      (counts.get(one.Tag) ?? 0) - (counts.get(other.Tag) ?? 0),
  );
}

/** Lag below which copies count as equally up to date, in messages. Under writes every copy lags a little. */
const lagMax = 1_000;

/** Transfers a leadership. @throws Failure when the node does not lead in time */
async function lead(context: CommandContext, name: string, node: string): Promise<void> {
  const query = { name, node };
  await context.client().send("/admin/cluster/transfer", { method: "POST", query });
  const isLed = ({ Databases }: Status) =>
    Databases.some(({ Name, Leader }) => Name === name && Leader === node);
  if ((await until(context, transferMs, isLed)) !== null) return;
  throw new Failure("failed", `${node} does not lead '${name}' after ${transferMs / 1000} s`);
}
