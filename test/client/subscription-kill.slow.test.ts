/**
 * A server killed while it sends: confirmed acknowledgments never reappear, and no document is
 * omitted.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { builtPath, projectRoot } from "../support/project-root.ts";
import { requestHttp1 } from "../support/start-test-server.ts";
import { clientOf, openSubscription, type TcpClient } from "../support/tcp-client.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-kill-"));
let child: ChildProcess | undefined;

beforeAll(() => {
  builtPath("server/main.js");
});
afterAll(() => {
  child?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<string> {
  const program = join(projectRoot, "bin", "jackdaw");
  const started = spawn(program, ["--ServerUrl=http://127.0.0.1:0", `--DataDir=${folder}`]);
  child = started;
  let output = "";
  for await (const chunk of started.stdout) {
    output += String(chunk);
    const url = /^Server available on: (\S+)$/m.exec(output)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("the server did not start");
}

async function send(url: string, what: string, body?: object): Promise<unknown> {
  const [method = "", path = ""] = what.split(" ");
  const reply = await requestHttp1(url + path, { method, body: JSON.stringify(body) });
  expect(reply.status).toBeLessThan(300);
  return reply.text === "" ? null : reply.json;
}

async function open(url: string): Promise<TcpClient> {
  const { Url } = (await send(url, "GET /info/tcp")) as { Url: string };
  const socket = net.connect(Number(new URL(Url).port), "127.0.0.1");
  await once(socket, "connect");
  const client = await openSubscription(clientOf(socket), { MaxDocsPerBatch: 3 }, "db");
  expect(await client.next()).toMatchObject({ Status: "Accepted" });
  return client;
}

async function kill(): Promise<void> {
  const ended = once(child as ChildProcess, "exit");
  child?.kill("SIGKILL");
  await ended;
}

test("after each kill, the worker resumes after the confirmed batch", async () => {
  let url = await start();
  await send(url, "PUT /admin/databases?name=db&replicationFactor=1", { DatabaseName: "db" });
  await send(url, "PUT /databases/db/subscriptions", { Name: "s", Query: "from Users" });
  const count = 24;
  for (let i = 1; i <= count; i++) {
    await send(url, `PUT /databases/db/docs?id=users%2F${i}`, {
      number: i,
      "@metadata": { "@collection": "Users" },
    });
  }
  const confirmed: number[] = [];
  for (let round = 0; confirmed.length < count; round++) {
    const client = await open(url);
    const numbersOf = (batch: Awaited<ReturnType<TcpClient["batch"]>>) =>
      batch.map(({ Data }) => (Data as { number: number }).number);
    for (let batches = 0; batches <= round % 2; batches++) {
      const numbers = numbersOf(await client.batch());
      client.send({ Type: "Acknowledge" });
      expect(await client.next()).toEqual({ Type: "Confirm" });
      confirmed.push(...numbers);
      if (confirmed.length === count) break;
    }
    // Sent and not acknowledged; or acknowledged, and it is unknown whether that arrived.
    if (confirmed.length < count) await client.batch();
    await kill();
    client.close();
    url = await start();
  }
  expect(confirmed).toEqual(Array.from({ length: count }, (_, i) => i + 1));
  const client = await open(url);
  await send(url, "PUT /databases/db/docs?id=users%2F99", {
    number: 99,
    "@metadata": { "@collection": "Users" },
  });
  expect(await client.batch()).toMatchObject([{ Data: { number: 99 } }]);
  client.close();
}, 60_000);
