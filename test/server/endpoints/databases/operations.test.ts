/** Operations that are dry-run, paused, limited and undone, and their entries in the list. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { startTestServer, stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  const Commands = Array.from({ length: 900 }, (_, n) => ({
    Type: "PUT",
    Id: `ns/${n}`,
    Document: { N: n, "@metadata": { "@collection": "Ns" } },
  }));
  await client.send("POST bulk_docs", { Commands });
});
afterAll(stopTestServers);

type Json = Record<string, unknown>;

const body = (Query: string) => ({ Query: { Query } });

async function started(what: string, sent?: object): Promise<number> {
  const reply = await client.send(what, sent);
  expect(reply.status).toBe(200);
  return (reply.json as { OperationId: number }).OperationId;
}

const stateOf = async (id: number) => (await client.json(`GET operations/state?id=${id}`)) as Json;

async function ended(id: number): Promise<Json> {
  await expect
    .poll(async () => (await stateOf(id))["Status"], { timeout: 20_000 })
    .not.toBe("InProgress");
  return await stateOf(id);
}

test("a dry run over all documents reports the changes, with samples", async () => {
  const id = await started(
    "PATCH queries/dry-run?sample=1",
    body("from Ns update { if (this.N > 9) this.N = 9; }"),
  );
  expect(await ended(id)).toMatchObject({
    Status: "Completed",
    Result: {
      Total: 900,
      WouldChange: 890,
      Unchanged: 10,
      WouldFail: 0,
      Errors: [],
      Samples: [
        {
          Id: "ns/10",
          Before: expect.stringContaining('{"N":10,'),
          After: expect.stringContaining('{"N":9,'),
        },
      ],
    },
  });
  const { Results } = (await client.json("POST queries", { Query: "from Ns where N > 9" })) as Json;
  expect(Results).toHaveLength(890);
  for (const internalError of ["sample=-1", "sample=101", "max=0"])
    expect(
      (await client.send(`PATCH queries/dry-run?${internalError}`, body("from Ns update {}")))
        .status,
    ).toBe(400);
});

test("a patch is paused, limited and resumed; its progress counts changed documents", async () => {
  const id = await started(
    "PATCH queries?maxOpsPerSec=100",
    body("from Ns update { this.M = this.N; }"),
  );
  expect((await client.send(`POST operations/pause?id=${id}`)).status).toBe(204);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const paused = await stateOf(id);
  expect(paused).toMatchObject({ Status: "InProgress", IsPaused: true, MaxOpsPerSec: 100 });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect((await stateOf(id))["Progress"]).toEqual(paused["Progress"]);
  expect((await client.send(`POST operations/limit?id=${id}&maxOpsPerSec=-5`)).status).toBe(400);
  expect((await client.send(`POST operations/limit?id=${id}`)).status).toBe(204);
  expect(await stateOf(id)).not.toHaveProperty("MaxOpsPerSec");
  expect((await client.send(`POST operations/resume?id=${id}`)).status).toBe(204);
  const last = await ended(id);
  expect(last).toMatchObject({
    Result: { Total: 900 },
    Reached: { Processed: 900, Total: 900, Changed: 900, Unchanged: 0 },
  });
  expect(last).not.toHaveProperty("IsPaused");
  expect((await client.send(`POST operations/pause?id=${id}`)).status).toBe(400);
  expect((await client.send("POST operations/pause?id=9999")).status).toBe(400);
  expect((await client.send(`POST operations/resume?id=${id}`)).status).toBe(400);
});

test("a patch with undo=true is undone, and other patches cannot be", async () => {
  const id = await started("PATCH queries?undo=true", body("from Ns update { this.N = -1; }"));
  expect(await ended(id)).toMatchObject({ Status: "Completed", CanUndo: true });
  const undo = await started(`POST operations/undo?id=${id}`);
  expect(await ended(undo)).toMatchObject({ Undoes: id, Result: { Restored: 900, LeftAlone: [] } });
  const gone = await stateOf(id);
  expect(gone).toMatchObject({ UndoneBy: undo });
  expect(gone).not.toHaveProperty("CanUndo");
  const { TotalResults } = (await client.json("POST queries", {
    Query: "from Ns where N < 0",
  })) as Json;
  expect(TotalResults).toBe(0);
  const again = await client.send(`POST operations/undo?id=${id}`);
  expect(again.status).toBe(400);
  expect(again.text).toContain(`was undone already, by operation ${undo}`);
});

test("undoing a deletion with undo=true restores documents with their attachments", async () => {
  await client.send("PUT docs?id=pics/1", { A: 1, "@metadata": { "@collection": "Pics" } });
  await client.send("PUT attachments?id=pics/1&name=a.txt&contentType=text/plain", "the content");
  const id = await started("DELETE queries?undo=true", { Query: "from Pics" });
  await ended(id);
  expect((await client.send("GET docs?id=pics/1")).status).toBe(404);
  await ended(await started(`POST operations/undo?id=${id}`));
  expect((await client.send("GET attachments?id=pics/1&name=a.txt")).text).toBe("the content");
});

test("the list shows who started an operation, and its text", async () => {
  const server = await startTestServer({ databases: [{ name: "shop" }] });
  const ann = await server.client({ clearance: "ClusterAdmin" }, "ann");
  const patch = JSON.stringify(body("from Orders update { this.A = 1 }"));
  const path = "/databases/shop/queries";
  const reply = await server.request(path, { method: "PATCH", body: patch }, ann);
  expect(reply.status).toBe(200);
  const { Results } = (await server.request("/databases/shop/operations")).json as {
    Results: Json[];
  };
  expect(Results).toMatchObject([
    {
      Description: {
        StartedBy: "ann",
        DetailedDescription: { Query: "from Orders update { this.A = 1 }" },
      },
    },
  ]);
});
