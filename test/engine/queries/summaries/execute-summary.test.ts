/**
 * Facets, suggestions and moreLikeThis over deployed and automatic indexes; the expected results
 * were measured on RavenDB 7.2.7.
 */
import { afterEach, describe, expect, it, test } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import type { EngineError } from "../../../../engine/base/errors.ts";
import { setWorkLimits, workLimits } from "../../../../engine/base/scheduling/work-budget.ts";
import { closeDatabases, openDatabase, putAll, query } from "../../../support/open-database.ts";

afterEach(closeDatabases);

const products = {
  "products/1": { Brand: "Zed", Price: 10, Stock: 3, Tags: ["a", "b", "a"], Town: "Porto" },
  "products/2": { Brand: "zed", Price: 10.5, Stock: 4, Tags: ["b", null], Town: "Évora" },
  "products/3": { Brand: "Yak", Price: 20, Stock: 5, Tags: [], Town: "Lisboa" },
  "products/4": { Brand: "Yak", Price: 30, Stock: 6, Town: null },
  "products/5": { Brand: "x-y", Price: 40, Stock: 7, Tags: "b", Town: "" },
};

const words = [
  "oren",
  "maxim",
  "maksim",
  "karmel",
  "carmel",
  "maxime",
  "anna maria",
  "maxine",
  "max",
];

const articles = {
  "articles/1": { Body: "alpha beta gamma gamma delta", Topic: "one", Tags: ["x", "y"] },
  "articles/2": { Body: "alpha alpha beta", Topic: "one", Tags: ["x"] },
  "articles/3": { Body: "gamma epsilon", Topic: "two", Tags: ["y"] },
  "articles/4": { Body: "zeta", Topic: "three", Tags: [] },
  "articles/5": { Body: "alpha", Topic: "two", Tags: ["x"] },
};

async function opened(): Promise<OpenDatabase> {
  const database = await openDatabase();
  await putAll(database, "Products", products);
  await putAll(database, "Words", Object.fromEntries(words.map((T, i) => [`words/${i}`, { T }])));
  await putAll(database, "Articles", articles);
  await database.queries.administration.deploy(
    [
      {
        Name: "P",
        Maps: [
          "map('Products', p => ({ Brand: p.Brand, Exact: p.Brand, Price: p.Price, Stock: p.Stock, Tags: p.Tags, Town: p.Town }))",
        ],
        Fields: { Exact: { Indexing: "Exact" } },
      },
      {
        Name: "R",
        Maps: ["map('Products', p => ({ Brand: p.Brand, Count: 1 }))"],
        Reduce:
          "groupBy(x => x.Brand).aggregate(g => ({ Brand: g.key, Count: g.values.reduce((n, v) => n + v.Count, 0) }))",
      },
      {
        Name: "W",
        Maps: ["map('Words', w => ({ T: w.T, S: w.T, N: w.T, E: w.T }))"],
        Fields: {
          T: { Suggestions: true },
          S: { Suggestions: true, Indexing: "Search" },
          E: { Suggestions: true, Indexing: "Exact" },
        },
      },
      {
        Name: "A",
        Maps: ["map('Articles', a => ({ Body: a.Body, Topic: a.Topic, Tags: a.Tags }))"],
        Fields: { Body: { Indexing: "Search" } },
      },
    ],
    true,
  );
  return database;
}

describe("the order of facets", () => {
  const plain = [
    "pear",
    "apple",
    "Zoo",
    null,
    "fig",
    "apple",
    "kiwi",
    "mango",
    "banana",
    null,
    "aa",
    "zz",
    "",
  ];
  const mixed = "B|a|A|b|é|e|f|z|ä|10|9|_x|-y|a b|ab|a-b|É|ß|ss|st".split("|");

  it.each<[string, readonly (string | null)[], object, string, Readonly<Record<string, string>>]>([
    [
      "plain",
      plain,
      {},
      "facet(T, $o)",
      {
        ValueAsc: "NULL_VALUE EMPTY_STRING aa apple banana fig kiwi mango pear zoo zz",
        ValueDesc: "NULL_VALUE zz zoo pear mango kiwi fig banana apple aa EMPTY_STRING",
        CountAsc: "aa banana EMPTY_STRING fig kiwi mango pear zoo zz apple NULL_VALUE",
        CountDesc: "apple NULL_VALUE aa banana EMPTY_STRING fig kiwi mango pear zoo zz",
      },
    ],
    [
      "with sums",
      plain,
      {},
      "facet(T, sum(S), $o)",
      {
        ValueAsc: "aa apple banana EMPTY_STRING fig kiwi mango NULL_VALUE pear zoo zz",
        ValueDesc: "zz zoo pear NULL_VALUE mango kiwi fig EMPTY_STRING banana apple aa",
        CountAsc: "aa banana EMPTY_STRING fig kiwi mango pear zoo zz apple NULL_VALUE",
        CountDesc: "apple NULL_VALUE aa banana EMPTY_STRING fig kiwi mango pear zoo zz",
      },
    ],
    [
      "of Lucene",
      plain,
      { Configuration: { "Indexing.Static.SearchEngineType": "Lucene" } },
      "facet(T, $o)",
      {
        ValueAsc: "aa apple banana EMPTY_STRING fig kiwi mango NULL_VALUE pear zoo zz",
        ValueDesc: "zz zoo pear NULL_VALUE mango kiwi fig EMPTY_STRING banana apple aa",
        CountDesc: "apple NULL_VALUE aa banana EMPTY_STRING fig kiwi mango pear zoo zz",
      },
    ],
    [
      "of any letters",
      mixed,
      { Fields: { T: { Indexing: "Exact" } } },
      "facet(T, $o)",
      {
        ValueAsc: "-y 10 9 A B _x a a_b a-b ab b e f ss st z É ß ä é",
        CountDesc: "_x -y 10 9 a A ä a_b a-b ab b B e é É f ss ß st z",
      },
    ],
  ])("%s", async (_what, values, options, select, orders) => {
    const database = await openDatabase();
    const documents = values.map((T, S) => [`p/${S}`, { T, S }]);
    await putAll(database, "P", Object.fromEntries(documents));
    const definition = {
      Name: "T",
      Maps: ["from p in docs.P select new { p.T, p.S }"],
      ...options,
    };
    await database.queries.administration.deploy([definition], true);
    for (const [TermSortMode, order] of Object.entries(orders)) {
      for (const PageSize of [2, 100]) {
        const o = { TermSortMode, PageSize, IncludeRemainingTerms: true };
        const [row] = await rowsOf(database, `from index 'T' select ${select}`, { o });
        const { Values, RemainingTerms } = row as unknown as {
          Values: { Range: string }[];
          RemainingTerms: string[];
        };
        const reported = [...Values.map(({ Range }) => Range), ...RemainingTerms];
        expect(Values.length).toBe(Math.min(PageSize, reported.length));
        expect(reported.map((text) => text.replace(" ", "_")).join(" "), TermSortMode).toBe(order);
        // Values that are not returned need no sorting.
        const [page] = await rowsOf(database, `from index 'T' select ${select}`, {
          o: { TermSortMode, PageSize, Start: 3 },
        });
        const shown = (page as { Values: { Range: string }[] } | undefined)?.Values ?? [];
        expect(shown.map(({ Range }) => Range)).toEqual(reported.slice(3, 3 + PageSize));
        const [before] = await rowsOf(database, `from index 'T' select ${select}`, {
          o: { TermSortMode, PageSize: 4, Start: -2 },
        });
        const first = (before as { Values: { Range: string }[] } | undefined)?.Values ?? [];
        expect(first.map(({ Range }) => Range)).toEqual(reported.slice(0, 4));
      }
    }
  });
});

