/** The traffic log: the configuration of RavenDB 7.2.7, whose replies these are, and its effect. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Log } from "../../../server/logging/log.ts";
import type { LogEvent } from "../../../server/logging/log-line.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

const path = "/admin/traffic-watch/configuration";
const events: LogEvent[] = [];
let client: EndpointClient;
beforeAll(async () => {
  const sink = {
    droppedCount: 0,
    write: (event: LogEvent) => void events.push(event),
    close: () => Promise.resolve(),
  };
  client = await startEndpointClient([], new Log("Info", [sink]));
});
afterAll(stopTestServers);
beforeEach(() => void events.splice(0));

const empty = {
  TrafficWatchMode: "Off",
  Databases: [],
  StatusCodes: [],
  MinimumResponseSizeInBytes: 0,
  MinimumRequestSizeInBytes: 0,
  MinimumDurationInMs: 0,
  HttpMethods: [],
  ChangeTypes: [],
  CertificateThumbprints: [],
};

const whole = {
  TrafficWatchMode: "Off",
  Databases: ["a"],
  StatusCodes: [200, 404],
  MinimumResponseSizeInBytes: 10,
  MinimumRequestSizeInBytes: 20,
  MinimumDurationInMs: 5,
  HttpMethods: ["GET", "put"],
  ChangeTypes: ["Queries", "Documents"],
  CertificateThumbprints: ["AA"],
};

test("nothing is configured initially", async () => {
  expect(await client.json(`GET ${path}`)).toEqual({
    ...empty,
    Databases: null,
    StatusCodes: null,
    HttpMethods: null,
    ChangeTypes: null,
    CertificateThumbprints: null,
  });
});

test.each([
  [{ TrafficWatchMode: "Off" }, empty],
  [{}, { ...empty, TrafficWatchMode: "None" }],
  [{ TrafficWatchMode: null }, { ...empty, TrafficWatchMode: "None" }],
  [whole, whole],
  [
    { TrafficWatchMode: "Off", Persist: true, HttpMethods: ["BOGUS"] },
    { ...empty, HttpMethods: ["BOGUS"] },
  ],
  [
    { TrafficWatchMode: "Off", StatusCodes: ["5", 5.5], MinimumDurationInMs: "7" },
    { ...empty, StatusCodes: [5, 5], MinimumDurationInMs: 7 },
  ],
  [
    { TrafficWatchMode: "Off", ChangeTypes: [null], MinimumDurationInMs: null },
    { ...empty, ChangeTypes: ["None"] },
  ],
  [
    { TrafficWatchMode: "Off", MinimumDurationInMs: 7.5 },
    { ...empty, MinimumDurationInMs: 7 },
  ],
])("stores the configuration: %j", async (sent, kept) => {
  expect((await client.send(`POST ${path}`, sent)).status).toBe(204);
  expect(await client.json(`GET ${path}`)).toEqual(kept);
});

test.each([
  [{ TrafficWatchMode: "Bogus" }, "System.FormatException"],
  [{ TrafficWatchMode: "tologfile" }, "System.FormatException"],
  [{ TrafficWatchMode: true }, "System.FormatException"],
  [{ MinimumDurationInMs: "x" }, "System.FormatException"],
  [{ MinimumRequestSizeInBytes: {} }, "System.FormatException"],
  [{ Databases: "x" }, "System.FormatException"],
  [{ StatusCodes: ["a"] }, "System.InvalidCastException"],
  [{ ChangeTypes: ["Bogus"] }, "System.ArgumentException"],
  [{ ChangeTypes: ["documents"] }, "System.ArgumentException"],
  [{ ChangeTypes: [1] }, "System.InvalidCastException"],
])("rejects an invalid configuration without changes: %j", async (sent, type) => {
  await client.send(`POST ${path}`, whole);
  const { status, text } = await client.send(`POST ${path}`, sent);
  expect([status, JSON.parse(text).Type]).toEqual([400, type]);
  expect(await client.json(`GET ${path}`)).toEqual(whole);
});

/** The logged requests, as `GET /docs 200`. */
async function logged(configuration: object): Promise<string[]> {
  await client.send(`POST ${path}`, { TrafficWatchMode: "ToLogFile", ...configuration });
  events.length = 0;
  await client.send("PUT docs?id=a/1", { a: 1 });
  await client.send("GET docs?id=a/1");
  await client.send("GET docs?id=none");
  await client.send("POST queries", { Query: "from Secrets where Name = 's3cret'" });
  await client.send("GET /databases");
  await client.send(`POST ${path}`, { TrafficWatchMode: "Off" });
  const found = events.filter(({ message }) => message === "traffic");
  return found.map(({ fields }) => {
    const route = String(fields?.["route"]).replace("/databases/:database", "");
    return `${fields?.["method"]} ${route} ${fields?.["status"]}`;
  });
}

const ofDatabase = [
  "PUT /docs 201",
  "GET /docs 200",
  "GET /docs 404",
  "POST /queries 200",
] as const;

test("logs each request that matches", async () => {
  const [put, get, missing, query] = ofDatabase;
  expect(await logged({})).toEqual([...ofDatabase, "GET /databases 200"]);
  expect(await logged({ Databases: ["DB"] })).toEqual(ofDatabase);
  expect(await logged({ Databases: ["other"] })).toEqual([]);
  expect(await logged({ StatusCodes: [404, 201] })).toEqual([put, missing]);
  expect(await logged({ HttpMethods: ["PUT"] })).toEqual([put]);
  expect(await logged({ HttpMethods: ["put"] })).toEqual([]);
  expect(await logged({ ChangeTypes: ["Queries"] })).toEqual([query]);
  expect(await logged({ MinimumDurationInMs: 100_000 })).toEqual([]);
  expect(await logged({ CertificateThumbprints: ["AA"] })).toEqual([]);
  expect(await logged({ Databases: ["db"], MinimumRequestSizeInBytes: 7 })).toEqual([put, query]);
  expect(await logged({ Databases: ["db"], MinimumResponseSizeInBytes: 100 })).toEqual([
    get,
    query,
  ]);
  expect(await logged({ TrafficWatchMode: "None" })).toEqual([]);
});

test("a line contains no values of queries or documents", async () => {
  await logged({ ChangeTypes: ["Queries"] });
  const line = events.find(({ message }) => message === "traffic");
  expect(line?.fields).toMatchObject({
    event: "traffic",
    database: "db",
    type: "Queries",
    about: "from Secrets where Name = ?",
  });
  expect(JSON.stringify(events)).not.toContain("s3cret");
});
