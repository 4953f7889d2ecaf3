/**
 * The installed package: its size, its contents, its types as seen by a program without other
 * types, and the runnable programs of the documentation. Tests the output of `npm run build`.
 */
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts, hasNatsServer, natsServerPath } from "./support/nats-cluster.ts";
import { readPage } from "./support/page.ts";
import { builtPath, projectRoot } from "./support/project-root.ts";

/** A folder that contains only the installed package. */
const folder = mkdtempSync(join(tmpdir(), "jackdaw-package-"));
const run = promisify(execFile);
const entries = ["library", "testing"];

interface Packed {
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}
let packed: Packed;

beforeAll(() => {
  builtPath("bundle/main.cjs");
  const shown = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const text = execFileSync("npm", shown, {
    cwd: projectRoot,
    stdio: ["ignore", "pipe", "ignore"],
  });
  [packed] = JSON.parse(text.toString()) as [Packed];
  for (const { path } of packed.files) {
    const target = join(folder, "node_modules/jackdaw-db", path);
    mkdirSync(join(target, ".."), { recursive: true });
    writeFileSync(target, readFileSync(join(projectRoot, path)), { mode: 0o755 });
  }
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the package", () => {
  // 0.5 MB are for clusters: the NATS client with its licences, and the cluster code. Single nodes
  // do not load them. The HTTP/2 implementation takes 0.05 MB.
  // The map of the studio takes 0.09 MB, most of it coast lines.
  test("has at most 6.4 MB, and a page of at most 1 MB, and needs no other package", () => {
    const page = packed.files.filter(({ path }) => path.startsWith("dist/bundle/studio/"));
    const pageSize = page.reduce((sum, { size }) => sum + size, 0);
    expect(pageSize).toBeLessThan(1_000_000);
    expect(packed.unpackedSize - pageSize).toBeLessThan(6_400_000);
    const facts = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as object;
    expect(facts).not.toHaveProperty("dependencies");
    expect(facts).not.toHaveProperty("peerDependencies");
  });

  test("has a studio that a browser loads fast: 400 kB in all, 40 kB for a first page", () => {
    const studio = builtPath("bundle/studio");
    const gzipped = (name: string) => gzipSync(readFileSync(join(studio, name))).length;
    const names = readdirSync(studio);
    expect(names.reduce((sum, name) => sum + gzipped(name), 0)).toBeLessThan(400_000);
    const page = readFileSync(join(studio, "index.html"), "utf8");
    const requested = [...page.matchAll(/(?:href|src)="\/studio\/([^"]+)"/g)].map(
      ([, name]) => name ?? "",
    );
    expect(requested).toContainEqual(expect.stringMatching(/^main-.+\.js$/));
    const first = ["index.html", ...requested].reduce((sum, name) => sum + gzipped(name), 0);
    expect(first).toBeLessThan(40_000);
  });

  test("contains the code once, without source maps", () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths.filter((path) => path.endsWith(".map"))).toEqual([]);
    const code = paths.filter((path) => /\.[cm]?js$/.test(path));
    expect(
      code.filter(
        (path) =>
          !/^(?:dist\/bundle\/[\w.-]+\.cjs|dist\/bundle\/studio\/[\w.-]+\.js|packaging\/docker\/\w+\.mjs)$/.test(
            path,
          ),
      ),
    ).toEqual([]);
    const texts = code.map((path) => readFileSync(join(projectRoot, path), "utf8"));
    const whole = texts.join("");
    for (const name of ["FileLog", "HttpService", "EngineError", "WebSocketServer"]) {
      const declared = new RegExp(`\\b(?:class ${name}|${name} ?= ?class)\\b`, "g");
      expect(whole.match(declared), name).toHaveLength(1);
    }
  });

  test("contains the licences of its dependencies", () => {
    const text = readFileSync(builtPath("bundle/LICENSES.txt"), "utf8");
    for (const name of ["acorn", "fzstd", "hash-wasm", "pkijs", "selfsigned", "ws", "yazl"]) {
      expect(text).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(.+\\)\n\n.+`, "m"));
    }
  });

  test("is loaded by import and by require, as the same module", async () => {
    const program = `
      import * as library from "jackdaw-db";
      import * as testing from "jackdaw-db/testing";
      import { createRequire } from "node:module";
      const require = createRequire(import.meta.url);
      console.log(require("jackdaw-db").EngineError === library.EngineError);
      console.log(Object.keys(library).filter((name) => /^[a-zA-Z]+$/.test(name)).sort().join());
      console.log(require("jackdaw-db/testing").startTestServer === testing.startTestServer);`;
    writeFileSync(join(folder, "load.mjs"), program);
    const { stdout } = await run(process.execPath, ["load.mjs"], { cwd: folder });
    const [same, names, sameServer] = stdout.split("\n");
    expect([same, sameServer]).toEqual(["true", "true"]);
    expect(names).toContain("EngineError");
    expect(names).toContain("openEngine");
    expect(names).toContain("salvageDatabase");
  });

  test("starts the server, which has its sample data and the lock of its folder", async () => {
    const program = `
      import { spawn } from "node:child_process";
      import { createInterface } from "node:readline";
      const server = spawn(process.execPath, [
        "node_modules/jackdaw-db/bin/jackdaw", "--ServerUrl=http://127.0.0.1:0", "--DataDir=served",
      ], { stdio: ["pipe", "pipe", "inherit"] });
      const send = (method, path, body) => fetch(url + path, { method, body }).then((r) => r.status);
      let url;
      for await (const line of createInterface({ input: server.stdout })) {
        url = /^Server available on: (.*)$/.exec(line)?.[1];
        if (url !== undefined) break;
      }
      console.log(await send("PUT", "/admin/databases?name=a", '{"DatabaseName":"a"}'));
      console.log(await send("POST", "/databases/a/studio/sample-data"));
      const { openEngine } = await import("jackdaw-db");
      console.log(await openEngine({ folder: "served" }).catch(({ code }) => code));
      server.stdin.end("shutdown\\n");
      server.on("exit", console.log);`;
    writeFileSync(join(folder, "serve.mjs"), program);
    const { stdout } = await run(process.execPath, ["serve.mjs"], { cwd: folder });
    expect(stdout.trim().split("\n")).toEqual(["201", "204", "database-locked", "0 null"]);
  });

  test("loads the cluster code only on nodes of a cluster", () => {
    const bundle = builtPath("bundle");
    const code = readdirSync(bundle).filter((name) => name.endsWith(".cjs"));
    const parts = ["cluster-parts.cjs", "nats-transport.cjs", "transport-node.cjs"];
    for (const part of parts) {
      expect(code).toContain(part);
      // The client and the cluster code are loaded together.
      const others = code.filter((name) => name !== "nats-transport.cjs");
      const uses = others.flatMap((name) =>
        readFileSync(join(bundle, name), "utf8")
          .split("\n")
          .filter((line) => line.includes(`require("./${part}")`)),
      );
      expect(uses.length).toBeGreaterThan(0);
      expect(uses.filter((line) => !line.includes("Promise.resolve().then("))).toEqual([]);
    }
  });

  test.runIf(hasNatsServer())(
    "starts three nodes, which share a database",
    {
      timeout: 240_000,
    },
    async () => {
      const ports = await freePorts(6);
      const routes = ports.slice(3).map((port) => `127.0.0.1:${port}`);
      const urls = ports.slice(0, 3).map((port) => `http://127.0.0.1:${port}`);
      const bin = join(folder, "node_modules/jackdaw-db/bin/jackdaw");
      const nodes = ["A", "B", "C"].map((tag, at) => {
        const flags = [
          `--Cluster.NodeTag=${tag}`,
          `--Cluster.Routes=${routes.join(",")}`,
          `--Cluster.Nats.Route=${routes[at]}`,
          `--Cluster.Nats.Path=${natsServerPath()}`,
          `--ServerUrl=${urls[at]}`,
          `--DataDir=node-${tag}`,
        ];
        return spawn(process.execPath, [bin, ...flags], {
          cwd: folder,
          stdio: ["pipe", "ignore", "ignore"],
        });
      });
      const jackdaw = async (...words: string[]) =>
        (await run(process.execPath, [bin, ...words])).stdout;
      try {
        const status = () => jackdaw("cluster", "--json", "--url", urls[0] ?? "").catch(() => "{}");
        const nodeCount = async () => {
          const { Nodes = [] } = JSON.parse(await status()) as {
            Nodes?: { IsRegistered: boolean }[];
          };
          return Nodes.filter(({ IsRegistered }) => IsRegistered).length;
        };
        await expect.poll(nodeCount, { timeout: 60_000, interval: 500 }).toBe(3);
        await jackdaw("databases", "create", "shop", "--url", urls[1] ?? "");
        // On a busy machine, the new copy may need longer than a transfer waits.
        const moved = () =>
          jackdaw("cluster", "transfer", "shop", "C", "--url", urls[0] ?? "").catch(String);
        await expect.poll(moved, { timeout: 60_000 }).toBe("shop is led by C\n");
        const body = '{"Name":"Ann"}';
        // While three nodes and their NATS servers start beside other tests, a leader may be lost
        // again; clients retry.
        const document = `/databases/shop/docs?id=users/1`;
        const put = async () =>
          (await fetch(`${urls[1]}${document}`, { method: "PUT", body })).status;
        await expect.poll(put, { timeout: 60_000 }).toBe(201);
        const got = async () => (await fetch(`${urls[0]}${document}`)).status;
        await expect.poll(got, { timeout: 30_000 }).toBe(200);
      } finally {
        const ended = nodes.map((node) => once(node, "exit"));
        for (const node of nodes) node.stdin?.end("shutdown\n");
        await Promise.all(ended);
      }
    },
  );
});

