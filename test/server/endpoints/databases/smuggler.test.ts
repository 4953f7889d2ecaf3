/**
 * Exports and imports over HTTP: content, operations, options, access rights, and invalid dumps.
 */
import { readFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type EndpointClient,
  multipart,
  startEndpointClient,
} from "../../../support/endpoint-client.ts";
import { projectRoot } from "../../../support/project-root.ts";
import {
  type Reply,
  startTestServer,
  stopTestServers,
} from "../../../support/start-test-server.ts";

const dumps = `${projectRoot}test/cases/dumps/`;
const reference = Buffer.from(readFileSync(`${dumps}reference-zstd.txt`, "latin1"), "base64");

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

async function importing(
  dump: Buffer | string,
  options: object = {},
  query = "",
  path = "smuggler/import",
): Promise<Reply> {
  const body = multipart("xyz", [JSON.stringify(options), dump]);
  const type = "multipart/form-data; boundary=xyz";
  return await client.send(`POST ${path}${query}`, body, { "content-type": type });
}

async function exporting(options: object = {}, query = ""): Promise<string> {
  const reply = await client.send(`POST smuggler/export${query}`, options);
  expect(reply.status).toBe(200);
  expect(reply.headers["content-type"]).toBe("application/octet-stream");
  return gunzipSync(reply.body).toString("latin1");
}

function doc(id: string, more = ""): string {
  return `{"x":1,"@metadata":{"@id":"${id}","@collection":"Rs"${more}}}`;
}

test("an export whose script fails early returns the error", async () => {
  for (let number = 1; number <= 40; number++) {
    await client.send(`PUT docs?id=failing/${number}`, {
      number,
      "@metadata": { "@collection": "Failing" },
    });
  }
  for (const script of ["throw 'no'", "if (this.number > 20) throw 'no'", "while (true) {}"]) {
    const reply = await client.send("POST smuggler/export", {
      Collections: ["Failing"],
      TransformScript: script,
    });
    expect(reply.status, script).toBe(400);
    expect(reply.json, script).toMatchObject({ Type: expect.stringContaining("JavaScript") });
  }
  await client.send("DELETE docs?id=failing/1");
});

describe("imports", () => {
  test("accept plain text, gzip and zstd", async () => {
    const text = `{"BuildVersion":72051,"Docs":[${doc("plain/1")}]}`;
    expect((await importing(text)).json).toMatchObject({
      $type: "Raven.Client.Documents.Smuggler.SmugglerResult, Raven.Client",
      Documents: { ReadCount: 1, Processed: true, Skipped: false, ErroredCount: 0 },
      Indexes: { Skipped: true },
    });
    expect((await importing(gzipSync(text.replace("plain", "packed")))).status).toBe(200);
    expect((await importing(reference)).json).toMatchObject({ Documents: { ReadCount: 5 } });
    const ids = await client.json("GET docs?id=plain/1&id=packed/1&id=users/1&metadataOnly=true");
    expect(ids).toMatchObject({
      Results: [
        { "@metadata": { "@id": "plain/1" } },
        { "@metadata": { "@id": "packed/1" } },
        { "@metadata": { "@id": "users/1", "@timeseries": ["HeartRate", "Other"] } },
      ],
    });
  });

  test("accept a bare dump, as curl sends a file", async () => {
    const type = { "content-type": "application/octet-stream" };
    const text = `{"Docs":[${doc("raw/1")}]}`;
    expect((await client.send("POST smuggler/import", text, type)).status).toBe(200);
    expect((await client.send("GET docs?id=raw/1")).status).toBe(200);
    const json = { "content-type": "application/json" };
    const other = await client.send("POST smuggler/import", text, json);
    expect(other.status).toBe(400);
    expect(other.json).toEqual({
      Type: "Error",
      Error: "This endpoint requires form content type",
    });
  });

  test("are operations with a result", async () => {
    await importing(`{"Docs":[${doc("op/1")}]}`, {}, "?operationId=901");
    expect(await client.json("GET operations/state?id=901")).toMatchObject({
      Status: "Completed",
      Result: {
        $type: "Raven.Client.Documents.Smuggler.SmugglerResult, Raven.Client",
        Documents: { ReadCount: 1 },
        Messages: expect.arrayContaining([
          expect.stringMatching(/INFO\] Finished processing Documents\. Read: 1\./),
        ]) as unknown,
      },
    });
  });

  test("report the reason of a failure, and end their operation", async () => {
    const junk = await importing("junk", {}, "?operationId=902");
    expect(junk.status).toBe(400);
    expect(junk.json).toMatchObject({ Type: "System.IO.InvalidDataException" });
    expect(await client.json("GET operations/state?id=902")).toMatchObject({ Status: "Faulted" });
    const packed = gzipSync(`{"Docs":[${doc("cut/1")},${doc("cut/2")}]}`);
    expect((await importing(packed.subarray(0, packed.length - 12))).status).toBe(400);
    const damaged = Buffer.from(reference);
    damaged.fill(7, 400, 500);
    expect((await importing(damaged)).status).toBe(400);
    expect((await client.send("POST smuggler/import")).json).toMatchObject({ Type: "Error" });
    expect((await client.send("GET docs?id=plain/1")).status).toBe(200);
  });

  test("obey the options, or reject them before starting", async () => {
    const text = `{"BuildVersion":72051,"Docs":[${doc("t/1")}],"Identities":[{"Key":"t|","Value":"3"}]}`;
    const script = "this.y = this.x + 1;";
    await importing(text, { OperateOnTypes: "Documents", TransformScript: script });
    expect(await client.json("GET docs?id=t/1")).toMatchObject({ Results: [{ x: 1, y: 2 }] });
    expect(await client.json("GET debug/identities")).not.toHaveProperty("t|");
    for (const options of [
      { OperateOnTypes: "Bogus" },
      { EncryptionKey: "abc" },
      { TransformScript: "if (" },
    ]) {
      expect((await importing(text.replace("t/1", "t/2"), options)).status).toBe(400);
    }
    expect((await client.send("GET docs?id=t/2")).status).toBe(404);
    expect((await client.send("POST smuggler/validate-options", {})).status).toBe(204);
    const wrong = await client.send("POST smuggler/validate-options", { TransformScript: "if (" });
    expect(wrong.json).toMatchObject({ Type: "System.InvalidOperationException" });
  });

  test("accept documents of versions before 4.0", async () => {
    const old = `{"x":1,"@metadata":{"@id":"old/1","Raven-Entity-Name":"Olds","@etag":"01"}}`;
    await importing(`{"BuildVersion":30000,"Docs":[${old}]}`);
    expect(await client.json("GET docs?id=old/1")).toMatchObject({
      Results: [{ "@metadata": { "@collection": "Olds" } }],
    });
  });

  test("stop a decompression bomb", async () => {
    const spaces = Buffer.alloc(64 * 1024 * 1024, " ");
    const packed = gzipSync(spaces, { level: 9 });
    const bomb = Buffer.concat(Array.from({ length: 7 }, () => packed));
    expect((await importing(bomb)).text).toContain("exceeds the limit for dumps");
  });
});

