import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { byteRangeOf } from "../../../../server/http/byte-range.ts";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  await client.send("PUT docs?id=u%2F1", { "@metadata": { "@collection": "Us" } });
});
afterAll(stopTestServers);

const at = (name: string) => `attachments?id=u%2F1&name=${encodeURIComponent(name)}`;

describe("attachments", () => {
  test("are returned byte for byte, with their headers", async () => {
    const content = Buffer.from("hello world");
    const put = await client.send(`PUT ${at('x"y ☃.txt')}&contentType=ImGge%2FjPeg`, content);
    expect(put.status).toBe(201);
    const stored = put.json as { ChangeVector: string };
    expect(put.json).toEqual({
      ChangeVector: stored.ChangeVector,
      Name: 'x"y ☃.txt',
      DocumentId: "u/1",
      ContentType: "ImGge/jPeg",
      Hash: "JWyDspcRTSAbMBefPw7wys6Xg2ItpZdDJrQ2F4ru9hA=",
      Size: 11,
      RemoteParameters: null,
    });
    const get = await client.send(`GET ${at('X"Y ☃.TXT')}`);
    expect(get.status).toBe(200);
    expect(get.body.equals(content)).toBe(true);
    expect(get.headers).toMatchObject({
      "content-type": "ImGge/jPeg",
      "content-length": "11",
      "accept-ranges": "bytes",
      etag: `"${stored.ChangeVector}"`,
      "attachment-hash": "JWyDspcRTSAbMBefPw7wys6Xg2ItpZdDJrQ2F4ru9hA=",
      "attachment-size": "11",
      "content-disposition":
        "attachment; filename=\"x%22y%20%E2%98%83.txt\"; filename*=UTF-8''x%22y%20%E2%98%83.txt",
      "x-content-type-options": "nosniff",
    });
  });

  test("with a path as name are saved under the last segment", async () => {
    await client.send(`PUT ${at("../dir/a b.txt")}`, "x");
    expect((await client.send(`GET ${at("../dir/a b.txt")}`)).headers["content-disposition"]).toBe(
      "attachment; filename=\"a%20b.txt\"; filename*=UTF-8''a%20b.txt",
    );
  });

  test("of any size are streamed in both directions", async () => {
    const content = Buffer.alloc(3_000_000);
    for (let i = 0; i < content.length; i += 4) content.writeUInt32LE((i * 2_654_435_761) >>> 0, i);
    expect((await client.send(`PUT ${at("big")}`, content)).json).toMatchObject({
      Size: content.length,
    });
    expect((await client.send(`GET ${at("big")}`)).body.equals(content)).toBe(true);
  });

  test("a single satisfiable range returns partial content", async () => {
    await client.send(`PUT ${at("range")}`, "hello world");
    const sendRequest = async (range: string) => {
      const reply = await client.send(`GET ${at("range")}`, undefined, { range });
      return [reply.status, reply.headers["content-range"], reply.text];
    };
    expect(await sendRequest("bytes=1-2")).toEqual([206, "bytes 1-2/11", "el"]);
    expect(await sendRequest("bytes=-3")).toEqual([206, "bytes 8-10/11", "rld"]);
    expect(await sendRequest("bytes=3-1000")).toEqual([206, "bytes 3-10/11", "lo world"]);
    expect(await sendRequest("bytes=50-")).toEqual([416, "bytes */11", ""]);
    expect(await sendRequest("bytes=-0")).toEqual([416, "bytes */11", ""]);
    // As in RavenDB 7.2.7: without a body, with the headers of the attachment.
    const { headers } = await client.send(`GET ${at("range")}`, undefined, { range: "bytes=50-" });
    const whole = (await client.send(`GET ${at("range")}`)).headers;
    for (const name of ["etag", "attachment-hash", "attachment-size", "content-disposition"]) {
      expect(headers[name]).toBe(whole[name]);
    }
    expect(await sendRequest("bytes=0-2,4-5")).toEqual([200, undefined, "hello world"]);
    expect(await sendRequest("bytes=5-2")).toEqual([200, undefined, "hello world"]);
    expect(byteRangeOf("bytes=0-", 0)).toBe("unsatisfiable");
    expect(byteRangeOf(undefined, 5)).toBeUndefined();
  });

  test("support conditional requests", async () => {
    const { ChangeVector } = (await client.json(`PUT ${at("same")}`, "1")) as {
      ChangeVector: string;
    };
    const known = { "if-none-match": `"${ChangeVector}"` };
    expect((await client.send(`GET ${at("same")}`, undefined, known)).status).toBe(304);
    expect((await client.send(`HEAD ${at("same")}`, undefined, known)).status).toBe(304);
    const head = await client.send(`HEAD ${at("same")}`);
    expect([head.status, head.headers.etag, head.headers["content-length"]]).toEqual([
      200,
      `"${ChangeVector}"`,
      "1",
    ]);
    const missing = { "if-none-match": '"404 Response"' };
    expect((await client.send(`GET ${at("none")}`, undefined, missing)).status).toBe(304);
    expect((await client.send(`GET ${at("none")}`)).status).toBe(404);
    expect((await client.send(`HEAD ${at("none")}`)).status).toBe(404);
  });

  test("are stored only if the expected version matches", async () => {
    const { ChangeVector } = (await client.json(`PUT ${at("cond")}`, "1")) as {
      ChangeVector: string;
    };
    const put = (vector: string) => client.send(`PUT ${at("cond")}`, "2", { "if-match": vector });
    expect((await put('"A:1-x"')).status).toBe(409);
    expect((await put('""')).status).toBe(409);
    expect((await put(`"${ChangeVector}"`)).status).toBe(201);
    const conflict = await client.send(`DELETE ${at("cond")}`, undefined, {
      "if-match": ChangeVector,
    });
    expect(conflict.status).toBe(409);
    expect((await client.send(`GET ${at("cond")}`)).text).toBe("2");
  });

  test("are deleted, also with their document", async () => {
    expect((await client.send(`DELETE ${at("never")}`)).status).toBe(204);
    await client.send("PUT docs?id=gone", {});
    await client.send("PUT attachments?id=gone&name=a", "1");
    await client.send("DELETE docs?id=gone");
    expect((await client.send("GET attachments?id=gone&name=a")).status).toBe(404);
  });

  test("return the reason for invalid requests", async () => {
    const types: [number, string][] = [];
    for (const [what, body] of [
      ["PUT attachments?id=nobody&name=x", "1"],
      ["PUT attachments?id=u%2F1", "1"],
      ["GET attachments?name=x", undefined],
      [`PUT attachments?id=u%2F1&name=${"n".repeat(600)}`, "1"],
      [`POST ${at("range")}`, "{}"],
      [`POST ${at("range")}`, '{"Type":"Revision","ChangeVector":null}'],
    ] as const) {
      const reply = await client.send(what, body);
      types.push([reply.status, (reply.json as { Type: string }).Type.split(".").at(-1) as string]);
    }
    expect(types).toEqual([
      [400, "DocumentDoesNotExistException"],
      [400, "ArgumentException"],
      [400, "ArgumentException"],
      [400, "ArgumentException"],
      [400, "ArgumentException"],
      [400, "ArgumentException"],
    ]);
    expect((await client.send(`POST ${at("range")}`, '{"Type":"Document"}')).text).toBe(
      "hello world",
    );
  });

  test("never inject a header line into the reply", async () => {
    await client.send(`PUT ${at("evil")}&contentType=text%2Fhtml%0D%0AX-Evil:%201`, "<b>");
    const reply = await client.send(`GET ${at("evil")}`);
    expect(reply.status).toBe(200);
    expect(reply.headers["x-evil"]).toBeUndefined();
    expect(reply.headers["content-disposition"]).toMatch(/^attachment;/);
  });
});

