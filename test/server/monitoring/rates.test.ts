/** Rates between two reads; changes counted by type while a database is followed. */
import { afterAll, expect, test } from "vitest";
import { ChangeCounts, Rates } from "../../../server/monitoring/rates.ts";
import { startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

afterAll(stopTestServers);

test("counts become rates per second, 0 at first and after a restart", () => {
  let nowMs = 0;
  const rates = new Rates<"a">(() => nowMs);
  expect(rates.look("x", { a: 100 })).toEqual({ a: 0 });
  nowMs = 2_000;
  expect(rates.look("x", { a: 110 })).toEqual({ a: 5 });
  expect(rates.look("y", { a: 7 })).toEqual({ a: 0 });
  nowMs = 3_000;
  expect(rates.look("x", { a: 0 })).toEqual({ a: 0 });
});

test("changes are counted by type while a database is followed", async () => {
  const { server, send } = await startEndpointClient();
  const database = await server.running.services.databases.find("db");
  if (database === undefined) throw new Error("the database does not exist");
  const counts = new ChangeCounts();
  await send("PUT docs?id=a/1", {});
  counts.follow([database]);
  await send("PUT docs?id=a/2", {});
  const Operations = [{ Type: "Increment", CounterName: "n", Delta: 1 }];
  await send("POST counters", { Documents: [{ DocumentId: "a/2", Operations }] });
  await expect.poll(() => counts.of(database).counter).toBe(1);
  expect(counts.of(database).document).toBeGreaterThanOrEqual(1);
  expect(counts.of(database)["time-series"]).toBe(0);
  counts.end();
  expect(counts.of(database)).toEqual({ document: 0, counter: 0, "time-series": 0 });
});
