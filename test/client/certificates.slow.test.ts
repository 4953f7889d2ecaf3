/**
 * The official clients create certificates, which are accepted as PEM and as PFX until they are
 * revoked.
 */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as current from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeServerCertificate } from "../../certs/authority.ts";
import { clients } from "../support/client-store.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-client-"));
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "db" }, { name: "other" }] });
});
afterAll(async () => {
  await stopTestServers();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(clients)("client %s", (version, client) => {
  const ca = () => server.authority.certificate;

  async function withStore<Result>(
    database: string,
    options: current.IAuthOptions,
    work: (store: current.DocumentStore) => Promise<Result>,
  ): Promise<Result> {
    const store = new client.DocumentStore(server.url, database, { ...options, ca: ca() });
    store.initialize();
    try {
      return await work(store);
    } finally {
      store.dispose();
    }
  }

  const admin = (): current.IAuthOptions => ({
    type: "pfx",
    certificate: readFileSync(server.running.certificate?.admin?.pfx ?? ""),
    password: "",
  });

  async function write(store: current.DocumentStore): Promise<void> {
    const session = store.openSession();
    await session.store({ from: version }, "notes/1");
    await session.saveChanges();
  }

  test("creates one, which is accepted as PEM and as PFX, for its database only", async () => {
    const name = `ann-${version}`;
    const files = await withStore("db", admin(), async (store) => {
      const operation = new client.CreateClientCertificateOperation(
        name,
        { db: "ReadWrite" },
        "ValidUser",
      );
      const { rawData } = await store.maintenance.server.send(operation);
      const archive = join(folder, `${name}.zip`);
      writeFileSync(archive, rawData);
      const read = (extension: string) =>
        execFileSync("unzip", ["-p", archive, `${name}.${extension}`]);
      return { certificate: String(read("crt")), key: String(read("key")), pfx: read("pfx") };
    });
    const pem = { type: "pem", certificate: files.key + files.certificate } as const;
    await withStore("db", pem, write);
    await withStore("db", { type: "pfx", certificate: files.pfx, password: "" }, write);
    await expect(withStore("other", pem, write)).rejects.toThrow(/database 'other'/);

    const registered = server.running.services.certificates
      .list()
      .find(({ Name }) => Name === name);
    await withStore("db", admin(), async (store) => {
      const operation = new client.DeleteCertificateOperation(registered?.Thumbprint ?? "");
      await store.maintenance.server.send(operation);
    });
    await expect(withStore("db", pem, write)).rejects.toThrow(/unknown to the server/);
  });

  test("replaces the server's certificate, and receives an error if it is invalid", async () => {
    const replaceBy = (bytes: Buffer) =>
      withStore("db", admin(), (store) =>
        store.maintenance.server.send(new client.ReplaceClusterCertificateOperation(bytes, true)),
      );
    await expect(replaceBy(Buffer.from([1, 2, 3, 4]))).rejects.toThrow(
      "Unable to load the provided certificate",
    );
    const next = await makeServerCertificate(server.authority, ["127.0.0.1"]);
    await replaceBy(Buffer.from(next.certificate + next.key));
    const shown = server.running.certificate?.certificate.fingerprint256;
    expect(shown).toBe(new X509Certificate(next.certificate).fingerprint256);
    await withStore("db", admin(), write);
  });
});
