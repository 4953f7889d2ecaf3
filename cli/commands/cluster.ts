/**
 * `jackdaw cluster`: the nodes and who leads what; adding and removing nodes; handing leaderships over; spreading copies;
 * adopting databases that a node has for itself.
 */

import { setTimeout as pause } from "node:timers/promises";
import { foldedName } from "../../engine/base/case-folding.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { durationText, type Paint, painter, tableLines } from "../output.ts";
import { ask, canAsk } from "../question.ts";
import { numberOr } from "../values.ts";
import { type CopyMove, copyMoves } from "./spread.ts";

interface Status {
  readonly IsClustered: boolean;
  readonly NodeTag: string;
  readonly Leader: string | null;
  readonly Epoch: number;
  readonly Nodes: readonly ListedNode[];
  readonly Databases: readonly ListedDatabase[];
  /** Of the asked node alone. A server of before has no such list. */
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
/** Databases that are named when there are many. */
const shownFewer = 10;
/** For a node that leads to lead no more, and another one to lead. */
const transferMs = 30_000;
/** For a node that was added to be heard as one of the cluster, and one that was removed to be gone. */
const memberMs = 30_000;

export async function run(surroundings: Surroundings): Promise<void> {
  const action = surroundings.command.name.split(" ")[1];
  if (action === "status") await printStatus(surroundings);
  else if (action === "add") await add(surroundings);
  else if (action === "remove") await remove(surroundings);
  else if (action === "adopt") await adopt(surroundings);
  else if (action === "spread") await spread(surroundings);
  else await transfer(surroundings);
}

async function statusOf({ client }: Surroundings): Promise<Status> {
  return (await client().json("/cluster/status")) as Status;
}

/** @throws Failure failed: a single node */
async function clusterOf(surroundings: Surroundings): Promise<Status> {
  const status = await statusOf(surroundings);
  if (status.IsClustered) return status;
  throw new Failure(
    "failed",
    `${surroundings.client().url.origin} is a single node: docs/cluster.md says how to start a cluster`,
  );
}

async function printStatus(surroundings: Surroundings): Promise<void> {
  const { options, print, streams, environment, client } = surroundings;
  const status = await statusOf(surroundings);
  if (options.is("json")) {
    print(JSON.stringify(status));
    return;
  }
  if (!status.IsClustered) {
    print(`${client().url.origin} is a single node (${status.NodeTag}), not one of a cluster`);
    return;
  }
  const paint = painter(streams.output.isTTY === true, environment);
  const width = streams.output.columns;
  print(`Seen from  ${status.NodeTag}, ${client().url.origin}`);
  const led = status.Leader === null ? paint("red", "nobody") : status.Leader;
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
  const header = ["database", "leader", "epoch", "copies", "behind", "state"];
  for (const line of tableLines(header, rows, width, paint)) print(line);
  for (const line of troubleLines(status)) print(paint("yellow", line));
}

function natsText({ IsConnected, Server, Version, Replicas, Scrub }: Nats, paint: Paint): string {
  if (!IsConnected) return paint("red", "not reached");
  const copies = Replicas === 1 ? "1 copy" : `${Replicas} copies`;
  const server = `${Server ?? "?"} ${Version ?? ""}`.trim();
  const scrub =
    Scrub === null
      ? "not looked at yet"
      : Scrub.Failure !== null
        ? paint("yellow", "could not be looked at")
        : Scrub.Problems.length > 0
          ? paint("red", `${Scrub.Problems.length} problems`)
          : "sound";
  return `${server}, ${copies} of each stream, ${scrub}`;
}

function nodeRow(status: Status, node: ListedNode): unknown[] {
  const led = status.Databases.filter(({ Leader }) => Leader === node.Tag).length;
  return [node.Tag, node.Url, node.Version ?? "", node.IsRegistered ? led : "", nodeState(node)];
}

function nodeState({ IsHere, IsRegistered, IsHeard, LastHeardInMs }: ListedNode): string {
  if (IsHere) return "here";
  if (!IsRegistered) return "not of the cluster";
  if (IsHeard) return "heard";
  return LastHeardInMs === null ? "never heard" : `silent for ${durationText(LastHeardInMs)}`;
}

function databaseRow(database: ListedDatabase): unknown[] {
  const { Name, Leader, Epoch, Members, Trouble } = database;
  const behind = Members.filter((one) => (one.Behind ?? 0) > 0).map(
    (one) => `${one.Tag} ${one.Behind}`,
  );
  const silent = Members.filter(({ Role }) => Role === null).map(({ Tag }) => Tag);
  const stopped = Members.filter(({ Role }) => Role === "stopped").map(({ Tag }) => Tag);
  const state = [
    ...(Leader === null ? ["no leader"] : []),
    ...(stopped.length > 0 || Trouble !== null ? [`stopped on ${stopped.join(", ") || "?"}`] : []),
    ...(silent.length > 0 ? [`not heard: ${silent.join(", ")}`] : []),
  ];
  return [
    Name,
    Leader ?? "-",
    Epoch,
    Members.map(({ Tag }) => Tag).join(" "),
    behind.join(", "),
    state.length === 0 ? "ok" : state.join("; "),
  ];
}

/** What an operator must do something about. */
function troubleLines({ NodeTag, Nodes, Databases, OwnDatabases, Nats }: Status): string[] {
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
        ? `${Name} is a database of ${NodeTag} alone: jackdaw cluster adopt ${Name} ${NodeTag}`
        : `${Name} is a database of ${NodeTag} alone: ${Failure}`,
    ),
    ...Nodes.filter(({ IsRegistered }) => !IsRegistered).map(
      ({ Tag }) => `${Tag} can be added: jackdaw cluster add ${Tag}`,
    ),
  ];
  return lines.length === 0 ? [] : ["", ...lines];
}

