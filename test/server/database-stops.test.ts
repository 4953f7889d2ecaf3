/** Replies to clients of a stopped database, while other databases are served. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { openedDatabase } from "../../engine/api/database.ts";
import { InvariantError } from "../../engine/base/assert.ts";
import { type EndpointClient, startEndpointClient } from "../support/endpoint-client.ts";
import { stopTestServers } from "../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient(["--RunInMemory=false"]);
  await client.server.running.services.databases.create("other", {});
});
afterAll(stopTestServers);

async function databaseNow(): Promise<OpenDatabase> {
  const databaseApi = await client.server.running.services.databases.find("db");
  if (databaseApi === undefined) throw new Error("no database");
  return openedDatabase(databaseApi);
}

test("an internal error in a write returns a reference, and later requests succeed", async () => {
  const { state } = await databaseNow();
  const broken = new InvariantError("broken on purpose");
  vi.spyOn(state.parser, "parse").mockImplementationOnce(() => {
    throw broken;
  });
  const reply = await client.send("PUT docs?id=a", { a: 1 });
  expect(reply.status).toBe(500);
  expect(reply.text).toMatch(/see [-0-9a-f]{36} in the server's log/);
  expect(reply.text).not.toContain("broken on purpose");
  expect(client.server.errors).toEqual([broken]);
  expect((await client.send("PUT docs?id=a", { a: 1 })).status).toBe(201);
});

test("returns 503 with a retry time while the database reopens; then all data is available", async () => {
  const { state } = await databaseNow();
  vi.spyOn(state.documents, "commitStaged").mockImplementationOnce(() => {
    throw new InvariantError("broken on purpose");
  });
  expect((await client.send("PUT docs?id=b", { b: 1 })).status).toBe(500);
  const statuses: number[] = [];
  for (let tick = 0; tick < 500 && statuses.at(-1) !== 200; tick++) {
    const reply = await client.send("GET docs?id=a");
    statuses.push(reply.status);
    expect((await client.send("GET /databases/other/stats")).status).toBe(200);
    if (reply.status === 200) continue;
    expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "1"]);
    expect(reply.json).toMatchObject({
      Type: "Raven.Client.Exceptions.Database.DatabaseLoadFailureException",
      Message: expect.stringContaining("It is opened again from the disk"),
    });
  }
  expect(statuses.at(-1)).toBe(200);
  expect((await client.send("PUT docs?id=c", { c: 1 })).status).toBe(201);
});
