/** Error replies over HTTP: a reply with an error is JSON, whatever was wrong with the request. */
import { once } from "node:events";
import * as net from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { routes } from "../../server/endpoints/route-table.ts";
import type { Route } from "../../server/routing/route.ts";
import { type EndpointClient, startEndpointClient } from "../support/endpoint-client.ts";
import {
  type Reply,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../support/start-test-server.ts";

let client: EndpointClient;
let secure: TestServer;

beforeAll(async () => {
  client = await startEndpointClient();
  secure = await startTestServer();
  await client.send("PUT docs?id=users/1", { Name: "Ann" });
  await client.send("PUT attachments?id=users/1&name=a.json&contentType=application/json", "{}");
}, 60_000);
afterAll(stopTestServers);

const queries = [
  "",
  "?id=none&name=none&query=from%20index%20'None'",
  "?id=users/1&name=a.json&changeVector=x&etag=x&start=x&pageSize=-1&operationId=x&op=none",
  "?name=&id=&query=&collection=%00&pageSize=99999999999999999999&format=jsonl&field=x",
  `?name=${"n".repeat(3000)}&query=${"(".repeat(500)}`,
];
const bodies = [
  undefined,
  "{}",
  "[1]",
  "not JSON",
  `{"Query":"from index 'None'","Ids":[1],"Commands":[{}],"Name":7}`,
];
const headers = { range: "bytes=900-", "if-match": '"x"', "if-none-match": '"y"' };

function pathOf({ path }: Route): string {
  return path.replace(":database", "db").replace(/\/\*$/, "/none").replaceAll(/:\w+/g, "none");
}

/** A missing item, or an unsatisfiable range, has an empty reply, as in RavenDB. */
function expectJsonError({ status, text, headers }: Reply, about: string): void {
  if (text === "") {
    expect([404, 416], about).toContain(status);
  } else {
    expect(headers["content-type"], about).toMatch(/^application\/json/);
    expect(() => JSON.parse(text), about).not.toThrow();
  }
}

/** Routes that would affect the other requests. */
const skipped = /^\/databases\/db\/(smuggler\/import|bulk_insert)|^\/admin\/(shutdown|replication)/;

describe("error replies are JSON", () => {
  const requested = routes.filter(
    (route) => route.kind !== "websocket" && !skipped.test(pathOf(route)),
  );

  test.each(requested.map((route) => [`${route.method} ${pathOf(route)}`]))("%s", async (what) => {
    for (const query of queries) {
      for (const body of /^(GET|HEAD) /.test(what) ? [undefined] : bodies) {
        const reply = await client.send(`${what}${query}`, body, headers);
        const about = `${what}${query.slice(0, 90)} ${body}: ${reply.status} ${reply.text}`;
        expect(reply.status, about).not.toBe(500);
        if (what.startsWith("HEAD ")) expect(reply.text, about).toBe("");
        else if (reply.status >= 400) expectJsonError(reply, about);
      }
    }
  });

  test("also for a stream over a missing index, a subscription without a name, and an unsatisfiable range", async () => {
    const stream = await client.send("GET streams/queries?query=from%20index%20'None'");
    expect([stream.status, stream.json]).toEqual([404, { Error: "Index None does not exist" }]);
    const state = await client.send("GET subscriptions/state");
    expect([state.status, state.json]).toMatchObject([400, { Type: "System.ArgumentException" }]);
    await client.send("PUT docs?id=users/2", { Name: "Bob" });
    await client.send("PUT attachments?id=users/2&name=a.json&contentType=application/json", "{}");
    const range = await client.send("GET attachments?id=users/2&name=a.json", undefined, headers);
    expect([range.status, range.text]).toEqual([416, ""]);
  });
});

/**
 * Sends each of `pieces` after the reply to the previous one. Returns all replies, once the
 * connection is closed.
 */
async function exchange(port: number, ...pieces: readonly string[]): Promise<string> {
  const socket = net.connect(port, "127.0.0.1");
  await once(socket, "connect");
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  socket.on("error", () => undefined);
  for (const [position, piece] of pieces.entries()) {
    socket.write(piece);
    const isAnswered = () => socket.closed || bodiesOf(text).length > position;
    await expect.poll(isAnswered, { timeout: 10_000 }).toBe(true);
  }
  socket.end();
  if (!socket.closed) await once(socket, "close");
  return text;
}

/** The bodies of the replies. */
function bodiesOf(text: string): string[] {
  const replies = text === "" ? [] : text.split(/(?=HTTP\/1\.1 \d)/);
  return replies.map((reply) => reply.slice(reply.indexOf("\r\n\r\n") + 4));
}

test("a client that continues to send a rejected request still receives the reason", async () => {
  const socket = net.connect(client.server.port, "127.0.0.1");
  await once(socket, "connect");
  const errors: Error[] = [];
  socket.on("error", (error) => errors.push(error));
  socket.write(`RESET /databases/x/indexes?name=${"x".repeat(4_000_000)}`);
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  await once(socket, "close");
  expect(errors).toEqual([]);
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(JSON.parse(bodiesOf(text)[0] ?? "")).toMatchObject({ Message: expect.any(String) });
  socket.destroy();
});

describe("a reply to HEAD has no body", () => {
  const host = "Host: localhost\r\n";

  test.each([
    [
      "with a body",
      [`HEAD /databases/db/docs?id=x HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\nhi`],
    ],
    ["of an unknown path", [`HEAD /none HTTP/1.1\r\n${host}\r\n`]],
    ["without a host", ["HEAD /build/version HTTP/1.1\r\n\r\n"]],
    ["of another version", [`HEAD /build/version HTTP/9.9\r\n${host}\r\n`]],
    ["with broken headers", [`HEAD /build/version HTTP/1.1\r\n${host}a b\r\n\r\n`]],
    [
      "with large headers",
      [`HEAD /build/version HTTP/1.1\r\n${host}A: ${"x".repeat(60_000)}\r\n\r\n`],
    ],
  ])("%s", async (_name, pieces) => {
    const text = await exchange(client.server.port, ...pieces);
    expect(text).toMatch(/^HTTP\/1\.1 4\d\d /);
    for (const body of bodiesOf(text)) expect(body).toBe("");
  });

  test.each([
    ["immediately", [`HEAD /databases/db/docs?id=x HTTP/1.1\r\n${host}\r\nhi there\r\n\r\n`]],
    ["later", [`HEAD /databases/db/docs?id=x HTTP/1.1\r\n${host}\r\n`, "hi there\r\n\r\n"]],
  ])("and a malformed request after it, %s, has one", async (_name, pieces) => {
    const [head, refusal = ""] = bodiesOf(await exchange(client.server.port, ...pieces));
    expect(head).toBe("");
    expect(JSON.parse(refusal)).toMatchObject({ Message: expect.stringContaining("not HTTP") });
  });

  test("and the next request on the connection is answered", async () => {
    const text = await exchange(
      client.server.port,
      `HEAD /none HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\nhi`,
      `GET /build/version HTTP/1.1\r\n${host}\r\n`,
    );
    expect(bodiesOf(text).map((body) => body.slice(0, 16))).toEqual(["", '{"BuildVersion":']);
  });
});

describe("a request without TLS to a port with it", () => {
  test.each(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "RESET"])(
    "is rejected with this reason: %s",
    async (method) => {
      const request = `${method} /databases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`;
      const text = await exchange(secure.port, request);
      expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
      expect(JSON.parse(bodiesOf(text)[0] as string)).toMatchObject({
        Message:
          "This port speaks HTTPS, and the request came without TLS. Write https:// instead of http://.",
      });
    },
  );

  test("a request that starts with HTTP/2 is rejected, too", async () => {
    const text = await exchange(secure.port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    expect(text).toMatch(/^HTTP\/1\.1 400 .*Write https:/s);
  });
});
