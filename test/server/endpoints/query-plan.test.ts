/** `debug=plan`: how a query ran, and a proposal for a better index. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

interface Plan {
  readonly IndexName: string;
  readonly TotalResults: number;
  readonly Plan: string;
  readonly Steps: readonly {
    readonly Step: string;
    readonly Text: string;
    readonly Read: number | null;
    readonly Kept: number | null;
    readonly DurationInMs: number | null;
    readonly Conditions: readonly { readonly Condition: string; readonly Found: number }[];
  }[];
  readonly BetterIndex: {
    readonly Text: string;
    readonly Reads: number;
    readonly InsteadOf: number;
    readonly Definition: { readonly Name: string };
    readonly IsDeployed: boolean;
    readonly Query: string;
  } | null;
}

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  const Commands = Array.from({ length: 200 }, (_, n) => ({
    Type: "PUT",
    Id: `users/${n}`,
    Document: {
      Name: n % 2 === 0 ? "Ann" : "ann",
      Age: n,
      // Some have no address at all.
      ...(n % 10 === 9 ? {} : { Home: { City: n % 5 === 0 ? "Oslo" : "Rome" } }),
      Tags: ["a", "b"],
      "@metadata": { "@collection": "Users" },
    },
  }));
  await client.send("POST bulk_docs", { Commands });
});
afterAll(stopTestServers);

const plan = async (Query: string, more: object = {}) =>
  (await client.send("POST queries?debug=plan", { Query, ...more })).json as Plan;
const rows = async (Query: string, more: object = {}) =>
  ((await client.send("POST queries", { Query, ...more })).json as { Results: { Age: number }[] })
    .Results;
const step = ({ Steps }: Plan, name: string) => Steps.find(({ Step }) => Step === name);

test("reports that a filter reads every document, and proposes a deployable index", async () => {
  const text = "from Users filter Home.City = 'Oslo' and Age >= 100";
  const slow = await plan(text);
  expect(slow).toMatchObject({ IndexName: "collection/Users", TotalResults: 20 });
  expect(step(slow, "read")).toMatchObject({
    Text: "Read 200 documents and tested filter on 200: 20 passed.",
    Read: 200,
    Kept: 20,
  });
  const better = slow.BetterIndex;
  expect(better).toMatchObject({ Reads: 20, InsteadOf: 200, IsDeployed: false });
  expect(better?.Text).toBe(
    "An index with Home.City, Age would read 20 entries, not 200 documents.",
  );
  const deployed = await client.send("PUT indexes", { Indexes: [better?.Definition] });
  expect(deployed.status).toBe(201);
  const fast = await plan(better?.Query ?? "", { WaitForNonStaleResults: true });
  expect(step(fast, "read")).toMatchObject({ Read: 20, Kept: 20 });
  expect(step(fast, "find")).toMatchObject({
    Text: "Found 20 of the 200 entries of the index Users/ByHome_CityAndAge by (Home.City = ? and Age >= ?).",
    Conditions: [
      { Condition: "Home.City = ?", Found: 40 },
      { Condition: "Age >= ?", Found: 100 },
    ],
  });
  expect(fast.BetterIndex).toBe(null);
  const ages = (found: { Age: number }[]) => found.map(({ Age }) => Age).sort();
  expect(ages(await rows(better?.Query ?? ""))).toEqual(ages(await rows(text)));
  expect((await plan(text)).BetterIndex).toMatchObject({ IsDeployed: true });
});

test("the better query returns the same rows where texts differ only in case", async () => {
  const text = "from Users as u filter u.Name = $name and u.Age < 40 select u.Age";
  const QueryParameters = { name: "ann" };
  const { BetterIndex: better } = await plan(text, { QueryParameters });
  expect(better).toMatchObject({ Reads: 20, InsteadOf: 200 });
  await client.send("PUT indexes", { Indexes: [better?.Definition] });
  const again = { QueryParameters, WaitForNonStaleResults: true };
  expect(await rows(better?.Query ?? "", again)).toHaveLength(20);
});

test("a condition of an index beside a filter becomes part of the better index", async () => {
  const { BetterIndex: better } = await plan(
    "from Users where Age > 20 order by Age filter Home.City = 'Oslo'",
  );
  expect(better?.Query).toBe(
    "from index 'Users/ByAgeAndHome_City' where Age > 20 and Home.City = 'Oslo' order by Age filter Home.City = 'Oslo'",
  );
});

test("proposes no index that might miss documents, or would not read clearly fewer", async () => {
  for (const text of [
    "from Users filter Name > 'b' and Age < 10",
    "from Users filter Home = null and Age < 10",
    "from Users filter Age != 3 and Age < 10",
    "from Users filter startsWith(Name, 'x')",
    "from Users filter Age < 150",
    "from @all_docs filter Age < 10",
    "from Users filter Tags[] = 'x'",
    "from Users as u load u.Boss as b filter b.Age = 3",
    "from Users where search(Name, 'ann') filter Age < 10",
    "from Users where Age < 10",
  ]) {
    expect([text, (await plan(text)).BetterIndex]).toEqual([text, null]);
  }
});

test("does not replace an index of another type with the same name", async () => {
  const Maps = ["map('Users', doc => ({ Age: doc.Age + 1 }))"];
  await client.send("PUT indexes", { Indexes: [{ Name: "Users/ByAge", Maps }] });
  const { BetterIndex: better } = await plan("from Users filter Age < 10");
  expect(better?.Definition.Name).toBe("Users/ByAge2");
});

test("reports order, pages, includes and groups", async () => {
  const sorted = await plan("from Users order by Age desc");
  expect(step(sorted, "order")?.Text).toBe("Sorted 200 entries by Age desc.");
  const Commands = Array.from({ length: 3000 }, (_, n) => ({
    Type: "PUT",
    Id: `sizes/${n}`,
    Document: { Age: n, "@metadata": { "@collection": "Sizes" } },
  }));
  await client.send("POST bulk_docs", { Commands });
  const walked = await plan("from Sizes order by Age limit 3");
  expect(step(walked, "order")?.Text).toMatch(
    /^Walked the index in the order of Age until the page was full: \d+ entries\.$/,
  );
  expect(step(walked, "read")).toMatchObject({ Read: 3 });
  expect(step(walked, "return")?.Text).toBe("Returned 3 rows.");
  expect(walked.Plan).toContain("index Auto/Sizes/ByAge: all of it; order: walk of Age");
  const ids = await plan("from Users where id() in ('users/1', 'users/2', 'users/999')");
  expect(step(ids, "find")).toMatchObject({ Read: 3, Kept: 2 });
  const groups = await plan("from Users group by Home.City select key() as City, count() as N");
  expect(step(groups, "read")?.Text).toMatch(/^Read \d groups/);
  const script = await plan("from Users as u select { A: u.Age }", { PageSize: 2 });
  expect(step(script, "return")?.Text).toBe("Returned 2 rows made by a script.");
});

test("errors are those of a query", async () => {
  const reply = await client.send("POST queries?debug=plan", { Query: "from Users where where" });
  expect(reply.status).toBe(400);
});