/** The rows of a query, with parameters. */
async function rowsOf(database: OpenDatabase, text: string, parameters?: object) {
  const parametersText = parameters === undefined ? null : JSON.stringify(parameters);
  return (await query(database, text, { parametersText, waitForNonStale: true })).rows;
}

/** Facets in short form: `name: value count, … (remaining hits, remaining terms)`. */
async function facets(database: OpenDatabase, select: string, parameters?: object, where = "") {
  const rows = await rowsOf(database, `from index 'P' ${where} select ${select}`, parameters);
  return rows.map((row) => {
    const values = (row["Values"] as Record<string, unknown>[]).map(
      ({ Name, Range, ...numbers }) =>
        `${Name === null ? "" : `${Name}@`}${Range} ${Object.values(numbers).join("/")}`,
    );
    const remaining = `${row["RemainingHits"]} ${row["RemainingTermsCount"]} ${row["RemainingTerms"]}`;
    return `${row["Name"]}: ${values.join(", ")}${remaining === "0 0 " ? "" : ` (${remaining})`}`;
  });
}

it("includes the documents whose ids are values of an included facet", async () => {
  const database = await opened();
  await putAll(database, "Orders", {
    "orders/1": { Of: "Words/0" },
    "orders/2": { Of: "words/0" },
    "orders/3": { Of: "words/1" },
    "orders/4": { Of: "words/none" },
  });
  await database.queries.administration.deploy(
    [{ Name: "O", Maps: ["map('Orders', o => ({ Of: o.Of }))"] }],
    true,
  );
  const included = async (text: string) => {
    const { outcome } = await query(database, text, { waitForNonStale: true });
    return outcome?.includes.map(({ id }) => id);
  };
  expect(await included("from index 'O' select facet(Of) include Of")).toEqual([
    "words/0",
    "words/1",
  ]);
  expect(await included("from index 'O' select facet(Of) as Whose include Whose")).toHaveLength(2);
  expect(await included("from index 'O' select facet(Of) as Whose include Of")).toEqual([]);
  expect(await included("from index 'O' select facet(Of)")).toEqual([]);
});

