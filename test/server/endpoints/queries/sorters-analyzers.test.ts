/**
 * Sorters and analyzers in .NET code: not supported, and rejected with errors that clients
 * recognize.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

describe.each([
  { path: "sorters", key: "Sorters", name: "Sorter" },
  { path: "analyzers", key: "Analyzers", name: "Analyzer" },
])("$path", ({ path, key, name }) => {
  test("are rejected as code that does not compile, for a database and for all", async () => {
    const body = { [key]: [{ Name: "Mine", Code: "public class Mine {}" }] };
    for (const where of [`admin/${path}`, `/admin/${path}`]) {
      expect((await client.send(`PUT ${where}`, body)).json).toMatchObject({
        Type: `Raven.Client.Exceptions.Documents.Compilation.${name}CompilationException`,
        Message: expect.stringContaining("'Mine'"),
      });
      expect((await client.send(`PUT ${where}`, { [key]: [{}] })).json).toMatchObject({
        Message: `${name} must have a 'Name' field.`,
      });
      expect((await client.send(`PUT ${where}`, { [key]: [{ Name: "Mine" }] })).json).toMatchObject(
        {
          Message: `${name} must have a 'Code' field.`,
        },
      );
      const none = await client.send(`PUT ${where}`, { [key]: [] });
      expect([none.status, none.headers["content-type"]]).toEqual([201, undefined]);
      expect((await client.send(`PUT ${where}`, {})).json).toMatchObject({
        Message: `Request should have a property name '${key}' which is mandatory.`,
      });
    }
  });

  test("lists are empty, and deletions have no effect", async () => {
    expect(await client.json(`GET ${path}`)).toEqual({ [key]: [] });
    for (const admin of [`admin/${path}`, `/admin/${path}`]) {
      expect((await client.send(`DELETE ${admin}?name=Mine`)).status).toBe(204);
      expect((await client.send(`DELETE ${admin}`)).json).toMatchObject({
        Type: "System.ArgumentException",
      });
    }
  });
});

test("a query with a sorter is rejected because no such sorter exists, even without rows", async () => {
  const Query = "from Nobody order by custom(Name, 'Mine')";
  expect((await client.send("POST queries", { Query })).json).toMatchObject({
    Type: "Raven.Client.Exceptions.Documents.Sorters.SorterDoesNotExistException",
    Message: "There is no sorter with 'Mine' name.",
  });
});
