/**
 * The state of the cluster and of the copies of its databases, transfers of leadership, and adoption of standalone
 * databases. These routes are not part of RavenDB's interface.
 */
import { EngineError } from "../../../engine/base/errors.ts";
import type { ClusterHealth } from "../../cluster/cluster-health.ts";
import {
  clusterStatus,
  type DatabaseState,
  isHeard,
  type NodeState,
} from "../../cluster/cluster-status.ts";
import type { ClusterView } from "../../cluster/cluster-view.ts";
import { streamIdOf } from "../../cluster/nats/stream-settings.ts";
import { memberOf } from "../../cluster/topology.ts";
import { dateText } from "../../http/dates.ts";
import type { Exchange } from "../../http/exchange.ts";
import { databaseMissing } from "../../http/request-error.ts";
import type { Context, Route } from "../../routing/route.ts";
import { hasPermission } from "../../security/access.ts";
import { forwardToPeer } from "./peer-calls.ts";

export const clusterStatusRoutes: readonly Route[] = [
  {
    kind: "server",
    method: "GET",
    path: "/cluster/status",
    access: "valid-user",
    inPackage: true,
    handle: getStatus,
  },
  {
    kind: "server",
    method: "POST",
    path: "/admin/cluster/transfer",
    access: "operator",
    handle: postTransfer,
  },
  {
    kind: "server",
    method: "POST",
    path: "/admin/cluster/adopt",
    access: "operator",
    handle: postAdopt,
  },
];

/** Minimum rank of identities: operators. */
const operatorRank = 2;

/**
 * GET /cluster/status: nodes, leaders and the progress of each copy, as seen by this node. Returns the databases that the
 * caller may read; operators also get the state of NATS. Not part of RavenDB's interface.
 */
function getStatus(exchange: Exchange, { server }: Context): void {
  const { identity } = exchange;
  const { cluster, config } = server;
  if (cluster === undefined) {
    exchange.replyJson(200, { IsClustered: false, NodeTag: config.nodeTag });
    return;
  }
  const { tag, topologyId, leaderTag, epoch, index, nodes, databases } = clusterStatus(cluster);
  const shown = databases.filter(({ name }) => hasPermission(identity, name, 1));
  const own = cluster.ownDatabases().filter(({ name }) => hasPermission(identity, name, 1));
  exchange.replyJson(200, {
    IsClustered: true,
    NodeTag: tag,
    TopologyId: topologyId,
    Leader: leaderTag,
    Epoch: epoch,
    Index: index,
    Nodes: nodes.map(nodeRow),
    Databases: shown.map((database) => databaseRow(database, cluster.health)),
    OwnDatabases: own.map(({ name, failure }) => ({ Name: name, Failure: failure })),
    ...(identity.rank < operatorRank ? {} : { Nats: natsRow(cluster) }),
  });
}

function nodeRow(node: NodeState): object {
  return {
    Tag: node.tag,
    Url: node.url,
    IsHere: node.isHere,
    IsRegistered: node.isRegistered,
    IsHeard: isHeard(node),
    LastHeardInMs: node.heardMs === null ? null : Math.round(node.heardMs),
    Version: node.version,
  };
}

function databaseRow(database: DatabaseState, health: ClusterHealth | undefined): object {
  return {
    Name: database.name,
    Id: database.id,
    Leader: database.leaderTag,
    Epoch: database.epoch,
    Members: database.copies.map((copy) => ({
      Tag: copy.tag,
      Role: copy.role,
      Epoch: copy.epoch,
      Applied: copy.applied,
      Behind: copy.behind,
    })),
    Trouble: database.trouble,
    Gaps: health?.gaps(database.id) ?? 0,
  };
}

function natsRow(cluster: ClusterView): object | null {
  const { health } = cluster;
  if (health === undefined) return null;
  const { isConnected, server, version, replicas, restarts, scrub } = health.nats;
  const names = new Map(cluster.databases().map(({ registered: { id, name } }) => [id, name]));
  return {
    IsConnected: isConnected,
    Server: server,
    Version: version,
    Replicas: replicas,
    Restarts: restarts,
    Scrub:
      scrub === null
        ? null
        : {
            At: dateText(new Date(scrub.atMs)),
            Problems: scrub.problems.map((one) => ({
              Stream: one.stream,
              Database: names.get(streamIdOf(one.stream)?.databaseId ?? "") ?? null,
              Server: one.server,
              Kind: one.kind,
              Problem: one.problem,
            })),
            Failure: scrub.failure,
          },
  };
}

/**
 * POST /admin/cluster/transfer?name=…&node=B: transfers the leadership of a database to that node. 204 when the leader has
 * agreed; the transfer follows within seconds, and `GET /cluster/status` shows it. Not part of RavenDB's interface.
 *
 * @throws EngineError invalid-argument, invalid-operation
 */
async function postTransfer(exchange: Exchange, { server }: Context): Promise<void> {
  const { cluster } = server;
  const name = needed(exchange, "name");
  const node = needed(exchange, "node");
  if (cluster === undefined) {
    throw new EngineError(
      "invalid-operation",
      `This server is a single node, so no other node can lead '${name}'.`,
    );
  }
  const found = cluster.find(name);
  if (found === undefined) {
    throw databaseMissing(name);
  }
  const { registered, leaderTag } = found;
  if (!registered.members.includes(node)) {
    throw new EngineError(
      "invalid-argument",
      `Node '${node}' has no copy of '${registered.name}'. Nodes with copies: ${registered.members.join(", ")}.`,
    );
  }
  if (leaderTag !== node) await cluster.transfer(registered.name, node);
  exchange.reply(204);
}

/**
 * POST /admin/cluster/adopt?name=…&node=B: moves a standalone database of that node, or of this one without `node`, into the
 * cluster with all its data and one copy there. 200 `{"Name","Node"}` when it has a leader. Not part of RavenDB's interface.
 *
 * @throws EngineError invalid-argument, invalid-operation, database-missing, database-exists
 */
async function postAdopt(exchange: Exchange, { server }: Context): Promise<void> {
  const { cluster } = server;
  const wanted = needed(exchange, "name");
  if (cluster === undefined) {
    throw new EngineError(
      "invalid-operation",
      `This server is a single node, so no cluster can adopt '${wanted}'.`,
    );
  }
  const node = (exchange.query.get("node") || cluster.tag).toUpperCase();
  if (memberOf(cluster, node) === undefined) {
    throw new EngineError("invalid-argument", `The node ${node} does not exist in the cluster.`);
  }
  if (node !== cluster.tag) {
    await forwardToPeer(exchange, server, node);
    return;
  }
  const { name } = await cluster.adoptDatabase(wanted, [node]);
  exchange.changedNames = [name];
  exchange.replyJson(200, { Name: name, Node: node });
}

/** @throws EngineError invalid-argument */
function needed(exchange: Exchange, parameter: string): string {
  const value = exchange.query.get(parameter);
  if (value) return value;
  throw new EngineError("invalid-argument", `The parameter '${parameter}' is missing.`);
}