describe("facet()", () => {
  it("counts each term once per document, in byte order, null and the empty text first", async () => {
    const database = await opened();
    expect(await facets(database, "facet(Brand), facet(Tags) as T")).toEqual([
      "Brand: x-y 1, yak 2, zed 2",
      "T: NULL_VALUE 1, a 1, b 3",
    ]);
    expect(await facets(database, "facet(Exact)")).toEqual(["Exact: Yak 2, Zed 1, x-y 1, zed 1"]);
    expect(await facets(database, "facet(Town)")).toEqual([
      "Town: NULL_VALUE 1, EMPTY_STRING 1, lisboa 1, porto 1, évora 1",
    ]);
    expect(await facets(database, "facet(Brand)", undefined, "where Stock > 4")).toEqual([
      "Brand: x-y 1, yak 2",
    ]);
    expect(await facets(database, "facet(Brand)", undefined, "where Stock > 40")).toEqual([
      "Brand: ",
    ]);
    expect(await rowsOf(database, "from index 'R' select facet(Count, sum(Count))")).toMatchObject([
      {
        Values: [
          { Name: "Count", Sum: 3, Count: 3, Range: "1" },
          { Sum: 2, Range: "2" },
        ],
      },
    ]);
  });

  it("follows changes and deletions of documents", async () => {
    const database = await opened();
    await putAll(database, "Products", { "products/3": { Brand: "zed", Price: 1, Stock: 1 } });
    await database.delete("products/5");
    expect(await facets(database, "facet(Brand, sum(Stock))")).toEqual([
      "Brand: Stock@yak 6/1, Stock@zed 8/3",
    ]);
  });

  it("counts ranges, with fractions unless numbers are summed", async () => {
    const database = await opened();
    expect(
      await facets(
        database,
        "facet(Price<=10, Price > 10 and Price < 40, Price between 100 and 200)",
      ),
    ).toEqual(["Price: Price <= 10 1, Price > 10 and Price < 40 3, Price between 100 and 200 0"]);
    expect(await facets(database, "facet(Price <= 10, Price > 10, sum(Stock) as S)")).toEqual([
      "Price: S@Price <= 10 7/2, S@Price > 10 18/3",
    ]);
    expect(await facets(database, "facet(Price < $a) as X", { a: 10.25 })).toEqual([
      "X: Price < 10.25 1",
    ]);
    expect(await facets(database, "facet(Town < 'm', Town >= 'm')")).toEqual([
      "Town: Town < m 2, Town >= m 2",
    ]);
    expect(await facets(database, "facet(Price > 100, max(Price))")).toEqual([
      "Price: Price@Price > 100 0",
    ]);
  });

  it("counts each value in a range of a whole index, and each document under a where clause", async () => {
    const database = await opened();
    await putAll(database, "Products", { "products/6": { Price: [1, 2, 50], Stock: 5 } });
    expect(await facets(database, "facet(Price < 10, Price >= 10, Price > 45)")).toEqual([
      "Price: Price < 10 2, Price >= 10 6, Price > 45 1",
    ]);
    expect(await facets(database, "facet(Price < 10, Price >= 10)", {}, "where Stock > 3")).toEqual(
      ["Price: Price < 10 1, Price >= 10 5"],
    );
  });

  // Counts, and sums of P, from RavenDB 7.2.7: of a whole index, under a `where` clause, and with
  // sums.
  test.each([
    ["N >= 5 and N < 10", "7", "5", "2/15", "7", "7/49"],
    ["N > 5 and N <= 10", "7", "4", "2/24", "7", "7/65"],
    ["N < 9 and N >= 2", "7", "6", "4/32", "7", "7/43"],
    ["N < 9 and N < 5", "9", "7", "6/42", "9", "9/53"],
    ["N < 5 and N < 9", "5", "5", "4/27", "5", "5/29"],
    ["N < 5 and N > 9", "0", "0", "0", "0", "0"],
    ["N between 2 and 9 and N < 5", "10", "8", "4/32", "10", "10/68"],
    ["T >= 't1' and T < 't5'", "12", "10", "9/77", "12", "12/103"],
    ["T > 't9'", "1", "1", "0", "1", "1/11"],
  ])("counts the values of lists in the range %s", async (range, all, where, sum, ...lucene) => {
    const database = await openDatabase();
    const day = "2020-01-01T00:00:00";
    const lists = [[1, 5, 9], [2, 12], [], null, [20], [null, 3], 5, [5.5, 6.5], [-1, 1000]];
    lists.push([10, 9], [3, "x"] as never, "7" as never, [day] as never, [9, 10], [100, 20]);
    const documents = lists.map((N, K) => {
      const texts = Array.isArray(N) ? N.map((one) => (one === null ? null : `t${one}`)) : null;
      return [`items/${K}`, { K, P: K + 1, N, T: texts ?? (N === null ? null : `t${N}`) }] as const;
    });
    await putAll(database, "Items", Object.fromEntries(documents));
    const Maps = ["map('Items', i => ({ K: i.K, P: i.P, N: i.N, T: i.T }))"];
    const Configuration = { "Indexing.Static.SearchEngineType": "Lucene" };
    await database.queries.administration.deploy(
      [
        { Name: "P", Maps },
        { Name: "L", Maps, Configuration },
      ],
      true,
    );
    const counts = async (index: string, clause: string, sums: string) => {
      const text = `from index '${index}' ${clause} select facet(${range}${sums})`;
      const [row = {}] = await rowsOf(database, text);
      const [{ Count, Sum }] = row["Values"] as [{ Count: number; Sum?: number }];
      return Sum === undefined ? `${Count}` : `${Count}/${Sum}`;
    };
    expect([
      await counts("P", "", ""),
      await counts("P", "where K >= 0", ""),
      await counts("P", "", ", sum(P)"),
      await counts("L", "", ""),
      await counts("L", "where K >= 0", ", sum(P)"),
    ]).toEqual([all, where, sum, ...lucene]);
  });

  it("under a where clause, returns values in dictionary order", async () => {
    const database = await opened();
    const words = ["Zeta", "éclair", "eclipse", "Ähre", "apple", "a-b", "ab", "a b", "ß", "ss"];
    await putAll(
      database,
      "Products",
      Object.fromEntries(words.map((Town, i) => [`t/${i}`, { Town }])),
    );
    const shown = async (clause: string, mode: string) =>
      (await facets(database, "facet(Town, $o)", { o: { TermSortMode: mode } }, clause))[0]
        ?.slice("Town: ".length)
        .replaceAll(" 1,", " |");
    const ordered = [
      "a b | a-b | ab | ähre | apple | éclair | eclipse | EMPTY_STRING | évora | lisboa | NULL_VALUE | porto | ss | ß",
      "zeta 1",
    ].join(" | ");
    expect(await shown("where Town != 'none'", "ValueAsc")).toBe(ordered);
    expect(await shown("where Town != 'none'", "CountDesc")).toBe(ordered);
    expect(await shown("", "ValueAsc")).toBe(
      "NULL_VALUE | EMPTY_STRING | a b | a-b | ab | apple | eclipse | lisboa | porto | ss | zeta | ß | ähre | éclair | évora 1",
    );
  });

  it("reads an entry without numbers as 0, a date as ticks, and on Lucene the largest number of a list", async () => {
    const database = await openDatabase();
    const day = "2020-01-01T00:00:00.0000000Z";
    const values = [10, null, undefined, "text", [9, 3], [], true, day, [1e300, 1e16], -5];
    await putAll(
      database,
      "Items",
      Object.fromEntries(values.map((B, K) => [`items/${K}`, { K, B }])),
    );
    const Maps = ["map('Items', i => ({ K: i.K, B: i.B }))"];
    const Configuration = { "Indexing.Static.SearchEngineType": "Lucene" };
    await database.queries.administration.deploy(
      [
        { Name: "P", Maps },
        { Name: "L", Maps, Configuration },
      ],
      true,
    );
    const numbersOf = async (index: string) => {
      const select = "facet(K, avg(B), max(B), min(B), sum(B))";
      const [row = {}] = await rowsOf(database, `from index '${index}' select ${select}`);
      return (row["Values"] as Record<string, number>[]).map(({ Average, Max, Min, Sum }) =>
        [...new Set([Average, Max, Min, Sum])].join(" "),
      );
    };
    const ticks = "637134336000000000";
    expect(await numbersOf("P")).toEqual([
      "10",
      "0",
      "0",
      "0",
      "12 9 3",
      "0",
      "0",
      ticks,
      "1e+300 10000000000000000",
      "-5",
    ]);
    expect(await numbersOf("L")).toEqual(["10", "0", "0", "0", "9", "0", "0", "0", "1e+300", "-5"]);
    expect(await facets(database, "facet(min(B), max(B), avg(B))", {}, "where B < 11")).toEqual([
      "@AllResults: B@@AllResults 5.666666666666667/10/-5/3",
    ]);
    expect(await facets(database, "facet(K <= 3, K > 4 and K < 7, max(B), min(B))")).toEqual([
      "K: B@K <= 3 10/0/4, B@K > 4 and K < 7 0/0/2",
    ]);
  });

  it("sums numbers of other fields, in dictionary order", async () => {
    const database = await opened();
    expect(
      await facets(
        database,
        "facet(Brand, sum(Stock), avg(Stock), min(Stock), max(Stock), sum(Price) as P)",
      ),
    ).toEqual([
      "Brand: Stock@x-y 7/7/7/7/1, P@x-y 40/1, Stock@yak 5.5/6/5/11/2, P@yak 50/2, Stock@zed 3.5/4/3/7/2, P@zed 20.5/2",
    ]);
    expect(await facets(database, "facet(Town, sum(Stock))")).toEqual([
      "Town: Stock@EMPTY_STRING 7/1, Stock@évora 4/1, Stock@lisboa 5/1, Stock@NULL_VALUE 6/1, Stock@porto 3/1",
    ]);
    expect(await facets(database, "facet(sum(Stock), sum(Nope))")).toEqual([
      "@AllResults: Stock@@AllResults 25/5, Nope@@AllResults 0/5",
    ]);
  });

  it("pages by its options and reports the remaining hits", async () => {
    const database = await opened();
    const shown = (o: object) => facets(database, "facet(Brand, $o)", { o });
    expect(await shown({ TermSortMode: "CountDesc" })).toEqual(["Brand: yak 2, zed 2, x-y 1"]);
    expect(await shown({ termsortmode: 1 })).toEqual(["Brand: zed 2, yak 2, x-y 1"]);
    expect(await shown({ Start: 1, PageSize: 1, IncludeRemainingTerms: true })).toEqual([
      "Brand: yak 2 (2 1 zed)",
    ]);
    expect(await shown({ PageSize: 0 })).toEqual(["Brand:  (5 3 )"]);
    expect(await shown({ Start: 100 })).toEqual(["Brand:  (0 -97 )"]);
    expect(await facets(database, 'facet(Brand, \'{"PageSize":"2"}\')')).toEqual([
      "Brand: x-y 1, yak 2 (2 1 )",
    ]);
  });

  it("is defined by a document", async () => {
    const database = await opened();
    await putAll(database, "Facets", {
      "facets/Shop": {
        Facets: [
          { FieldName: "Brand", DisplayFieldName: "Maker", Options: { TermSortMode: "ValueDesc" } },
          {
            FieldName: "Town",
            Options: { PageSize: 1 },
            Aggregations: { Sum: [{ Name: "Stock", DisplayName: "S" }], Max: "Price" },
          },
        ],
        RangeFacets: [{ Ranges: ["Price < $least", "Price >= 20 ignored"] }],
      },
      "facets/Empty": {},
    });
    const shop = [
      "Maker: zed 2, yak 2, x-y 1",
      "Town: S@EMPTY_STRING 7/1, Price@EMPTY_STRING 40/1 (4 4 )",
      "Price: Price < 15 2, Price >= 20 3",
    ];
    expect(
      await facets(database, "facet(id('FACETS/shop')), facet(Stock < 5)", { least: 15 }),
    ).toEqual([...shop, "Stock: Stock < 5 2"]);
    expect(await facets(database, "facet(id('facets/Empty'))")).toEqual([]);
    expect(await facets(database, "facet(id($d))", { d: { Facets: [{}] } })).toEqual([
      "@AllResults: @AllResults 5",
    ]);
  });

  it.each([
    ["facet(Nope)", "query-invalid", "Field Nope not found in Index 'P'."],
    ["facet(Nope < 3)", "query-invalid", "Field Nope not found"],
    ["facet(Brand), Town", "query-invalid", "Unsupported expression of type FieldExpression"],
    ["facet(Brand, Town)", "query-invalid", "argument of facet(). Text: Town."],
    ["facet(Brand), facet(Brand)", "query-invalid", "Duplicate alias 'Brand'"],
    ["facet(Price < 3, Stock < 3)", "query-invalid", "defined on the same field"],
    ["facet(Price = 3)", "query-invalid", "range of a facet query: Equal"],
    ["facet(Price < 3 or Price > 5)", "query-invalid", "range of a facet query: Or"],
    ["facet(Price < 3, Price > 5.5)", "query-invalid", "got Long and Double for a field 'Price'"],
    ["facet(Price < 3 as X)", "query-invalid", "Alias 'X' can only be applied on method"],
    ["facet(Price < null)", "out-of-range", "out of the range of valid values"],
    [
      "facet(Brand, avg())",
      "query-invalid",
      "of Average method in a facet query. Expected 1, got 0",
    ],
    ["facet(Brand, median(Price))", "not-supported", "Method 'median' is not supported."],
    ["facet(Brand, count())", "query-invalid", "count may only be used in group by queries"],
    ["facet(Price < 3, '{}')", "not-supported", "Options are not supported in range facets."],
    ["facet(Brand, 'x')", "json-invalid", "Expected the JSON text of an object, but got: x"],
    ["facet(Brand, $o)", "argument-null", "Value cannot be null."],
    [
      "facet(id('facets/None'))",
      "null-reference",
      "There is no facet setup document 'facets/None'.",
    ],
    ["facet(id())", "query-invalid", "id() in facet query must have one argument"],
    ["distinct facet(Brand)", "query-invalid", "Cannot use SELECT DISTINCT in a facet query"],
  ])("rejects %s", async (select, code, message) => {
    const database = await opened();
    const requested = rowsOf(database, `from index 'P' select ${select}`);
    await expect(requested).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  });

  it("rejects unsupported combinations with other clauses and setups", async () => {
    const database = await opened();
    const refused = (text: string, parameters: object, code: string) =>
      expect(rowsOf(database, text, parameters)).rejects.toMatchObject({ code });
    await refused("from Products select facet(Brand)", {}, "query-invalid");
    await refused("from index 'P' filter Stock > 1 select facet(Brand)", {}, "query-invalid");
    const setup = (d: object, code: string) =>
      refused("from index 'P' select facet(id($d))", { d }, code);
    await setup({ Facets: {} }, "invalid-format");
    await setup({ Facets: [5] }, "invalid-cast");
    await setup(
      { Facets: [{ FieldName: "Brand", Aggregations: { Sum: ["Price"] } }] },
      "invalid-cast",
    );
    await setup(
      { Facets: [{ FieldName: "Brand", Aggregations: { Median: "Price" } }] },
      "invalid-argument",
    );
    await setup({ RangeFacets: [{ Ranges: [] }] }, "null-reference");
    await setup({ RangeFacets: [{ Ranges: [3] }] }, "invalid-operation");
    await setup({ RangeFacets: [{ Ranges: ["Price ??? 3"] }] }, "query-invalid");
    for (const o of [{ Start: null }, { PageSize: "x" }, { TermSortMode: "Sideways" }, 5, null]) {
      await refused("from index 'P' select facet(Brand, $o)", { o }, "invalid-operation");
    }
  });

  it("is rejected in patches, deletions and subscriptions", async () => {
    const database = await opened();
    const compiled = (text: string, kind: "delete" | "subscription") =>
      expect(() => database.queries.compile(text, kind, null)).toThrow("in queries only");
    compiled("from index 'P' select facet(Brand)", "delete");
    compiled("from Words select suggest(T, 'x')", "delete");
    compiled("from Words as w select suggest(T, 'x')", "subscription");
  });

  it("is charged for its work and memory", async () => {
    const database = await opened();
    await facets(database, "facet(Brand)");
    const before = workLimits;
    try {
      setWorkLimits({ ...before, unitsMax: 10 });
      await expect(facets(database, "facet(Brand)")).rejects.toMatchObject({ code: "work-limit" });
      setWorkLimits({ ...before, bytesMax: 16 });
      await expect(facets(database, "facet(Brand)")).rejects.toMatchObject({ code: "work-limit" });
    } finally {
      setWorkLimits(before);
    }
  });
});

