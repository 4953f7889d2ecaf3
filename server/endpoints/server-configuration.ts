/** Settings that reach all clients, and the server's own settings with their sources. */
import { EngineError } from "../../engine/errors.ts";
import type { SettingName } from "../config.ts";
import { settingTable } from "../config.ts";
import type { Exchange } from "../exchange.ts";
import { parseObject } from "../json-body.ts";
import type { Context, Route } from "../route.ts";
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

interface ClientConfiguration {
  readonly Etag?: unknown;
  readonly IdentityPartsSeparator?: unknown;
}

const clientKey = "server/client-configuration";

/** 404 until one was put; clients read that as "none". */
function getClientConfiguration(exchange: Exchange, { server }: Context): void {
  const text = server.values.get(clientKey);
  if (text === undefined) exchange.reply(404);
  else exchange.replyJson(200, text);
}

async function putClientConfiguration(exchange: Exchange, { server }: Context): Promise<void> {
  const given: ClientConfiguration = parseObject(await exchange.body());
  const before = server.values.get(clientKey);
  const etag = before === undefined ? 0 : (JSON.parse(before) as { Etag: number }).Etag;
  const { Etag: _sent, ...configuration } = given;
  const separator = configuration.IdentityPartsSeparator;
  if (separator === "|" || (typeof separator === "string" && separator.length !== 1)) {
    throw new EngineError(
      "invalid-argument",
      "IdentityPartsSeparator must be one character, not '|'",
    );
  }
  await server.values.put(clientKey, JSON.stringify({ Etag: etag + 1, ...configuration }));
  exchange.reply(201);
}

/** Each setting with its value and where that came from; secrets are not shown. */
function getSettings(exchange: Exchange, { server }: Context): void {
  const { given } = server.config;
  const Settings = Object.entries(settingTable).map(([name, setting]) => {
    const one = given.get(name as SettingName);
    const value = one?.value ?? setting.fallback ?? null;
    const isSecret = "isSecret" in setting && value !== null;
    return { Name: name, Value: isSecret ? "***" : value, Source: one?.source ?? "default" };
  });
  exchange.replyJson(200, { "@metadata": replyMetadata(server), Settings });
}
