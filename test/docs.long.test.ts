/**
 * Runs the documentation: every fenced block of README.md and of docs/ is executed with a server of
 * the built code, and must print the output in the page (test/support/page.ts defines the
 * comparison). All pages of docs/ run one after the other, in the order of docs/README.md, and leave
 * no files in the tree. Each page also runs alone after docs/first-steps.md, with a copy of its data,
 * so pages can be read in any order.
 *
 * Lists in the pages are also compared with the tables of the code that they describe, and links
 * with existing files and headings.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { functions } from "../engine/queries/functions/function-table.ts";
import { globals } from "../engine/scripting/built-ins/built-ins.ts";
import { indexGlobals } from "../engine/scripting/index-functions.ts";
import { seriesQueryName } from "../engine/scripting/patch-functions.ts";
import { clearanceRank, databaseAccesses } from "../server/security/access.ts";
import { type SettingName, settings } from "../server/settings/setting-table.ts";
import { exitCodes } from "../server/settings/start-error.ts";
import { type Block, isShown, type Page, readPage, tableUnder } from "./support/page.ts";
import { PageServer } from "./support/page-server.ts";
import { projectRoot } from "./support/project-root.ts";

const scratch = mkdtempSync(join(tmpdir(), "jackdaw-docs-"));
const names = readdirSync(join(projectRoot, "docs")).filter((name) => name.endsWith(".md"));
const readme = readPage(projectRoot, "README.md");
const contents = readPage(projectRoot, "docs/README.md");
const pages = names.sort().map((name) => readPage(projectRoot, `docs/${name}`));
const others = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map((path) =>
  readPage(projectRoot, path),
);
const all = [readme, ...pages, ...others];

/** Blocks that are not run: the page, how they begin, and why. */
const notRun: readonly { page: string; begins: string; because: string }[] = [
  {
    page: "README.md",
    begins: "npm ci && npm start",
    because: "npm start builds first; here the server is the bin/jackdaw of the last build",
  },
  {
    page: "README.md",
    begins: "npm ci && npm test",
    because: "this test would run inside itself",
  },
  {
    page: "README.md",
    begins: "npm i jackdaw-db",
    because:
      "test/package.long.test.ts installs the package; here the server for development is started first",
  },
  {
    page: "docs/recipes.md",
    begins: "// orders.test.js",
    because: "it needs vitest; docs/testing.md has the same test for node:test",
  },
  ...[
    ["export ROUTES=", "it starts three nodes, which need nats-server"],
    ["openssl req -x509", "it needs openssl"],
    ["jackdaw cluster\n", "the server of the pages is a single node"],
    ["jackdaw cluster adopt", "likewise"],
  ].map(([begins = "", because = ""]) => ({ page: "docs/cluster.md", begins, because })),
];

function isRun(page: Page, block: Block): boolean {
  if (block.language === "ts") return false; // test/package.long.test.ts compiles them.
  if (["nginx", "yaml"].includes(block.language)) return false; // configurations of other programs
  return !notRun.some(({ page: path, begins }) => {
    return path === page.path && block.text.startsWith(begins);
  });
}

const firstSteps = pageOf("docs/first-steps.md");
/** The shell functions used in the pages, which docs/first-steps.md defines. */
const setup = firstSteps.blocks.find(({ text }) => text.includes("api() {"))?.text ?? "";

/** Runs pages in `folder`, one after the other with one server. Blocks must print what the page shows. */
async function tryPages(tried: readonly Page[], folder: string, kind?: "dev"): Promise<void> {
  const server = await PageServer.start(projectRoot, folder, kind);
  try {
    const reports: string[] = [];
    for (const page of tried) reports.push(...(await tryPage(page, server)));
    expect(reports.join("\n\n")).toBe("");
    expect(server.leftFiles()).toEqual([]);
  } finally {
    expect(await server.stop()).toBe(0);
  }
}

/** Returns a report for each block whose result differs from the page. */
async function tryPage(page: Page, server: PageServer): Promise<string[]> {
  const blocks = page.blocks.filter((block) => isRun(page, block));
  const ran = await server.run(page, blocks, page === readme || page === firstSteps ? "" : setup);
  const wrong = ran.filter(({ block: { shown }, printed, hasFailed }) => {
    // A block that is meant to fail has curl's error message as its output.
    if (hasFailed && !shown?.includes("curl: (22)")) return true;
    return shown !== null && !isShown(printed, shown);
  });
  return wrong.map(
    ({ where, block, printed, hasFailed }) =>
      `${where}${hasFailed ? " (a command failed)" : ""}\n${block.text}` +
      `--- printed\n${printed.slice(0, 4000)}\n--- shown\n${block.shown ?? "(nothing)"}`,
  );
}

