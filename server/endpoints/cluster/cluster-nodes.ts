/**
 * The nodes of the cluster: additions, removals, leaders, and history. Shapes and texts are those of RavenDB 7.2.7, as far
 * as the clusters are alike: here NATS replicates the data, so all nodes are members, none is a watcher, and copies are
 * never moved automatically.
 */
import { EngineError } from "../../../engine/base/errors.ts";
import { nodeTagPattern } from "../../../engine/base/names.ts";
import type { ClusterView } from "../../cluster/cluster-view.ts";
import { isHeard, lossBy, memberOf, ownState } from "../../cluster/topology.ts";
import { dateText, unzonedDateText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { JsonObject } from "../../http/json-body.ts";
import type { Context, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { replyMetadata } from "../server/server-info.ts";
import { callPeer } from "./peer-calls.ts";

const admin = "/admin/cluster";
const ofOperator = { kind: "server", access: "operator" } as const;
const ofAdmin = { kind: "server", access: "cluster-admin" } as const;

export const clusterNodeRoutes: readonly Route[] = [
  { ...ofAdmin, method: "PUT", path: `${admin}/node`, handle: addNode },
  { ...ofAdmin, method: "DELETE", path: `${admin}/node`, handle: removeNode },
  { ...ofOperator, method: "POST", path: `${admin}/bootstrap`, handle: bootstrap },
  { ...ofAdmin, method: "POST", path: `${admin}/demote`, handle: demote },
  { ...ofAdmin, method: "POST", path: `${admin}/promote`, handle: promote },
  { ...ofOperator, method: "POST", path: `${admin}/reelect`, handle: reelect },
  { ...ofOperator, method: "GET", path: `${admin}/log`, handle: getLog },
  {
    ...ofOperator,
    method: "GET",
    path: "/admin/debug/cluster/history-logs",
    handle: getHistory,
  },
  {
    ...ofOperator,
    method: "GET",
    path: "/admin/debug/node/state-change-history",
    handle: getStates,
  },
  { ...ofOperator, method: "GET", path: "/admin/debug/node/engine-logs", handle: getEngineLogs },
  {
    ...ofOperator,
    method: "GET",
    path: "/admin/debug/node/remote-connections",
    handle: getRemoteConnections,
  },
  { ...ofOperator, method: "GET", path: "/admin/debug/node/ping", handle: pingNodes },
  { ...ofOperator, method: "GET", path: `${admin}/maintenance-stats`, handle: getStats },
  { ...ofOperator, method: "GET", path: `${admin}/observer/decisions`, handle: getDecisions },
  { ...ofOperator, method: "POST", path: `${admin}/observer/suspend`, handle: suspend },
];

const commandVersion = 72_001;

/** @throws EngineError invalid-operation on a single node */
function clusterOf({ cluster }: ServerServices): ClusterView {
  if (cluster !== undefined) return cluster;
  throw new EngineError(
    "invalid-operation",
    "This server is a single node. Start it, and each of the other nodes, with Cluster.NodeTag and the same Cluster.Nats.Url (or Cluster.Routes). They then form a cluster.",
  );
}

/** PUT /admin/cluster/node?url=…&tag=…: registers a node that sends heartbeats and was removed before; 204 */
async function addNode(exchange: Exchange, { server }: Context): Promise<void> {
  const { query } = exchange;
  const url = addressOf(query.required("url"));
  const wanted = query.get("tag") || undefined;
  if (wanted !== undefined) checkTag(wanted);
  const cluster = clusterOf(server);
  const known = cluster.members().find((one) => addressOf(one.url) === url || one.tag === wanted);
  if (known !== undefined) {
    throw new EngineError(
      "invalid-operation",
      `Can't add a new node on ${url}: node ${known.tag}, at ${known.url}, is already in this cluster.`,
    );
  }
  const found = cluster.strangers().find((one) => addressOf(one.url) === url || one.tag === wanted);
  if (found === undefined) {
    throw new EngineError(
      "invalid-operation",
      `No node ${wanted === undefined ? "" : `${wanted} `}at ${url} sends heartbeats. Start it with a unique Cluster.NodeTag, with PublicServerUrl=${url}, and with the Cluster.Nats.Url or Cluster.Routes of this cluster. It then joins automatically, or, if it was removed before, with this request.`,
    );
  }
  if (wanted !== undefined && found.tag !== wanted) {
    throw new EngineError(
      "invalid-operation",
      `The node at ${url} has the tag ${found.tag}, by its setting Cluster.NodeTag, so it cannot be added as ${wanted}.`,
    );
  }
  await cluster.addMember(found.tag);
  exchange.changedNames = [found.tag];
  exchange.reply(204);
}

/** Returns the address without a trailing slash. @throws EngineError invalid-operation */
function addressOf(url: string): string {
  const isWeb = /^https?:\/\//i.test(url) && URL.canParse(url);
  if (isWeb) return new URL(url).origin;
  throw new EngineError("invalid-operation", `Given node URL '${url}' is not in a correct format.`);
}

/** @throws EngineError invalid-argument */
function checkTag(tag: string): void {
  if (nodeTagPattern.test(tag)) return;
  throw new EngineError(
    "invalid-argument",
    `Can't set the node tag to '${tag}'. Node tag must contain only upper case letters, at most four.`,
  );
}

/** DELETE /admin/cluster/node?nodeTag=…: removes a node and its copies from the cluster, until it is added again; 204 */
async function removeNode(exchange: Exchange, { server }: Context): Promise<void> {
  const tag = exchange.query.required("nodeTag");
  checkTag(tag);
  const cluster = clusterOf(server);
  if (memberOf(cluster, tag) === undefined) {
    throw new EngineError(
      "invalid-operation",
      `Was requested to remove node=${tag} from the topology but it is not contained by the topology.`,
    );
  }
  for (const state of cluster.databases()) {
    if (!state.registered.members.includes(tag)) continue;
    const loss = lossBy(cluster, state, [tag]);
    if (loss !== null) {
      throw new EngineError(
        "invalid-operation",
        `${loss} Add a copy elsewhere with PUT /admin/databases/node, and wait until it is a Member; or delete the database.`,
      );
    }
  }
  await cluster.removeMember(tag);
  exchange.changedNames = [tag];
  exchange.reply(204);
}

/** POST /admin/cluster/bootstrap: 204, no effect: a server is a cluster of one node, or joins a cluster automatically */
function bootstrap(exchange: Exchange): void {
  exchange.reply(204);
}

/** POST /admin/cluster/demote?nodeTag=…: refused, because watchers do not exist */
function demote(exchange: Exchange, { server }: Context): never {
  const tag = exchange.query.required("nodeTag");
  if (!tagsOf(server).includes(tag)) {
    throw new EngineError(
      "invalid-operation",
      `Failed to demote node ${tag} because ${tag} is not a voter in the cluster topology`,
    );
  }
  throw new EngineError(
    "not-supported",
    `Failed to demote node ${tag}: all nodes of this cluster are members. The NATS servers vote, not the nodes. To remove copies of databases from ${tag}, use DELETE /admin/databases with FromNodes, or remove the node.`,
  );
}

/** POST /admin/cluster/promote?nodeTag=…: refused, because watchers do not exist */
function promote(exchange: Exchange): never {
  const tag = exchange.query.required("nodeTag");
  throw new EngineError(
    "invalid-operation",
    `Failed to promote node ${tag} because ${tag} is not a watcher in the cluster topology`,
  );
}

/** POST /admin/cluster/reelect: refused on a single node; in a cluster, each database has its own leader */
function reelect(_exchange: Exchange, { server }: Context): never {
  if (tagsOf(server).length < 2) {
    throw new EngineError(
      "invalid-operation",
      "Cannot step down when I'm the only voter in the cluster",
    );
  }
  throw new EngineError(
    "not-supported",
    "Each database has its own leader, and another node takes over when the leader stops. POST /admin/databases/reorder makes the first listed node the leader.",
  );
}

function tagsOf({ cluster, config }: ServerServices): string[] {
  return cluster === undefined ? [config.nodeTag] : cluster.members().map(({ tag }) => tag);
}

/** GET /admin/cluster/log: the last changes of the cluster's values, newest first, by their keys */
function getLog(exchange: Exchange, { server }: Context): void {
  const { cluster, clusterHistory, startedAt } = server;
  const commands = [...(clusterHistory?.commands ?? [])].reverse();
  const index = cluster?.index ?? server.commandIndex.last;
  const term = cluster?.epoch ?? 1;
  const sinceMs = clusterHistory?.current.atMs ?? startedAt.getTime();
  const lastMs = commands[0]?.atMs;
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    Role: cluster === undefined ? "Leader" : ownState(cluster),
    Term: term,
    CommandsVersion: { Cluster: commandVersion, Local: commandVersion },
    Since: dateText(new Date(sinceMs)),
    Log: {
      LastAppendedTime: null,
      LastCommitedTime: lastMs === undefined ? null : dateText(new Date(lastMs)),
      CommitIndex: index,
      LastTruncatedIndex: commands.at(-1)?.index ?? index,
      LastTruncatedTerm: commands.at(-1)?.term ?? term,
      FirstEntryIndex: commands.at(-1)?.index ?? index,
      LastLogEntryIndex: index,
      TotalEntries: index,
      CriticalError: null,
      Logs: commands.map((one) => ({
        Term: one.term,
        Index: one.index,
        SizeInBytes: one.bytes,
        CommandType: one.command,
        Flags: "StateMachineCommand",
        CreateAt: unzonedDateText(new Date(one.atMs)),
        Entry: null,
      })),
    },
    ElectionReason: clusterHistory?.current.reason ?? onlyOne,
    ConnectionToPeers: cluster === undefined ? [] : connectionsOf(cluster),
  });
}

