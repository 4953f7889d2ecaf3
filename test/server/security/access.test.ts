/** Access rights: every route of the table, for every type of caller, over HTTP. */
import { once } from "node:events";
import * as tls from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CertificatePair } from "../../../certs/authority.ts";
import { routes } from "../../../server/endpoints/route-table.ts";
import type { Exchange } from "../../../server/http/exchange.ts";
import type { Route } from "../../../server/routing/route.ts";
import { databasePrefix } from "../../../server/routing/route.ts";
import type { Access } from "../../../server/security/access.ts";
import {
  noCertificate,
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

/** Types of callers; the database in every path is "mine". */
const callers = [
  "nobody",
  "deleted",
  "unauthenticated-clients",
  "other-database",
  "reader",
  "writer",
  "database-admin",
  "operator",
  "cluster-admin",
  "cluster-node",
] as const;
type Caller = (typeof callers)[number];

/**
 * The specification: the first caller in the order above that has access; all later ones have it,
 * too.
 */
const firstAllowed: Record<Access, Caller> = {
  open: "nobody",
  "valid-user": "unauthenticated-clients",
  read: "reader",
  write: "writer",
  "database-admin": "database-admin",
  operator: "operator",
  "cluster-admin": "cluster-admin",
  "cluster-node": "cluster-node",
};

/**
 * Access rights on RavenDB 7.2.7, measured route by route with a certificate of each type, or
 * declared for routes of this server. `~` is a database; a `*` at the end matches any rest. The
 * first line that matches a route counts, and every route needs one, so that each new route is
 * considered before it can be used.
 */
const specification: Readonly<Record<Access, string>> = {
  open: `
    GET /setup/alive /auth-error.html /certificates/whoami /livez /readyz /healthz /studio /studio/*`,
  "cluster-node": `
    POST /cluster/values /cluster/stand`,
  "cluster-admin": `
    GET POST /admin/configuration/settings
    GET /admin/certificates/mode
    POST /admin/cluster/demote /admin/cluster/promote
    PUT DELETE /admin/cluster/node
    GET DELETE /cluster/copies/*
    POST /admin/console /admin/certificates/replace-cluster-cert`,
  operator: `
    GET PUT POST DELETE /admin/*
    GET /secrets/generate`,
  "database-admin": `
    GET PUT POST DELETE RESET ~/admin/*`,
  write: `
    PUT PATCH DELETE ~/docs ~/queries
    POST ~/bulk_docs ~/bulk_insert
    DELETE ~/studio/collections/docs
    PATCH ~/queries/test ~/queries/dry-run ~/json-patch
    PUT DELETE ~/attachments ~/cmpxchg ~/subscriptions ~/indexes ~/changes ~/tcp
    DELETE ~/indexes/errors ~/subscription-tasks ~/attachments/bulk
    RESET ~/indexes
    PUT ~/side-by-side-indexes
    POST ~/indexes/set-lock ~/indexes/set-priority ~/indexes/try ~/indexes/test ~/indexes/replace
    POST ~/subscriptions/try ~/subscriptions/update ~/subscriptions/drop
    POST ~/timeseries ~/revisions/revert ~/revisions/revert/docs ~/operations/kill ~/debug/queries/kill
    POST ~/operations/pause ~/operations/resume ~/operations/limit ~/operations/undo
    GET ~/hilo/next
    PUT ~/hilo/return
    POST ~/identity/next ~/identity/seed
    POST ~/smuggler/import ~/smuggler/import/csv ~/studio/sample-data`,
  read: `
    POST ~/docs ~/queries ~/streams/queries ~/multi_get ~/smuggler/export ~/timeseries/ranges
    POST ~/attachments ~/attachments/bulk ~/indexes/has-changed ~/smuggler/validate-options
    POST ~/counters ~/studio/index-fields ~/studio/index-type
    POST ~/notification-center/dismiss ~/notification-center/postpone
    GET HEAD ~/*`,
  "valid-user": `
    GET / /metrics /databases /topology /build/version /cluster/topology /cluster/node-info /cluster/status
    GET /configuration/client /license/status /debug/server-id /debug/routes /debug/is-loaded /operations/state
    GET /info/tcp /info/remote-task/tcp /periodic-backup /periodic-backup/history /periodic-backup/status /studio-tasks/*
    GET /configuration/studio /license/limits-usage /license/configuration /license-server/connectivity
    GET /assistant/settings /assistant/check-consent /assistant/check-usage /analyzers /sorters
    GET /server/notification-center/watch /cluster-dashboard/watch /debug/queries/running/live /threads-info/watch
    POST /build/version/updates`,
};
/** Lookup order of the levels: lists of higher levels have fewer wildcards. */
const levels = [
  "open",
  "cluster-node",
  "cluster-admin",
  "operator",
  "database-admin",
  "write",
  "read",
  "valid-user",
] as const satisfies readonly Access[];
/**
 * Stricter than RavenDB. RavenDB's package contains no keys, but this server's does. (Handlers may
 * require more: `POST ~/counters` for changes.)
 */
const stricter: Readonly<Record<string, Access>> = {
  "POST /admin/backups/verify": "operator",
  "GET /admin/debug/cluster-info-package": "cluster-admin",
  "POST ~/timeseries/names/config": "database-admin",
  "POST /admin/certificates/refresh": "cluster-admin",
};

/** The level of `METHOD path` in the specification; undefined if not listed. */
function specifiedLevel(name: string): Access | undefined {
  const [method = "", path = ""] = name.split(" ");
  const fits = (pattern: string) =>
    pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
  return (
    stricter[name] ??
    levels.find((level) =>
      specification[level].split("\n").some((line) => {
        const words = line.trim().split(" ");
        const isPath = (word: string) => word.startsWith("/") || word.startsWith("~");
        return words.includes(method) && words.filter(isPath).some(fits);
      }),
    )
  );
}

function nameOf(route: Route): string {
  return `${route.method} ${route.path.replace(databasePrefix, "~/")}`;
}

/** Some routes of RavenDB that this server does not have (yet). */
const foreignRoutes = [
  "GET /secrets/generate",
  "GET /server/notification-center/watch",
  "GET /admin/secrets",
  "POST /admin/restore/database",
  "POST /admin/cluster/bootstrap",
  "POST /admin/console",
  "GET /admin/certificates/export",
  "DELETE /admin/certificates/purge",
  "POST /authentication/2fa",
  "POST /setup/secured",
  "GET /monitoring/snmp",
  "POST /databases/mine/admin/backup",
  "PUT /databases/mine/admin/etl",
  "GET /databases/mine/debug/storage/report",
  "GET /databases/mine/notification-center/watch",
  "POST /databases/mine/replication/replicateDocs",
  "POST /databases/mine/transactions/replay",
  "OPTIONS /databases/mine/docs",
  "TRACE /databases/mine/docs",
] as const;

let server: TestServer;
const pairs = new Map<Caller, CertificatePair>();

/** The same table with replaced handlers, because only access is tested. */
const markedRoutes = routes.map((route): Route => {
  if (route.kind === "websocket") return route;
  return { ...route, handle: (exchange: Exchange) => exchange.reply(204) };
});

beforeAll(async () => {
  server = await startTestServer({
    routes: markedRoutes,
    databases: [{ name: "mine", isDisabled: false }],
  });
  pairs.set("nobody", noCertificate);
  const deleted = await server.client({ clearance: "ClusterAdmin" });
  const { certificates } = server.running.services;
  for (const one of certificates.list()) {
    if (one.Name === "test client") await certificates.delete(one.Thumbprint);
  }
  pairs.set("deleted", deleted);
  pairs.set(
    "unauthenticated-clients",
    await server.client({ clearance: "UnauthenticatedClients" }),
  );
  pairs.set("other-database", await server.client({ permissions: { other: "Admin" } }));
  pairs.set("reader", await server.client({ permissions: { Mine: "Read" } }));
  pairs.set("writer", await server.client({ permissions: { mine: "ReadWrite" } }));
  pairs.set("database-admin", await server.client({ permissions: { mine: "Admin" } }));
  pairs.set("operator", await server.client({ clearance: "Operator" }));
  pairs.set("cluster-node", await server.client({ clearance: "ClusterNode" }));
  pairs.set("cluster-admin", await server.client({ clearance: "ClusterAdmin" }));
});
afterAll(stopTestServers);

describe.each(callers)("as %s", (caller) => {
  test("every route is open or rejected according to its level", async () => {
    const session = server.session(pairs.get(caller));
    for (const route of routes) {
      const path = route.path.replace(databasePrefix, "/databases/mine/").replace("*", "x");
      const reply = await requestHttp2(session, path, { method: route.method });
      const isAllowed = callers.indexOf(caller) >= callers.indexOf(firstAllowed[route.access]);
      const got = route.kind === "websocket" ? 400 : 204; // A plain GET of a web socket is an error.
      expect(reply.status, `${route.method} ${route.path}`).toBe(isAllowed ? got : 403);
      if (!isAllowed && route.method === "HEAD") expect(reply.text).toBe("");
      else if (!isAllowed) {
        expect(Object.keys(reply.json as object)).toEqual(["Type", "Message", "Error"]);
        expect(reply.json).toMatchObject({ Type: "InvalidAuth" });
      }
      expect(reply.headers["raven-server-version"]).toMatch(/^7\./);
      expect(reply.headers["service-server-version"]).toBe(reply.headers["raven-server-version"]);
    }
    session.close();
  });
});

describe.each(callers)("as %s", (caller) => {
  test("a route that this server lacks is rejected alike, or reported as missing", async () => {
    const session = server.session(pairs.get(caller));
    const rank = callers.indexOf(caller);
    for (const name of foreignRoutes) {
      if (routes.some((route) => nameOf(route) === name.replace("/databases/mine/", "~/")))
        continue;
      const [method, path] = name.split(" ") as [string, string];
      const reply = await requestHttp2(session, path, { method });
      const maySee =
        rank >=
        callers.indexOf(path.startsWith("/databases/") ? "reader" : "unauthenticated-clients");
      expect([name, reply.status >= 400, reply.status === 403]).toEqual([name, true, !maySee]);
      const type = (reply.json as { readonly Type: string }).Type;
      expect(type, name).toBe(
        maySee ? "Raven.Client.Exceptions.Routing.RouteNotFoundException" : "InvalidAuth",
      );
    }
    session.close();
  });
});

test.each(routes.map((route) => [nameOf(route), route.access]))(
  "%s requires %s, as on RavenDB",
  (name, access) => {
    const specified = specifiedLevel(name);
    expect(specified, `${name} is in the specification`).toBeDefined();
    expect(access).toBe(specified);
  },
);

describe("hidden items are indistinguishable", () => {
  test("without a certificate: known route, unknown route, databases, methods", async () => {
    const session = server.session(undefined);
    const bodies = new Set<string>();
    for (const [method, path] of [
      ["GET", "/databases/mine/docs"],
      ["GET", "/databases/no-such/docs"],
      ["GET", "/no-such-route"],
      ["OPTIONS", "/admin/certificates"],
      ["TRACE", "/"],
      ["POST", "/build/version"],
      ["GET", `/${"x".repeat(20_000)}`],
    ] as const) {
      const reply = await requestHttp2(session, path, { method });
      expect(reply.status, path).toBe(403);
      bodies.add(reply.text);
    }
    expect(bodies.size).toBe(1);
    session.close();
  });

  test("with a certificate for another database: only the name differs", async () => {
    const session = server.session(pairs.get("other-database"));
    const bodies = new Set<string>();
    for (const path of [
      "/databases/mine/debug/info-package",
      "/databases/nope/debug/info-package",
      "/databases/mine/no-such-route",
      "/databases/nope/no-such-route",
    ]) {
      const reply = await requestHttp2(session, path);
      expect(reply.status, path).toBe(403);
      bodies.add(reply.text.replaceAll(/mine|nope/g, "?"));
    }
    expect(bodies.size).toBe(1);
    session.close();
  });

  test("a missing route or database is reported to clients with access", async () => {
    const session = server.session(pairs.get("operator"));
    const missing = await requestHttp2(session, "/databases/nope/debug/info-package");
    expect(missing.json).toMatchObject({
      Type: "Raven.Client.Exceptions.Database.DatabaseDoesNotExistException",
      Message: "Database 'nope' does not exist.",
    });
    expect((await requestHttp2(session, "/databases/mine/nope")).json).toMatchObject({
      Type: "Raven.Client.Exceptions.Routing.RouteNotFoundException",
    });
    session.close();
  });
});

describe("a page of another site", () => {
  test("is rejected, and the studio's own page is not", async () => {
    const { admin, url } = server;
    for (const [origin, status] of [
      ["https://evil.example", 403],
      ["null", 403],
      ["not a url", 403],
      [url, 204],
    ] as const) {
      const reply = await server.request("/build/version", { headers: { origin } }, admin);
      expect(reply.status, origin).toBe(status);
    }
  });
});

test("a request that a form could send requires this server's header", async () => {
  const send = async (headers: Record<string, string>, method = "POST") => {
    const given = { method, headers: { origin: server.url, ...headers } };
    return (await server.request("/databases/mine/queries?query=from%20Users", given)).status;
  };
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    expect(await send({ "content-type": type }), type).toBe(403);
  }
  expect(await send({})).toBe(403);
  expect(await send({ "x-jackdaw-studio": "1" })).not.toBe(403);
  expect(await send({ "content-type": "application/json" })).not.toBe(403);
  expect(await send({}, "GET")).not.toBe(403);
});

