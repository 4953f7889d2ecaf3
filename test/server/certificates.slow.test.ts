/**
 * /admin/certificates: generate, register, list, change and delete, and their effect on open
 * connections.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ClientHttp2Stream } from "node:http2";
import * as https from "node:https";
import * as tls from "node:tls";
import { createSecureContext } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { type CertificatePair, makeClientCertificate } from "../../certs/authority.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import type { Exchange } from "../../server/http/exchange.ts";
import type { Route } from "../../server/routing/route.ts";
import {
  noCertificate,
  type Reply,
  type RequestOptions,
  requestHttp1,
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
  tlsOptions,
} from "../support/start-test-server.ts";
import { unzip } from "../support/unzip.ts";

const path = "/admin/certificates";
let server: TestServer;

const slowAborted: string[] = [];
const extraRoutes: readonly Route[] = [
  {
    kind: "websocket",
    method: "GET",
    path: "/databases/:database/test-socket",
    access: "read",
    connect: (socket) => {
      socket.on("message", (data) => socket.send(`echo ${data.toString()}`));
    },
  },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/test-slow",
    access: "read",
    handle: async (exchange: Exchange) => {
      const stream = exchange.stream(200);
      await stream.write("first");
      await once(exchange.signal, "abort");
      slowAborted.push(exchange.path);
      await stream.end();
    },
  },
  {
    kind: "database",
    method: "GET",
    path: "/databases/:database/test-read",
    access: "read",
    inPackage: true,
    handle: (exchange: Exchange) => exchange.replyJson(200, "{}"),
  },
];

beforeAll(async () => {
  server = await startTestServer({
    routes: [...routes, ...extraRoutes],
    databases: [
      { name: "a", isDisabled: false },
      { name: "b", isDisabled: false },
    ],
  });
});
afterAll(stopTestServers);

function thumbprint(pair: CertificatePair): string {
  return new X509Certificate(pair.certificate).fingerprint.replaceAll(":", "");
}

async function call(
  method: string,
  target: string,
  body?: unknown,
  pair?: CertificatePair,
): Promise<Reply> {
  const options: RequestOptions =
    body === undefined ? { method } : { method, body: JSON.stringify(body) };
  return server.request(target, options, pair);
}

describe("generating", () => {
  test("accepts the options in a form and runs as a server operation, as in RavenDB's Studio", async () => {
    const send = (id: number, terms: object) =>
      server.request(`${path}?operationId=${id}&raft-request-id=1`, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ Options: JSON.stringify(terms) }).toString(),
      });
    const state = async (id: number) =>
      (await server.request(`/operations/state?id=${id}`)).json as { Status: string };
    const next = (await server.request("/admin/operations/next-operation-id")).json as {
      Id: number;
    };
    const reply = await send(next.Id, { Name: "form & co", SecurityClearance: "Operator" });
    expect(reply.status).toBe(200);
    expect(Object.keys(unzip(reply.body))).toContain("form & co.pfx");
    expect(await state(next.Id)).toMatchObject({
      Status: "Completed",
      Result: {
        $type:
          "Raven.Client.ServerWide.Operations.Certificates.ClientCertificateGenerationResult, Raven.Client",
        Message: "Client certificate was generated.",
      },
    });
    const refused = await send(next.Id + 1, { Name: "" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("Name is a required field in the certificate definition");
    expect(await state(next.Id + 1)).toMatchObject({ Status: "Faulted" });
    const listed = (await server.request("/admin/operations")).text;
    expect(listed).toContain("Generate certificate: form & co");
    expect(listed).not.toContain("PRIVATE KEY");
  });

  test("reports that certificates are set up without a wizard", async () => {
    expect((await call("GET", `${path}/mode`)).json).toEqual({ SetupMode: "None" });
  });

  test("returns a Zip of crt, key and pfx that authenticate the client", async () => {
    const reply = await call("POST", path, {
      Name: "bob",
      SecurityClearance: "ValidUser",
      Permissions: { a: "ReadWrite" },
    });
    expect(reply.status).toBe(200);
    expect(reply.headers["content-disposition"]).toContain('filename="bob.zip"');
    const files = unzip(reply.body);
    expect(Object.keys(files).sort()).toEqual(["bob.crt", "bob.key", "bob.pfx", "ca.crt"]);
    expect(String(files["ca.crt"])).toBe(server.authority.certificate);
    const pair = {
      certificate: String(files["bob.crt"]),
      key: String(files["bob.key"]),
    };
    // The format that RavenDB's clients read from PEM.
    expect(pair.key).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n/);
    const { publicKey } = new X509Certificate(pair.certificate);
    expect(publicKey.asymmetricKeyDetails).toMatchObject({ modulusLength: 3072 });
    const who = await call("GET", "/certificates/whoami", undefined, pair);
    expect(who.json).toMatchObject({
      Name: "bob",
      SecurityClearance: "ValidUser",
      Permissions: { a: "ReadWrite" },
      Usage: "Client",
      Disabled: false,
    });
    expect((await call("GET", "/databases/a/test-read", undefined, pair)).status).toBe(200);
    expect((await call("GET", "/databases/b/test-read", undefined, pair)).status).toBe(403);
  });

  test("encrypts key and pfx with the given password", async () => {
    const reply = await call("POST", path, {
      Name: "secretive",
      SecurityClearance: "ValidUser",
      Password: "pässword",
    });
    const files = unzip(reply.body);
    const key = String(files["secretive.key"]);
    expect(key).toContain("ENCRYPTED");
    expect(() => createPrivateKey({ key, passphrase: "pässword" })).not.toThrow();
    const pfx = files["secretive.pfx"] as Buffer;
    expect(() => createSecureContext({ pfx, passphrase: "pässword" })).not.toThrow();
    expect(() => createSecureContext({ pfx, passphrase: "" })).toThrow();
  });

  test("expires on the requested date", async () => {
    const NotAfter = "2031-05-06T07:08:09.0000000Z";
    const body = { Name: "brief", SecurityClearance: "ValidUser", NotAfter };
    const files = unzip((await call("POST", path, body)).body);
    const { validTo } = new X509Certificate(files["brief.crt"] as Buffer);
    expect(new Date(validTo).toISOString()).toBe("2031-05-06T07:08:09.000Z");
  });

  test.each([
    [{ SecurityClearance: "ValidUser" }, "System.ArgumentException"],
    [{ Name: "../../x", SecurityClearance: "ValidUser" }, "System.ArgumentException"],
    [{ Name: "a\\b", SecurityClearance: "ValidUser" }, "System.ArgumentException"],
    [{ Name: "a\u0000b", SecurityClearance: "ValidUser" }, "System.ArgumentException"],
    [{ Name: "..", SecurityClearance: "ValidUser" }, "System.ArgumentException"],
    [{ Name: "x", SecurityClearance: "God" }, "System.FormatException"],
    [{ Name: "x" }, "System.FormatException"],
    [
      { Name: "x", SecurityClearance: "ValidUser", Permissions: { a: "All" } },
      "System.ArgumentException",
    ],
    [{ Name: "x", SecurityClearance: "ValidUser", Permissions: "a" }, "System.ArgumentException"],
    [
      { Name: "x", SecurityClearance: "ValidUser", NotAfter: "2001-01-01" },
      "System.ArgumentException",
    ],
    [
      { Name: "x", SecurityClearance: "ValidUser", TwoFactorAuthenticationKey: "k" },
      "System.NotSupportedException",
    ],
  ])("rejects %j", async (body, type) => {
    const before = server.running.services.certificates.list().length;
    const reply = await call("POST", path, body);
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ Type: type, Url: path });
    expect(server.running.services.certificates.list().length).toBe(before);
  });

  test("requires a JSON object", async () => {
    for (const [body, type] of [
      ["", "System.IO.EndOfStreamException"],
      ["{", "System.IO.EndOfStreamException"],
      ["{]}", "System.IO.InvalidDataException"],
      ["[]", "Sparrow.Exceptions.InvalidStartOfObjectException"],
    ] as const) {
      const reply = await server.request(path, { method: "POST", body });
      expect(reply.status).toBe(400);
      expect(reply.json).toMatchObject({ Type: type });
    }
  });
});

describe("registering, listing, changing, deleting", () => {
  test("accepts an existing certificate, as DER or PEM in base64", async () => {
    const pair = await makeClientCertificate(server.authority, "own");
    const { raw } = new X509Certificate(pair.certificate);
    for (const Certificate of [
      raw.toString("base64"),
      Buffer.from(pair.certificate).toString("base64"),
    ]) {
      const body = {
        Name: "own",
        SecurityClearance: "ValidUser",
        Permissions: { a: "Read" },
        Certificate,
      };
      const reply = await call("PUT", path, body);
      expect(reply.status).toBe(201);
      expect(reply.headers["content-length"]).toBe("0");
    }
    expect((await call("GET", "/databases/a/test-read", undefined, pair)).status).toBe(200);
    const edited = { Thumbprint: thumbprint(pair), Name: "renamed", Permissions: { b: "Read" } };
    expect((await call("POST", `${path}/edit`, edited)).status).toBe(201);
    expect((await call("GET", "/databases/a/test-read", undefined, pair)).status).toBe(403);
    expect((await call("GET", "/databases/b/test-read", undefined, pair)).status).toBe(200);
    const list = await call("GET", `${path}?metadataOnly=true&thumbprint=${thumbprint(pair)}`);
    expect(list.json).toMatchObject({ Results: [{ Name: "renamed", Permissions: { b: "Read" } }] });
    expect(list.text).not.toContain('"Certificate"');
    const target = `${path}?thumbprint=${thumbprint(pair).toLowerCase()}`;
    expect((await call("DELETE", target)).status).toBe(204);
    expect((await call("DELETE", target)).status).toBe(204);
    expect((await call("GET", target)).status).toBe(404);
    const gone = await call("GET", "/databases/b/test-read", undefined, pair);
    expect(gone.status).toBe(403);
    expect(gone.text).toContain("is unknown to the server");
  });

  test("the list starts with the server's own certificate, and is paged", async () => {
    const reply = await call("GET", `${path}?start=0&pageSize=1`);
    expect(reply.json).toMatchObject({
      Results: [{ SecurityClearance: "ClusterNode", Usage: "RavenServer" }],
      WellKnownAdminCerts: null,
      WellKnownIssuers: [],
    });
    expect((reply.json as { Results: unknown[] }).Results).toHaveLength(1);
  });

  test("a disabled certificate is unknown until it is enabled", async () => {
    const pair = await server.client({ permissions: { a: "Read" } }, "toggled");
    const Thumbprint = thumbprint(pair);
    await call("POST", `${path}/edit`, { Thumbprint, Disabled: true });
    expect((await call("GET", "/databases/a/test-read", undefined, pair)).status).toBe(403);
    await call("POST", `${path}/edit`, { Thumbprint, Disabled: false });
    expect((await call("GET", "/databases/a/test-read", undefined, pair)).status).toBe(200);
  });

  test("reports errors", async () => {
    expect((await call("DELETE", path)).json).toMatchObject({
      Type: "System.ArgumentException",
      Message: "Query string thumbprint is mandatory, but wasn't specified.",
    });
    expect((await call("POST", `${path}/edit`, { Thumbprint: "AB" })).json).toMatchObject({
      Type: "System.InvalidOperationException",
    });
    const garbage = { Name: "x", SecurityClearance: "ValidUser", Certificate: "AAAA" };
    expect((await call("PUT", path, garbage)).json).toMatchObject({
      Type: "System.ArgumentException",
      Message: expect.stringContaining("Unable to load the provided certificate."),
    });
    const own = server.running.certificate!.certificate.raw.toString("base64");
    const again = { Name: "x", SecurityClearance: "ValidUser", Certificate: own };
    expect((await call("PUT", path, again)).status).toBe(400);
    const self = await call("DELETE", `${path}?thumbprint=${thumbprint(server.admin)}`);
    expect(self.json).toMatchObject({
      Message: expect.stringContaining("it's the current client certificate being used"),
    });
    const lower = { Thumbprint: thumbprint(server.admin), SecurityClearance: "ValidUser" };
    expect((await call("POST", `${path}/edit`, lower)).status).toBe(400);
  });

  test("whoami is empty for an unknown client", async () => {
    expect((await call("GET", "/certificates/whoami", undefined, noCertificate)).status).toBe(204);
    const stranger = await makeClientCertificate(server.authority, "stranger");
    expect((await call("GET", "/certificates/whoami", undefined, stranger)).status).toBe(204);
  });
});

describe("an operator", () => {
  test.each(["ClusterAdmin", "ClusterNode"] as const)(
    "cannot grant, change or delete %s",
    async (clearance) => {
      const operator = await server.client({ clearance: "Operator" }, "operator");
      const above = await server.client({ clearance }, "above");
      const below = await server.client({}, "below");
      const Thumbprint = thumbprint(above);
      const { raw } = new X509Certificate(above.certificate);
      for (const [method, target, body] of [
        ["POST", path, { Name: "x", SecurityClearance: clearance }],
        [
          "PUT",
          path,
          { Name: "x", SecurityClearance: clearance, Certificate: raw.toString("base64") },
        ],
        [
          "PUT",
          path,
          { Name: "x", SecurityClearance: "ValidUser", Certificate: raw.toString("base64") },
        ],
        ["POST", `${path}/edit`, { Thumbprint, SecurityClearance: "ValidUser" }],
        ["POST", `${path}/edit`, { Thumbprint: thumbprint(below), SecurityClearance: clearance }],
        ["DELETE", `${path}?thumbprint=${Thumbprint}`, undefined],
      ] as const) {
        const reply = await call(method, target, body, operator);
        expect(reply.status, `${method} ${target}`).toBe(403);
        expect(reply.json).toMatchObject({ Type: "InvalidAuth" });
      }
      expect((await call("GET", "/admin/stats", undefined, above)).status).toBe(200);
      const own = { Name: "helper", SecurityClearance: "Operator" };
      expect((await call("POST", path, own, operator)).status).toBe(200);
    },
  );
});

describe("certificates outside their validity period", () => {
  test("are rejected with the date, registered or not", async () => {
    const now = Date.now();
    for (const [moment, text] of [
      [new Date(now - 20 * 366 * 86_400_000), "has expired on"],
      [new Date(now + 366 * 86_400_000), "cannot be used before"],
    ] as const) {
      const pair = await makeClientCertificate(server.authority, "odd", { now: moment });
      const before = await call("GET", "/build/version", undefined, pair);
      expect(before.status).toBe(403);
      expect(before.text).toContain(text);
      const Certificate = new X509Certificate(pair.certificate).raw.toString("base64");
      const body = { Name: "odd", SecurityClearance: "ClusterAdmin", Certificate };
      const put = await call("PUT", path, body);
      // An expired certificate cannot become valid; a future one will.
      expect(put.status).toBe(text === "has expired on" ? 400 : 201);
      if (put.status === 400) {
        expect(put.json).toMatchObject({
          Type: "System.ArgumentException",
          Message: expect.stringMatching(/^The certificate expired on \d{4}-/),
        });
        await server.running.services.certificates.put(new X509Certificate(pair.certificate), {
          Name: "odd",
          SecurityClearance: "ClusterAdmin",
          Permissions: {},
          Disabled: false,
        });
      }
      expect((await call("GET", "/build/version", undefined, pair)).text).toContain(text);
    }
  });

  test("expire while the connection is open", async () => {
    const pair = await makeClientCertificate(server.authority, "short", {
      notAfter: new Date(Date.now() + 2000),
    });
    const Certificate = new X509Certificate(pair.certificate).raw.toString("base64");
    await call("PUT", path, { Name: "short", SecurityClearance: "ValidUser", Certificate });
    const session = server.session(pair);
    expect((await requestHttp2(session, "/build/version")).status).toBe(200);
    await expect
      .poll(async () => (await requestHttp2(session, "/build/version")).text, { timeout: 5000 })
      .toContain("has expired on");
    session.close();
  });
});

describe("a revoked certificate", () => {
  /** Not `once`, which would reject on a preceding error: a reply that is cut off is reset. */
  function closeOf(stream: ClientHttp2Stream): Promise<void> {
    return new Promise((resolve) => stream.once("close", () => resolve()));
  }

  async function revoke(pair: CertificatePair): Promise<void> {
    expect((await call("DELETE", `${path}?thumbprint=${thumbprint(pair)}`)).status).toBe(204);
  }

  test("loses its open connections: HTTP/1.1, HTTP/2, replies in flight, web sockets", async () => {
    const pair = await server.client({ permissions: { a: "Read" } }, "leaver");
    const agent = new https.Agent({
      keepAlive: true,
      maxSockets: 1,
      ...tlsOptions(server.authority, pair),
    });
    const url = `${server.url}/databases/a/test-read`;
    const keptAlive = () => requestHttp1(url, { agent });
    expect((await keptAlive()).status).toBe(200);
    const session = server.session(pair);
    expect((await requestHttp2(session, "/databases/a/test-read")).status).toBe(200);
    const slow = session.request({ ":path": "/databases/a/test-slow" });
    slow.on("error", () => undefined);
    await once(slow, "data");
    const socket = new WebSocket(`${server.url.replace("https", "wss")}/databases/a/test-socket`, {
      ...tlsOptions(server.authority, pair),
    });
    await once(socket, "open");
    socket.send("hi");
    expect(String((await once(socket, "message"))[0])).toBe("echo hi");
    const closed = Promise.all([closeOf(slow), once(socket, "close")]);

    await revoke(pair);

    await closed;
    expect(slowAborted).toEqual(["/databases/a/test-slow"]);
    expect((await requestHttp2(session, "/databases/a/test-read")).status).toBe(403);
    expect((await keptAlive()).status).toBe(403);
    agent.destroy();
    session.close();
  });

  test("loses a permission and keeps the remaining ones", async () => {
    const pair = await server.client({ permissions: { a: "Read", b: "Read" } }, "mover");
    const session = server.session(pair);
    const slowA = session.request({ ":path": "/databases/a/test-slow" });
    const slowB = session.request({ ":path": "/databases/b/test-slow" });
    slowA.on("error", () => undefined);
    await Promise.all([once(slowA, "data"), once(slowB, "data")]);
    const closedA = closeOf(slowA);
    await call("POST", `${path}/edit`, {
      Thumbprint: thumbprint(pair),
      Permissions: { b: "Read" },
    });
    await closedA;
    expect(slowB.closed).toBe(false);
    expect((await requestHttp2(session, "/databases/a/test-read")).status).toBe(403);
    expect((await requestHttp2(session, "/databases/b/test-read")).status).toBe(200);
    slowB.close();
    session.close();
  });

  test.each([
    ["TLSv1.2", "deleted"],
    ["TLSv1.3", "deleted"],
    ["TLSv1.2", "disabled"],
    ["TLSv1.3", "disabled"],
  ] as const)("is not accepted in a resumed %s session if %s", async (version, how) => {
    const pair = await server.client({}, "resumer");
    const options: tls.ConnectionOptions = {
      ...tlsOptions(server.authority, pair),
      port: server.port,
      host: "127.0.0.1",
      minVersion: version,
      maxVersion: version,
    };
    const sendRequest = async (session?: Buffer) => {
      const socket = tls.connect(session === undefined ? options : { ...options, session });
      const tickets: Buffer[] = [];
      socket.on("session", (ticket: Buffer) => tickets.push(ticket));
      socket.write("GET /build/version HTTP/1.1\r\nHost: x\r\n\r\n");
      const [reply] = (await once(socket, "data")) as [Buffer];
      const isReused = socket.isSessionReused();
      socket.destroy();
      return { reply: reply.toString(), isReused, ticket: tickets.at(-1) };
    };
    const first = await sendRequest();
    expect(first.reply).toMatch(/^HTTP\/1\.1 200/);
    const second = await sendRequest(first.ticket);
    expect(second.isReused).toBe(true);
    expect(second.reply).toMatch(/^HTTP\/1\.1 200/);
    if (how === "deleted") await revoke(pair);
    else {
      const body = { Thumbprint: thumbprint(pair), Disabled: true };
      expect((await call("POST", `${path}/edit`, body)).status).toBe(201);
    }
    const third = await sendRequest(second.ticket ?? first.ticket);
    expect(third.isReused).toBe(true);
    expect(third.reply).toMatch(/^HTTP\/1\.1 403/);
  });
});