describe("suggest()", () => {
  const suggested = async (database: OpenDatabase, select: string, parameters?: object) =>
    await rowsOf(database, `from index 'W' select ${select}`, parameters);
  const list = async (database: OpenDatabase, term: unknown, o: object = {}) =>
    (await suggested(database, "suggest(T, $t, $o)", { t: term, o }))[0]?.["Suggestions"];

  it("finds terms of similar spelling, best first", async () => {
    const database = await opened();
    expect(await list(database, "MAXIN")).toEqual(["maxine", "maxim", "maxime"]);
    expect(await list(database, "karml")).toEqual(["karmel", "carmel"]);
    expect(await list(database, "oern")).toEqual([]);
    expect(await list(database, "")).toEqual([]);
    expect(await list(database, ["karml", "orin", 5, "karml"])).toEqual([
      "karmel",
      "carmel",
      "oren",
    ]);
    expect(await suggested(database, "suggest(T, 'maxin') as Names, suggest(S, 'ana')")).toEqual([
      { Name: "Names", Suggestions: ["maxine", "maxim", "maxime"] },
      { Name: "S", Suggestions: ["anna"] },
    ]);
    expect(await suggested(database, "suggest(E, 'Maxin'), suggest(T, 'MAXIN')")).toEqual([
      { Name: "E", Suggestions: ["maxine", "maxim", "maxime"] },
      { Name: "T", Suggestions: ["maxine", "maxim", "maxime"] },
    ]);
  });

  it("counts pairs of letters as often as a term has them", async () => {
    const database = await opened();
    for (const [n, T] of ["abcdaa", "abcdab", "tomatillo", "tomato"].entries()) {
      await database.put(`pairs/${n}`, { T, "@metadata": { "@collection": "Pairs" } });
    }
    const close = (text: string) => rowsOf(database, `from Pairs select suggest(T, '${text}')`);
    expect(await close("tomatos")).toMatchObject([{ Suggestions: ["tomato", "tomatillo"] }]);
    expect(await close("abcdx")).toMatchObject([{ Suggestions: ["abcdab", "abcdaa"] }]);
  });

  it("supports options", async () => {
    const database = await opened();
    const all = ["maxine", "maxim", "maxime", "max", "maksim", "anna maria"];
    expect(await list(database, "maxin", { PageSize: 1 })).toEqual(["maxine"]);
    expect(await list(database, "maxin", { Accuracy: 0.9 })).toEqual(["maxine"]);
    expect(await list(database, "maxin", { accuracy: "0.2" })).toEqual(all);
    expect(await list(database, "maxin", { Distance: "JaroWinkler", Accuracy: 0.4 })).toEqual(all);
    const gram = await list(database, "maxin", { Distance: "NGram", Accuracy: 0.4 });
    expect(gram).toEqual(all.filter((one) => one !== "max"));
    expect(await list(database, "maxin", { SortMode: "None" })).toEqual([
      "maxim",
      "maxime",
      "maxine",
    ]);
  });

  it("leaves out terms that only deleted documents had", async () => {
    const database = await opened();
    await database.delete(`words/${words.indexOf("maxine")}`);
    expect(await list(database, "maxin")).toEqual(["maxim", "maxime"]);
  });

  it("creates an automatic index for a collection", async () => {
    const database = await opened();
    const { outcome, rows } = await query(
      database,
      "from Words where N > 1 select suggest(T, 'karml')",
    );
    expect(rows).toEqual([{ Name: "T", Suggestions: ["karmel", "carmel"] }]);
    expect(outcome).toMatchObject({ indexName: "Auto/Words/ByNAndSuggest(T)", totalResults: 1 });
    const next = await query(database, "from Words select suggest('T', 'karml')");
    expect(next.outcome?.indexName).toBe("Auto/Words/ByNAndSuggest(T)");
    expect(await rowsOf(database, "from Nothing select suggest(T, 'karml')")).toEqual([
      { Name: "T", Suggestions: [] },
    ]);
  });

  it.each([
    ["suggest(N, 'x')", "invalid-operation", "does not have suggestions configured for field 'N'"],
    ["suggest(Nope, 'x')", "invalid-operation", "does not have a field 'Nope'"],
    ["suggest(T)", "query-invalid", "must contain two or three arguments but '1'"],
    ["suggest(T, x)", "query-invalid", "Argument at index '2' in suggest() must be a value"],
    ["suggest(T, 'x'), T", "query-invalid", "Unsupported expression of type FieldExpression"],
    ["suggest(S, 'two words')", "not-supported", "'two words' has 2 of them"],
    ["suggest(T, 5)", "out-of-range", "Index was out of range"],
    ["suggest(T, 'x', '{\"Distance\":\"Soundex\"}')", "invalid-operation", "SuggestionOptions"],
    ["suggest(T, 'x', '{\"PageSize\":-1}')", "out-of-range", "non-negative"],
  ])("rejects %s", async (select, code, message) => {
    const database = await opened();
    const requested = suggested(database, select);
    await expect(requested).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  });

  it("rejects very many terms", async () => {
    const database = await opened();
    const t = Array.from({ length: 1_000 }, (_, i) => `t${i}`);
    await expect(list(database, t)).rejects.toMatchObject({ code: "work-limit" });
  });
});

