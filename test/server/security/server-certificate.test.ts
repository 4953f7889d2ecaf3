/**
 * PFX files written by openssl as server certificates, and the CAs that the TLS handshake names to
 * clients.
 */
import { execFile, execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { AuthenticatedSafe, PFX } from "pkijs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CertificatePair,
  makeAuthority,
  makeServerCertificate,
} from "../../../certs/authority.ts";
import { writePfx } from "../../../certs/pfx.ts";
import { loadServerCertificate } from "../../../server/security/server-certificate.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
} from "../../support/start-test-server.ts";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "jackdaw-pfx-"));
const file = (name: string) => join(folder, name);
let leaf: CertificatePair;
let root: CertificatePair;
let intermediate: string;

beforeAll(async () => {
  root = await makeAuthority("root");
  writeFileSync(file("root.crt"), root.certificate);
  writeFileSync(file("root.key"), root.key);
  const curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
  openssl("genpkey", ...curve, "-out", file("between.key"));
  openssl(
    ...["req", "-x509", "-key", file("between.key"), "-CA", file("root.crt")],
    ...["-CAkey", file("root.key"), "-subj", "/CN=between", "-out", file("between.crt")],
  );
  intermediate = readFileSync(file("between.crt"), "utf8");
  const key = readFileSync(file("between.key"), "utf8");
  const between = { certificate: intermediate, key };
  leaf = await makeServerCertificate(between, ["localhost", "127.0.0.1"]);
  const stranger = await makeServerCertificate(between, ["elsewhere"]);
  writeFileSync(file("leaf.pem"), leaf.certificate + leaf.key);
  // From root to leaf, and with an unrelated certificate.
  writeFileSync(file("chain.pem"), stranger.certificate + root.certificate + intermediate);
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true, force: true });
});

function openssl(...args: readonly string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "pipe", "pipe"] });
}

const withChain = () => ["-certfile", file("chain.pem")];
const algorithm = (key: string, certificate = key) => ["-keypbe", key, "-certpbe", certificate];

/** The path of a PFX of the server certificate. */
function writePfxFile(name: string, password: string, options: readonly string[]): string {
  const paths = ["-in", file("leaf.pem"), "-out", file(name)];
  openssl("pkcs12", "-export", ...paths, "-passout", `pass:${password}`, ...options);
  return file(name);
}

/** A PFX with two keys and their certificates, with the password "x". */
async function writeTwo(first: CertificatePair, second: CertificatePair): Promise<Buffer> {
  const secret = new TextEncoder().encode("x").buffer;
  const safes: AuthenticatedSafe[] = [];
  for (const pair of [first, second]) {
    const pfx = PFX.fromBER(new Uint8Array(await writePfx(pair, "x", "x")));
    await pfx.parseInternalValues({ password: secret });
    safes.push(pfx.parsedValue?.authenticatedSafe as AuthenticatedSafe);
  }
  const safeContents = safes.flatMap((safe) => safe.safeContents);
  const authenticatedSafe = new AuthenticatedSafe({ safeContents });
  const both = new PFX({ parsedValue: { integrityMode: 0, authenticatedSafe } });
  await both.makeInternalValues({
    password: secret,
    iterations: 1,
    pbkdf2HashAlgorithm: "SHA-256",
    hmacHashAlgorithm: "SHA-256",
  });
  return Buffer.from(both.toSchema().toBER());
}

/** The certificates of a PEM text, in its order. */
function certificatesOf(pem: unknown): string[] {
  return String(pem)
    .split(/(?=-----BEGIN)/)
    .map((one) => new X509Certificate(one).fingerprint256);
}

