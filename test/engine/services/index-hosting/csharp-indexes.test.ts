import { afterEach, describe, expect, it } from "vitest";
import type { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { StaticIndex } from "../../../../engine/indexing/static-index.ts";
import {
  closeDatabases,
  openAfterCrash,
  openDatabase,
  putAll,
  query,
  temporaryFolder,
} from "../../../support/open-database.ts";

afterEach(closeDatabases);

const users = {
  "users/1": {
    First: "Ann",
    Last: "Bee",
    Age: 30,
    Price: 5.5,
    None: null,
    Address: { City: "Rome", "Zip code": "1" },
    Tags: ["a", "b"],
    When: "2020-03-04T05:06:07.1234567Z",
    Counts: { x: 1, y: 2 },
    Friend: "users/2",
    Lines: [
      { Product: "p1", Quantity: 2, Price: 1.5 },
      { Product: "p2", Quantity: 3, Price: 0.5 },
      { Product: "p1", Quantity: 4, Price: 10 },
    ],
  },
  "users/2": { First: "Bob", Last: "Cee", Age: 20, Lines: [] },
};

/** Why an index with this definition is not deployed. */
async function refusalOf(
  database: OpenDatabase,
  definition: Record<string, unknown>,
): Promise<string> {
  try {
    await deploy(database, { Name: "X", ...definition });
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

async function withUsers(folder?: string): Promise<OpenDatabase> {
  const database = await openDatabase(folder);
  await putAll(database, "Users", users);
  return database;
}

async function deploy(database: OpenDatabase, definition: Record<string, unknown>) {
  await database.queries.administration.deploy([definition], true);
}

function staticIndex(database: OpenDatabase, name: string): StaticIndex {
  const index = database.queries.indexes.byName(name);
  if (index instanceof StaticIndex) return index;
  throw new Error(`no index ${name}`);
}

const without = (rows: readonly Record<string, unknown>[]) =>
  rows.map(({ "@metadata": _, ...rest }) => rest);

async function rowsOf(database: OpenDatabase, text: string) {
  return without((await query(database, text, { waitForNonStale: true })).rows);
}

/**
 * Values in an index of expressions over users/1, which is `u`; expressions without a value are
 * left out.
 */
async function valuesOf(expressions: Record<string, string>): Promise<Record<string, unknown>> {
  const database = await withUsers();
  const members = Object.entries(expressions).map(([name, text]) => `${name} = ${text}`);
  await deploy(database, {
    Name: "I",
    Maps: [`from u in docs.Users where u.Age == 30 select new { ${members.join(", ")} }`],
    Fields: { __all_fields: { Storage: "Yes" } },
  });
  await query(database, "from index 'I'", { waitForNonStale: true });
  const index = staticIndex(database, "I");
  expect(index.errors.list).toEqual([]);
  return JSON.parse(index.index.entries.textOf(0) ?? "{}") as Record<string, unknown>;
}

/** Expects the value listed beside each expression; undefined: no value. */
async function expectValues(rows: readonly (readonly [string, unknown])[]): Promise<void> {
  const found = await valuesOf(Object.fromEntries(rows.map(([text], i) => [`X${i}`, text])));
  const shown = rows.map(([text], i) => [text, found[`X${i}`]]);
  expect(shown).toEqual(rows.map(([text, value]) => [text, value]));
}

describe("an expression of a C# index", () => {
  it("has no value for a missing member, and null for null", async () => {
    await expectValues([
      ["u.Missing", undefined],
      ["u.Missing.A.B.ToLower().Length", undefined],
      ["u.None", null],
      ["u.None.A", undefined],
      ["u.Missing + 5", undefined],
      ["5 + u.Missing", 5],
      ["5 - u.Missing", 5],
      ["u.Missing * 2", undefined],
      ["2 * u.Missing", 0],
      ["-u.Missing", 0],
      ['u.Missing + " x"', " x"],
      ["!u.Missing", undefined],
      ["u.Missing < 5", false],
      ["u.Missing > 5", false],
      ["5 > u.Missing", true],
      ["u.Missing == null", true],
      ["u.None != null", false],
      ["u.None == u.Missing", true],
      ["u.Missing ? 1 : 2", 2],
      ['u.Missing ?? "def"', "def"],
      ["u.Missing?.Deep ?? 3", 3],
      ["u.Missing.ToString()", ""],
      ["u.Missing.Count()", 0],
      ["u.Missing.Select(x => x.A)", []],
      ["u.Missing.Where(x => x.A)", undefined],
      ["u.Missing.Any()", undefined],
      ["(int)u.Missing", 0],
      ["(int?)u.Missing", null],
      ["new[] { u.First, u.Missing }", ["Ann"]],
      ["new { u.First, B = u.Missing }", { First: "Ann", B: null }],
      ["u.Lines.Max(x => x.Nope)", null],
      ["u.Age == 30 && u.Missing", false],
    ]);
  });

  it("joins and orders within a map", async () => {
    const lines = "(IEnumerable<dynamic>)u.Lines";
    const pairs = `from a in ${lines} join b in ${lines} on a.Product equals b.Product`;
    await expectValues([
      [`from t in u.Tags join l in u.Lines on t + "x" equals l.Product select l.Price`, []],
      [`${pairs} where a.Quantity < b.Quantity select b.Price`, [10]],
      [`${pairs} into g select g.Count()`, [2, 1, 2]],
      [`from l in ${lines} orderby l.Product descending, l.Price select l.Price`, [0.5, 1.5, 10]],
      [
        `from l in ${lines} let p = l.Price * 2 orderby p where p > 1 select p + l.Quantity`,
        [5, 24],
      ],
      [
        "u.Lines.Join(u.Lines, a => a.Price, b => b.Price, (a, b) => a.Quantity + b.Quantity)",
        [4, 6, 8],
      ],
      ["u.Tags.GroupJoin(u.Lines, t => t, l => l.Product, (t, g) => g.Count())", [0, 0]],
    ]);
  });

  it("runs statements in functions within a map", async () => {
    await expectValues([
      ["u.Lines.Select(l => { return l.Quantity; })", [2, 3, 4]],
      [
        'u.Lines.Select(l => { if (l.Quantity > 2) return "big"; else return "small"; })',
        ["small", "big", "big"],
      ],
      [
        "u.Tags.Select(t => { int sum = 0; foreach (var l in u.Lines) { if (l.Quantity == 3) continue; sum += (int)l.Quantity; } return sum; })",
        [6, 6],
      ],
      [
        "u.Tags.Select(t => { for (int i = 0; i < 9; i++) { if (i == 2) return i; } return 0; })",
        [2, 2],
      ],
      [
        'u.Tags.Select(t => { var list = new List<string>(); list.Add("x"); list.Add((string)t); return string.Join("-", list); })',
        ["x-a", "x-b"],
      ],
      [
        "u.Lines.Select(l => { dynamic x = l.Quantity; while (x < 10) x++; if (x != 10) { x = 0; } return x; })",
        [10, 10, 10],
      ],
      [
        'u.Tags.Select(t => { var d = new Dictionary<string, object>(); d["k"] = t; return d["k"]; })',
        ["a", "b"],
      ],
      ["u.Lines.Where(l => { var q = l.Quantity; return q == 3; }).Select(l => l.Price)", [0.5]],
      ["u.Lines.Sum(l => { return l.Quantity; })", 9],
      ["u.Tags.Select(t => { t = t + 1; return t; })", ["a1", "b1"]],
    ]);
  });

  it("supports the functions of texts, characters and numbers", async () => {
    await expectValues([
      ['u.Last.Insert(1, "__")', "B__ee"],
      ["u.Last.IndexOfAny(new[] { 'x', 'e' })", 1],
      ["char.IsUpper(((string)u.Last)[0])", true],
      ["char.IsDigit('x')", false],
      ['string.Compare(u.Last, "a")', 1],
      ['string.Compare(u.Last, "a", StringComparison.Ordinal)', -1],
      ["Math.Clamp(u.Age, 1, 5)", 5],
      ["Math.Log10(100)", 2],
      ["nameof(u.Last)", "Last"],
      ["default(int) + 1", 1],
      ["(u.Missing ?? new string[0]).Length", 0],
      ["new int[2]", [0, 0]],
      ["(int)u.Age & 3", 2],
      ["(int)u.Age | 1", 31],
      ["(int)u.Age ^ 2", 28],
      ["1 << 4", 16],
      ["~(int)u.Age", -31],
    ]);
  });

  it("distinguishes whole numbers from doubles", async () => {
    await expectValues([
      ["7 / 2", 3],
      ["7 / 2.0", 3.5],
      ["7m / 2", 3.5],
      ["u.Age / 4", 7],
      ["(double)u.Age / 4", 7.5],
      ["u.Age % 7", 2],
      ["u.Price * 2", 11],
      ["0.1 + 0.2", 0.30000000000000004],
      ["u.Lines.Sum(x => x.Quantity) / 2", 4.5],
      ["u.Lines.Sum(x => (int)x.Quantity) / 2", 4],
      ["(decimal)u.Missing", 0],
      ["u.Lines.Sum(x => x.Quantity * x.Price) / 4", 11.125],
      ["u.Lines.Average(x => x.Quantity) / 2", 1.5],
      ["(int)u.Price", 5],
      ["Math.Round(2.5)", 2],
      ["Math.Round(2.345, 2, MidpointRounding.AwayFromZero)", 2.35],
      ["Math.Max(u.Age, 31)", 31],
      ['int.Parse("12") + 1', 13],
      ['1 + 2 + "a" + 1.5', "3a1.5"],
      ['u.Age.ToString("D5")', "00030"],
      ['u.Price.ToString("F2")', "5.50"],
      ['u.Price.ToString("000.0#")', "005.5"],
    ]);
  });

  it("reads members, indexers and texts as in C#", async () => {
    await expectValues([
      ['u.First + " " + u.Last', "Ann Bee"],
      ['$"{u.First}-{u.Age:D4}"', "Ann-0030"],
      ['string.Format("{0}/{1}", u.First, u.Missing)', "Ann/"],
      ['@"a""b\\"', 'a"b\\'],
      ['u.Address["Zip code"]', "1"],
      ["u.Address.City.ToUpper().Substring(1, 2)", "OM"],
      ["u.First.Length", 3],
      ["u.Tags.Length", 2],
      ["u.Tags[1]", "b"],
      ['u.First == "ann"', false],
      ['u.First.StartsWith("an", StringComparison.OrdinalIgnoreCase)', true],
      ["\"a,b,,c\".Split(',')", ["a", "b", "", "c"]],
      ['string.Join("|", u.Tags)', "a|b"],
      ['string.IsNullOrEmpty(u.Missing) || u.First.Contains("nn")', true],
      ["Id(u)", "users/1"],
      ["u.Id", "users/1"],
      ['MetadataFor(u)["@collection"]', "Users"],
      ['u["@metadata"]["@collection"]', "Users"],
      ["(object)null", null],
      ["((Func<dynamic, dynamic>)(x => x)) == null ? 'a' : 'b'", "b"],
      ['this.LoadDocument(u.Friend, "Users").First', "Bob"],
      ['LoadDocument<User>("users/404", "Users").First', undefined],
    ]);
  });

  it("supports the members and arithmetic of dates", async () => {
    await expectValues([
      ["u.When.Year * 100 + u.When.Month", 202_003],
      ["u.When.Date", "2020-03-04T00:00:00.0000000Z"],
      ["u.When.AddDays(-4).Day", 29],
      ['u.When.AddMonths(11).ToString("yyyy-MM-dd HH:mm:ss.fff")', "2021-02-04 05:06:07.123"],
      ["u.When.DayOfWeek", "Wednesday"],
      ["u.When.TimeOfDay", "05:06:07.1234567"],
      ["u.When - new DateTime(2020, 3, 1)", "3.05:06:07.1234567"],
      ["(u.When - new DateTime(2020, 3, 3, 5, 6, 7)).TotalDays > 1", true],
      ['u.When > DateTime.Parse("2020-03-04")', true],
      ["DateTime.MinValue", "0001-01-01T00:00:00.0000000"],
    ]);
  });

  it("supports the methods of sequences", async () => {
    await expectValues([
      ["u.Lines.Where(x => x.Quantity > 2).Select(x => x.Product)", ["p2", "p1"]],
      [
        "u.Lines.OrderByDescending(x => x.Product).ThenBy(x => x.Price).Select(x => x.Quantity)",
        [3, 2, 4],
      ],
      [
        "u.Lines.GroupBy(x => x.Product).Select(g => new { g.Key, Count = g.Count() })",
        [
          { Key: "p1", Count: 2 },
          { Key: "p2", Count: 1 },
        ],
      ],
      [
        "from x in u.Lines where x.Quantity < 4 from t in u.Tags select x.Product + t",
        ["p1a", "p1b", "p2a", "p2b"],
      ],
      [
        "(from x in u.Lines group x by x.Product into g let n = g.Sum(y => y.Quantity) where n > 3 select g.Key)",
        ["p1"],
      ],
      ["u.Lines.Any(x => x.Quantity == 3) && u.Lines.All(x => x.Quantity > 1)", true],
      ["u.Lines.FirstOrDefault(x => x.Quantity > 9).Product", undefined],
      ["u.Lines.Last().Product", "p1"],
      ['u.Tags.Concat(new[] { "c" }).Skip(1).Take(5).Reverse()', ["c", "b"]],
      ["u.Lines.Select(x => x.Product).Distinct().Count()", 2],
      ["u.Lines.Select((x, i) => i)", [0, 1, 2]],
      ["u.Counts.Select(kv => kv.Key + kv.Value)", ["x1", "y2"]],
      [
        "u.Lines.ToDictionary(x => x.Quantity, x => x.Product)",
        { "2": "p1", "3": "p2", "4": "p1" },
      ],
      ["Enumerable.Range(1, 3).Aggregate((a, b) => a * b)", 6],
      ['u.Tags.Contains("b")', true],
    ]);
  });

  it("fails for a document where it cannot be computed, and is listed as its error", async () => {
    const database = await withUsers();
    await deploy(database, {
      Name: "E",
      Maps: ["from u in docs.Users select new { X = 6 / (u.Age - 20) }"],
    });
    await query(database, "from index 'E'", { waitForNonStale: true });
    const errors = staticIndex(database, "E").errors.list;
    expect(errors.map(({ message }) => message)).toEqual([
      "Failed to execute mapping function on users/2. Exception: System.DivideByZeroException: Attempted to divide by zero.",
    ]);
  });
});

describe("a C# index", () => {
  it("fans out with several from clauses and with SelectMany", async () => {
    const database = await withUsers();
    const maps = [
      "from u in docs.Users from l in u.Lines where l.Quantity > 2 select new { l.Product, u.First }",
      "docs.Users.SelectMany(u => u.Lines, (u, l) => new { u = u, l = l }).Where(this0 => this0.l.Quantity > 2)" +
        ".Select(this0 => new { Product = this0.l.Product, First = this0.u.First })",
    ];
    for (const [i, map] of maps.entries()) {
      await deploy(database, {
        Name: `F${i}`,
        Maps: [map],
        Fields: { Product: { Storage: "Yes" } },
      });
      expect(await rowsOf(database, `from index 'F${i}' select Product`)).toEqual([
        { Product: "p2" },
        { Product: "p1" },
      ]);
    }
  });

  it("reduces, in query and method syntax, also by several keys", async () => {
    const database = await withUsers();
    const map =
      "from u in docs.Users from l in u.Lines select new { l.Product, Big = l.Quantity > 3, Count = 1, Total = l.Price * l.Quantity }";
    await deploy(database, {
      Name: "R1",
      Maps: [map],
      Reduce:
        "from r in results group r by new { r.Product, r.Big } into g let c = g.Sum(x => x.Count) " +
        "select new { g.Key.Product, g.Key.Big, Count = c, Total = g.Sum(x => x.Total) / c }",
    });
    expect(await rowsOf(database, "from index 'R1' order by Product, Big")).toEqual([
      { Product: "p1", Big: false, Count: 1, Total: 3 },
      { Product: "p1", Big: true, Count: 1, Total: 40 },
      { Product: "p2", Big: false, Count: 1, Total: 1.5 },
    ]);
    await deploy(database, {
      Name: "R2",
      Maps: [map],
      Reduce:
        "results.GroupBy(r => r.Product).Select(g => new { g = g, c = g.Sum(x => x.Count) }).Select(this0 => new " +
        "{ Product = this0.g.Key, Big = this0.g.Any(x => x.Big), Count = this0.c, Total = this0.g.Sum(x => x.Total) })",
    });
    await putAll(database, "Users", {
      "users/9": { Lines: [{ Product: "p1", Quantity: 1, Price: 1 }] },
    });
    expect(await rowsOf(database, "from index 'R2' where Product = 'p1'")).toEqual([
      { Product: "p1", Big: true, Count: 3, Total: 44 },
    ]);
  });

  it("survives a restart, and is replaced when the new one has caught up", async () => {
    const folder = temporaryFolder();
    const Maps = ["docs.Users.Select(u => new { u.First })"];
    await deploy(await withUsers(folder), { Name: "D", Maps });
    const database = await openAfterCrash(folder);
    const ids = async (where: string) =>
      (await query(database, `from index 'D' where ${where}`, { waitForNonStale: true })).ids;
    expect(await ids("First = 'Bob'")).toEqual(["users/2"]);
    expect(staticIndex(database, "D").definition.maps).toEqual(Maps);
    await deploy(database, {
      Name: "D",
      Maps: ["docs.Users.Select(u => new { Twice = u.Age * 2 })"],
    });
    while (database.queries.indexes.byName("ReplacementOf/D") !== undefined) await ids("true");
    expect(await ids("Twice = 40")).toEqual(["users/2"]);
  });

  it("follows the documents that it loads", async () => {
    const database = await withUsers();
    await deploy(database, {
      Name: "L",
      Maps: [
        'from u in docs.Users let f = LoadDocument(u.Friend, "Users") select new { Friend = f.First, Loaded = f != null }',
      ],
    });
    const ids = async () =>
      (await query(database, "from index 'L' where Friend = 'Eve'", { waitForNonStale: true })).ids;
    expect(await ids()).toEqual([]);
    await putAll(database, "Users", { "users/2": { First: "Eve" } });
    expect(await ids()).toEqual(["users/1"]);
  });

  it("supports options of fields, dynamic fields and boosts", async () => {
    const database = await withUsers();
    await deploy(database, {
      Name: "O",
      Maps: [
        'docs.Users.Select(u => new { Name = (u.First + " " + u.Last).Boost(2), _ = u.Lines.Select(l => CreateField(l.Product, l.Quantity, true, false)) })',
      ],
      Fields: { Name: { Indexing: "Search" } },
    });
    const ids = async (where: string) =>
      (await query(database, `from index 'O' where ${where}`, { waitForNonStale: true })).ids;
    expect(await ids("search(Name, 'bee')")).toEqual(["users/1"]);
    expect(await ids("p2 = 3")).toEqual(["users/1"]);
  });

  it("maps several collections, and loads documents only from the named one", async () => {
    const database = await withUsers();
    await putAll(database, "Cities", { "cities/1": { Name: "Rome" } });
    await deploy(database, {
      Name: "S",
      Maps: [
        'from d in docs.WhereEntityIs("Users", "cities") select new { City = LoadDocument("cities/1", "Cities").Name, No = LoadDocument("cities/1", "Users") == null }',
      ],
    });
    const { ids } = await query(database, "from index 'S' where City = 'Rome' and No = true", {
      waitForNonStale: true,
    });
    expect(ids.toSorted()).toEqual(["cities/1", "users/1", "users/2"]);
  });

  it("maps all documents, and counters", async () => {
    const database = await withUsers();
    await putAll(database, "Cities", { "cities/1": { Name: "Rome" } });
    await deploy(database, {
      Name: "A",
      Maps: ['from d in docs select new { C = d["@metadata"]["@collection"] }'],
    });
    const found = await query(database, "from index 'A' where C = 'Cities'", {
      waitForNonStale: true,
    });
    expect(found.ids).toEqual(["cities/1"]);
    await deploy(database, {
      Name: "B",
      Maps: ["from c in counters.Users.Likes select new { c.Value, c.DocumentId }"],
    });
    expect(database.queries.indexes.byName("B")?.source).toBe("Counters");
  });

  it("is rejected if its functions have different fields, or if it needs more of C#", async () => {
    const database = await withUsers();
    const refusal = (definition: Record<string, unknown>) => refusalOf(database, definition);
    const Maps = ["from u in docs.Users select new { u.A }"];
    expect(await refusal({ Maps: [...Maps, "from u in docs.Users select new { u.B }"] })).toBe(
      [
        "Failed to compile index 'X': Map and Reduce functions of a index must return identical types.",
        "Baseline function\t\t: from u in docs.Users select new { u.A }",
        "Non matching function\t: from u in docs.Users select new { u.B }",
        "",
        "Common fields\t\t\t: ",
        "Missing fields\t\t\t: A",
        "Additional fields\t\t: B",
      ].join("\r\n"),
    );
    expect(await refusal({ Maps: [...Maps, "map('Users', u => ({ A: 1 }))"] })).toMatch(
      /must start its enumeration/,
    );
    expect(await refusal({ Maps, AdditionalSources: { a: "class A {}" } })).toMatch(
      /AdditionalSources of C#/,
    );
  });

  it("rejects additional assemblies with RavenDB 7.2.7's message for missing ones", async () => {
    const database = await withUsers();
    const Maps = ["from u in docs.Users select new { A = 1 }"];
    const assembly = (one: object) => refusalOf(database, { Maps, AdditionalAssemblies: [one] });
    const named = await assembly({ AssemblyName: "Some.Assembly" });
    expect(named).toContain("Cannot load assembly 'Some.Assembly'.");
    expect(named).toContain("Could not load file or assembly 'Some.Assembly'");
    expect(await assembly({ AssemblyPath: "/no/such.dll" })).toContain(
      "Cannot load assembly from path '/no/such.dll'",
    );
    const nuGet = { PackageName: "Some.Package", PackageVersion: "4.3.1" };
    expect(await assembly(nuGet)).toContain(
      "Cannot load NuGet package 'Some.Package' version '4.3.1':",
    );
    expect(await assembly({ ...nuGet, PackageSourceUrl: "http://none" })).toContain(
      "Cannot load NuGet package 'Some.Package' version '4.3.1' from 'http://none':",
    );
    expect(await assembly({})).toContain("AdditionalAssemblies are not supported");
  });

  it("aborts an endless map and continues with other documents", async () => {
    const database = await withUsers();
    const endless = [
      "Enumerable.Range(0, 3000).Sum(x => Enumerable.Range(0, 3000).Sum(y => x * y)) > 0",
      'Enumerable.Range(0, 60).Aggregate("x", (a, b) => a + a).Length > 0',
      'string.Join("", Enumerable.Repeat("x".PadLeft(9000000), 500)).Length > 0',
      '"x".PadLeft(9000000).Replace(" ", "x".PadLeft(90000)).Length > 0',
      'string.Format("{0,9999}{0,9999}", 1).PadLeft(2000000000).Length > 0',
      "Enumerable.Range(0, 90000).Aggregate(new object[] { }, (a, b) => new object[] { a }) == u.Tags",
    ];
    for (const [i, test] of endless.entries()) {
      const map = `from u in docs.Users where u.Age == 20 || ${test} select new { u.First }`;
      await deploy(database, { Name: `W${i}`, Maps: [map] });
      const { ids } = await query(database, `from index 'W${i}'`, { waitForNonStale: true });
      expect(ids).toEqual(["users/2"]);
      expect(staticIndex(database, `W${i}`).errors.list.length).toBe(1);
    }
  });
});