describe("moreLikeThis()", () => {
  const like = async (database: OpenDatabase, args: string, parameters: object = {}, rest = "") => {
    const text = `from index 'A' where moreLikeThis(${args})${rest}`;
    const options = { parametersText: JSON.stringify(parameters), waitForNonStale: true };
    const { ids } = await query(database, text, options);
    return ids.map((id) => Number(id.slice("articles/".length)));
  };
  const first = "id() = 'articles/1', $o";

  it("finds documents that share a term with the base, without the base", async () => {
    const database = await opened();
    expect(await like(database, "id() = 'articles/1'")).toEqual([2, 3, 5]);
    expect(await like(database, "id() = $id", { id: "articles/4" })).toEqual([]);
    expect(await like(database, "Topic = 'one'")).toEqual([2, 3, 5]);
    expect(await like(database, "$d", { d: '{"Any":["zeta",{"B":"epsilon"}]}' })).toEqual([3, 4]);
    expect(await like(database, "$d", { d: { Any: "zeta alpha" } })).toEqual([1, 2, 4, 5]);
    expect(await like(database, "'{}'")).toEqual([]);
  });

  it("counts the terms that its options admit", async () => {
    const database = await opened();
    const with_ = (o: object) => like(database, first, { o });
    expect(await with_({ Fields: ["Topic"] })).toEqual([2]);
    expect(await with_({ Fields: ["Nope"] })).toEqual([]);
    expect(await with_({ Fields: [] })).toEqual([2, 3, 5]);
    expect(await with_({ MinimumTermFrequency: 2 })).toEqual([3]);
    expect(await with_({ MinimumDocumentFrequency: 3 })).toEqual([2, 5]);
    expect(await with_({ MaximumDocumentFrequency: 2, Fields: ["Body"] })).toEqual([2, 3]);
    expect(await with_({ MaximumDocumentFrequencyPercentage: 20 })).toEqual([]);
    expect(await with_({ MaximumQueryTerms: 1 })).toEqual([]);
    expect(await with_({ MinimumWordLength: 6 })).toEqual([]);
    expect(await with_({ MaximumWordLength: 1 })).toEqual([2, 3, 5]);
    await putAll(database, "Stop", { "stop/1": { StopWords: ["ALPHA", "beta", 5] } });
    expect(await with_({ Fields: ["Body"], StopWordsDocumentId: "stop/1" })).toEqual([3]);
  });

  it("is combined with other conditions", async () => {
    const database = await opened();
    expect(await like(database, "id() = 'articles/1'", {}, " and Topic = 'two'")).toEqual([3, 5]);
    expect(await like(database, "id() = 'articles/1'", {}, " order by Topic desc, id()")).toEqual([
      3, 5, 2,
    ]);
    const rows = await rowsOf(
      database,
      "from index 'A' where moreLikeThis(id() = 'articles/1') select facet(Topic)",
    );
    expect(rows).toMatchObject([
      {
        Values: [
          { Count: 1, Range: "one" },
          { Count: 2, Range: "two" },
        ],
      },
    ]);
  });

  it.each([
    ["", {}, "query-invalid", "one or two arguments"],
    ["id() = 'articles/1', $o, 3", { o: {} }, "query-invalid", "one or two arguments"],
    ["Body", {}, "query-invalid", "Expected value, but got: <Field>: Body"],
    ["id() in ('articles/1')", {}, "query-invalid", "binary expression or value"],
    ["id() = 'articles/none'", {}, "invalid-operation", "did not yield any documents"],
    ["$d", { d: "not json" }, "json-invalid", "not json"],
    ["$d", { d: "[]" }, "json-not-object", "[]"],
    ["$d", { d: "5" }, "json-truncated", "Buffer ended"],
    ["$d", { d: null }, "null-reference", "is null"],
    ["id() = 'articles/1', $o", { o: "x" }, "json-invalid", "x"],
    ["id() = 'articles/1', $o", { o: { MinimumWordLength: "x" } }, "invalid-format", "'x'"],
    [
      "id() = 'articles/1', $o",
      { o: { StopWordsDocumentId: "no" } },
      "invalid-operation",
      "no could not",
    ],
  ])("rejects %s of %j", async (args, parameters, code, message) => {
    const database = await opened();
    const requested = like(database, args, parameters);
    await expect(requested).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  });

  it("requires a named index", async () => {
    const database = await opened();
    await expect(
      rowsOf(database, "from Articles where moreLikeThis(id() = 'articles/1')"),
    ).rejects.toMatchObject({ code: "query-invalid" });
  });
});