const onlyOne = "I'm the only one in the cluster, so I'm the leader";

function connectionsOf(cluster: ClusterView): JsonObject[] {
  return cluster
    .members()
    .filter(({ tag }) => tag !== cluster.tag)
    .map(({ tag, url }) => ({
      Destination: tag,
      Url: url,
      Connected: isHeard(cluster, tag),
      LastHeardInMs: heardMs(cluster, tag),
      Version: cluster.lastHeartbeat(tag)?.version ?? null,
    }));
}

function heardMs(cluster: ClusterView, tag: string): number | null {
  const ageMs = cluster.lastHeartbeat(tag)?.ageMs;
  return ageMs === undefined ? null : Math.round(ageMs);
}

/** GET /admin/debug/cluster/history-logs: the last changes of the cluster's values, oldest first */
function getHistory(exchange: Exchange, { server }: Context): void {
  const commands = server.clusterHistory?.commands ?? [];
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    RachisLogHistory: commands.map((one) => ({
      Date: unzonedDateText(new Date(one.atMs)),
      Guid: null,
      Index: one.index,
      Term: one.term,
      CommittedTerm: one.term,
      Type: one.command,
      State: "Committed",
      Result: null,
      ExceptionType: null,
      ExceptionMessage: null,
    })),
  });
}