/** The node of this tag or address. @throws Failure missing */
function nodeNamed({ Nodes }: Status, wanted: string): ListedNode {
  const sameUrl = (url: string) => url.replace(/\/$/, "").toLowerCase();
  const found = Nodes.find(
    ({ Tag, Url }) => Tag === wanted.toUpperCase() || sameUrl(Url) === sameUrl(wanted),
  );
  if (found !== undefined) return found;
  throw new Failure(
    "missing",
    `No node '${wanted}' is known; a node that is to be added must run and reach the same NATS, and 'jackdaw cluster status' lists it then`,
  );
}

/** Waits until `isSo`. @returns the last status; null: it is not so in time */
async function until(
  surroundings: Surroundings,
  timeoutMs: number,
  isSo: (status: Status) => boolean,
): Promise<Status | null> {
  const endMs = performance.now() + timeoutMs;
  while (performance.now() < endMs) {
    if (surroundings.interrupted.aborted) throw new Failure("interrupted", "Interrupted");
    const status = await statusOf(surroundings);
    if (isSo(status)) return status;
    await pause(pollMs);
  }
  return null;
}

async function add(surroundings: Surroundings): Promise<void> {
  const { client, options, print } = surroundings;
  const [wanted = ""] = surroundings.arguments;
  const { Tag, Url, IsRegistered } = nodeNamed(await clusterOf(surroundings), wanted);
  if (IsRegistered) throw new Failure("conflict", `${Tag} is a node of the cluster already`);
  await client().send("/admin/cluster/node", { method: "PUT", query: { url: Url, tag: Tag } });
  const isAdded = ({ Nodes }: Status) =>
    Nodes.some((node) => node.Tag === Tag && node.IsRegistered);
  if ((await until(surroundings, memberMs, isAdded)) === null) {
    throw new Failure("failed", `${Tag} was accepted and is not of the cluster yet: look again`);
  }
  print(
    options.is("json")
      ? JSON.stringify({ Tag, Url })
      : `${Tag} is a node of the cluster; it gets copies of databases by 'jackdaw cluster spread'`,
  );
}

