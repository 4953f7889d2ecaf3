/** Lists of stored items. The formats are those of RavenDB 7.2.7's replies. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  const Collections = { Users: { Disabled: false, MinimumRevisionsToKeep: 2 } };
  await client.send("POST admin/revisions/config", { Collections });
  for (const id of ["users/1", "users/7", "notes/ü"]) {
    const collection = id.startsWith("users") ? { "@metadata": { "@collection": "Users" } } : {};
    await client.send(`PUT docs?id=${encodeURIComponent(id)}`, { Name: id, ...collection });
  }
});
afterAll(stopTestServers);

const moment = expect.stringMatching(/^\d{4}-.*\.\d{7}Z$/);
const vector = expect.stringMatching(/^A:\d+-.{22}$/);

test("exports the ids of all documents", async () => {
  const { status, text, headers } = await client.send("GET debug/documents/export-all-ids");
  expect([status, text]).toEqual([200, "\ufeffusers/1\nusers/7\nnotes/ü\n"]);
  expect(headers["content-type"]).toBe("text/plain; charset=utf-8");
  expect(headers["content-disposition"]).toMatch(/^attachment; filename=ids-for-db-.*Z\.txt$/);
});

test("lists revisions from an etag on, oldest first", async () => {
  const all = (await client.json("GET debug/documents/get-revisions?etag=0")) as {
    Revisions: { Id: string; Etag: number }[];
  };
  const etags = all.Revisions.map(({ Etag }) => Etag);
  const row = (Id: string) => ({
    Id,
    Etag: expect.any(Number),
    LastModified: moment,
    ChangeVector: vector,
  });
  expect(all).toEqual({ Revisions: [row("users/1"), row("users/7")] });
  expect(etags).toEqual([...etags].sort((a, b) => a - b));
  const path = "GET debug/documents/get-revisions";
  expect(await client.json(`${path}?etag=${etags[1]}`)).toEqual({ Revisions: [row("users/7")] });
  expect(await client.json(`${path}?pageSize=1`)).toEqual({ Revisions: [row("users/1")] });
});

test("counts the attachments with a content", async () => {
  const count = (hash: string) =>
    client.json(`GET debug/attachments/hash?hash=${encodeURIComponent(hash)}`);
  const hash = "vd2BPGNCOXIxce8/7phXm5SWTjuxyz5CcmLIwGjVIxk=";
  await client.send("PUT attachments?id=notes%2Fü&name=a", "abc");
  await client.send("PUT attachments?id=notes%2Fü&name=b", "abc");
  const counts = (Count: number) => ({
    LocalAttachmentsCount: Count,
    RemoteAttachmentsCount: 0,
    Count,
  });
  expect(await count(hash)).toEqual({ Hash: hash, ...counts(2) });
  expect(await count("abc")).toEqual({ Hash: "abc", ...counts(0) });
  expect((await client.send("GET debug/attachments/hash?hash=")).status).toBe(400);
});

test("lists deletions from an etag on, and purges them", async () => {
  await client.send("DELETE attachments?id=notes%2Fü&name=b");
  await client.send("DELETE docs?id=users/7");
  const list = async (query: string) => {
    const reply = (await client.json(`GET replication/tombstones${query}`)) as {
      Tombstones: { Etag: number }[];
    };
    return reply.Tombstones;
  };
  const shared = { Etag: expect.any(Number), ChangeVector: vector, LastModified: moment };
  const found = await list("");
  expect(found).toEqual([
    {
      Id: "notes/ü\u001ed\u001eb\u001evd2BPGNCOXIxce8/7phXm5SWTjuxyz5CcmLIwGjVIxk=\u001e",
      Type: "Attachment",
      ...shared,
    },
    { Id: "users/7", Type: "Document", Collection: "Users", ...shared },
  ]);
  expect(await list(`?etag=${found[1]?.Etag}`)).toEqual(found.slice(1));
  expect(await list("?start=1")).toEqual(found.slice(1));
  expect(await list("?pageSize=1")).toEqual(found.slice(0, 1));
  expect(await client.json("POST admin/tombstones/cleanup")).toEqual({ Value: 2 });
  expect(await client.json("POST admin/tombstones/cleanup")).toEqual({ Value: 0 });
  expect(await list("")).toEqual([]);
});
