/** Checks of the source tree: headers, tables that must list every file, and forbidden words. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { routes } from "../server/endpoints/route-table.ts";
import { settings } from "../server/settings/setting-table.ts";
import { projectRoot } from "./support/project-root.ts";

const files = execFileSync("git", ["ls-files"], { cwd: projectRoot, encoding: "utf8" })
  .split("\n")
  .filter((path) => path !== "");
const read = (path: string) => readFileSync(join(projectRoot, path), "utf8");
const source = files.filter((path) => /^(engine|server|certs|cli|library)\/.*\.ts$/.test(path));

describe("every source file", () => {
  test("opens with a header comment", () => {
    const bare = source.filter(
      (path) =>
        !read(path)
          .replace(/^#!.*\n/, "")
          .startsWith("/**"),
    );
    expect(bare).toEqual([]);
  });

  test("is imported by another file, or is a command", () => {
    const commands = [
      "server/main.ts",
      "server/http-threads/main.ts",
      "certs/generate.ts",
      "cli/main.ts",
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

  test("is not called index, because an index is a database index here", () => {
    expect(files.filter((path) => basename(path) === "index.ts")).toEqual([]);
  });
});

describe("tests", () => {
  /** Number of lines from which a file needs its own test. */
  const longLines = 500;
  const tests = files.filter((path) => path.endsWith(".test.ts"));
  /** The runtime imports of a file. */
  const importsOf = new Map(
    files
      .filter((path) => path.endsWith(".ts"))
      .map((path) => {
        const found = read(path).matchAll(
          /^(?:import|export) (?!type )(?:[^"';]*? from )?"(\.[^"]+)"|\bimport\(\s*"(\.[^"]+)"/gm,
        );
        const paths = [...found].map(([, one, other]) =>
          normalize(join(dirname(path), one ?? other ?? "")),
        );
        return [path, paths];
      }),
  );
  // It runs the server and commands as processes.
  importsOf
    .get("test/server/start.long.test.ts")
    ?.push("server/main.ts", "cli/main.ts", "cli/run.ts");

  function reachedFrom(paths: readonly string[]): Set<string> {
    const reached = new Set<string>();
    const waiting = [...paths];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (const one of importsOf.get(next) ?? []) {
        if (reached.has(one)) continue;
        reached.add(one);
        waiting.push(one);
      }
    }
    return reached;
  }

  test("reach every source file with code by their imports", () => {
    const isRun = (path: string) =>
      /^export (?:async |abstract )?(?:function|class|const|let)\b|^export \{|^main\(/m.test(
        read(path),
      );
    const reached = reachedFrom(tests);
    expect(source.filter((path) => isRun(path) && !reached.has(path))).toEqual([]);
  });

  test("have a kind that vitest.config.ts describes, or none", () => {
    const described = new Set(
      [...read("vitest.config.ts").matchAll(/^ \* \| `([a-z]+)` \|/gm)].map(([, kind]) => kind),
    );
    const kinds = files.flatMap((path) => /\.([a-z]+)\.test\.ts$/.exec(path)?.[1] ?? []);
    expect(described.size).toBeGreaterThan(5);
    expect(kinds.filter((kind) => !described.has(kind))).toEqual([]);
  });

  test("import each file of more than 500 lines directly, or are at its mirrored path", () => {
    const direct = new Set(tests.flatMap((path) => importsOf.get(path) ?? []));
    const mirrored = new Set(
      tests.map((path) => path.replace(/^test\//, "").replace(/(\.[a-z]+)?\.test\.ts$/, ".ts")),
    );
    const long = source.filter((path) => read(path).split("\n").length > longLines);
    expect(long.length).toBeGreaterThan(20);
    expect(long.filter((path) => !direct.has(path) && !mirrored.has(path))).toEqual([]);
  });
});

describe("rooms", () => {
  const rooms = new Set(
    source.flatMap((path) => {
      const [top, room, file] = path.split("/");
      return (top === "engine" || top === "server") && file !== undefined ? [`${top}/${room}`] : [];
    }),
  );

  const floors = new Map<string, number>(
    read("ARCHITECTURE.md")
      .split(/^\| floor \| /m)
      .flatMap((section) => {
        const top = /^(engine|server)\/ \|/.exec(section)?.[1];
        return [...section.matchAll(/^\| (\d+) \| `([\w/-]+)\/`/gm)].map(
          ([, floor, room]) => [`${top}/${room}`, Number(floor)] as const,
        );
      }),
  );

  test("are listed in ARCHITECTURE.md, and no others are", () => {
    expect([...floors.keys()].filter((path) => path.split("/").length === 2).sort()).toEqual(
      [...rooms].sort(),
    );
    const parts = [...floors.keys()].filter((path) => path.split("/").length > 2);
    expect(parts.filter((path) => !files.some((file) => file.startsWith(`${path}/`)))).toEqual([]);
  });

  test("of the engine have a README.md, and no folder has more than 25 files", () => {
    const engine = [...rooms].filter((room) => room.startsWith("engine/"));
    expect(engine.filter((room) => !files.includes(`${room}/README.md`))).toEqual([]);
    const folders = new Set(source.map((path) => dirname(path)));
    const large = [...folders].filter(
      (folder) =>
        /^(engine|server\/endpoints)\b/.test(folder) &&
        source.filter((path) => dirname(path) === folder).length > 25,
    );
    expect(large).toEqual([]);
  });

  test("import only rooms of lower floors, and storage/replication/ only base/", () => {
    // The room, or the listed folder in it.
    const roomOf = (path: string) => {
      let folder = dirname(path);
      while (folder.includes("/") && !floors.has(folder)) folder = dirname(folder);
      return folder;
    };
    const wrong: string[] = [];
    for (const path of source) {
      const room = roomOf(path);
      const floor = room === "engine/storage/replication" ? 2 : floors.get(room);
      for (const [, specifier] of read(path).matchAll(
        /(?:from |import |import\(\s*)"(\.[^"]+)"/g,
      )) {
        const target = normalize(join(dirname(path), specifier as string));
        const below = floors.get(roomOf(target));
        if (floor === undefined || below === undefined || path.slice(0, 6) !== target.slice(0, 6))
          continue;
        if (roomOf(target) !== room && below >= floor) wrong.push(`${path} -> ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe("ARCHITECTURE.md and CONTRIBUTING.md", () => {
  test("name only files that exist", () => {
    const missing = ["ARCHITECTURE.md", "CONTRIBUTING.md"].flatMap((page) =>
      [...read(page).matchAll(/`((?:[\w.-]+\/)*[\w.-]+\.(?:ts|tsx|js))`/g)]
        .map(([, name]) => name as string)
        .filter((name) => !files.some((path) => path === name || path.endsWith(`/${name}`)))
        .map((name) => `${page}: ${name}`),
    );
    expect(missing).toEqual([]);
  });
});

describe("the command line, and the entry points of the package", () => {
  test.for(["cli", "library"])("%s/ is not imported by other source folders", (top) => {
    const specifier = new RegExp(`"(?:\\.\\./)+${top}/`);
    const others = source.filter((path) => !path.startsWith(`${top}/`));
    expect(others.filter((path) => specifier.test(read(path)))).toEqual([]);
  });
});

describe("tables", () => {
  test("the route table contains the routes of every endpoint file", () => {
    const table = read("server/endpoints/route-table.ts");
    const endpoints = source.filter((path) => path.startsWith("server/endpoints/"));
    const missing = endpoints.flatMap((path) => {
      const names = [...read(path).matchAll(/^export const (\w+Routes)\b/gm)].map(
        ([, name]) => name,
      );
      // Each list is imported from its file, and is an element of the table.
      const isListed = (name = "") =>
        new RegExp(`\\{[^}]*\\b${name}\\b[^}]*\\} from "\\./(?:[\\w-]+/)?${basename(path)}"`).test(
          table,
        ) && new RegExp(`\\.\\.\\.${name}\\b`).test(table);
      return names.filter((name) => !isListed(name));
    });
    expect(missing).toEqual([]);
  });

  test("settings are read by a file next to their table", () => {
    const readers = source
      .filter((path) => /^server\/settings\/(?!setting-table)/.test(path))
      .map(read)
      .join();
    expect(Object.keys(settings).filter((name) => !readers.includes(`"${name}"`))).toEqual([]);
  });

  test("metrics are in docs/operations.md or docs/cluster.md", () => {
    const pages = read("docs/operations.md") + read("docs/cluster.md");
    const names = source
      .filter((path) => path.startsWith("server/monitoring/"))
      .flatMap((path) => [...read(path).matchAll(/"(jackdaw_\w+)"/g)].map(([, name]) => name));
    expect(names.length).toBeGreaterThan(40);
    expect(names.filter((name) => !new RegExp(`\`${name}\\b`).test(pages))).toEqual([]);
  });

  test("studio/main.tsx shows every page, and rights.walk.test.ts opens those of the sidebar", () => {
    const found = (path: string, pattern: RegExp) =>
      [...read(path).matchAll(pattern)].map(([, name]) => name);
    const main = read("studio/main.tsx");
    const pages = files
      .filter((path) => /^studio\/pages\/.*\.tsx$/.test(path))
      .flatMap((path) => found(path, /^export function (\w+Page)\b/gm));
    expect(pages.filter((name) => !main.includes(`<${name} `))).toEqual([]);
    const opened = read("test/studio/flows/rights.walk.test.ts");
    const listed = found("studio/shell/shell.tsx", /^ {2}\{ page: "(\w+)"/gm);
    expect([pages.length, listed.length].every((count) => count >= 10)).toBe(true);
    expect(listed.filter((page) => !new RegExp(`"(?:db/shop/)?${page}["?]`).test(opened))).toEqual(
      [],
    );
  });

  test("exactly these routes are open without a certificate", () => {
    const open = routes
      .filter(({ access }) => access === "open")
      .map(({ method, path }) => `${method} ${path}`)
      .sort();
    expect(open).toMatchInlineSnapshot(`
      [
        "GET /auth-error.html",
        "GET /certificates/whoami",
        "GET /healthz",
        "GET /livez",
        "GET /readyz",
        "GET /setup/alive",
        "GET /studio",
        "GET /studio/*",
      ]
    `);
  });
});

describe("the project", () => {
  test("contains no to-do notes, and no skipped tests", () => {
    const words = new RegExp(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"].join("|"));
    const skipped = /\b(?:it|test|describe)\.(?:skip|only|todo)\(/;
    const guilty = files
      .filter((path) => /\.(?:ts|mjs|js)$/.test(path))
      .filter((path) => words.test(read(path)) || skipped.test(read(path)));
    expect(guilty).toEqual([]);
  });
});