/** What it leads is handed over first, so that clients wait no longer than they must. */
async function remove(surroundings: Surroundings): Promise<void> {
  const { client, options, print } = surroundings;
  const [wanted = ""] = surroundings.arguments;
  const status = await clusterOf(surroundings);
  const node = nodeNamed(status, wanted);
  const { Tag, Url } = node;
  if (!node.IsRegistered) throw new Failure("missing", `${Tag} is no node of the cluster`);
  const copies = status.Databases.filter(({ Members }) => Members.some((one) => one.Tag === Tag));
  await confirmRemoval(surroundings, Tag, copies.length);
  if (node.IsHeard) await handOver(surroundings, status, Tag);
  await client().send("/admin/cluster/node", { method: "DELETE", query: { nodeTag: Tag } });
  const isRemoved = ({ Nodes }: Status) =>
    !Nodes.some((one) => one.Tag === Tag && one.IsRegistered);
  // A node that was removed itself need not answer any more.
  if (!node.IsHere && (await until(surroundings, memberMs, isRemoved)) === null) {
    throw new Failure("failed", `The removal of ${Tag} was accepted and is not seen yet`);
  }
  const fewer = copies.map(({ Name, Members }) => ({ Name, Copies: Members.length - 1 }));
  if (options.is("json")) print(JSON.stringify({ Tag, Url, Databases: fewer }));
  else for (const line of [`${Tag} is removed`, ...fewerCopies(fewer)]) print(line);
}

/** Nobody makes copies again by himself: an operator decides when. */
function fewerCopies(
  fewer: readonly { readonly Name: string; readonly Copies: number }[],
): string[] {
  if (fewer.length === 0) return [];
  const shown = fewer.slice(0, shownFewer).map(({ Name, Copies }) => `${Name} (${Copies})`);
  const rest = fewer.length - shown.length;
  const names = rest === 0 ? shown.join(", ") : `${shown.join(", ")} and ${rest} others`;
  return [
    `These databases have a copy less now: ${names}. 'jackdaw cluster spread --copies COUNT' makes them again`,
  ];
}

/** Its copies are no copies any more: its tag is typed again, or --yes is given. */
async function confirmRemoval(
  { options, streams }: Surroundings,
  tag: string,
  copies: number,
): Promise<void> {
  if (options.is("yes")) return;
  const what = `Node ${tag} and its copies of ${copies} databases would be of the cluster no more`;
  if (!canAsk(streams)) throw new Failure("usage", `${what}; add --yes to do it`);
  const typed = await ask(streams, `${what}. Type its tag: `);
  if (typed.toUpperCase() !== tag) {
    throw new Failure("failed", "That is another tag; nothing was changed");
  }
}

/** Gives the cluster a database that a node, the asked one if none is named, has for itself. */
async function adopt(surroundings: Surroundings): Promise<void> {
  const { client, options, print } = surroundings;
  const [name = "", wanted] = surroundings.arguments;
  const status = await clusterOf(surroundings);
  const { Tag } = nodeNamed(status, wanted ?? status.NodeTag);
  const query = { name, node: Tag };
  await client().send("/admin/cluster/adopt", { method: "POST", query });
  print(
    options.is("json")
      ? JSON.stringify({ Database: name, Node: Tag })
      : `${name} is a database of the cluster, with a copy on ${Tag}; other nodes get copies by PUT /admin/databases/node?name=${name}&node=…`,
  );
}

