/** `jackdaw cluster recover` on folders that are not in use. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runCommand } from "../../../cli/run.ts";
import { nodeEnvironment, openEngine } from "../../../engine/engine.ts";
import { asSingleNode, createLostCluster, shopId } from "../../support/lost-cluster.ts";

let folder = "";

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "jackdaw-recover-"));
  await createLostCluster(folder);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function recover(...words: readonly string[]) {
  const output = new PassThrough();
  const errors = new PassThrough();
  const streams = { input: Readable.from([]), output, errors };
  const code = await runCommand(
    ["cluster", "recover", folder, ...words],
    streams,
    {},
    new AbortController().signal,
  );
  output.end();
  errors.end();
  return { code, out: await text(output), err: await text(errors) };
}

test("prints its plan, and changes nothing without --yes", async () => {
  const before = readdirSync(folder);
  const { code, out, err } = await recover();
  expect(code).toBe(2);
  expect(out).toContain("of the cluster of A (http://127.0.0.1:1), B (");
  expect(out).toMatch(/^shop: 2 documents, up to message 4 of epoch 1, committed here at 20\d\d-/m);
  expect(out).toMatch(/^world: lost, no copy exists here$/m);
  expect(out).toContain("Writes that other nodes acknowledged after the messages above are lost.");
  expect(err).toContain(
    "1 copy would permanently become databases of a single node; copy the folder, then add --yes",
  );
  expect(readdirSync(folder).filter((name) => !name.startsWith("LOCK"))).toEqual(
    before.filter((name) => !name.startsWith("LOCK")),
  );
});

test("with --yes, converts the folder to that of a single node, once", async () => {
  const { code, out } = await recover("--yes", "--json");
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    folder,
    copies: [{ name: "shop", sequence: 4, documents: 2, damages: [] }],
    lost: ["world"],
    certificateCount: 1,
    moved: [expect.stringMatching(/^Cluster\.lost-\d{8}T\d{6}Z$/)],
  });
  await asSingleNode(folder, async ({ databases }) => {
    expect((await databases.find("shop"))?.documents.find("users/1")).not.toBeNull();
  });
  const again = await recover("--yes");
  expect(again.code).toBe(6);
  expect(again.err).toContain("is not the data folder of a node of a cluster");
});

test("reports a database that the cluster had deleted and whose copy remains", async () => {
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
  const deleted = { [`cluster/deleted/${shopId}`]: { name: "shop", generation: 1 } };
  await createLostCluster(folder, deleted);
  expect((await recover()).out).toContain("note: the cluster had deleted it; it is restored");
});

test("changes nothing while another node answers, or while the folder is in use", async () => {
  const listener = createServer((_, reply) => reply.end());
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  mkdirSync(join(folder, "nats"));
  // A nats-server of another node would be found by its route; this listener sends no INFO.
  const cluster = { routes: [`nats://127.0.0.1:${port}`] };
  writeFileSync(join(folder, "nats/nats-server.conf"), JSON.stringify({ cluster }));
  expect((await recover()).code).toBe(2);
  listener.close();
  const nats = (await import("node:net")).createServer((socket) => socket.end("INFO {}\r\n"));
  await new Promise<void>((resolve) => nats.listen(port, "127.0.0.1", resolve));
  const refused = await recover("--yes");
  nats.close();
  expect(refused.code).toBe(5);
  expect(refused.err).toContain(
    `Nothing was changed: the nats-server of another node responds at 127.0.0.1:${port}.`,
  );
  expect(existsSync(join(folder, "Cluster"))).toBe(true);
  const engine = await openEngine({ folder, environment: nodeEnvironment() });
  const locked = await recover("--yes");
  await engine.close();
  expect(locked.code).toBe(5);
  expect(locked.err).toMatch(/is in use by process \d+.*; stop the server first/);
});

test("reports a missing folder, and a folder of a single node", async () => {
  rmSync(join(folder, "Cluster"), { recursive: true });
  expect(await recover()).toMatchObject({ code: 6, err: expect.stringContaining("no recovery") });
  rmSync(folder, { recursive: true });
  expect(await recover()).toMatchObject({
    code: 6,
    err: expect.stringContaining("does not exist"),
  });
});
