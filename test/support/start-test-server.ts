/**
 * A real server on a free port, in this process, with fresh certificates, and clients for it.
 *
 * Invariants:
 * - Every server started is stopped by `stop`, or by `stopTestServers` in afterAll.
 */
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CertificatePair, makeClientCertificate } from "../../certs/authority.ts";
import { routes as allRoutes } from "../../server/endpoints/route-table.ts";
import type { Log } from "../../server/logging/log.ts";
import type { Route } from "../../server/routing/route.ts";
import type { Grant } from "../../server/security/access.ts";
import { loadConfig } from "../../server/settings/config.ts";
import { type RunningServer, startServer } from "../../server/startup/run.ts";
import { openStorage, type Storage } from "../../server/startup/storage.ts";
import { isCold } from "./cold.ts";
import { restarting } from "./restarting-routes.ts";

export interface TestServerOptions {
  /** Flags besides ServerUrl, DataDir and RunInMemory. */
  readonly flags?: readonly string[];
  /** Databases to create. */
  readonly databases?: readonly { readonly name: string; readonly isDisabled?: boolean }[];
  readonly openStorage?: () => Promise<Storage>;
  readonly routes?: readonly Route[];
  readonly unsecured?: boolean;
  /** By default only errors are logged. */
  readonly log?: Log;
}

export interface Reply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
  readonly json: unknown;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly running: RunningServer;
  /** The CA's certificate and the first admin's. */
  readonly authority: CertificatePair;
  readonly admin: CertificatePair;
  /** Errors logged by the server. */
  readonly errors: unknown[];
  /** Registers a client certificate with these rights. */
  client(grant: Partial<Grant>, name?: string): Promise<CertificatePair>;
  /** Sends one HTTP/1.1 request on its own connection. `pair` undefined: as the admin. */
  request(
    path: string,
    options?: RequestOptions,
    pair?: CertificatePair | undefined,
  ): Promise<Reply>;
  /** Opens an HTTP/2 session; closed when the server stops. */
  session(pair: CertificatePair | undefined): http2.ClientHttp2Session;
  stop(): Promise<void>;
}

const running = new Set<TestServer>();

export async function stopTestServers(): Promise<void> {
  for (const server of running) await server.stop();
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-server-"));
  const errors: unknown[] = [];
  const { config } = loadConfig({
    argv: [
      `--ServerUrl=${options.unsecured === true ? "http" : "https"}://127.0.0.1:0`,
      `--DataDir=${folder}`,
      `--RunInMemory=${!isCold}`,
      "--Server.ShutdownTimeoutInSec=2",
      `--Http.Threads=${process.env["HTTP_THREADS"] ?? 0}`,
      ...(options.flags ?? []),
    ],
    environment: {},
    readFile: () => "",
    defaultFile: "",
  });
  const server = await startServer({
    config,
    routes: isCold ? restarting(options.routes ?? allRoutes) : (options.routes ?? allRoutes),
    openStorage:
      options.openStorage ?? ((known, replication) => openStorage(known, undefined, replication)),
    logError: (_reference, error) => errors.push(error),
    ...(options.log === undefined ? {} : { log: options.log }),
  });
  for (const { name, isDisabled } of options.databases ?? []) {
    await server.services.databases.create(name, { DatabaseName: name, Disabled: isDisabled });
  }
  const sessions = new Set<http2.ClientHttp2Session>();
  const read = (path: string | undefined) => (path === undefined ? "" : readFileSync(path, "utf8"));
  const admin = server.certificate?.admin;
  const authority = {
    certificate: read(server.certificate?.authorityPath),
    key: admin === undefined ? "" : read(server.certificate?.authorityPath?.replace(/crt$/, "key")),
  };
  const { url, port } = server.address;
  const result: TestServer = {
    url,
    port,
    running: server,
    authority,
    admin: { certificate: read(admin?.certificate), key: read(admin?.key) },
    errors,
    async client(grant, name = "test client") {
      const pair = await makeClientCertificate(authority, name);
      await server.services.certificates.put(new X509Certificate(pair.certificate), {
        Name: name,
        SecurityClearance: grant.clearance ?? "ValidUser",
        Permissions: grant.permissions ?? {},
        Disabled: false,
      });
      return pair;
    },
    request: (path, request, pair = result.admin) =>
      requestHttp1(url + path, { ...request, tls: tlsOptions(authority, pair) }),
    session(pair) {
      const session = http2.connect(url, tlsOptions(authority, pair));
      session.on("error", () => undefined);
      sessions.add(session);
      return session;
    },
    async stop() {
      if (!running.delete(result)) return;
      for (const session of sessions) session.destroy();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  running.add(result);
  return result;
}

/** TLS options for Node's clients; `noCertificate` presents none. */
export function tlsOptions(
  authority: CertificatePair,
  pair: CertificatePair | undefined,
): { ca?: string; cert?: string; key?: string } {
  if (authority.certificate === "") return {};
  const ca = authority.certificate;
  if (pair === undefined || pair.certificate === "") return { ca };
  return { ca, cert: pair.certificate, key: pair.key };
}

/** For requests without a certificate, where one is expected. */
export const noCertificate: CertificatePair = { certificate: "", key: "" };

/** Sends one request with node:http or node:https; `agent` allows keep-alive. */
export function requestHttp1(
  url: string,
  options: RequestOptions & { tls?: https.RequestOptions; agent?: http.Agent | https.Agent },
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const isSecure = url.startsWith("https:");
    const settings: https.RequestOptions = {
      method: options.method ?? "GET",
      headers: { ...options.headers },
      agent: options.agent ?? false,
      ...options.tls,
    };
    const onResponse = (response: http.IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        resolve(toReply(response.statusCode ?? 0, response.headers, Buffer.concat(chunks)));
      });
    };
    const request = isSecure
      ? https.request(url, settings, onResponse)
      : http.request(url, settings, onResponse);
    request.on("error", reject);
    // Node does not set the content-length of a DELETE body by itself.
    if (options.body !== undefined && settings.method === "DELETE") {
      request.setHeader("content-length", Buffer.byteLength(options.body));
    }
    request.end(options.body);
  });
}

/** Sends one request on an HTTP/2 session. */
export function requestHttp2(
  session: http2.ClientHttp2Session,
  path: string,
  options: RequestOptions = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const head = { ":method": options.method ?? "GET", ":path": path, ...options.headers };
    const stream = session.request(head, { endStream: options.body === undefined });
    const chunks: Buffer[] = [];
    let headers: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader = {};
    stream.on("response", (received) => {
      headers = received;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    // Not "end": when a stream is aborted, Node 24 emits that before the error.
    stream.on("close", () =>
      resolve(toReply(headers[":status"] ?? 0, headers, Buffer.concat(chunks))),
    );
    if (options.body !== undefined) stream.end(options.body);
  });
}

function toReply(status: number, headers: Reply["headers"], body: Buffer): Reply {
  return {
    status,
    headers,
    body,
    get text() {
      return body.toString("utf8");
    },
    get json(): unknown {
      return JSON.parse(body.toString("utf8"));
    },
  };
}