/** GET /admin/debug/node/state-change-history: the past states of this node in the cluster, oldest first */
function getStates(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    States: statesOf(server),
  });
}

/** GET /admin/debug/node/engine-logs: as state-change-history, without times of operations */
function getEngineLogs(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    TimingTracking: {},
    StateChangeTracking: statesOf(server),
  });
}

/** GET /admin/debug/node/remote-connections: an empty list, because nodes do not communicate by RavenDB's protocol */
function getRemoteConnections(exchange: Exchange, { server }: Context): void {
  exchange.replyJson(200, { "@metadata": replyMetadata(server), "Remote-Connections": [] });
}

function statesOf({ clusterHistory, startedAt }: ServerServices): string[] {
  const text = (atMs: number) => `${new Date(atMs).toISOString().slice(0, 19).replace("T", " ")}Z`;
  if (clusterHistory === undefined) {
    return [`${text(startedAt.getTime())} ${onlyOne} Passive->Leader at term 1`];
  }
  return clusterHistory.states.map(
    ({ atMs, reason, previous, state, term }) =>
      `${text(atMs)} ${reason} ${previous}->${state} at term ${term}`,
  );
}

/** GET /admin/debug/node/ping: checks whether each node of the cluster responds, and how fast */
async function pingNodes(exchange: Exchange, { server }: Context): Promise<void> {
  const { cluster, address } = server;
  const members = cluster?.members() ?? [{ tag: server.config.nodeTag, url: address.url }];
  const Result = await Promise.all(
    members.map(async ({ tag, url }) => {
      const startedMs = performance.now();
      const problem = tag === cluster?.tag ? null : await silenceOf(exchange, server, tag);
      const timeMs = Math.round(performance.now() - startedMs);
      return { Url: url, NodeTag: tag, SetupAlive: { Time: timeMs, Error: problem } };
    }),
  );
  exchange.replyJson(200, { "@metadata": replyMetadata(server), Result });
}