it("moreLikeThis() with Boost ranks by the most frequent terms of the base", async () => {
  const database = await openDatabase();
  await putAll(database, "Data", {
    "data/1": { Body: "This is a test. it is a great test. I hope I pass my great test!" },
    "data/2": { Body: "Cake is great." },
    "data/3": { Body: "I have a test tomorrow." },
  });
  await database.queries.administration.deploy(
    [
      {
        Name: "D",
        Maps: ["map('Data', d => ({ Body: d.Body }))"],
        Fields: { Body: { Indexing: "Search" } },
      },
    ],
    true,
  );
  const found = async (options: object) => {
    const text = "from index 'D' where moreLikeThis(id() = 'data/1', $options)";
    const limits = { MinimumWordLength: 3, MinimumTermFrequency: 2, MinimumDocumentFrequency: 1 };
    const rows = await rowsOf(database, text, { options: { ...limits, ...options } });
    return rows.map((row) => (row["@metadata"] as { "@id": string })["@id"]);
  };
  expect(await found({ Boost: true })).toEqual(["data/3", "data/2"]);
  expect(await found({ Boost: false })).toEqual(["data/2", "data/3"]);
});

describe("suggest() on a Lucene index", () => {
  const terms =
    "oren maxim maksim karmel carmel maxime maxine max eini buryak burak burke hafia rome rom a ab";
  test.each([
    ["oren", {}, []],
    ["oern", {}, ["oren"]],
    ["maxin", {}, ["maxine", "maxim", "maxime", "max"]],
    ["maxim", {}, ["maxime", "maxine", "max"]],
    ["maxim", { Accuracy: 0.8 }, ["maxime"]],
    ["maxim", { SortMode: "None" }, ["maxim"]],
    ["max", { Distance: "NGram" }, ["maxim"]],
    ["burk", {}, ["burak", "burke"]],
    ["roma", { Distance: "NGram", Accuracy: 0.3 }, ["rome", "rom"]],
    ["ab", {}, []],
    ["zzz", {}, []],
  ])("finds what is spelled like %s with %j", async (text, options, expected) => {
    const database = await openDatabase();
    const words = [...terms.split(" "), "john steinbeck"].map((T, i) => [`w/${i}`, { T }]);
    await putAll(database, "Ws", Object.fromEntries(words));
    const Configuration = { "Indexing.Static.SearchEngineType": "Lucene" };
    const Fields = { T: { Suggestions: true } };
    await database.queries.administration.deploy(
      [{ Name: "L", Maps: ["map('Ws', w => ({ T: w.T }))"], Configuration, Fields }],
      true,
    );
    const [row] = await rowsOf(database, "from index 'L' select suggest(T, $text, $options)", {
      text,
      options,
    });
    expect(row).toEqual({ Name: "T", Suggestions: expected });
  });
});