describe("exports", () => {
  test("contain the imported data, and are operations too", async () => {
    await importing(`{"Docs":[${doc("same/1", ',"mine":"k"')}]}`);
    const text = await exporting({ OperateOnTypes: "Documents" }, "?operationId=77");
    expect(text).toMatch(/^\{"BuildVersion":72051,"Docs":\[.*\]\}$/s);
    expect(text).toContain('"@id":"same/1"');
    await expect
      .poll(() => client.json("GET operations/state?id=77"))
      .toMatchObject({ Status: "Completed", Result: { Documents: { Skipped: false } } });
  });

  test("have a name, and accept the options of a form", async () => {
    const form = `DownloadOptions=${encodeURIComponent('{"OperateOnTypes":"Identities"}')}`;
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const reply = await client.send("POST smuggler/export", form, type);
    expect(reply.headers["content-disposition"]).toMatch(
      /^attachment; filename=Dump%20of%20db%20.*\.ravendbdump$/,
    );
    expect(gunzipSync(reply.body).toString()).toMatch(/^\{"BuildVersion":72051,"Identities":\[/);
  });

  test("are cut off and fail if their script fails", async () => {
    const options = { TransformScript: "throw 'no'", OperateOnTypes: "Documents" };
    await client.send("POST smuggler/export?operationId=78", options).catch(() => undefined);
    await expect
      .poll(() => client.json("GET operations/state?id=78"))
      .toMatchObject({ Status: "Faulted" });
    const unreadable = await client.send("POST smuggler/export", { TransformScript: "if (" });
    expect(unreadable.status).toBe(400);
  });
});

test("read access allows exports but no imports; write access does not change the record", async () => {
  const server = await startTestServer({ databases: [{ name: "db" }] });
  const reader = await server.client({ permissions: { db: "Read" } });
  const writer = await server.client({ permissions: { db: "ReadWrite" } });
  const body = multipart("xyz", [
    "{}",
    '{"DatabaseRecord":{"LockMode":"PreventDeletesError","Revisions":{"Default":{"Disabled":false}}}}',
  ]);
  const type = { "content-type": "multipart/form-data; boundary=xyz" };
  const send = (who: typeof reader) =>
    server.request("/databases/db/smuggler/import", { method: "POST", body, headers: type }, who);
  expect((await send(reader)).status).toBe(403);
  const path = "/databases/db/smuggler/export";
  expect((await server.request(path, { method: "POST", body: "{}" }, reader)).status).toBe(200);
  const written = await send(writer);
  expect(written.status).toBe(200);
  expect(JSON.stringify(written.json)).toContain("rights of an administrator");
  const record = await server.request("/admin/databases?name=db");
  expect(record.json).toMatchObject({ LockMode: "Unlock", Revisions: null });
});

test("C# indexes of a dump are deployed only for database administrators", async () => {
  const server = await startTestServer({ databases: [{ name: "db" }] });
  const writer = await server.client({ permissions: { db: "ReadWrite" } });
  const administrator = await server.client({ permissions: { db: "Admin" } });
  const index = (Name: string, map: string) => ({
    Type: "Map",
    IndexDefinition: { Name, Maps: [map] },
  });
  const dump = {
    BuildVersion: 72051,
    Indexes: [
      index("Sharp", "from u in docs.Users select new { u.Name }"),
      index("Script", "map('Users', (u) => ({ Name: u.Name }))"),
    ],
  };
  const options = {
    method: "POST",
    body: multipart("xyz", ["{}", JSON.stringify(dump)]),
    headers: { "content-type": "multipart/form-data; boundary=xyz" },
  };
  const path = "/databases/db/smuggler/import";
  const names = async () =>
    (await server.request("/databases/db/indexes?namesOnly=true")).json as { Results: string[] };
  const refused = await server.request(path, options, writer);
  expect(JSON.stringify(refused.json)).toContain("Index Sharp is a C# index");
  expect((await names()).Results).toEqual(["Script"]);
  expect((await server.request(path, options, administrator)).status).toBe(200);
  expect((await names()).Results.sort()).toEqual(["Script", "Sharp"]);
});
