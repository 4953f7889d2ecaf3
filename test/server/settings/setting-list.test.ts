/** The settings of a database, as listed in RavenDB's Studio. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listSettings } from "../../../server/settings/setting-list.ts";
import { settings } from "../../../server/settings/setting-table.ts";
import { isCold } from "../../support/cold.ts";
import { projectRoot } from "../../support/project-root.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "shop" }] });
});
afterAll(() => stopTestServers());

// Cold tests need the record on disk.
const inMemory = String(!isCold);

const path = "/databases/shop/admin/configuration/settings";

interface Row {
  readonly Metadata: { readonly Keys: readonly string[]; readonly [name: string]: unknown };
  readonly ServerValues: Readonly<Record<string, unknown>>;
  readonly DatabaseValues: Readonly<Record<string, unknown>> | null;
}

async function rows(pair = server.admin): Promise<Map<string, Row>> {
  const { json } = await server.request(path, {}, pair);
  const { Settings } = json as { Settings: Row[] };
  return new Map(Settings.map((row) => [row.Metadata.Keys[0] as string, row]));
}

test("lists all settings with their description and value", async () => {
  const listed = await rows();
  expect([...listed.keys()].slice(0, Object.keys(settings).length)).toEqual(Object.keys(settings));
  const page = readFileSync(`${projectRoot}docs/settings.md`, "utf8");
  const [, ofDatabases = ""] = page.split("## Settings of a database");
  const documented = [...ofDatabases.matchAll(/^\| (Indexing\.\S+) \| (\S+) \| (.*) \|$/gm)];
  expect(documented.length).toBe(6);
  for (const [, name = "", fallback, about] of documented) {
    expect(listed.get(name)?.Metadata).toMatchObject({
      DefaultValue: fallback,
      Description: about,
    });
  }
  expect(listed.get("RunInMemory")).toMatchObject({
    Metadata: { Type: "Boolean", DefaultValue: "false", Scope: "ServerWideOnly" },
    ServerValues: { RunInMemory: { Value: inMemory, HasAccess: true } },
    DatabaseValues: null,
  });
  expect(listed.get("Memory.LimitInMb")?.Metadata).toMatchObject({
    Type: "Size",
    SizeUnit: "Megabytes",
  });
});

test("a database administrator sees no server values, and nobody sees secrets", async () => {
  const pair = await server.client({ permissions: { shop: "Admin" } });
  const own = await rows(pair);
  expect(own.get("RunInMemory")?.ServerValues["RunInMemory"]).toEqual({
    Value: null,
    HasValue: true,
    HasAccess: false,
    PendingValue: null,
  });
  const secret = Object.entries(settings).find(([, { isSecret }]) => isSecret)?.[0] as string;
  const given = new Map([[secret, { value: "hidden" }]]);
  expect(JSON.stringify(listSettings(given, {}, true))).not.toContain("hidden");
});

test("lists settings stored in the database, too", async () => {
  await server.request(path, {
    method: "PUT",
    body: '{"Indexing.Static.SearchEngineType":"Lucene"}',
  });
  expect((await rows()).get("Indexing.Static.SearchEngineType")).toMatchObject({
    Metadata: { Scope: "ServerWideOrPerDatabase" },
    DatabaseValues: { "Indexing.Static.SearchEngineType": { Value: "Lucene" } },
  });
});

test("lists the server's settings with their sources, too", async () => {
  const { json } = await server.request("/admin/configuration/settings");
  const { Settings } = json as { Settings: (Row & { readonly Name: string })[] };
  expect(Settings.map(({ Name }) => Name)).toEqual(Object.keys(settings));
  expect(Settings.find(({ Name }) => Name === "RunInMemory")).toMatchObject({
    Value: inMemory,
    Source: "flag",
    Metadata: { Keys: ["RunInMemory"] },
    ServerValues: { RunInMemory: { Value: inMemory } },
  });
});