test("value texts are valid JSON for any content", async () => {
  const database = await openDatabase();
  const texts = [
    ...['a"b', "a\\b", "a\nb", "\u0000", "\u2028", "\u007f", "Évora", "😀", " ", "x".repeat(3000)],
    ...[1, 1.5, -0, 1e300, true, null, "", "2024-01-02"],
  ];
  await putAll(
    database,
    "Things",
    Object.fromEntries(texts.map((V, i) => [`things/${i}`, { V, N: i }])),
  );
  await putAll(database, "Things", { "things/again": { V: "EVORA" } });
  await database.queries.administration.deploy(
    [{ Name: "T", Maps: ["map('Things', t => ({ V: t.V, N: t.N }))"] }],
    true,
  );
  await database.queries.indexes.waitForNonStale("T", 5_000);
  const rangesOf = async (select: string) => {
    const { rows } = await query(database, `from index 'T' select ${select}`);
    const { Values } = rows[0] as unknown as { Values: { Range: string; Count: number }[] };
    return Values.map(({ Range, Count }) => `${Range} ${Count}`);
  };
  const found = await rangesOf("facet(V)");
  expect(found).toHaveLength(texts.length + 1);
  // Values with aggregations are written from texts, in another order.
  expect([...found].sort()).toEqual((await rangesOf("facet(V, sum(N))")).sort());
  for (const text of ['a"b', "a\\b", "a\nb", "\u0000", "évora", "evora", "x".repeat(3000)]) {
    expect(found).toContain(`${text} 1`);
  }
});

it("highlights stored fields that the index computes, and identifies rows by the group key", async () => {
  const database = await openDatabase();
  await putAll(database, "Posts", {
    "posts/1": { Title: "Raven flies", Body: "one raven" },
    "posts/2": { Title: "Crow", Body: "no bird" },
  });
  await database.queries.administration.deploy(
    [
      {
        Name: "H",
        Maps: [
          "map('Posts', p => ({ Title: p.Title, Ex: p.Title, Comp: p.Title + ' ' + p.Body, Un: p.Body }))",
        ],
        Fields: {
          Comp: { Storage: "Yes", Indexing: "Search" },
          Ex: { Storage: "Yes", Indexing: "Exact" },
          Un: { Indexing: "Search" },
        },
      },
    ],
    true,
  );
  const highlights = async (text: string, parameters?: object) => {
    const parametersText = parameters === undefined ? null : JSON.stringify(parameters);
    const { outcome } = await query(database, `from index 'H' ${text}`, { parametersText });
    const found = outcome?.highlightings;
    return (
      found && Object.fromEntries([...found].map(([name, of]) => [name, Object.fromEntries(of)]))
    );
  };
  const o = { PreTags: ["["], PostTags: ["]"], GroupKey: "Title" };
  expect(
    await highlights("where search(Comp, 'raven') include highlight(Comp, 40, 2, $o)", { o }),
  ).toEqual({ Comp: { "Raven flies": ["[Raven] flies one", "[ raven]"] } });
  const { GroupKey: _, ...tags } = o;
  expect(
    await highlights("where exact(Ex = 'Crow') include highlight(Ex, 40, 2, $o)", { o: tags }),
  ).toEqual({ Ex: { "posts/2": ["[Crow]"] } });
  expect(await highlights("where search(Un, 'raven') include highlight(Un, 40, 2)")).toEqual({
    Un: {},
  });
  expect(await highlights("include highlight(Comp, 40, 2)")).toEqual({});
});

