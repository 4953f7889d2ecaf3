import { afterEach, describe, expect, it } from "vitest";
import { assert } from "../../../../engine/base/assert.ts";
import { finish } from "../../../../engine/base/scheduling/work-budget.ts";
import { QueryCompiler } from "../../../../engine/queries/analysis/query.ts";
import { findDocuments } from "../../../../engine/queries/execution/execute.ts";
import { executeEntries } from "../../../../engine/queries/execution/execute-entries.ts";
import type { ScriptProvider, StoredRow } from "../../../../engine/queries/execution/row-source.ts";
import { ArrayDatabase, rowIds } from "./execute-array-host.ts";

let database = new ArrayDatabase();
afterEach(() => {
  database.indexes.checkInvariants();
  database.indexes.close();
  database = new ArrayDatabase();
});

function put(id: string, body: object, collection = "Posts"): void {
  database.put(id, JSON.stringify({ ...body, "@metadata": { "@collection": collection } }));
}

function putPosts(): void {
  put("posts/1", { Title: "The quick brown fox", Views: 10, Author: "users/1", Tags: ["a", "b"] });
  put("posts/2", { Title: "A lazy dog and a fox", Views: 5, Author: "users/2" });
  put("posts/3", { Title: "quick quick quick", Views: 1, Author: "users/1" });
  put("posts/4", { Title: "Boxes", Views: 7, Author: null });
  put("users/1", { Name: "Ann", Boss: "users/2" }, "Users");
  put("users/2", { Name: "Bob" }, "Users");
}

async function idsOf(text: string, parameters: object | null = null): Promise<string[]> {
  return rowIds((await database.query(text, parameters)).rows);
}

function textsOf(rows: readonly string[]): string[] {
  return rows.map((row) => `${row.slice(0, row.lastIndexOf('"@metadata"')).replace(/,$/, "")}}`);
}

describe("full text", () => {
  it("finds words near one another", async () => {
    putPosts();
    const near = (words: string, distance: number) =>
      idsOf(`from Posts where proximity(search(Title, '${words}'), ${distance})`);
    expect(await near("quick fox", 1)).toEqual(["posts/1"]);
    // Words in reversed order are further apart.
    expect(await near("fox quick", 2)).toEqual([]);
    expect(await near("fox quick", 3)).toEqual(["posts/1"]);
    expect(await near("quick quick", 0)).toEqual(["posts/3"]);
    expect(await idsOf("from Posts where proximity(search(Title, 'lazy fox'), 0)")).toEqual([]);
  });

  it("finds similar terms", async () => {
    putPosts();
    expect(await idsOf("from Posts where fuzzy(Title = 'boxen', 0.5)")).toEqual(["posts/4"]);
    expect(await idsOf("from Posts where fuzzy(Title = 'nothing', 0.5)")).toEqual([]);
  });

  it.each([
    ["quick AND fox", ["posts/1"]],
    ["+quick -fox", ["posts/3"]],
    ["lazy OR box*", ["posts/2", "posts/4"]],
    ['"brown fox"', ["posts/1"]],
    ["(lazy dog) AND NOT cat", ["posts/2"]],
    ["qu?ck", ["posts/1", "posts/3"]],
    ["boxen~0.5", ["posts/4"]],
    ["[boa TO boz]", ["posts/4"]],
    ["[boa boz]", ["posts/4"]],
    // Nothing is found that is only excluded.
    ["-quick", []],
    ["NOT quick", []],
  ])("lucene(Title, %s)", async (text, ids) => {
    putPosts();
    // The words of a field are indexed once a query has searched it.
    await database.query("from Posts where search(Title, 'x')");
    expect(
      await idsOf("from Posts where lucene(Title, $p) or search(Title, 'nothing')", { p: text }),
    ).toEqual(ids);
  });

  it.each([
    ...[
      "",
      " ",
      "AND",
      "OR",
      "NOT",
      "a AND",
      "a OR",
      "AND b",
      "(",
      ")",
      "(a",
      "a)",
      '"a',
      "[a",
      "[a TO",
    ],
    ...[
      "a^",
      "a^x",
      "^2",
      "+",
      "-",
      "!",
      "~",
      "&&",
      "a NOT",
      "{a TO b]",
      "\\",
      "a\\",
      "()",
      "a ()",
    ],
  ])("lucene(Title, %j) is refused, as by RavenDB 7.2.7", async (text) => {
    putPosts();
    await expect(idsOf("from Posts where lucene(Title, $p)", { p: text })).rejects.toMatchObject({
      code: "lucene-syntax",
    });
  });

  it("orders by score, and boosts", async () => {
    putPosts();
    expect(await idsOf("from Posts where search(Title, 'quick fox') order by score()")).toEqual([
      "posts/1",
      "posts/3",
      "posts/2",
    ]);
    expect(
      await idsOf("from Posts where boost(search(Title, 'lazy'), 50) or search(Title, 'quick')"),
    ).toEqual(["posts/2", "posts/3", "posts/1"]);
  });
});

