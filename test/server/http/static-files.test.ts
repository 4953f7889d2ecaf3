/** Files of a folder as replies: types, caching, and access only to files in the folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folderFiles } from "../../../server/http/file-source.ts";
import { StaticFiles } from "../../../server/http/static-files.ts";
import type { Route } from "../../../server/routing/route.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let folder: string;
let server: TestServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "static-files-"));
  writeFileSync(join(folder, "page.html"), "<p>page</p>");
  writeFileSync(join(folder, "main-Ab3_d-9x.js"), `let x = 1;${" ".repeat(1000)}`);
  mkdirSync(join(folder, "inner"));
  writeFileSync(join(folder, "inner", "deep.txt"), "deep");
  const files = new StaticFiles(folderFiles(folder), { "x-content-type-options": "nosniff" });
  const show: Route = {
    kind: "server",
    method: "GET",
    path: "/files/*",
    access: "open",
    handle: async (exchange) => {
      const name = exchange.path.slice("/files/".length);
      if (files.has(name)) await files.reply(exchange, name);
      else exchange.reply(404);
    },
  };
  server = await startTestServer({ unsecured: true, routes: [show] });
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true });
});

const send = (name: string, headers: Record<string, string> = {}) =>
  server.request(`/files/${name}`, { headers: { "accept-encoding": "identity", ...headers } });

describe("a file", () => {
  test("has its type and headers, and is revalidated each time", async () => {
    const reply = await send("page.html");
    expect(reply).toMatchObject({ status: 200, text: "<p>page</p>" });
    expect(reply.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "x-content-type-options": "nosniff",
      "cache-control": "no-cache",
    });
  });

  test("whose name contains its hash may be cached forever", async () => {
    const { headers } = await send("main-Ab3_d-9x.js");
    expect(headers["cache-control"]).toContain("immutable");
    expect(headers["content-type"]).toBe("text/javascript; charset=utf-8");
  });

  test("is sent compressed to clients that accept this", async () => {
    const { headers, body } = await send("main-Ab3_d-9x.js", { "accept-encoding": "gzip, br" });
    expect(headers["content-encoding"]).toBe("gzip");
    expect(body.length).toBeLessThan(200);
    expect(gunzipSync(body).toString()).toMatch(/^let x = 1;/);
  });

  test("is not sent again if it is unchanged", async () => {
    const { headers } = await send("page.html");
    const again = await send("page.html", { "if-none-match": String(headers["etag"]) });
    expect(again).toMatchObject({ status: 304, text: "" });
  });
});

test("only files in the folder are accessible", async () => {
  for (const name of ["other.html", "inner", "../page.html", "%2e%2e/page.html"]) {
    expect((await send(name)).status, name).not.toBe(200);
  }
});

test("a missing folder has no files", () => {
  expect(new StaticFiles(folderFiles(join(folder, "missing")), {}).has("page.html")).toBe(false);
});
