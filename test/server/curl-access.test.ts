/**
 * Access rights over HTTP/1.1 and HTTP/2, tested with `curl --cert` on the real handlers: one
 * process per client, which sends every request in the table.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CertificatePair,
  makeAuthority,
  makeClientCertificate,
} from "../../certs/authority.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "jackdaw-curl-"));

const callers = [
  "nobody",
  "stranger",
  "disabled",
  "other",
  "reader",
  "writer",
  "admin",
  "operator",
  "clusterAdmin",
] as const;
type Caller = (typeof callers)[number];

const counter = (type: string) =>
  `{"Documents":[{"DocumentId":"users/1","Operations":[{"Type":"${type}","CounterName":"c","Delta":1}]}]}`;
const inner = (url: string) => `{"Requests":[{"Url":"${url}","Query":"","Method":"GET"}]}`;

/**
 * Request, body, the least privileged client that is allowed, and its result. Clients with fewer
 * rights get 403.
 */
const table: readonly (readonly [string, string | undefined, Caller, number])[] = [
  ["GET /setup/alive", undefined, "nobody", 204],
  ["GET /build/version", undefined, "other", 200],
  ["GET /topology?name=mine", undefined, "reader", 200],
  ["GET /databases/mine/docs?id=users/1", undefined, "reader", 200],
  ["HEAD /databases/mine/docs?id=users/1", undefined, "reader", 200],
  ["POST /databases/mine/queries", '{"Query":"from Users"}', "reader", 200],
  ["POST /databases/mine/counters", counter("Get"), "reader", 200],
  ["POST /databases/mine/counters", counter("Increment"), "writer", 200],
  ["PUT /databases/mine/docs?id=users/2", "{}", "writer", 201],
  ["PATCH /databases/mine/queries", '{"Query":{"Query":"from None update {}"}}', "writer", 200],
  ["GET /databases/mine/hilo/next?tag=users", undefined, "writer", 201],
  ["GET /databases/mine/admin/record", undefined, "admin", 200],
  ["POST /databases/mine/admin/expiration/config", '{"Disabled":true}', "admin", 200],
  ["GET /admin/databases?name=mine", undefined, "operator", 200],
  ["GET /admin/certificates", undefined, "operator", 200],
  ["GET /admin/configuration/settings", undefined, "clusterAdmin", 200],
  // An unknown database and an unknown route: reported only to clients with access.
  ["GET /databases/none/docs?id=a", undefined, "operator", 400],
  ["GET /databases/mine/none", undefined, "reader", 400],
];

let server: TestServer;
let ca: string;
const files = new Map<Caller, string>();

beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "mine" }, { name: "other" }] });
  const mine = (access: "Read" | "ReadWrite" | "Admin") => ({ permissions: { mine: access } });
  const pairs: Partial<Record<Caller, CertificatePair>> = {
    stranger: await makeClientCertificate(await makeAuthority("else"), "stranger"),
    disabled: await server.client({ clearance: "ClusterAdmin" }, "disabled"),
    other: await server.client({ permissions: { other: "Admin" } }),
    reader: await server.client(mine("Read")),
    writer: await server.client(mine("ReadWrite")),
    admin: await server.client(mine("Admin")),
    operator: await server.client({ clearance: "Operator" }),
    clusterAdmin: server.admin,
  };
  const { certificates } = server.running.services;
  const disabled = certificates.list().find(({ Name }) => Name === "disabled");
  const body = JSON.stringify({ Thumbprint: disabled?.Thumbprint, Disabled: true });
  await server.request("/admin/certificates/edit", { method: "POST", body });
  await server.request("/databases/mine/docs?id=users/1", { method: "PUT", body: "{}" });
  for (const [caller, pair] of Object.entries(pairs)) {
    const file = join(folder, `${caller}.pem`);
    writeFileSync(file, `${pair.certificate}${pair.key}`);
    files.set(caller as Caller, file);
  }
  ca = join(folder, "ca.crt");
  writeFileSync(ca, server.authority.certificate);
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true, force: true });
});

/** The statuses of all requests of the table, in one run of curl. */
async function statuses(
  caller: Caller,
  version: string,
  requests: readonly (readonly [string, string | undefined, ...unknown[]])[],
): Promise<number[]> {
  const options = requests.flatMap(([request, body], position) => {
    const [method = "", path = ""] = request.split(" ");
    const file = files.get(caller);
    return [
      ...(position === 0 ? [] : ["--next"]),
      ...["-s", version, "--cacert", ca, "-o", "/dev/null", "-w", "%{http_code}\n"],
      ...(file === undefined ? [] : ["--cert", file]),
      ...(method === "HEAD" ? ["--head"] : ["-X", method]),
      ...(body === undefined ? [] : ["--data-binary", body]),
      server.url + path,
    ];
  });
  const { stdout } = await run("curl", options);
  return stdout.trim().split("\n").map(Number);
}

describe.each(["--http1.1", "--http2"])("curl %s --cert", (version) => {
  test.each(callers)("as %s gets the permitted results, and 403 otherwise", async (caller) => {
    const got = await statuses(caller, version, table);
    const expected = table.map(([, , first, status]) =>
      callers.indexOf(caller) >= callers.indexOf(first) ? status : 403,
    );
    expect(got.map((status, i) => `${table[i]?.[0]} ${status}`)).toEqual(
      expected.map((status, i) => `${table[i]?.[0]} ${status}`),
    );
  });
});

describe("nested requests", () => {
  async function innerReply(caller: Caller, url: string): Promise<Record<string, unknown>> {
    const options = ["-s", "--cacert", ca, "--cert", files.get(caller) ?? ""];
    const target = `${server.url}/databases/mine/multi_get`;
    const { stdout } = await run("curl", [...options, target, "-d", inner(url)]);
    const { Results } = JSON.parse(stdout) as { readonly Results: Record<string, unknown>[] };
    return Results[0] ?? {};
  }

  test("have only the rights of the client", async () => {
    const path = "/databases/mine/admin/record";
    expect(await innerReply("reader", path)).toMatchObject({ StatusCode: 403 });
    expect(await innerReply("admin", path)).toMatchObject({ StatusCode: 200 });
  });

  test("cannot leave their database", async () => {
    const reply = await innerReply("reader", "/databases/other/stats");
    expect(reply["StatusCode"]).not.toBe(200);
  });
});

test("a rejection names the client, the reason and the remedy, and no internals", async () => {
  const options = ["-s", "-i", "--http2", "--cacert", ca, "--cert", files.get("reader") ?? ""];
  const { stdout } = await run("curl", [...options, `${server.url}/databases/mine/admin/record`]);
  const [head = "", body = ""] = stdout.split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/2 403/);
  expect(head).toContain("content-type: application/json; charset=utf-8");
  expect(Object.keys(JSON.parse(body) as object)).toEqual(["Type", "Message", "Error"]);
  expect(body).toMatch(/test client\(Thumbprint: [0-9A-F]{40}\).*DatabaseAdmin access is required/);
  expect(body).not.toMatch(/\bat .*\.(ts|js):\d/);
});
