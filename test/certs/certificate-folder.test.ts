/** A generated set of certificates, read back by Node and by openssl. */
import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeAuthority, makeClientCertificate } from "../../certs/authority.ts";
import {
  type CertificatePaths,
  findCertificateFolder,
  makeCertificateFolder,
  remakeServerCertificate,
} from "../../certs/certificate-folder.ts";
import { generate } from "../../certs/generate.ts";
import { domainOf, servedHosts } from "../../certs/hosts.ts";
import { writePfx } from "../../certs/pfx.ts";

const root = mkdtempSync(join(tmpdir(), "jackdaw-certs-"));
let paths: CertificatePaths;

beforeAll(async () => {
  paths = await makeCertificateFolder(join(root, "certs"), "example.org", [
    "example.org",
    "localhost",
    "127.0.0.1",
    "::1",
  ]);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function openssl(...args: string[]): string {
  return execFileSync("openssl", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

describe("a folder of certificates", () => {
  test("has exactly the documented files, readable only by the owner", () => {
    expect(readdirSync(paths.folder).sort()).toEqual([
      "admin.client.certificate.example.org.crt",
      "admin.client.certificate.example.org.key",
      "admin.client.certificate.example.org.pfx",
      "ca.crt",
      "ca.key",
      "server.crt",
      "server.key",
    ]);
    for (const name of readdirSync(paths.folder)) {
      expect(statSync(join(paths.folder, name)).mode & 0o777, name).toBe(0o600);
    }
  });

  test("passes openssl's check of the chain for both purposes", () => {
    const admin = paths.admin!.certificate;
    expect(
      openssl("verify", "-CAfile", paths.authority, "-purpose", "sslserver", paths.server),
    ).toContain("OK");
    expect(openssl("verify", "-CAfile", paths.authority, "-purpose", "sslclient", admin)).toContain(
      "OK",
    );
  });

  test("passes the strictest check, with key identifiers at both ends", () => {
    for (const file of [paths.server, paths.admin!.certificate]) {
      expect(openssl("verify", "-x509_strict", "-CAfile", paths.authority, file)).toContain("OK");
    }
    const text = (path: string) => openssl("x509", "-in", path, "-noout", "-text");
    const own = /Subject Key Identifier:\s+([0-9A-F:]{59})/.exec(text(paths.authority))?.[1];
    expect(own).toBeDefined();
    const ofLeaf = /Authority Key Identifier:\s+(?:keyid:)?([0-9A-F:]{59})/;
    expect(ofLeaf.exec(text(paths.server))?.[1]).toBe(own);
    expect(text(paths.authority)).not.toContain("Authority Key Identifier");
  });

  test("has EC keys, the key usages that clients require, and every host", () => {
    const text = openssl("x509", "-in", paths.server, "-noout", "-text");
    expect(text).toContain("NIST CURVE: P-256");
    expect(text).toMatch(/Key Usage: critical\s+Digital Signature, Key Encipherment\n/);
    expect(text).toContain("TLS Web Server Authentication");
    const certificate = new X509Certificate(readFileSync(paths.server));
    expect(certificate.checkHost("example.org")).toBe("example.org");
    expect(certificate.checkHost("localhost")).toBe("localhost");
    expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(certificate.checkIP("::1")).toBe("::1");
    expect(certificate.checkHost("example.com")).toBeUndefined();
    const admin = openssl("x509", "-in", paths.admin!.certificate, "-noout", "-text");
    expect(admin).toMatch(/Extended Key Usage:\s+TLS Web Client Authentication\n/);
  });

  test("pairs each key with its certificate", () => {
    for (const [crt, key] of [
      [paths.authority, paths.authorityKey],
      [paths.server, paths.serverKey],
      [paths.admin!.certificate, paths.admin!.key],
    ] as const) {
      const certificate = new X509Certificate(readFileSync(crt));
      expect(certificate.checkPrivateKey(createPrivateKey(readFileSync(key))), crt).toBe(true);
    }
  });

  test("is not created over existing files", async () => {
    const before = readFileSync(paths.authorityKey, "utf8");
    await expect(makeCertificateFolder(paths.folder, "b.org", ["b.org"])).rejects.toThrow();
    expect(readFileSync(paths.authorityKey, "utf8")).toBe(before);
    expect(readdirSync(root)).toEqual(["certs"]);
  });

  test("gets a new server certificate for other hosts from the same CA", async () => {
    const folder = await makeCertificateFolder(join(root, "moved"), "localhost", ["localhost"]);
    await remakeServerCertificate(folder, ["new.example.org", "localhost"]);
    const certificate = new X509Certificate(readFileSync(folder.server));
    expect(certificate.checkHost("new.example.org")).toBe("new.example.org");
    expect(openssl("verify", "-CAfile", folder.authority, folder.server)).toContain("OK");
    rmSync(folder.folder, { recursive: true });
  });

  test("is undefined if it does not exist", async () => {
    expect(await findCertificateFolder(join(root, "nowhere"))).toBeUndefined();
  });
});

describe("a pfx file", () => {
  test.each(["", "secret & ünïcode"])(
    "with the password '%s' opens in openssl and Node",
    async (password) => {
      const authority = await makeAuthority("x");
      const pair = await makeClientCertificate(authority, "somebody");
      const pfx = await writePfx(pair, password, "somebody");
      expect(() => createSecureContext({ pfx, passphrase: password })).not.toThrow();
      expect(() => createSecureContext({ pfx, passphrase: `${password}x` })).toThrow(/mac verify/);
      const input = { input: pfx, encoding: "utf8" } as const;
      const pass = `pass:${password}`;
      const text = execFileSync("openssl", ["pkcs12", "-passin", pass, "-nodes"], input);
      expect(text).toContain("BEGIN CERTIFICATE");
      expect(text).toContain("BEGIN PRIVATE KEY");
      expect(text).toContain("friendlyName: somebody");
    },
  );
});

describe("a client certificate", () => {
  test("has its name as one attribute, whatever it contains", async () => {
    const authority = await makeAuthority("x");
    for (const name of ["a, O=b", "x=y+z", '"q" <r>;#', "#start", "ünï", " blank "]) {
      const pair = await makeClientCertificate(authority, name);
      const subject = new X509Certificate(pair.certificate).toLegacyObject().subject;
      expect(subject, name).toEqual({ CN: name });
    }
  });

  test("has an RSA key on request, signed by the CA's EC key, and passes the strictest check", async () => {
    const authority = await makeAuthority("x");
    const pair = await makeClientCertificate(authority, "rsa", { keyType: "rsa" });
    const file = (name: string, text: string) => {
      writeFileSync(join(root, name), text);
      return join(root, name);
    };
    const ca = file("rsa-ca.crt", authority.certificate);
    const leaf = file("rsa.crt", pair.certificate);
    const verify = ["verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", ca, leaf];
    expect(openssl(...verify)).toContain("OK");
    expect(new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.key))).toBe(
      true,
    );
    expect(pair.key).toContain("BEGIN RSA PRIVATE KEY");
  });

  test("has its key encrypted if there is a password", async () => {
    const authority = await makeAuthority("x");
    const pair = await makeClientCertificate(authority, "a", { password: "p" });
    expect(pair.key).toContain("ENCRYPTED PRIVATE KEY");
    expect(() => createPrivateKey({ key: pair.key, passphrase: "p" })).not.toThrow();
  });
});

describe("the names of a server", () => {
  test("always include the local names, and begin with the host name", () => {
    const hosts = servedHosts("db.example.org", []);
    expect(hosts[0]).toBe("db.example.org");
    expect(hosts).toEqual(expect.arrayContaining(["localhost", "127.0.0.1", "::1"]));
    expect(servedHosts("0.0.0.0", ["pub.example.org"])[0]).toBe("pub.example.org");
    expect(servedHosts("0.0.0.0", [])).not.toContain("0.0.0.0");
  });

  test("determine the domain of the admin's files", () => {
    expect(domainOf("127.0.0.1")).toBe("localhost");
    expect(domainOf("db.example.org")).toBe("db.example.org");
    expect(domainOf("../x")).toBe("localhost");
  });
});

describe("the certs command", () => {
  test("creates a set, and refuses to overwrite one", async () => {
    const lines: string[] = [];
    const argv = ["--domain=db.example.org", `--out=${join(root, "out")}`, "--hosts=10.0.0.5"];
    expect(await generate(argv, (line) => lines.push(line))).toBe(0);
    expect(lines.join("\n")).toContain(join(root, "out", "ca.crt"));
    const certificate = new X509Certificate(readFileSync(join(root, "out", "server.crt")));
    expect(certificate.checkIP("10.0.0.5")).toBe("10.0.0.5");
    expect(await generate(argv, (line) => lines.push(line))).toBe(2);
  });

  test("rejects unknown options", async () => {
    expect(await generate(["--domain=../x"], () => undefined)).toBe(2);
    expect(await generate(["--what"], () => undefined)).toBe(2);
  });
});
