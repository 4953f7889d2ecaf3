/** Health, metrics, log level, request log and audit log over HTTP. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isAudited } from "../../../../server/monitoring/request-observer.ts";
import { projectRoot } from "../../../support/project-root.ts";
import { parsePrometheus } from "../../../support/prometheus-text.ts";
import {
  noCertificate,
  requestHttp1,
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../../../support/start-test-server.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-audit-"));
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    databases: [{ name: "mine" }, { name: "other" }],
    flags: [
      `--Security.AuditLog.FolderPath=${folder}`,
      "--Monitoring.ServerUrl=http://127.0.0.1:0",
    ],
  });
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true, force: true });
});

const monitoringUrl = () => `http://127.0.0.1:${server.running.services.monitoring.port}`;

test("health is yes or no, for all clients, and no when the server stops", async () => {
  for (const path of ["/livez", "/readyz", "/healthz"]) {
    const secure = await server.request(path, {}, noCertificate);
    expect([secure.status, secure.text]).toEqual([200, "ok\n"]);
    const plain = await fetch(monitoringUrl() + path);
    expect([plain.status, await plain.text()]).toEqual([200, "ok\n"]);
  }
  expect((await server.request("/metrics", {}, noCertificate)).status).toBe(403);
});

test("metrics include requests by route, and databases that the client may read", async () => {
  await server.request("/databases/mine/docs?id=users/1", { method: "PUT", body: "{}" });
  const reader = await server.client({ permissions: { mine: "Read" } });
  const { status, headers, text } = await server.request("/metrics", {}, reader);
  expect(status).toBe(200);
  expect(headers["content-type"]).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(text).toMatch(
    /^jackdaw_http_requests_total\{method="PUT",route="\/databases\/:database\/docs",status="2xx"\} 1$/m,
  );
  expect(text).toMatch(/^jackdaw_documents\{database="mine"\} 1$/m);
  expect(text).not.toContain('database="other"');
  expect(text).toMatch(/^process_cpu_seconds_total /m);
  const all = await server.request("/admin/monitoring/v1/prometheus");
  expect(all.text).toContain('jackdaw_documents{database="other"}');
  expect((await server.request("/admin/monitoring/v1/prometheus", {}, reader)).status).toBe(403);
});

test("paths and names sent by clients add no series", async () => {
  const seriesCount = async () =>
    (await (await fetch(`${monitoringUrl()}/metrics`)).text()).match(
      /^jackdaw_http_requests_total/gm,
    )?.length;
  await server.request("/no/such/0");
  await server.request("/databases/none0/stats");
  const before = await seriesCount();
  for (let i = 1; i < 30; i++) {
    await server.request(`/no/such/${i}`);
    await server.request(`/databases/none${i}/stats`);
  }
  expect(await seriesCount()).toBe(before);
});

test("the dashboard uses only existing metrics", async () => {
  const text = await (await fetch(`${monitoringUrl()}/metrics`)).text();
  const path = `${projectRoot}docs/grafana-dashboard.json`;
  const board = JSON.parse(readFileSync(path, "utf8")) as {
    panels: { targets: { expr: string }[] }[];
  };
  const used = board.panels.flatMap(({ targets }) =>
    targets.flatMap(({ expr }) => expr.match(/\b(?:jackdaw|process|nodejs)_\w+/g) ?? []),
  );
  expect(used.length).toBeGreaterThan(15);
  // Some have samples only with indexes or backups.
  const known = new Set(
    [...parsePrometheus(text)].flatMap(([name, { kind }]) =>
      kind === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name],
    ),
  );
  expect(used.filter((name) => !known.has(name))).toEqual([]);
});

test("the log level is read and changed in RavenDB's format", async () => {
  const path = "/admin/logs/configuration";
  const post = (body: string) => server.request(path, { method: "POST", body });
  expect((await post('{"Logs":{"MinLevel":"Debug"}}')).status).toBe(204);
  const { json } = await server.request(path);
  expect(json).toMatchObject({ Logs: { CurrentMinLevel: "Debug" }, AuditLogs: { Path: folder } });
  const wrong = await post('{"Logs":{"MinLevel":"debug"}}');
  expect(wrong.json).toMatchObject({ Type: "System.FormatException" });
  const other = await post('{"MicrosoftLogs":{"MinLevel":"Warn"}}');
  expect(other.json).toMatchObject({ Type: "System.InvalidOperationException" });
  expect((await post('{"Logs":null}')).status).toBe(204);
});

test("clients before 6.2, whose log configuration has another format, are refused", async () => {
  const path = "/admin/logs/configuration";
  const versions = ["4.2.1", "5.4.0", "6.0.1", "6.1.9", "6.2.0", "6.10.0", "7.2", "10.0.0"];
  for (const request of [{}, { method: "POST", body: '{"Mode":"Operations"}' }]) {
    const served = [];
    for (const version of versions) {
      const headers = { "raven-client-version": version };
      const reply = await server.request(path, { ...request, headers });
      if (reply.status < 300) served.push(version);
      else
        expect(reply.json).toMatchObject({
          Message: "This endpoints requires 6.2 Client API or newer.",
        });
    }
    expect(served).toEqual(["6.2.0", "6.10.0", "7.2", "10.0.0"]);
  }
});

test("the audit log records changes and rejections with the client, and no bodies", async () => {
  const body = JSON.stringify({ DatabaseName: "made", Settings: { secret: "s3cret" } });
  await server.request("/admin/databases?name=made%0A%7B", { method: "PUT", body });
  const deletion = JSON.stringify({ DatabaseNames: ["gone"] });
  await server.request("/admin/databases", { method: "DELETE", body: deletion });
  await requestHttp1(`${server.url}/databases/mine/stats`, {
    tls: tlsOptions(server.authority, noCertificate),
  });
  const path = join(folder, "audit.log");
  await expect.poll(() => readFileSync(path, "utf8")).toContain("PUT /admin/databases");
  await expect.poll(() => readFileSync(path, "utf8")).toContain("DELETE /admin/databases");
  await expect.poll(() => readFileSync(path, "utf8")).toContain("refused a request");
  const text = readFileSync(path, "utf8");
  const lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.find(({ msg }) => msg === "PUT /admin/databases")).toMatchObject({
    thumbprint: expect.stringMatching(/^[0-9A-F]{40}$/) as string,
    subject: expect.stringContaining("CN=") as string,
    address: "127.0.0.1",
    name: "made\n{",
    status: 201,
  });
  expect(lines.find(({ msg }) => msg === "DELETE /admin/databases")).toMatchObject({
    changed: "gone",
  });
  expect(text).not.toContain("s3cret");
});

test("changes of certificates, databases, indexes and settings are audited, documents are not", () => {
  const audited = server.running.services.routes.routes
    .filter(isAudited)
    .map(({ method, path }) => `${method} ${path}`);
  for (const one of [
    "DELETE /admin/certificates",
    "PUT /admin/databases",
    "DELETE /databases/:database/indexes",
    "POST /admin/logs/configuration",
    "POST /databases/:database/admin/expiration/config",
  ]) {
    expect(audited).toContain(one);
  }
  expect(audited).not.toContain("PUT /databases/:database/docs");
  expect(audited.filter((one) => one.startsWith("GET"))).toEqual([]);
});

test("metrics do not open databases, and respect their limit", async () => {
  const few = await startTestServer({
    databases: [{ name: "a" }, { name: "b" }, { name: "c" }],
    flags: ["--Monitoring.MaxDatabases=2"],
  });
  const { text } = await few.request("/metrics");
  expect(text.match(/^jackdaw_documents\{/gm)).toHaveLength(2);
  expect(text).toMatch(/^jackdaw_databases 3$/m);
});
