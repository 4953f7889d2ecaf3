/**
 * Custom sorters and analyzers, for one database or all. In RavenDB they are .NET code, which does not run here: the
 * lists are empty, and a put is refused as code that does not compile, except that of an empty list. Texts are those of
 * RavenDB 7.2.7 where it has any.
 */

import type { JsonObject } from "../../../engine/base/json/json-object.ts";
import { EngineError, type ErrorCode } from "../../../engine/engine.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { noContentType } from "../../http/response.ts";
import type { Route } from "../../routing/route.ts";

interface Kind {
  readonly path: string;
  /** The key of the list in request and reply bodies. */
  readonly key: string;
  readonly name: string;
  readonly code: ErrorCode;
}

const kinds: readonly Kind[] = [
  { path: "sorters", key: "Sorters", name: "Sorter", code: "sorter-compilation" },
  { path: "analyzers", key: "Analyzers", name: "Analyzer", code: "analyzer-compilation" },
];

export const sorterAndAnalyzerRoutes: readonly Route[] = kinds.flatMap((kind): Route[] => {
  const { path } = kind;
  const database = "/databases/:database";
  /** GET sorters, analyzers: none, ever */
  function listNone(exchange: Exchange): void {
    exchange.replyJson(200, { [kind.key]: [] });
  }
  /** PUT admin/sorters, admin/analyzers: refused as code that does not compile */
  function refusePut(exchange: Exchange): Promise<void> {
    return refuse(exchange, kind);
  }
  return [
    {
      kind: "database",
      method: "GET",
      path: `${database}/${path}`,
      access: "read",
      handle: listNone,
    },
    { kind: "server", method: "GET", path: `/${path}`, access: "valid-user", handle: listNone },
    {
      kind: "database",
      method: "PUT",
      path: `${database}/admin/${path}`,
      access: "database-admin",
      handle: refusePut,
    },
    {
      kind: "database",
      method: "DELETE",
      path: `${database}/admin/${path}`,
      access: "database-admin",
      handle: deleteNone,
    },
    {
      kind: "server",
      method: "PUT",
      path: `/admin/${path}`,
      access: "operator",
      handle: refusePut,
    },
    {
      kind: "server",
      method: "DELETE",
      path: `/admin/${path}`,
      access: "operator",
      handle: deleteNone,
    },
  ];
});

/** PUT admin/sorters `{"Sorters":[{"Name","Code"}]}`. An empty list: 201. @throws EngineError otherwise */
async function refuse(exchange: Exchange, { key, name, code }: Kind): Promise<void> {
  const list = (await jsonBody(exchange))[key];
  if (!Array.isArray(list)) {
    throw new EngineError(
      "invalid-argument",
      `Request should have a property name '${key}' which is mandatory.`,
    );
  }
  if (list.length === 0) {
    exchange.reply(201, { "content-type": noContentType });
    return;
  }
  const [first] = list as (JsonObject | null)[];
  const given = first?.["Name"];
  if (typeof given !== "string" || given.trim() === "") {
    throw new EngineError("invalid-argument", `${name} must have a 'Name' field.`);
  }
  const source = first?.["Code"];
  if (typeof source !== "string" || source.trim() === "") {
    throw new EngineError("invalid-argument", `${name} must have a 'Code' field.`);
  }
  throw new EngineError(
    code,
    `Could not compile ${name.toLowerCase()} '${given}': it is .NET code, which this server does not run.`,
  );
}

/** DELETE admin/sorters?name=…: 204, a no-op */
function deleteNone(exchange: Exchange): void {
  exchange.query.required("name");
  exchange.reply(204);
}