describe("info packages", () => {
  test("the cluster package has the admin's files at its root and the node's diagnostics in a folder", async () => {
    const reply = await call("GET", "/admin/debug/cluster-info-package");
    expect(reply.headers["content-type"]).toBe("application/zip");
    const files = unzip(reply.body);
    const name = "admin.client.certificate.localhost";
    expect(Object.keys(files)).toEqual(
      expect.arrayContaining([
        `${name}.crt`,
        `${name}.key`,
        `${name}.pfx`,
        "ca.crt",
        "settings.json",
        "readme.txt",
      ]),
    );
    expect(String(files[`${name}.crt`])).toBe(server.admin.certificate);
    expect(String(files[`${name}.key`])).toBe(server.admin.key);
    const build = JSON.parse(String(files["Node - [A]/server-wide/build.version.json"])) as unknown;
    expect(build).toEqual((await call("GET", "/build/version")).json);
    expect(Object.keys(files).filter((file) => file.endsWith(".error"))).toEqual([]);
  });

  test("the other packages contain no key", async () => {
    const operator = await server.client({ clearance: "Operator" }, "operator");
    const reader = await server.client({ permissions: { a: "Read" } }, "reader");
    for (const [target, pair] of [
      ["/admin/debug/info-package", operator],
      ["/databases/a/debug/info-package", reader],
    ] as const) {
      const reply = await call("GET", target, undefined, pair);
      expect(reply.status).toBe(200);
      expect(String(Object.values(unzip(reply.body)))).not.toContain("PRIVATE KEY");
    }
  });
});

test("the server's own certificate is a cluster admin, as the official test driver expects", async () => {
  const certsFolder = server.running.certificate!.path.replace("server.crt", "");
  const pair = {
    certificate: readFileSync(`${certsFolder}server.crt`, "utf8"),
    key: readFileSync(`${certsFolder}server.key`, "utf8"),
  };
  expect((await call("GET", "/admin/configuration/settings", undefined, pair)).status).toBe(200);
});
