/** C# classes for documents and indexes. */
import { expect, test } from "vitest";
import {
  classNameOf,
  documentClasses,
  indexClass,
  singular,
} from "../../../server/replies/csharp-classes.ts";

test("a document becomes classes, nested ones first, one for each shape", () => {
  const text = documentClasses(
    "My.Space",
    new Map([
      [
        "Thing",
        {
          a: 1,
          b: 2.5,
          c: "2020-01-01T10:00:00.0000000Z",
          d: "00:10:00",
          e: "true",
          f: [],
          i: 9_999_999_999,
          j: "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
          k: [["x"]],
          l: null,
          items: [{ a: 1 }],
          child: { a: 1 },
          Child: { a: "x" },
          "@metadata": { "@collection": "Things" },
        },
      ],
    ]),
  );
  const lines = text.split("\n").map((line) => line.trim());
  expect(lines.filter((line) => line.startsWith("public"))).toEqual([
    "public class Child",
    "public string a { get; set; }",
    "public class child",
    "public int a { get; set; }",
    "public class Thing",
    "public Child Child { get; set; }",
    "public int a { get; set; }",
    "public float b { get; set; }",
    "public DateTime c { get; set; }",
    "public child child { get; set; }",
    "public TimeSpan d { get; set; }",
    "public bool e { get; set; }",
    "public List<object> f { get; set; }",
    "public long i { get; set; }",
    "public List<child> items { get; set; }",
    "public Guid j { get; set; }",
    "public List<List<string>> k { get; set; }",
    "public object l { get; set; }",
  ]);
  expect(text).toContain("namespace My.Space\r\n{");
});

test("the class has the name of the client type or of the collection", () => {
  expect(classNameOf({ "Raven-Clr-Type": "A.B.Thing, My" })).toEqual({
    space: "A.B",
    name: "Thing",
  });
  expect(classNameOf({ "@collection": "Orders" })).toEqual({ space: "My.RavenDB", name: "Order" });
  expect(["Boxes", "Categories", "Address", "Employees"].map(singular)).toEqual([
    "Box",
    "Category",
    "Address",
    "Employee",
  ]);
});

test("an index becomes a task with its maps, reduce, fields and sources", () => {
  const text = indexClass({
    Name: "Orders/By-Company",
    Maps: ['from o in docs.Orders\r\nselect new { o.Company, q = "x" }'],
    Reduce: "from r in results",
    Fields: { q: { Indexing: "Search", Storage: "No", Suggestions: true, Analyzer: null } },
    Configuration: { "Indexing.MapTimeoutInSec": "15" },
    AdditionalSources: {},
  });
  expect(text).toContain(`public class Index_Orders_By_Company : AbstractIndexCreationTask
{
    public override string IndexName => "Orders/By-Company";

    public override IndexDefinition CreateIndexDefinition()
    {
        return new IndexDefinition
        {
            Maps =
            {
            @"from o in docs.Orders
select new { o.Company, q = ""x"" }"
            },
            Reduce = @"from r in results",
            Fields =
            {
                { "q", new IndexFieldOptions
                {
                    Indexing = FieldIndexing.Search,
                    Suggestions = true
                } }
            },
            Configuration = new IndexConfiguration
            {
                ["Indexing.MapTimeoutInSec"] = @"15"
            }
        };
    }
}`);
});

test("the lines around the classes end as on Windows, those of the classes do not", () => {
  const text = documentClasses("S", new Map([["A", { a: 1, b: { c: 1 } }]]));
  expect(text).toMatch(
    /^using System;\r\n(?:using .*\r\n)*using System.Threading.Tasks;\r\n\r\nnamespace S\r\n\{\r\n {4}public/,
  );
  expect(text).toContain("    }\n\n    public class A\n    {\n        public int a");
  expect(text).toMatch(/ {4}\}\r\n\}$/);
});
