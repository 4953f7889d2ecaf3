/**
 * Streaming in both directions over HTTP/2 with certificates, as used by browsers and new clients.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { multipart } from "../../support/endpoint-client.ts";
import {
  type RequestOptions,
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

let server: TestServer;
let session: ReturnType<TestServer["session"]>;
beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "db" }] });
  session = server.session(server.admin);
});
afterAll(stopTestServers);

const send = (method: string, path: string, options: Omit<RequestOptions, "method"> = {}) =>
  requestHttp2(session, `/databases/db/${path}`, { method, ...options });

test("attachments are uploaded and downloaded, whole and in ranges", async () => {
  await send("PUT", "docs?id=u", { body: "{}" });
  const content = Buffer.alloc(500_000, "0123456789");
  expect((await send("PUT", "attachments?id=u&name=a", { body: content })).status).toBe(201);
  const whole = await send("GET", "attachments?id=u&name=a");
  expect(whole.body.equals(content)).toBe(true);
  expect(whole.headers["content-length"]).toBe("500000");
  const part = await send("GET", "attachments?id=u&name=a", { headers: { range: "bytes=3-5" } });
  expect([part.status, part.text]).toEqual([206, "345"]);
  const head = await send("HEAD", "attachments?id=u&name=a");
  expect([head.status, head.headers["content-length"], head.text]).toEqual([200, "500000", ""]);
  const none = await send("GET", "attachments?id=u&name=a", {
    headers: { range: "bytes=500000-" },
  });
  expect([none.status, none.headers["content-range"]]).toEqual([416, "bytes */500000"]);
});

test("a batch contains its contents", async () => {
  const main =
    '{"Commands":[{"Type":"PUT","Id":"m","Document":{}},{"Type":"AttachmentPUT","Id":"m","Name":"a"}]}';
  const reply = await send("POST", "bulk_docs", {
    headers: { "content-type": 'multipart/mixed; boundary="a b"' },
    body: multipart("a b", [main, Buffer.alloc(200_000, 7)]),
  });
  expect(reply.status).toBe(201);
  expect((await send("GET", "attachments?id=m&name=a")).body).toHaveLength(200_000);
});

test("a bulk insert is answered at the closing bracket of a request that stays open", async () => {
  const stream = session.request({ ":method": "POST", ":path": "/databases/db/bulk_insert?id=1" });
  const status = new Promise((resolve) => {
    stream.on("response", (headers) => resolve(headers[":status"]));
  });
  stream.write('[{"Id":"b/1","Type":"PUT","Document":{"a":1}},');
  stream.write('{"Id":"b/2","Type":"PUT","Document":{"a":2}}]');
  expect(await status).toBe(201);
  stream.destroy();
  expect((await send("GET", "docs?id=b%2F2")).status).toBe(200);
});

test("the connection is still usable afterwards", async () => {
  expect((await send("GET", "stats/essential")).json).toMatchObject({
    CountOfDocuments: 4,
    CountOfAttachments: 2,
  });
});
