/**
 * Tasks and connection strings of all databases, which are not supported. Statuses and texts are
 * those of RavenDB 7.2.7.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

const configuration = "/admin/configuration/server-wide";

test.each([
  ["/admin/server-wide/tasks", { Tasks: [] }],
  ["/admin/server-wide/tasks?type=", { Tasks: [] }],
  ["/admin/server-wide/tasks?type=GenAi", { Tasks: [] }],
  [`${configuration}/backup`, { Results: [] }],
  [`${configuration}/tasks?type=Backup`, { Results: [] }],
  [`${configuration}/tasks?type=Replication&name=x`, { Results: [] }],
  [`${configuration}/connection-strings`, { Results: [] }],
  [`${configuration}/connection-strings?type=raven`, { Results: [] }],
])("GET %s is empty", async (path, reply) => {
  expect(await client.json(`GET ${path}`)).toEqual(reply);
});

test("returns the backup settings as for a database", async () => {
  const limits = await client.json(`GET ${configuration}`);
  expect(limits).toEqual(await client.json("GET admin/periodic-backup/config"));
  expect(limits).toMatchObject({ LocalRootPath: null, AllowedAwsRegions: null });
});

test.each([
  [
    "/admin/server-wide/tasks?type=Documents",
    "ArgumentException",
    "Documents is unknown task type.",
  ],
  [
    `${configuration}/tasks`,
    "ArgumentException",
    "Query string type is mandatory, but wasn't specified.",
  ],
  [`${configuration}/tasks?type=backup`, "ArgumentException", "backup is unknown task type."],
  [
    `${configuration}/tasks?type=RavenEtl`,
    "ArgumentOutOfRangeException",
    "Specified argument was out of the range of valid values. (Parameter 'Task type 'RavenEtl isn't suppported')",
  ],
  [
    `${configuration}/connection-strings?type=Bogus`,
    "BadRequestException",
    "Unknown connection string type: Bogus",
  ],
])("GET %s is rejected", async (path, type, message) => {
  const { status, json } = await client.send(`GET ${path}`);
  expect(status).toBe(400);
  expect(json).toMatchObject({
    Type: expect.stringMatching(new RegExp(`${type}$`)),
    Message: message,
  });
});
