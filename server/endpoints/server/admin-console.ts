/** Scripts of an administrator, which compute a value: see engine/scripting/console-script.ts. */
import { EngineError } from "../../../engine/base/errors.ts";
import { runConsoleScript } from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import type { Context, Route } from "../../routing/route.ts";

export const adminConsoleRoutes: readonly Route[] = [
  {
    kind: "server",
    method: "POST",
    path: "/admin/console",
    access: "cluster-admin",
    handle: postScript,
  },
];

/** POST /admin/console?serverScript=true or ?database: the value that a script returns; it reads and changes nothing of the server */
async function postScript(exchange: Exchange, { server }: Context): Promise<void> {
  const { query } = exchange;
  const name = query.get("database");
  if (name === undefined && !query.bool("serverScript", false)) {
    throw new EngineError(
      "invalid-operation",
      "'database' query string parameter not found, and 'serverScript' query string is not found. Don't know what to apply this script on",
    );
  }
  const database = name === undefined ? undefined : await server.databases.find(name);
  if (name !== undefined && database === undefined) {
    throw new EngineError("database-missing", `Database '${name}' does not exist.`);
  }
  const { Script } = await jsonBody(exchange);
  if (typeof Script !== "string") {
    throw new EngineError("json-invalid", "Field Script was not found.");
  }
  const result = runConsoleScript(Script, database?.name ?? null, Date.now());
  exchange.replyJson(200, Buffer.from(`{"Result":${result}}`));
}