/** One database to one node, all that a node leads to the others, or as many as make the nodes lead equally many. */
async function transfer(surroundings: Surroundings): Promise<void> {
  const { options, print } = surroundings;
  const status = await clusterOf(surroundings);
  const from = options.text("from");
  const isEven = options.is("even");
  const [name, wanted] = surroundings.arguments;
  const ways = [name !== undefined && wanted !== undefined, from !== undefined, isEven];
  if (ways.filter((isGiven) => isGiven).length !== 1 || (name !== undefined && !ways[0])) {
    throw new Failure(
      "usage",
      "Give a database and a node, --from NODE for all that it leads, or --even for as many as make all nodes lead equally many",
    );
  }
  if (isEven) {
    const moved = await rebalance(surroundings, status);
    if (options.is("json")) print(JSON.stringify(moved));
    else if (moved.length === 0) print("The nodes lead as evenly as their copies allow");
    return;
  }
  if (from !== undefined) {
    const { Tag } = nodeNamed(status, from);
    const moved = await handOver(surroundings, status, Tag);
    if (options.is("json")) print(JSON.stringify(moved));
    else if (moved.length === 0) print(`${Tag} leads nothing`);
    return;
  }
  const database = status.Databases.find((one) => foldedName(one.Name) === foldedName(name ?? ""));
  if (database === undefined) {
    throw new Failure("missing", `There is no database '${name}'; 'jackdaw databases' lists them`);
  }
  const { Tag } = nodeNamed(status, wanted ?? "");
  await lead(surroundings, database.Name, Tag);
  const told = { Database: database.Name, Leader: Tag };
  print(options.is("json") ? JSON.stringify(told) : `${database.Name} is led by ${Tag}`);
}

/** Moves copies until all nodes that are heard have equally many; what is missing is made before. */
async function spread(surroundings: Surroundings): Promise<void> {
  const { options, print } = surroundings;
  const { Nodes, Databases } = await clusterOf(surroundings);
  const nodes = Nodes.filter((node) => node.IsRegistered && (node.IsHere || node.IsHeard));
  const placed = Databases.map(({ Name, Leader, Members }) => ({
    name: Name,
    leader: Leader,
    tags: Members.map(({ Tag }) => Tag),
    isSound:
      Leader !== null && Members.every(({ Role }) => Role === "leader" || Role === "follower"),
  }));
  const moves = copyMoves(
    nodes.map(({ Tag }) => Tag),
    placed,
    numberOr(options.text("copies"), 0, "--copies"),
  );
  const isJson = options.is("json");
  for (const move of moves) {
    if (!options.is("dry-run")) await moveCopy(surroundings, move);
    if (!isJson) print(moveText(move, options.is("dry-run")));
  }
  const odd = placed.filter(({ isSound }) => !isSound).map(({ name }) => name);
  if (odd.length > 0 && !isJson) {
    print(
      `Not moved, as not all of their copies are in order: ${odd.slice(0, shownFewer).join(", ")}`,
    );
  }
  const told = moves.map(({ name, from, to }) => ({ Database: name, From: from, To: to }));
  if (isJson) print(JSON.stringify(told));
  else if (moves.length === 0) print("The copies are spread as evenly as they can be");
}

function moveText({ name, from, to }: CopyMove, isDry: boolean): string {
  const verb = isDry ? "would have" : "has";
  return `${name} ${verb} a copy on ${to}${from === null ? "" : ` instead of ${from}`}`;
}

/** The new copy has everything before the other one is taken away. @throws Failure when it gets nothing, or that stays */
async function moveCopy(surroundings: Surroundings, { name, from, to }: CopyMove): Promise<void> {
  const has = (tag: string) => (status: Status) =>
    status.Databases.some(
      ({ Name, Members }) => Name === name && Members.some(({ Tag }) => Tag === tag),
    );
  const put = { method: "PUT", query: { name, node: to } };
  if (!(await askUntil(surroundings, "/admin/databases/node", put, has(to)))) {
    throw new Failure("failed", `'${name}' has got no copy on ${to} yet: look again`);
  }
  await copyIsCurrent(surroundings, name, to);
  if (from === null) return;
  const { Databases } = await statusOf(surroundings);
  if (Databases.some(({ Name, Leader }) => Name === name && Leader === from)) {
    await lead(surroundings, name, to);
  }
  const body = { DatabaseNames: [name], FromNodes: [from], HardDelete: true };
  const remove = { method: "DELETE", body };
  const isGone = (status: Status) => !has(from)(status);
  if (await askUntil(surroundings, "/admin/databases", remove, isGone)) return;
  throw new Failure(
    "failed",
    `'${name}' has a copy on ${to}, and still one on ${from}: is it locked against deletion?`,
  );
}

