/** The code itself: headers, tables that must name every file, and words that must not be there. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { routes } from "../server/route-table.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((path) => path !== "");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const source = files.filter((path) => /^(engine|server|certs)\/.*\.ts$/.test(path));

describe("every source file", () => {
  test("opens with a header that says what it is for", () => {
    const bare = source.filter(
      (path) =>
        !read(path)
          .replace(/^#!.*\n/, "")
          .startsWith("/**"),
    );
    expect(bare).toEqual([]);
  });

  test("is imported by another, or is a command", () => {
    const commands = ["server/main.ts", "certs/generate.ts", "engine/engine.ts"];
    const specifiers = new Set<string>();
    for (const path of files.filter((name) => name.endsWith(".ts"))) {
      for (const [, specifier] of read(path).matchAll(/from "(\.[^"]+)"|import\("(\.[^"]+)"\)/g)) {
        if (specifier !== undefined) specifiers.add(basename(specifier));
      }
      for (const [, specifier] of read(path).matchAll(/import\("(\.[^"]+)"\)/g)) {
        if (specifier !== undefined) specifiers.add(basename(specifier));
      }
    }
    const alone = source.filter(
      (path) => !specifiers.has(basename(path)) && !commands.includes(path),
    );
    expect(alone).toEqual([]);
  });

  test("is not called index, for that is a noun here", () => {
    expect(files.filter((path) => basename(path) === "index.ts")).toEqual([]);
  });
});

describe("tables", () => {
  test("every file of endpoints has its routes in the table", () => {
    const table = read("server/route-table.ts");
    const endpoints = source.filter((path) => path.startsWith("server/endpoints/"));
    const missing = endpoints.filter((path) => {
      const exportsRoutes = /export const \w+Routes\b/.test(read(path));
      return exportsRoutes && !table.includes(`./endpoints/${basename(path)}`);
    });
    expect(missing).toEqual([]);
  });

  test("the routes open without a certificate are these and no others", () => {
    const open = routes
      .filter(({ access }) => access === "open")
      .map(({ method, path }) => `${method} ${path}`)
      .sort();
    expect(open).toMatchInlineSnapshot(`
      [
        "GET /auth-error.html",
        "GET /certificates/whoami",
        "GET /setup/alive",
      ]
    `);
  });
});

describe("the project", () => {
  test("leaves nothing undone in words, and no test out", () => {
    const words = new RegExp(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"].join("|"));
    const skipped = /\b(?:it|test|describe)\.(?:skip|only|todo)\(/;
    const guilty = files
      .filter((path) => /\.(?:ts|mjs|js)$/.test(path))
      .filter((path) => words.test(read(path)) || skipped.test(read(path)));
    expect(guilty).toEqual([]);
  });
});
