/** The nodes of a database, in the shapes of the routes that return them: of one copy here, or of a cluster. */
import type { Database } from "../../../engine/engine.ts";
import type { ClusterView, ReplicaState } from "../../cluster/cluster-view.ts";
import { type DatabaseNode, nodesOf } from "../../cluster/topology.ts";
import { type DatabaseNodes, onlyNode } from "../../databases/database-record.ts";
import type { JsonObject } from "../../http/json-body.ts";
import { interfaceVersion } from "../../http/response.ts";
import type { ServerServices } from "../../routing/services.ts";

/** Returns the state of a database in the cluster, or undefined on a single node or for a standalone database. */
function stateOf(server: ServerServices, name: string): ReplicaState | undefined {
  return server.cluster?.find(name);
}

/** Returns the nodes for the record of a database. */
export function recordNodes(server: ServerServices, database: Database): DatabaseNodes {
  const { cluster } = server;
  const state = cluster?.find(database.name);
  if (cluster === undefined || state === undefined) return onlyNode(database);
  return clusterNodes(cluster, state);
}

/** Returns all nodes as members, for a database that was just created and has no reports yet. */
export function createdNodes(server: ServerServices, database: Database): DatabaseNodes {
  const state = stateOf(server, database.name);
  if (state === undefined) return onlyNode(database);
  const { members, index } = state.registered;
  return { ...onlyNode(database), members, index, term: state.epoch };
}

function clusterNodes(cluster: ClusterView, state: ReplicaState): DatabaseNodes {
  const nodes = nodesOf(cluster, state);
  const demoted = nodes.flatMap(({ tag, demotion }) =>
    demotion === null ? [] : [{ tag, ...demotion }],
  );
  return {
    members: tagsOf(nodes, "Member"),
    promotables: tagsOf(nodes, "Promotable"),
    rehabs: tagsOf(nodes, "Rehab"),
    promotablesStatus: Object.fromEntries(demoted.map(({ tag, status }) => [tag, status])),
    demotionReasons: Object.fromEntries(demoted.map(({ tag, reason }) => [tag, reason])),
    index: state.registered.index,
    term: state.epoch,
  };
}

function tagsOf(nodes: readonly DatabaseNode[], role: DatabaseNode["role"]): string[] {
  return nodes.filter((node) => node.role === role).map(({ tag }) => tag);
}

/** Returns `NodesTopology` of lists of databases. `url` is the address of this server that the caller uses. */
export function nodesTopology(
  server: ServerServices,
  database: Pick<Database, "name" | "nodeTag">,
  url: string,
): JsonObject {
  const { cluster } = server;
  const state = cluster?.find(database.name);
  if (cluster !== undefined && state !== undefined) return clusterNodesTopology(cluster, state);
  const { nodeTag } = database;
  return {
    Members: [{ NodeTag: nodeTag, NodeUrl: url, ResponsibleNode: null }],
    Promotables: [],
    Rehabs: [],
    Status: { [nodeTag]: { LastStatus: "Ok", LastError: null } },
    PriorityOrder: [],
    DynamicNodesDistribution: false,
  };
}

export function clusterNodesTopology(cluster: ClusterView, state: ReplicaState): JsonObject {
  const nodes = nodesOf(cluster, state);
  const rows = (role: DatabaseNode["role"]) =>
    nodes
      .filter((node) => node.role === role)
      .map(({ tag, url }) => ({
        NodeTag: tag,
        NodeUrl: url,
        ResponsibleNode: role === "Member" ? null : state.leaderTag,
      }));
  const statusOf = ({ tag, demotion }: DatabaseNode) => [
    tag,
    { LastStatus: demotion?.status ?? "Ok", LastError: demotion?.reason ?? null },
  ];
  return {
    Members: rows("Member"),
    Promotables: rows("Promotable"),
    Rehabs: rows("Rehab"),
    Status: Object.fromEntries(nodes.map(statusOf)),
    PriorityOrder: [],
    DynamicNodesDistribution: false,
  };
}

/** Returns the reply to `GET /topology?name`: clients try `Nodes` in this order. */
export function clientTopology(cluster: ClusterView, state: ReplicaState): JsonObject {
  const row = ({ tag, url, role }: DatabaseNode) => ({
    Url: url,
    ClusterTag: tag,
    ServerRole: role,
    Database: state.registered.name,
    ServerVersion: interfaceVersion,
  });
  // The Node client ignores `Promotables`, and refreshes only after the etag grows, so promotable nodes are listed last.
  return { Promotables: [], Nodes: nodesOf(cluster, state).map(row), Etag: state.topologyEtag };
}

/** Returns the addresses of the nodes with a database, or undefined if it does not belong to a cluster. */
export function addressesOf(server: ServerServices, database: Database): string[] | undefined {
  const { cluster } = server;
  const state = cluster?.find(database.name);
  if (cluster === undefined || state === undefined) return undefined;
  return nodesOf(cluster, state).map(({ url }) => url);
}

/** Returns the number of copies of a database; 1 on a single node. */
export function copyCount(server: ServerServices, name: string): number {
  return stateOf(server, name)?.registered.members.length ?? 1;
}