describe("order by", () => {
  it("is random, and reproducible with the same seed", async () => {
    for (let i = 0; i < 30; i++) put(`posts/${i}`, { N: i });
    const first = await idsOf("from Posts order by random('seed')");
    expect(await idsOf("from Posts order by random('seed')")).toEqual(first);
    expect(await idsOf("from Posts order by random('other')")).not.toEqual(first);
    expect([...first].sort()).toEqual((await idsOf("from Posts order by id()")).sort());
  });

  it("compares digits as numbers if alphaNumeric is requested", async () => {
    for (const name of ["a10", "a9", "a09b", "b1", "a"]) put(`posts/${name}`, { Name: name });
    const { rows } = await database.query("from Posts order by Name as alphaNumeric select Name");
    expect(textsOf(rows).map((row) => (JSON.parse(row) as { Name: string }).Name)).toEqual([
      "a",
      "a9",
      "a09b",
      "a10",
      "b1",
    ]);
  });
});

describe("load and include", () => {
  it("loads referenced documents; columns do not follow further references", async () => {
    putPosts();
    const { rows } = await database.query(
      "from Posts as p load p.Author as a, a.Boss as b select p.Views, a.Name as A, b.Name as B",
    );
    expect(textsOf(rows)).toEqual([
      '{"Views":10,"A":"Ann"}',
      '{"Views":5,"A":"Bob"}',
      '{"Views":1,"A":"Ann"}',
      '{"Views":7}',
    ]);
  });

  it("includes each document once, under the ids of this page only", async () => {
    putPosts();
    const { outcome } = await database.query("from Posts include Author limit 1");
    expect(outcome.includes.map((one) => one.id)).toEqual(["users/1"]);
    expect(outcome.includedPaths).toEqual(["Author"]);
    const all = await database.query("from Posts include Author");
    expect(all.outcome.includes.map((one) => one.id)).toEqual(["users/1", "users/2"]);
    expect(all.outcome.includes[0]?.text.toString()).toContain('"Name":"Ann"');
  });

  // Verified on RavenDB 7.2.7: a query follows paths as a load does.
  it.each([
    ["from Orders include Lines.User", ["users/1", "users/2"]],
    ["from Orders include Lines[].User", ["users/1", "users/2"]],
    ["from Orders include 'Lines.User'", ["users/1", "users/2"]],
    ["from Orders as o include o.Lines.Others.User", ["users/2"]],
    ["from Orders include 'Number(users/)'", ["users/1"]],
    ["from Orders include 'Lines[].User(none/)'", ["users/1", "users/2"]],
    ["from Orders include 'Lines[].N(users/)'", ["users/1", "users/2"]],
    ["from Orders include 'Lines.N(users/)'", []],
    ["from Orders include 'Roles.$Keys'", ["users/2"]],
    ["from Orders include 'Roles.$Values[]'", ["users/1"]],
    ["from Orders include Nested", []],
    ["from Orders include Nested[]", []],
    ["from Orders as o select o.Lines include o.Lines.User", ["users/1", "users/2"]],
    ["from Orders select Lines[].User as Users include Users", ["users/1", "users/2"]],
  ])("%s", async (text, ids) => {
    putPosts();
    const Others = [{ User: "users/2" }];
    const Lines = [
      { User: "users/1", N: 1 },
      { User: "users/2", N: 2, Others },
    ];
    const Roles = { "users/2": "users/1" };
    put("orders/1", { Lines, Number: "1", Roles, Nested: [["users/1"]] }, "Orders");
    const { outcome } = await database.query(text);
    expect(outcome.includes.map((one) => one.id).sort()).toEqual(ids);
  });

  it("loads documents along paths through arrays, with or without brackets", async () => {
    putPosts();
    put("orders/1", { Lines: [{ User: "users/1" }, { User: "users/2" }] }, "Orders");
    for (const path of ["Lines.User", "Lines[].User"]) {
      const { rows } = await database.query(
        `from Orders as o load o.${path} as u[] select u[].Name as N`,
      );
      expect(textsOf(rows)).toEqual(['{"N":["Ann","Bob"]}']);
    }
    put("orders/2", { Users: ["users/1"], Pairs: [["users/2"]] }, "Orders");
    const ids = async (path: string) => {
      const text = `from Orders as o where id() = 'orders/2' load o.${path} as u[] select u[].Name as N`;
      return textsOf((await database.query(text)).rows);
    };
    expect(await ids("Users[].Name")).toEqual(['{"N":["Ann"]}']);
    expect(await ids("Users.Name")).toEqual(await ids("Pairs[]"));
  });

  it("compares with a compare-exchange value", async () => {
    putPosts();
    database.compareExchange.set("vip", '"users/2"');
    expect(await idsOf("from Posts where Author = cmpxchg('vip')")).toEqual(["posts/2"]);
    expect(await idsOf("from Posts where Author = cmpxchg('none')")).toEqual(["posts/4"]);
  });

  it("reads counters", async () => {
    putPosts();
    database.counters.set("posts/1", new Map([["likes", 5n]]));
    const { rows, outcome } = await database.query(
      "from Posts select counter('likes') as L include counters('likes') limit 2",
    );
    expect(textsOf(rows)).toEqual(['{"L":5}', '{"L":null}']);
    expect(outcome.counterIncludes).toEqual([
      { documentId: "posts/1", names: ["likes"] },
      { documentId: "posts/2", names: ["likes"] },
    ]);
  });
});

