/**
 * Zip archives with the diagnostics of this node, for operators or support cases; and the configuration package, which
 * also holds the admin's client certificate and key.
 *
 * Invariants:
 * - Diagnostics are replies of routes, requested with the caller's rights: they reveal nothing that the caller could
 *   not get.
 * - Keys are only in the cluster package, which requires a cluster admin.
 */
import { readFile } from "node:fs/promises";
import type { AdminPaths } from "../../../certs/certificate-folder.ts";
import type { Exchange } from "../../http/exchange.ts";
import { InternalExchange } from "../../http/internal-exchange.ts";
import { type ZipEntry, zip } from "../../http/zip.ts";
import {
  type Context,
  type DatabaseContext,
  databasePrefix,
  type Route,
} from "../../routing/route.ts";
import type { ServerServices } from "../../routing/services.ts";
import { curlCommand } from "../../security/curl-command.ts";
import { attachment } from "./certificates.ts";

export const infoPackageRoutes: readonly Route[] = [
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/cluster-info-package",
    access: "cluster-admin",
    handle: getClusterPackage,
  },
  {
    kind: "server",
    method: "GET",
    path: "/admin/debug/info-package",
    access: "operator",
    handle: getServerPackage,
  },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/debug/info-package",
    access: "read",
    copies: "here",
    handle: getDatabasePackage,
  },
];

const nodeFolder = "Node - [A]";
const authorityName = "ca.crt";

/** GET /admin/debug/cluster-info-package: the configuration package, a Zip with the administrator's certificate and key */
async function getClusterPackage(exchange: Exchange, { server }: Context): Promise<void> {
  const { admin, authorityPath } = server.presentedCertificate?.current ?? {};
  const files = admin === undefined ? [] : await clientEntries(admin, authorityPath);
  const hasAuthority = files.some(({ name }) => name === authorityName);
  const entries: ZipEntry[] = [
    ...files,
    { name: "settings.json", content: settingsText(server) },
    { name: "readme.txt", content: readmeText(exchange, server, admin, hasAuthority) },
    ...(await nodeEntries(exchange, server, `${nodeFolder}/`)),
  ];
  await reply(exchange, "Cluster Wide", entries);
}

/** GET /admin/debug/info-package: a Zip of the replies of the routes about this server and its databases; no keys */
async function getServerPackage(exchange: Exchange, { server }: Context): Promise<void> {
  await reply(exchange, nodeFolder, await nodeEntries(exchange, server, ""));
}

/** GET debug/info-package: a Zip of the replies of the routes about this database */
async function getDatabasePackage(
  exchange: Exchange,
  { server, database }: DatabaseContext,
): Promise<void> {
  const entries = await databaseEntries(exchange, server, database.name, "");
  await reply(exchange, `Database [${database.name}]`, entries);
}

async function reply(
  exchange: Exchange,
  title: string,
  entries: readonly ZipEntry[],
): Promise<void> {
  const time = new Date().toISOString().slice(0, 19).replace("T", " ").replaceAll(":", "-");
  const archive = await zip(entries);
  exchange.reply(
    200,
    {
      "content-type": "application/zip",
      "content-disposition": attachment(`${time} ${title}.zip`),
      "cache-control": "no-store",
    },
    archive,
  );
}

/** Returns the administrator's files, and the CA that clients have to trust. */
async function clientEntries(
  admin: AdminPaths,
  authorityPath: string | undefined,
): Promise<ZipEntry[]> {
  const entries: ZipEntry[] = [];
  for (const [name, path] of [
    [`${admin.name}.crt`, admin.certificate],
    [`${admin.name}.key`, admin.key],
    [`${admin.name}.pfx`, admin.pfx],
    [authorityName, authorityPath],
  ] as const) {
    // The operator may have moved it to a safe place.
    const content = path && (await readFile(path).catch(() => undefined));
    if (content) entries.push({ name, content, isPrivate: true });
  }
  return entries;
}

/** Diagnostics of the node: `server-wide/` and a folder for each database. */
async function nodeEntries(
  exchange: Exchange,
  server: ServerServices,
  prefix: string,
): Promise<ZipEntry[]> {
  const entries: ZipEntry[] = [];
  for (const route of server.routes.routes) {
    if (route.inPackage !== true || route.kind !== "server") continue;
    const folder = `${prefix}server-wide/`;
    entries.push(...(await capture(exchange, server, route.path, folder, route.path)));
  }
  for (const name of server.databases.names()) {
    entries.push(...(await databaseEntries(exchange, server, name, `${prefix}${name}/`)));
  }
  return entries;
}

async function databaseEntries(
  exchange: Exchange,
  server: ServerServices,
  database: string,
  folder: string,
): Promise<ZipEntry[]> {
  const entries: ZipEntry[] = [];
  for (const route of server.routes.routes) {
    if (route.inPackage !== true || route.kind !== "database") continue;
    const rest = route.path.slice(databasePrefix.length);
    const target = `/databases/${encodeURIComponent(database)}/${rest}`;
    entries.push(...(await capture(exchange, server, target, folder, rest)));
  }
  return entries;
}

/** Returns one reply as a file: `.json`; `.error` if it is not a success; none if it is empty (204, 404). */
async function capture(
  exchange: Exchange,
  server: ServerServices,
  target: string,
  folder: string,
  name: string,
): Promise<ZipEntry[]> {
  const inner = new InternalExchange(exchange, { method: "GET", target });
  await server.dispatch(inner);
  const captured = await inner.captureReply();
  const base = folder + name.replace(/^\//, "").replaceAll("/", ".");
  if (captured === undefined) return [{ name: `${base}.error`, content: "aborted" }];
  const { status, body } = captured;
  if (body.length === 0 && (status === 204 || status === 404)) return [];
  const text = body.toString("utf8");
  return status < 300
    ? [{ name: `${base}.json`, content: text }]
    : [{ name: `${base}.error`, content: `${status} ${text}` }];
}

/** The settings needed to set up a server like this one; without secrets. */
function settingsText(server: ServerServices): string {
  const settings: Record<string, string> & { ServerUrl?: string } = {};
  for (const [name, { value }] of server.config.given) {
    if (!/password|license/i.test(name)) settings[name] = value;
  }
  settings.ServerUrl = server.address.url;
  return `${JSON.stringify(settings, null, 2)}\n`;
}

function readmeText(
  exchange: Exchange,
  server: ServerServices,
  admin: AdminPaths | undefined,
  hasAuthority: boolean,
): string {
  const about = `Package of the server ${server.address.url}, created ${new Date().toISOString()}.\n\n`;
  const diagnostics = `${nodeFolder}/ holds the replies of the diagnostic routes.\nsettings.json holds the explicit settings, without secrets.\n`;
  if (admin === undefined) {
    const reason = exchange.connection.isSecure
      ? "The server uses its own certificate and has generated none for an administrator: POST /admin/certificates generates one."
      : "The server is unsecured and has no certificates.";
    return `${about}${reason}\n\n${diagnostics}`;
  }
  const files = { certificate: `${admin.name}.crt`, key: `${admin.name}.key` };
  const trust = hasAuthority ? ["--cacert", authorityName] : ["-k"];
  const command = curlCommand(`${server.address.url}/build/version`, files, trust);
  return (
    `${about}${admin.name}.crt and .key are a cluster administrator's certificate and private key; the .pfx is both, ` +
    "for browsers, without a password.\nThey grant full access: keep them safe, delete this file when you have " +
    `them.\n\n  ${command}\n\n${diagnostics}`
  );
}
