/** Connections that serve plain requests themselves and hand the others over to node:http. */
import { once } from "node:events";
import * as http from "node:http";
import * as net from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { requestHttp1, startTestServer, stopTestServers } from "../../support/start-test-server.ts";

afterAll(stopTestServers);

const head = "HTTP/1.1\r\nHost: localhost\r\n";
/** A header twice: legal, and not plain. */
const twice = "X-Twice: 1\r\nX-Twice: 2\r\n";
const large = "x".repeat(200_000);

async function startServer(flags: readonly string[] = []) {
  const server = await startTestServer({ unsecured: true, databases: [{ name: "db" }], flags });
  const put = async (id: string, text: string) => {
    const body = JSON.stringify({ text, "@metadata": { "@collection": "Notes" } });
    await requestHttp1(`${server.url}/databases/db/docs?id=${id}`, { method: "PUT", body });
  };
  await put("notes/1", "first");
  await put("notes/2", large);
  return server;
}

/** Everything that the server sends on a connection for these bytes, sent in pieces, until it closes. */
async function conversation(port: number, pieces: readonly (string | Buffer)[]): Promise<Buffer> {
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const closed = once(socket, "close");
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await closed;
  return Buffer.concat(chunks);
}

interface SplitReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The replies in what a server has sent. */
function repliesIn(bytes: Buffer): SplitReply[] {
  const replies: SplitReply[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = rest.indexOf("\r\n\r\n");
    const [line = "", ...lines] = rest.toString("latin1", 0, end).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((one) => [
        one.slice(0, one.indexOf(":")).toLowerCase(),
        one.slice(one.indexOf(":") + 2),
      ]),
    );
    rest = rest.subarray(end + 4);
    let body = "";
    if (headers["transfer-encoding"] === "chunked") {
      for (;;) {
        const lineEnd = rest.indexOf("\r\n");
        const length = Number.parseInt(rest.toString("latin1", 0, lineEnd), 16);
        body += rest.toString("utf8", lineEnd + 2, lineEnd + 2 + length);
        rest = rest.subarray(lineEnd + 4 + length);
        if (length === 0) break;
      }
    } else {
      const length = Number(headers["content-length"] ?? 0);
      body = rest.toString("utf8", 0, length);
      rest = rest.subarray(length);
    }
    replies.push({ status: Number(line.split(" ")[1]), headers, body });
  }
  return replies;
}

/** Without what differs from one moment to the next. */
function comparable({ status, headers, body }: SplitReply): unknown {
  const { date, "request-time": time, "content-length": length, ...others } = headers;
  const isQuery = body.includes("DurationInMs");
  const text = body.replace(
    /"DurationInMs":\d+|"LastQueryTime":"[^"]*"|"IndexTimestamp":"[^"]*"/g,
    "",
  );
  return {
    status,
    others,
    dated: date !== undefined,
    timed: time !== undefined,
    text,
    length: isQuery ? 0 : length,
  };
}

const queryBody = JSON.stringify({
  Query: "from Notes where id() = $a",
  QueryParameters: { a: "notes/1" },
});
const requests: readonly [string, string][] = [
  ["a document", `GET /databases/db/docs?id=notes%2F1 ${head}`],
  ["a large document", `GET /databases/db/docs?id=notes%2F2 ${head}`],
  ["a missing document", `GET /databases/db/docs?id=none ${head}`],
  ["a document's head", `HEAD /databases/db/docs?id=notes%2F1 ${head}`],
  ["an unknown route", `GET /nowhere ${head}`],
  ["a wrong method", `DELETE /build/version ${head}`],
  ["a deletion of nothing", `DELETE /databases/db/docs?id=none ${head}`],
  ["a stream", `GET /databases/db/streams/docs?startsWith=notes ${head}`],
  ["a streamed query", `GET /databases/db/streams/queries?query=from%20Notes ${head}`],
  ["a compressed reply", `GET /databases/db/docs?id=notes%2F2 ${head}Accept-Encoding: gzip\r\n`],
];

