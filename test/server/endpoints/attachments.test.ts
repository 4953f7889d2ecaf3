import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { byteRangeOf } from "../../../server/byte-range.ts";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  await client.send("PUT docs?id=u%2F1", { "@metadata": { "@collection": "Us" } });
});
afterAll(stopTestServers);

const at = (name: string) => `attachments?id=u%2F1&name=${encodeURIComponent(name)}`;

describe("attachments", () => {
  test("come back byte for byte, with their headers", async () => {
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

  test("of any size are streamed in and out", async () => {
    const content = Buffer.alloc(3_000_000);
    for (let i = 0; i < content.length; i += 4) content.writeUInt32LE((i * 2_654_435_761) >>> 0, i);
    expect((await client.send(`PUT ${at("big")}`, content)).json).toMatchObject({
      Size: content.length,
    });
    expect((await client.send(`GET ${at("big")}`)).body.equals(content)).toBe(true);
  });

  test("a part is given for one range that can be", async () => {
    await client.send(`PUT ${at("range")}`, "hello world");
    const ask = async (range: string) => {
      const reply = await client.send(`GET ${at("range")}`, undefined, { range });
      return [reply.status, reply.headers["content-range"], reply.text];
    };
    expect(await ask("bytes=1-2")).toEqual([206, "bytes 1-2/11", "el"]);
    expect(await ask("bytes=-3")).toEqual([206, "bytes 8-10/11", "rld"]);
    expect(await ask("bytes=3-1000")).toEqual([206, "bytes 3-10/11", "lo world"]);
    expect(await ask("bytes=50-")).toEqual([416, "bytes */11", ""]);
    expect(await ask("bytes=-0")).toEqual([416, "bytes */11", ""]);
    expect(await ask("bytes=0-2,4-5")).toEqual([200, undefined, "hello world"]);
    expect(await ask("bytes=5-2")).toEqual([200, undefined, "hello world"]);
    expect(byteRangeOf("bytes=0-", 0)).toBe("unsatisfiable");
    expect(byteRangeOf(undefined, 5)).toBeUndefined();
  });

  test("know whether they changed", async () => {
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

  test("are stored only over the version that is expected", async () => {
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

  test("go, and with their document", async () => {
    expect((await client.send(`DELETE ${at("never")}`)).status).toBe(204);
    await client.send("PUT docs?id=gone", {});
    await client.send("PUT attachments?id=gone&name=a", "1");
    await client.send("DELETE docs?id=gone");
    expect((await client.send("GET attachments?id=gone&name=a")).status).toBe(404);
  });

  test("of wrong requests say what is wrong", async () => {
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

  test("never put a line of their own into the reply's headers", async () => {
    await client.send(`PUT ${at("evil")}&contentType=text%2Fhtml%0D%0AX-Evil:%201`, "<b>");
    const reply = await client.send(`GET ${at("evil")}`);
    expect(reply.status).toBe(200);
    expect(reply.headers["x-evil"]).toBeUndefined();
    expect(reply.headers["content-disposition"]).toMatch(/^attachment;/);
  });
});
