/**
 * Scripts of an administrator. The expected replies are those of RavenDB 7.2.7, with exceptions
 * noted in the tests.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

const run = (Script: unknown, query = "serverScript=true") =>
  client.send(`POST /admin/console?${query}`, { Script });

const results: readonly (readonly [string, unknown])[] = [
  ["return 1+1", 2],
  ["return 'a'", "a"],
  ["return true", true],
  ["return 1.5", 1.5],
  ["return null", null],
  ["return", null],
  ["1", null],
  ["return {a:1}", { a: 1 }],
  ["return [1]", { 0: 1, length: 1 }],
  ["return [[1],{a:[2]}]", { 0: [1], 1: { a: [2] }, length: 2 }],
  ["return ()=>1", { length: 0, name: "" }],
  ["return new Date(0)", "1970-01-01T00:00:00.0000000Z"],
  ["return typeof server", "object"],
  ["return typeof load", "function"],
  ["return server.Name", null],
  ["return database.Name", null],
  ["return database", null],
  ["nofunc()", null],
  ["return server.ServerStore.LicenseManager.LicenseStatus.Type !== 'Invalid'", true],
];

for (const [script, result] of results) {
  test(script, async () => {
    const reply = await run(script);
    expect([reply.status, reply.json]).toEqual([200, { Result: result }]);
  });
}

test("a script with a database can read its name", async () => {
  expect((await run("return database.Name", "database=db")).json).toEqual({ Result: "db" });
  expect((await run("return typeof database", "database=db")).json).toEqual({ Result: "object" });
});

const errors = "Raven.Client.Exceptions.Documents.Patching";
const failures: readonly (readonly [unknown, string, string])[] = [
  ["x = ;", "serverScript=true", `${errors}.JavaScriptParseException`],
  ["throw 5", "serverScript=true", `${errors}.JavaScriptException`],
  ["return 1", "database=none", "Raven.Client.Exceptions.Database.DatabaseDoesNotExistException"],
  ["return 1", "", "System.InvalidOperationException"],
  [undefined, "serverScript=true", "System.IO.InvalidDataException"],
];

for (const [script, query, type] of failures) {
  test(`${script} with '${query}' fails`, async () => {
    const reply = await run(script, query);
    expect([reply.status, (reply.json as { Type: string }).Type]).toEqual([400, type]);
  });
}

test("documents are not accessible: RavenDB fails with a NullReferenceException there", async () => {
  for (const script of ["return load('a')", "put('a', {})", "del('a')", "counter('a', 'b')"]) {
    const reply = await run(script, "database=db");
    expect(reply.status).not.toBe(200);
  }
});

test("a script stops at the limits of a patch", async () => {
  const reply = await run("for (;;) {}");
  expect(reply.text).toContain("Patching.Max");
});