describe("the packed file, installed by npm", () => {
  const place = mkdtempSync(join(tmpdir(), "jackdaw-packed-"));
  const npx = (...words: string[]) => run("npx", ["jackdaw-db", ...words], { cwd: place });

  beforeAll(async () => {
    const pack = ["pack", "--ignore-scripts", "--silent", `--pack-destination=${place}`];
    const { stdout } = await run("npm", pack, { cwd: projectRoot });
    writeFileSync(join(place, "package.json"), "{}");
    const install = ["install", "--offline", "--no-audit", "--no-fund", stdout.trim()];
    await run("npm", install, { cwd: place });
  }, 60_000);
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  test("reports its commands, serves, and answers requests", { timeout: 60_000 }, async () => {
    expect((await npx("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await npx("--help")).stdout).toMatch(/^Usage: jackdaw COMMAND/);
    expect(existsSync(join(place, "data"))).toBe(false);
    const server = spawn(
      process.execPath,
      ["node_modules/.bin/jackdaw", "serve", "--ServerUrl=https://127.0.0.1:0"],
      { cwd: place, stdio: ["pipe", "pipe", "inherit"] },
    );
    try {
      for await (const line of createInterface({ input: server.stdout })) {
        if (line.startsWith("Server available on: ")) break;
      }
      expect((await npx("status")).stdout).toMatch(/^Server {5}https:\/\/127\.0\.0\.1:\d+\n/);
      await npx("databases", "create", "shop");
      writeFileSync(join(place, "users.csv"), "Name\nAnn\n");
      expect((await npx("import", "-d", "shop", "users.csv", "-c", "Users")).stdout).toBe(
        "1 documents\n",
      );
      const { stdout } = await npx("query", "-d", "shop", "from Users select Name", "--csv");
      expect(stdout).toMatch(/^id,Name\nusers\/.*,Ann\n$/);
      expect((await npx("doctor")).stdout).toContain("ok    server");
      const out = ["--out", place, "--access", "shop=read"];
      expect((await npx("cert", "make", "reader", ...out)).stdout).toContain("is registered until");
      const busy = await npx("check").catch((error: { code: number }) => error);
      expect(busy).toMatchObject({ code: 5 });
    } finally {
      server.stdin.end("shutdown\n");
      await once(server, "exit");
    }
    expect((await npx("check")).stdout).toContain("shop: ok, 1 documents");
  });
});

/** Programs in pages, by the language of their fences. */
function programsOf(path: string, language: string): string[] {
  const { blocks } = readPage(projectRoot, path);
  return blocks
    .filter((block) => block.language === language && block.text.includes('"jackdaw-db'))
    .map(({ text }) => text);
}

test.each(["README.md", "docs/library.md"])("programs of %s are complete", async (path) => {
  const programs = programsOf(path, "js");
  expect(programs.length).toBeGreaterThan(0);
  for (const [at, text] of programs.entries()) {
    const name = `${path.replace(/\W/g, "-")}-${at}.mjs`;
    writeFileSync(join(folder, name), text);
    const [first, second] = [
      await run(process.execPath, [name], { cwd: folder }),
      await run(process.execPath, [name], { cwd: folder }),
    ];
    expect(second.stderr).toBe("");
    expect(second.stdout).toBe(first.stdout);
  }
});

describe("types", () => {
  const compiler = createRequire(join(projectRoot, "package.json")).resolve(
    "typescript/lib/tsc.js",
  );
  /** Uses all of the public types. */
  const program = `
    import { EngineError, openEngine, salvageDatabase } from "jackdaw-db";
    import type { Change, Command, Database, Document, Engine, ErrorCode, Query, Row } from "jackdaw-db";
    import { startTestServer, type TestServer } from "jackdaw-db/testing";

    interface User { Name: string; Age: number }
    const engine: Engine = await openEngine({ folder: "data", report: (message) => void message });
    const shop: Database = await engine.database("shop");
    const user: Document<User> | null = await shop.get<User>("users/1");
    const age: number | undefined = user?.Age;
    const vector: string | undefined = user?.["@metadata"]["@change-vector"];
    // @ts-expect-error: it may not be there
    (await shop.get<User>("users/1")).Name;
    const stored: { id: string } = await shop.put("users/1", { Name: "Ann", Age: 1 }, { expected: null });
    const query: Query<User> = shop.query<User>("from Users where Age > $age", { age: 30 });
    for await (const row of query) { const name: string = row.Name; void name; }
    const rows: Row<User>[] = await query.toArray();
    // @ts-expect-error: a user has no such member
    rows[0]?.Size;
    const unknowns: unknown = (await shop.query("from Users").first())?.["Name"];
    const commands: Command[] = [{ type: "delete", id: "a" }];
    // @ts-expect-error: there is no such command
    commands.push({ type: "move", id: "a" });
    await shop.batch(commands);
    for await (const change of shop.changes({ collection: "Users" })) { const one: Change = change; void one; }
    const bytes: Uint8Array | undefined = await (await shop.attachment("users/1", "a"))?.bytes();
    const count: bigint = await shop.incrementCounter("users/1", "likes", 2n);
    try { await salvageDatabase("a", "b"); } catch (error) {
      if (error instanceof EngineError) { const code: ErrorCode = error.code; void code; }
    }
    const server: TestServer = await startTestServer({ secure: false });
    const { name } = await server.database();
    await server.close();
    await engine.close();
    export { age, vector, stored, rows, unknowns, bytes, count, name };`;
  const withSignal = `
    import { openEngine } from "jackdaw-db";
    const shop = await (await openEngine()).database("shop");
    const { signal } = new AbortController();
    for await (const change of shop.changes({ signal })) void change;
    await shop.query("from Users", {}, { signal }).toArray();
    export {};`;
  const strict = { strict: true, skipLibCheck: false, noEmit: true, target: "es2022" };
  const bundler = { ...strict, module: "esnext", moduleResolution: "bundler" };
  const nodenext = { ...strict, module: "nodenext" };
  const ways: [string, object, string][] = [
    ["nodenext", { ...nodenext, lib: ["es2022"], types: [] }, program],
    ["a bundler", { ...bundler, lib: ["es2022"], types: [] }, program],
    ["the signals of browsers", { ...bundler, lib: ["es2022", "dom"], types: [] }, withSignal],
    ["the signals of Node", { ...nodenext, lib: ["es2022"], types: ["node"] }, withSignal],
    ["CommonJS", { ...nodenext, lib: ["es2022"], types: [] }, commonJs()],
  ];

  function commonJs(): string {
    return `
      import jackdaw = require("jackdaw-db");
      export async function open(): Promise<jackdaw.Database> {
        const engine: jackdaw.Engine = await jackdaw.openEngine();
        return await engine.database("shop");
      }`;
  }

  test.each(ways)("compile with %s", async (name, compilerOptions, text) => {
    const place = join(folder, `types-${name.replace(/\W/g, "-")}`);
    mkdirSync(join(place, "node_modules"), { recursive: true });
    symlinkSync("../../node_modules/jackdaw-db", join(place, "node_modules/jackdaw-db"));
    if (name.endsWith("Node")) {
      // In the layout of an installation.
      symlinkSync(join(projectRoot, "node_modules/@types"), join(place, "node_modules/@types"));
    }
    const file = name === "CommonJS" ? "program.cts" : "program.ts";
    const pages = text === program ? programsOf("docs/library.md", "ts") : [];
    const shown = pages.map((_, at) => `page-${at}.ts`);
    for (const [at, page] of pages.entries()) writeFileSync(join(place, `page-${at}.ts`), page);
    const globals = "declare const console: { log(...values: unknown[]): void };";
    writeFileSync(join(place, "globals.d.ts"), pages.length > 0 ? globals : "");
    writeFileSync(join(place, file), text);
    writeFileSync(join(place, "package.json"), '{"type":"module"}');
    const files = [file, ...shown, "globals.d.ts"];
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
    const compiled = await run(process.execPath, [compiler, "-p", place], { cwd: place }).catch(
      (error: { stdout: string }) => error,
    );
    expect(compiled.stdout).toBe("");
  });

  test("are one file per entry point, without those of other entry points", () => {
    for (const entry of entries) {
      const text = readFileSync(builtPath(`bundle/${entry}.d.cts`), "utf8");
      expect(text).not.toMatch(/\bimport\b|\bfrom "|\bBuffer\b|\bNodeJS\b|reference types/);
    }
  });
});
