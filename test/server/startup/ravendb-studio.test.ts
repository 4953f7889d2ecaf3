/**
 * A copy of RavenDB's Studio in place of the built-in one: its files, its permissions, and
 * rejection of invalid copies.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ZipFile } from "yazl";
import { readRavenStudio } from "../../../server/startup/ravendb-studio.ts";
import {
  noCertificate,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let folder: string;
const servers: TestServer[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ravendb-studio-"));
  mkdirSync(join(folder, "studio", "assets"), { recursive: true });
  writeFileSync(join(folder, "studio", "index.html"), "<title>Raven</title>");
  writeFileSync(join(folder, "studio", "assets", "main.js"), "run()");
  const zip = new ZipFile();
  zip.addFile(join(folder, "studio", "index.html"), "index.html");
  zip.addFile(join(folder, "studio", "assets", "main.js"), "assets/main.js");
  zip.end();
  writeFileSync(join(folder, "studio.zip"), await buffer(zip.outputStream));
  for (const name of ["studio", "studio.zip"]) {
    const flags = [`--Studio.Path=${join(folder, name)}`];
    servers.push(await startTestServer({ flags, databases: [{ name: "shop" }] }));
  }
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true });
});

test("its files replace the built-in ones, from a folder and from an archive", async () => {
  for (const server of servers) {
    const send = (path: string) =>
      server.request(path, { headers: { "accept-encoding": "identity" } }, noCertificate);
    const page = await send("/studio/index.html");
    expect(page).toMatchObject({ status: 200, text: "<title>Raven</title>" });
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect((await send("/studio/assets/main.js")).text).toBe("run()");
    expect((await send("/studio/assets/other.js")).status).toBe(404);
    expect((await send("/studio/..%2fstudio.zip")).status).toBe(404);
    expect((await send("/studio")).headers["location"]).toBe("/studio/index.html");
    expect((await server.request("/")).headers["location"]).toBe("/studio/index.html");
  }
});

test("its forms do not need this server's header", async () => {
  const [server] = servers as [TestServer];
  const headers = { origin: server.url, "content-type": "multipart/form-data; boundary=x" };
  const reply = await server.request("/databases/shop/smuggler/export", {
    method: "POST",
    headers,
  });
  expect(reply.status).not.toBe(403);
});

test("an invalid copy stops the start with the reason", () => {
  writeFileSync(join(folder, "no.zip"), "text");
  for (const [name, reason] of [
    ["missing", "ENOENT"],
    ["no.zip", "no zip archive"],
    ["studio/assets", "it has no index.html"],
  ] as const) {
    expect(() => readRavenStudio(join(folder, name))).toThrow(reason);
  }
  expect(readRavenStudio(undefined)).toBeUndefined();
});
