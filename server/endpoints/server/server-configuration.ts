/** The configuration of all clients, and the server's own settings with their sources. */
import {
  clientConfigurationKey,
  keptClientConfiguration,
  serverClientConfiguration,
} from "../../databases/client-configuration.ts";
import type { Exchange } from "../../http/exchange.ts";
import { jsonBody } from "../../http/json-body.ts";
import { noContentType } from "../../http/response.ts";
import type { Context, Route } from "../../routing/route.ts";
import { listSettings } from "../../settings/setting-list.ts";
import { type SettingName, settings } from "../../settings/setting-table.ts";
import { replyMetadata } from "./server-info.ts";

export const serverConfigurationRoutes: readonly Route[] = [
  {
    kind: "server",
    method: "GET",
    path: "/configuration/client",
    access: "valid-user",
    inPackage: true,
    handle: getClientConfiguration,
  },
  {
    kind: "server",
    method: "PUT",
    path: "/admin/configuration/client",
    access: "operator",
    handle: putClientConfiguration,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/configuration/settings",
    access: "cluster-admin",
    handle: getSettings,
  },
];

/** GET /configuration/client: the configuration of all clients; 404 until one is set, which clients read as "none" */
function getClientConfiguration(exchange: Exchange, { server }: Context): void {
  const configuration = serverClientConfiguration(server.values);
  if (configuration === undefined) exchange.reply(404);
  else exchange.replyJson(200, configuration);
}

/** PUT /admin/configuration/client: sets the configuration of clients of all databases; 201 */
async function putClientConfiguration(exchange: Exchange, { server }: Context): Promise<void> {
  const sent = await jsonBody(exchange);
  const before = serverClientConfiguration(server.values)?.["Etag"];
  const kept = keptClientConfiguration(sent, Number(before ?? 0) + 1);
  await server.values.put(clientConfigurationKey, JSON.stringify(kept));
  exchange.reply(201, { "content-type": noContentType });
}

/**
 * GET /admin/configuration/settings: each setting in RavenDB's shape, and also its name, value and source; secrets are
 * masked.
 */
function getSettings(exchange: Exchange, { server }: Context): void {
  const { given } = server.config;
  const ofServer = listSettings(given, {}, true).filter((one) => one.DatabaseValues === null);
  const Settings = ofServer.map(({ Metadata, ServerValues }) => {
    const name = Metadata.Keys[0] as SettingName;
    const setting = settings[name];
    const one = given.get(name);
    const value = one?.value ?? setting.fallback ?? null;
    const isSecret = setting.isSecret === true && value !== null;
    const Source = one?.source ?? "default";
    return { Name: name, Value: isSecret ? "***" : value, Source, Metadata, ServerValues };
  });
  exchange.replyJson(200, { "@metadata": replyMetadata(server), Settings });
}
