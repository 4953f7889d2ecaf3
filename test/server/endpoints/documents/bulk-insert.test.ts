import * as http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import * as zlib from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
let lastId = 100;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

const put = (id: string, document: object) =>
  JSON.stringify({ Id: id, Type: "PUT", Document: document });
const insert = (body: string | Buffer, id = ++lastId, query = "") =>
  client.send(`POST bulk_insert?id=${id}${query}`, body);
const stateOf = (id: number) =>
  client.json(`GET operations/state?id=${id}`) as Promise<Record<string, never>>;

/** A request that stays open: written data is sent immediately. */
function openInsert(id: number, headers: http.OutgoingHttpHeaders = {}) {
  const request = http.request(`${client.server.url}/databases/db/bulk_insert?id=${id}`, {
    method: "POST",
    agent: false,
    headers,
  });
  const reply = new Promise<{ status: number; text: string }>((resolve, reject) => {
    request.on("error", reject);
    request.on("response", (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
  });
  reply.catch(() => undefined);
  return { request, reply };
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  for (let tick = 0; tick < 500; tick++) {
    if (await isTrue()) return;
    await sleep(10);
  }
  expect.fail("the condition was not met within five seconds");
}

const exists = async (id: string) =>
  (await client.send(`GET docs?id=${encodeURIComponent(id)}`)).status === 200;

describe("POST bulk_insert", () => {
  test("stores documents, counters and attachments, and reports their counts", async () => {
    const content = Buffer.from('],{"Type":\r\n}');
    const attachment = {
      Id: "c/1",
      Type: "AttachmentPUT",
      Name: "f",
      ContentType: "t/x",
      ContentLength: content.length,
    };
    const counter = {
      Id: "c/1",
      Type: "Counters",
      Counters: {
        DocumentId: "c/1",
        Operations: [{ Type: "Increment", CounterName: "n", Delta: 3 }],
      },
    };
    const body = Buffer.concat([
      Buffer.from(`[${put("c/1", { a: 1, "@metadata": { "@collection": "Cs" } })},`),
      Buffer.from(`${put("c/", { a: 2 })},${JSON.stringify(counter)},{"Type":"HeartBeat"},`),
      Buffer.from(`{"Id":null,"Type":"PUT","Document":{"n":1.50}},${JSON.stringify(attachment)}`),
      content,
      Buffer.from("]"),
    ]);
    const reply = await insert(body, 1);
    expect([reply.status, reply.headers["content-length"]]).toEqual([201, "0"]);
    expect(await stateOf(1)).toEqual({
      $type: "Raven.Client.Documents.Operations.OperationState, Raven.Client",
      Progress: null,
      Result: {
        $type: "Raven.Client.Documents.Operations.BulkOperationResult, Raven.Client",
        Total: 5,
        Message: "Processed 5 items.",
        Details: [],
        Query: null,
        DocumentsProcessed: 3,
        AttachmentsProcessed: 1,
        CountersProcessed: 1,
        TimeSeriesProcessed: 0,
      },
      Status: "Completed",
    });
    expect((await client.send("GET attachments?id=c%2F1&name=f")).body.equals(content)).toBe(true);
    expect((await client.send("GET counters?docId=c%2F1")).text).toContain('"TotalValue":3');
    expect((await client.send("GET docs")).text).toContain('"n":1.50');
    expect((await client.json("GET docs?startsWith=c%2F")) as object).toMatchObject({
      Results: [{ a: 2 }, { a: 1 }],
    });
  });

  test("answers at the closing bracket, even if the request never ends", async () => {
    const { request, reply } = openInsert(2);
    request.write(`[${put("open/1", {})}`);
    await until(() => exists("open/1"));
    expect((await stateOf(2))["Status"]).toBe("InProgress");
    expect((await stateOf(2))["Progress"]).toMatchObject({
      DocumentsProcessed: 1,
      LastProcessedId: "open/1",
    });
    request.write(`,${put("open/2", {})}]`);
    expect(await reply).toEqual({ status: 201, text: "" });
    expect(await exists("open/2")).toBe(true);
    request.destroy();
  });

  test("reads gzip that is flushed but never ended", async () => {
    const gzip = zlib.createGzip();
    const { request, reply } = openInsert(3, { "content-encoding": "gzip" });
    gzip.pipe(request, { end: false });
    const write = (text: string) =>
      new Promise<void>((resolve) => {
        gzip.write(text, () => gzip.flush(zlib.constants.Z_SYNC_FLUSH, () => resolve()));
      });
    await write(`[${put("gz/1", {})},`);
    await until(() => exists("gz/1"));
    await write(`${put("gz/2", {})}]`);
    expect((await reply).status).toBe(201);
    expect(await exists("gz/2")).toBe(true);
    request.destroy();
    gzip.destroy();
  });

  test("accepts many documents in chunks of any size", async () => {
    const { request, reply } = openInsert(4);
    const text = `[${Array.from({ length: 3000 }, (_, i) => put(`many/${i}`, { i, text: "é".repeat(i % 90) })).join(",")}]`;
    const bytes = Buffer.from(text);
    for (let at = 0, step = 1; at < bytes.length; step = (step * 7 + 3) % 9973) {
      request.write(bytes.subarray(at, at + step + 1));
      at += step + 1;
      if (step % 5 === 0) await sleep(0);
    }
    expect((await reply).status).toBe(201);
    request.destroy();
    const { Results } = (await client.json("GET docs?startsWith=many%2F")) as {
      Results: { text: string }[];
    };
    expect(Results).toHaveLength(3000);
    expect((await stateOf(4))["Result"]).toMatchObject({ Total: 3000 });
  });

  test("accepts missing commas between commands, and one before the end", async () => {
    const body = `[${put("comma/1", {})}${put("comma/2", {})},]`;
    expect((await insert(body)).status).toBe(201);
    const found = (await client.json("GET docs?startsWith=comma/")) as { Results: unknown[] };
    expect(found.Results).toHaveLength(2);
    expect((await insert(`[${put("comma/3", {})},,${put("comma/4", {})}]`)).status).toBe(400);
  });

  test("keeps committed documents when the rest fails, and the operation reports the reason", async () => {
    const { request, reply } = openInsert(5);
    request.write(`[${put("kept/1", {})}`);
    await until(() => exists("kept/1"));
    request.end(`,${put("kept/2", {})}`);
    const { status, text } = await reply;
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ Type: "System.InvalidOperationException" });
    expect(await exists("kept/1")).toBe(true);
    expect(await stateOf(5)).toMatchObject({
      Status: "Faulted",
      Result: {
        $type: "Raven.Client.Documents.Operations.OperationExceptionResult, Raven.Client",
        Type: "System.InvalidOperationException",
        StatusCode: 500,
      },
    });
  });

  test("stops when its operation is killed", async () => {
    const { request, reply } = openInsert(6);
    request.write(`[${put("kill/1", {})}`);
    await until(() => exists("kill/1"));
    expect((await client.send("POST operations/kill?id=6")).status).toBe(204);
    expect((await reply).status).toBe(400);
    expect(await stateOf(6)).toMatchObject({ Status: "Canceled", Result: null });
    request.destroy();
    expect((await client.send("POST operations/kill?id=987")).status).toBe(400);
  });

  test("ends when the client disconnects", async () => {
    const { request } = openInsert(7);
    request.write(
      `[${put("gone/1", {})},{"Id":"gone/1","Type":"AttachmentPUT","Name":"a","ContentLength":100}half`,
    );
    await until(() => exists("gone/1"));
    request.destroy();
    await until(async () => (await stateOf(7))["Status"] === ("Faulted" as never));
    expect((await client.send("GET attachments?id=gone%2F1&name=a")).status).toBe(404);
  });

  test("skips unchanged documents on request", async () => {
    const document = { a: 1, "@metadata": { "@collection": "Cs" } };
    await insert(`[${put("same/1", document)}]`);
    await client.send("PUT attachments?id=same%2F1&name=a", "1");
    const etag = async () => (await client.send("GET docs?id=same%2F1")).headers.etag;
    const before = await etag();
    const again = (text: object) =>
      insert(`[${put("same/1", text)}]`, ++lastId, "&skipOverwriteIfUnchanged=true");
    await again(document);
    expect(await etag()).toBe(before);
    await again({ ...document, "@metadata": { "@collection": "Cs", x: 1 } });
    const changed = await etag();
    expect(changed).not.toBe(before);
    await again({ a: 2, "@metadata": { "@collection": "Cs", x: 1 } });
    expect(await etag()).not.toBe(changed);
    expect((await client.send("GET docs?id=same%2F1")).text).toContain(
      '"@attachments":[{"Name":"a"',
    );
  });

  test("rejects impossible commands", async () => {
    for (const body of [
      "",
      '{"a":1}',
      '[{"Id":"z","Type":"DELETE"}]',
      '[{"Id":"z","Type":"FOO"}]',
      '[{"Id":"ident|","Type":"PUT","Document":{}}]',
      '[{"Id":"none","Type":"Counters","Counters":{"DocumentId":"none","Operations":[{"Type":"Increment","CounterName":"c","Delta":3}]}}]',
      '[{"Id":"z","Type":"AttachmentPUT","Name":"a"}]',
      '[{"Id":"z","Type":"AttachmentPUT","Name":"a","ContentLength":1}x]',
      '[{"Id":"z","Type":"PUT","Document":{"a":01}}]',
      '[{"Id":"z","Type":"PUT"}]',
    ]) {
      const reply = await insert(body);
      expect([reply.status, (reply.json as { Type: string }).Type], body).toEqual([
        400,
        "System.InvalidOperationException",
      ]);
      expect((await stateOf(lastId))["Status"], body).toBe("Faulted");
    }
    expect((await client.send("POST bulk_insert", "[]")).status).toBe(400);
    expect((await client.send("POST bulk_insert?id=x", "[]")).status).toBe(400);
    expect((await insert("[]")).status).toBe(201);
    expect(await exists("z")).toBe(false);
  });
});

