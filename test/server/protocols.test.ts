/**
 * Behaviour on the wire: protocols on one port, headers on every reply, bodies in every encoding,
 * in both directions.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import * as http2 from "node:http2";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import * as tls from "node:tls";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { EngineError } from "../../engine/base/errors.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import type { Exchange } from "../../server/http/exchange.ts";
import { InternalExchange } from "../../server/http/internal-exchange.ts";
import type { Context, Route } from "../../server/routing/route.ts";
import {
  requestHttp1,
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../support/start-test-server.ts";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "jackdaw-wire-"));
const large = JSON.stringify({ text: "jackdaw ".repeat(20_000) });

function serverRoute(
  method: Route["method"],
  path: string,
  handle: (exchange: Exchange, context: Context) => Promise<void> | void,
): Route {
  return { kind: "server", method, path, access: "valid-user", handle };
}

const testRoutes: readonly Route[] = [
  serverRoute("POST", "/test/echo", async (exchange) => {
    exchange.reply(200, { "content-type": "application/octet-stream" }, await exchange.body());
  }),
  serverRoute("POST", "/test/echo-stream", async (exchange) => {
    const stream = exchange.stream(200, { "content-type": "application/octet-stream" });
    for await (const chunk of exchange.bodyStream()) await stream.write(chunk);
    await stream.end();
  }),
  serverRoute("POST", "/test/first-line", async (exchange) => {
    let text = "";
    for await (const chunk of exchange.bodyStream()) {
      text += chunk.toString();
      if (text.includes("\n")) break;
    }
    exchange.reply(200, { "content-type": "text/plain" }, text.slice(0, text.indexOf("\n")));
  }),
  serverRoute("GET", "/test/large", (exchange) => exchange.replyJson(200, large)),
  serverRoute("GET", "/test/huge", (exchange) => {
    exchange.reply(
      200,
      { "content-type": "application/octet-stream" },
      Buffer.alloc(20_000_000, 7),
    );
  }),
  serverRoute("GET", "/test/streamed", async (exchange) => {
    const stream = exchange.stream(200);
    await stream.write('{"text":"');
    for (let i = 0; i < 2000; i++) await stream.write("jackdaw ".repeat(10));
    await stream.end('"}');
  }),
  serverRoute("HEAD", "/test/large", (exchange) => exchange.replyJson(200, large)),
  serverRoute("RESET", "/test/reset", (exchange) => exchange.reply(204)),
  serverRoute("GET", "/test/none", (exchange) => exchange.reply(404)),
  serverRoute("GET", "/test/bug", () => {
    throw new TypeError("secret detail");
  }),
  serverRoute("GET", "/test/late-bug", async (exchange) => {
    const stream = exchange.stream(200);
    await stream.write("[");
    throw new TypeError("secret detail");
  }),
  serverRoute("GET", "/test/silent", () => undefined),
  serverRoute("GET", "/test/mistake", () => {
    throw new EngineError("concurrency", "not the expected one", {
      details: { Id: "a", ExpectedChangeVector: "A:1", ActualChangeVector: "A:2" },
    });
  }),
  serverRoute("GET", "/test/inner", async (exchange, { server }) => {
    const inner = new InternalExchange(exchange, { method: "GET", target: "/test/streamed" });
    await server.dispatch(inner);
    const reply = await inner.captureReply();
    exchange.replyJson(reply?.status ?? 0, reply?.body);
  }),
  {
    kind: "websocket",
    method: "GET",
    path: "/test/socket",
    access: "valid-user",
    connect: (socket) => {
      socket.on("message", (data) => socket.send(String(data)));
    },
  },
];

let secure: TestServer;
let plain: TestServer;
let curlOptions: string[];

beforeAll(async () => {
  secure = await startTestServer({ routes: [...routes, ...testRoutes] });
  plain = await startTestServer({ routes: [...routes, ...testRoutes], unsecured: true });
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  curlOptions = [
    "-s",
    "--cacert",
    file("ca.crt", secure.authority.certificate),
    "--cert",
    file("admin.crt", secure.admin.certificate),
    "--key",
    file("admin.key", secure.admin.key),
  ];
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true, force: true });
});

describe("one port", () => {
  test.each(["--http1.1", "--http2"])("answers curl %s over TLS", async (version) => {
    const url = `${secure.url}/build/version`;
    const { stdout } = await run("curl", [...curlOptions, version, "-i", url]);
    expect(stdout).toMatch(version === "--http2" ? /^HTTP\/2 200/ : /^HTTP\/1\.1 200 OK/);
    expect(stdout).toContain('"ProductVersion":"7.2"');
    if (version === "--http1.1") {
      expect(stdout).toContain("Content-Type: application/json; charset=utf-8\r\n");
      expect(stdout).toMatch(/Raven-Server-Version: 7\.2\.7\.\d+\r\nService-Server-Version: 7\.2/);
    }
  });

  test.each(["--http1.1", "--http2", "--http2-prior-knowledge"])(
    "answers curl %s without TLS",
    async (version) => {
      const { stdout } = await run("curl", ["-s", version, "-i", `${plain.url}/build/version`]);
      expect(stdout).toMatch(
        version === "--http2-prior-knowledge" ? /^HTTP\/2 200/ : /^HTTP\/1\.1 200/,
      );
    },
  );

  test("supports TLS 1.2 and 1.3, nothing older, and chooses the protocol by ALPN", async () => {
    const connect = async (options: tls.ConnectionOptions) => {
      const socket = tls.connect({
        host: "127.0.0.1",
        port: secure.port,
        ...tlsOptions(secure.authority, secure.admin),
        ...options,
      });
      await once(socket, "secureConnect");
      const seen = [socket.getProtocol(), socket.alpnProtocol];
      socket.destroy();
      return seen;
    };
    expect(await connect({ maxVersion: "TLSv1.2", ALPNProtocols: ["h2", "http/1.1"] })).toEqual([
      "TLSv1.2",
      "h2",
    ]);
    expect(await connect({ ALPNProtocols: ["http/1.1"] })).toEqual(["TLSv1.3", "http/1.1"]);
    expect(await connect({})).toEqual(["TLSv1.3", false]);
    await expect(
      connect({ minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" }),
    ).rejects.toThrow(/protocol version/);
    await expect(connect({ ALPNProtocols: ["smtp"] })).rejects.toThrow(/no application protocol/);
  });

  test("supports no cipher without forward secrecy or with SHA-1", async () => {
    const connect = async (ciphers: string) => {
      const socket = tls.connect({
        host: "127.0.0.1",
        port: secure.port,
        ...tlsOptions(secure.authority, secure.admin),
        maxVersion: "TLSv1.2",
        ciphers: `${ciphers}:@SECLEVEL=0`,
      });
      await once(socket, "secureConnect");
      const { name } = socket.getCipher();
      socket.destroy();
      return name;
    };
    expect(await connect("ECDHE-ECDSA-AES128-GCM-SHA256")).toBe("ECDHE-ECDSA-AES128-GCM-SHA256");
    expect(await connect("ECDHE-ECDSA-AES256-SHA384")).toBe("ECDHE-ECDSA-AES256-SHA384");
    await expect(connect("ECDHE-ECDSA-AES128-SHA")).rejects.toThrow(/handshake failure/);
    await expect(connect("AES128-GCM-SHA256")).rejects.toThrow(/handshake failure/);
  });

  test("does not renegotiate on a connection", async () => {
    const socket = tls.connect({
      host: "127.0.0.1",
      port: secure.port,
      ...tlsOptions(secure.authority, secure.admin),
      maxVersion: "TLSv1.2",
    });
    await once(socket, "secureConnect");
    const failure = once(socket, "error");
    socket.renegotiate({}, () => undefined);
    await expect(failure.then(([error]) => String(error))).resolves.toMatch(/renegotiation/);
    socket.destroy();
  });

  test("closes a plain HTTP connection to the TLS port", async () => {
    const socket = net.connect(secure.port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    socket.resume();
    await once(socket, "close");
  });

  test("keeps an HTTP/1.1 connection for the next request, with any chunk boundaries", async () => {
    const socket = net.connect(plain.port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += String(chunk);
    });
    for (const part of [
      "G",
      "ET /setup/al",
      "ive HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /test/none HT",
      "TP/1.1\r\nHost: localhost\r\n\r\n",
    ]) {
      socket.write(part);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await expect.poll(() => text).toContain("HTTP/1.1 404 Not Found");
    expect(text).toContain("HTTP/1.1 204 No Content");
    socket.destroy();
  });

  test("supports HTTP/2 without TLS for a client that starts with it, also in chunks", async () => {
    const session = http2.connect(plain.url, {
      createConnection: () => {
        const socket = net.connect(plain.port, "127.0.0.1");
        const write = socket.write.bind(socket);
        let isFirst = true;
        socket.write = ((chunk: Buffer, ...rest: never[]) => {
          if (isFirst && Buffer.isBuffer(chunk)) {
            isFirst = false;
            write(chunk.subarray(0, 3));
            return write(chunk.subarray(3), ...rest);
          }
          return write(chunk, ...rest);
        }) as typeof socket.write;
        return socket as Duplex;
      },
    });
    expect((await requestHttp2(session, "/build/version")).status).toBe(200);
    session.close();
  });
});

describe("web sockets", () => {
  test.each(["secure", "plain"])("echo over HTTP/1.1 (%s)", async (kind) => {
    const server = kind === "secure" ? secure : plain;
    const url = `${server.url.replace("http", "ws")}/test/socket`;
    const socket = new WebSocket(url, tlsOptions(server.authority, server.admin));
    const [response] = (await once(socket, "upgrade")) as [{ headers: Record<string, string> }];
    expect(response.headers["raven-server-version"]).toMatch(/^7\./);
    if (socket.readyState !== WebSocket.OPEN) await once(socket, "open");
    socket.send("hello");
    expect(String((await once(socket, "message"))[0])).toBe("hello");
    socket.close();
    await once(socket, "close");
  });

  test("echo over HTTP/2 (RFC 8441)", async () => {
    const session = secure.session(secure.admin);
    await once(session, "remoteSettings");
    expect(session.remoteSettings.enableConnectProtocol).toBe(true);
    const stream = session.request({
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":path": "/test/socket",
      "sec-websocket-version": "13",
    });
    const [headers] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
    expect(headers[":status"]).toBe(200);
    // A masked text frame "hi", with a mask of zeros; the reply is unmasked.
    stream.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
    const [reply] = (await once(stream, "data")) as [Buffer];
    expect([...reply]).toEqual([0x81, 0x02, 0x68, 0x69]);
    stream.close();
    session.close();
  });

  test("are notified when the server stops", async () => {
    const server = await startTestServer({ routes: testRoutes, unsecured: true });
    const sockets = [1, 2].map(
      () => new WebSocket(`${server.url.replace("http", "ws")}/test/socket`),
    );
    await Promise.all(sockets.map((socket) => once(socket, "open")));
    const closed = Promise.all(sockets.map((socket) => once(socket, "close")));
    await server.stop();
    for (const [code] of (await closed) as [number][]) expect(code).toBe(1001);
  });

  test("are rejected like any other request", async () => {
    const url = `${secure.url.replace("http", "ws")}/test/socket`;
    const socket = new WebSocket(url, { ca: secure.authority.certificate });
    const [, response] = (await once(socket, "unexpected-response")) as [
      unknown,
      { statusCode: number },
    ];
    expect(response.statusCode).toBe(403);
    socket.on("error", () => undefined);
    socket.terminate();
    const missing = new WebSocket(
      `${secure.url.replace("http", "ws")}/test/nothing`,
      tlsOptions(secure.authority, secure.admin),
    );
    const [, other] = (await once(missing, "unexpected-response")) as [
      unknown,
      { statusCode: number },
    ];
    expect(other.statusCode).toBe(400);
    missing.on("error", () => undefined);
    missing.terminate();
  });
});

describe("RESET, a method that Node's HTTP/1.1 parser does not support", () => {
  test("works over HTTP/2, and over HTTP/1.1, also on a reused connection", async () => {
    const session = secure.session(secure.admin);
    expect((await requestHttp2(session, "/test/reset", { method: "RESET" })).status).toBe(204);
    session.close();
    const { stdout } = await run("curl", [
      ...curlOptions,
      "--http1.1",
      "-i",
      `${secure.url}/setup/alive`,
      "-X",
      "GET",
      "--next",
      ...curlOptions,
      "--http1.1",
      "-i",
      "-X",
      "RESET",
      "-d",
      "{}",
      `${secure.url}/test/reset`,
    ]);
    expect(stdout.match(/HTTP\/1\.1 204 No Content/g)).toHaveLength(2);
  });

  test("waits for the reply before it on its connection, in the same packet or a later one", async () => {
    const get = "GET /test/streamed HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const reset = "RESET /test/reset HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (const packets of [
      [get, reset],
      [get + reset],
      [get + get + reset],
      [get, `${get}${reset}`],
    ]) {
      const socket = net.connect(plain.port, "127.0.0.1").setNoDelay(true);
      let text = "";
      socket.setEncoding("latin1").on("data", (chunk: string) => {
        text += chunk;
      });
      for (const packet of packets) socket.write(packet);
      await once(socket, "end");
      const statuses = text.match(/HTTP\/1\.1 \d+/g);
      const gets = packets.join("").split("GET").length - 1;
      expect(statuses).toEqual([...new Array<string>(gets).fill("HTTP/1.1 200"), "HTTP/1.1 204"]);
      socket.destroy();
    }
  });

  test("requires the same rights as other methods", async () => {
    const { stdout } = await run("curl", [
      "-sk",
      "--http1.1",
      "-i",
      "-X",
      "RESET",
      `${secure.url}/test/reset`,
    ]);
    expect(stdout).toMatch(/^HTTP\/1\.1 403/);
    const other = await run("curl", [
      ...curlOptions,
      "--http1.1",
      "-i",
      "-X",
      "FOO",
      `${secure.url}/`,
    ]);
    expect(other.stdout).toMatch(/^HTTP\/1\.1 400/);
  });
});

describe("errors", () => {
  test("have Url, Type, Message and Error, and the engine's details", async () => {
    const reply = await secure.request("/test/mistake?x=1");
    expect(reply.status).toBe(409);
    expect(reply.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(reply.json).toEqual({
      Url: "/test/mistake?x=1",
      Type: "Raven.Client.Exceptions.ConcurrencyException",
      Message: "not the expected one",
      Error: "Raven.Client.Exceptions.ConcurrencyException: not the expected one",
      Id: "a",
      ExpectedChangeVector: "A:1",
      ActualChangeVector: "A:2",
      hint: "Another client changed it. Load it again, and apply the change to the current version.",
    });
  });

  test("of the server are logged completely and answered without details", async () => {
    const reply = await secure.request("/test/bug");
    expect(reply.status).toBe(500);
    expect(reply.text).not.toContain("secret");
    expect(reply.text).not.toContain(".ts");
    expect(String(secure.errors.pop())).toContain("secret detail");
    expect((await secure.request("/test/silent")).status).toBe(500);
    expect(String(secure.errors.pop())).toContain("without a reply");
  });

  test("abort a reply that has begun", async () => {
    await expect(secure.request("/test/late-bug")).rejects.toThrow();
    const session = secure.session(secure.admin);
    await expect(requestHttp2(session, "/test/late-bug")).rejects.toThrow(/NGHTTP2_INTERNAL_ERROR/);
    expect((await requestHttp2(session, "/test/none")).status).toBe(404);
    session.close();
    secure.errors.length = 0;
  });

  test("of routes are distinguished: unknown, wrong method, not a web socket", async () => {
    const unknown = await secure.request("/Build/version");
    expect(unknown.status).toBe(400);
    expect(unknown.json).toMatchObject({
      Message: "There is no handler for path: GET /Build/version",
    });
    for (const path of [
      "/build/version/",
      "//build/version",
      "/databases/",
      "/databases//docs",
      "/%",
    ]) {
      expect((await secure.request(path)).status, path).toBe(400);
    }
    const wrong = await secure.request("/build/version", { method: "DELETE" });
    expect(wrong.status).toBe(400);
    expect(wrong.headers.allow).toBe("GET");
    const socket = await secure.request("/test/socket");
    expect(socket.json).toMatchObject({
      Message: expect.stringContaining("Not a WebSocket request"),
    });
  });
});

describe("replies", () => {
  test("to HEAD have no body, but its length; 404 and 204 have no body", async () => {
    for (const version of ["http1", "http2"] as const) {
      const session = secure.session(secure.admin);
      const sendRequest = (path: string, method: string) =>
        version === "http1"
          ? secure.request(path, { method })
          : requestHttp2(session, path, { method });
      const head = await sendRequest("/test/large", "HEAD");
      expect([head.status, head.body.length]).toEqual([200, 0]);
      expect(head.headers["content-length"]).toBe(String(large.length));
      const none = await sendRequest("/test/none", "GET");
      expect([none.status, none.headers["content-length"]]).toEqual([404, "0"]);
      const empty = await sendRequest("/setup/alive", "GET");
      expect([empty.status, empty.headers["content-length"]]).toEqual([204, undefined]);
      session.close();
    }
  });

  test.each([
    ["gzip", zlib.gunzipSync],
    ["br", zlib.brotliDecompressSync],
    ["deflate", zlib.inflateSync],
  ] as const)("are encoded as %s if accepted and worthwhile", async (encoding, decode) => {
    const headers = { "accept-encoding": encoding };
    for (const path of ["/test/large", "/test/streamed"]) {
      const reply = await secure.request(path, { headers });
      expect(reply.headers["content-encoding"]).toBe(encoding);
      expect(reply.headers.vary).toBe("Accept-Encoding");
      expect(reply.body.length).toBeLessThan(5000);
      expect(JSON.parse(decode(reply.body).toString())).toHaveProperty("text");
    }
    const path = "/build/version";
    const small = await secure.request(path, { headers });
    expect(JSON.parse(decode(small.body).toString())).toHaveProperty("BuildVersion");
    const listed = await secure.request(path, { headers: { "accept-encoding": "gzip, br" } });
    expect(listed.headers["content-encoding"]).toBeUndefined();
    const no = await secure.request("/test/large", { headers: { "accept-encoding": "identity" } });
    expect(no.text).toBe(large);
  });

  test("of any size arrive completely", async () => {
    const session = secure.session(secure.admin);
    for (const reply of [
      await secure.request("/test/huge"),
      await requestHttp2(session, "/test/huge"),
    ]) {
      expect(reply.body.length).toBe(20_000_000);
      expect(reply.body.every((byte) => byte === 7)).toBe(true);
    }
    session.close();
  });

  test("of internal requests are captured", async () => {
    const inner = await secure.request("/test/inner");
    expect(inner.text).toBe((await secure.request("/test/streamed")).text);
  });
});

/** A zstd frame (RFC 8878) of stored blocks and of blocks that repeat one byte. */
function zstdFrame(blocks: readonly (Buffer | { byte: number; count: number })[]): Buffer {
  // Magic number; a window of 128 KB.
  const parts: Buffer[] = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38])];
  for (const [position, block] of blocks.entries()) {
    const isLast = position === blocks.length - 1 ? 1 : 0;
    const head = Buffer.alloc(3);
    const isStored = Buffer.isBuffer(block);
    const size = isStored ? block.length : block.count;
    head.writeUIntLE(isLast | (isStored ? 0 : 2) | (size << 3), 0, 3);
    parts.push(head, isStored ? block : Buffer.from([block.byte]));
  }
  return Buffer.concat(parts);
}

