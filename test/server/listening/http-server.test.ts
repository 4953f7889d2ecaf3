/** One port for HTTP/1.1 and HTTP/2, and how it stops. */
import { once } from "node:events";
import * as net from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import {
  requestHttp1,
  requestHttp2,
  startTestServer,
  stopTestServers,
} from "../../support/start-test-server.ts";

afterAll(stopTestServers);

describe("a port", () => {
  test.each([true, false])("speaks both protocols (unsecured: %s)", async (unsecured) => {
    const server = await startTestServer({ unsecured });
    const session = server.session(unsecured ? undefined : server.admin);
    expect((await requestHttp2(session, "/build/version")).status).toBe(200);
    expect((await server.request("/build/version")).status).toBe(200);
    await server.stop();
    await expect(server.request("/build/version")).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe("a server that stops", () => {
  test("closes connections that are idle, and waits for a request in flight", async () => {
    const server = await startTestServer({ unsecured: true, databases: [{ name: "db" }] });
    const idle = net.connect(server.port, "127.0.0.1");
    const busy = net.connect(server.port, "127.0.0.1");
    await Promise.all([once(idle, "connect"), once(busy, "connect")]);
    idle.write("GET /build/version HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(idle, "data");
    const head = "PUT /databases/db/docs?id=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n";
    busy.write(`${head}Expect: 100-continue\r\n\r\n`);
    expect(String((await once(busy, "data"))[0])).toContain("100 Continue");
    const idleClosed = once(idle, "close");
    const stopped = server.stop();
    await idleClosed;
    busy.write("{}");
    expect(String((await once(busy, "data"))[0])).toContain("201 Created");
    await stopped;
  });

  test("has told nobody of a request that it refused", async () => {
    const server = await startTestServer({ unsecured: true });
    expect((await requestHttp1(`${server.url}/nowhere`, {})).status).toBe(400);
    expect(server.errors).toEqual([]);
    await server.stop();
  });
});