describe("operations", () => {
  test("have increasing ids, unrelated to others", async () => {
    const next = async () =>
      ((await client.json("GET operations/next-operation-id")) as { Id: number }).Id;
    const [first, second] = [await next(), await next()];
    expect(second).toBeGreaterThan(first);
    expect((await client.send(`GET operations/state?id=${second}`)).status).toBe(404);
    expect((await client.send("GET operations/state")).status).toBe(400);
    expect((await client.send("GET operations/state?id=abc")).status).toBe(400);
    expect((await client.send("GET /operations/state?id=1")).status).toBe(404);
    expect(await client.json("GET /admin/operations/next-operation-id")).toEqual({
      Id: expect.any(Number),
    });
    expect((await client.send("POST /admin/operations/kill?id=1")).status).toBe(400);
  });

  test("are listed with their times", async () => {
    await insert("[]", 60);
    const list = (await client.json("GET operations?id=60")) as {
      Results: Record<string, unknown>[];
    };
    expect(list.Results).toEqual([
      {
        Id: 60,
        Description: {
          Description: "Bulk Insert",
          TaskType: "BulkInsert",
          StartTime: expect.stringMatching(/^\d{4}-.*Z$/),
          EndTime: expect.stringMatching(/^\d{4}-.*Z$/),
          DetailedDescription: null,
        },
        Killable: true,
        State: expect.objectContaining({ Status: "Completed" }),
      },
    ]);
    expect(
      ((await client.json("GET operations")) as { Results: unknown[] }).Results.length,
    ).toBeGreaterThan(1);
    expect((await client.send("GET operations?id=77777")).status).toBe(404);
  });
});
