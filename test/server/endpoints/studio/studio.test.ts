/** Previews of collections, their fields, the footer, lists of databases and name checks. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

type Json = Record<string, unknown>;
interface Listed {
  readonly Databases: readonly Json[];
}
interface Preview {
  readonly TotalResults: number;
  readonly AvailableColumns: readonly string[];
  readonly Results: readonly (Json & { "@metadata": Json })[];
}

const long = `${"é".repeat(254)}\n"`;
/** Takes longer than one tick to scan. */
const huge = { Name: "huge", Text: "x".repeat(3_000_000), List: Array.from({ length: 200_000 }) };

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  await put("invoices/1", "Invoices", {
    No: 1,
    Sum: 10.5,
    Exact: "y".repeat(255),
    Note: long,
    Lines: [{ P: "x" }, { P: "y" }],
    Customer: { Name: "Ann", Tags: [{ T: [1] }] },
    Empty: null,
  });
  await put("invoices/2", "Invoices", { No: 2, Sum: 0, Extra: "only here", Lines: [], O: {} });
  await put("customers/1", "Customers", { Name: "Ann", No: "7", Sizes: [1.5], Odd: [null] });
  await put("huge/1", "Huges", huge);
});
afterAll(stopTestServers);

async function put(id: string, collection: string, document: Json): Promise<void> {
  const body = { ...document, "@metadata": { "@collection": collection } };
  expect((await client.send(`PUT docs?id=${id}`, body)).status).toBe(201);
}

async function preview(query: string): Promise<Preview> {
  return (await client.json(`GET studio/collections/preview?${query}`)) as unknown as Preview;
}

describe("a preview of a collection", () => {
  test("shows by flags alone whether a row has attachments, counters and time series, as RavenDB 7.2.7 does", async () => {
    const metadata = {
      "@collection": "Rich",
      Foo: "x",
      "@expires": "2050-01-01T00:00:00.0000000Z",
    };
    await client.send("PUT docs?id=rich/1", { A: 1, "@metadata": metadata });
    await client.send("PUT attachments?id=rich/1&name=t.txt", "hello");
    const Operations = [{ Type: "Increment", CounterName: "l", Delta: 1 }];
    await client.send("POST counters", { Documents: [{ DocumentId: "rich/1", Operations }] });
    const Appends = [{ Timestamp: "2024-01-01T00:00:00.0000000Z", Values: [1] }];
    await client.send("POST timeseries?docId=rich/1", { Name: "hr", Appends });
    const { Results } = await preview("collection=Rich");
    expect(Results).toEqual([
      {
        A: 1,
        "@metadata": {
          $a: {},
          $o: {},
          $t: [],
          ...metadata,
          "@change-vector": expect.any(String),
          "@flags": "HasAttachments, HasCounters, HasTimeSeries",
          "@id": "rich/1",
          "@last-modified": expect.any(String),
        },
      },
    ]);
    await client.send("DELETE docs?id=rich/1");
  });

  test("shows scalars, truncated texts, and the sizes of other values, newest first", async () => {
    const { TotalResults, AvailableColumns, Results } = await preview("collection=invoices");
    expect(TotalResults).toBe(2);
    expect(AvailableColumns).toEqual("No Sum Extra Lines O Exact Note Customer Empty".split(" "));
    expect(Results.map(({ "@metadata": { "@id": id } }) => id)).toEqual([
      "invoices/2",
      "invoices/1",
    ]);
    const { "@metadata": metadata, ...fields } = Results[1] as Preview["Results"][0];
    expect(fields).toEqual({
      No: 1,
      Sum: 10.5,
      Exact: "y".repeat(255),
      Note: long.slice(0, 255),
      Empty: null,
    });
    expect(Object.keys(metadata).slice(0, 4)).toEqual(["$a", "$o", "$t", "@collection"]);
    expect(metadata).toMatchObject({ $a: { Lines: 2 }, $o: { Customer: 2 }, $t: ["Note"] });
    expect(Results[0]?.["@metadata"]).toMatchObject({ $a: { Lines: 0 }, $o: { O: 0 }, $t: [] });
  });

  test("has only the bound fields, in full on request", async () => {
    const { Results } = await preview(
      "collection=Invoices&start=1&binding=No&fullBinding=Note&fullBinding=Customer",
    );
    expect(Results).toHaveLength(1);
    const { "@metadata": metadata, ...fields } = Results[0] as Preview["Results"][0];
    expect(fields).toEqual({
      No: 1,
      Note: long,
      Customer: { Name: "Ann", Tags: [{ T: [1] }] },
    });
    expect(metadata).toMatchObject({ $a: {}, $o: {}, $t: [] });
  });

  test("of all documents has metadata, and the bound fields", async () => {
    const all = await preview("pageSize=2&start=1");
    expect(all.TotalResults).toBe(4);
    expect(all.Results.map((row) => Object.keys(row))).toEqual([["@metadata"], ["@metadata"]]);
    expect((await preview("binding=Name")).Results.map(({ Name }) => Name)).toEqual([
      "huge",
      "Ann",
      undefined,
      undefined,
    ]);
  });

  test("is empty outside the collection, with the number of documents", async () => {
    for (const page of ["start=2", "pageSize=0", "start=-1", "pageSize=-1"]) {
      expect(await preview(`collection=Invoices&${page}`)).toEqual({
        TotalResults: 2,
        AvailableColumns: [],
        Results: [],
      });
    }
    const none = await client.send("GET studio/collections/preview?collection=None");
    expect(none.headers["etag"]).toBeUndefined();
    expect(none.json).toMatchObject({ TotalResults: 0, Results: [] });
  });

  test("of a huge document shows its beginning, and truncates fields requested in full", async () => {
    const { Results } = await preview("collection=Huges&fullBinding=Text");
    expect(Results).toEqual([expect.objectContaining({ Name: "huge", Text: "x".repeat(255) })]);
    expect(Results[0]?.["@metadata"]).toMatchObject({ $a: { List: 200_000 }, $t: ["Text"] });
  });

  test("is unchanged as long as the collection is", async () => {
    const path = "GET studio/collections/preview?collection=Customers";
    const { etag } = (await client.send(path)).headers;
    expect(etag).toMatch(/^"A:\d+-.*\/1"$/);
    const headers = { "if-none-match": String(etag) };
    expect((await client.send(path, undefined, headers)).status).toBe(304);
    await put("customers/1", "Customers", { Name: "Bea", No: "7", Sizes: [1.5], Odd: [null] });
    expect((await client.send(path, undefined, headers)).status).toBe(200);
  });
});