/** Returns the reason why a node does not respond, or null. */
async function silenceOf(
  exchange: Exchange,
  server: ServerServices,
  tag: string,
): Promise<string | null> {
  if (server.cluster === undefined) return null;
  try {
    const { status } = await callPeer(exchange, server, tag, {
      method: "GET",
      target: "/setup/alive",
    });
    return status < 400 ? null : `It responds with status ${status}.`;
  } catch (error) {
    if (error instanceof EngineError) return error.message;
    throw error;
  }
}

/** GET /admin/cluster/maintenance-stats: the last heartbeat of each node, and the progress of its copies */
function getStats(exchange: Exchange, { server }: Context): void {
  const { cluster } = server;
  const tags = tagsOf(server);
  const rows = tags.map((tag) => [
    tag,
    cluster === undefined || tag === cluster.tag ? ownStats(server) : statsOf(cluster, tag),
  ]);
  exchange.replyJson(200, Object.fromEntries(rows));
}

function ownStats(server: ServerServices): JsonObject {
  const now = dateText(new Date());
  const report = server.databases.opened().map((database) => [
    database.name,
    {
      Name: database.name,
      NodeName: server.config.nodeTag,
      DatabaseId: database.databaseId,
      Status: "Loaded",
      LastEtag: database.lastEtag,
      NumberOfDocuments: database.documents.count,
      DatabaseChangeVector: database.changeVector,
      Error: null,
    },
  ]);
  return statsRow({ report: Object.fromEntries(report), at: now, error: null });
}

function statsOf(cluster: ClusterView, tag: string): JsonObject {
  const heartbeat = cluster.lastHeartbeat(tag);
  const report = cluster.databases().flatMap(({ registered: { name, id } }) => {
    const copy = heartbeat?.databases.get(id);
    if (copy === undefined) return [];
    const { role, epoch, applied } = copy;
    return [[name, { Name: name, NodeName: tag, Role: role, Epoch: epoch, Applied: applied }]];
  });
  const heard = heartbeat === undefined ? null : dateText(new Date(Date.now() - heartbeat.ageMs));
  const error = isHeard(cluster, tag) ? null : `Node ${tag} has sent no heartbeats recently.`;
  return statsRow({ report: Object.fromEntries(report), at: heard, error });
}

function statsRow({
  report,
  at,
  error,
}: {
  readonly report: JsonObject;
  readonly at: string | null;
  readonly error: string | null;
}): JsonObject {
  const names = Object.keys(report);
  return {
    Report: report,
    LastGoodDatabaseStatus: Object.fromEntries(names.map((name) => [name, at])),
    Status: error === null ? "Ok" : "Timeout",
    Error: error,
    UpdateDateTime: at,
    LastSuccessfulUpdateDateTime: at,
  };
}

/** GET /admin/cluster/observer/decisions: past leaders of databases, as observed by this node; empty on a single node */
function getDecisions(exchange: Exchange, { server }: Context): void {
  const { cluster, clusterHistory } = server;
  const decisions = clusterHistory?.decisions ?? [];
  exchange.replyJson(200, {
    "@metadata": replyMetadata(server),
    LeaderNode: cluster === undefined ? server.config.nodeTag : cluster.leaderTag,
    Term: cluster?.epoch ?? 1,
    Suspended: false,
    Iteration: decisions.at(-1)?.index ?? 0,
    ObserverLog: decisions.map(({ atMs, index, database, message }) => ({
      Date: dateText(new Date(atMs)),
      Iteration: index,
      Database: database,
      Message: message,
    })),
  });
}

/** POST /admin/cluster/observer/suspend?value=false: 204; true is refused, because copies are never moved automatically */
function suspend(exchange: Exchange): void {
  exchange.query.required("value");
  if (exchange.query.bool("value", false)) {
    throw new EngineError(
      "not-supported",
      "This cluster has no observer to suspend: copies of databases are moved only on request, and the nodes elect leaders themselves.",
    );
  }
  exchange.reply(204);
}