const folderOf = (name: string) => {
  const folder = join(scratch, name.replace(/\W/g, "-"));
  mkdirSync(folder);
  return folder;
};
const firstFolder = folderOf("first");
/** Timeout of a page: all pages run concurrently, perhaps beside other programs. */
const timeoutMs = 120_000;

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("every block prints the output shown in its page", () => {
  test("README.md", () => tryPages([readme], folderOf("README"), "dev"), timeoutMs);
  test("docs/first-steps.md", () => tryPages([firstSteps], firstFolder), timeoutMs);

  const tried = pages.filter((page) => page.blocks.length > 0 && page !== firstSteps);
  describe.concurrent("and continues from there:", () => {
    test.each(tried)("$path", { timeout: timeoutMs }, async (page) => {
      const folder = folderOf(page.path);
      cpSync(join(firstFolder, "data"), join(folder, "data"), { recursive: true });
      await tryPages([page], folder);
    });
  });

  test(
    "all of docs/, in the order of its table of contents, in one folder",
    async () => {
      const order = contents.links.map(({ target }) => `docs/${target.split("#")[0]}`);
      const inOrder = [...new Set(order)].flatMap((path) =>
        pages.filter((page) => page.path === path),
      );
      expect(inOrder.filter(({ blocks }) => blocks.length > 0)).toHaveLength(tried.length + 1);
      await tryPages(inOrder, folderOf("all"));
    },
    10 * timeoutMs,
  );

  test("which is compared as text, except for … and white space", () => {
    expect(isShown('{"a":1,"b":[2]}', '{"a": 1,\n "b": [2]}')).toBe(true);
    expect(isShown('{"etag":"A:7-x","a":1}', '{"etag":"A:…","a":1}')).toBe(true);
    expect(isShown('{"a":12}', '{"a":1}')).toBe(false);
    expect(isShown('{"a":1}{"b":1}', '{"a":1}')).toBe(false);
    expect(isShown("a.c", "a…d")).toBe(false);
  });

  test("skipped blocks exist and have a reason", () => {
    const stale = notRun.filter(({ page, begins, because }) => {
      const found = all.find(({ path }) => path === page)?.blocks ?? [];
      return because === "" || !found.some(({ text }) => text.startsWith(begins));
    });
    expect(stale).toEqual([]);
    const idle = all.flatMap((page) =>
      page.blocks
        .filter((block) => !["sh", "js"].includes(block.language) && isRun(page, block))
        .map(({ line }) => `${page.path}:${line}`),
    );
    expect(idle).toEqual([]);
  });
});

describe("links", () => {
  const targets = all.flatMap((page) => page.links.map((link) => ({ page, ...link })));

  test("between pages lead to a page and a heading of it", () => {
    const broken = targets.filter(({ page, target }) => {
      if (/^[a-z]+:/.test(target)) return false;
      const [path = "", anchor] = target.split("#");
      const full = path === "" ? page.path : normalize(join(dirname(page.path), path));
      if (!existsSync(join(projectRoot, full))) return true;
      return anchor !== undefined && !all.find((one) => one.path === full)?.anchors.has(anchor);
    });
    expect(broken.map(({ page, line, target }) => `${page.path}:${line} ${target}`)).toEqual([]);
  });

  test("docs/README.md leads to every page", () => {
    const linked = new Set(contents.links.map(({ target }) => `docs/${target.split("#")[0]}`));
    const others = pages.filter(({ path }) => path !== contents.path);
    expect(others.map(({ path }) => path).filter((path) => !linked.has(path))).toEqual([]);
  });
});

/** The text in backticks in a cell. */
function code(cell = ""): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text as string);
}

function pageOf(path: string): Page {
  const page = all.find((one) => one.path === path);
  if (page === undefined) throw new Error(`there is no ${path}`);
  return page;
}

/** What is named in backticks anywhere in a page's prose: of `a.b(c)` both `a` and `a.b`. */
function wordsOf(path: string): Set<string> {
  const words = code(pageOf(path).prose).map((word) => word.replace(/\(.*$/, ""));
  return new Set(words.flatMap((word) => [word, word.replace(/\..*$/, "")]));
}

describe("what pages list is what the code has", () => {
  test("settings, with their defaults, under the heading of their group, as what they are", () => {
    const plain = (text = "") =>
      text
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replaceAll("`", "")
        .trim();
    const known = Object.entries(settings);
    const documented = [...new Set(known.map(([, { group }]) => group))].flatMap((group) =>
      tableUnder(pageOf("docs/settings.md"), group).map(([name, fallback, about]) => {
        const setting = settings[code(name)[0] as SettingName];
        const isSame = setting !== undefined && plain(about).startsWith(setting.about);
        return [group, code(name)[0], code(fallback)[0], isSame ? setting.about : plain(about)];
      }),
    );
    const expected = known.map(([name, { group, fallback, about }]) => [
      group,
      name,
      fallback || undefined,
      about,
    ]);
    expect(documented.sort()).toEqual(expected.sort());
  });

  test("exit codes", () => {
    const rows = tableUnder(pageOf("docs/operations.md"), "Exit codes");
    const documented = rows.map(([number, name]) => [code(name)[0], Number(number)]);
    expect(Object.fromEntries(documented.filter(([name]) => name !== undefined))).toEqual(
      exitCodes,
    );
  });

  test("clearances and permissions", () => {
    const words = wordsOf("docs/security.md");
    const known = [...Object.keys(clearanceRank), ...databaseAccesses];
    expect(known.filter((word) => !words.has(word))).toEqual([]);
  });

  test("methods of queries", () => {
    const words = new Set([...wordsOf("docs/queries.md")].map((word) => word.toLowerCase()));
    expect(Object.keys(functions).filter((name) => !words.has(name))).toEqual([]);
  });

  test("functions of scripts", () => {
    const words = wordsOf("docs/patching.md");
    // Compiled declared series queries are not for users.
    const names = [...globals.keys()].filter((name) => name !== seriesQueryName);
    expect(names.filter((name) => !words.has(name))).toEqual([]);
  });

  test("additional functions of indexes", () => {
    const words = wordsOf("docs/indexes.md");
    const own = [...indexGlobals.keys()].filter((name) => !globals.has(name));
    expect(own.filter((name) => !words.has(name))).toEqual([]);
  });

  test("the version, which is the newest in the change log", () => {
    const { version } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as {
      version: string;
    };
    const newest = /^## \[(\d[^\]]*)\]/m.exec(pageOf("CHANGELOG.md").prose)?.[1];
    expect(newest).toBe(version);
  });
});
