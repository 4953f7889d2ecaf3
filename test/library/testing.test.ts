/** The server for tests of other programs, used with the official client. */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { DocumentStore } from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../library/testing.ts";
import { builtPath } from "../support/project-root.ts";

/** The folder for temporary files belongs to this test alone. */
const scratch = mkdtempSync(join(tmpdir(), "jackdaw-testing-"));
beforeAll(() => {
  process.env["TMPDIR"] = scratch;
});
afterAll(() => {
  delete process.env["TMPDIR"];
  rmSync(scratch, { recursive: true, force: true });
});
const temporaryFolders = () => readdirSync(scratch);

async function storeAndFind(server: TestServer, name: string): Promise<object[]> {
  const auth = server.authOptions;
  const options = auth && { ...auth, certificate: Buffer.from(auth.certificate) };
  const store = new DocumentStore(server.url, name, options as never); // The client's types always require one.
  try {
    store.initialize();
    const session = store.openSession();
    await session.store({ N: 1, "@metadata": { "@collection": "Numbers" } }, "numbers/1");
    await session.saveChanges();
    return await store
      .openSession()
      .query<object>({ collection: "Numbers" })
      .waitForNonStaleResults()
      .whereGreaterThan("N", 0)
      .all();
  } finally {
    store.dispose();
  }
}

describe("a test server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer();
  });
  afterAll(() => server.close());

  test("listens on loopback, without certificates", () => {
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(server.authOptions).toBeUndefined();
  });

  test("provides an empty database to each test", async () => {
    const [one, other] = await Promise.all([server.database(), server.database()]);
    expect(one.name).not.toBe(other.name);
    expect(await storeAndFind(server, one.name)).toMatchObject([{ N: 1 }]);
    const response = await fetch(`${server.url}/databases/${other.name}/stats`);
    expect(await response.json()).toMatchObject({ CountOfDocuments: 0 });
  });

  test("deletes a disposed database", async () => {
    const database = await server.database();
    const url = `${server.url}/databases/${database.name}/stats`;
    expect((await fetch(url)).status).toBe(200);
    await database[Symbol.asyncDispose]();
    expect(await (await fetch(url)).text()).toContain("DatabaseDoesNotExistException");
    await database.delete();
  });

  test("creates a database with settings", async () => {
    const { name } = await server.database({ Expiration: { Disabled: false } });
    const response = await fetch(`${server.url}/databases/${name}/admin/record`);
    expect(await response.json()).toMatchObject({ Expiration: { Disabled: false } });
  });
});

test("with TLS it has certificates, and leaves no folder", async () => {
  const before = temporaryFolders();
  const server = await startTestServer({ secure: true });
  expect(temporaryFolders()).toHaveLength(before.length + 1);
  const { name } = await server.database();
  expect(server.url).toMatch(/^https:/);
  expect(await storeAndFind(server, name)).toMatchObject([{ N: 1 }]);
  await expect(fetch(server.url)).rejects.toThrow();
  await server[Symbol.asyncDispose]();
  expect(temporaryFolders()).toEqual(before);
});

test("accepts settings, and rejects unknown ones", async () => {
  const server = await startTestServer({ settings: { "Http.MaxJsonRequestSizeInMb": "1" } });
  const { name } = await server.database();
  const body = JSON.stringify({ Query: `from Users where N = "${"x".repeat(2 ** 20)}"` });
  const response = await fetch(`${server.url}/databases/${name}/docs`, { method: "POST", body });
  expect(response.status).toBe(413);
  await server.close();
  const wrong = startTestServer({ settings: { "Http.MaxConnections": "many" } });
  await expect(wrong).rejects.toThrow("Http.MaxConnections");
});

test("a program that never closes it exits anyway", async () => {
  const program = `
    const { startTestServer } = require("${builtPath("bundle/testing.cjs")}");
    (async () => {
      const server = await startTestServer();
      const { name } = await server.database();
      const reply = await fetch(server.url + "/databases/" + name + "/stats");
      console.log(reply.status);
    })();`;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", program]);
  expect(stdout).toBe("200\n");
});