/** Asks until it is so; again where no node can do it at the moment, as while another one begins to lead. */
async function askUntil(
  surroundings: Surroundings,
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
    const { status } = await surroundings.client().send(path, { ...request, accepts: [503] });
    const isRefused = status === 503;
    if ((await until(surroundings, isRefused ? pollMs : memberMs, isSo)) !== null) return true;
    if (!isRefused || performance.now() > endMs) return false;
  }
}

/** A large one takes its time: it is waited for as long as its node is heard. */
async function copyIsCurrent(surroundings: Surroundings, name: string, tag: string): Promise<void> {
  const query = { name };
  for (;;) {
    const isHeard = ({ Nodes }: Status) => Nodes.some((one) => one.Tag === tag && one.IsHeard);
    if ((await until(surroundings, memberMs, isHeard)) === null) {
      throw new Failure(
        "failed",
        `${tag} is not heard any more: it has no whole copy of '${name}', whose other copies stay`,
      );
    }
    const { Nodes } = (await surroundings.client().json("/topology", { query })) as {
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

/** How many databases each node leads. */
function ledCounts({ Databases }: Status): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { Leader } of Databases) {
    if (Leader !== null) counts.set(Leader, (counts.get(Leader) ?? 0) + 1);
  }
  return counts;
}

/** Has others lead what `tag` leads. @throws Failure when nobody else can lead one of them */
async function handOver(surroundings: Surroundings, status: Status, tag: string): Promise<Moved[]> {
  const counts = ledCounts(status);
  const moved: Moved[] = [];
  for (const database of status.Databases.filter(({ Leader }) => Leader === tag)) {
    const to = successor(database, tag, counts);
    counts.set(to, (counts.get(to) ?? 0) + 1);
    moved.push(await led(surroundings, database.Name, to));
  }
  return moved;
}

/** Has nodes that lead few lead what others lead that have at least two more, until there are none. */
async function rebalance(surroundings: Surroundings, status: Status): Promise<Moved[]> {
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
      moved.push(await led(surroundings, database.Name, to));
      ledBy.set(database.Name, to);
      isDone = false;
    }
  }
  return moved;
}

/** As `lead`, and tells of it. */
async function led(surroundings: Surroundings, name: string, node: string): Promise<Moved> {
  await lead(surroundings, name, node);
  if (!surroundings.options.is("json")) surroundings.print(`${name} is led by ${node}`);
  return { Database: name, Leader: node };
}

/** @throws Failure when none can lead */
function successor(
  database: ListedDatabase,
  tag: string,
  counts: ReadonlyMap<string, number>,
): string {
  const [best] = ableMembers(database, tag, counts);
  if (best !== undefined) return best.Tag;
  throw new Failure(
    "conflict",
    `No other copy of '${database.Name}' can lead it now: 'jackdaw cluster status' tells why`,
  );
}

/** Who can lead instead of `tag`: of those that are up to date, the one first that leads least. */
function ableMembers(
  { Members }: ListedDatabase,
  tag: string,
  counts: ReadonlyMap<string, number>,
): Member[] {
  return Members.filter(({ Tag, Role }) => Tag !== tag && Role === "follower").sort(
    (one, other) =>
      Math.floor((one.Behind ?? 0) / behindMax) - Math.floor((other.Behind ?? 0) / behindMax) ||
      (counts.get(one.Tag) ?? 0) - (counts.get(other.Tag) ?? 0),
  );
}

/** Under writes every copy is a few messages behind: below this they count as equal. */
const behindMax = 1_000;

/** @throws Failure when that node does not lead in time */
async function lead(surroundings: Surroundings, name: string, node: string): Promise<void> {
  const query = { name, node };
  await surroundings.client().send("/admin/cluster/transfer", { method: "POST", query });
  const isLed = ({ Databases }: Status) =>
    Databases.some(({ Name, Leader }) => Name === name && Leader === node);
  if ((await until(surroundings, transferMs, isLed)) !== null) return;
  throw new Failure("failed", `${node} does not lead '${name}' after ${transferMs / 1000} s`);
}
