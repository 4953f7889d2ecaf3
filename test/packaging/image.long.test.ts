/**
 * The image without Docker: the package is built from the files that Docker would see, and the
 * entry point and the health check run as processes, with the image's layout.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-image-"));
let server: ChildProcess | undefined;
afterAll(() => {
  server?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as { port: number };
  listener.close();
  await once(listener, "close");
  return port;
}

test("a container created for RavenDB's image has its database, is healthy, and stops on SIGTERM", async () => {
  cpSync(join(projectRoot, "packaging/docker"), folder, { recursive: true });
  symlinkSync(join(projectRoot, "bin"), join(folder, "bin"));
  mkdirSync(join(folder, "data"));
  const port = await freePort();
  const env = {
    PATH: process.env["PATH"] ?? "",
    RAVEN_ServerUrl: `http://127.0.0.1:${port}`,
    RAVEN_ServerUrl_Tcp: "0",
    RAVEN_DataDir: join(folder, "data"),
    RAVEN_IN_DOCKER: "true",
    RAVEN_Setup_Mode: "None",
    RAVEN_License: "{}",
    RAVEN_License_Eula_Accepted: "true",
    RAVEN_Logs_Mode: "Information",
    RAVEN_ARGS: "--Features.Availability=Experimental --log-to-console",
    RAVEN_DATABASE: "shop",
    // The address for clients differs from that of the health check.
    RAVEN_PublicServerUrl: "http://db.example.com:8080",
  };
  const health = () => spawnSync(process.execPath, [join(folder, "health.mjs")], { env });
  const before = health();
  expect([before.status, before.stderr.toString()]).toEqual([
    1,
    expect.stringMatching(/^unhealthy: http:\/\/127\.0\.0\.1:\d+\/livez: .*ECONNREFUSED/),
  ]);
  server = spawn(process.execPath, [join(folder, "start.mjs")], { env, cwd: folder });
  for await (const line of createInterface({ input: server.stdout as NodeJS.ReadableStream })) {
    if (line.startsWith("Server available on:")) break;
  }
  const url = `http://127.0.0.1:${port}/databases?namesOnly=true`;
  await expect
    .poll(() => fetch(url).then((reply) => reply.text()), { timeout: 20_000 })
    .toBe('{"Databases":["shop"]}');
  expect(health().status).toBe(0);
  const ended = once(server, "exit");
  server.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

test("the files visible to Docker suffice to build the package", { timeout: 300_000 }, () => {
  const context = join(folder, "context");
  const rules = readFileSync(join(projectRoot, "packaging/docker/Dockerfile.dockerignore"), "utf8");
  for (const [, name = ""] of rules.matchAll(/^!(.+)$/gm)) {
    cpSync(join(projectRoot, name), join(context, name), { recursive: true });
  }
  symlinkSync(join(projectRoot, "node_modules"), join(context, "node_modules"));
  execFileSync("npm", ["run", "--silent", "build"], { cwd: context, stdio: "pipe" });
  for (const file of ["main.cjs", "command.cjs", "library.cjs", "studio/index.html"]) {
    expect(existsSync(join(context, "dist/bundle", file)), file).toBe(true);
  }
});