describe("a connection over HTTP/1.1", () => {
  test.each(requests)("answers as node:http does: %s", async (_what, request) => {
    const { port } = await startServer();
    const close = "Connection: close\r\n\r\n";
    const plain = await conversation(port, [`${request}${close}`]);
    const other = await conversation(port, [`${request}${twice}${close}`]);
    const [one, ...more] = repliesIn(plain).map(comparable);
    expect(more).toEqual([]);
    expect([one]).toEqual(repliesIn(other).map(comparable));
  });

  test.each(requests)("stays open after it: %s", async (_what, request) => {
    const { port } = await startServer();
    const last = `GET /build/version ${head}Connection: close\r\n\r\n`;
    const replies = repliesIn(await conversation(port, [`${request}\r\n${last}`]));
    const [first, second] = replies;
    expect(replies.length).toBe(2);
    expect(first?.headers["connection"]).toBe("keep-alive");
    expect(first?.headers["keep-alive"]).toMatch(/^timeout=\d+$/);
    expect(second?.status).toBe(200);
  });

  test("answers a query, and a body of which only the length differs", async () => {
    const { port } = await startServer();
    const post = (extra: string) =>
      `POST /databases/db/queries ${head}Content-Length: ${queryBody.length}\r\nConnection: close\r\n${extra}\r\n${queryBody}`;
    const plain = repliesIn(await conversation(port, [post("")]));
    expect(plain.map(comparable)).toEqual(
      repliesIn(await conversation(port, [post(twice)])).map(comparable),
    );
    expect(JSON.parse(plain[0]?.body ?? "")).toMatchObject({ TotalResults: 1 });
  });

  test("answers requests in one packet in their order, plain and other ones", async () => {
    const { port } = await startServer();
    const ids = Array.from({ length: 60 }, (_, n) => n);
    const text = ids
      .map(
        (n) =>
          `GET /databases/db/docs?id=${n % 7 === 3 ? "notes%2F2" : `none${n}`}&n=${n} ${head}${n === 41 ? twice : ""}\r\n`,
      )
      .join("");
    const replies = repliesIn(
      await conversation(port, [`${text}GET /build/version ${head}Connection: close\r\n\r\n`]),
    );
    expect(replies.map(({ status }) => status)).toEqual([
      ...ids.map((n) => (n % 7 === 3 ? 200 : 404)),
      200,
    ]);
  });

  test("understands a request however it is cut", async () => {
    const { port } = await startServer();
    const text = `POST /databases/db/queries ${head}Content-Length: ${queryBody.length}\r\nConnection: close\r\n\r\n${queryBody}`;
    for (let at = 1; at < text.length; at += 7) {
      const [reply] = repliesIn(await conversation(port, [text.slice(0, at), text.slice(at)]));
      expect(reply?.status).toBe(200);
    }
  });

  test("hands an upgrade over after plain requests", async () => {
    const { port } = await startServer();
    const socket = net.connect(port, "127.0.0.1");
    socket.write(`GET /build/version ${head}\r\n`);
    expect(String((await once(socket, "data"))[0])).toContain("200 OK");
    socket.write(
      `GET /databases/db/changes ${head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    expect(String((await once(socket, "data"))[0])).toContain("101 Switching Protocols");
    socket.destroy();
  });

  test("is closed when it is idle for longer than the setting says, or sends nothing at all", async () => {
    const { port } = await startServer([
      "--Http.KeepAliveTimeoutInSec=1",
      "--Http.RequestHeadersTimeoutInSec=1",
    ]);
    expect((await conversation(port, [])).toString()).toBe("");
    const served = await conversation(port, [`GET /build/version ${head}\r\n`]);
    expect(repliesIn(served).map(({ status }) => status)).toEqual([200]);
  });

  test("gives a body that is not on its way in memory to those who stream it", async () => {
    const { port } = await startServer();
    const commands = `[{"Id":"bulk/1","Type":"PUT","Document":{"@metadata":{"@collection":"Bulks"}}}]`;
    const bulk = `POST /databases/db/bulk_insert?id=7 ${head}Content-Length: ${commands.length}\r\nConnection: close\r\n\r\n${commands}`;
    expect(repliesIn(await conversation(port, [bulk]))[0]?.status).toBe(201);
    const agent = new http.Agent({ keepAlive: true });
    const found = await requestHttp1(`http://127.0.0.1:${port}/databases/db/docs?id=bulk/1`, {
      agent,
    });
    agent.destroy();
    expect(found.status).toBe(200);
  });
});
