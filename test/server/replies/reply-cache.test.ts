/**
 * A repeated query is answered from the reply cache, but never after a change of data that it
 * reads.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let server: TestServer;
let unique = 0;

beforeAll(async () => {
  server = await startTestServer({ unsecured: true, databases: [{ name: "db" }] });
  for (let n = 0; n < 20; n++)
    await put(`users/${n}`, "Users", { Name: `n${n}`, Age: n % 4, Company: "companies/1" });
  await put("companies/1", "Companies", { Name: "first" });
});
afterAll(stopTestServers);

async function put(id: string, collection: string, document: object): Promise<void> {
  const body = JSON.stringify({ ...document, "@metadata": { "@collection": collection } });
  const reply = await server.request(`/databases/db/docs?id=${id}`, { method: "PUT", body });
  expect(reply.status).toBe(201);
}

async function post(path: string, content: unknown): Promise<void> {
  const body = JSON.stringify(content);
  const reply = await server.request(`/databases/db/${path}`, { method: "POST", body });
  expect(reply.status).toBeLessThan(300);
}

/**
 * The reply without parts that differ between queries. `isNew`: sent with a text that was never
 * sent before.
 */
async function send(query: string, parameters: object = {}, isNew = false): Promise<unknown> {
  const body = JSON.stringify({
    Query: query,
    QueryParameters: parameters,
    WaitForNonStaleResults: true,
  });
  const address = `/databases/db/queries${isNew ? `?unique=${unique++}` : ""}`;
  const { status, json, headers } = await server.request(address, { method: "POST", body });
  const { DurationInMs: _, LastQueryTime: time, ...rest } = json as Record<string, unknown>;
  return { status, rest, hasTime: typeof time, etag: headers.etag };
}

const increment = (id: string) => ({
  Documents: [
    { DocumentId: id, Operations: [{ Type: "Increment", CounterName: "likes", Delta: 1 }] },
  ],
});

const queries: readonly string[] = [
  "from Users where Age = 1",
  "from Users where id() = 'users/3'",
  "from Users",
  "from Users where Age >= 1 order by Name desc limit 3",
  "from Users where Age = 2 select Name",
  "from Users as u where u.Age = 2 load u.Company as c select { Name: c.Name }",
  "from Users where Age = 2 include Company",
  "from Users as u where u.Age = 2 select counter(u, 'likes') as Likes",
  "from Users where Age = 2 include counters('likes')",
  "from Users group by Age select Age, count()",
  "from index 'ByName' select facet(Name)",
  "from Users where Name = cmpxchg('name')",
  "from @all_docs where Name = 'first'",
  "from index 'ByName' where Name = 'n1'",
  "from Users where Age = $a",
];

const changes: readonly [string, () => Promise<unknown>][] = [
  [
    "a document is changed",
    () => put("users/1", "Users", { Name: "changed", Age: 1, Company: "companies/1" }),
  ],
  ["a document is added", () => put("users/new", "Users", { Name: "new", Age: 2 })],
  [
    "a document is deleted",
    () => server.request("/databases/db/docs?id=users/5", { method: "DELETE" }),
  ],
  [
    "a document of another collection is changed",
    () => put("companies/1", "Companies", { Name: "second" }),
  ],
  ["a counter is incremented", () => post("counters", increment("users/2"))],
  ["a counter that exists is incremented", () => post("counters", increment("users/2"))],
  [
    "a compare-exchange value is put",
    () =>
      server.request("/databases/db/cmpxchg?key=name&index=0", {
        method: "PUT",
        body: '{"Object":"n7"}',
      }),
  ],
  [
    "an index is deployed",
    () =>
      server.request("/databases/db/admin/indexes", {
        method: "PUT",
        body: JSON.stringify({
          Indexes: [{ Name: "ByName", Maps: ["map('Users', u => ({ Name: u.Name + 'x' }))"] }],
        }),
      }),
  ],
  [
    "another field is requested",
    () => send("from Users where Company = 'companies/1' and Age = 1"),
  ],
];

describe("a repeated query", () => {
  test("returns the same reply, with the current time", async () => {
    const body = JSON.stringify({
      Query: "from Users where Age = 3",
      WaitForNonStaleResults: true,
    });
    const times: string[] = [];
    const rests: string[] = [];
    for (let n = 0; n < 4; n++) {
      const { text, json } = await server.request("/databases/db/queries", {
        method: "POST",
        body,
      });
      times.push((json as { LastQueryTime: string }).LastQueryTime);
      rests.push(text.replace(/"DurationInMs":\d+|"LastQueryTime":"[^"]*"/g, ""));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(new Set(rests).size).toBe(1);
    expect([...times].sort()).toEqual(times);
    expect(new Set(times).size).toBe(times.length);
  });

  test("is not answered again to a client that has the reply", async () => {
    const body = JSON.stringify({
      Query: "from Users where Age = 0",
      WaitForNonStaleResults: true,
    });
    const send = (headers: Record<string, string>) =>
      server.request("/databases/db/queries", { method: "POST", body, headers });
    for (let n = 0; n < 3; n++) await send({});
    const { headers } = await send({});
    const etag = headers.etag ?? "";
    expect((await send({ "if-none-match": etag })).status).toBe(304);
    expect((await send({ "if-none-match": "1" })).status).toBe(200);
  });

  test.each(changes)("detects that %s", async (_what, change) => {
    const deployed = { Name: "ByName", Maps: ["map('Users', u => ({ Name: u.Name }))"] };
    if (changes.findIndex(([what]) => what === _what) === 0) {
      const body = JSON.stringify({ Indexes: [deployed] });
      await server.request("/databases/db/admin/indexes", { method: "PUT", body });
    }
    for (const query of queries) for (let n = 0; n < 3; n++) await send(query, { a: 1 });
    await change();
    for (const query of queries) {
      const fresh = await send(query, { a: 1 }, true);
      for (let n = 0; n < 3; n++) expect(await send(query, { a: 1 }), query).toEqual(fresh);
      expect(await send(query, { a: 2 }), query).toEqual(await send(query, { a: 2 }, true));
    }
  });
});
