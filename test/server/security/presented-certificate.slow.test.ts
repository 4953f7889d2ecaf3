/**
 * Replacing the certificate of a running server: sent by an administrator, or renewed in its file.
 */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tls from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CertificatePair,
  makeAuthority,
  makeClientCertificate,
  makeServerCertificate,
} from "../../../certs/authority.ts";
import { makeCertificateFolder } from "../../../certs/certificate-folder.ts";
import { writePfx } from "../../../certs/pfx.ts";
import { loadServerCertificate } from "../../../server/security/server-certificate.ts";
import {
  type Reply,
  requestHttp1,
  requestHttp2,
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

const root = mkdtempSync(join(tmpdir(), "jackdaw-shown-"));
const dayMs = 86_400_000;
const target = "/admin/certificates/replace-cluster-cert?replaceImmediately=true";
let authority: CertificatePair;

beforeAll(async () => {
  authority = await makeAuthority("x");
});
afterAll(async () => {
  await stopTestServers();
  rmSync(root, { recursive: true, force: true });
});

const make = (hosts = ["127.0.0.1", "localhost"], now?: Date) =>
  makeServerCertificate(authority, hosts, now);

function base64(text: string | Buffer): string {
  return Buffer.from(text as string).toString("base64");
}

function fingerprint(pair: CertificatePair): string {
  return new X509Certificate(pair.certificate).fingerprint256;
}

/** The certificate presented to a new connection on that port. */
async function presentedOn(port: number): Promise<string> {
  const socket = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** A server whose certificate is in a file of that name, and is its only administrator. */
async function startWith(
  name: string,
  pair: CertificatePair,
  flags: readonly string[] = [],
): Promise<TestServer> {
  writeFileSync(join(root, `${name}.key`), pair.key);
  writeFileSync(join(root, `${name}.crt`), pair.certificate);
  return start(name, flags);
}

function start(name: string, flags: readonly string[] = []): Promise<TestServer> {
  return startTestServer({
    flags: [
      `--Security.Certificate.Path=${join(root, `${name}.crt`)}`,
      `--DataDir=${join(root, name)}`,
      ...flags,
    ],
  });
}

function call(url: string, pair: CertificatePair, path = target, body?: object): Promise<Reply> {
  return requestHttp1(url + path, {
    method: body === undefined ? "GET" : "POST",
    tls: { ca: authority.certificate, cert: pair.certificate, key: pair.key },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe("an uploaded certificate", () => {
  test("is presented to new connections immediately, and administrators keep their access", async () => {
    const server = await startTestServer();
    const session = server.session(server.admin);
    expect((await requestHttp2(session, "/build/version")).status).toBe(200);
    const next = await make();
    const reply = await server.request(target, {
      method: "POST",
      body: JSON.stringify({ Certificate: base64(next.certificate + next.key) }),
    });
    expect([reply.status, reply.text]).toEqual([201, ""]);
    const { address } = server.running.services;
    expect(await presentedOn(address.port)).toBe(fingerprint(next));
    expect(await presentedOn(address.tcpPort)).toBe(fingerprint(next));
    expect((await requestHttp2(session, "/build/version")).status).toBe(200);
    const { admin } = server;
    const who = await call(server.url, admin, "/certificates/whoami");
    expect(who.json).toMatchObject({ SecurityClearance: "ClusterAdmin" });
    const list = await call(server.url, admin, "/admin/certificates?metadataOnly=true");
    expect(list.json).toMatchObject({
      LoadedServerCert: new X509Certificate(next.certificate).fingerprint.replaceAll(":", ""),
    });
    session.close();
  });

  test("is stored for the next start, in a file readable only by its owner; the operator's file is unchanged", async () => {
    const existing = await make();
    const first = await startWith("kept", existing);
    const next = await make();
    const pfx = await writePfx(next, "secret", "x");
    const body = { Certificate: base64(pfx), Password: "secret" };
    expect((await call(first.url, existing, target, body)).status).toBe(201);
    expect(await presentedOn(first.port)).toBe(fingerprint(next));
    const file = join(root, "kept", "certs", "replacement.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(root, "kept.crt"), "utf8")).toBe(existing.certificate);
    await first.stop();
    const second = await start("kept");
    expect(await presentedOn(second.port)).toBe(fingerprint(next));
    await second.stop();
    // The operator renews the file while the server is down, so it is newer than the uploaded one.
    const renewed = await make();
    const third = await startWith("kept", renewed);
    expect(await presentedOn(third.port)).toBe(fingerprint(renewed));
    await third.stop();
  });

  test("revokes the access granted by its predecessor", async () => {
    const existing = await make();
    const server = await startWith("before", existing);
    const agent = { ca: authority.certificate, cert: existing.certificate, key: existing.key };
    const socket = tls.connect({ port: server.port, host: "127.0.0.1", ...agent });
    const send = async () => {
      socket.write("GET /build/version HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const [chunk] = (await once(socket, "data")) as [Buffer];
      return String(chunk).slice(9, 12);
    };
    expect(await send()).toBe("200");
    const next = await make();
    const body = { Certificate: next.certificate + next.key };
    expect((await call(server.url, existing, target, body)).status).toBe(201);
    expect(await send()).toBe("403");
    socket.destroy();
    expect((await call(server.url, next, "/build/version")).status).toBe(200);
  });

  test("is rejected if it is unsuitable, without changes", async () => {
    const existing = await make();
    const server = await startWith("refused", existing, ["--PublicServerUrl=https://localhost"]);
    const whole = (pair: CertificatePair) => base64(pair.certificate + pair.key);
    const old = await make(undefined, new Date(Date.now() - 1000 * dayMs));
    const future = await make(undefined, new Date(Date.now() + 1000 * dayMs));
    const [one, other] = [await make(), await make()];
    const pfx = base64(await writePfx(one, "right", "x"));
    for (const [body, reason] of [
      [{ Certificate: base64(Buffer.from([1, 2, 3, 4])) }, /PEM or PFX/],
      [{}, /PEM or PFX/],
      [{ Certificate: base64(one.certificate) }, /no private key/],
      [{ Certificate: base64(one.certificate + other.key) }, /does not match the certificate/],
      [{ Certificate: whole(old) }, /expired on/],
      [{ Certificate: whole(future) }, /not valid before/],
      [{ Certificate: whole(await makeClientCertificate(authority, "c")) }, /serverAuth/],
      [{ Certificate: whole(await make(["elsewhere"])) }, /does not cover localhost/],
      [{ Certificate: pfx, Password: "wrong" }, /The password of the certificate .* is wrong/],
      [{ Certificate: pfx }, /The password of the certificate .* is wrong/],
    ] as const) {
      const reply = await call(`https://127.0.0.1:${server.port}`, existing, target, body);
      expect(reply.status).toBe(400);
      expect(reply.json).toMatchObject({ Type: "System.ArgumentException" });
      const { Message } = reply.json as { Message: string };
      expect(Message).toContain("Unable to load the provided certificate");
      expect(Message).toMatch(reason);
    }
    expect(await presentedOn(server.port)).toBe(fingerprint(existing));
    expect(existsSync(join(root, "refused", "certs", "replacement.json"))).toBe(false);
    expect(server.errors).toEqual([]);
  });

  test("is rejected by a server without TLS", async () => {
    const server = await startTestServer({ unsecured: true });
    const next = await make();
    for (const path of [target, "/admin/certificates/refresh"]) {
      const reply = await server.request(path, {
        method: "POST",
        body: JSON.stringify({ Certificate: next.certificate + next.key }),
      });
      expect(reply.json).toMatchObject({ Type: "System.InvalidOperationException" });
    }
  });
});

describe("a certificate that is renewed in its file", () => {
  test("is presented soon, and on the reload signal, even after an upload", async () => {
    const existing = await make();
    const server = await startWith("renewed", existing);
    const sent = await make();
    const body = { Certificate: sent.certificate + sent.key };
    expect((await call(server.url, existing, target, body)).status).toBe(201);
    const next = await make();
    writeFileSync(join(root, "renewed.crt"), next.certificate);
    // Half renewed: a certificate without its key.
    const half = await call(server.url, sent, "/admin/certificates/refresh", {});
    expect(half.json).toMatchObject({ Type: "System.ArgumentException" });
    expect(await presentedOn(server.port)).toBe(fingerprint(sent));
    writeFileSync(join(root, "renewed.key"), next.key);
    await expect.poll(() => presentedOn(server.port), { timeout: 20_000 }).toBe(fingerprint(next));
    expect(existsSync(join(root, "renewed", "certs", "replacement.json"))).toBe(false);
    const last = await make();
    writeFileSync(join(root, "renewed.crt"), last.certificate + last.key);
    expect((await call(server.url, next, "/admin/certificates/refresh", {})).status).toBe(204);
    expect(await presentedOn(server.port)).toBe(fingerprint(last));
  });
});

test("the server renews its own certificate before it expires", async () => {
  const folder = join(root, "old", "certs");
  mkdirSync(join(root, "old"));
  const paths = await makeCertificateFolder(folder, "localhost", ["127.0.0.1", "localhost"]);
  const ours = {
    certificate: readFileSync(paths.authority, "utf8"),
    key: readFileSync(paths.authorityKey, "utf8"),
  };
  const ended = await makeServerCertificate(
    ours,
    ["localhost"],
    new Date(Date.now() - 900 * dayMs),
  );
  writeFileSync(paths.server, ended.certificate);
  writeFileSync(paths.serverKey, ended.key);
  const server = await startTestServer({ flags: [`--DataDir=${join(root, "old")}`] });
  expect(server.running.warnings.join()).toMatch(/reissued to cover .*127\.0\.0\.1/);
  expect((await server.request("/build/version")).status).toBe(200);
  expect(statSync(paths.server).mode & 0o777).toBe(0o600);
  expect(readFileSync(paths.server, "utf8")).not.toContain("PRIVATE KEY");
});

test.skipIf(process.platform === "win32")(
  "warns of a key that is readable for everybody",
  async () => {
    const { certificate, key } = await make();
    const path = join(root, "exposed.crt");
    writeFileSync(path, certificate, { mode: 0o644 });
    const keyPath = join(root, "exposed.key");
    writeFileSync(keyPath, key);
    chmodSync(keyPath, 0o644);
    expect((await loadServerCertificate(path, undefined)).warnings).toEqual([
      expect.stringMatching(
        /may read the private key in \S+exposed\.key \(mode 644\)\. Run chmod o-rwx/,
      ),
    ]);
    chmodSync(keyPath, 0o640);
    expect((await loadServerCertificate(path, undefined)).warnings).toEqual([]);
  },
);
