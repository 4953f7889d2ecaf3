/**
 * Endless scripts in every place that runs scripts: each is stopped with an error that names its
 * limit.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { processMemory } from "../../engine/base/memory/memory-budget.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ databases: [{ name: "db" }], unsecured: true });
  await send("PUT", "docs?id=users/1", { Name: "Ann", "@metadata": { "@collection": "Users" } });
});
afterAll(stopTestServers);

async function send(method: string, path: string, body: unknown) {
  return await server.request(`/databases/db/${path}`, { method, body: JSON.stringify(body) });
}

/** The result of a patch by query with lifted limits. */
async function liftedFailure(script: string): Promise<string> {
  const query = { Query: { Query: `from Users update { ${script} }` } };
  const started = await send("PATCH", "queries?ignoreMaxStepsForScript=true", query);
  const { OperationId } = started.json as { OperationId: number };
  for (;;) {
    const reply = await server.request(`/databases/db/operations/state?id=${OperationId}`);
    const { Status, Result } = reply.json as { Status: string; Result: { Message?: string } };
    if (Status !== "InProgress") return `${Status}: ${Result?.Message}`;
  }
}

const limit = /Patching\.(MaxTimeForScriptInMs|MaxMemoryForScriptInMb)/;

/** Scripts that consume time, memory or depth in different ways. */
const endless: Readonly<Record<string, string>> = {
  "a loop": "while (true) {}",
  "counters with new names": "for (let i = 0; ; i++) incrementCounter(this, 'c' + i, 1)",
  "one counter": "for (;;) incrementCounter(this, 'c', 1)",
  "counters that are created and deleted":
    "for (;;) { incrementCounter(this, 'c', 1); deleteCounter(this, 'c') }",
  documents: "for (let i = 0; ; i++) put('x/' + i, { a: i })",
  "documents that are created and deleted": "for (;;) { put('x/1', { a: 1 }); del('x/1') }",
  "long documents": "const s = 'x'.repeat(1e5); for (let i = 0; ; i++) put('x/' + i, { s })",
  "a time series":
    "const t = timeseries(this, 'h'); for (let i = 0; ; i++) t.append(new Date(1e12 + i * 1000), [1], null)",
  "time series":
    "for (let i = 0; ; i++) timeseries(this, 'h' + i).append(new Date(1e12), [1], null)",
  loads: "for (let i = 0; ; i++) load('none/' + i)",
  output: "for (;;) output('x'.repeat(1000))",
  "the lower case of long texts": "for (;;) 'İ'.repeat(3e6).toLowerCase()",
  "the lower case of texts": "for (;;) 'İ'.repeat(1000).toLowerCase()",
  "a search in a long text": "const s = 'a'.repeat(1e7); for (;;) s.indexOf('ab')",
  "a search for periodic texts":
    "const p = 'ab'.repeat(2000); for (;;) 'ab'.repeat(5e5).indexOf(p + 'c' + p)",
  "a list that grows": "const a = []; for (;;) a.push(1)",
  "regular expressions": "const a = []; for (;;) a.push(new RegExp('a{' + (a.length % 900) + '}'))",
  "combining marks that are sorted":
    "const s = 'a' + '\\u0316\\u0300'.repeat(5000); for (;;) s.normalize()",
  "a text that doubles":
    "let s = 'a'; for (;;) { try { s += s; s.charCodeAt(0) } catch (e) { s = 'a' } }",
  "properties that are deleted":
    "const o = {}; for (let i = 0; i < 20000; i++) o['k' + i] = i; for (let j = 0; ; j++) delete o['k' + j]",
  "dates of long texts": "const s = ' '.repeat(1e6); for (;;) new Date(s)",
  "numbers with many digits": "for (;;) (Math.PI * 1e300).toPrecision(100)",
  "invalid JSON": "for (;;) { try { JSON.parse('x') } catch (e) {} }",
  "a document that expands": "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; this.a = a",
};

describe("a script without a step limit is stopped", () => {
  for (const [name, script] of Object.entries(endless)) {
    test(`with ${name}`, async () => {
      const reported = await liftedFailure(script);
      expect(reported).toMatch(/^Faulted: /);
      expect(reported).toMatch(limit);
      expect(processMemory.workBytesOf("scripts")).toBe(0);
      expect((await server.request("/databases/db/docs?id=x/1")).status).toBe(404);
    });
  }
});

describe("the scripts of one batch", () => {
  const patches = (count: number, Script: string) =>
    Array.from({ length: count }, () => ({ Type: "PATCH", Id: "users/1", Patch: { Script } }));

  test("may take longer in total than one script, while other clients are served", async () => {
    const heavy = "for (let i = 0; i < 2000; i++) this.N = i";
    let longest = 0;
    let last = performance.now();
    const timer = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 1);
    const reply = await send("POST", "bulk_docs", { Commands: patches(200, heavy) });
    clearInterval(timer);
    expect(reply.status).toBe(201);
    // Together they take some hundred milliseconds.
    expect(longest).toBeLessThan(250);
    const { Results } = (await server.request("/databases/db/docs?id=users/1")).json as {
      Results: { N?: number }[];
    };
    expect(Results[0]?.N).toBe(1999);
  });

  test("may be many if they do little", async () => {
    const light = "this.Count = (this.Count || 0) + 1";
    const reply = await send("POST", "bulk_docs", { Commands: patches(1000, light) });
    expect(reply.status).toBe(201);
    const { Results } = (await server.request("/databases/db/docs?id=users/1")).json as {
      Results: { Count?: number }[];
    };
    expect(Results[0]?.Count).toBe(1000);
  });
});
