/** The code itself: headers, tables that must name every file, and words that must not be there. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { routes } from "../server/endpoints/route-table.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((path) => path !== "");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const source = files.filter((path) => /^(engine|server|certs|library)\/.*\.ts$/.test(path));

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
    const commands = [
      "server/main.ts",
      "certs/generate.ts",
      "engine/engine.ts",
      "library/library.ts",
      "library/testing.ts",
    ];
    const imported = new Set<string>();
    for (const path of files.filter((name) => name.endsWith(".ts"))) {
      for (const [, specifier] of read(path).matchAll(
        /(?:from |import |import\(\s*)"(\.[^"]+)"/g,
      )) {
        imported.add(normalize(join(dirname(path), specifier as string)));
      }
    }
    const alone = source.filter((path) => !imported.has(path) && !commands.includes(path));
    expect(alone).toEqual([]);
  });

  test("is not called index, for that is a noun here", () => {
    expect(files.filter((path) => basename(path) === "index.ts")).toEqual([]);
  });
});

describe("rooms", () => {
  const rooms = new Set(
    source.flatMap((path) => {
      const [top, room, file] = path.split("/");
      return (top === "engine" || top === "server") && file !== undefined ? [`${top}/${room}`] : [];
    }),
  );

  test("are listed in ARCHITECTURE.md and have a rule in biome.json, and no others are", () => {
    const sections = read("ARCHITECTURE.md").split(/^\| floor \| /m);
    const listed = sections.flatMap((section) => {
      const top = /^(engine|server)\/ \|/.exec(section)?.[1];
      return [...section.matchAll(/^\| \d+ \| `([\w-]+)\/`/gm)].map(([, room]) => `${top}/${room}`);
    });
    expect(listed.sort()).toEqual([...rooms].sort());
    const { overrides } = JSON.parse(read("biome.json")) as { overrides: { includes: string[] }[] };
    const ruled = overrides
      .flatMap(({ includes }) => includes)
      .filter((pattern) => /^(engine|server)\/.+\/\*\*$/.test(pattern));
    expect(ruled.map((pattern) => pattern.slice(0, -3)).sort()).toEqual([...rooms].sort());
  });

  test("import rooms of lower floors only", () => {
    const floors = new Map<string, number>();
    for (const section of read("ARCHITECTURE.md").split(/^\| floor \| /m)) {
      const top = /^(engine|server)\/ \|/.exec(section)?.[1];
      for (const [, floor, room] of section.matchAll(/^\| (\d+) \| `([\w-]+)\/`/gm)) {
        floors.set(`${top}/${room}`, Number(floor));
      }
    }
    const roomOf = (path: string) => path.split("/").slice(0, 2).join("/");
    const wrong: string[] = [];
    for (const path of source) {
      const floor = floors.get(roomOf(path));
      for (const [, specifier] of read(path).matchAll(
        /(?:from |import |import\(\s*)"(\.[^"]+)"/g,
      )) {
        const target = normalize(join(dirname(path), specifier as string));
        const below = floors.get(roomOf(target));
        if (floor === undefined || below === undefined || path.slice(0, 6) !== target.slice(0, 6))
          continue;
        if (roomOf(target) !== roomOf(path) && below >= floor) wrong.push(`${path} -> ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe("what the package exports", () => {
  test("is imported by nothing in engine/, server/ and certs/", () => {
    const guilty = source.filter(
      (path) => !path.startsWith("library/") && /"(?:\.\.\/)+library\//.test(read(path)),
    );
    expect(guilty).toEqual([]);
  });
});

describe("tables", () => {
  test("every file of endpoints has its routes in the table", () => {
    const table = read("server/endpoints/route-table.ts");
    const endpoints = source.filter((path) => path.startsWith("server/endpoints/"));
    const missing = endpoints.filter((path) => {
      const exportsRoutes = /export const \w+Routes\b/.test(read(path));
      return exportsRoutes && !table.includes(`./${basename(path)}`);
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