describe("bodies of requests", () => {
  const text = "Füllung ".repeat(30_000);
  const encodings = [
    ["identity", Buffer.from(text)],
    ["gzip", zlib.gzipSync(text)],
    ["x-gzip", zlib.gzipSync(text)],
    ["br", zlib.brotliCompressSync(text)],
    ["deflate", zlib.deflateSync(text)],
    ["deflate", zlib.deflateRawSync(text)],
  ] as const;

  test.each(encodings)("are decoded from %s, as a whole and in chunks", async (encoding, body) => {
    const session = secure.session(secure.admin);
    for (const path of ["/test/echo", "/test/echo-stream"]) {
      const options = { method: "POST", body, headers: { "content-encoding": encoding } };
      expect((await secure.request(path, options)).text).toBe(text);
      expect((await requestHttp2(session, path, options)).text).toBe(text);
    }
    session.close();
  });

  test("are decoded from zstd", async () => {
    const body = zstdFrame([Buffer.from("hello "), { byte: 33, count: 100_000 }]);
    for (const path of ["/test/echo", "/test/echo-stream"]) {
      const options = { method: "POST", body, headers: { "content-encoding": "zstd" } };
      expect((await secure.request(path, options)).text).toBe(`hello ${"!".repeat(100_000)}`);
    }
  });

  test("without an end are used as far as received, also compressed and flushed", async () => {
    const session = secure.session(secure.admin);
    const gzip = zlib.createGzip();
    const head = { ":method": "POST", ":path": "/test/first-line", "content-encoding": "gzip" };
    const stream = session.request(head, { endStream: false });
    gzip.on("data", (chunk: Buffer) => stream.write(chunk));
    gzip.write("first\nsecond");
    gzip.flush();
    let reply = "";
    stream.on("data", (chunk) => {
      reply += String(chunk);
    });
    await once(stream, "end");
    expect(reply).toBe("first");
    session.close();
  });

  test("cut off in a flushed compressed stream count as complete", async () => {
    const gzip = zlib.createGzip();
    const chunks: Buffer[] = [];
    gzip.on("data", (chunk: Buffer) => chunks.push(chunk));
    gzip.write("all of it");
    await new Promise<void>((resolve) => gzip.flush(() => resolve()));
    const options = {
      method: "POST",
      body: Buffer.concat(chunks),
      headers: { "content-encoding": "gzip" },
    };
    expect((await secure.request("/test/echo", options)).text).toBe("all of it");
  });

  test("that decompress to more than the limit are rejected early", async () => {
    const server = await startTestServer({
      routes: [...routes, ...testRoutes],
      unsecured: true,
      flags: ["--Http.MaxRequestBodySizeInMb=1"],
    });
    const zeros = Buffer.alloc(32 * 1024 * 1024);
    const blocks = Array.from({ length: 4000 }, () => ({ byte: 0, count: 128 * 1024 }));
    for (const [encoding, body] of [
      ["gzip", zlib.gzipSync(zeros)],
      [
        "br",
        zlib.brotliCompressSync(zeros, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
      ],
      ["zstd", zstdFrame(blocks)],
      ["identity", zeros.subarray(0, 2 * 1024 * 1024)],
    ] as const) {
      const headers = { "content-encoding": encoding };
      const reply = await server.request("/test/echo", { method: "POST", body, headers });
      expect(reply.status, encoding).toBe(413);
      expect(reply.text).toContain("Http.MaxRequestBodySizeInMb");
    }
  });

  test.each([
    ["gzip", "plain text", 400],
    ["zstd", "plain text", 400],
    ["br", "plain text", 400],
    ["snappy", "plain text", 415],
  ])("that are not %s are rejected", async (encoding, body, status) => {
    const options = { method: "POST", body, headers: { "content-encoding": encoding } };
    const reply = await secure.request("/test/echo", options);
    expect(reply.status).toBe(status);
    expect(reply.json).toHaveProperty("Error");
  });

  test("are requested with 100 Continue if the client expects it", async () => {
    const { stdout } = await run("curl", [
      ...curlOptions,
      "--http1.1",
      "-i",
      "-H",
      "Expect: 100-continue",
      "-d",
      "body",
      `${secure.url}/test/echo`,
    ]);
    expect(stdout).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    expect(stdout.endsWith("body")).toBe(true);
  });
});

describe("an unsecured server", () => {
  test("accepts addresses and localhost as host, and no foreign name", async () => {
    for (const [host, status] of [
      [`localhost:${plain.port}`, 200],
      [`127.0.0.1:${plain.port}`, 200],
      [`[::1]:${plain.port}`, 200],
      [`evil.example:${plain.port}`, 403],
    ] as const) {
      const reply = await requestHttp1(`${plain.url}/build/version`, { headers: { host } });
      expect(reply.status, host).toBe(status);
    }
  });

  test("treats every client as a cluster admin", async () => {
    expect((await plain.request("/admin/configuration/settings")).status).toBe(200);
    expect((await plain.request("/admin/certificates")).json).toMatchObject({ Results: [] });
    const reply = await plain.request("/cluster/topology");
    expect(reply.json).toMatchObject({ Topology: { Members: { A: plain.url } } });
  });
});