it.each([
  {
    engine: "Corax",
    expected: {
      "W null": "not-supported",
      "W list": "not-supported",
      'W ""': '{"":["[ raven]"]}',
      "W 5": '{"5":["[ raven]"]}',
      "W select null": "argument-null",
      "W select 5": "argument-null",
      "M null": "not-supported",
      "M list": "not-supported",
      'M ""': '{"":["[ raven]"]}',
      "M 5": '{"5":["[ raven]"]}',
      "M select null": '{"posts/1":["[ raven]"]}',
      "M select 5": '{"posts/1":["[ raven]"]}',
    },
  },
  {
    engine: "Lucene",
    expected: {
      "W null": '{"NULL_VALUE":["one [raven]"]}',
      "W list": '{"x":["one [raven]"]}',
      'W ""': '{"EMPTY_STRING":["one [raven]"]}',
      "W 5": '{"5":["one [raven]"]}',
      "W select null": '{"NULL_VALUE":["one [raven]"]}',
      "W select 5": '{"5":["one [raven]"]}',
      "M null": '{"NULL_VALUE":["one [raven]"]}',
      "M list": '{"x":["one [raven]"]}',
      'M ""': '{"EMPTY_STRING":["one [raven]"]}',
      "M 5": '{"5":["one [raven]"]}',
      "M select null": '{"NULL_VALUE":["one [raven]"]}',
      "M select 5": '{"5":["one [raven]"]}',
    },
  },
])("names highlighted rows by group keys of any type: $engine", async ({ engine, expected }) => {
  const database = await openDatabase();
  const Fields = {
    Body: { Storage: "Yes", Indexing: "Search" },
    Author: { Storage: "Yes" },
  };
  const Configuration = { "Indexing.Static.SearchEngineType": engine };
  const map = "map('Posts', p => ({ Author: p.Author, Body: p.Body }))";
  const reduce =
    "groupBy(r => ({ Author: r.Author, Body: r.Body })).aggregate(g => ({ Author: g.key.Author, Body: g.key.Body }))";
  await database.queries.administration.deploy(
    [
      { Name: "M", Maps: [map], Fields, Configuration },
      { Name: "W", Maps: [map], Reduce: reduce, Fields, Configuration },
    ],
    true,
  );
  const o = { PreTags: ["["], PostTags: ["]"], GroupKey: "Author" };
  const parametersText = JSON.stringify({ o });
  const seen: Record<string, unknown> = {};
  for (const Author of [null, ["x", "y"], "", 5]) {
    await putAll(database, "Posts", { "posts/1": { Author, Body: "one raven" } });
    for (const index of ["W", "M"] as const) {
      for (const select of ["", "select Body "]) {
        await database.queries.indexes.waitForNonStale(index, 5_000);
        const shown = Array.isArray(Author) ? "list" : JSON.stringify(Author);
        const name = `${index} ${select === "" ? "" : "select "}${shown}`;
        if (!(name in expected)) continue;
        const text = `from index '${index}' where search(Body, 'raven') ${select}include highlight(Body, 40, 1, $o)`;
        seen[name] = await query(database, text, { parametersText }).then(
          ({ outcome }) =>
            JSON.stringify(Object.fromEntries(outcome?.highlightings?.get("Body") ?? [])),
          (error: EngineError) => error.code,
        );
      }
    }
  }
  expect(seen).toEqual(expected);
});

it("finds first what is most alike on an index made for Lucene, with its scores", async () => {
  const database = await openDatabase();
  const bodies = [
    "alpha beta gamma gamma delta",
    "alpha alpha beta",
    "gamma epsilon",
    "zeta",
    "alpha",
    "delta alpha beta",
    "beta beta beta omega",
  ];
  await putAll(
    database,
    "Articles",
    Object.fromEntries(bodies.map((Body, i) => [`articles/${i + 1}`, { Body }])),
  );
  await database.queries.administration.deploy(
    [
      {
        Name: "L",
        Maps: ["map('Articles', a => ({ Body: a.Body }))"],
        Fields: { Body: { Indexing: "Search", Storage: "Yes" } },
        Configuration: { "Indexing.Static.SearchEngineType": "Lucene" },
      },
    ],
    true,
  );
  const like = async (options: object) => {
    const text = "from index 'L' where moreLikeThis(id() = 'articles/1', $o)";
    const parametersText = JSON.stringify({ o: options });
    const { rows } = await query(database, `${text} include explanations()`, { parametersText });
    return rows.map((row) => {
      const reported = row["@metadata"] as { "@id": string; "@index-score": number };
      return `${reported["@id"].slice(-1)} ${reported["@index-score"].toFixed(6)}`;
    });
  };
  expect(await like({})).toEqual([
    "6 1.624635",
    "2 0.668659",
    "3 0.264577",
    "7 0.239861",
    "5 0.138484",
  ]);
  expect(await like({ MaximumQueryTerms: 2 })).toEqual(["3 0.653118", "6 0.653118"]);
});

it("returns no explanations and highlights without rows", async () => {
  const database = await openDatabase();
  await putAll(database, "P", { "p/1": { Name: "a" } });
  const text = "from P where search(Name, 'none') include explanations(), highlight(Name, 9, 1)";
  const { outcome } = await query(database, text);
  expect([outcome?.explanations, outcome?.highlightings]).toEqual([null, null]);
});