describe("POST attachments/bulk", () => {
  const bulk = (body: object, headers = {}) => client.send("POST attachments/bulk", body, headers);

  /** Parses the reply like a client: one JSON object, then as many bytes as each row specifies. */
  function split(body: Buffer): { readonly rows: Record<string, unknown>[]; contents: string[] } {
    const end = body.indexOf("]}") + 2;
    const { AttachmentsMetadata: rows } = JSON.parse(body.toString("utf8", 0, end)) as {
      AttachmentsMetadata: Record<string, unknown>[];
    };
    let at = end;
    const contents = rows.map(({ Size }) => {
      at += Size as number;
      return body.toString("utf8", at - (Size as number), at);
    });
    expect(at).toBe(body.length);
    return { rows, contents };
  }

  test("returns many attachments in one reply, in request order, without missing ones", async () => {
    const big = "0123456789".repeat(60_000);
    await client.send("PUT docs?id=many%2F1", {});
    await client.send("PUT docs?id=many%2F2", {});
    await client.send("PUT attachments?id=many%2F1&name=one&contentType=text%2Fplain", "hello");
    await client.send("PUT attachments?id=many%2F2&name=empty", "");
    await client.send("PUT attachments?id=many%2F2&name=big%C3%A9", big);
    const requested = [
      { DocumentId: "many/2", Name: "bigé" },
      { DocumentId: "many/1", Name: "ONE" },
      { DocumentId: "nobody", Name: "one" },
      { DocumentId: "many/2", Name: "empty" },
      { DocumentId: "many/1", Name: "one" },
    ];
    const reply = await bulk({ AttachmentType: "Document", Attachments: requested });
    expect(reply.status).toBe(200);
    expect(reply.headers["content-type"]).toBe("application/json; charset=utf-8");
    const { rows, contents } = split(reply.body);
    expect(contents).toEqual([big, "hello", "", "hello"]);
    expect(rows.map((row) => row["DocumentId"])).toEqual(["many/2", "many/1", "many/2", "many/1"]);
    const { ChangeVector } = rows[1] as { ChangeVector: string };
    expect(rows[1]).toEqual({
      Name: "one",
      Hash: "Mk3PAn3UowqTLEQfNlol6GsXPe+kuOWJSCU0cbgbcs8=",
      ContentType: "text/plain",
      Size: 5,
      ChangeVector,
      DocumentId: "many/1",
      RemoteParameters: null,
    });
    const folded = await bulk(
      { AttachmentType: "Document", Attachments: requested },
      { "accept-encoding": "gzip" },
    );
    expect(folded.headers["content-encoding"]).toBe("gzip");
    expect(split(gunzipSync(folded.body)).contents).toEqual(contents);
    const none = await bulk({ AttachmentType: "Document", Attachments: [] });
    expect(none.text).toBe('{"AttachmentsMetadata":[]}');
  });

  test("reports errors before sending anything", async () => {
    const Attachments = [{ DocumentId: "u/1", Name: "range" }];
    const messages: string[] = [];
    for (const body of [
      { Attachments },
      { AttachmentType: "document", Attachments },
      { AttachmentType: "Document" },
      { AttachmentType: "Document", Attachments: [...Attachments, 5] },
      { AttachmentType: "Document", Attachments: [{ DocumentId: "u/1" }] },
      { AttachmentType: "Revision", Attachments },
    ]) {
      const reply = await bulk(body);
      expect(reply.status).toBe(400);
      messages.push((reply.json as { Message: string }).Message);
    }
    expect(messages).toEqual([
      "The 'AttachmentType' field in the body request is mandatory",
      "The 'AttachmentType' field in the body request is mandatory",
      "The 'Attachments' field in the body request is mandatory",
      "Could not parse DocumentId",
      "Could not parse Name",
      "Change Vector cannot be empty for attachment type Revision",
    ]);
  });
});