test("an embedded resource is rejected on another site's page, a link is not", async () => {
  for (const [site, mode, status] of [
    ["cross-site", "no-cors", 403],
    ["cross-site", "navigate", 204],
    ["same-origin", "cors", 204],
    ["none", "navigate", 204],
  ] as const) {
    const headers = { "sec-fetch-site": site, "sec-fetch-mode": mode };
    const reply = await server.request("/build/version", { headers });
    expect(reply.status, `${site} ${mode}`).toBe(status);
  }
});

test("a rejected browser gets a page with instructions", async () => {
  const reply = await server.request("/", { headers: { accept: "text/html,*/*" } }, noCertificate);
  expect(reply.status).toBe(403);
  expect(reply.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(reply.text).toContain(".pfx");
});

describe("a body without access is not read to its end", () => {
  const size = 8 * 1024 * 1024; // With more, Node's own client exceeds its memory limit.
  const path = "/databases/mine/docs?id=a";

  test("over HTTP/2: the rejection, then a reset of the stream", async () => {
    const session = server.session(undefined);
    const stream = session.request({ ":method": "PUT", ":path": path }, { endStream: false });
    const status = new Promise((resolve) => {
      stream.on("response", (headers) => resolve(headers[":status"]));
    });
    stream.on("error", () => undefined); // A reset of the unfinished upload.
    stream.resume();
    stream.write(Buffer.alloc(size));
    expect(await status).toBe(403);
    expect((await requestHttp2(session, "/setup/alive")).status).toBe(204);
    expect(session.socket.bytesWritten).toBeLessThan(size / 4);
    session.destroy();
  });

  test("over HTTP/1.1: the rejection, then the end of the connection", async () => {
    const socket = tls.connect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false });
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined); // Cut off while writing.
    socket.write(`PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`);
    socket.write(Buffer.alloc(size));
    await once(socket, "close");
    expect(Buffer.concat(chunks).toString()).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
    expect(Buffer.concat(chunks).toString()).toContain("Connection: close");
  });

  test("a body without access is not requested with 100 Continue", async () => {
    const socket = tls.connect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false });
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    const head = `PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n`;
    socket.write(`${head}Expect: 100-continue\r\n\r\n`);
    await once(socket, "end");
    socket.destroy();
    expect(Buffer.concat(chunks).toString()).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
  });
});