describe("a PFX file", () => {
  const [alone, chained]: (() => string[])[] = [() => [], withChain];
  test.each([
    ["without a password", "", alone, []],
    ["without a password, with a chain", "", chained, []],
    ["with a password", "secret", alone, []],
    ["with a password outside ASCII, with a chain", "gehëim", chained, []],
    ["in other current encryptions", "secret", chained, algorithm("AES-128-CBC", "AES-192-CBC")],
    ["without encryption", "secret", chained, algorithm("NONE")],
    ["with only the key encrypted", "secret", chained, algorithm("AES-256-CBC", "NONE")],
  ] as const)(
    "%s is read as key and certificates, in order",
    async (name, password, chain, options) => {
      const path = writePfxFile("read.pfx", password, [...(chain?.() ?? []), ...options]);
      const loaded = await loadServerCertificate(path, password === "" ? undefined : password);
      expect(Object.keys(loaded.tls).sort(), name).toEqual(["cert", "key", "passphrase"]);
      const all = leaf.certificate + (chain === withChain ? intermediate + root.certificate : "");
      expect(certificatesOf(loaded.tls.cert)).toEqual(certificatesOf(all));
      expect(loaded.isPfx).toBe(true);
      expect(loaded.warnings).toEqual([]);
      expect(loaded.certificate.fingerprint256).toBe(certificatesOf(leaf.certificate)[0]);
    },
  );

  test("with several keys is read as its first", async () => {
    const other = await makeServerCertificate(root, ["other"]);
    for (const [first, second] of [
      [leaf, other],
      [other, leaf],
    ] as const) {
      writeFileSync(file("several.pfx"), await writeTwo(first, second), {
        mode: 0o600,
      });
      const { tls, certificate, warnings } = await loadServerCertificate(file("several.pfx"), "x");
      expect(certificatesOf(tls.cert)[0]).toBe(certificatesOf(first.certificate)[0]);
      expect(certificate.checkPrivateKey(createPrivateKey(String(tls.key)))).toBe(true);
      expect(warnings).toEqual([]);
    }
  });

  test("in an old encryption is left to OpenSSL, with a warning on how to convert it", async () => {
    const path = writePfxFile("old.pfx", "secret", [...withChain(), ...algorithm("PBE-SHA1-3DES")]);
    const { tls, warnings } = await loadServerCertificate(path, "secret");
    expect(tls).toEqual({ pfx: readFileSync(path), passphrase: "secret" });
    expect(warnings).toEqual([
      expect.stringMatching(
        /old\.pfx has a format that only OpenSSL can read.*Convert it: openssl/,
      ),
    ]);
    const command = String(warnings[0])
      .replace(/^.*Convert it: /, "")
      .replace("-nodes", "-nodes -passin pass:secret")
      .replace("-export", "-export -passout pass:next");
    execFileSync("sh", ["-c", command], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    const converted = await loadServerCertificate(file("new.pfx"), "next");
    const all = leaf.certificate + intermediate + root.certificate;
    expect(certificatesOf(converted.tls.cert)).toEqual(certificatesOf(all));
    expect(converted.warnings).toEqual([]);
  });

  test.each([[[]], [algorithm("PBE-SHA1-3DES")], [algorithm("NONE")]])(
    "with a wrong password is rejected (%s)",
    async (options) => {
      const path = writePfxFile("wrong.pfx", "right", options);
      for (const password of ["wrong", "", undefined]) {
        await expect(loadServerCertificate(path, password)).rejects.toMatchObject({
          failure: "certificate-password-wrong",
          message: `The password of the certificate ${path} is wrong; correct Security.Certificate.Password`,
        });
      }
      expect((await loadServerCertificate(path, "right")).isPfx).toBe(true);
    },
  );
});

/** The acceptable CAs that a client receives in the handshake. */
async function namedOn(port: number, version: "1_2" | "1_3"): Promise<string> {
  const args = ["s_client", "-connect", `127.0.0.1:${port}`, `-tls${version}`];
  const running = run("openssl", args);
  running.child.stdin?.end();
  const { stdout } = await running;
  return /No client certificate CA names sent/.test(stdout)
    ? "none"
    : (/Acceptable client certificate CA names\n(.*?)\nRequested Signature/s.exec(stdout)?.[1] ??
        stdout);
}

describe("the TLS handshake", () => {
  async function expectNamed(server: TestServer, names: unknown): Promise<void> {
    const { port, tcpPort } = server.running.services.address;
    for (const version of ["1_2", "1_3"] as const) {
      expect(await namedOn(port, version), `HTTP, ${version}`).toEqual(names);
      expect(await namedOn(tcpPort, version), `TCP, ${version}`).toEqual(names);
    }
  }

  function start(path: string): Promise<TestServer> {
    const flags = [
      `--Security.Certificate.Path=${path}`,
      "--Security.Certificate.Password=secret",
      `--DataDir=${path}.data`,
    ];
    return startTestServer({ flags });
  }

  test("contains no CAs of a PFX, at the start and after renewal or replacement", async () => {
    const path = writePfxFile("own.pfx", "secret", withChain());
    const server = await start(path);
    await expectNamed(server, "none");
    const { presentedCertificate: certificate } = server.running.services;
    const shown = certificate?.current.digest;
    copyFileSync(writePfxFile("next.pfx", "secret", withChain()), path);
    expect(await certificate?.reload()).toBe(true);
    expect(certificate?.current.digest).not.toBe(shown);
    await expectNamed(server, "none");
    await certificate?.replace(readFileSync(writePfxFile("sent.pfx", "x", withChain())), "x");
    expect(certificate?.current.path).toMatch(/replacement\.json$/);
    await expectNamed(server, "none");
  });

  test("contains those of a PFX that only OpenSSL can read, as the operator is warned", async () => {
    const old = [...withChain(), ...algorithm("PBE-SHA1-3DES")];
    const server = await start(writePfxFile("start-old.pfx", "secret", old));
    expect(server.running.warnings.join()).toMatch(/start-old\.pfx has a format that only OpenSSL/);
    await expectNamed(server, expect.stringContaining("CN = between"));
  });

  test("contains no CAs for a PEM certificate, or one created by the server", async () => {
    writeFileSync(file("whole.crt"), leaf.certificate + intermediate + root.certificate + leaf.key);
    await expectNamed(await start(file("whole.crt")), "none");
    await expectNamed(await startTestServer(), "none");
  });
});
