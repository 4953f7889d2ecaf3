/** Requests between the nodes of a cluster: changes of shared values, and transfers of leadership. Not for clients. */
import { EngineError } from "../../../engine/engine.ts";
import type { ValueChange } from "../../cluster/cluster-view.ts";
import type { Exchange } from "../../http/exchange.ts";
import { type JsonObject, jsonBody } from "../../http/json-body.ts";
import type { Context, Route } from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";

export const clusterValueRoutes: readonly Route[] = [
  {
    kind: "server",
    method: "POST",
    path: "/cluster/values",
    access: "cluster-node",
    handle: changeValues,
  },
  {
    kind: "server",
    method: "POST",
    path: "/cluster/stand",
    access: "cluster-node",
    handle: stand,
  },
];

/** POST /cluster/values `{"Changes":[{"key","expected"?,"value"}]}`: makes changes on the leading node */
async function changeValues(exchange: Exchange, { server }: Context): Promise<void> {
  const changes = changesOf(await jsonBody(exchange));
  try {
    exchange.replyJson(200, { Index: await clusterOf(server).changeHere(changes) });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    exchange.replyJson(200, { Code: error.code, Message: error.message });
  }
}

/** POST /cluster/stand `{"Name":…}`: this node tries to lead the database */
async function stand(exchange: Exchange, { server }: Context): Promise<void> {
  const { Name: name } = await jsonBody(exchange);
  if (typeof name !== "string") throw new EngineError("invalid-argument", "'Name' is missing.");
  clusterOf(server).standFor(name);
  exchange.replyJson(200, {});
}

function clusterOf({ cluster }: ServerServices) {
  if (cluster === undefined) {
    throw new EngineError("invalid-operation", "This server is not a node of a cluster.");
  }
  return cluster;
}

/** @throws EngineError invalid-argument */
function changesOf({ Changes: sent }: JsonObject): ValueChange[] {
  const isChange = (one: unknown): one is ValueChange => {
    const { key, expected, value } = (one ?? {}) as Readonly<Record<string, unknown>>;
    const isText = (text: unknown) => text === null || typeof text === "string";
    return typeof key === "string" && isText(value) && (expected === undefined || isText(expected));
  };
  if (Array.isArray(sent) && sent.every(isChange)) return sent;
  throw new EngineError("invalid-argument", "'Changes' is not a list of changes.");
}
