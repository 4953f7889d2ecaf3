/** The studio's page and files, which contain no data and are open to all clients. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  replyStudioFile,
  studioFilesIn,
  studioPageRoutes,
} from "../../../../server/endpoints/studio/studio-page.ts";
import type { Exchange } from "../../../../server/http/exchange.ts";
import { refusalPage } from "../../../../server/routing/refusal-page.ts";
import type { Route } from "../../../../server/routing/route.ts";
import {
  noCertificate,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../../support/start-test-server.ts";

/** The routes, with a studio that was built into `folder`. */
function routesIn(folder: string): Route[] {
  const files = studioFilesIn(folder);
  const handle = (exchange: Exchange) => replyStudioFile(exchange, files);
  return studioPageRoutes.map((route) =>
    route.kind === "server" && route.path.endsWith("*") ? { ...route, handle } : route,
  );
}

let folder: string;
let server: TestServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "studio-page-"));
  writeFileSync(join(folder, "index.html"), "<title>studio</title>");
  writeFileSync(join(folder, "main-12345678.js"), "run()");
  server = await startTestServer({ routes: routesIn(folder) });
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true });
});

const send = (path: string) =>
  server.request(path, { headers: { "accept-encoding": "identity" } }, noCertificate);

test("every page address returns the page, also with dots in a name", async () => {
  for (const path of [
    "/studio/databases",
    "/studio/db/my.js/doc/a%2Fb.js?view=tree",
    "/studio/index.html",
  ]) {
    expect(await send(path), path).toMatchObject({ status: 200, text: "<title>studio</title>" });
  }
  expect((await send("/studio")).headers["location"]).toBe("/studio/databases");
});

test("its scripts are files, and files of another version do not exist", async () => {
  expect(await send("/studio/main-12345678.js")).toMatchObject({ status: 200, text: "run()" });
  expect((await send("/studio/main-87654321.js")).status).toBe(404);
});

test("the page runs nothing foreign or inline", async () => {
  const { headers } = await send("/studio/databases");
  const policy = String(headers["content-security-policy"]);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("require-trusted-types-for 'script'");
  expect(policy).not.toContain("unsafe");
  expect(headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
  });
});

test("a server built without it reports so", async () => {
  const other = await startTestServer({ routes: routesIn(join(folder, "missing")) });
  const reply = await other.request("/studio/databases", {}, noCertificate);
  expect(reply.status).toBe(404);
  expect(reply.text).toContain("built without the studio");
});

test("a browser without a certificate gets the same instructions everywhere", async () => {
  const other = await startTestServer({});
  const headers = { accept: "text/html", host: "localhost:8443" };
  const texts = new Set<string>();
  const paths = ["/", "/studio", "/studio/databases", "/studio/x.js", "/databases"];
  for (const path of paths) {
    const reply = await other.request(path, { headers }, noCertificate);
    expect(reply.status, path).toBe(403);
    texts.add(reply.text);
  }
  const [text = "", ...others] = texts;
  expect(others).toEqual([]);
  expect(text).toContain("jackdaw studio --url https://localhost:8443<");
  expect((await other.request("/studio", { headers })).status).toBe(302);
  expect((await other.request("/studio", {}, noCertificate)).status).toBe(302);
  expect(refusalPage("a<b>")).toContain("<code>jackdaw studio</code>");
});