describe("rows", () => {
  it("are the stored bytes with metadata at the end", async () => {
    database.put("posts/1", '{"B":1.50,"A":1e3,"@metadata":{"@collection":"Posts"}}');
    const { rows } = await database.query("from Posts");
    expect(rows[0]).toMatch(
      /^\{"B":1.50,"A":1e3,"@metadata":\{"@collection":"Posts","@change-vector":/,
    );
  });

  it("of an empty document contain only metadata", async () => {
    database.put("posts/1", '{"@metadata":{"@collection":"Posts"}}');
    expect((await database.query("from Posts")).rows[0]).toMatch(/^\{"@metadata":\{/);
  });

  it("leave out a document that was deleted while rows were read", async () => {
    for (let i = 0; i < 200; i++) put(`posts/${i}`, { N: i });
    await database.query("from Posts where N >= 0");
    const read = database.read.bind(database);
    database.read = (docNum, row) => {
      database.remove("posts/199");
      return read(docNum, row);
    };
    const ids = await idsOf("from Posts where N >= 0");
    expect(ids).not.toContain("posts/199");
    expect(ids).toHaveLength(199);
  });

  it("wait for a record that must be read from the disk", async () => {
    putPosts();
    const read = database.read.bind(database);
    let isMissing = true;
    let waits = 0;
    database.read = (docNum: number, row: StoredRow) => !isMissing && read(docNum, row);
    database.pending = () => {
      if (!isMissing) return null;
      return Promise.resolve().then(() => {
        waits++;
        isMissing = false;
      });
    };
    expect(await idsOf("from Posts where Views > 5")).toEqual(["posts/1", "posts/4"]);
    expect(waits).toBe(1);
  });
});

describe("scripts", () => {
  it("receive the row and loaded documents, and their rows get metadata", async () => {
    putPosts();
    const requested: string[] = [];
    const scripts: ScriptProvider = {
      forQuery: () => ({
        project: (input) => {
          const author = input.loaded.get("a");
          requested.push(typeof author === "string" ? "loaded" : String(author));
          return [1, 2].map((x) => ({ text: `{"X":${x}}`, isDocument: false }));
        },
        passes: () => true,
        missing: () => null,
        included: { documents: new Set(), compareExchange: new Set() },
      }),
      textTest: () => () => false,
    };
    database.scripts = scripts;
    const { rows, outcome } = await database.query(
      "from Posts as p load p.Author as a select { X: p.Views } limit 2",
    );
    expect(textsOf(rows)).toEqual(['{"X":1}', '{"X":2}']);
    expect(rows[0]).toContain('"@projection":true');
    expect(requested[0]).toBe("loaded");
    expect(outcome.totalResults).toBeGreaterThan(4);
  });
});

describe("errors", () => {
  it.each([
    ["from index 'Nope'", "index-missing"],
    ["from Posts where Views > null", "not-supported"],
    ["from Posts filter search(Title, 'x')", "not-supported"],
    ["from Posts filter startsWith(Author, 'u')", "invalid-operation"],
    ["from Posts order by custom(Title, 'S')", "sorter-missing"],
    ["from Posts where Title = 'of none' order by custom(Title, 'S')", "sorter-missing"],
  ])("%s: %s", async (text, code) => {
    putPosts();
    await expect(database.query(text)).rejects.toMatchObject({ code });
  });
});

describe("executeEntries", () => {
  it("returns the terms of the entries that match a query", async () => {
    putPosts();
    const text = "from Posts where search(Title, 'lazy') or Tags = 'a' order by Views as long";
    const query = new QueryCompiler(() => 0).compile(text, "read", null);
    const host = { source: database, indexes: database.indexes, scripts: database.scripts };
    const request = {
      waitForNonStale: true,
      waitTimeoutMs: 5000,
      isMetadataOnly: false,
      keepsDuplicates: false,
    };
    const { entries, totalResults } = await executeEntries(query, host, request);
    expect(totalResults).toBe(2);
    expect(entries.map((entry) => JSON.parse(entry))).toEqual([
      {
        "id()": "posts/2",
        Title: "a lazy dog and a fox",
        "search(Title)": ["dog", "fox", "lazy"],
        Views: "5",
      },
      {
        "id()": "posts/1",
        Tags: ["a", "b"],
        Title: "the quick brown fox",
        "search(Title)": ["brown", "fox", "quick"],
        Views: "10",
      },
    ]);
  });

  it("lists the terms of a field in live entries", async () => {
    putPosts();
    await database.query("from Posts where Author = 'x'");
    database.remove("posts/2");
    await database.query("from Posts where Author = 'x'");
    const reader = database.indexes.byName("Auto/Posts/ByAuthor")?.reader();
    assert(reader !== undefined, "the query has made its index");
    const termsOf = (name: string, after: string) => finish(reader.termsOf(name, after, 10));
    expect(termsOf("Author", "")).toEqual(["NULL_VALUE", "users/1"]);
    expect(termsOf("Author", "users/1")).toEqual([]);
    expect(termsOf("Nope", "")).toBeUndefined();
  });
});

describe("findDocuments", () => {
  it("returns ids in the order of the query", async () => {
    putPosts();
    const query = new QueryCompiler(() => 0).compile(
      "from Posts where Views > 1 order by Views as long",
      "read",
      null,
    );
    const host = { source: database, indexes: database.indexes, scripts: database.scripts };
    const request = {
      waitForNonStale: true,
      waitTimeoutMs: 5000,
      isMetadataOnly: false,
      keepsDuplicates: false,
    };
    expect(await findDocuments(query, host, request)).toEqual(["posts/2", "posts/4", "posts/1"]);
  });
});

describe("QueryCompiler", () => {
  it("caches trees by text, and parameters separately", () => {
    const compiler = new QueryCompiler(() => 0);
    const text = "from Posts where A = 1 limit 3";
    expect(compiler.compile(text, "read", null)).toEqual(compiler.compile(text, "read", null));
    for (let i = 0; i < 600; i++) compiler.compile(`from Posts where A = ${i}`, "read", null);
    expect(compiler.compile(text, "read", null).paging.take).toBe(3);
    expect(() => compiler.compile(`${text} update { }`, "read", null)).toThrow();
  });
});