describe("the fields of a collection", () => {
  const fields = (query: string) => client.json(`GET studio/collections/fields?${query}`);

  test("are those of its newest document", async () => {
    expect(await fields("collection=Customers")).toEqual({
      Name: "String",
      No: "String",
      Sizes: "ArrayNumber",
      Odd: "Array",
      "@metadata": "Object",
    });
    expect(await fields("collection=Nope")).toEqual({});
  });

  test("of an object, or an array's first object, in the document", async () => {
    await put("nested/1", "Nested", { A: { B: [{ C: true }, { D: 1 }] }, E: [1] });
    expect(await fields("collection=Nested&prefix=A")).toEqual({ B: "ArrayObject" });
    expect(await fields("collection=Nested&prefix=A.B")).toEqual({ C: "Boolean" });
    expect(await fields("collection=Nested&prefix=A.B.C")).toEqual({});
    expect(await fields("collection=Nested&prefix=E")).toEqual({});
  });

  test("of all collections list differing types", async () => {
    expect(await fields("")).toMatchObject({ No: "Number, String", Lines: "Array" });
  });
});

test("the footer counts documents and indexes", async () => {
  const Maps = ["map('Invoices', i => { if (i.No === 1) throw 'odd'; return { A: i.No }; })"];
  await client.json("PUT admin/indexes", { Indexes: [{ Name: "Broken", Maps }] });
  await client.json("POST queries", { Query: "from index 'Broken'", WaitForNonStaleResults: true });
  expect(await client.json("GET studio/footer/stats")).toMatchObject({
    CountOfDocuments: 5,
    CountOfIndexes: 1,
    StaleIndexes: [],
    CountOfIndexingErrors: 1,
  });
});

describe("lists of databases", () => {
  test("contain cached values immediately, and slower ones on request", async () => {
    const list = (path: string) => client.send(`GET /studio-tasks/databases${path}`);
    const row = (await client.json("GET /studio-tasks/databases?name=DB")) as Listed;
    expect(row.Databases[0]).toMatchObject({ Name: "db", IsDisabled: false, LockMode: "Unlock" });
    const state = (await client.json("GET /studio-tasks/databases/state?name=db")) as Listed;
    expect(state.Databases[0]).toMatchObject({ DocumentsCount: 5, DatabaseStatus: "Online" });
    expect((await list("?start=1")).json).toEqual({ Databases: [] });
    expect((await list("?name=none")).status).toBe(404);
  });
});

test.each([
  ["type=Database&name=shop", true],
  ["type=Database&name=a:b", "Only letters, digits and characters ('_', '-', '.') are allowed"],
  ["type=Index&name=a/b", true],
  ["type=Index&name=a%20b", "Index name 'a b' is not permitted"],
  ["type=Index&name=Auto/x", "cannot start with 'Auto/'"],
  ["type=Script&name=a:b", true],
])("the name check of %s", async (query, expected) => {
  const checked = await client.json(`GET /studio-tasks/is-valid-name?${query}`);
  const { IsValid, ErrorMessage } = checked as { IsValid: boolean; ErrorMessage: string | null };
  expect(IsValid).toBe(expected === true);
  if (expected !== true) expect(ErrorMessage).toContain(expected);
});

test.each(["type=Nope&name=a", "type=constructor&name=a", "name=a", "type=Index"])(
  "the name check rejects %s",
  async (query) => {
    const reply = await client.send(`GET /studio-tasks/is-valid-name?${query}`);
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ Type: "System.ArgumentException" });
  },
);

test("returns the next time of a cron expression, or its error", async () => {
  const path = "GET /studio-tasks/next-cron-expression-occurrence?expression=";
  const next = (await client.json(`${path}0%202%20*%20*%20*`)) as Json;
  expect(next).toMatchObject({ IsValid: true, Utc: expect.stringMatching(/:00:00\.0000000Z$/) });
  expect(Date.parse(String(next["Utc"]))).toBeGreaterThan(Date.now());
  expect(next["ServerTime"]).toMatch(/T02:00:00\.0000000$/);
  expect(await client.json(`${path}nonsense`)).toEqual({
    IsValid: false,
    ErrorMessage: "The provided cron string <nonsense> has too few parameters",
  });
});
