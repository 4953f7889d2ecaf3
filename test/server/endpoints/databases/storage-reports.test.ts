/** Disk usage, and the index that retains tombstones. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

interface Table {
  readonly Name: string;
  readonly NumberOfEntries: number;
  readonly AllocatedSpaceInBytes: number;
}
interface DataFile {
  readonly AllocatedSpaceInBytes: number;
  readonly UsedSpaceInBytes: number;
  readonly FreeSpaceInBytes: number;
}

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient(["--RunInMemory=false"]);
  for (let number = 1; number <= 4; number++) {
    const body = { Text: "x".repeat(2_000), "@metadata": { "@collection": "Notes" } };
    await client.send(`PUT docs?id=notes/${number}`, body);
  }
});
afterAll(stopTestServers);

test("the report has the sizes of the log and its collections", async () => {
  const short = (await client.json("GET debug/storage/report")) as {
    Results: { Name: string; Type: string; Report: { DataFile: DataFile } }[];
    BasePath: string;
  };
  expect(short.Results).toMatchObject([{ Name: "db", Type: "Documents" }]);
  expect(short.BasePath).toMatch(/Databases.db$/);
  const { DataFile: file } = short.Results[0]?.Report ?? {};
  expect(file?.UsedSpaceInBytes).toBeGreaterThan(8_000);
  expect((file?.UsedSpaceInBytes ?? 0) + (file?.FreeSpaceInBytes ?? 0)).toBe(
    file?.AllocatedSpaceInBytes,
  );
  const long = (await client.json(
    "GET debug/storage/environment/report?name=DB&type=documents",
  )) as { Report: { Tables: Table[]; DataFile: DataFile } };
  const notes = long.Report.Tables.find(({ Name }) => Name === "Collection.Documents.Notes");
  expect(notes).toMatchObject({ NumberOfEntries: 4 });
  expect(notes?.AllocatedSpaceInBytes).toBeGreaterThan(8_000);
  const all = long.Report.Tables.reduce((sum, one) => sum + one.AllocatedSpaceInBytes, 0);
  expect(all).toBeLessThanOrEqual(long.Report.DataFile.UsedSpaceInBytes);
  expect(await client.json("GET debug/storage/all-environments/report")).toMatchObject({
    Environments: [{ Environment: "db", Report: { Tables: long.Report.Tables } }],
  });
  await client.send("PUT attachments?id=notes/1&name=a", "12345");
  await client.send("PUT attachments?id=notes/2&name=b", "12345");
  const withFiles = (await client.json(
    "GET debug/storage/environment/report?name=DB&type=documents",
  )) as { Report: { Trees: Table[] } };
  // A content is stored and counted once.
  expect(withFiles.Report.Trees.find(({ Name }) => Name === "Attachments")).toMatchObject({
    NumberOfEntries: 1,
    AllocatedSpaceInBytes: 5,
  });
});

test("has no other environments, and the server has its own", async () => {
  const path = "GET debug/storage/environment/report";
  expect((await client.send(`${path}?name=other&type=Documents`)).status).toBe(404);
  expect((await client.send(`${path}?name=db&type=Index`)).status).toBe(404);
  expect((await client.send(`${path}?name=db`)).status).toBe(400);
  const server = (await client.json("GET /admin/debug/storage/environment/report")) as {
    Report: { DataFile: DataFile };
  };
  expect(server).toMatchObject({ Environment: "Server", Type: "System" });
  expect(server.Report.DataFile.UsedSpaceInBytes).toBeGreaterThan(0);
});

test("tombstones are retained for the index that has read the fewest deletions", async () => {
  const maps = ["map('Notes', (n) => ({ A: n.A }))"];
  await client.send("PUT /databases/db/admin/indexes", {
    Indexes: [{ Name: "ByA", Maps: maps }],
  });
  await client.send("DELETE docs?id=notes/1");
  const cell = async () => {
    const { text } = await client.send("GET admin/tombstones/state");
    // Etags of 64 bits, which JavaScript rounds.
    expect(text).toContain('"MinAllDocsEtag":9223372036854775807');
    const { Results } = JSON.parse(text) as {
      Results: { Collection: string; Documents: { Component: string | null; Etag: number } }[];
    };
    return Results.find(({ Collection }) => Collection === "notes")?.Documents;
  };
  await expect.poll(async () => (await cell())?.Etag).toBeGreaterThan(0);
  expect((await cell())?.Component).toBe("Index 'ByA'");
});

test("doubles have a decimal point, and 64-bit etags all their digits", async () => {
  await client.send("PUT admin/indexes", {
    Indexes: [{ Name: "Rates", Maps: ["from n in docs.Notes select new { n.Text }"] }],
  });
  const { text: rates } = await client.send("GET indexes/stats?name=Rates");
  expect(rates).toMatch(/"MappedPerSecondRate":\d\.\d+,"ReducedPerSecondRate":0\.0,/);
  const { text: report } = await client.send("GET debug/storage/all-environments/report");
  expect(report).toContain('"Density":-1.0');
  const { text: state } = await client.send("GET admin/tombstones/state");
  expect(state).toContain('"MinAllCountersEtag":9223372036854775807');
});