describe("DELETE attachments/bulk", () => {
  const names = async (id: string) =>
    [...(await client.send(`GET docs?id=${id}`)).text.matchAll(/"Name":"(\w+)"/g)].map(
      ([, name]) => name,
    );
  const remove = (body: object) =>
    client.send("DELETE attachments/bulk", body, {
      "content-length": `${JSON.stringify(body).length}`,
    });

  test("deletes many attachments of several documents, all or none", async () => {
    for (const id of ["bulk%2F1", "bulk%2F2"]) {
      await client.send(`PUT docs?id=${id}`, {});
      for (const name of ["a", "b"]) {
        await client.send(`PUT attachments?id=${id}&name=${name}`, name);
      }
    }
    const first = { DocumentId: "bulk/1", Name: "A" };
    const broken = await remove({ Attachments: [first, { DocumentId: "bulk/2" }] });
    expect(broken.status).toBe(400);
    expect((await remove({})).status).toBe(400);
    expect(await names("bulk%2F1")).toEqual(["a", "b"]);
    const missing = { DocumentId: "nobody", Name: "x" };
    const second = { DocumentId: "bulk/2", Name: "b" };
    expect((await remove({ Attachments: [first, missing, second] })).status).toBe(200);
    expect(await names("bulk%2F1")).toEqual(["b"]);
    expect(await names("bulk%2F2")).toEqual(["a"]);
    expect((await remove({ Attachments: [] })).status).toBe(200);
  });
});

// Observed on RavenDB 7.2.7.
test("deleting an attachment that a document lacks leaves one tombstone", async () => {
  const tombstones = async () =>
    ((await client.json("GET stats/essential")) as { CountOfTombstones: number }).CountOfTombstones;
  const before = await tombstones();
  for (let i = 0; i < 2; i++) await client.send(`DELETE ${at("never there")}`);
  await client.send("DELETE attachments?id=none%2F1&name=a");
  expect((await tombstones()) - before).toBe(1);
});
